"""What the launcher imports once, so that every trial forked from it has it already.

It imports TensorFlow and runs no operation: devices, thread pools and allocators are
each trial's own. While it imports, which takes seconds, it watches its parent, because
only after that does it notice by itself that nobody needs it any more.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading

# The path of the file that takes what the import prints; kept for when it fails.
LOG_VARIABLE = "PERFKIT_LAUNCHER_LOG"
_PARENT = os.getppid()


def _leave_with_parent(done: threading.Event) -> None:
    while not done.wait(0.2):
        if os.getppid() != _PARENT:
            os._exit(1)


def _import_everything() -> None:
    # An interrupt reaches all processes of a terminal or kernel and means the run; the
    # next run needs this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    done = threading.Event()
    watcher = threading.Thread(target=_leave_with_parent, args=(done,), daemon=True)
    watcher.start()
    import cloudpickle  # noqa: F401

    import perfkit.measure.worker  # noqa: F401

    # Without TensorFlow a trial that needs none still runs.
    with contextlib.suppress(ImportError):
        import keras  # noqa: F401
        import tensorflow  # noqa: F401
    done.set()
    # Taking TensorFlow apart takes seconds, and this process has nothing to tidy up.
    atexit.register(os._exit, 0)
    # A fork must not happen while another thread of this process is alive.
    watcher.join()


if log := os.environ.get(LOG_VARIABLE):
    _fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(_fd, 1)
    os.dup2(_fd, 2)
    os.close(_fd)
    _import_everything()
