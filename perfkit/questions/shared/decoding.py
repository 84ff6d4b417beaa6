"""Images decoded, mirrored and trained on, as a pipeline does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.engine.trial import READY, every
from perfkit.questions.shared import benchmark, keras, loops, tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from perfkit.engine.trial import Yielded
    from perfkit.questions.shared.images import Images


# Enough files to be worth it, without filling the memory with a folder of huge ones.
_HELD = 256_000_000


def only_decoded(files: Any, cores: int) -> Any:
    """Decode files in memory on so many cores, without an end, and give the shapes."""

    def decode(file: Any) -> Any:
        return tf.shape(tf.io.decode_jpeg(file, channels=3))

    shapes = tf.data.Dataset.from_tensor_slices(files).repeat()
    shapes = shapes.map(decode, num_parallel_calls=cores, deterministic=False)
    return shapes.batch(8)


def limit(images: Images) -> Iterator[Yielded]:
    """Decode on every core that the process may use, and do nothing else."""
    benchmark.without_gpus()
    files = list[bytes]()
    for path in images.paths:
        files.append(Path(path).read_bytes())
        if sum(map(len, files)) > _HELD:
            break
    shapes = only_decoded(files, benchmark.granted())
    yield READY
    yield from every(map(len, shapes))


# Brightness moves by at most this much, of 1.
BRIGHTNESS = 0.1


def draws(rows: int, seed: int = 0) -> NDArray[np.float32]:
    """Draw the random numbers of ``rows`` images: top, left, mirror and brightness."""
    return np.random.default_rng(seed).random((rows, 4), dtype=np.float32)


def corner(shape: tf.Tensor, numbers: tf.Tensor, side: int) -> tf.Tensor:
    """Top and left of the square to cut from an image of this shape."""
    return tf.cast(numbers[:2] * tf.cast(shape[:2] - side + 1, tf.float32), tf.int32)


def window(shape: tf.Tensor, numbers: tf.Tensor, side: int) -> tf.Tensor:
    """Top, left, height and width of that square."""
    return tf.concat([corner(shape, numbers, side), [side, side]], axis=0)


def cut(image: tf.Tensor, numbers: tf.Tensor, side: int) -> tf.Tensor:
    """Cut the square out."""
    begin = tf.concat([corner(tf.shape(image), numbers, side), [0]], axis=0)
    return tf.slice(image, begin, [side, side, 3])


def mirror(image: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """Mirror the image, or not."""
    return tf.cond(numbers[2] < 0.5, lambda: tf.reverse(image, [1]), lambda: image)


def brightness(numbers: tf.Tensor) -> tf.Tensor:
    """By how much to brighten; for one image, or for a batch of them."""
    brighter: tf.Tensor = (2 * numbers[..., 3] - 1) * BRIGHTNESS
    return brighter


def augment(image: tf.Tensor, numbers: tf.Tensor, side: int) -> tf.Tensor:
    """All of it, on a decoded image."""
    square = mirror(cut(image, numbers, side), numbers)
    return tf.cast(square, tf.float32) / 255 + brightness(numbers)


def with_numpy(
    image: NDArray[np.uint8], numbers: NDArray[np.float32], side: int
) -> NDArray[np.float32]:
    """All of it in NumPy, on whole arrays."""
    square = _square(image, numbers, side)
    brighter = (2 * numbers[3] - 1) * BRIGHTNESS
    result: NDArray[np.float32] = square.astype(np.float32) / 255 + brighter
    return result


def by_element(
    image: NDArray[np.uint8], numbers: NDArray[np.float32], side: int
) -> NDArray[np.float32]:
    """All of it in NumPy, one number after another in a Python loop."""
    square = _square(image, numbers, side)
    brighter = float(2 * numbers[3] - 1) * BRIGHTNESS
    result = []
    for pixel in square.ravel().tolist():
        result.append(pixel / 255 + brighter)
    return np.array(result, np.float32).reshape(square.shape)


def _square(
    image: NDArray[np.uint8], numbers: NDArray[np.float32], side: int
) -> NDArray[np.uint8]:
    # In float32 like TensorFlow, or a square would now and then lie one pixel off.
    top, left = (
        int(share * type(share)(length - side + 1))
        for share, length in zip(numbers[:2], image.shape[:2], strict=True)
    )
    square = image[top : top + side, left : left + side]
    return square[:, ::-1] if numbers[2] < 0.5 else square


def small_cnn(side: int, classes: int) -> keras.Model:
    """Three convolutions and a dense layer: a step takes milliseconds on two cores."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((side, side, 3)),
            layers.Conv2D(16, 7, strides=4, padding="same", activation="relu"),
            layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(classes),
        ]
    )


def augmenting(model: keras.Model) -> keras.Model:
    """Put mirroring and brightening into the model, as its first layers."""
    mirror = keras.layers.RandomFlip("horizontal")
    brighten = keras.layers.RandomBrightness(BRIGHTNESS, value_range=(0, 1))
    seen = keras.Input(model.input_shape[1:])
    model = keras.Sequential([seen, mirror, brighten, model])
    return model


def step_of(model: keras.Model) -> Callable[[Any, Any], float]:
    """Give a function that trains on one batch and waits until that is done.

    Waiting after each step keeps apart what is the model's time and what is the wait
    for data; work that a device could overlap with copying the next batch is not.
    """
    graph = loops.compiled(loops.step_of(model), autograph=False)
    return lambda images, labels: float(graph(images, labels))
