"""One measurement on each host of a Dask cluster, whose files come home.

Dask calls ``measure_here`` on one worker of each host. That runs a command of perfkit
in a process of its own, so a crash takes no worker along, and returns the file.
"""

import contextlib
import datetime
import gc
import operator
import os
import pkgutil
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import __version__, documents
from perfkit.errors import BadParameterError, PerfkitError, RunError, need
from perfkit.findings.store import write_as
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from distributed import Client, Future

_PERFKIT = (sys.executable, "-m", "perfkit")
_CONNECT_S = _FETCH_S = 10.0
_CLOSE_S, _POLL_S = 2.0, 1.0
_LONGEST_DEFAULT_BUDGET_S = 180.0
# A run also prepares its data and waits for other runs on its host.
_BEYOND_BUDGET_S = 180.0


@dataclass(kw_only=True)
class HostRun:
    """A run on one host, of which a worker is to send a file that goes to ``path``.

    ``summary`` is the file's headline, or why there is none; "" while it runs.
    """

    host: str
    worker: str
    future: "Future"
    path: Path
    is_saved: bool = False
    summary: str = ""

    def __str__(self) -> str:
        outcome = self.path if self.is_saved else "failed"
        return f"{plain(self.host)}: {outcome}: {plain(self.summary).rstrip('.')}."

    def update(self, workers: Sequence[str], *, is_late: bool) -> None:
        """Save what came home, or note why nothing will."""
        if self.future.done():
            try:
                data = _fetch(self.future)
                # What came home is not trusted.
                document = documents.parse(data, "what it sent")
                write_as(self.path, data, document.kind)
                self.summary = document.report.verdict.headline
                self.is_saved = True
            except PerfkitError as error:
                self.summary = str(error)
        elif self.worker not in workers:
            self.summary = "its worker left the cluster: it died or lost its network"
        elif is_late:
            self.summary = (
                "no file arrived in time, because its worker is busy or hangs; see "
                "Dask's dashboard"
            )


def new_folder(out: str | None) -> Path:
    """Choose the folder of the files; refuse one that holds something."""
    start = datetime.datetime.now()
    folder = Path(out or f"perfkit-fleet-{start:%Y%m%d-%H%M%S}").expanduser()
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise BadParameterError(
            f"--out is {plain(str(folder))!r}, which is not empty; give a new folder."
        )
    return folder


def measure(
    address: str,
    command: Sequence[str],
    folder: Path,
    say: Callable[[str], None],
    budget: float | None = None,
) -> list[HostRun]:
    """Run a command of perfkit on each host of a cluster and save what it wrote.

    The command is ``["passport"]``, or ``["run", NAME]`` with its options; ``budget``
    is the seconds that it is given, None for its own. ``say`` takes a line at the
    start, and one for each host when it is through.
    """
    limit = 2 * (budget or _LONGEST_DEFAULT_BUDGET_S) + _BEYOND_BUDGET_S
    with _connected(address) as client:
        folder.mkdir(parents=True, exist_ok=True)
        runs = pending = list(_start(client, command, folder))
        hosts = ", ".join(plain(run.host) for run in runs)
        say(f"Measuring for {limit:.0f} s at most on {hosts}.")
        deadline = time.monotonic() + limit
        while pending:
            time.sleep(_POLL_S)
            workers = client.scheduler_info(n_workers=-1)["workers"]
            for run in pending:
                run.update(workers, is_late=time.monotonic() > deadline)
                if run.summary:
                    say(str(run))
            pending = [run for run in pending if not run.summary]
    return runs


def next_step(runs: Sequence[HostRun], command: str, folder: Path) -> str:
    """Say how many files came home, and what to do with them."""
    count = sum(run.is_saved for run in runs)
    where = shlex.quote(str(folder))
    step = f"put them on one page with `perfkit export {where}/*.json -o PAGE.html`"
    if command == "passport":
        step = f"compare them with `perfkit class {where}`"
    return f"{count} of {len(runs)} hosts sent a file{f'; {step}' if count else ''}."


@contextlib.contextmanager
def _connected(address: str) -> "Iterator[Client]":
    need("distributed", "A fleet", "fleet")
    from distributed import Client

    # One that could not connect ends now: while the next one starts, both would hang.
    gc.collect()
    try:
        client = Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise RunError(
            f"No Dask scheduler answers at {plain(address)} ({_reason(error)}); check "
            "the address, such as tcp://scheduler:8786, and the network."
        ) from error
    try:
        yield client
    finally:
        # The workers then end what nobody waits for.
        with contextlib.suppress(OSError):
            client.close(timeout=_CLOSE_S)


def _start(client: "Client", command: Sequence[str], folder: Path) -> Iterator[HostRun]:
    """Submit a run to one worker of each host, in the order of hosts."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        raise RunError(
            "The cluster has no workers; start one on each host with "
            "`dask worker ADDRESS`, in an environment with perfkit."
        )
    hosts = {str(worker["host"]): address for address, worker in workers.items()}
    for number, (host, address) in enumerate(sorted(hosts.items()), start=1):
        path = folder / f"machine-{number}.json"
        # A passport takes a file; a run a folder, which is the current one there.
        words = [*command, "--out", path.name if command[0] == "passport" else "."]
        pinned: dict[str, Any] = {"workers": [address], "pure": False, "retries": 0}
        # By its name, so that a scheduler without perfkit can pass it on.
        name = f"{__name__}:{measure_here.__name__}"
        function = client.submit(pkgutil.resolve_name, name, **pinned)
        call = client.submit(operator.call, function, __version__, words, **pinned)
        yield HostRun(host=host, worker=address, future=call, path=path)


def _fetch(future: "Future") -> bytes:
    """Get the file that a worker returned; raise a sentence if it returned none."""
    if future.status == "cancelled":
        raise RunError("the scheduler was lost, so no file can arrive")
    try:
        return bytes(future.result(timeout=_FETCH_S))
    except PerfkitError:
        raise
    # Whatever a worker raised is the result of its host, and the others go on.
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError | AttributeError)
        if missing and "perfkit" in str(error):
            raise RunError(
                "its worker's environment has no perfkit, or an older one; install "
                f"perfkit {__version__} there"
            ) from error
        raise RunError(f"its worker failed ({_reason(error)})") from error


def _reason(error: BaseException) -> str:
    text = plain(str(error)).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def measure_here(version: str, command: Sequence[str]) -> bytes:
    """Run a command of perfkit on the Dask worker that calls this; return its file.

    Another version of perfkit, and a command that wrote no file, are a ``RunError``.
    """
    from distributed import get_worker

    if version != __version__:
        raise RunError(f"it has perfkit {__version__}; install perfkit {version} there")
    worker = get_worker()
    key = worker.get_current_task()
    with (
        tempfile.TemporaryDirectory(prefix="perfkit-fleet-") as folder,
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [*_PERFKIT, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=folder,
            env=_environment(),
            # One signal then ends it and what it started.
            start_new_session=True,
        ) as process,
    ):
        # Dask changes the task's state when the asking machine is gone or gave up.
        while process.poll() is None and (task := worker.state.tasks.get(key)):
            if task.state != "executing":
                break
            time.sleep(_POLL_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for path in Path(folder).glob("*.json"):
            return path.read_bytes()
        code = process.wait()
        log.seek(0)
        last = log.read().decode(errors="replace").strip().rpartition("\n")[2]
    if code < 0:
        raise RunError(f"its run was ended by signal {-code}")
    raise RunError(last.removeprefix("perfkit: ") or f"its run ended with code {code}")


def _environment() -> dict[str, str]:
    """The worker's variables without those that Dask set, such as OMP_NUM_THREADS=1.

    They are no part of the machine, and trainings would be slower with them.
    """
    import dask

    config = dask.config.get("distributed.nanny")
    variables = {**config["pre-spawn-environ"], **config["environ"]}
    return dict(os.environ.items() - {(k, str(v)) for k, v in variables.items()})
