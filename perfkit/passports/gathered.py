"""What a passport takes out of the findings that it is made from."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from perfkit.findings.rungs import rungs
from perfkit.findings.standing import measurement
from perfkit.machine.environment import cleaned
from perfkit.passports.levels import Levels
from perfkit.passports.record import RungRate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perfkit.findings.record import Finding
    from perfkit.measure.trial import Trial

    Columns = Mapping[str, Sequence[float | None]]

# Enough for a chart as wide as a page; half of what a file may hold.
SAMPLES = 150
# Bits and states have no mean, and the machine's record tells what was seen of them.
_NO_MEAN = ("throttle", "link_generation", "link_width")
_LONGEST = 300


def rung_rates(ladder: Finding, names: Iterable[str]) -> tuple[RungRate, ...]:
    """The rungs of a ladder, measured or not.

    Args:
        ladder: A finding of ``machine-ladder``.
        names: Words to leave out: the user's and the host's name.
    """
    levels = Levels(measurement(ladder))
    hidden, found = tuple(names), list[RungRate]()
    for name, rung in rungs(ladder.notes).items():
        level = levels.rate(name)
        missing = "" if level else cleaned(_why(ladder, name), hidden, _LONGEST)
        found.append(
            RungRate(
                name=name,
                group=rung.group,
                what=rung.what,
                unit=rung.unit,
                rate=level.middle if level else None,
                low=level.low if level else None,
                high=level.high if level else None,
                trials=level.trials if level else 0,
                limit=rung.limit,
                limit_from=rung.limit_from,
                missing=missing,
            )
        )
    return tuple(found)


def thinned(
    columns: Columns, most: int = SAMPLES
) -> dict[str, tuple[float | None, ...]]:
    """So many samples at most, each the mean of those that it stands for.

    Args:
        columns: ``"t"`` in seconds, and readings of the same length.
        most: Samples to keep; a mean's time is that of the last of its samples.
    """
    count = len(columns.get("t", ()))
    each = -(-count // most) if count else 1
    starts = range(0, count, each)
    return {
        name: tuple(_one(name, values[start : start + each]) for start in starts)
        for name, values in columns.items()
        if not name.endswith(_NO_MEAN)
    }


def joined(parts: Iterable[tuple[float, Columns]]) -> dict[str, list[float | None]]:
    """Samples of several runs on one clock.

    Args:
        parts: When each run began on that clock, and its samples.
    """
    known = [(began, columns) for began, columns in parts if columns.get("t")]
    names = dict.fromkeys(name for _, columns in known for name in columns)
    whole: dict[str, list[float | None]] = {name: [] for name in names}
    for began, columns in known:
        length = len(columns["t"])
        # The clocks are read a moment apart, and runs come one after another.
        began = max(began, *(t for t in whole["t"][-1:] if t is not None), 0.0)
        for name in names:
            values = columns.get(name, [None] * length)
            shifted = [v if v is None or name != "t" else v + began for v in values]
            whole[name] += shifted
    return whole


def _one(name: str, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return round(known[-1], 2) if name == "t" else _short(statistics.fmean(known))


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _why(ladder: Finding, name: str) -> str:
    if name in ladder.unavailable:
        return f"{ladder.unavailable[name].rstrip('.')}."
    return how_it_failed(t for t in ladder.trials if t.variant == name)


def how_it_failed(trials: Iterable[Trial]) -> str:
    """Why trials that gave no rate gave none, in a sentence."""
    ended = ("completed", "stopped")
    failed = [t.message for t in trials if t.message and t.outcome not in ended]
    return f"It {failed[-1].rstrip('.')}." if failed else "The run ended before it."
