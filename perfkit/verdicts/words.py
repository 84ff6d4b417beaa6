"""What every verdict says in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison


def quoted(name: str) -> str:
    """A variant's name as it stands in a sentence."""
    return f'"{name}"'


def listed(names: Sequence[str]) -> str:
    """Several names in a sentence."""
    *first, last = [quoted(name) for name in names]
    return f"{', '.join(first)} or {last}" if first else last


def interval(compared: Comparison) -> str:
    """How sure a comparison is."""
    low, high = units.significant(compared.low), units.significant(compared.high)
    rounds = f"{compared.rounds} round{'s' * (compared.rounds != 1)}"
    return f"95 % interval {low} to {high}, {rounds}"


def noise(measured: Measurement) -> Iterator[str]:
    """The noise floor, where it is known."""
    floor = measured.noise_floor
    if floor is not None:
        yield (
            f"The noise floor is {units.percent(floor - 1)}: what "
            f"{quoted(measured.baseline)} differs from itself in this run, and the "
            "doubt in that. No smaller difference is claimed."
        )


def failures(measured: Measurement) -> tuple[str, ...]:
    """How trials ended that did not complete, once for each variant."""
    ended = {
        trial.variant: trial.message or trial.outcome
        for trial in measured.trials
        if trial.outcome not in ("completed", "stopped") and not trial.is_try
    }
    unavailable = {
        arm.name: arm.unavailable for arm in measured.arms if arm.unavailable
    }
    return tuple(
        f"{quoted(name)} {how}." for name, how in (ended | unavailable).items()
    )
