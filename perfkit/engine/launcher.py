"""Starts trials: each in a fresh process, forked from one that has TensorFlow loaded.

On Linux the processes come from ``multiprocessing``'s fork server, which imports
TensorFlow once and never runs an operation; elsewhere the same protocol runs over
``spawn``, which imports it in every trial.
"""

import atexit
import contextlib
import functools
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import connection, spawn
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import cloudpickle
import psutil

from perfkit.engine import worker
from perfkit.engine.alone import remove_left
from perfkit.engine.trial import Limits, Outcome
from perfkit.errors import BadParameterError, RunError, remedy
from perfkit.machine.limits import amounts_of
from perfkit.machine.starting import how_ended

_FOLDER = "perfkit-launcher-"
# The name of the processes that are started here.
_OURS = "perfkit's own"
# Who was not listened to for so long, though somebody wanted to listen: the one who
# listens stood still, stopped from outside or with the whole machine.
_STOOD_STILL_S = 2.0
_STOPPED_S = 1.0
_LOST = (
    "The process that starts trials has ended, probably because the system ran out of "
    "memory or processes: close other programs, then run again."
)
# How a server that is gone, or whose files are, fails to start a trial.
_GONE = (EOFError, ConnectionError, FileNotFoundError)
# What a trial printed last is enough to explain its end.
_TAIL = 8192
# What C++, TensorFlow's allocators and the C library say when they are given no memory.
_OUT_OF_MEMORY = (
    *("bad_alloc", "mmap error: 12", "OOM when allocating", "Cannot allocate memory"),
    *("ran out of memory", "failed to allocate memory"),
)
# Variables that TensorFlow, Keras or NumPy may read once, when they are imported, and
# those by which trials know what they may do.
_READ_EARLY = (
    *("TF_", "XLA_", "KERAS_", "CUDA_", "OMP_", "KMP_", "MKL_", "OPENBLAS_"),
    *("LD_LIBRARY_PATH", "PERFKIT_GUARD", "PERFKIT_ONLINE", "PERFKIT_UNCONTAINED"),
)
# The exit code that Python gives a process whose end nobody told.
_UNKNOWN = 255
Message = tuple[Any, ...]


def read_early(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of these variables that libraries may read when they are imported."""
    return {k: v for k, v in variables.items() if k.startswith(_READ_EARLY)}


class Started:
    """A trial's process, seen from outside; how it is heard is up to who started it.

    Args:
        pid: Of the trial's process; it leads a group of its own.
        started_ns: ``time.perf_counter_ns`` when it was asked for.
        silence: Seconds without news, in its own turns, before it counts as hung.

    Attributes:
        outcome: How it ended; None while it runs.
        message: One sentence on an outcome other than ``completed``.
        tail: The last of what it printed.
        notes: What ``poll`` heard of notes so far, by name.
        stood: When it, or who listens to it, was stopped from outside: the end of each
            time by its begin, in nanoseconds of ``time.perf_counter_ns``.
    """

    def __init__(self, pid: int, started_ns: int, silence: float) -> None:
        self.pid, self.started_ns, self.silence = pid, started_ns, silence
        self.outcome: Outcome | None = None
        self.message = ""
        self.tail = ""
        self.notes: dict[str, Any] = {}
        self.stood: dict[int, int] = {}
        self._heard = self._listened = self._frozen = time.perf_counter()

    def poll(self, timeout: float) -> list[Message]:
        """Wait up to ``timeout`` seconds for what the trial tells, and return it.

        Once the trial is over ``outcome`` is set and nothing more comes.
        """
        if self.outcome is not None:
            return []
        messages = self._hear(timeout)
        self.notes |= {m[1]: m[2] for m in messages if m[0] == "note"}
        before, self._listened = self._listened, time.perf_counter()
        if self._listened - before > timeout + _STOOD_STILL_S:
            # Who stood still could hear nothing, and that is not silence.
            self._heard = min(self._listened, self._heard + self._listened - before)
            self._note_stood(before)
        silent = self._listened - self._heard
        stopped = silent > _STOPPED_S and self.outcome is None and _is_stopped(self.pid)
        if stopped:
            self._note_stood(self._heard)
        if self.outcome is None and silent > self.silence:
            cause = "was suspended" if stopped else "gave no sign of life"
            self.kill("timed-out", f"{cause} for {self.silence:.0f} s and was ended")
        return messages

    def _note_stood(self, since: float) -> None:
        self.stood[round(since * 1e9)] = round(self._listened * 1e9)

    def kill(self, outcome: Outcome, message: str) -> None:
        """End the trial and all it started, now; it ends with this outcome."""
        raise NotImplementedError

    def _hear(self, timeout: float) -> list[Message]:
        """Wait for what it tells; sets ``outcome`` where it is over."""
        raise NotImplementedError

    def freeze(self) -> None:
        """Let the trial and all it started stand still; it keeps what it holds."""
        self._frozen = time.perf_counter()
        _signal_group(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on from where it stood."""
        # While it stands still it cannot be heard, and that is not silence.
        self._listened = time.perf_counter()
        self._heard += self._listened - self._frozen
        _signal_group(self.pid, signal.SIGCONT)


class Running(Started):
    """A trial that was started by this process's launcher."""

    def __init__(
        self,
        context: BaseContext,
        payload: bytes,
        seed: int,
        limits: Limits,
        folder: str,
    ) -> None:
        self._messages, sink = context.Pipe(duplex=False)
        self._output, out = context.Pipe(duplex=False)
        self._limits, self._folder = limits, folder
        self._printed = bytearray()
        self._killed: tuple[Outcome, str] | None = None
        self._ended: tuple[Outcome, str] | None = None
        self._oom_kills = _oom_kills()
        started_ns = time.perf_counter_ns()
        self._process = context.Process(  # type: ignore[attr-defined]
            target=worker.work,
            args=(payload, seed, limits, sink, out, folder),
            name=_OURS,
            daemon=True,
        )
        self._process.start()
        sink.close()
        out.close()
        super().__init__(self._process.pid, started_ns, limits.silence)
        self._open: list[Any] = [self._messages, self._output]

    def _hear(self, timeout: float) -> list[Message]:
        ready = connection.wait([*self._open, self._process.sentinel], timeout)
        messages = self._read(ready)
        if self._process.sentinel in ready:
            messages += self._drain()
            self._finish()
        return messages

    def kill(self, outcome: Outcome, message: str) -> None:
        """End the trial and all it started, now; it ends with this outcome."""
        if self.outcome is not None:
            return
        self._killed = self._killed or (outcome, message)
        _signal_group(self.pid, signal.SIGKILL)
        self._process.join(5)
        self._drain()
        self._finish()

    def _read(self, ready: list[Any]) -> list[Message]:
        messages: list[Message] = []
        if self._output in ready:
            self._read_output()
        while self._messages in self._open and self._messages.poll():
            try:
                message = self._messages.recv()
            except (EOFError, OSError):
                self._open.remove(self._messages)
                break
            self._heard = time.perf_counter()
            if message[0] == "end":
                self._ended = message[1:]
            else:
                messages.append(message)
        return messages

    def _read_output(self) -> None:
        text = os.read(self._output.fileno(), 1 << 16)
        if not text:
            self._open.remove(self._output)
        self._printed += text
        del self._printed[:-_TAIL]
        self.tail = self._printed.decode(errors="replace")

    def _drain(self) -> list[Message]:
        messages = self._read([])
        # A grandchild may hold the other end open, so end of file is not waited for.
        while self._output in self._open and connection.wait([self._output], 0):
            self._read_output()
        return messages

    def _finish(self) -> None:
        _signal_group(self.pid, signal.SIGKILL)
        _end_marked(self.pid)
        self._process.join(5)
        shutil.rmtree(self._folder, ignore_errors=True)
        code = self._process.exitcode
        crash = _crash(code, self.tail, self._limits, _oom_kills() > self._oom_kills)
        if code == _UNKNOWN and _server_is_gone():
            crash = "crashed", "lost the process that started it"
        self.outcome, self.message = self._killed or self._ended or crash
        self._messages.close()
        self._output.close()


class Launcher:
    """One per process; ``launcher()`` gives it."""

    def __init__(self) -> None:
        _leave_main_out()
        forks = sys.platform == "linux"
        self._context = multiprocessing.get_context("forkserver" if forks else "spawn")
        self._ready = threading.Event()
        self._failure = ""
        self._warming: threading.Thread | None = None
        self._folder = ""
        self._variables: dict[str, str] = {}
        # The process that starts trials; None where there is none.
        self._server: int | None = None
        # Those that TensorFlow was loaded with; None where it was not.
        self._loaded: dict[str, str] | None = None

    def load_with(self, variables: Mapping[str, str]) -> None:
        """Have TensorFlow loaded with these variables and those of this process.

        What was loaded with others is given up: only while no trial runs.
        """
        self._variables = dict(variables)
        if self._loaded not in (None, self._early_variables):
            self._give_up()

    @property
    def _early_variables(self) -> dict[str, str]:
        return read_early(os.environ | self._variables)

    def _give_up(self) -> None:
        # Python restarts a server only once it has ended, and has no name for that.
        server = _server()
        if server._forkserver_pid is not None:
            # It may be gone, with its files, or have been waited for by somebody else.
            with contextlib.suppress(OSError):
                os.kill(server._forkserver_pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                server._stop()
            server._forkserver_pid = None
        if self._warming:
            self._warming.join()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._loaded = self._warming = None
        self._failure = ""
        self._ready.clear()

    def warm(self) -> None:
        """Begin to load TensorFlow in the background; returns at once."""
        if self._warming is None and not self._ready.is_set():
            warming = threading.Thread(
                target=self._warm, daemon=True, name="perfkit-launcher"
            )
            try:
                warming.start()
            except RuntimeError as error:
                raise RunError(
                    f"The system cannot load TensorFlow in the background ({error}): "
                    "close other programs, then run again."
                ) from error
            self._warming = warming

    def wait(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds; True once trials start at once.

        Raises:
            RunError: The launcher ended before it was ready.
        """
        if self._lost:
            self._give_up()
        self.warm()
        ready = self._ready.wait(timeout)
        if self._failure:
            failure, self._failure, self._warming = self._failure, "", None
            self._ready.clear()
            raise RunError(failure)
        return ready

    def start(
        self, work: Callable[[], Iterator[Any]] | bytes, seed: int, limits: Limits
    ) -> Running:
        """Start a trial of ``work``, pickled or not, which makes the generator.

        Raises:
            BadParameterError: It cannot be sent to another process.
            RunError: The system refuses, or what starts trials is gone; the next run
                starts that anew.
        """
        payload = work if isinstance(work, bytes) else pickled(work)
        try:
            if self._lost:
                raise EOFError
            # In the server's folder, so that it goes even where we cannot remove it.
            folder = tempfile.mkdtemp(prefix="trial-", dir=self._folder or None)
            running = Running(self._context, payload, seed, limits, folder)
            if self._loaded is not None and _server()._forkserver_pid != self._server:
                # It ended just now, and Python started another, which loaded nothing.
                running.kill("crashed", "was started without TensorFlow")
                raise EOFError
            return running
        except _GONE as error:
            self._give_up()
            raise RunError(_LOST) from error
        except OSError as error:
            raise RunError(
                f"No trial could be started ({error.strerror or error}): "
                f"{remedy(error, 'set TMPDIR to another folder')}, then run again."
            ) from error

    @property
    def _lost(self) -> bool:
        """Whether what starts trials has ended since it was ready."""
        was_ready = self._ready.is_set() and not self._failure
        return self._loaded is not None and was_ready and _server_is_gone()

    def _warm(self) -> None:
        todo = "try `python -c 'import tensorflow'` here"
        try:
            has_failed, details = not self._starts(), self._last_words()
        except Exception as error:
            # Whatever went wrong, nobody may wait for this thread for ever.
            has_failed, details = True, f" ({type(error).__name__}: {error})"
            if isinstance(error, OSError):
                todo = remedy(error, "set TMPDIR to another folder with a short path")
        if has_failed:
            self._failure = (
                f"The process that loads TensorFlow ended before it was ready"
                f"{details}: {todo}."
            )
        self._ready.set()

    def _starts(self) -> bool:
        """Whether a process that is forked from the server comes to its end."""
        if self._context.get_start_method() == "forkserver":
            self._start_server()
        probe = self._context.Process(target=_nothing, name=_OURS, daemon=True)  # type: ignore[attr-defined]
        with contextlib.suppress(OSError, EOFError):
            probe.start()
            probe.join()
        return probe.pid is not None and probe.exitcode == 0

    def _start_server(self) -> None:
        # Servers that were killed left theirs.
        remove_left(_FOLDER, worker.LOG)
        self._folder = tempfile.mkdtemp(prefix=_FOLDER)
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        self._context.set_forkserver_preload([worker.__name__])
        loaded = self._early_variables
        variables = self._variables | {
            worker.FOLDER_VARIABLE: self._folder,
            worker.PARENT_VARIABLE: str(os.getpid()),
        }
        before = dict(os.environ)
        os.environ.update(variables)
        try:
            _server().ensure_running()
            self._server = _server()._forkserver_pid
        finally:
            for name in variables:
                del os.environ[name]
            os.environ.update({k: before[k] for k in variables if k in before})
        self._loaded = loaded

    def _last_words(self) -> str:
        try:
            log = Path(self._folder, worker.LOG).read_text(errors="replace")
        except OSError:
            return ""
        lines = log[-_TAIL:].strip().splitlines()
        return f" ({lines[-1].strip()})" if lines else ""


@functools.cache
def launcher() -> Launcher:
    """Give this process's launcher."""
    return Launcher()


def pickled(work: Callable[[], Iterator[Any]]) -> bytes:
    """Give ``work`` as another process takes it, or raise ``BadParameterError``."""
    try:
        return bytes(cloudpickle.dumps(work))
    # What a function holds on to may raise whatever it likes.
    except Exception as error:
        raise BadParameterError(
            f"The function cannot be sent to another process ({error}); make what it "
            "needs inside it."
        ) from error


def _nothing() -> None:
    """Run in a trial's place to learn whether trials can start."""


@functools.cache
def _leave_main_out() -> None:
    """Keep our children from running the parent's script again, guarded or not.

    Work travels as a cloudpickle, so they need nothing from ``__main__``. What others
    start, in other threads too, finds it as ever.
    """
    original = spawn.get_preparation_data

    def prepared(name: str) -> dict[str, Any]:
        # IPython's `%reset` takes it away, and the original asks for it.
        vars(sys.modules["__main__"]).setdefault("__spec__", None)
        data = original(name)
        mains = [key for key in data if key.startswith("init_main_")]
        for key in mains if name == _OURS else ():
            del data[key]
        return data

    spawn.get_preparation_data = prepared


def _signal_group(pid: int, number: signal.Signals) -> None:
    # The group exists once the trial has begun; before that there is the process alone.
    for send in (os.killpg, os.kill):
        try:
            send(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
        return


def _end_marked(pid: int) -> None:
    """End what a trial started in a group of its own, which outlives the trial's."""
    # Where the system lists no processes, or has no open file left, none is found.
    with contextlib.suppress(psutil.Error, OSError):
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(worker.MARK) == str(pid):
                    process.kill()


def _is_stopped(pid: int) -> bool:
    """Whether a process stands still by a signal; False where nobody can tell."""
    with contextlib.suppress(psutil.Error, OSError):
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    return False


def _server() -> Any:
    """What Python keeps of the fork server of this process."""
    from multiprocessing import forkserver

    return forkserver._forkserver


def _server_is_gone() -> bool:
    """Whether the fork server was started and has ended; it is not waited for."""
    if (pid := _server()._forkserver_pid) is None:
        return False
    look = os.WEXITED | os.WNOHANG | os.WNOWAIT
    try:
        return os.waitid(os.P_PID, pid, look) is not None
    except ChildProcessError:
        return True


def _oom_kills() -> int:
    """How many processes of this control group the system has killed for memory."""
    return amounts_of(Path("/sys/fs/cgroup/memory.events")).get("oom_kill", 0)


def _crash(
    code: int | None, tail: str, limits: Limits, killed_for_memory: bool
) -> tuple[Outcome, str]:
    last = tail.strip().splitlines()[-1].strip()[:300] if tail.strip() else ""
    last_words = f"; its last words: {last}" if last else ""
    if limits.memory is not None and any(words in tail for words in _OUT_OF_MEMORY):
        return "out-of-memory", f"needed more memory than its limit{last_words}"
    if killed_for_memory:
        return "out-of-memory", "was killed by the system, which ran out of memory"
    return "crashed", f"{how_ended(code)}{last_words}"
