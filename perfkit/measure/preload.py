"""What the launcher imports once, so that every trial forked from it has it already.

It imports TensorFlow and runs no operation: devices, thread pools and allocators are
each trial's own. Only after the import, which takes seconds, does a fork server notice
by itself that nobody needs it any more, so until then the system is asked to end it
with its parent.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal

# The path of the file that takes what the import prints; kept for when it fails.
LOG_VARIABLE = "PERFKIT_LAUNCHER_LOG"
PARENT_VARIABLE = "PERFKIT_LAUNCHER_PARENT"
# From <linux/prctl.h>; Python has no name for it.
_PR_SET_PDEATHSIG = 1


def _end_with_parent(number: int) -> None:
    """Have the system send this signal once our starter thread ends; 0: none."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def _import_everything(parent: int) -> None:
    _end_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    # An interrupt reaches all processes of a terminal or kernel and means the run; the
    # next run needs this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import cloudpickle  # noqa: F401

    import perfkit.measure.worker  # noqa: F401

    # Without TensorFlow a trial that needs none still runs.
    with contextlib.suppress(ImportError):
        import keras  # noqa: F401
        import tensorflow  # noqa: F401
    # Taking TensorFlow apart takes seconds, and this process has nothing to tidy up.
    atexit.register(os._exit, 0)
    # The thread that started this process ends now, and its process does not.
    _end_with_parent(0)


if log := os.environ.get(LOG_VARIABLE):
    _fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(_fd, 1)
    os.dup2(_fd, 2)
    os.close(_fd)
    _import_everything(int(os.environ[PARENT_VARIABLE]))
    # It ended well, and a parent that is killed leaves no file behind.
    os.unlink(log)
