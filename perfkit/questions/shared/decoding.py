"""Images decoded, mirrored and trained on, as a pipeline does it."""

from __future__ import annotations

import functools
import itertools
import mmap
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.engine.tick import READY, TICK_S, Tick
from perfkit.errors import RunError
from perfkit.questions.shared import benchmark, loops
from perfkit.questions.shared.later import keras, tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from perfkit.engine.tick import Yielded
    from perfkit.questions.shared.images import Images

    # Makes what decodes a file.
    Decoder = Callable[[], Callable[[bytes], object]]
    # Decodes with that as long as it is wanted.
    Work = Callable[[Decoder, Callable[[], bool]], None]


# Enough files to be worth it, without filling the memory with a folder of huge ones.
_HELD = 256_000_000
# What stands in the place of a count once its process has ended.
_ENDED = -1
# Each process starts elsewhere, so that they do not read the same bytes at once.
_APART = 37


def with_tensorflow() -> Callable[[bytes], object]:
    """Give ``tf.io.decode_jpeg`` as the pipelines call it."""
    # As many processes as cores would fight for them.
    benchmark.without_gpus()

    def decode(file: bytes) -> object:
        return tf.io.decode_jpeg(file, channels=3)

    return decode


def limit(images: Images, decoder: Decoder = with_tensorflow) -> Iterator[Yielded]:
    """Decode on every core and nothing else; the images of all cores are counted.

    It has to be called before the process has run anything in TensorFlow. Each process
    makes a decoder of its own.
    """
    files = _in_memory(images)
    workers = benchmark.granted()
    # All processes share this memory, and each writes a number of eight bytes.
    counts = np.frombuffer(mmap.mmap(-1, 8 * workers), np.int64)
    start = _fork if sys.platform == "linux" else _thread
    works = (functools.partial(_decode_all, n, files, counts) for n in range(workers))
    ends = [start(work, decoder) for work in works]
    try:
        while not counts.all():
            time.sleep(0.001)
        total = _total(counts)
        yield READY
        while True:
            before = total
            while total == before:
                time.sleep(TICK_S)
                total = _total(counts)
            yield Tick(total - before)
    finally:
        for end in ends:
            end()


def _total(counts: NDArray[np.int64]) -> int:
    """Images that all processes have decoded so far."""
    copy = counts.copy()
    if _ENDED in copy:
        raise RunError("One of the processes that decode ended before its time.")
    return int(copy.sum())


def _in_memory(images: Images) -> list[bytes]:
    files, size = [], 0
    for path in images.paths:
        with open(path, "rb") as file:
            files.append(file.read())
        size += len(files[-1])
        if size > _HELD:
            break
    return files


def _fork(work: Work, decoder: Decoder) -> Callable[[], object]:
    parent = os.getpid()
    if child := os.fork():
        return functools.partial(_end, child)
    try:
        work(decoder, lambda: os.getppid() == parent)
    finally:
        os._exit(1)


def _end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _thread(work: Work, decoder: Decoder) -> Callable[[], object]:
    ended, decode = threading.Event(), decoder()
    arguments = (lambda: decode, lambda: not ended.is_set())
    threading.Thread(target=work, args=arguments, daemon=True).start()
    return ended.set


def _decode_all(
    worker: int,
    files: Sequence[bytes],
    counts: NDArray[np.int64],
    decoder: Decoder,
    is_wanted: Callable[[], bool],
) -> None:
    try:
        decode = decoder()
        for count in itertools.takewhile(lambda _: is_wanted(), itertools.count(1)):
            decode(files[(worker * _APART + count) % len(files)])
            counts[worker] = count
    finally:
        counts[worker] = _ENDED


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
