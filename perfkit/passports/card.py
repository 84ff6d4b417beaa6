"""A passport as a card for a notebook, whose colours it takes over.

All that was read from a file or a machine is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from perfkit.passports import words
from perfkit.passports.record import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perfkit.passports.record import Passport, Training

# No colour of its own: a notebook's theme, light or dark, shows through.
_STYLE = """
.perfkit-passport {border-left: 4px solid #808080; padding: 2px 0 2px 14px;
  max-width: 62em}
.perfkit-passport p {margin: .35em 0}
.perfkit-passport .perfkit-headline {font-size: 1.2em; font-weight: 600}
.perfkit-passport .perfkit-scroll {overflow-x: auto}
.perfkit-passport table {color: inherit; border-collapse: collapse; margin: .6em 0;
  font-size: .95em; table-layout: auto !important}
.perfkit-passport table th, .perfkit-passport table td {text-align: left !important;
  padding: 3px 16px 3px 0; vertical-align: top; border-bottom: 1px solid #80808060}
"""


def in_html(passport: Passport) -> str:
    """The passport for a notebook or a page."""
    lines = [*words.about(passport), *words.unwhole(passport)]
    trainings = (_training_row(training) for training in passport.trainings)
    pieces = (
        f"<style>{_STYLE}</style>",
        f'<p class="perfkit-headline">{escape(words.headline(passport))}</p>',
        *(f"<p>{escape(line)}</p>" for line in lines),
        _table(("training", "a step", *PARTS), trainings),
        "<details><summary>Parts of the machine</summary>",
        _table(("part", "rate"), words.rungs(passport)),
        "</details>",
    )
    return f'<div class="perfkit-passport">{"".join(pieces)}</div>'


def _training_row(training: Training) -> tuple[str, ...]:
    parts = (training.part(name) for name in PARTS)
    told = (words.seconds_of(part) if part else "" for part in parts)
    return words.title(training), words.step(training), *told


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    body = "".join(_row(row) for row in rows)
    if not body:
        return ""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        # What can be scrolled must be reached by keyboard as well.
        '<div class="perfkit-scroll" tabindex="0">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(cells: tuple[str, ...]) -> str:
    name, *rest = map(escape, cells)
    told = "".join(f"<td>{cell}</td>" for cell in rest)
    return f'<tr><th scope="row">{name}</th>{told}</tr>'
