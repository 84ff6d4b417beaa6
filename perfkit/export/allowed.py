"""What markup from a notebook may stay in a page: elements, attributes, styles.

Nothing here can hold text that a browser reads by other rules than the page's (a
script, a style sheet, a frame), load anything, or run anything. So whatever is kept
stays harmless however it is nested.
"""

from __future__ import annotations

import re
from html import unescape

import tinycss2  # type: ignore[import-untyped]


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
