"""What many drawn elements say of their look, said once in the page's style sheet.

A chart is drawn with a style on every mark, and a third of its text is the same few
styles again and again.
"""

from __future__ import annotations

import collections
import re

# Only in tags of drawings: in a text "<" is escaped. Nothing that a style sheet could
# take for more than the values of a rule.
_STYLED = re.compile(
    r"(<(?:circle|ellipse|g|line|path|polygon|polyline|rect|text|tspan|use)\b"
    r'(?:[^<>"]|"[^"]*")*?) style="([\w:;#%., -]+)"'
)
_SHEET_ENDS = "</style>"


def compact(html: str) -> str:
    """Give styles that are used more than twice a name."""
    used = collections.Counter(style for _, style in _STYLED.findall(html))
    often = [style for style, count in used.most_common() if count > 2]
    names = {style: f"d{number}" for number, style in enumerate(often)}

    def named(found: re.Match[str]) -> str:
        name = names.get(found[2])
        return f'{found[1]} class="{name}"' if name else found[0]

    rules = "".join(f".{name} {{ {style} }}\n" for style, name in names.items())
    head, end, body = html.partition(_SHEET_ENDS)
    return f"{head}{rules}{end}{_STYLED.sub(named, body)}"
