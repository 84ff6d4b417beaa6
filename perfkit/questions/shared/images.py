"""Which images are the pipelines fed with, and can all of them be decoded?

A set of images is a list of files: those that are no image, broken, cut short or too
small for the crop are counted, named and left out, so that no trial meets them. The
list of a run is kept in the cache, where its trials read it.
"""

import dataclasses
import errno
import functools
import hashlib
import io
import itertools
import json
import os
import random
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.trial import Note
from perfkit.errors import BadFileError, BadParameterError
from perfkit.questions.shared import benchmark, cache, tf

Field = NDArray[np.float32]

# Changing anything that shapes the pictures has to change this: caches are keyed by it.
RECIPE = 1

WIDTH, HEIGHT = 500, 375
QUALITY = 95
CLASSES = 10

_LEAVES = 300
# Radii in pixels, distributed as r^-3: the one law that looks the same at any distance.
_SMALLEST, _LARGEST = 3.0, 200.0


def jpeg(seed: int, label: int) -> bytes:
    """Draw one picture and encode it as a camera or a web site would.

    Its class, from 0, decides the tint, the seed everything else in it.
    """
    from PIL import Image

    rng = np.random.default_rng((RECIPE, seed))
    picture = _leaves(rng, label)
    # Some photographs are sharp all over, some mostly out of focus.
    sharpness = 10 * rng.lognormal(sigma=0.6) * np.exp(0.6 * _haze(rng))
    picture[..., 0] += sharpness * _noise(rng, 1.0, HEIGHT, WIDTH)
    tint = 5 * _haze(rng)
    picture[..., 1] += tint
    picture[..., 2] -= tint
    out = io.BytesIO()
    image = Image.frombytes("YCbCr", (WIDTH, HEIGHT), _bytes(picture))
    image.save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def _leaves(rng: np.random.Generator, label: int) -> Field:
    """Ellipses over a smooth ground, larger ones first, drawn at twice the size."""
    from PIL import Image, ImageDraw

    angle = 2 * np.pi * label / CLASSES
    mean = (rng.uniform(70, 170), 128 + 16 * np.cos(angle), 128 + 16 * np.sin(angle))
    ground = np.stack([_haze(rng) for _ in range(3)], -1) * (40, 7, 7) + mean
    image = Image.frombytes("YCbCr", (WIDTH, HEIGHT), _bytes(ground))
    image = image.resize((2 * WIDTH, 2 * HEIGHT), Image.Resampling.NEAREST)
    pen = ImageDraw.Draw(image)
    law = rng.uniform(_LARGEST**-2, _SMALLEST**-2, _LEAVES)
    heights = np.sort(2 * law**-0.5)[::-1]
    widths = heights * rng.uniform(0.5, 1.5, _LEAVES)
    centres = rng.uniform(0, (2 * WIDTH, 2 * HEIGHT), (_LEAVES, 2))
    colours = np.clip(rng.normal(mean, (60, 14, 16), (_LEAVES, 3)), 8, 247).astype(int)
    for (x, y), w, h, colour in zip(centres, widths, heights, colours, strict=True):
        pen.ellipse((x - w, y - h, x + w, y + h), fill=tuple(colour))
    return np.asarray(image.reduce(2), "float32")


def _haze(rng: np.random.Generator) -> Field:
    """Noise without detail, drawn small and enlarged: it saves most of the time."""
    from PIL import Image

    small = _noise(rng, 1.6, HEIGHT // 5, WIDTH // 5)
    return np.asarray(Image.fromarray(small).resize((WIDTH, HEIGHT)))


def _noise(
    rng: np.random.Generator, steepness: float, height: int, width: int
) -> Field:
    """A field of unit variance whose amplitude falls as frequency^-steepness."""
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    frequency[0, 0] = np.inf
    shape = (2, *frequency.shape)
    real, imaginary = rng.standard_normal(shape) * frequency**-steepness
    field = np.fft.irfft2(real + 1j * imaginary, s=(height, width))
    scaled: Field = (field / field.std()).astype("float32")
    return scaled


def _bytes(picture: NDArray[np.floating]) -> bytes:
    return bytes(np.clip(picture, 0, 255).astype("uint8"))


# What a picture drawn here takes on disk.
_PHOTOGRAPH_BYTES = 115_000


def image_folder(count: int) -> Generator[Note, None, Path]:
    """Give a folder with ``count`` photographs that are drawn here, once."""
    size, label = _PHOTOGRAPH_BYTES * count, f"{count} photographs"
    draw = functools.partial(_draw_photographs, count=count)
    return cache.make(folder_name(count), draw, size=size, label=label)


def folder_name(count: int) -> str:
    """The name of that folder in the cache."""
    return f"photographs-{RECIPE}-{count}"


def _draw_photographs(into: Path, count: int) -> Iterator[Note]:
    def draw(seed: int) -> None:
        label = seed % CLASSES
        path = into / f"class-{label}" / f"{seed:05d}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(jpeg(seed, label))

    doing = f"Drawing photographs, once ({units.size(_PHOTOGRAPH_BYTES * count)})"
    with ThreadPoolExecutor(benchmark.granted()) as pool:
        for number, _ in enumerate(pool.map(draw, range(count)), start=1):
            if number % 16 == 0 or number == count:
                yield Note("progress", f"{doing}: {number} of {count}")


# The form of the kept list; another number, and old lists are made anew.
_FORM = 1
_ENDINGS = (".jpg", ".jpeg", ".png")
# So many names of left-out files are told; all of them are counted.
_NAMED = 20
# A phone's JPEG with a second picture inside calls itself MPO.
_FORMATS = ("JPEG", "MPO", "PNG")
# Above this a single image takes a quarter of a gigabyte as pixels.
_MEGAPIXELS = 80
_AT_ONCE = 128

Shape = tuple[int, int]
Good = list[tuple[str, Shape]]
Skipped = dict[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Images:
    """Images that can be decoded, and what was left out.

    Of each image there are its file, its class (a position in ``classes``, the names of
    sub-folders), height and width in pixels, and bytes. ``found`` counts the files that
    are named like an image; ``skipped`` has those left out, by the reason.
    """

    paths: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    shapes: tuple[Shape, ...]
    sizes: tuple[int, ...]
    found: int
    skipped: Skipped

    @property
    def decoded(self) -> int:
        """Bytes that all of them take as pixels."""
        return sum(3 * height * width for height, width in self.shapes)

    @property
    def key(self) -> str:
        """A short text that differs where the files or their contents differ."""
        changed = [_stamp(path) for path in self.paths]
        return _digest(self.paths, self.labels, changed)

    def describe(self) -> dict[str, Any]:
        """Say in numbers what they are, for a finding."""
        left_out = [name for names in self.skipped.values() for name in names]
        return {
            "count": len(self.paths),
            "found": self.found,
            "classes": len(self.classes),
            "bytes": sum(self.sizes),
            "bytes_each": round(sum(self.sizes) / len(self.sizes)),
            "width": round(sum(w for _, w in self.shapes) / len(self.shapes)),
            "height": round(sum(h for h, _ in self.shapes) / len(self.shapes)),
            "decoded_bytes": self.decoded,
            "skipped": len(left_out),
            "skipped_because": {reason: len(n) for reason, n in self.skipped.items()},
            "skipped_names": [
                # Without their folders, which may be called after people.
                os.fsencode(os.path.basename(name)).decode(errors="replace")
                for name in left_out[:_NAMED]
            ],
        }


def look_at(folder: Path, *, count: int, side: int) -> Generator[Note, None, Images]:
    """Choose at most ``count`` images from a folder, and keep the list for ``recall``.

    Which ones is drawn by chance, but always the same. Each is decoded, and has at
    least ``side`` pixels on either side. Sub-folders are classes; images may lie at any
    depth.

    Raises:
        BadParameterError: There is no image in the folder that can be used.
    """
    names = _named_like_images(folder)
    if not names:
        raise BadParameterError(
            f"There is no image ({', '.join(_ENDINGS)}) in {folder}; give a folder "
            "with images, or none to use generated ones."
        )
    drawn = random.Random(0).sample(names, len(names))
    good, skipped = yield from _first_good(folder, drawn, count=count, side=side)
    if not good:
        reasons = "; ".join(f"{len(bad)} {reason}" for reason, bad in skipped.items())
        smaller = _too_small(side) in skipped
        remedy = "choose a smaller image_side" if smaller else "give another folder"
        raise BadParameterError(
            f"No image in {folder} can be used ({reasons}); {remedy}."
        )
    folders = [name.rpartition(os.sep)[0].partition(os.sep)[0] for name, _ in good]
    paths, classes = [str(folder / name) for name, _ in good], sorted({*folders})
    images = Images(
        paths=tuple(paths),
        labels=tuple(map(classes.index, folders)),
        classes=tuple(classes),
        shapes=tuple(shape for _, shape in good),
        sizes=tuple(os.stat(path).st_size for path in paths),
        found=len(names),
        skipped=skipped,
    )
    document = json.dumps({"form": _FORM, "images": dataclasses.asdict(images)})
    cache.write(_list_name(folder, count, side), document, label="the list of images")
    return images


def _named_like_images(folder: Path) -> list[str]:
    """List the files below a folder that are called images, by their names in it."""
    paths = (
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        # A Mac leaves "._name.jpg" beside "name.jpg" on foreign disks.
        if name.lower().endswith(_ENDINGS) and not name.startswith("._")
    )
    return sorted(os.path.relpath(path, folder) for path in paths)


def _first_good(
    folder: Path, names: Sequence[str], *, count: int, side: int
) -> Generator[Note, None, tuple[Good, Skipped]]:
    """The first images that can be used, and why the others before are left out."""
    good: Good = []
    bad: dict[str, list[str]] = {}
    waiting = iter(names)
    while batch := list(itertools.islice(waiting, min(count - len(good), _AT_ONCE))):
        shapes = {name: read_header(folder / name, side) for name in batch}
        promising = [name for name in batch if not isinstance(shapes[name], str)]
        decoded = _decoded_shapes([str(folder / name) for name in promising])
        shapes |= dict(zip(promising, decoded, strict=True))
        for name, shape in shapes.items():
            if isinstance(shape, str):
                bad.setdefault(shape, []).append(name)
            else:
                good.append((name, shape))
        yield Note("progress", f"Checking images: {len(good)} of {count}")
    return good, {reason: tuple(names) for reason, names in bad.items()}


def _too_small(side: int) -> str:
    """Why an image with a side of fewer pixels cannot be used."""
    return f"smaller than {side} px"


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
        return _too_small(side)
    return height, width


def _decoded_shapes(paths: Sequence[str]) -> list[Shape | str]:
    """Decode files and give height and width of each, or why it cannot be used."""

    def shape(index: tf.Tensor, path: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return index, tf.shape(tf.io.decode_jpeg(tf.io.read_file(path), channels=3))

    if not paths:
        return []
    files = [os.fsencode(path) for path in paths]
    numbered = tf.data.Dataset.from_tensor_slices((range(len(files)), files))
    graph = tf.autograph.experimental.do_not_convert(shape)
    dataset = numbered.map(graph, num_parallel_calls=tf.data.AUTOTUNE).ignore_errors()
    sizes = {int(i): (int(s[0]), int(s[1])) for i, s in dataset.as_numpy_iterator()}
    return [sizes.get(i, "broken or cut short") for i in range(len(files))]


def recall(folder: Path, *, count: int, side: int) -> Images:
    """Give the images that ``look_at`` chose; ``BadFileError`` if its list is gone."""
    import msgspec

    try:
        text = (cache.folder() / _list_name(folder, count, side)).read_text("utf-8")
        document = json.loads(text)
        if document["form"] == _FORM:
            return msgspec.convert(document["images"], Images)
    except (OSError, ValueError, TypeError, KeyError, msgspec.ValidationError):
        pass
    raise BadFileError(
        f"The list of images in {cache.folder()} is gone; run again to remake it."
    )


def _list_name(folder: Path, count: int, side: int) -> str:
    return f"lists/{_digest(str(folder), count, side)}.json"


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


# Of a TFRecord file within its folder.
_RECORDS = "00-of-01.tfrecord"


def make_records(images: Images, form: str) -> Generator[Note, None, Path]:
    """Write the images to a TFRecord file in the cache, once, and tell how far it is.

    The form is ``"jpeg"``, the files as they are, or ``"raw"``, their pixels.
    """
    size = images.decoded if form == "raw" else sum(images.sizes)
    write = functools.partial(_write_records, images=images, form=form, size=size)
    label = f"the TFRecord file ({form})"
    return cache.make(_folder_of_records(images, form), write, size=size, label=label)


def record_file(images: Images, form: str) -> str:
    """The file of a form that ``make_records`` has made; ``BadFileError`` if not."""
    path = cache.folder() / _folder_of_records(images, form) / _RECORDS
    if not path.is_file():
        raise BadFileError(
            f"The TFRecord file ({form}) in {cache.folder()} is gone; run again to "
            "remake it."
        )
    return str(path)


def parse_record(record: Any) -> dict[str, Any]:
    """Read one record: image, label, and height and width, which only pixels need."""
    number = tf.io.FixedLenFeature([], tf.int64)
    text = tf.io.FixedLenFeature([], tf.string)
    features = {"image": text, "label": number, "height": number, "width": number}
    return dict(tf.io.parse_single_example(record, features))


def _folder_of_records(images: Images, form: str) -> str:
    return f"records-{form}-{images.key}"


def _write_records(into: Path, images: Images, form: str, size: int) -> Iterator[Note]:
    doing = f"Writing a TFRecord file of {form}, once ({units.size(size)})"
    try:
        with tf.io.TFRecordWriter(str(into / _RECORDS)) as writer:
            for index in range(len(images.paths)):
                writer.write(_record(images, index, form))
                if index % 64 == 0:
                    yield Note("progress", f"{doing}: {index} of {len(images.paths)}")
    except tf.errors.ResourceExhaustedError as error:
        # TensorFlow's word for a full disk; elsewhere it means memory.
        raise OSError(errno.ENOSPC, error.message) from error


def _record(images: Images, index: int, form: str) -> bytes:
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
