"""Why two sides differ: parts of their steps, what starting costs, what runs them."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from perfkit import units
from perfkit.diagnosis import changes
from perfkit.diagnosis.epochs import EPOCH_END
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.gains import step_of
from perfkit.diagnosis.rounds import AS_GIVEN, given, to_variant
from perfkit.diagnosis.split import split
from perfkit.findings.diagnosis import Part
from perfkit.findings.report import Fold, Table
from perfkit.findings.reports import part_in_words
from perfkit.machine.starting import said
from perfkit.measure.host import Environment
from perfkit.measure.measurement import CONTROL, Measurement
from perfkit.measure.pay_back import Line, pay_back
from perfkit.measure.steady import Steady
from perfkit.measure.trial import FIRST_STEP_S, Trial
from perfkit.race.rounds import ceilings, without
from perfkit.race.side import MADE_S, Side

# What a reader calls the parts of a step.
_PARTS = {
    "input": "waiting for input",
    "transfer": "copying to the device",
    "dispatch": "dispatch overhead",
    "callbacks": "callbacks, metrics and progress bar",
    "epoch ends": "ends of epochs",
    "compute": "compute",
}
# Which environment says so hangs on the order of its lines alone.
_ABSL = "before absl::InitializeLog()"
# Parts that no version of a training is without.
_OWN = ("input", "dispatch", "callbacks")


# The least share of a difference that a part which explains it makes.
_GOOD_PART = 0.25


def facts_of(side: Side, facts: Mapping[str, Facts]) -> Facts:
    """What is known of a side, with the batch that it has in the race."""
    known = facts[side.name]
    return replace(known, batch=side.batch or known.batch)


def parts(side: Side, facts: Facts, measured: Measurement) -> dict[str, Part]:
    """Where the time of a side's step goes; empty where that was not measured."""
    applied = ceilings(facts)
    names = {side.name: AS_GIVEN}
    names |= {without(side.name, one): one.name for one in applied}
    if side.name == measured.baseline:
        names[CONTROL] = CONTROL
    view = Measurement(
        variants=(given(), *map(to_variant, applied)),
        trials=tuple(
            replace(trial, variant=names[trial.variant])
            for trial in measured.trials
            if trial.variant in names
        ),
        notes=measured.notes,
        baseline=AS_GIVEN,
    )
    if not view.comparisons:
        return {}
    step = step_of(view, facts)
    every, _ = changes.applicable(facts)
    # What was sampled says whether there is a card, whose copies nobody timed.
    gpus = int(any(name.startswith("gpu0_") for name in measured.samples))
    return split(step, every, view, facts, gpus=gpus)


def where(
    sides: Sequence[Side], facts: Mapping[str, Facts], measured: Measurement
) -> tuple[str, Fold]:
    """Which part of a step differs, in a sentence, and all parts of both."""
    found: dict[str, tuple[float, dict[str, Part]]] = {}
    for side in sides:
        known = facts_of(side, facts)
        timing = measured.timing(side.name)
        split_up = parts(side, known, measured)
        if timing and split_up:
            found[side.name] = known.batch / timing.rate, split_up
    batches = {facts_of(side, facts).batch for side in sides}
    rows = tuple(
        (
            said,
            *(part_in_words(p[name], whole)[0] for whole, p in found.values()),
        )
        for name, said in _PARTS.items()
        if any(name in p for _, p in found.values())
    )
    headings = ("part of a step", *found)
    fold = Fold("Where the time of a step goes", tables=(Table("", headings, rows),))
    # Steps of other batches take other times for other work.
    differs = _differs(found) if len(batches) == 1 else ""
    return differs, fold if found else Fold("")


def _differs(found: Mapping[str, tuple[float, dict[str, Part]]]) -> str:
    """The part that is shown to differ most between the first and the last."""
    if len(found) < 2:
        return ""
    (first, (whole, one)), *_, (last, (whole_, other)) = found.items()
    apart = {name: _gap(one.get(name), other.get(name)) for name in _OWN}
    more = whole_ - whole
    # The slower side's part is the larger one, and makes a good part of the difference.
    apart = {name: math.copysign(1, more) * gap for name, gap in apart.items()}
    name = max(apart, key=apart.__getitem__)
    if not apart[name] > _GOOD_PART * abs(more):
        return ""
    mine, _ = part_in_words(one[name], whole)
    theirs, _ = part_in_words(other[name], whole_)
    return (
        f"The difference lies in {_PARTS[name]}: {theirs} of a step in {last}, "
        f"{mine} in {first}."
    )


def _gap(one: Part | None, other: Part | None) -> float:
    """Seconds that the second is longer at least; 0.0 where they may be the same."""
    ends = [(p.low, p.high) for p in (one, other) if p]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    if len(known) < 2:
        return 0.0
    (low, high), (low_, high_) = known
    return max(0.0, low_ - high) - max(0.0, low - high_)


def starting(
    sides: Sequence[Side], facts: Mapping[str, Facts], measured: Measurement
) -> Fold:
    """What comes before and between the steps of each side, apart from them."""
    rows = []
    for side in sides:
        trials = [t for t in measured.of(side.name) if t.outcome == "completed"]
        timing = measured.timing(side.name)
        if not trials or timing is None:
            continue
        made, first = (_median(trials, name) for name in (MADE_S, FIRST_STEP_S))
        step_s = facts_of(side, facts).batch / timing.rate
        ends = [s for t in trials for s in t.pauses.get(EPOCH_END, ())]
        rows.append(
            (
                side.name,
                units.seconds(made) if made is not None else units.UNKNOWN,
                (
                    units.seconds(first - made)
                    if made is not None and first is not None
                    else units.UNKNOWN
                ),
                units.seconds(step_s),
                units.seconds(statistics.median(ends)) if ends else units.UNKNOWN,
            )
        )
    headings = ("", "set-up", "first step", "step", "end of an epoch")
    paid = filter(None, (_pays(s, sides[0], facts, measured) for s in sides[1:]))
    return Fold(
        "Starting, steps and ends of epochs, apart",
        tuple(paid),
        (Table("", headings, tuple(rows)),),
    )


def _pays(
    side: Side, baseline: Side, facts: Mapping[str, Facts], measured: Measurement
) -> str:
    """From how many steps on a side that starts later has caught up."""
    batches = {s.name: facts_of(s, facts).batch for s in (side, baseline)}

    def line(trial: Trial, part: Steady) -> Line | None:
        first = trial.notes.get(FIRST_STEP_S)
        if not isinstance(first, float):
            return None
        each = 1 / part.rate
        return Line(first - batches[trial.variant] * each, each)

    for one, other in ((side, baseline), (baseline, side)):
        paid = pay_back(measured, one.name, other.name, line)
        # Who starts later is claimed only where the interval leaves no doubt of it.
        if paid and paid.paying == "pays back" and paid.low > 0:
            steps = paid.steps(facts_of(one, facts).batch)
            return (
                f"{one.name} starts later than {other.name} and has caught up after "
                f"{steps}."
            )
        if paid and paid.paying == "at once" and paid.high == 0:
            return f"{one.name} also starts no later than {other.name}."
    return ""


def _median(trials: Sequence[Trial], name: str) -> float | None:
    told = [t.notes[name] for t in trials if isinstance(t.notes.get(name), float)]
    return statistics.median(told) if told else None


def environments(
    sides: Sequence[Side],
    known: Mapping[Any, Environment],
    logs: Mapping[Any, str],
    names: Sequence[str],
) -> Fold:
    """What differs in what the sides run on: packages, and what TensorFlow says.

    Args:
        sides: Of the race.
        known: What each place is.
        logs: What TensorFlow said there when it was loaded.
        names: Words that no file holds: the user's and the host's name.
    """
    places = [known[side.place] for side in sides if side.place in known]
    if len(places) < len(sides):
        return Fold("")
    versions = [{"Python": one.python, **one.versions} for one in places]
    every = dict.fromkeys(name for one in versions for name in one)
    rows = tuple(
        (name, *(one.get(name, "none") for one in versions))
        for name in every
        if len({one.get(name) for one in versions}) > 1
    )
    headings = ("package", *(side.name for side in sides))
    lines = [
        {s.line for s in said(logs.get(side.place, ""), names) if _ABSL not in s.line}
        for side in sides
    ]
    common = set.intersection(*lines) if lines else set()
    told = tuple(
        (side.name, line)
        for side, own in zip(sides, lines, strict=True)
        for line in sorted(own - common)
    )
    return Fold(
        "What differs between the environments",
        tables=(
            Table("Packages", headings, rows),
            Table("Said by TensorFlow as it starts, there alone", ("", "line"), told),
        ),
    )
