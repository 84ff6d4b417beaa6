"""An examination as cards for a notebook, whose colours they take over.

All that was read from the machine is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from perfkit.doctor.page import log_of
from perfkit.doctor.parts import parts
from perfkit.findings.text import plain, with_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.doctor.examination import Examination
    from perfkit.machine.check import Check
    from perfkit.machine.record import Machine

_LONGEST = 2000
# No colour but that of an edge, which a word says as well: a notebook's theme, light
# or dark, shows through.
_STYLE = """
.perfkit-doctor {max-width: 62em}
.perfkit-doctor p {margin: .3em 0}
.perfkit-doctor .perfkit-parts {display: grid; gap: 8px; margin: .6em 0;
  grid-template-columns: repeat(auto-fill, minmax(15em, 1fr))}
.perfkit-doctor .perfkit-parts div {border: 1px solid #80808080; border-radius: 4px;
  padding: 6px 10px; overflow-wrap: anywhere}
.perfkit-doctor .perfkit-parts dd {margin: 0}
.perfkit-doctor .perfkit-checks {list-style: none; margin: .6em 0; padding: 0}
.perfkit-doctor .perfkit-checks li {border-left: 4px solid #808080; margin: .7em 0;
  padding: 2px 0 2px 12px; overflow-wrap: anywhere}
.perfkit-doctor .perfkit-checks li.perfkit-fail {border-left-color: #d33}
.perfkit-doctor .perfkit-checks li.perfkit-warn {border-left-color: #c80}
.perfkit-doctor .perfkit-do {white-space: pre-wrap}
.perfkit-doctor .perfkit-small {font-size: .88em; opacity: .85}
"""


def in_html(examination: Examination) -> str:
    """A card for each part, then what is wrong, then what else was seen."""
    return (
        f'<div class="perfkit-doctor"><style>{_STYLE}</style>'
        f"{''.join(_pieces(examination))}</div>"
    )


def _pieces(examination: Examination) -> Iterator[str]:
    cards = (
        f"<div><dt><b>{_clean(name)}</b></dt><dd>{_clean(line)}</dd></div>"
        for name, line in parts(examination.machine)
    )
    yield f'<dl class="perfkit-parts">{"".join(cards)}</dl>'
    yield f"<p><b>{with_code(_clean(examination.answer()))}</b></p>"
    if examination.wrong:
        checks = "".join(map(_check, examination.wrong))
        yield f'<ul class="perfkit-checks">{checks}</ul>'
    else:
        yield "<p><b>Nothing was found here that costs speed.</b></p>"
    yield f"<p>{_clean(examination.summary())}</p>"
    if examination.well:
        items = "".join(f"<li>{_clean(title)}</li>" for title in examination.well)
        yield f"<details><summary>What is ok</summary><ul>{items}</ul></details>"
    if examination.machine.start and examination.machine.start.said:
        yield _log(examination.machine)
    if examination.ladder:
        yield examination.ladder._repr_html_()
    yield from (f"<p>{_clean(sentence)}</p>" for sentence in examination.missed)
    if examination.stopped:
        yield "<p>It was stopped before everything had been looked at.</p>"


def _check(check: Check) -> str:
    said = (check.evidence, check.why)
    lines = "".join(f"<p>{with_code(_clean(line))}</p>" for line in said if line)
    remedy = with_code(_clean(check.remedy))
    todo = f'<p class="perfkit-do"><b>Do:</b> {remedy}</p>' if remedy else ""
    return (
        f'<li class="perfkit-{check.status}">'
        f"<b>{check.status.upper()}: {_clean(check.title)}</b>{lines}{todo}</li>"
    )


def _log(machine: Machine) -> str:
    rows, rest = log_of(machine)
    items = "".join(_item(*row) for row in rows)
    listed = f"<ul>{items}</ul>" if items else ""
    return (
        "<details><summary>What TensorFlow said as it started</summary>"
        f'{listed}<p class="perfkit-small">{_clean(rest)}</p></details>'
    )


def _item(weight: str, line: str) -> str:
    return f"<li><b>{_clean(weight)}</b>: {with_code(_clean(line))}</li>"


def _clean(text: str) -> str:
    return escape(plain(text, _LONGEST))
