"""Markup and pictures from anywhere, made harmless: what a page may hold stays.

A page loads nothing, so a picture is in it, as a data URI, or words say why there is
none. Nothing outside the notebook's own folder is read, whatever a notebook asks for.
"""

import base64
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import unescape
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nh3
from markupsafe import Markup, escape

from perfkit import units
from perfkit.findings.text import plain
from perfkit.findings.text import printable as printable_text

LARGEST_BYTES = 5_000_000
# With more, a page is slow to open and too large to be sent.
LARGEST_SUM_BYTES = 100_000_000
_SVG_KIND = "image/svg+xml"
# A file is what its first bytes say it is, not what its name says.
_BEGINS = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"RIFF.{4}WEBP",
    _SVG_KIND: rb"(?:\xef\xbb\xbf)?\s*<(?:\?xml|!--|!DOCTYPE svg|svg)[\s>]",
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
        attributes = {"src": self.uri, "alt": alt} | sides
        pairs = (Markup(' {}="{}"').format(*pair) for pair in attributes.items())
        return Markup("<img{}>").format(Markup().join(pairs))


# Gives the picture that stands at an address.
Pictures = Callable[[str], Picture]


def inline_only(address: str) -> Picture:
    """The picture that an address holds itself; no other is looked for."""
    match = _DATA.fullmatch(address.strip())
    if match:
        return encoded(match[1], vectors=False)
    host = _HOST.match(address.strip())
    place = plain(host[1]) if host else "elsewhere"
    return Picture(missing=f"a picture from {place}, left out")


@dataclass
class Room:
    """The bytes that a page has left for pictures; one named twice is in it twice.

    From the first that does not fit on, there are none.
    """

    bytes_left: int = LARGEST_SUM_BYTES

    def take(self, picture: Picture) -> Picture:
        """The picture if there is room for it."""
        self.bytes_left -= len(picture.uri)
        return picture if self.bytes_left >= 0 else _TOO_MANY


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
        if room.bytes_left < 0:
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
        if re.match(begins, data, re.DOTALL) and (vectors or kind != _SVG_KIND):
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


_ALLOWED = tomllib.loads(
    Path(__file__).with_name("allowed.toml").read_text(encoding="utf-8")
)


def _words(table: str) -> dict[str, frozenset[str]]:
    return {name: frozenset(words.split()) for name, words in _ALLOWED[table].items()}


_ELEMENTS, _ATTRIBUTES = _words("elements"), _words("attributes")
_HTML, _SVG = (_ELEMENTS[kind] for kind in ("html", "svg"))
_HEADINGS = frozenset(f"h{level}" for level in range(1, 7))
_STYLES = _ATTRIBUTES["styles"]
_OF_SVG = _ATTRIBUTES["svg"] | _STYLES
_OF_ELEMENTS = {
    **dict.fromkeys(_SVG, _OF_SVG),
    "use": _OF_SVG | {"href"},
    **_words("of-one-element"),
}
# A class gives content the page's look; these are the ones that have one.
_CLASSES = re.compile(r"perfkit-[a-z-]+|dataframe|highlight|t-[a-z0-9]{1,3}")
_LINK = re.compile(r"(https?://|mailto:|#)[^\s\"'<>\\]*", re.IGNORECASE)
_LOCAL = re.compile(r"#[\w.:-]+")
_REFERENCE = re.compile(r"url\(\s*(['\"]?)#[\w.:-]+\1\s*\)")
# Words, numbers, colours and references within the page: nothing that loads or covers.
_DECLARATION = re.compile(
    rf"""\s*(?:{"|".join(_STYLES)})\s*:"""
    r"""(?:[\w\s#%.,/+-]|"[\w .-]*"|'[\w .-]*'|(?:rgb|hsl)a?\([\w\s%.,/+-]*\)"""
    r"""|url\(\s*(?:"#[\w.:-]+"|'#[\w.:-]+'|#[\w.:-]+)\s*\))*""",
    re.IGNORECASE,
)
# Lines, and what holds words together or apart in some scripts.
_KEPT = "\n\t\xa0\u200c\u200d"


def printable(text: str) -> str:
    """Text with its lines, without characters that change how the rest is read."""
    return printable_text(text, _KEPT)


def _clean_attribute(tag: str, name: str, raw: str) -> str | None:
    """What an element keeps of an attribute that it may have."""
    value = printable(raw).strip()
    match name:
        case "class":
            value = " ".join(filter(_CLASSES.fullmatch, value.split()))
        case "style":
            value = ";".join(filter(_DECLARATION.fullmatch, value.split(";")))
        case "href":
            link = (_LOCAL if tag == "use" else _LINK).fullmatch(value)
            value = value if link else ""
        case "open" | "reversed":
            return ""
        # Texts are never followed; where a picture is from is looked at later.
        case "alt" | "aria-label" | "src":
            pass
        case _ if "url" in value.casefold() and not _REFERENCE.fullmatch(value):
            return None
    return value or None


_CLEANER = nh3.Cleaner(
    tags=_HTML | _SVG,
    clean_content_tags=_ELEMENTS["dropped"],
    attributes=_OF_ELEMENTS,
    attribute_filter=_clean_attribute,
    url_schemes={"http", "https", "mailto", "data", "attachment"},
)
# As the cleaner writes them; a text holds neither of these brackets.
_TAG = re.compile(r'<(/?)([a-zA-Z][\w-]*)((?: [\w:-]+="[^"]*")*)>')
_ATTRIBUTE = re.compile(r' ([\w:-]+)="([^"]*)"')
# Single shapes, as letters and marks of a chart are.
_DRAWN = re.compile(
    r'<(?:circle|ellipse|line|path|polygon|polyline|rect) (?:[^<>]* )?id="([^"]+)"'
)
_EMPTY_HEADING = re.compile(r"<th((?:\s[^<>]*)?)>\s*</th>")
# Beyond this a browser is slow to show it, and a parser is slower still.
_LARGEST, _MOST_TAGS, _DEEPEST, _LONGEST_TAG = 4_000_000, 60_000, 400, 10_000
_WRITTEN = re.compile(r"<(/?)([a-zA-Z][\w-]*)([^<>]*)")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_VOID = {"br", "col", "hr", "img", "wbr"}
# Elements whose end nobody writes.
_FLAT = _VOID | {"dd", "dt", "li", "p", "td", "th", "tr"}
_LONGEST_ALT = 2000
# What may be wider than a page: the box it scrolls in, which a keyboard can reach.
_BOXES = {
    "table": ("div", "Table"),
    "svg": ("span", "Figure"),
}
_BOX = '<{} class="scroll" role="group" tabindex="0" aria-label="{}">'


@dataclass
class Outline:
    """The headings of a page so far, so that no level is left out.

    Attributes:
        last: The level of the last heading; 0 before the first.
        text: What the last heading says.
        names: What links find them by; the first of a name has it.
    """

    last: int = 0
    text: str = ""
    names: set[str] = field(default_factory=set)

    def level(self, level: int) -> int:
        """The level that a heading of ``level`` gets here; only one gets 1."""
        self.last = min(max(level, 2), self.last + 1)
        return self.last


def clean(
    markup: str,
    *,
    alt: str = "",
    pictures: Pictures = inline_only,
    outline: Outline | None = None,
) -> Markup:
    """Keep of some HTML or SVG what is harmless in a page.

    Args:
        markup: From a notebook, a file or a library.
        alt: What pictures show that do not say so themselves.
        pictures: Gives the picture that stands at an address.
        outline: Where its headings belong; None to make them plain text.
    """
    if _is_excessive(markup):
        return Markup('<p class="missing">This part is too large to show.</p>')
    # The corner of a DataFrame heads nothing.
    markup = _EMPTY_HEADING.sub(r"<td\1></td>", markup)
    cleaned = printable(_CLEANER.clean(markup))
    reusable = set(_DRAWN.findall(cleaned))
    dress = _Dress(plain(alt, _LONGEST_ALT), pictures, outline, reusable)
    return Markup(_TAG.sub(dress.tag, cleaned))


def shows_something(markup: Markup) -> bool:
    """Whether there is anything to see in it."""
    pictured = ("<svg", "<img", "<hr")
    return any(tag in markup for tag in pictured) or bool(markup.striptags().strip())


def _is_excessive(markup: str) -> bool:
    if len(markup) > _LARGEST or markup.count("<") + markup.count("&") > _MOST_TAGS:
        return True
    tags = _WRITTEN.findall(markup)
    long = (attributes for *_, attributes in tags if len(attributes) > _LONGEST_TAG)
    if any(len(_QUOTED.sub("", attributes)) > _LONGEST_TAG for attributes in long):
        return True
    steps = (
        -1 if closing else 1
        for closing, name, attributes in tags
        if name.lower() not in _FLAT and not attributes.endswith("/")
    )
    return max(accumulate(steps), default=0) > _DEEPEST


class _Dress:
    """Says of markup that is harmless already what it left unsaid, tag by tag."""

    def __init__(
        self, alt: str, pictures: Pictures, outline: Outline | None, reusable: set[str]
    ) -> None:
        self._alt, self._pictures, self._outline = alt, pictures, outline
        # What may be used again, by name.
        self._reusable = reusable
        # Of every open element its name, what ends it, and where its contents begin.
        self._open: list[tuple[str, str, int]] = []

    def tag(self, match: re.Match[str]) -> str:
        """A tag as the page has it."""
        closing, name, raw = match.groups()
        if closing:
            return self._closed(match)
        attributes = dict(_ATTRIBUTE.findall(raw))
        if name == "img":
            return self._picture(
                **{key: unescape(attributes[key]) for key in attributes}
            )
        begin, element, end = self._parts(name, attributes)
        if name not in _VOID:
            self._open.append((name, end, match.end()))
        text = "".join(f' {key}="{value}"' for key, value in attributes.items())
        return f"{begin}<{element}{text}>" if element else ""

    def _closed(self, match: re.Match[str]) -> str:
        name, end, start = self._open.pop()
        if name in _HEADINGS and self._outline:
            text = match.string[start : match.start()]
            self._outline.text = Markup(text).striptags()
        return end

    def _parts(self, name: str, attributes: dict[str, str]) -> tuple[str, str, str]:
        """What an element begins with, what it is called, and what ends it."""
        begin, element, end = "", name, ""
        if name == "g" and not attributes:
            # A group that says nothing groups nothing.
            return "", "", ""
        if name == "use" and attributes.get("href", "")[1:] not in self._reusable:
            # Of what uses others, ten of ten of ten are too many to draw.
            return "", "", ""
        if name in _HEADINGS and self._outline:
            element = f"h{self._outline.level(int(name[1]))}"
            if attributes.get("id") in self._outline.names:
                del attributes["id"]
            self._outline.names.add(attributes.get("id", ""))
        elif name in _HEADINGS:
            element = "div"
            attributes.pop("id", None)
        elif name == "th":
            attributes.setdefault("scope", "col" if self._is_in("thead") else "row")
        elif name == "svg" and "aria-hidden" not in attributes:
            attributes |= {"role": "img", "aria-label": escape(self._alt), **attributes}
        if name in _BOXES and not self._is_in(name):
            box, label = _BOXES[name]
            begin, end = _BOX.format(box, label), f"</{box}>"
        return begin, element, f"</{element}>{end}"

    def _is_in(self, name: str) -> bool:
        return any(name == opened for opened, *_ in self._open)

    def _picture(self, src: str = "", alt: str = "", **attributes: str) -> str:
        sides = {
            s: attributes[s]
            for s in ("width", "height")
            if attributes.get(s, "").isdigit()
        }
        words = plain(alt or self._alt, _LONGEST_ALT)
        return self._pictures(src).element(words, **sides)
