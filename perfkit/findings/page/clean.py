"""Markup and pictures from anywhere, made harmless: what a page may hold stays.

A page loads nothing, so a picture is in it, as a data URI, or words say why there is
none. Nothing outside the notebook's own folder is read, whatever a notebook asks for.
"""

import base64
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nh3
from markupsafe import Markup

from perfkit import units
from perfkit.findings.text import plain
from perfkit.findings.text import printable as printable_text

LARGEST_BYTES = 5_000_000
# With more, a page is slow to open and too large to be sent.
LARGEST_SUM_BYTES = 100_000_000
# A file is what its first bytes say it is, not what its name says. A browser runs
# nothing and loads nothing for SVG in an <img>.
_BEGINS = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"RIFF.{4}WEBP",
    "image/svg+xml": rb"(?:\xef\xbb\xbf)?\s*<(?:\?xml|!--|!DOCTYPE svg|svg)[\s>]",
}
_DATA = re.compile(r"data:image/[\w+.-]+;base64,(.*)", re.DOTALL | re.IGNORECASE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//|\\\\", re.IGNORECASE)


class NoPictureError(Exception):
    """There is no picture at an address; the words say why."""


@dataclass
class Pictures:
    """Takes pictures into a page; one named twice is in it twice.

    Attributes:
        attached: To the cell at hand: by a picture's name, base64 by its type.
        bytes_left: What the page has left for pictures; from the first that does not
            fit on, there are none.
    """

    folder: Path
    attached: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    bytes_left: int = LARGEST_SUM_BYTES

    def uri(self, address: str) -> str:
        """The picture at an address, all of it as ``data:...``, or a NoPictureError."""
        if self.bytes_left >= 0:
            uri = self._find(address.strip())
            self.bytes_left -= len(uri)
        if self.bytes_left < 0:
            full = units.size(LARGEST_SUM_BYTES)
            raise NoPictureError(f"a picture after {full} of them, too large")
        return uri

    def _find(self, address: str) -> str:
        if match := _DATA.fullmatch(address):
            return _decoded(match[1])
        if address.startswith("attachment:"):
            forms = self.attached.get(unquote(address.partition(":")[2]), {})
            for text in (text for kind, text in forms.items() if kind in _BEGINS):
                return _decoded(str(text))
            raise NoPictureError("a picture that is not attached")
        if not address or _ELSEWHERE.match(address):
            raise NoPictureError("a picture from elsewhere, left out")
        return self._file(unquote(address.partition("?")[0].partition("#")[0]))

    def _file(self, address: str) -> str:
        name = plain(address, 80)
        try:
            home, path = self.folder.resolve(), (self.folder / address).resolve()
            if not path.is_relative_to(home):
                raise NoPictureError(
                    f"the picture {name}, outside the notebook's folder"
                )
            if not path.is_file():
                raise NoPictureError(f"the picture {name}, not found")
            with path.open("rb") as file:
                return _uri_of(file.read(LARGEST_BYTES + 1))
        except (OSError, ValueError):
            raise NoPictureError(f"the picture {name}, which cannot be read") from None


def _decoded(text: str) -> str:
    """The URI of a picture that is given in base64."""
    try:
        return _uri_of(base64.b64decode("".join(text.split()), validate=True))
    except ValueError:
        raise NoPictureError("a picture that cannot be read") from None


def _uri_of(data: bytes) -> str:
    if len(data) > LARGEST_BYTES:
        raise NoPictureError(f"a picture of {units.size(len(data))}, too large")
    for kind, begins in _BEGINS.items():
        if re.match(begins, data, re.DOTALL):
            return f"data:{kind};base64,{base64.b64encode(data).decode()}"
    raise NoPictureError("a picture that cannot be read")


_ALLOWED = tomllib.loads(
    Path(__file__).with_name("allowed.toml").read_text(encoding="utf-8")
)


def _words(table: str) -> dict[str, frozenset[str]]:
    return {name: frozenset(words.split()) for name, words in _ALLOWED[table].items()}


_ELEMENTS, _ATTRIBUTES = _words("elements"), _words("attributes")
_HTML, _SVG = (_ELEMENTS[kind] for kind in ("html", "svg"))
_STYLES = _ATTRIBUTES["styles"]
_OF_SVG = _ATTRIBUTES["svg"] | _STYLES
_OF_ELEMENTS = {
    **dict.fromkeys(_SVG, _OF_SVG),
    "use": _OF_SVG | {"href"},
    **_words("of-one-element"),
}
# A box that scrolls is reached by keyboard, and is nothing else.
_SCROLLS = {"role": "group", "tabindex": "0"}
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
        case "role" | "tabindex" if tag == "div":
            value = value if value == _SCROLLS[name] else ""
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
    # A wide one scrolls, and so it must be reached by keyboard.
    set_tag_attribute_values={"table": {"tabindex": "0"}},
)
_ATTRIBUTE = re.compile(r' ([\w:-]+)="([^"]*)"')
# As the cleaner writes them; a text holds neither of these brackets.
_IMG = re.compile(r"<img([^<>]*)>")
# Of what uses others, ten of ten of ten are too many to draw: only single shapes, as
# letters and marks of a chart are, may be used again.
_DRAWN = re.compile(
    r'<(?:circle|ellipse|line|path|polygon|polyline|rect) (?:[^<>]* )?id="([^"]+)"'
)
_USE = re.compile(r'<use(?: [^<>]*)? href="#([^"]*)"[^<>]*></use>|<use[^<>]*></use>')
_EMPTY_HEADING = re.compile(r"<th((?:\s[^<>]*)?)>\s*</th>")
# Beyond this a browser is slow to show it, and a parser is slower still.
_LARGEST, _MOST_TAGS, _DEEPEST, _LONGEST_TAG = 4_000_000, 60_000, 400, 10_000
_WRITTEN = re.compile(r"<(/?)([a-zA-Z][\w-]*)([^<>]*)")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
# Elements whose end nobody writes.
_FLAT = {"br", "col", "hr", "img", "wbr", "dd", "dt", "li", "p", "td", "th", "tr"}
_LONGEST_ALT = 2000


def clean(markup: str, pictures: Pictures, alt: str = "") -> Markup:
    """Keep of some HTML or SVG what is harmless in a page.

    ``alt`` is what pictures show that do not say so themselves.
    """
    if _is_excessive(markup):
        return Markup('<p class="missing">This part is too large to show.</p>')
    # The corner of a DataFrame heads nothing.
    markup = _EMPTY_HEADING.sub(r"<td\1></td>", markup)
    # What cannot be encoded goes first, what an entity stood for at last.
    cleaned = printable(_CLEANER.clean(printable(markup)))
    reusable = set(_DRAWN.findall(cleaned))
    cleaned = _USE.sub(lambda use: use[0] if use[1] in reusable else "", cleaned)

    def picture(match: re.Match[str]) -> str:
        raw = {name: unescape(text) for name, text in _ATTRIBUTE.findall(match[1])}
        sizes = {side: raw.get(side, "") for side in ("width", "height")}
        sides = {side: size for side, size in sizes.items() if size.isdigit()}
        words = plain(raw.get("alt") or alt, _LONGEST_ALT)
        return to_img(pictures, raw.get("src", ""), words, **sides)

    return Markup(_IMG.sub(picture, cleaned))


def to_img(pictures: Pictures, address: str, alt: str, **sides: str) -> Markup:
    """What shows the picture at an address, or says why there is none."""
    try:
        attributes = {"src": pictures.uri(address), "alt": alt} | sides
    except NoPictureError as error:
        words = f"{alt} ({error})".strip()
        return Markup('<span class="missing">{}</span>').format(words)
    pairs = (Markup(' {}="{}"').format(*pair) for pair in attributes.items())
    return Markup("<img{}>").format(Markup().join(pairs))


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
