"""A fleet that is a Dask cluster, through what Dask documents.

A task is sent by name, so that neither the scheduler nor another Python has to
understand our code. It comes home as bytes; what happens on the way are events.
"""

import contextlib
import dataclasses
import os
import pkgutil
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import dask
from distributed import Client, Event, Future, Security, get_worker

from perfkit.errors import BadParameterError, PerfkitError, RunError
from perfkit.findings.text import plain
from perfkit.fleet.members import Member
from perfkit.fleet.process import Task, measure
from perfkit.fleet.run import News, Tell

_ADDRESS = re.compile(r"(\w+://)?([^\s/:\[\]]+|\[[0-9a-fA-F:.%\w]+\]):\d{1,5}")
_CONNECT_S = _FETCH_S = 10.0
_ANSWER_S = 5.0
_CLOSING_S = 1.5
_LONGEST = 200
_LEFT = (
    "Its worker left the cluster during its run: it was killed, crashed or was "
    "started anew."
)
_LOST = "The scheduler was lost during the run, so nothing can come home."


class Cluster:
    """The workers of a cluster, or one of each host; see ``open_run``.

    Attributes:
        members: Who is asked.

    Raises:
        BadParameterError: A value that is not accepted.
        RunError: The scheduler does not answer, or there are no workers.
    """

    def __init__(
        self, where: str | Client, each: str = "host", tls: Sequence[str] = ()
    ) -> None:
        self._ours = isinstance(where, str)
        self._client = client = connect(where, tls) if isinstance(where, str) else where
        if client.asynchronous:
            raise BadParameterError(
                "The client is asynchronous; make one with asynchronous=False."
            )
        self._name = f"perfkit-{secrets.token_hex(6)}"
        self._tells: dict[str, Tell] = {}
        self._futures: dict[str, Future] = {}
        self._left: set[str] = set()
        self._topics: tuple[str, ...] = ()
        try:
            self.members = members(self._ask("identity", n_workers=-1)["workers"], each)
        except PerfkitError:
            self.close()
            raise
        # Scheduler and workers tell on the second who leaves.
        self._topics = (self._name, "all")
        for topic in self._topics:
            client.subscribe_topic(topic, self._hear)

    def begin(self, member: Member, task: Task, tell: Tell) -> None:
        """Let a member do a task."""
        if self._client.status in ("closing", "closed"):
            tell(("failed", _LOST))
            return
        named = dask.delayed(pkgutil.resolve_name, pure=False)(f"{__name__}:on_worker")
        asked = named(dataclasses.asdict(task), member.key, self._name)
        future = self._client.compute(
            asked, workers=[member.key], allow_other_workers=False, retries=0
        )
        self._futures[member.key], self._tells[member.key] = future, tell
        future.add_done_callback(lambda done: tell(_news(done)))
        if member.key in self._left:
            tell(("left", _LEFT))

    def end(self, member: Member | None = None) -> None:
        """Let one end whatever it does, or let all end with what they have."""
        if member is not None:
            if member.key in self._futures:
                self._futures[member.key].release()
            return
        # Whom it does not reach ends what it does when the futures are released.
        with contextlib.suppress(RunError):
            self._ask("event_set", name=self._name)

    def close(self) -> None:
        """Let everybody end, and leave nothing behind on the scheduler."""
        # Dask lets the workers know, as it does where this process dies.
        for future in self._futures.values():
            future.release()
        if self._client.status == "running":
            for topic in self._topics:
                self._client.unsubscribe_topic(topic)
            with contextlib.suppress(RunError):
                self._ask("event_clear", name=self._name)
        if self._ours:
            with contextlib.suppress(OSError):
                self._client.close(timeout=_CLOSING_S)

    def _ask(self, what: str, **told: Any) -> Any:
        """Ask the scheduler, which may stand still.

        Raises:
            RunError: It does not answer.
        """
        try:
            asked = getattr(self._client.scheduler, what)
            return self._client.sync(asked, callback_timeout=_ANSWER_S, **told)
        # The last where the client is closed.
        except (OSError, RuntimeError, AttributeError) as error:
            raise RunError(
                "The scheduler does not answer; connect a client anew."
            ) from error

    def _hear(self, event: tuple[float, Any]) -> None:
        match event[1]:
            case {"member": str(key), "doing": dict(told)} if key in self._tells:
                self._tells[key](told)
            case {"action": "remove-worker", "worker": str(key)}:
                self._left.add(key)
                if key in self._tells:
                    self._tells[key](("left", _LEFT))


def members(
    workers: Mapping[str, Mapping[str, Any]], each: str = "host"
) -> tuple[Member, ...]:
    """Who is asked, in the order of hosts, of workers by their addresses.

    Raises:
        RunError: There are no workers.
    """
    if not workers:
        raise RunError(
            "The cluster has no workers; start one on every machine with "
            "`dask worker ADDRESS`, in the environment that perfkit is in."
        )
    found: dict[str, list[Member]] = {}
    for address in sorted(workers):
        host, called = (str(workers[address][key]) for key in ("host", "name"))
        name = plain(host, 60)
        if each == "worker":
            port = address.rpartition(":")[2]
            name += f" {port if called == address else plain(called, 60) or port}"
        member = Member(key=address, host=host, name=name)
        found.setdefault(host, []).append(member)
    return tuple(
        member
        for host in sorted(found, key=_by_numbers)
        for member in found[host][: None if each == "worker" else 1]
    )


def _by_numbers(host: str) -> list[tuple[int, str]]:
    """So that 10.0.0.9 stands before 10.0.0.10."""
    return [(int(part) if part.isdigit() else -1, part) for part in host.split(".")]


def connect(address: str, tls: Sequence[str] = ()) -> Client:
    """Connect to a scheduler, with these certificates or those of Dask's configuration.

    Raises:
        BadParameterError: It is no address, or the certificates do not go with it.
        RunError: Nothing answers there, or not as it should.
    """
    if not _ADDRESS.fullmatch(address):
        raise BadParameterError(
            f"{plain(address)!r} is no address of a scheduler; give one such as "
            "tcp://scheduler:8786 or tls://scheduler:8786."
        )
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    secured = address.startswith("tls://")
    security = context = None
    # Tried here, because a client that fails by it is long in ending.
    try:
        if secured:
            given = dict(zip(names, tls, strict=bool(tls)))
            security = Security(require_encryption=True, **given)
            context = security.get_connection_args("client").get("ssl_context")
    except (OSError, ValueError) as error:
        raise BadParameterError(
            f"The certificates cannot be used ({_said(error)})."
        ) from error
    if secured != bool(tls or context):
        raise BadParameterError(
            "Certificates and an address with tls:// go together: give --tls-ca-file, "
            "--tls-cert and --tls-key, or set distributed.comm.tls in Dask's "
            "configuration."
        )
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


def _news(done: Future) -> News:
    """How a member ended; called in a thread of Dask's."""
    if done.status == "cancelled":
        return "failed", _LOST
    try:
        data = done.result(timeout=_FETCH_S)
    # Whatever came instead of the bytes is an outcome, and the others go on.
    except Exception as error:
        return "failed", why(error)
    if not isinstance(data, bytes):
        return "failed", "It sent something else than was asked for."
    return data


def why(error: BaseException) -> str:
    """Why a member could not do it, in a sentence."""
    lacks = isinstance(error, ModuleNotFoundError | AttributeError)
    if lacks and "perfkit" in str(error):
        return (
            "It has no perfkit, or an older one, in the environment of its worker; "
            "install the same perfkit there as here."
        )
    return f"Its worker could not do it ({_said(error)})."


def _said(error: BaseException) -> str:
    said = plain(str(error), _LONGEST).rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def on_worker(task: dict[str, Any], member: str, name: str) -> bytes:
    """Do a task on the worker that this runs on; see ``measure``.

    Args:
        task: The fields of a ``Task``.
        member: What the asking machine calls this worker.
        name: Of the topic on which is told what happens, and of the flag that is Stop.
    """
    worker, stop = get_worker(), Event(name)
    key = worker.get_current_task()

    def wanted() -> bool:
        # What nobody waits for any more, Dask takes out of this state.
        known = worker.state.tasks.get(key)
        return known is not None and known.state == "executing" and not stop.is_set()

    return measure(
        task,
        lambda doing: worker.log_event(name, {"member": member, "doing": doing}),
        wanted,
        without=_from_dask() if worker.nanny else (),
    )


def _from_dask() -> set[str]:
    """Variables that Dask sets for its workers, such as one thread for OpenMP.

    They are no part of the machine, and a training in them would be slower than it is.
    """
    return {
        name
        for kind in ("pre-spawn-environ", "environ")
        for name, value in dask.config.get(f"distributed.nanny.{kind}", {}).items()
        if os.environ.get(name) == str(value)
    }
