"""A finding as a page shows it: texts, pictures and tables, ready to be laid out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from perfkit.export.clean import clean
from perfkit.export.method import VERDICTS, facts, failures, method
from perfkit.export.numbers import Table, tables
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.rungs import is_ladder
from perfkit.findings.sections import sections
from perfkit.findings.text import plain, plain_lines, with_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.record import Finding
    from perfkit.findings.store import Recorded

_SENTENCE = 600


@dataclass(frozen=True, kw_only=True)
class ShownFinding:
    """A finding in texts that a page can hold.

    Attributes:
        question: What was asked.
        headline: The verdict.
        because: What it rests on.
        next: What to do now.
        guess: What the reader expected; "" if nothing.
        warnings: What keeps the verdict from being whole.
        machine: What it was measured on, in a line.
        recorded: When it was begun.
        file: The name of its file; "" where it has none.
        figures: Its charts.
        tables: Its numbers.
        method: How it was measured, as terms and sentences.
        verdicts: What the words of the verdict mean.
        failures: What was said about trials that did not complete.
        facts: What it was asked with and measured on.
    """

    question: str
    headline: str
    because: tuple[Markup, ...]
    next: Markup
    guess: str
    warnings: tuple[str, ...]
    machine: str
    recorded: str
    file: str
    figures: tuple[Markup, ...]
    tables: tuple[Table, ...]
    method: tuple[tuple[str, str], ...]
    verdicts: tuple[tuple[str, str], ...]
    failures: tuple[str, ...]
    facts: tuple[Table, ...]


def shown(found: Recorded, *, charts: bool = True) -> ShownFinding:
    """Prepare a finding, or a diagnosis, for a page.

    Args:
        found: What to show.
        charts: Whether to draw it.
    """
    finding = found.finding if isinstance(found, Diagnosis) else found
    verdict = finding.verdict
    return ShownFinding(
        question=plain(finding.question, _SENTENCE),
        headline=plain(verdict.headline, _SENTENCE),
        because=tuple(
            _with_code(plain(reason, _SENTENCE)) for reason in verdict.because
        ),
        next=_with_code(plain_lines(verdict.next)),
        guess=plain(finding.guess),
        warnings=tuple(_warnings(finding)),
        machine=machine(finding),
        recorded=plain(finding.recorded[:16].replace("T", " ")),
        file=plain(found.path.name, _SENTENCE) if found.path else "",
        figures=tuple(_figures(found)) if charts else (),
        tables=(*_sections(found), *tables(finding)),
        method=tuple(method(finding)),
        verdicts=VERDICTS,
        failures=failures(finding),
        facts=tuple(facts(finding)),
    )


def machine(finding: Recorded) -> str:
    """The machine of a finding in a line, with what trained on it."""
    library = plain(finding.machine.versions.get("tensorflow", ""), 40)
    known = f", TensorFlow {library}" if library else ""
    return f"{plain(finding.machine.summary, _SENTENCE)}{known}"


def _warnings(finding: Finding) -> Iterator[str]:
    if finding.replayed:
        yield finding.stamp
    if finding.ended_early:
        yield finding.ended_early
    if not finding.timings:
        yield "No variant could be timed."
    elif not finding.comparisons and not is_ladder(finding):
        yield "No two variants could be compared."


def _sections(found: Recorded) -> Iterator[Table]:
    if isinstance(found, Diagnosis):
        for section in sections(found):
            yield Table(section.title, section.headings, section.rows)


def _figures(finding: Recorded) -> Iterator[Markup]:
    from perfkit.charts import chart, kinds

    for kind in kinds(finding):
        figure = chart(finding, kind)
        yield clean(figure.svg, alt=figure.alt)


def _with_code(text: str) -> Markup:
    """Escape a text and set what stands between backticks as code."""
    return Markup(with_code(str(escape(text))))
