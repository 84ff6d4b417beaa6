"""Which images are the pipelines fed with, and can all of them be decoded?

A set of images is a list of files, looked at once: files that are no image, broken, cut
short or too small for the crop are counted, named and left out, so that no trial meets
them. The list is kept in the cache, keyed by everything that it depends on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.errors import BadFileError, BadParameterError
from perfkit.experiments.shared import cache, checking

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from perfkit.measure.tick import Note

# The form of the kept list; another number, and old lists are made anew.
_FORM = 1
_ENDINGS = (".jpg", ".jpeg", ".png")
# So many names of left-out files are told; all of them are counted.
_NAMED = 20


@dataclass(frozen=True, kw_only=True)
class Images:
    """Images that can be decoded, and what was left out.

    Attributes:
        paths: One file each.
        labels: The class of each, a position in ``classes``.
        classes: The names of the sub-folders the files were found in.
        shapes: Height and width of each in pixels.
        sizes: Bytes of each file.
        found: How many files the folder holds that are named like an image.
        skipped: Why files were left out, with their names below the folder.
    """

    paths: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    shapes: tuple[tuple[int, int], ...]
    sizes: tuple[int, ...]
    found: int
    skipped: dict[str, tuple[str, ...]]

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
        pixels = self.decoded / 3
        left_out = [name for names in self.skipped.values() for name in names]
        return {
            "count": len(self.paths),
            "found": self.found,
            "classes": len(self.classes),
            "bytes": sum(self.sizes),
            "bytes_each": round(sum(self.sizes) / len(self.sizes)),
            "bits_per_pixel": round(8 * sum(self.sizes) / pixels, 2),
            "width": round(sum(w for _, w in self.shapes) / len(self.shapes)),
            "height": round(sum(h for h, _ in self.shapes) / len(self.shapes)),
            "decoded_bytes": self.decoded,
            "skipped": len(left_out),
            "skipped_because": {why: len(n) for why, n in self.skipped.items()},
            "skipped_names": [_printable(name) for name in left_out[:_NAMED]],
        }

    def __str__(self) -> str:
        """One line that says how many, how big and what was left out."""
        told = self.describe()
        skipped = "; ".join(f"{n} {why}" for why, n in told["skipped_because"].items())
        return (
            f"{told['count']} images of about {told['width']} by {told['height']} px, "
            f"{units.size(told['bytes_each'])} each, "
            f"{told['bits_per_pixel']} bits per pixel"
            + (f"; left out: {skipped}" if skipped else "")
        )


def look_at(folder: Path, *, count: int, side: int) -> Generator[Note, None, Images]:
    """Choose images from a folder, check them, and keep the list for ``kept``.

    Which ones is drawn by chance, but always the same. Each is decoded once.

    Args:
        folder: Sub-folders are classes; images may lie at any depth.
        count: How many at most.
        side: Pixels that height and width must have at least.

    Yields:
        How far it is.

    Raises:
        BadParameterError: There is no image in the folder that can be used.
    """
    names = checking.named_like_images(folder, _ENDINGS)
    if not names:
        raise BadParameterError(
            f"There is no image ({', '.join(_ENDINGS)}) in {folder}; give a folder "
            "that holds some, or none to use those made here."
        )
    list_name = _list_name(folder, count, side)
    known = _read(list_name)
    if known and known["signature"] == _signature(folder, names, known["looked_at"]):
        return _images(known["images"])
    good, skipped, looked_at = yield from checking.first_good(
        folder, checking.drawn(names), count=count, side=side
    )
    if not good:
        raise BadParameterError(_none_usable(folder, skipped))
    images = _listed(folder, good, skipped, found=len(names))
    kept = {
        "form": _FORM,
        "signature": _signature(folder, names, looked_at),
        "looked_at": looked_at,
        "images": dataclasses.asdict(images),
    }
    cache.write(list_name, json.dumps(kept), what="the list of images")
    return images


def kept(folder: Path, *, count: int, side: int) -> Images:
    """Give the images that ``look_at`` chose.

    Raises:
        BadFileError: It has not been asked, or the list is gone.
    """
    found = _read(_list_name(folder, count, side))
    if found is None:
        raise BadFileError(
            f"The list of images in {cache.folder()} is gone; run again to remake it."
        )
    return _images(found["images"])


def _listed(
    folder: Path,
    good: Sequence[tuple[str, tuple[int, int]]],
    skipped: dict[str, tuple[str, ...]],
    *,
    found: int,
) -> Images:
    paths = [str(folder / name) for name, _ in good]
    classes = sorted({_class_of(name) for name, _ in good})
    return Images(
        paths=tuple(paths),
        labels=tuple(classes.index(_class_of(name)) for name, _ in good),
        classes=tuple(classes),
        shapes=tuple(shape for _, shape in good),
        sizes=tuple(os.stat(path).st_size for path in paths),
        found=found,
        skipped=skipped,
    )


def _none_usable(folder: Path, skipped: dict[str, tuple[str, ...]]) -> str:
    why = "; ".join(f"{len(names)} {reason}" for reason, names in skipped.items())
    remedy = "give another folder"
    if any(reason.startswith("smaller") for reason in skipped):
        remedy = "choose a smaller image_side"
    return f"None of the images in {folder} can be used ({why}); {remedy}."


def _class_of(name: str) -> str:
    first, slash, _ = name.partition(os.sep)
    return first if slash else ""


def _list_name(folder: Path, count: int, side: int) -> str:
    return f"lists/{_digest(str(folder), count, side)}.json"


def _read(name: str) -> dict[str, Any] | None:
    try:
        found = json.loads((cache.folder() / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("form") == _FORM else None


def _images(found: dict[str, Any]) -> Images:
    return Images(
        paths=tuple(found["paths"]),
        labels=tuple(found["labels"]),
        classes=tuple(found["classes"]),
        shapes=tuple((height, width) for height, width in found["shapes"]),
        sizes=tuple(found["sizes"]),
        found=found["found"],
        skipped={why: tuple(names) for why, names in found["skipped"].items()},
    )


def _signature(folder: Path, names: Sequence[str], looked_at: Sequence[str]) -> str:
    """What changes when files come, go or change; files not looked at may change."""
    return _digest(names, [_stamp(str(folder / name)) for name in looked_at])


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _digest(*of: Any) -> str:
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]


def _printable(name: str) -> str:
    return os.fsencode(name).decode(errors="replace")
