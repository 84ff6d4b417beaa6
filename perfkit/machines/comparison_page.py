"""A comparison of two machines as a page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.export.page import laid_out, page_of, save
from perfkit.findings.reading import written
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.findings.tables import frame
from perfkit.findings.text import plain
from perfkit.machines import comparison_words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pandas import DataFrame

    from perfkit.machines.comparison import Change, Explained, Explanation
    from perfkit.machines.ratios import RungRatio


_COLUMNS = (
    *("work", "part", "a", "b", "change", "low", "high"),
    *("share", "share_low", "share_high", "predicted", "rungs", "why"),
)
_DIGITS = 6


def table(found: Explanation) -> DataFrame:
    """One row per job and part; the part ``"all"`` is the whole."""
    rows = [row for work in found.works for row in _rows(work)]
    return frame(rows, _COLUMNS)


def to_json(found: Explanation) -> str:
    """Write it as JSON; numbers are short, and what is not known is null."""
    return json.dumps(
        _short(json.loads(written(found))), ensure_ascii=False, separators=(",", ":")
    )


def tables(found: Explanation) -> tuple[Table, ...]:
    """What stands on a page, the most wanted first."""
    about = (_jobs, _split, _differences, _rungs, _missing)
    return tuple(table for table in (tell(found) for tell in about) if table.rows)


def _rows(work: Explained) -> Iterator[dict[str, Any]]:
    told = work.predicted.seconds if work.predicted else None
    change = None if work.a is None or work.b is None else work.b - work.a
    whole = {"a": work.a, "b": work.b, "change": change, "predicted": told}
    yield {"work": work.name, "part": "all", "why": work.missing} | whole
    for one in work.changes:
        fields = {name: getattr(one, name) for name in _COLUMNS[2:]}
        rungs = ", ".join(one.rungs)
        yield {"work": work.name, "part": one.name} | fields | {"rungs": rungs}


def _jobs(found: Explanation) -> Table:
    most = found.main
    compared = [work for work in found.works if work.speed is not None]
    strong = compared.index(most) if most in compared else -1
    heads = ("job", "on A", "on B", "B against A", "shown", "expected of B by rungs")
    return Table("The same job on both", heads, tuple(map(_job, compared)), strong)


def _job(work: Explained) -> tuple[str, ...]:
    told = work.predicted
    expected = "rungs or the split are missing"
    if told is not None:
        expected = units.between(
            told.seconds, told.low, told.high, comparison_words.seconds
        )
    speed = work.speed
    ratio = units.ratio_between(speed.ratio, speed.low, speed.high)  # type: ignore[union-attr]
    both = comparison_words.seconds(work.a), comparison_words.seconds(work.b)
    return work.name, *both, ratio, speed.verdict, expected  # type: ignore[union-attr]


def _split(found: Explanation) -> Table:
    rows = tuple(
        _part(work, one)
        for work in found.works
        for one in work.changes
        if one.a or one.b
    )
    heads = ("job, part", "on A", "on B", "change", "share", "expected", "rungs")
    return Table("Where the time of a step goes", heads, rows)


def _part(work: Explained, one: Change) -> tuple[str, ...]:
    change = "not measured"
    if one.change is not None and one.low is not None and one.high is not None:
        change = units.between(one.change, one.low, one.high, comparison_words.seconds)
    return (
        f"{work.name}, {one.name}",
        comparison_words.seconds(one.a),
        comparison_words.seconds(one.b),
        change,
        comparison_words.share(one),
        "" if one.predicted is None else comparison_words.seconds(one.predicted),
        ", ".join(one.rungs),
    )


def _differences(found: Explanation) -> Table:
    rows = tuple(
        (one.what, one.a, one.b, ", ".join(one.parts) or "nothing known")
        for one in found.differences
    )
    heads = ("what", "A", "B", "can slow")
    return Table("What differs in the machines", heads, rows)


def _rungs(found: Explanation) -> Table:
    rows = tuple(map(_rung, found.rungs))
    heads = ("part of the machine", "A", "B", "B over A", "shown")
    return Table("How fast each part of the machines is", heads, rows)


def _rung(rung: RungRatio) -> tuple[str, ...]:
    rates = (_rate(rung.a, rung.unit), _rate(rung.b, rung.unit))
    if rung.speed is None:
        return rung.name, *rates, "", plain(rung.missing, 120)
    speed = rung.speed
    ratio = units.ratio_between(speed.ratio, speed.low, speed.high)
    return rung.name, *rates, ratio, speed.verdict


def _missing(found: Explanation) -> Table:
    told = found.job
    rows = tuple(("the whole", f"{o.what}: {o.a} on A, {o.b} on B") for o in told)
    rows += tuple((work.name, work.missing) for work in found.works if work.missing)
    return Table("What is not compared", ("job", "why"), rows)


def _rate(value: float | None, unit: str) -> str:
    return "" if value is None else units.rate(value, unit)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_short(item) for item in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def report(found: Explanation) -> Report:
    """What a person reads of it."""
    first, *others = tables(found) or (None,)
    advice = tuple(map(comparison_words.advised, found.advice))
    most = found.main
    speed = most.speed if most else None
    verdict = Verdict(
        headline=found.headline,
        much=comparison_words.much(found.works),
        sure="sure" if speed else "",
        interval=comparison_words.interval(speed)[1] if speed else "",
        next="\n".join((*advice[:1], *found.next)),
    )
    return Report(
        verdict=verdict,
        question="Two machines: why does the same training run differently?",
        table=first,
        folds=(
            Fold("How sure is this?", found.because),
            Fold("What to do on the slower machine", advice),
            *(Fold(table.title, tables=(table,)) for table in others),
        ),
        foot=tuple(comparison_words.legend(found)),
    )


def write(found: Explanation, path: str | Path) -> Path:
    """Write the page; it is whole or not there at all."""
    return save(path, lambda: page(found))


def page(found: Explanation) -> str:
    """Lay an explanation out as a page."""
    return laid_out([page_of(report(found), found.charts.values())])
