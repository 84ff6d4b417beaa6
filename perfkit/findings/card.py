"""A finding as a card: the verdict, what it rests on, the numbers, the machine.

Once as text for a terminal, once as HTML for a notebook, whose colours it takes over.
All that was read from a file is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.sections import sections
from perfkit.findings.standing import (
    Standing,
    heading,
    of_limit,
    rate,
    standings,
    unknowns,
)
from perfkit.findings.text import plain, plain_lines, with_code

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from perfkit.findings.diagnosis import Diagnosis
    from perfkit.findings.record import Finding, Verdict
    from perfkit.findings.sections import Section


_PLACES = {"fastest": "the fastest here", "tied": "among the fastest here", "": ""}
# No colour of its own: a notebook's theme, light or dark, shows through. JupyterLab
# lays tables of numbers out to the right; these are mostly words.
_STYLE = """
.perfkit-card {border-left: 4px solid #808080; padding: 2px 0 2px 14px; max-width: 62em}
.perfkit-card p {margin: .35em 0}
.perfkit-card .perfkit-headline {font-size: 1.2em; font-weight: 600}
.perfkit-card .perfkit-next {white-space: pre-wrap}
.perfkit-card .perfkit-scroll {overflow-x: auto}
.perfkit-card table {color: inherit; border-collapse: collapse; margin: .6em 0;
  font-size: .95em; table-layout: auto !important}
.perfkit-card table th, .perfkit-card table td {text-align: left !important;
  padding: 3px 16px 3px 0; vertical-align: top; border-bottom: 1px solid #80808060;
  max-width: 26em; min-width: 6.5em}
.perfkit-card table td:nth-child(2) {white-space: nowrap}
.perfkit-card tr.perfkit-first {font-weight: 600}
.perfkit-card .perfkit-stamp {border: 1px solid; padding: 2px 8px; font-weight: 600}
.perfkit-card .perfkit-small {font-size: .88em; opacity: .85}
"""


def in_text(finding: Finding) -> str:
    """The card for a terminal or a log."""
    verdict = finding.verdict
    lines = [finding.stamp] if finding.replayed else []
    lines += [f"{plain(finding.experiment)}: {plain(verdict.headline)}"]
    lines += [f"  - {plain(reason)}" for reason in verdict.because]
    if verdict.next:
        lines.append("Next: " + plain_lines(verdict.next).replace("\n", "\n  "))
    stood = standings(finding)
    rows = [_headings(stood), *(_cells(standing) for standing in stood)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        lines.append("  " + "  ".join(padded).rstrip())
    return "\n".join([*lines, *_notes(finding)])


def in_html(finding: Finding) -> str:
    """The card for a notebook or a page."""
    return framed(
        stamped(finding.stamp),
        f"<p>{escape(plain(finding.question))}</p>",
        *said(finding.verdict),
        _table(standings(finding)),
        *(f'<p class="perfkit-small">{escape(n)}</p>' for n in _notes(finding)),
    )


def verdict_in_html(verdict: Verdict, stamp: str = "") -> str:
    """A verdict alone, for a notebook that has shown the rest."""
    return framed(stamped(stamp), *said(verdict))


def framed(*parts: str) -> str:
    """Put parts of HTML into a card."""
    return f'<div class="perfkit-card"><style>{_STYLE}</style>{"".join(parts)}</div>'


def stamped(stamp: str) -> str:
    """Where and when a recording is from, as HTML; "" for what was run."""
    return f'<p class="perfkit-stamp">{escape(stamp)}</p>' if stamp else ""


def said(verdict: Verdict) -> Iterator[str]:
    """A verdict as parts of HTML."""
    yield f'<p class="perfkit-headline">{escape(plain(verdict.headline))}</p>'
    reasons = (f"<li>{with_code(escape(plain(r)))}</li>" for r in verdict.because)
    if verdict.because:
        yield f"<ul>{''.join(reasons)}</ul>"
    yield _next(verdict.next)


def _next(text: str) -> str:
    if not text:
        return ""
    said = with_code(escape(plain_lines(text)))
    return f'<p class="perfkit-next"><b>Next:</b> {said}</p>'


def _headings(rows: tuple[Standing, ...]) -> tuple[str, str, str, str]:
    against = "limit in theory" if any(row.limit for row in rows) else "its baseline"
    return (
        "variant",
        f"{heading(rows)} (95 % interval)",
        f"against {against}",
        "verdict",
    )


def _table(rows: tuple[Standing, ...]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{text}</th>' for text in _headings(rows))
    body = "".join(map(_table_row, rows))
    return (
        # What can be scrolled must be reached by keyboard as well.
        '<div class="perfkit-scroll" tabindex="0">'
        f"<table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _table_row(standing: Standing) -> str:
    name, *rest = (escape(text) for text in _cells(standing))
    first = ' class="perfkit-first"' if standing.place == "fastest" else ""
    cells = "".join(f"<td>{text}</td>" for text in rest)
    return f'<tr{first}><th scope="row">{name}</th>{cells}</tr>'


def _cells(standing: Standing) -> tuple[str, str, str, str]:
    """One row of the table: the variant, its rate, its ratio, what that means."""
    name, timing, compared = (
        plain(standing.variant, 60),
        standing.timing,
        standing.comparison,
    )
    if timing is None:
        return name, "not timed", "", standing.problem
    ratio, words = of_limit(standing), "baseline" if standing.is_baseline else ""
    if compared:
        ratio = compared.interval
        if compared.baseline != standing.group:
            ratio += f" of {plain(compared.baseline, 60)}"
        words = compared.judgement
    said = (words, _PLACES[standing.place], standing.problem)
    return name, rate(standing), ratio, "; ".join(filter(None, said))


def _notes(finding: Finding) -> Iterator[str]:
    yield from unknowns(finding)
    if finding.noise_floor is None:
        yield "Noise floor: unknown; the run was too short to measure it."
    else:
        floor = units.percent(abs(finding.noise_floor - 1))
        yield f"Noise floor: {floor}. No smaller difference is claimed."
    yield from footnotes(finding)
    yield from saved(finding.path)


def footnotes(finding: Finding) -> Iterator[str]:
    """What it was measured on, and when; whether it ended early."""
    if finding.guess:
        yield f"Your guess: {plain(finding.guess)}"
    recorded = plain(finding.recorded[:16].replace("T", " "))
    tensorflow = finding.machine.versions.get("tensorflow", "")
    machine = plain(finding.machine.summary)
    library = f", TensorFlow {plain(tensorflow, 20)}" if tensorflow else ""
    yield f"Measured on {machine}{library}, {recorded}."
    if finding.ended_early:
        yield finding.ended_early


def saved(path: Path | None) -> Iterator[str]:
    """Where it is saved, without the way there; nothing where it is not."""
    if path:
        yield f"Saved as {plain('/'.join(path.parts[-2:]))}"


# With so many cells a row's last one takes a line of its own.
_LONG_ROW = 4


def diagnosis_in_text(found: Diagnosis) -> str:
    """The report for a terminal or a log."""
    first = f"{plain(found.training)}: {plain(found.verdict, 600)}"
    stamp = filter(None, [found.finding.stamp])
    return "\n".join([*stamp, first, *lines(found), *saved(found.path)])


def lines(found: Diagnosis) -> Iterator[str]:
    """What follows the verdict, line by line."""
    parts = list(sections(found))
    for section in parts[:1]:
        yield from _in_lines(section)
    if found.because:
        yield "Because"
        yield from (f"  - {plain(reason, 600)}" for reason in found.because)
    for section in parts[1:]:
        yield from _in_lines(section)
    if found.next:
        yield "Next: " + plain_lines(found.next).replace("\n", "\n  ")
    yield from footnotes(found.finding)


def diagnosis_in_html(found: Diagnosis) -> str:
    """The report for a notebook or a page."""
    finding = found.finding
    return framed(
        stamped(finding.stamp),
        f"<p>{escape(plain(finding.question))}</p>",
        *said(finding.verdict),
        *map(_in_html, sections(found)),
        *(
            f'<p class="perfkit-small">{escape(note)}</p>'
            for note in (*footnotes(finding), *saved(found.path))
        ),
    )


def _in_lines(section: Section) -> Iterator[str]:
    yield section.title
    for name, *cells in section.rows:
        apart = cells.pop() if len(cells) >= _LONG_ROW else ""
        words = ", ".join(filter(None, cells))
        yield f"  {name}: {words}" if name else f"  {words}"
        yield from (f"     {line}" for line in apart.splitlines())


def _in_html(section: Section) -> str:
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in section.headings)
    body = "".join(map(_row, section.rows))
    return (
        # What can be scrolled must be reached by keyboard as well.
        '<div class="perfkit-scroll" tabindex="0">'
        "<table><caption style='text-align:left;font-weight:600'>"
        f"{escape(section.title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(cells: tuple[str, ...]) -> str:
    name, *rest = map(escape, cells)
    texts = "".join(f'<td class="perfkit-next">{text}</td>' for text in rest)
    return f'<tr><th scope="row">{name}</th>{texts}</tr>'
