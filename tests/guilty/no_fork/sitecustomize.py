"""Python without TensorFlow that forks no more once there is the file NO_FORK."""

import os
from pathlib import Path

exec((Path(__file__).parents[1] / "without_tensorflow/sitecustomize.py").read_text())
_fork = os.fork


def fork():
    """Fork, or be refused as where the system has no room for another process."""
    if os.path.exists(os.environ["NO_FORK"]):
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return _fork()


os.fork = fork
