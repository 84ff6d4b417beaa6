"""Where the time of a step goes, worked out from what each swap took away.

A swap that is not shown to bring anything takes nothing away; what noise makes of it is
left unexplained, as is what overlaps: two parts of a step at the same time count twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit import units
from perfkit.diagnosis.choosing import AS_GIVEN
from perfkit.diagnosis.swap import without_input
from perfkit.findings.diagnosis import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.swap import Swap
    from perfkit.findings.diagnosis import Seconds
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison
    from perfkit.measure.trial import Trial

UNEXPLAINED = "unexplained"


def split(
    step: Seconds | None,
    swaps: Sequence[Swap],
    measured: Measurement,
    facts: Facts,
    *,
    gpus: int = 0,
) -> dict[str, Part]:
    """Split a step as given into parts that add up to it.

    Args:
        step: As given; None where none was measured.
        swaps: All that apply.
        measured: What was measured.
        facts: What is known of the training.
        gpus: Of this machine.

    Returns:
        ``input``, ``transfer``, ``dispatch``, ``callbacks``, ``epoch ends``,
        ``compute`` and ``unexplained``; empty where no step was measured.
    """
    if step is None:
        return {}
    taken = _Taken(step, measured, facts.batch)
    resident = without_input(swaps)
    found = {
        "input": taken.by(resident, "The training without its input"),
        "transfer": _transfer(taken, swaps, gpus),
        "dispatch": _dispatch(taken, swaps, facts),
        "callbacks": _callbacks(taken, swaps, facts),
        "epoch ends": _epoch_ends(taken, measured),
    }
    found["compute"] = _compute(taken, resident, found)
    left = step.median_s - sum(part.seconds for part in found.values())
    found[UNEXPLAINED] = Part(
        seconds=left,
        grade="inferred",
        how="What the other parts leave of the step: noise, and what none of them "
        "covers; below 0 where parts overlap and count twice.",
    )
    return found


class _Taken:
    """What a swap takes away from each step, the ends of epochs apart."""

    def __init__(self, step: Seconds, measured: Measurement, batch: int) -> None:
        self._step_s, self._measured, self._batch = step.median_s, measured, batch
        self.ends_s = self._ends_s(AS_GIVEN)

    def by(self, swap: Swap | None, what: str) -> Part:
        """The part of a step that a swap is shown to take away; 0 where it is not."""
        compared = self.compared(swap)
        if swap is None or compared is None:
            return Part(seconds=0.0, grade="not tested", how=f"{what} was not timed.")
        if compared.verdict != "faster":
            return Part(
                seconds=0.0,
                grade="measured here",
                how=f"{what}: {compared.verdict} ({_between(compared)}).",
            )
        saved = self._step_s - self.without(swap) - self.ends_s
        return Part(
            seconds=max(0.0, saved),
            grade="measured here",
            how=f"{what} runs at {units.ratio(compared.ratio)} the rate "
            f"({_between(compared)}, {compared.rounds} rounds).",
        )

    def compared(self, swap: Swap | None) -> Comparison | None:
        """A swap against the training as given; None where it was not measured."""
        return self._measured.compare(swap.name, AS_GIVEN) if swap else None

    def without(self, swap: Swap) -> float:
        """Seconds of a step with a swap, without its share of the ends of epochs."""
        compared = self.compared(swap)
        assert compared is not None
        return self._step_s / compared.ratio - self._ends_s(swap.name)

    def _ends_s(self, variant: str) -> float:
        ends = [
            recurring_s(trial)
            for trial in self._measured.of(variant)
            if trial.outcome == "completed" and trial.recurring
        ]
        return self._batch * float(np.mean(ends)) if ends else 0.0


def recurring_s(trial: Trial) -> float:
    """Seconds that pauses which come again add to each example of a trial."""
    times = np.array([t for t, _ in trial.ticks])
    counts = np.array([n for _, n in trial.ticks])[1:]
    worked = counts > 0
    example_s = 0.0
    if worked.any():
        example_s = float(np.median(np.diff(times)[worked] / counts[worked]))
    return sum(
        max(0.0, (float(np.mean(trial.pauses[label])) - within * example_s) / every)
        for label, (every, within) in trial.recurring.items()
        if trial.pauses.get(label)
    )


def _transfer(taken: _Taken, swaps: Sequence[Swap], gpus: int) -> Part:
    if not gpus:
        how = "There is no GPU: batches stay where they are."
        return Part(seconds=0.0, grade="read from the driver", how=how)
    to_device = [swap for swap in swaps if swap.cause == "host-to-device"]
    return taken.by(to_device[0] if to_device else None, "A batch kept on the device")


def _dispatch(taken: _Taken, swaps: Sequence[Swap], facts: Facts) -> Part:
    many = max(swaps, key=lambda swap: swap.steps, default=None)
    if many is None or many.steps <= facts.steps_per_execution:
        why = "a loop of your own decides that itself" if facts.loop else "not swapped"
        return Part(
            seconds=0.0, grade="not tested", how=f"Several steps at a time: {why}."
        )
    part = taken.by(many, f"{many.steps} steps at a time")
    # Many steps at a time still go back to Python now and then.
    whole = part.seconds / (1 - facts.steps_per_execution / many.steps)
    return Part(seconds=whole, grade=part.grade, how=part.how)


def _callbacks(taken: _Taken, swaps: Sequence[Swap], facts: Facts) -> Part:
    off = [swap for swap in swaps if swap.cause == "callback"]
    timed = [swap for swap in off if taken.compared(swap)]
    # Where all were left out at once, each alone is in that already.
    whole = {swap.name for swap in timed if swap.ceiling}
    timed = [swap for swap in timed if swap.after not in whole]
    if not timed:
        if not off and not facts.loop:
            how = "There is none to leave out."
            return Part(seconds=0.0, grade="measured here", how=how)
        return Part(seconds=0.0, grade="not tested", how="None was left out.")
    parts = [taken.by(swap, f'"{swap.name}"') for swap in timed]
    shown = [part.how for part in parts if part.seconds]
    return Part(
        seconds=sum(part.seconds for part in parts),
        grade="measured here",
        how=" ".join(shown) or "None of them, left out alone, is shown to take time.",
    )


def _epoch_ends(taken: _Taken, measured: Measurement) -> Part:
    seen = {label for t in measured.of(AS_GIVEN) for label in t.recurring}
    if not seen:
        how = "No end of an epoch was timed by itself; it is part of the steps."
        return Part(seconds=0.0, grade="not tested", how=how)
    return Part(
        seconds=taken.ends_s,
        grade="measured here",
        how=f"Timed in each trial as given: {' and '.join(sorted(seen))}, shared out "
        "over the steps of a real epoch.",
    )


def _compute(taken: _Taken, resident: Swap | None, found: dict[str, Part]) -> Part:
    if resident is None or taken.compared(resident) is None:
        how = "The training without its input was not timed."
        return Part(seconds=0.0, grade="not tested", how=how)
    others = found["dispatch"].seconds + found["callbacks"].seconds
    return Part(
        seconds=max(0.0, taken.without(resident) - others),
        grade="inferred",
        how="A step without input, less dispatch and callbacks; what they take while "
        "input is waited for is in it.",
    )


def _between(compared: Comparison) -> str:
    return f"{compared.low:.2f} to {compared.high:.2f}"
