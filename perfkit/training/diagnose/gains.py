"""From ratios to claims: what slows a training.

What no change proves is inferred: some functions cannot be kept from being traced anew.
What that costs comes from what each trial of the training as given noted, with an
interval over those trials.
"""

from collections.abc import Collection, Sequence

import numpy as np

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import Comparison, student
from perfkit.findings.diagnosis import TOGETHER, WITHOUT_INPUT, Cause, Gain, Seconds
from perfkit.findings.text import as_sentence
from perfkit.questions.shared.verdicts import rounds
from perfkit.training.diagnose import tracing
from perfkit.training.diagnose.causes import OF_INPUT
from perfkit.training.diagnose.causes.model import RETRACING
from perfkit.training.diagnose.change import Change
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.rounds import AS_GIVEN, CLAIMED, PLAIN, SHARES, explains
from perfkit.training.diagnose.tracing import STEADY

# The ceiling gives way to what names the reason, if that brings so much of it.
_EXPLAINS = 0.15
# What a cause has of the change that proved it.
_SHARED = ("cause", "fix", "do", "mind", "subject", "group", "ceiling", "at_least")


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

    No change proves ``inferences``; those named in ``at_once`` were measured together.
    """
    pairs = _list_helpful(changes, measured, at_once)
    ceilings = [(change, c) for change, c in pairs if change.ceiling]
    left_out = {change.name for change, c in ceilings if _is_explained(c, pairs)}
    # One batch again and again has one shape, which keeps functions from being traced
    # anew: then it may not be the input that this ceiling has found.
    untried = (
        change.cause == RETRACING.id and measured.compare(change.name, AS_GIVEN) is None
        for change in changes
    )
    if any(untried) or any(cause.cause == RETRACING.id for cause in inferences):
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
    tracing, where that may bring as much.
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
    as_much = alternative.speedup.high >= cause.speedup.low
    return cause.cause == "callback" and alternative.cause == RETRACING.id and as_much


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
    is_inferred = bool(change.inferred_if) and any(
        change.inferred_if in trial.notes for trial in measured.trials_of(AS_GIVEN)
    )
    how_fast = (
        f"at {compared.ratio:.2f}× the rate (95 % interval {compared.low:.2f} to "
        f"{compared.high:.2f}, {rounds(compared)})"
    )
    if not units.is_known(compared.low, compared.high):
        how_fast = f"faster, by how much is not known yet ({rounds(compared)})"
    return Cause(
        change=change.name,
        kind=change.kind_at(compared.ratio),
        speedup=gain(compared),
        evidence=f"{change.means}{change.changes} That runs {how_fast}.",
        grade="inferred" if is_inferred else "measured here",
        **{name: getattr(change, name) for name in _SHARED},
    )


def ceiling(measured: Measurement) -> Gain | None:
    """What the training without its input reaches; None where that is not known."""
    return measured_gain(WITHOUT_INPUT, measured)


def measured_gain(name: str, measured: Measurement) -> Gain | None:
    """What a variant brings; None where that is left open, or its interval is wide."""
    compared = measured.compare(name, AS_GIVEN)
    if compared is None or not compared.is_judged:
        return None
    return gain(compared) if units.is_known(compared.low, compared.high) else None


# No share of a step is believed to be more than this: the gain has no bound there.
_MAX_SHARE = 0.95


def inferred(
    changes: Sequence[Change], step: Seconds | None, measured: Measurement, facts: Facts
) -> tuple[Cause, ...]:
    """Claim what the trials' notes show, where no change could."""
    is_stopped = any(_stops_it(change, measured) for change in changes)
    if step is None or is_stopped or not facts.retraced:
        return ()
    traced = _traced_s(measured, AS_GIVEN)
    gain = _inferred_gain([seconds / step.median_s for seconds in traced])
    if gain is None:
        return ()
    name, entry = next(iter(facts.retraced.items()))
    function = entry.get("library") or f"`{name}`"
    because = f" ({entry['because'][0]})" if entry["because"] else ""
    share = 1 - 1 / gain.estimate
    evidence = f"Retracing {function} takes {units.percent(share)} of a step{because}."
    fix = (
        f"Make {function} once, outside the loop, and pass it tensors of one shape and "
        "dtype."
    )
    if entry.get("library"):
        fix = "Give it batches of one shape and dtype."
        if entry["made_anew"]:
            fix = "Each call makes it again: make fewer calls, with more examples each."
    cause = Cause(
        cause=RETRACING.id,
        change="",
        kind="defect",
        speedup=gain,
        evidence=f"{as_sentence(RETRACING.means)} {evidence}",
        fix=fix,
        grade="inferred",
        do=RETRACING.do,
        mind=RETRACING.mind,
        subject="Without that the training",
        group=RETRACING.group,
    )
    return (cause,)


def _stops_it(change: Change, measured: Measurement) -> bool:
    """Whether a change was timed that did keep functions from being traced anew."""
    if change.cause != RETRACING.id:
        return False
    after, before = (_traced_s(measured, name) for name in (change.name, AS_GIVEN))
    return bool(after and before and np.mean(after) < np.mean(before) / 2)


def _traced_s(measured: Measurement, name: str) -> list[float]:
    """Seconds of tracing in each step, of those trials of a variant that noted them."""
    trials = (t for t in measured.trials_of(name) if STEADY in t.notes)
    notes = [trial.notes[STEADY] for trial in trials]
    return [n[tracing.NOTE]["seconds"] / n["steps"] for n in notes if n["steps"]]


def _inferred_gain(shares: Sequence[float]) -> Gain | None:
    """The gain from doing away with these shares of trials; None where none shows."""
    if len(shares) < 2:
        return None
    logs = np.log(1 / (1 - np.clip(shares, -_MAX_SHARE, _MAX_SHARE)))
    error = float(logs.std(ddof=1)) / len(logs) ** 0.5
    half = student(len(logs) - 1) * error
    middle = float(logs.mean())
    ends = middle - half, middle, middle + half
    low, estimate, high = (float(np.exp(end)) for end in ends)
    is_shown = low > 1 and estimate >= CLAIMED
    return Gain(estimate=estimate, low=low, high=high) if is_shown else None
