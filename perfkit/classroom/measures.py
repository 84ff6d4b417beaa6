"""What every machine of a class was measured by, and how far they lie apart."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.findings.text import plain
from perfkit.passports.words import title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.passports.record import Passport

_NAME = 60
# More rows than the ladder and the reference trainings have fit no chart.
_MOST = 60


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One rung or reference training, over all machines.

    Attributes:
        name: Of the rung or the training.
        group: The part of the machine that it tries.
        unit: What is counted per second.
        rates: By the place of a machine in its class; those without it are left out.
        median: Of these rates.
    """

    name: str
    group: str
    unit: str
    rates: dict[int, float]
    median: float

    def ratio(self, place: int) -> float | None:
        """A machine's rate over the median; None where it has none."""
        rate = self.rates.get(place)
        return None if rate is None else rate / self.median

    @property
    def ratios(self) -> list[float]:
        """Every machine's rate over the median, the slowest first."""
        return sorted(rate / self.median for rate in self.rates.values())

    @property
    def spread(self) -> float | None:
        """The ratio that nine in ten reach to the one that one in ten does.

        None for fewer than four machines, of which no tenth can be taken.
        """
        if len(self.rates) < 4:
            return None
        tenths = statistics.quantiles(self.ratios, n=10, method="inclusive")
        return tenths[-1] / tenths[0]


def measures(passports: Sequence[Passport]) -> tuple[Measure, ...]:
    """The reference trainings and the rungs that any machine has a rate of."""
    about: dict[tuple[str, str], str] = {}
    rates: dict[tuple[str, str], dict[int, float]] = {}
    for place, passport in enumerate(passports):
        for group, name, unit, rate in _rates(passport):
            # Files come from anywhere: what counts something else is something else.
            about.setdefault((name, unit), group)
            rates.setdefault((name, unit), {})[place] = rate
    shared = sorted(rates, key=lambda key: -len(rates[key]))[:_MOST]
    return tuple(
        Measure(
            name=name,
            group=group,
            unit=unit,
            rates=rates[name, unit],
            median=statistics.median(rates[name, unit].values()),
        )
        for (name, unit), group in about.items()
        if (name, unit) in shared
    )


def _rates(passport: Passport) -> Iterator[tuple[str, str, str, float]]:
    for training in passport.trainings:
        if training.rate:
            yield "reference trainings", title(training), "examples", training.rate
    for rung in passport.rungs:
        if rung.rate:
            group = plain(rung.group, _NAME)
            yield group, plain(rung.name, _NAME), plain(rung.unit, 20), rung.rate
