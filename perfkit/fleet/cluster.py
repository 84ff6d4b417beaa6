"""A fleet that is a Dask cluster, through what Dask documents.

A task is sent by name, so that neither the scheduler nor another Python has to
understand our code. It comes home as bytes; what happens on the way are events.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import queue
import re
import secrets
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from perfkit.errors import BadParameterError, MissingPartError, RunError
from perfkit.findings.text import plain
from perfkit.fleet.outcome import BEAT_S, Broken, Doing, Home, Left, Member
from perfkit.fleet.supervising import drained

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from distributed import Client, Future

    from perfkit.fleet.outcome import News, Task


EACH = ("host", "worker")


def members(
    workers: Mapping[str, Mapping[str, Any]], *, each: str = "host"
) -> tuple[Member, ...]:
    """Who is asked, in the order of hosts.

    Args:
        workers: By address, what the scheduler knows of each worker.
        each: ``"host"`` or ``"worker"``.

    Raises:
        BadParameterError: ``each`` is neither.
    """
    if each not in EACH:
        raise BadParameterError(f"each is {each!r}; give one of {', '.join(EACH)}.")
    by_host: dict[str, list[str]] = {}
    for address in sorted(workers):
        by_host.setdefault(_host(address, workers[address]), []).append(address)
    return tuple(
        Member(key=address, host=host, name=_name(host, address, workers, each))
        for host in sorted(by_host, key=_by_numbers)
        for address in by_host[host][: None if each == "worker" else 1]
    )


def _name(
    host: str, address: str, workers: Mapping[str, Mapping[str, Any]], each: str
) -> str:
    if each == "host":
        return plain(host, 60)
    name = plain(str(workers[address].get("name", "")), 60)
    return f"{plain(host, 60)} {name if name and name != address else _port(address)}"


def _host(address: str, about: Mapping[str, Any]) -> str:
    return str(about.get("host") or urlsplit(address).hostname or address)


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _by_numbers(host: str) -> list[tuple[int, str]]:
    """So that 10.0.0.9 stands before 10.0.0.10."""
    return [(int(part) if part.isdigit() else -1, part) for part in host.split(".")]


_ADDRESS = re.compile(r"(\w+://)?([^\s/:\[\]]+|\[[0-9a-fA-F:.%\w]+\]):\d{1,5}")
_CONNECT_S = 10.0
_FETCH_S = 10.0
_ANSWER_S = 5.0
_CLOSING_S = 1.5
_LONGEST = 200
_LOST = "The scheduler was lost during the run, so nothing can come home."


class Cluster:
    """The workers of a cluster.

    Args:
        client: Connected to the scheduler.
        each: ``"host"`` asks one worker of every host, ``"worker"`` each worker.
        ours: Whether the client was made for this and is to be closed with it.

    Attributes:
        members: Who is asked.

    Raises:
        RunError: There are no workers, or the scheduler does not answer.
    """

    def __init__(
        self, client: Client, *, each: str = "host", ours: bool = False
    ) -> None:
        if client.asynchronous:
            raise BadParameterError(
                "The client is asynchronous; make one with asynchronous=False."
            )
        self._client, self._ours = client, ours
        try:
            self._ids = self._workers()
        except (OSError, RuntimeError, AttributeError) as error:
            raise RunError(
                "The scheduler does not answer; connect a client anew."
            ) from error
        self.members = members(self._known, each=each)
        if not self.members:
            raise RunError(
                "The cluster has no workers; start one on every machine with "
                "`dask worker ADDRESS`, in the environment that perfkit is in."
            )
        token = secrets.token_hex(6)
        self._up, self._down = f"perfkit-up-{token}", f"perfkit-down-{token}"
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._futures: dict[str, Future] = {}
        self._beat: dict[str, Any] = {"over": [], "stop": False}
        self._closing = threading.Event()
        client.subscribe_topic(self._up, self._hear)
        self._pulse = threading.Thread(target=self._keep_in_touch, daemon=True)
        self._pulse.start()

    def begin(self, member: Member, task: Task) -> None:
        """Let a member do a task."""
        from dask import delayed

        work = delayed(importlib.import_module, pure=False)("perfkit.fleet.work")
        told = dataclasses.asdict(task)
        asked = work.measure(told, member.key, self._up, self._down)
        future = self._client.compute(
            asked, workers=[member.key], allow_other_workers=False, retries=0
        )
        self._futures[member.key] = future
        future.add_done_callback(lambda done: self._fetch(member.key, done))

    def heard(self, timeout: float) -> list[News]:
        """Wait so long for news, and give it."""
        return drained(self._news, timeout)

    def beat(self, over: Collection[str], *, stop: bool) -> None:
        """Say who has nothing to do any more, and whether all is to be stopped."""
        self._beat = {"over": sorted(over), "stop": stop}

    def close(self) -> None:
        """Let everybody stop, and leave nothing behind on the scheduler."""
        self._closing.set()
        self._pulse.join(_CLOSING_S)
        # Nothing here waits for an answer: the scheduler may stand still.
        for future in self._futures.values():
            future.release()
        if self._client.status == "running":
            self._client.unsubscribe_topic(self._up)
        if self._ours:
            with contextlib.suppress(OSError):
                self._client.close(timeout=_CLOSING_S)

    def _workers(self) -> dict[str, str]:
        """The id of each worker by its address, as both are now."""
        # What the client keeps of the scheduler has no workers in it now and then.
        known = self._client.sync(
            self._client.scheduler.identity, n_workers=-1, callback_timeout=_ANSWER_S
        )
        self._known: dict[str, dict[str, Any]] = known["workers"]
        return {key: str(about.get("id")) for key, about in self._known.items()}

    def _keep_in_touch(self) -> None:
        """Tell once a second what is wanted, and see who left."""
        while not self._closing.wait(BEAT_S):
            if self._client.status in ("closing", "closed"):
                for key in list(self._futures):
                    self._news.put(Broken(key, _LOST))
            else:
                self._say(self._beat)
        self._say({"over": [], "stop": True})

    def _say(self, beat: dict[str, Any]) -> None:
        # A client that is just being closed has no scheduler, which Dask does not say
        # well. What cannot be reached shows by its silence.
        with contextlib.suppress(OSError, RuntimeError, AttributeError):
            self._client.log_event(self._down, beat)
            self._see_who_left()

    def _see_who_left(self) -> None:
        now = self._workers()
        for key in list(self._futures):
            if now.get(key) != self._ids[key]:
                self._news.put(Left(key))

    def _hear(self, event: tuple[float, Any]) -> None:
        match event[1]:
            case {"key": str(key), "doing": dict(told)}:
                doing, left = told.get("doing", ""), told.get("left", "")
                share = told.get("share", 0.0)
                number = share if isinstance(share, int | float) else 0.0
                said = plain(str(doing), _LONGEST), plain(str(left), _LONGEST)
                self._news.put(Doing(key, said[0], min(1.0, max(0.0, number)), said[1]))

    def _fetch(self, key: str, done: Future) -> None:
        """Take what a member sent; called in a thread of the client's."""
        if done.status == "finished":
            self._news.put(self._fetched(key, done))
        elif done.status == "error":
            error = done.exception(timeout=_FETCH_S)
            self._news.put(Broken(key, _why(error)))

    def _fetched(self, key: str, done: Future) -> News:
        try:
            data = done.result(timeout=_FETCH_S)
        # Whatever came instead of the bytes is an outcome, and the others go on.
        except Exception as error:
            return Broken(
                key, f"What it measured could not be fetched ({_said(error)})."
            )
        if not isinstance(data, bytes):
            return Broken(key, "It sent something else than was asked for.")
        return Home(key, data)


def connect(address: str, tls: tuple[str, str, str] | None = None) -> Client:
    """Connect to a scheduler.

    Args:
        address: Such as ``"tcp://scheduler:8786"``.
        tls: The files of the authority's certificate, one's own and its key; None for
            what Dask is configured to.

    Raises:
        BadParameterError: It is no address, or the certificates do not go with it.
        MissingPartError: Dask is not installed.
        RunError: Nothing answers there, or not as it should.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingPartError(
            "A cluster is asked through Dask, which is not installed in this "
            "environment; install it with `pip install distributed`."
        ) from error
    if not _ADDRESS.fullmatch(address):
        raise BadParameterError(
            f"{plain(address)!r} is no address of a scheduler; give one such as "
            "tcp://scheduler:8786 or tls://scheduler:8786."
        )
    security = _security(tls, secured=address.startswith("tls://"))
    try:
        return Client(
            address,
            timeout=_CONNECT_S,
            set_as_default=False,
            name="perfkit",
            security=security,
        )
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise RunError(
            f"No Dask scheduler could be reached at {address} ({_said(error)}); look "
            "at the address and the network, and with tls:// at the certificates."
        ) from error


def _security(tls: tuple[str, str, str] | None, *, secured: bool) -> Any:
    """What Dask needs to know of certificates, tried before anything connects."""
    from distributed import Security

    if tls and not secured:
        raise BadParameterError(
            "Certificates go with an address that begins with tls://."
        )
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    given = dict(zip(names, tls, strict=True)) if tls else {}
    try:
        security = Security(require_encryption=secured or None, **given)
        context = security.get_connection_args("client").get("ssl_context")
    except (OSError, ValueError) as error:
        raise BadParameterError(
            f"The certificates cannot be used ({_said(error)})."
        ) from error
    if secured and context is None:
        raise BadParameterError(
            "An address with tls:// needs certificates: give --tls-ca-file, --tls-cert "
            "and --tls-key, or set distributed.comm.tls in Dask's configuration."
        )
    return security


def _why(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and "perfkit" in str(error):
        return (
            "It has no perfkit, or an older one, in the environment of its worker; "
            "install the same perfkit there as here."
        )
    return f"Its worker could not do it ({_said(error)})."


def _said(error: BaseException) -> str:
    said = plain(str(error), _LONGEST).rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
