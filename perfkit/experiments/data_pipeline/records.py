"""The same images in TensorFlow's record files: as JPEG, as pixels, in several files.

Records lie in the order of the list of images. Files that share them out are filled in
turns, so that reading them in turns gives that order back.
"""

from __future__ import annotations

import errno
import functools
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.errors import BadFileError
from perfkit.experiments.shared import cache
from perfkit.measure.tick import Note

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    import tensorflow as tf

    from perfkit.experiments.shared.images import Images

# Form to the number of files.
FORMS = {"jpeg": 1, "raw": 1, "shards": 8}


def make(images: Images, form: str) -> Generator[Note, None, Path]:
    """Write a form of the images to the cache, once.

    Yields:
        How far it is.

    Raises:
        MissingPartError: There is no room for it, or it may not be written.
    """
    return cache.made(
        _name(images, form),
        functools.partial(_write, images=images, form=form),
        size=_size(images, form),
        what=f"the TFRecord files ({form})",
    )


def files(images: Images, form: str) -> list[str]:
    """The files of a form that ``make`` has made.

    Raises:
        BadFileError: They are gone, or the images have changed since.
    """
    folder = cache.folder() / _name(images, form)
    found = sorted(str(path) for path in folder.glob("*.tfrecord"))
    if len(found) != FORMS[form]:
        raise BadFileError(
            f"The TFRecord files ({form}) in {cache.folder()} are gone; run again to "
            "remake them."
        )
    return found


def parse(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Read one record: image, label, and height and width, which only pixels need."""
    import tensorflow as tf

    number = tf.io.FixedLenFeature([], tf.int64)
    text = tf.io.FixedLenFeature([], tf.string)
    features = {"image": text, "label": number, "height": number, "width": number}
    return dict(tf.io.parse_single_example(record, features))


def _name(images: Images, form: str) -> str:
    return f"records-{form}-{images.key}"


def _size(images: Images, form: str) -> int:
    return images.decoded if form == "raw" else sum(images.sizes)


def _write(into: Path, images: Images, form: str) -> Iterator[Note]:
    import tensorflow as tf

    count = FORMS[form]
    names = [str(into / f"{i:02d}-of-{count:02d}.tfrecord") for i in range(count)]
    size = units.size(_size(images, form))
    what = f"Writing TFRecord files of {form}, once ({size})"
    writers = [tf.io.TFRecordWriter(name) for name in names]
    try:
        for index in range(len(images.paths)):
            writers[index % count].write(_record(images, index, form))
            if index % 64 == 0:
                done = f"{index} of {len(images.paths)}"
                yield Note("progress", f"{what}: {done}")
    except tf.errors.ResourceExhaustedError as error:
        # TensorFlow's word for a full disk; elsewhere it means memory.
        raise OSError(errno.ENOSPC, error.message) from error
    finally:
        for writer in writers:
            writer.close()


def _record(images: Images, index: int, form: str) -> bytes:
    import tensorflow as tf

    with open(images.paths[index], "rb") as file:
        image = file.read()
    if form == "raw":
        image = tf.io.decode_jpeg(image, channels=3).numpy().tobytes()
    height, width = images.shapes[index]
    numbers = {"label": images.labels[index], "height": height, "width": width}
    feature = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        for name, value in numbers.items()
    }
    feature["image"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image]))
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    return bytes(example.SerializeToString())
