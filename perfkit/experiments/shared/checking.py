"""Which files of a folder are images that a pipeline can decode?

A file's header is read first, which finds most of what is wrong and says what it is.
What is left is decoded once, by the operation that the trials use, several at a time: a
file that is cut short or broken inside shows only there.
"""

from __future__ import annotations

import itertools
import os
import random
from typing import TYPE_CHECKING

from perfkit.measure.tick import Note

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

Shape = tuple[int, int]
Good = list[tuple[str, Shape]]
Skipped = dict[str, tuple[str, ...]]

# A phone's JPEG with a second picture inside calls itself MPO.
_FORMATS = ("JPEG", "MPO", "PNG")
# Above this a single image takes a quarter of a gigabyte as pixels.
_MEGAPIXELS = 80
_AT_ONCE = 128


def named_like_images(folder: Path, endings: Sequence[str]) -> tuple[str, ...]:
    """List the files below a folder with one of these endings, by their names in it."""
    found = []
    for parent, _, names in os.walk(folder):
        inside = os.path.relpath(parent, folder)
        found += [
            name if inside == "." else os.path.join(inside, name)
            for name in names
            # A Mac leaves "._name.jpg" beside "name.jpg" on foreign disks.
            if name.lower().endswith(tuple(endings)) and not name.startswith("._")
        ]
    return tuple(sorted(found))


def drawn(names: Sequence[str]) -> list[str]:
    """Put the names in an order drawn by chance, the same every time."""
    return random.Random(0).sample(names, len(names))


def first_good(
    folder: Path, names: Sequence[str], *, count: int, side: int
) -> Generator[Note, None, tuple[Good, Skipped, list[str]]]:
    """Find the first ``count`` images that can be used.

    Args:
        folder: Where the names lie.
        names: The files, in the order to look at them.
        count: How many are wanted.
        side: Pixels that height and width must have at least.

    Yields:
        How far it is.

    Returns:
        The good ones with height and width, the reasons for the others with their
        names, and every name that was looked at.
    """
    good: Good = []
    bad: dict[str, list[str]] = {}
    looked_at: list[str] = []
    waiting = iter(names)
    while some := list(itertools.islice(waiting, min(count - len(good), _AT_ONCE))):
        looked_at += some
        for name, seen in _look_at(folder, some, side).items():
            if isinstance(seen, str):
                bad.setdefault(seen, []).append(name)
            else:
                good.append((name, seen))
        yield Note("progress", f"Checking images: {len(good)} of {count}")
    return good, {why: tuple(names) for why, names in bad.items()}, looked_at


def _look_at(folder: Path, names: Sequence[str], side: int) -> dict[str, Shape | str]:
    seen = {name: read_header(folder / name, side) for name in names}
    promising = [name for name, found in seen.items() if not isinstance(found, str)]
    shapes = decoded_shapes([str(folder / name) for name in promising])
    return seen | dict(zip(promising, shapes, strict=True))


def read_header(path: Path, side: int) -> Shape | str:
    """Height and width by the file's header, or why the file cannot be used."""
    from PIL import Image, UnidentifiedImageError

    try:
        if path.stat().st_size == 0:
            return "empty"
        with Image.open(path) as image:
            form, (width, height) = image.format, image.size
    except UnidentifiedImageError:
        return "no image"
    except Image.DecompressionBombError:
        return f"larger than {_MEGAPIXELS} megapixels"
    except (OSError, ValueError, SyntaxError) as error:
        unreadable = isinstance(error, OSError) and error.errno is not None
        return "unreadable" if unreadable else "broken"
    if form not in _FORMATS:
        return f"{form} inside, whatever the name says"
    if height * width > _MEGAPIXELS * 1e6:
        return f"larger than {_MEGAPIXELS} megapixels"
    if min(height, width) < side:
        return f"smaller than {side} px"
    return height, width


def decoded_shapes(paths: Sequence[str]) -> list[Shape | str]:
    """Decode files and give height and width of each, or why it cannot be used."""
    import tensorflow as tf

    def shape(index: tf.Tensor, path: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return index, tf.shape(tf.io.decode_jpeg(tf.io.read_file(path), channels=3))

    if not paths:
        return []
    files = [os.fsencode(path) for path in paths]
    numbered = tf.data.Dataset.from_tensor_slices((range(len(files)), files))
    graph = tf.autograph.experimental.do_not_convert(shape)
    whole = numbered.map(graph, num_parallel_calls=tf.data.AUTOTUNE).ignore_errors()
    seen = {int(i): (int(s[0]), int(s[1])) for i, s in whole.as_numpy_iterator()}
    return [seen.get(i, "broken or cut short") for i in range(len(files))]
