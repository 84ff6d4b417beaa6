"""From ratios to claims: what slows a training, and where the time of a step goes."""

import math
import statistics
from collections.abc import Collection, Iterable, Sequence

from perfkit import units
from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.engine.statistics import Comparison
from perfkit.engine.steady import Steady
from perfkit.findings.diagnosis import (
    TOGETHER,
    WITHOUT_VALIDATION,
    Cause,
    Gain,
    Grade,
    Part,
    Seconds,
)
from perfkit.questions.shared.words import rounds
from perfkit.training.diagnose.causes import OF_INPUT
from perfkit.training.diagnose.change import Change, without_input
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.rounds import AS_GIVEN, CLAIMED, PLAIN, SHARES, explains

# The ceiling gives way to what names the reason, if that brings so much of it.
_EXPLAINS = 0.15
_RETRACING = "retracing"


def step_of(measured: Measurement, facts: Facts) -> Seconds | None:
    """Seconds of a step as given, its share of an epoch's end included."""
    timing = measured.timing(AS_GIVEN)
    if timing is None or not timing.low > 0:
        return None
    ends = (timing.rate, timing.high, timing.low)
    median_s, low, high = (facts.batch / rate for rate in ends)
    return Seconds(median_s=median_s, low=low, high=high)


def causes(
    changes: Sequence[Change],
    measured: Measurement,
    inferences: Sequence[Cause] = (),
    at_once: Collection[str] = (),
) -> tuple[Cause, ...]:
    """What changes proved, the largest gain first.

    Args:
        changes: All that apply.
        measured: What was measured.
        inferences: What no change proves.
        at_once: Names of those that were measured together.
    """
    pairs = _list_helpful(changes, measured, at_once)
    ceilings = [(change, c) for change, c in pairs if change.ceiling]
    left_out = {change.name for change, c in ceilings if _is_explained(c, pairs)}
    # One batch again and again has one shape, which keeps functions from being traced
    # anew: then it may not be the input that this ceiling has found.
    untried = (
        change.cause == _RETRACING and measured.compare(change.name, AS_GIVEN) is None
        for change in changes
    )
    if any(untried) or any(cause.cause == _RETRACING for cause in inferences):
        left_out |= {s.name for s, _ in ceilings if s.cause == "input-bound"}
    left_out.update(set_aside(changes, measured, at_once))
    return rank([_cause(s, c, measured) for s, c in pairs if s.name not in left_out])


def set_aside(
    changes: Sequence[Change], measured: Measurement, at_once: Collection[str] = ()
) -> tuple[str, ...]:
    """Name what helps, but changes what is learnt: to be judged after the defects.

    What dwarfs the defects is not set aside.
    """
    pairs = _list_helpful(changes, measured, at_once)
    plain = [(s, c) for s, c in pairs if s.combines and not s.ceiling]
    defects = [(s, c) for s, c in plain if s.kind_at(c.ratio) == "defect"]
    return tuple(
        change.name
        for change, compared in pairs
        if not change.combines
        and any(
            explains(c.ratio, compared.ratio, SHARES)
            for s, c in defects
            if change.waits_for(s.cause)
        )
    )


def _list_helpful(
    changes: Sequence[Change], measured: Measurement, at_once: Collection[str] = ()
) -> list[tuple[Change, Comparison]]:
    """What is shown to help: by itself, or by all of it at once where nothing else is.

    Where none of them stands out by itself, and they do together, one of them at least
    does help; of each that is faster this is said, as likely.
    """
    faster = [
        (change, compared)
        for change in changes
        if not change.leaves_out
        and (compared := measured.compare(change.name, AS_GIVEN))
        and compared.verdict == "faster"
        and compared.ratio >= CLAIMED
    ]
    helpful = [pair for pair in faster if pair[0].helps(pair[1])]
    together = measured.compare(TOGETHER, AS_GIVEN)
    by_itself = any(change.name in at_once for change, _ in helpful)
    if together and not by_itself and together.verdict == "faster":
        parts = [pair for pair in faster if pair[0].name in at_once]
        helpful += parts if together.stands_out else []
    return helpful


def rank(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """The same causes, the largest gain first; what can be done before what cannot.

    The training without its input is nothing that anybody can have: it comes behind the
    best change of the input, where there is one that brings something plain, and behind
    all else where nothing is wrong with its input. A
    callback that is left out does nothing any more: it comes behind what stops its
    tracing, where that may bring as much. A training without validation comes behind
    one that is validated more seldom, which is what there is to type.
    """

    def place(cause: Cause) -> tuple[bool, float, bool]:
        better = [o.speedup.estimate for o in causes if _is_better_done(o, cause)]
        is_limit = cause.ceiling and cause.kind != "defect"
        gain = cause.speedup.estimate
        return is_limit, -min(gain, max(better, default=gain)), bool(better)

    return tuple(sorted(causes, key=place))


def _is_better_done(alternative: Cause, cause: Cause) -> bool:
    """Whether it can be had, or keeps what is done, where ``cause`` leaves that out."""
    if cause.cause == "input-bound":
        return alternative.cause in OF_INPUT and alternative.speedup.estimate >= PLAIN
    if cause.change == WITHOUT_VALIDATION:
        return alternative.cause == cause.cause and alternative is not cause
    as_much = alternative.speedup.high >= cause.speedup.low
    return cause.cause == "callback" and alternative.cause == _RETRACING and as_much


def healthy(
    changes: Sequence[Change], causes: Sequence[Cause], measured: Measurement
) -> bool:
    """Whether enough was measured to show a defect, and none was."""
    of_lines = {change.name for change in changes if change.leaves_out}
    is_measured = any(
        c.is_judged and c.verdict != "slower" and c.variant not in of_lines
        for c in measured.comparisons
    )
    return is_measured and not any(cause.kind == "defect" for cause in causes)


def gain(compared: Comparison) -> Gain:
    """The ratio as a speed-up."""
    return Gain(estimate=compared.ratio, low=compared.low, high=compared.high)


def _is_explained(ceiling: Comparison, pairs: list[tuple[Change, Comparison]]) -> bool:
    """Whether a change that depends on the ceiling says why it is there.

    An iterator that is made anew for each epoch is input, too; but the ends of epochs
    are few and random, so that no more of their gain counts than is shown.
    """
    return any(
        explains(
            compared.low if c.own_pauses else compared.ratio, ceiling.ratio, _EXPLAINS
        )
        for c, compared in pairs
        if c.after == ceiling.variant or c.own_pauses or c.everywhere
    )


def _cause(change: Change, compared: Comparison, measured: Measurement) -> Cause:
    inferred = bool(change.inferred_if) and any(
        change.inferred_if in trial.notes for trial in measured.trials_of(AS_GIVEN)
    )
    how_fast = (
        f"at {compared.ratio:.2f}× the rate (95 % interval {compared.low:.2f} to "
        f"{compared.high:.2f}, {rounds(compared)})"
    )
    if not units.is_known(compared.low, compared.high):
        how_fast = f"faster, by how much is not known yet ({rounds(compared)})"
    return Cause(
        cause=change.cause,
        change=change.name,
        kind=change.kind_at(compared.ratio),
        speedup=gain(compared),
        evidence=f"{change.means}{change.changes} That runs {how_fast}.",
        fix=change.fix,
        do=change.do,
        mind=change.mind,
        subject=change.subject,
        group=change.group,
        ceiling=change.ceiling,
        at_least=change.at_least,
        grade="inferred" if inferred else "measured here",
    )


def ceiling(changes: Sequence[Change], measured: Measurement) -> Gain | None:
    """What the training without its input reaches; None where that is not known."""
    change = without_input(changes)
    return measured_gain(change.name, measured) if change else None


def measured_gain(name: str, measured: Measurement) -> Gain | None:
    """What a variant brings; None where that is left open, or its interval is wide."""
    compared = measured.compare(name, AS_GIVEN)
    if compared is None or not compared.is_judged:
        return None
    return gain(compared) if units.is_known(compared.low, compared.high) else None


# Where the time of a step goes, worked out from what each change took away. A part is
# what the step loses with its change, by the very ratio that is judged, and as sure as
# that. What is not shown is not known: it is a range, or nothing at all, and never 0.
# What the others leave is compute, so that parts add up to the step.


def split(
    step: Seconds | None,
    changes: Sequence[Change],
    measured: Measurement,
    facts: Facts,
    *,
    gpus: int = 0,
) -> dict[str, Part]:
    """Split a step as given into parts that add up to it; empty where none is known.

    Returns:
        ``input``, ``transfer``, ``dispatch``, ``callbacks``, ``epoch ends``,
        ``compute`` and ``unexplained``.
    """
    if step is None or not units.is_known(step.low, step.high):
        return {}
    savings = _Savings(step.median_s, measured, facts.batch)
    parts = {
        "input": savings.by(without_input(changes), "The training without its input"),
        "transfer": _transfer(savings, changes, gpus),
        "dispatch": _dispatch(savings, changes, facts),
        "callbacks": _callbacks(savings, changes, facts),
    }
    parts["epoch ends"] = savings.epoch_ends()
    parts["compute"] = _compute(step.median_s, parts)
    parts["unexplained"] = _unexplained(step.median_s, parts.values())
    return parts


class _Savings:
    """What changes take away from each step, and what that leaves of epochs' ends."""

    def __init__(self, step_s: float, measured: Measurement, batch: int) -> None:
        self._step_s, self._measured, self._batch = step_s, measured, batch
        self._ends_s = self._ends_of(AS_GIVEN)
        # Of the ends of epochs, by changes that are shown to bring something.
        self._ends_gone_s = 0.0

    def by(self, change: Change | None, label: str) -> Part:
        """The part of a step that a change is shown to take away."""
        compared = self.compared(change)
        if change is None or compared is None:
            return _unknown("not tested", f"{label} was not timed.")
        is_sure = units.is_known(compared.low, compared.high)
        between = f" ({compared.low:.2f} to {compared.high:.2f})" if is_sure else ""
        if compared.verdict == "faster":
            self._ends_gone_s += max(0.0, self._ends_s - self._ends_of(change.name))
            rate = f"at {units.ratio(compared.ratio)} the rate" if is_sure else "faster"
            return _part(
                self._saved(compared.low),
                self._saved(compared.ratio),
                self._saved(compared.high),
                f"{label} runs {rate}{between}, in {rounds(compared)}.",
            )
        basis = f"{label}: {compared.judgement}{between}."
        if compared.verdict == "no difference shown":
            widest = max(compared.high, 1 / compared.low)
            return _part(0.0, None, self._saved(widest), basis)
        return _unknown("measured here", basis)

    def compared(self, change: Change | None) -> Comparison | None:
        """A change against the training as given; None where it was not measured."""
        return self._measured.compare(change.name, AS_GIVEN) if change else None

    def epoch_ends(self) -> Part:
        """What ends of epochs take, less what went with the changes before."""
        trials_of = self._measured.trials_of
        trials = (*trials_of(AS_GIVEN), *trials_of(CONTROL))
        names = {label for trial in trials for label in trial.recurring}
        if not names:
            basis = "No end of an epoch was timed by itself; the steps contain it."
            return _unknown("not tested", basis)
        ends_s = [
            self._batch * s.pauses_s for v in (AS_GIVEN, CONTROL) for s in self._runs(v)
        ]
        remaining_s = max(0.0, self._ends_s - self._ends_gone_s)
        doubt = math.inf
        if len(ends_s) > 1:
            doubt = 2 * statistics.stdev(ends_s) / math.sqrt(len(ends_s))
        return _part(
            remaining_s - doubt,
            remaining_s,
            remaining_s + doubt,
            f"{' and '.join(sorted(names))}, from all trials, divided by the steps of "
            "a real epoch; without the time that other parts already hold.",
        )

    def _saved(self, ratio: float) -> float:
        return self._step_s * (1 - 1 / ratio)

    def _ends_of(self, variant: str) -> float:
        """Seconds of a step that its rate has from ends of epochs."""
        timing, worked = self._measured.timing(variant), self._runs(variant)
        if timing is None or not worked:
            return 0.0
        bare = statistics.geometric_mean(part.rate for part in worked)
        return self._batch * (1 / timing.rate - 1 / bare)

    def _runs(self, variant: str) -> list[Steady]:
        return [part for _, part in self._measured.by_round(variant).values()]


def _transfer(savings: _Savings, changes: Sequence[Change], gpus: int) -> Part:
    if not gpus:
        basis = "There is no GPU, so nothing is copied."
        return Part(seconds=0.0, grade="inferred", how=basis)
    ahead = next((c for c in changes if c.cause == "host-to-device"), None)
    return savings.by(ahead, "Batches copied to the GPU ahead")


def _dispatch(savings: _Savings, changes: Sequence[Change], facts: Facts) -> Part:
    many = max(changes, key=lambda change: change.steps, default=None)
    if many is None or many.steps <= facts.steps_per_execution:
        note = "your own loop decides that" if facts.loop else "not changed"
        return _unknown("not tested", f"Several steps at a time: {note}.")
    part = savings.by(many, f"{many.steps} steps at a time")
    if _upper_s(part) == math.inf:
        return part
    # Many steps at a time still go back to Python now and then.
    factor = 1 / (1 - facts.steps_per_execution / many.steps)
    middle = None if part.seconds is None else factor * part.seconds
    return _part(factor * _lower_s(part), middle, factor * _upper_s(part), part.how)


def _callbacks(savings: _Savings, changes: Sequence[Change], facts: Facts) -> Part:
    off = [c for c in changes if c.cause == "callback"]
    # Where all were left out at once, each alone is in that already.
    ceilings = {c.name for c in off if c.ceiling and savings.compared(c)}
    off = [c for c in off if c.after not in ceilings]
    if not off and not facts.loop:
        basis = "The training has none."
        return Part(seconds=0.0, grade="measured here", how=basis)
    parts = [savings.by(c, f'"{c.name}"') for c in off]
    if not any(map(savings.compared, off)):
        return _unknown("not tested", "None was left out.")
    seconds = [part.seconds for part in parts if part.seconds is not None]
    return _part(
        sum(map(_lower_s, parts)),
        sum(seconds) if len(seconds) == len(parts) else None,
        sum(map(_upper_s, parts)),
        " ".join(part.how for part in parts),
    )


def _compute(step_s: float, named_parts: dict[str, Part]) -> Part:
    """What all others leave; in it what they take while input is waited for."""
    # An end of an epoch that was not timed by itself is in here already.
    parts = [p for n, p in named_parts.items() if n != "epoch ends" or _is_timed(p)]
    seconds = [part.seconds for part in parts if part.seconds is not None]
    middle = step_s - sum(seconds) if len(seconds) == len(parts) else None
    high = step_s - sum(map(_lower_s, parts))
    basis = "The step less the other parts."
    if high >= step_s:
        return _unknown("inferred", f"{basis} None of them is known.")
    low = step_s - sum(map(_upper_s, parts))
    if middle is not None and middle < 0:
        return _part(0.0, None, max(0.0, high), f"{basis} They overlap.", "inferred")
    return _part(low, middle, max(0.0, high), basis, "inferred")


def _unexplained(step_s: float, parts: Iterable[Part]) -> Part:
    timed_parts = [part for part in parts if _is_timed(part)]
    seconds = [part.seconds for part in timed_parts if part.seconds is not None]
    if len(seconds) == len(timed_parts) and math.isclose(sum(seconds), step_s):
        text = "The parts add up to the step."
        return Part(seconds=0.0, grade="inferred", how=text)
    high = max(0.0, step_s - sum(map(_lower_s, timed_parts)))
    text = "At most the step less the other parts, each at its lower end."
    if high >= step_s:
        return _unknown("inferred", "No part is known.")
    return _part(0.0, None, high, text, "inferred")


def _part(
    low: float,
    middle: float | None,
    high: float,
    basis: str,
    grade: Grade = "measured here",
) -> Part:
    """A part within these seconds; with an estimate only where they are narrow."""
    low = max(0.0, low)
    return Part(
        seconds=middle if units.is_known(low, high) else None,
        low=low,
        high=high if high < math.inf else None,
        grade=grade,
        how=basis,
    )


def _unknown(grade: Grade, basis: str) -> Part:
    return Part(seconds=None, grade=grade, how=basis)


def _is_timed(part: Part) -> bool:
    return part.seconds is not None or part.low is not None


def _lower_s(part: Part) -> float:
    return part.low if part.low is not None else part.seconds or 0.0


def _upper_s(part: Part) -> float:
    if part.high is not None:
        return part.high
    return math.inf if part.seconds is None else part.seconds
