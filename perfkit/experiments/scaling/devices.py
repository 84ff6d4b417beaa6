"""Several devices to train on: GPUs, or logical devices that share one processor.

A process takes its devices before TensorFlow's first operation; after it they are as
they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from perfkit.errors import RunError
from perfkit.experiments.shared.probe import without_gpus

if TYPE_CHECKING:
    import tensorflow as tf

Kind = Literal["GPU", "logical device"]
GPU: Kind = "GPU"
LOGICAL: Kind = "logical device"


def taken(kind: Kind, count: int) -> tuple[str, ...]:
    """Make a fresh process use so many devices and nothing else.

    Args:
        kind: Of all of them.
        count: How many.

    Returns:
        Their names as TensorFlow has them, such as ``("GPU:0", "GPU:1")``.

    Raises:
        RunError: TensorFlow can use fewer GPUs.
    """
    import tensorflow as tf

    if kind == GPU:
        found = tf.config.list_physical_devices("GPU")
        if len(found) < count:
            raise RunError(f"TensorFlow can use {len(found)} of {count} GPUs here.")
        tf.config.set_visible_devices(found[:count], "GPU")
        return tuple(f"GPU:{number}" for number in range(count))
    without_gpus()
    processor, *_ = tf.config.list_physical_devices("CPU")
    parts = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
    tf.config.set_logical_device_configuration(processor, parts)
    return tuple(f"CPU:{number}" for number in range(count))


def usable() -> int:
    """How many GPUs TensorFlow can use in this process; starts none of them."""
    import tensorflow as tf

    return len(tf.config.list_physical_devices("GPU"))


def mirrored(places: tuple[str, ...]) -> tf.distribute.MirroredStrategy:
    """Give the strategy over these devices; a process can have one.

    A second one, over another number of devices, was seen to fail in its first sum.
    """
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(list(places))
