"""The trial's side: runs one variant in a fresh process and streams what it yields.

The fork server imports this module, and it imports TensorFlow (or JAX, or PyTorch)
there, so that every trial forked from it has it already. It runs no operation: devices,
thread pools and allocators are each trial's own. Once all is imported a fork server
ends by itself when nobody needs it any more; until then it watches its parent.
"""

import atexit
import contextlib
import fcntl
import importlib
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from perfkit.engine.trial import Limits, Note, Pause, Tick
from perfkit.errors import PerfkitError, RunError
from perfkit.machine.environment import is_legacy, keras_backend

# Ticks travel in chunks, so that sending them does not show in the training.
_CHUNK_S = 0.05
# In the environment of all that a trial starts: the number of its process.
MARK = "PERFKIT_TRIAL"
# Lines of an error in a graph that say which operation it was, not what was wrong.
_ORIGIN = re.compile(r"\s|Detected at|<stack|File ")
# What Keras sets a message in.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# So often a fork server that still imports looks whether its parent lives.
_LOOK_EACH_S = 0.5
# From <fcntl.h>; Python has no name for it.
_F_SETSIG = 10


def work(
    payload: bytes,
    seed: int,
    limits: Limits,
    sink: Connection,
    output: Connection,
    folder: str,
) -> None:
    """Run a pickled variant; everything it yields goes to ``sink`` with its time.

    Its temporary files lie in ``folder``, which the other side removes: a trial is
    killed in the middle of its work.

    Messages are ``("ticks", [(time_ns, examples, parts, pause), ...])``,
    ``("note", name, value)`` and last ``("end", outcome, message)``. A pause that comes
    again has a fifth entry: after how many examples, and how many it holds. Times are
    ``time.perf_counter_ns``, a clock that all processes of a machine share.
    """
    _end_with_parent()
    _may_have_children()
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    try:
        _limit_memory(limits.memory)
        _run(payload, seed, sink)
    except BaseException as error:
        _send(sink, ("end", *_outcome(error)))
    else:
        _send(sink, ("end", "completed", ""))
    # Interpreter shutdown may hang on a runtime's threads, and nothing is left to do.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _run(payload: bytes, seed: int, sink: Connection) -> None:
    import cloudpickle

    _seed(seed)
    chunk: list[tuple[Any, ...]] = []
    sent = 0.0
    for item in cloudpickle.loads(payload)():
        now_ns = time.perf_counter_ns()
        if isinstance(item, Note):
            _send(sink, ("note", item.name, item.value))
            continue
        chunk.append(stamp(item, now_ns))
        if now_ns / 1e9 - sent > _CHUNK_S:
            _send(sink, ("ticks", chunk))
            chunk, sent = [], now_ns / 1e9
    _send(sink, ("ticks", chunk))


def stamp(item: int | Tick | Pause, now_ns: int) -> tuple[Any, ...]:
    """What a variant yielded at a time, as it stands in a message of ticks."""
    if isinstance(item, Pause):
        recurrence = ((item.every, item.within),) if item.every else ()
        return now_ns, 0, {}, item.label, *recurrence
    tick = item if isinstance(item, Tick) else Tick(item)
    return now_ns, tick.examples, dict(tick.parts), ""


def _send(sink: Connection, message: tuple[Any, ...]) -> None:
    try:
        sink.send(message)
    except (BrokenPipeError, ConnectionError):
        # Nobody listens any more. The system ends this group only as long as this
        # process waits for that: what it started goes with it.
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)


def _seed(seed: int) -> None:
    random.seed(seed)
    # PyTorch keeps Keras out of the launcher, and Keras draws from it.
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    if keras := sys.modules.get("tf_keras") or sys.modules.get("keras"):
        keras.utils.set_random_seed(seed)
    elif "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _limit_memory(above: int | None) -> None:
    """Let this process allocate ``above`` bytes more than it holds now."""
    if above is None:
        return
    try:
        with open("/proc/self/statm") as statm:
            data_pages = int(statm.read().split()[5])
    except OSError as error:
        message = "This system cannot limit the memory of one program."
        raise RunError(message) from error
    limit = data_pages * resource.getpagesize() + above
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _end_with_parent() -> None:
    """Kill this process's group, grandchildren included, when the parent is gone."""
    parent = multiprocessing.parent_process()
    if parent is None or not hasattr(os, "setsid"):
        return
    os.setsid()
    if sys.platform == "linux":
        # The kernel sends the signal when the pipe from the parent closes, so not even
        # a call that never returns to Python outlives it.
        pipe = parent.sentinel
        fcntl.fcntl(pipe, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(pipe, _F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(pipe, fcntl.F_GETFL)
        fcntl.fcntl(pipe, fcntl.F_SETFL, flags | os.O_ASYNC)
        if not parent.is_alive():
            os._exit(1)
        return

    def watch() -> None:
        parent.join()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="perfkit-parent").start()


def _may_have_children() -> None:
    """Let user code start processes, in the way that Python does by itself."""
    # Python has no other name for it; where it is gone, daemons stay without children.
    settings = getattr(multiprocessing.current_process(), "_config", {})
    settings["daemon"] = False
    os.environ[MARK] = str(os.getpid())
    # None is chosen yet, so that code of the user's may choose one, as it may do once.
    multiprocessing.set_start_method(None, force=True)


def _says(text: str) -> str:
    """The line of an error that says what was wrong; "" where none does."""
    plain = _COLOUR.sub("", text).strip()
    lines = [line for line in plain.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Exception encountered when calling"):
        # Keras says first in which layer.
        return lines[1]
    if lines and lines[0].startswith("Graph execution error"):
        # TensorFlow says first where the operation came from.
        lines = [line for line in lines[1:] if not _ORIGIN.match(line)] or lines
    return lines[0] if lines else ""


def _outcome(error: BaseException) -> tuple[str, str]:
    kind = type(error).__name__
    first = _says(str(error))[:300]
    if isinstance(error, MemoryError) or kind == "ResourceExhaustedError":
        return "out-of-memory", f"ran out of memory: {first or kind}"
    if isinstance(error, PerfkitError):
        return "crashed", f"ended: {first}"
    line = ""
    if where := traceback.extract_tb(error.__traceback__):
        line = f" (line {where[-1].lineno} of {os.path.basename(where[-1].filename)})"
    return "crashed", f"raised {kind}: {first}{line}"


# What the fork server does once.

# A folder of our own: what the import prints, and whatever trials leave behind. They
# are killed in the middle of their work, so nobody else would ever tidy up.
FOLDER_VARIABLE = "PERFKIT_LAUNCHER_FOLDER"
# Its parent, which may be gone before this process can ask for it.
PARENT_VARIABLE = "PERFKIT_LAUNCHER_PARENT"
LOG = "log"


def _import_everything(folder: str, parent: int) -> None:
    # An interrupt reaches all processes of a terminal or kernel and means the run; the
    # next run needs this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    done = threading.Event()
    watch = threading.Thread(
        target=_leave_with_parent, args=(done, parent), daemon=True
    )
    watch.start()
    import cloudpickle  # noqa: F401

    # Without TensorFlow a trial that needs none still runs.
    with contextlib.suppress(ImportError):
        for name in _libraries():
            importlib.import_module(name)
    atexit.register(_leave, folder)
    # A process that is forked while another thread runs may stand still for ever.
    done.set()
    watch.join()


def _leave_with_parent(done: threading.Event, parent: int) -> None:
    """End this process, in the middle of an import, once its parent is gone."""
    while not done.wait(_LOOK_EACH_S):
        if os.getppid() != parent:
            os._exit(1)


def _libraries() -> tuple[str, ...]:
    """Name what a training imports; another backend needs no TensorFlow."""
    if is_legacy(os.environ):
        return "tensorflow", "tf_keras"
    backend = keras_backend(os.environ)
    # Keras asks PyTorch for GPUs when it is imported, and CUDA does not survive a fork.
    libraries = {"jax": ("keras",), "torch": ("torch",)}
    return libraries.get(backend, ("keras", "tensorflow"))


def _leave(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    # Taking TensorFlow apart takes seconds, and serves nobody.
    os._exit(0)


if _folder := os.environ.get(FOLDER_VARIABLE):
    _log = os.path.join(_folder, LOG)
    _fd = os.open(_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    # As long as this process lives nobody takes the folder for one that was left.
    fcntl.flock(_fd, fcntl.LOCK_SH)
    os.dup2(_fd, 1)
    os.dup2(_fd, 2)
    os.close(_fd)
    os.environ["TMPDIR"] = tempfile.tempdir = _folder
    _import_everything(_folder, int(os.environ[PARENT_VARIABLE]))
