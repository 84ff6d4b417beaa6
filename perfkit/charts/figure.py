"""A finished picture: SVG for the eye, a text for who cannot see it."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What can be scrolled must be reached by keyboard as well.
_SCROLLED = (
    '<div class="perfkit-scroll" tabindex="0" style="overflow-x:auto">'
    '<div style="min-width:520px">{}</div></div>'
)
_IDS = re.compile(r'\bid="|url\(#|\bhref="#')


@dataclass(frozen=True, repr=False)
class Figure:
    """A chart as it is shown and kept.

    Attributes:
        svg: The picture. Within a page it takes over the page's colours; as a picture
            of its own it brings a light or a dark background along.
        alt: What it shows, in words.
    """

    svg: str
    alt: str

    def in_page(self) -> str:
        """The picture for a page that may hold it twice.

        A browser takes the first element of an id. If that lies in a part of the page
        that is folded away, what refers to it, such as a hatched area, is not drawn. So
        each call gives ids of its own. Where there is little room it can be scrolled.
        """
        mine = f"i{secrets.token_hex(4)}"
        svg = _IDS.sub(lambda found: found[0] + mine, self.svg)
        return _SCROLLED.format(svg)

    def save(self, path: str | Path) -> Path:
        """Write the picture as an SVG file."""
        path = Path(path)
        path.write_text(self.svg, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        # JupyterLab shows image/svg+xml as an <img> without alt text, out of reach of
        # its theme. It prefers text/html, where neither is so.
        return {
            "text/html": self.in_page(),
            "image/svg+xml": self.svg,
            "text/plain": self.alt,
        }
