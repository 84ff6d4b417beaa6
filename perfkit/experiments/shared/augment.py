"""One augmentation, written for TensorFlow and for NumPy.

A square is cut out at random, mirrored half of the time, scaled to 0..1 and made a
little brighter or darker. What is random comes from outside, as four numbers from 0 to
1 for each image, so that every way of computing it gives the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

# Brightness moves by at most this much, of 1.
BRIGHTNESS = 0.1


def draws(rows: int, seed: int = 0) -> NDArray[np.float32]:
    """Draw the random numbers of ``rows`` images: top, left, mirror and brightness."""
    import numpy as np

    return np.random.default_rng(seed).random((rows, 4), dtype=np.float32)


def corner(shape: tf.Tensor, drawn: tf.Tensor, side: int) -> tf.Tensor:
    """Top and left of the square to cut from an image of this shape."""
    import tensorflow as tf

    return tf.cast(drawn[:2] * tf.cast(shape[:2] - side + 1, tf.float32), tf.int32)


def cut(image: tf.Tensor, drawn: tf.Tensor, side: int) -> tf.Tensor:
    """Cut the square out."""
    import tensorflow as tf

    begin = tf.concat([corner(tf.shape(image), drawn, side), [0]], axis=0)
    return tf.slice(image, begin, [side, side, 3])


def mirror(image: tf.Tensor, drawn: tf.Tensor) -> tf.Tensor:
    """Mirror the image, or not."""
    import tensorflow as tf

    return tf.cond(drawn[2] < 0.5, lambda: tf.reverse(image, [1]), lambda: image)


def brightness(drawn: tf.Tensor) -> tf.Tensor:
    """By how much to brighten; for one image, or for a batch of them."""
    brighter: tf.Tensor = (2 * drawn[..., 3] - 1) * BRIGHTNESS
    return brighter


def scale(image: tf.Tensor) -> tf.Tensor:
    """Bytes as numbers from 0 to 1."""
    import tensorflow as tf

    return tf.cast(image, tf.float32) / 255


def augment(image: tf.Tensor, drawn: tf.Tensor, side: int) -> tf.Tensor:
    """All of it, on a decoded image."""
    return scale(mirror(cut(image, drawn, side), drawn)) + brightness(drawn)


def with_numpy(
    image: NDArray[np.uint8], drawn: NDArray[np.float32], side: int
) -> NDArray[np.float32]:
    """All of it in NumPy, on whole arrays."""
    import numpy as np

    square = _square(image, drawn, side)
    brighter = (2 * drawn[3] - 1) * BRIGHTNESS
    result: NDArray[np.float32] = square.astype(np.float32) / 255 + brighter
    return result


def by_element(
    image: NDArray[np.uint8], drawn: NDArray[np.float32], side: int
) -> NDArray[np.float32]:
    """All of it in NumPy, one number after another in a Python loop."""
    import numpy as np

    square = _square(image, drawn, side)
    brighter = float(2 * drawn[3] - 1) * BRIGHTNESS
    result = []
    for pixel in square.ravel().tolist():
        result.append(pixel / 255 + brighter)
    return np.array(result, np.float32).reshape(square.shape)


def _square(
    image: NDArray[np.uint8], drawn: NDArray[np.float32], side: int
) -> NDArray[np.uint8]:
    # In float32 like TensorFlow, or a square would now and then lie one pixel off.
    top, left = (
        int(share * type(share)(length - side + 1))
        for share, length in zip(drawn[:2], image.shape[:2], strict=True)
    )
    square = image[top : top + side, left : left + side]
    return square[:, ::-1] if drawn[2] < 0.5 else square
