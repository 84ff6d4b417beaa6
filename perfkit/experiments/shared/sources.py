"""Where do images come from when the reader has none at hand?

Each function gives a folder in the cache with one sub-folder per class, made on first
use. A folder of one's own needs no function: sub-folders are its classes. A TensorFlow
data set (``tensorflow_datasets``) is used the same way, once its images are written to
a folder: ``tf.io.write_file(f"{folder}/{label}/{i}.png", tf.io.encode_png(image))``.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.errors import MissingPartError
from perfkit.experiments.shared import cache, cores, photographs
from perfkit.measure.tick import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

# Each by the height of its images in pixels.
SOURCES = {"photographs": photographs.HEIGHT, "cifar10": 32}
# What the pictures drawn here take on disk and in memory.
_PHOTOGRAPH_BYTES = 115_000
_CIFAR_BYTES = 4_000


def folder(source: str, count: int) -> Generator[Note, None, Path]:
    """Give a folder with ``count`` images from one of ``SOURCES``.

    Yields:
        How far the making is.

    Raises:
        MissingPartError: There is no room for it, or no network to fetch it from.
    """
    making, size = {
        "photographs": (_draw_photographs, _PHOTOGRAPH_BYTES),
        "cifar10": (_fetch_cifar10, _CIFAR_BYTES),
    }[source]
    return cache.made(
        folder_name(source, count),
        functools.partial(making, count=count),
        size=size * count,
        what=f"{count} images ({source})",
    )


def folder_name(source: str, count: int) -> str:
    """The name of that folder in the cache."""
    recipe = f"-{photographs.RECIPE}" if source == "photographs" else ""
    return f"{source}{recipe}-{count}"


def _draw_photographs(into: Path, count: int) -> Iterator[Note]:
    def draw(seed: int) -> None:
        label = seed % photographs.CLASSES
        path = into / f"class-{label}" / f"{seed:05d}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(photographs.jpeg(seed, label))

    size = units.size(_PHOTOGRAPH_BYTES * count)
    yield from _all_of(draw, count, f"Drawing photographs, once ({size})")


def _fetch_cifar10(into: Path, count: int) -> Iterator[Note]:
    from PIL import Image

    yield Note("progress", "Fetching CIFAR-10, once")
    images, labels = _cifar10()

    def save(index: int) -> None:
        path = into / f"class-{labels[index]}" / f"{index:05d}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(images[index]).save(path)

    yield from _all_of(save, min(count, len(images)), "Unpacking CIFAR-10, once")


def _cifar10() -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    import keras

    try:
        (images, labels), _ = keras.datasets.cifar10.load_data()
    # Keras raises a bare Exception where the network does not answer.
    except Exception as error:
        reason = str(error).partition(" on ")[0] or type(error).__name__
        raise MissingPartError(
            f"CIFAR-10 could not be fetched ({reason}); it needs the network once, or "
            "choose the photographs that are made here."
        ) from error
    return images, labels.ravel()


def _all_of(do: Callable[[int], None], count: int, what: str) -> Iterator[Note]:
    with ThreadPoolExecutor(cores.granted()) as pool:
        for done, _ in enumerate(pool.map(do, range(count)), start=1):
            if done % 16 == 0 or done == count:
                yield Note("progress", f"{what}: {done} of {count}")
