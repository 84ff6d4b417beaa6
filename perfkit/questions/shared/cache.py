"""Where is what has been made once kept?

In one folder per user: the system's own place for such things, or ``PERFKIT_CACHE``.
What is in it can be deleted at any time; it is made again when it is needed.
"""

import contextlib
import errno
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

from perfkit import units
from perfkit.engine.alone import private_folder
from perfkit.engine.tick import Note
from perfkit.errors import MissingPartError
from perfkit.questions.shared.later import tf

VARIABLE = "PERFKIT_CACHE"
# A making that has not been touched for a day was interrupted, not slow.
_ABANDONED_S = 86_400
_UNFINISHED = ".unfinished-"


def folder() -> Path:
    """The folder that holds everything; it need not exist yet."""
    import platformdirs

    place = os.environ.get(VARIABLE) or platformdirs.user_cache_dir("perfkit")
    return Path(place).expanduser().absolute()


def make(
    name: str, make: Callable[[Path], Iterator[Note]], *, size: int, label: str
) -> Generator[Note, None, Path]:
    """Give a folder of the cache, made on first use and always whole.

    Args:
        name: Of the folder; it says everything that determines its contents.
        make: Fills an empty folder and tells how far it is.
        size: Bytes it will take, about.
        label: What it is, for a reader: ``"512 photographs"``.

    Yields:
        What ``make`` tells.

    Raises:
        MissingPartError: There is no room for it, or it may not be written.
    """
    target = folder() / name
    if target.is_dir():
        return target
    with writing(label, size):
        _made_parent(target)
        for remnant in folder().glob(f"{_UNFINISHED}*"):
            with contextlib.suppress(OSError):
                if time.time() - remnant.stat().st_mtime > _ABANDONED_S:
                    shutil.rmtree(remnant, ignore_errors=True)
        if shutil.disk_usage(folder()).free < 1.05 * size:
            raise OSError(errno.ENOSPC, f"{label} do not fit")
        unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder()))
        try:
            yield from make(unfinished)
            try:
                unfinished.rename(target)
            except OSError:
                # Another run was faster and has made the same; else it is an error.
                if not target.is_dir():
                    raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return target


def write(name: str, text: str, *, label: str) -> Path:
    """Write one file of the cache, whole or not at all.

    Raises:
        MissingPartError: There is no room for it, or it may not be written.
    """
    target = folder() / name
    with writing(label, len(text)):
        _made_parent(target)
        descriptor, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=target.parent)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(unfinished).replace(target)
        except BaseException:
            Path(unfinished).unlink()
            raise
    return target


@contextlib.contextmanager
def writing(label: str, size: int) -> Iterator[None]:
    """Turn what the system says about a full or closed disk into a sentence."""
    try:
        yield
    except OSError as error:
        where = f"set {VARIABLE} to a folder"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise MissingPartError(
                f"No room for {label} ({units.size(size)}) in {folder()}: free some "
                f"there, or {where} on another disk."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR):
            raise MissingPartError(
                f"Cannot write {label} into {folder()}: {where} that you can write to."
            ) from error
        raise


def _made_parent(path: Path) -> None:
    try:
        private_folder(path.parent)
    except FileNotFoundError as error:
        # So says a place that takes no folders at all, such as /proc.
        raise OSError(errno.EROFS, str(error)) from error


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
    paths = (
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        # A Mac leaves "._name.jpg" beside "name.jpg" on foreign disks.
        if name.lower().endswith(tuple(endings)) and not name.startswith("._")
    )
    return tuple(sorted(os.path.relpath(path, folder) for path in paths))


def first_good(
    folder: Path, names: Sequence[str], *, count: int, side: int
) -> Generator[Note, None, tuple[Good, Skipped]]:
    """Find the first ``count`` images whose sides have ``side`` pixels or more.

    Yields:
        How far it is.

    Returns:
        The good ones with height and width, and the reasons for the others with their
        names.
    """
    good: Good = []
    bad: dict[str, list[str]] = {}
    waiting = iter(names)
    while batch := list(itertools.islice(waiting, min(count - len(good), _AT_ONCE))):
        shapes = {name: read_header(folder / name, side) for name in batch}
        promising = [name for name in batch if not isinstance(shapes[name], str)]
        decoded = decoded_shapes([str(folder / name) for name in promising])
        shapes |= dict(zip(promising, decoded, strict=True))
        for name, shape in shapes.items():
            if isinstance(shape, str):
                bad.setdefault(shape, []).append(name)
            else:
                good.append((name, shape))
        yield Note("progress", f"Checking images: {len(good)} of {count}")
    return good, {reason: tuple(names) for reason, names in bad.items()}


def too_small(side: int) -> str:
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
        return too_small(side)
    return height, width


def decoded_shapes(paths: Sequence[str]) -> list[Shape | str]:
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
