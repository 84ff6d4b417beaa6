"""How fast are images convolved with a layer's filters? What most image models do."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from perfkit.experiments.shared import peaks
from perfkit.experiments.shared.probe import Probe, repeated, without_gpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tensorflow as tf

    from perfkit.measure.tick import Yielded

# A layer from the middle of a residual network.
_SIDE, _CHANNELS, _FILTER = 56, 64, 3
_IMAGES = 8


def flop(images: int) -> int:
    """Multiplications and additions in a convolution of so many images."""
    return 2 * images * _SIDE**2 * _CHANNELS**2 * _FILTER**2


def layer(kind: str, images: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Make a batch of images and the layer's filters, of TensorFlow's ``kind``."""
    import tensorflow as tf

    pixels = tf.random.uniform((images, _SIDE, _SIDE, _CHANNELS))
    taps = tf.random.uniform((_FILTER, _FILTER, _CHANNELS, _CHANNELS))
    return tf.cast(pixels, kind), tf.cast(taps, kind)


def convolution(kind: str, images: int = _IMAGES) -> Iterator[Yielded]:
    """Convolve a batch on the CPU, forward only, over and over."""
    import tensorflow as tf

    without_gpus()
    call = functools.partial(tf.nn.conv2d, *layer(kind, images), 1, "SAME")
    yield from repeated(call, flop(images))


def _probe(kind: str) -> Probe:
    return Probe(
        name=f"convolution, {kind}",
        group="TensorFlow",
        unit="FLOP",
        what=f"{_IMAGES} images of {_SIDE}×{_SIDE}×{_CHANNELS}, "
        f"{_FILTER}×{_FILTER} filters",
        work=functools.partial(convolution, kind),
        peak=functools.partial(peaks.of_kind, kind=kind, one_core=False),
        tensorflow=True,
    )


CPU = tuple(_probe(kind) for kind in ("float32", "bfloat16", "float16"))
