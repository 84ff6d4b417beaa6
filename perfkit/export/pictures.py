"""Pictures as part of a page: a data URI each, or why there is none.

A page loads nothing, so a picture is in it or not shown. Nothing outside the notebook's
own folder is read, whatever a notebook asks for.
"""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from markupsafe import Markup

from perfkit import units
from perfkit.findings.text import plain

LARGEST_BYTES = 5_000_000
# With more, a page is slow to open and too large to be sent.
LARGEST_SUM_BYTES = 100_000_000
_SVG = "image/svg+xml"
# A file is what its first bytes say it is, not what its name says.
_BEGINS = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"RIFF.{4}WEBP",
    _SVG: rb"(?:\xef\xbb\xbf)?\s*<(?:\?xml|!--|!DOCTYPE svg|svg)[\s>]",
}
_DATA = re.compile(r"data:image/[\w+.-]+;base64,(.*)", re.DOTALL | re.IGNORECASE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//|\\\\", re.IGNORECASE)
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//([^/?#\s]{1,60})", re.IGNORECASE)


@dataclass(frozen=True)
class Picture:
    """A picture, all of it as ``data:...``, or in a few words why there is none."""

    uri: str = ""
    missing: str = ""

    def element(self, alt: str, **sides: str) -> Markup:
        """What shows it, or the words in its place."""
        if self.missing:
            words = f"{alt} ({self.missing})".strip()
            return Markup('<span class="missing">{}</span>').format(words)
        given = {"src": self.uri, "alt": alt} | sides
        pairs = (Markup(' {}="{}"').format(*pair) for pair in given.items())
        return Markup("<img{}>").format(Markup().join(pairs))


# Gives the picture that stands at an address.
Pictures = Callable[[str], Picture]


def inline_only(address: str) -> Picture:
    """The picture that an address holds itself; no other is looked for."""
    found = _DATA.fullmatch(address.strip())
    if found:
        return encoded(found[1], vectors=False)
    host = _HOST.match(address.strip())
    place = plain(host[1]) if host else "elsewhere"
    return Picture(missing=f"a picture from {place}, left out")


@dataclass
class Room:
    """The bytes that a page has left for pictures; one named twice is in it twice.

    From the first that does not fit on, there are none.
    """

    left: int = LARGEST_SUM_BYTES

    def take(self, picture: Picture) -> Picture:
        """The picture if there is room for it."""
        self.left -= len(picture.uri)
        return picture if self.left >= 0 else _TOO_MANY


_TOO_MANY = Picture(
    missing=f"a picture after {units.size(LARGEST_SUM_BYTES)} of them, too large"
)


def beside(
    folder: Path, attached: Mapping[str, Mapping[str, Any]], room: Room
) -> Pictures:
    """Find pictures in a notebook's folder and among what is attached to a cell."""

    def find(address: str) -> Picture:
        address = address.strip()
        is_attached = address.startswith("attachment:")
        if not is_attached and (not address or _ELSEWHERE.match(address)):
            return inline_only(address)
        if room.left < 0:
            return _TOO_MANY
        if is_attached:
            name = unquote(address.partition(":")[2])
            return room.take(_attachment(name, attached))
        name = unquote(address.partition("?")[0].partition("#")[0])
        return room.take(_file(folder, name))

    return find


def encoded(text: str, *, vectors: bool = True) -> Picture:
    """A picture given in base64, which may be SVG if it may be ``vectors``."""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        return Picture(missing="a picture that cannot be read")
    return _picture(data, vectors=vectors)


def _picture(data: bytes, *, vectors: bool = True) -> Picture:
    if len(data) > LARGEST_BYTES:
        return Picture(missing=f"a picture of {units.size(len(data))}, too large")
    for kind, begins in _BEGINS.items():
        # A browser runs nothing and loads nothing for SVG in an <img>.
        if re.match(begins, data, re.DOTALL) and (vectors or kind != _SVG):
            return Picture(f"data:{kind};base64,{base64.b64encode(data).decode()}")
    return Picture(missing="a picture that cannot be read")


def _attachment(name: str, attached: Mapping[str, Mapping[str, Any]]) -> Picture:
    for kind, text in attached.get(name, {}).items():
        if kind in _BEGINS:
            return encoded(str(text))
    return Picture(missing=f"the picture {plain(name, 80)}, which is not attached")


def _file(folder: Path, address: str) -> Picture:
    name = plain(address, 80)
    try:
        home, path = folder.resolve(), (folder / address).resolve()
        if not path.is_relative_to(home):
            return Picture(missing=f"the picture {name}, outside the notebook's folder")
        if not path.is_file():
            return Picture(missing=f"the picture {name}, not found")
        with path.open("rb") as file:
            return _picture(file.read(LARGEST_BYTES + 1))
    except (OSError, ValueError):
        return Picture(missing=f"the picture {name}, which cannot be read")
