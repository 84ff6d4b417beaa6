"""Markup from anywhere, made harmless: what a page may hold stays, the rest goes."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any

import tinycss2  # type: ignore[import-untyped]
from bleach.html5lib_shim import Filter  # type: ignore[import-untyped]
from bleach.sanitizer import Cleaner  # type: ignore[import-untyped]
from markupsafe import Markup

from perfkit.export.code import printable
from perfkit.export.pictures import Picture, inline_only
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HTML = _words(
    """
    a abbr b blockquote br caption cite code col colgroup dd del details dfn div dl dt
    em figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp
    small span strong sub summary sup table tbody td tfoot th thead tr tt u ul var wbr
    """
)
# With their lower-case names too, under which a parser meets them first.
SVG = _words(
    """
    circle clipPath clippath defs ellipse g line linearGradient lineargradient marker
    path pattern polygon polyline radialGradient radialgradient rect stop svg symbol
    text tspan use
    """
)
_MATHML = _words(
    """
    math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom
    mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr
    munder munderover none
    """
)
TAGS = _HTML | SVG | _MATHML
# These go with all that is in them; the others that are not named leave their text.
DROPPED = _words(
    """
    annotation annotation-xml applet audio button canvas desc embed foreignObject
    foreignobject frame frameset head iframe link listing meta metadata noembed noframes
    noscript object optgroup option plaintext script select style template textarea
    title video xmp
    """
)

_ANYWHERE = _words("aria-hidden class dir id lang style")
_BY_TAG = {
    "a": _words("href"),
    "img": _words("src alt width height"),
    "details": _words("open"),
    "ol": _words("start type reversed"),
    "td": _words("colspan rowspan headers"),
    "th": _words("colspan rowspan headers scope"),
    "col": _words("span"),
    "colgroup": _words("span"),
    "use": _words("href"),
}
_OF_SVG = _words(
    """
    aria-label clip-path clip-rule clipPathUnits cx cy d dominant-baseline dx dy fill
    fill-opacity fill-rule font-family font-size font-style font-weight fx fy
    gradientTransform gradientUnits height marker-end marker-mid marker-start
    markerHeight markerUnits markerWidth offset opacity orient patternContentUnits
    patternTransform patternUnits points preserveAspectRatio r refX refY rx ry
    spreadMethod stop-color stop-opacity stroke stroke-dasharray stroke-dashoffset
    stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width
    text-anchor transform viewBox width x x1 x2 y y1 y2
    """
)
_OF_MATHML = _words(
    """
    accent accentunder columnalign columnlines columnspacing depth display displaystyle
    fence form height largeop linethickness lspace mathcolor mathsize mathvariant
    maxsize minsize movablelimits notation rowlines rowspacing rspace scriptlevel
    separator stretchy symmetric voffset width
    """
)
# No colour but a drawing's, no width and no font: the page has its own.
_STYLES = _words(
    """
    clip-path dominant-baseline fill fill-opacity fill-rule font font-size font-style
    font-weight height marker-end marker-mid marker-start max-width opacity stop-color
    stop-opacity stroke stroke-dasharray stroke-dashoffset stroke-linecap
    stroke-linejoin stroke-miterlimit stroke-opacity stroke-width text-align text-anchor
    vertical-align
    """
)
# A class gives content the page's look; these are the ones that have one.
_CLASSES = re.compile(r"perfkit-[a-z-]+|dataframe|highlight|t-[a-z0-9]{1,3}")
_LINK = re.compile(r"(https?://|mailto:|#)[^\s\"'<>\\]*", re.IGNORECASE)
_LOCAL = re.compile(r"#[\w.:-]+")
_REFERENCE = re.compile(r"url\(\s*(['\"]?)#[\w.:-]+\1\s*\)")
# Texts are shown and never followed; a style and an address are looked at by others.
_READ_APART = _words("alt aria-label style src")
_TOKENS = _words("ident number dimension percentage hash whitespace")
_FUNCTIONS = _words("rgb rgba hsl hsla")


def value_of(raw: str) -> str:
    """An attribute's value without any entity that a browser could still resolve."""
    resolved = unescape(raw)
    while resolved != raw:
        raw, resolved = resolved, unescape(resolved)
    return resolved


def attribute(tag: str, name: str, raw: str) -> bool:
    """Whether an element may keep an attribute."""
    if name not in _ANYWHERE | _own(tag):
        return False
    if name in _READ_APART:
        return True
    value = value_of(raw).strip()
    if name == "href":
        return bool((_LOCAL if tag == "use" else _LINK).fullmatch(value))
    return "url" not in value.casefold() or bool(_REFERENCE.fullmatch(value))


def classes(value: str) -> str:
    """The classes that may stay."""
    return " ".join(name for name in value.split() if _CLASSES.fullmatch(name))


class Styles:
    """What bleach asks about the ``style`` of an element."""

    def sanitize_css(self, raw: str) -> str:
        """Keep declarations of plain values; they cannot load or cover anything."""
        declared = tinycss2.parse_declaration_list(
            value_of(raw), skip_comments=True, skip_whitespace=True
        )
        kept = (
            f"{found.lower_name}:{tinycss2.serialize(found.value).strip()}"
            for found in declared
            if found.type == "declaration"
            and found.lower_name in _STYLES
            and all(map(_is_plain, found.value))
        )
        return ";".join(kept)


def _own(tag: str) -> frozenset[str]:
    if tag in _MATHML:
        return _OF_MATHML
    return _BY_TAG.get(tag, frozenset()) | (_OF_SVG if tag in SVG else frozenset())


def _is_plain(token: object) -> bool:
    """Whether a part of a style is a word, a number, a colour or a local reference."""
    match getattr(token, "type", ""):
        case "literal":
            return getattr(token, "value", "") in {",", "/"}
        case "string":
            return re.fullmatch(r"[\w .-]*", getattr(token, "value", "")) is not None
        case "url":
            return _LOCAL.fullmatch(getattr(token, "value", "")) is not None
        case "function":
            inside = all(map(_is_plain, getattr(token, "arguments", ())))
            return getattr(token, "lower_name", "") in _FUNCTIONS and inside
        case kind:
            return kind in _TOKENS


Token = dict[str, Any]
_HEADINGS = {f"h{level}" for level in range(1, 7)}
# Beyond this a browser is slow to show it, and a parser here is slower still.
_LARGEST, _MOST_TAGS, _DEEPEST, _LONGEST_TAG = 4_000_000, 60_000, 400, 10_000
_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)([^<>]*)")
_EMPTY_HEADING = re.compile(r"<th((?:\s[^<>]*)?)>\s*</th>")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
# Elements whose end nobody writes.
_FLAT = {"br", "col", "dd", "dt", "hr", "img", "li", "p", "td", "th", "tr", "wbr"}
_LONGEST_ALT = 2000
# What may be wider than a page: the box it scrolls in, which a keyboard can reach.
_BOXES = {
    "table": ("div", "Table"),
    "svg": ("span", "Figure"),
    "math": ("span", "Formula"),
}


@dataclass
class Outline:
    """The headings of a page so far, so that no level is left out.

    Attributes:
        last: The level of the last heading; 0 before the first.
        text: What the last heading says.
    """

    last: int = 0
    text: str = ""

    def level(self, asked: int) -> int:
        """The level that a heading of level ``asked`` gets here; only one gets 1."""
        self.last = min(max(asked, 2), self.last + 1)
        self.text = ""
        return self.last


def clean(
    markup: str,
    *,
    alt: str = "",
    pictures: Callable[[str], Picture] = inline_only,
    outline: Outline | None = None,
) -> Markup:
    """Keep of some HTML, SVG or MathML what is harmless in a page.

    Args:
        markup: From a notebook, a file or a library.
        alt: What pictures show that do not say so themselves.
        pictures: Gives the picture that stands at an address.
        outline: Where its headings belong; None to make them plain text.
    """
    if _is_excessive(markup):
        return Markup('<p class="missing">What stood here is too large to show.</p>')
    finish = functools.partial(
        _Finish, alt=plain(alt, _LONGEST_ALT), pictures=pictures, outline=outline
    )
    cleaner = Cleaner(
        tags=TAGS | DROPPED,
        attributes=attribute,
        protocols={"http", "https", "mailto", "data", "attachment"},
        strip=True,
        filters=[finish],
        css_sanitizer=Styles(),
    )
    # The corner of a DataFrame heads nothing.
    markup = _EMPTY_HEADING.sub(r"<td\1></td>", printable(markup))
    return Markup(cleaner.clean(markup))


def shows_something(markup: Markup) -> bool:
    """Whether there is anything to see in it."""
    pictured = ("<svg", "<img", "<math", "<hr")
    return any(tag in markup for tag in pictured) or bool(markup.striptags().strip())


def _is_excessive(markup: str) -> bool:
    if len(markup) > _LARGEST or markup.count("<") + markup.count("&") > _MOST_TAGS:
        return True
    depth = 0
    for closing, name, rest in _TAG.findall(markup):
        if len(rest) > _LONGEST_TAG and len(_QUOTED.sub("", rest)) > _LONGEST_TAG:
            return True
        if name.lower() not in _FLAT and not rest.endswith("/"):
            depth += -1 if closing else 1
        if depth > _DEEPEST:
            return True
    return False


class _Finish(Filter):  # type: ignore[misc]
    """Takes out what goes with its contents, and dresses what stays."""

    def __init__(
        self,
        source: Any,
        *,
        alt: str,
        pictures: Callable[[str], Picture],
        outline: Outline | None,
    ) -> None:
        super().__init__(source)
        self._alt = alt
        self._pictures = pictures
        self._outline = outline
        self._dropping: list[str] = []
        self._headings: list[str] = []
        self._in_head = False
        self._boxes: list[str] = []
        self._groups: list[bool] = []

    def __iter__(self) -> Iterator[Token]:
        for token in super().__iter__():
            if not self._is_dropped(token):
                yield from self._finished(token)

    def _is_dropped(self, token: Token) -> bool:
        name, kind = token.get("name", ""), token["type"]
        if kind == "StartTag" and name in DROPPED:
            self._dropping.append(name)
        elif kind == "EndTag" and self._dropping and name == self._dropping[-1]:
            self._dropping.pop()
            return True
        return bool(self._dropping) or name in DROPPED

    def _finished(self, token: Token) -> Iterator[Token]:
        match token["type"]:
            case "StartTag" | "EmptyTag":
                yield from self._opened(token)
            case "EndTag":
                yield from self._closed(token)
            case "Characters" | "SpaceCharacters" | "Entity":
                yield self._said(token)

    def _said(self, token: Token) -> Token:
        data = token.get("data", "")
        if token["type"] == "Entity":
            data = unescape(f"&{token['name']};")
        if self._headings and self._outline:
            self._outline.text += data
        return {"type": "Characters", "data": printable(data)}

    def _opened(self, token: Token) -> Iterator[Token]:
        given = {
            name: printable(value_of(raw)) for (_, name), raw in token["data"].items()
        }
        name = token["name"]
        if name == "img":
            yield from self._picture(given)
            return
        if name in _BOXES and (name != "math" or given.get("display") == "block"):
            if name not in self._boxes:
                box, label = _BOXES[name]
                yield _start(box, {"class": "scroll", **_REACHED, "aria-label": label})
            self._boxes.append(name)
        self._dress(name, given)
        if name in _HEADINGS:
            token["name"] = self._heading(name)
        token["data"] = {
            (None, key): value
            for key, value in given.items()
            if value or key in ("open", "reversed")
        }
        if name == "g":
            # A group that says nothing groups nothing.
            self._groups.append(bool(token["data"]))
            if not token["data"]:
                return
        yield token

    def _dress(self, name: str, given: dict[str, str]) -> None:
        """Say with an element's attributes what it left unsaid, and no more."""
        if "class" in given:
            given["class"] = classes(given["class"])
        if name not in SVG | (_HEADINGS if self._outline else set()):
            # Nothing links to others.
            given.pop("id", None)
        if name == "a" and not given.get("href", "#").startswith("#"):
            given["rel"] = "noopener noreferrer"
        elif name == "thead":
            self._in_head = True
        elif name == "th":
            given.setdefault("scope", "col" if self._in_head else "row")
        elif name == "svg" and not given.get("aria-hidden"):
            given |= {"role": "img", "aria-label": given.get("aria-label") or self._alt}

    def _closed(self, token: Token) -> Iterator[Token]:
        name = token["name"]
        if name in _HEADINGS and self._headings:
            token["name"] = self._headings.pop()
        elif name == "thead":
            self._in_head = False
        elif name == "g" and self._groups and not self._groups.pop():
            return
        yield token
        if self._boxes and name == self._boxes[-1]:
            self._boxes.pop()
            if name not in self._boxes:
                yield _end(_BOXES[name][0])

    def _heading(self, name: str) -> str:
        if self._outline is None:
            self._headings.append("div")
        else:
            self._headings.append(f"h{self._outline.level(int(name[1]))}")
        return self._headings[-1]

    def _picture(self, given: dict[str, str]) -> Iterator[Token]:
        alt = plain(given.get("alt") or self._alt, _LONGEST_ALT)
        picture = self._pictures(given.get("src", ""))
        if picture.missing:
            words = f"{alt} ({picture.missing})".strip()
            yield _start("span", {"class": "missing"})
            yield {"type": "Characters", "data": words}
            yield _end("span")
            return
        sides = {s: given[s] for s in ("width", "height") if given.get(s, "").isdigit()}
        yield _start("img", {"src": picture.uri, "alt": alt, **sides}, "EmptyTag")


_REACHED = {"role": "group", "tabindex": "0"}


def _start(name: str, attributes: dict[str, str], kind: str = "StartTag") -> Token:
    data = {(None, key): value for key, value in attributes.items()}
    return {"type": kind, "name": name, "namespace": None, "data": data}


def _end(name: str) -> Token:
    return {"type": "EndTag", "name": name, "namespace": None, "data": {}}
