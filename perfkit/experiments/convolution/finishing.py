"""Has the device finished? Operations on a GPU go on after the call has returned."""

from __future__ import annotations

import sys


def wait_for_device() -> None:
    """Return once every device has done what it was asked; free without TensorFlow."""
    # Only who has imported it can have asked for anything.
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and tensorflow.config.list_physical_devices("GPU"):
        tensorflow.test.experimental.sync_devices()
