"""What the launcher imports once, so that every trial forked from it has it already.

It imports TensorFlow (or JAX, or PyTorch) and runs no operation: devices, thread pools
and allocators are each trial's own. After the import, which takes seconds, a fork
server ends by itself once nobody needs it any more.
"""

import atexit
import contextlib
import fcntl
import importlib
import os
import shutil
import signal
import tempfile

from perfkit.machine.environment import is_legacy, keras_backend

# A folder of our own: what the import prints, and whatever trials leave behind. They
# are killed in the middle of their work, so nobody else would ever tidy up.
FOLDER_VARIABLE = "PERFKIT_LAUNCHER_FOLDER"
LOG = "log"


def _import_everything(folder: str) -> None:
    # An interrupt reaches all processes of a terminal or kernel and means the run; the
    # next run needs this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import cloudpickle  # noqa: F401

    import perfkit.engine.worker  # noqa: F401

    # Without TensorFlow a trial that needs none still runs.
    with contextlib.suppress(ImportError):
        for name in _libraries():
            importlib.import_module(name)
    atexit.register(_leave, folder)


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
    _import_everything(_folder)
