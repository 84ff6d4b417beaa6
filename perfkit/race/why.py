"""Why two sides differ: the parts of their steps, and their packages' versions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from perfkit.diagnosis import changes
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.gains import step_of
from perfkit.diagnosis.rounds import AS_GIVEN, given, to_variant
from perfkit.diagnosis.split import split
from perfkit.findings.diagnosis import Part
from perfkit.findings.report import Fold, Table
from perfkit.findings.reports import part_in_words
from perfkit.measure.host import Environment, Place
from perfkit.measure.measurement import CONTROL, Measurement
from perfkit.race.rounds import ceilings, without
from perfkit.race.side import Side

# What a reader calls the parts of a step.
_PARTS = {
    "input": "waiting for input",
    "transfer": "copying to the device",
    "dispatch": "dispatch overhead",
    "callbacks": "callbacks, metrics and progress bar",
    "epoch ends": "ends of epochs",
    "compute": "compute",
}


def where(
    sides: Sequence[Side], facts: Mapping[str, Facts], measured: Measurement
) -> Fold:
    """Lay the parts of these sides' steps beside each other; empty if unmeasured."""
    columns: dict[str, tuple[float, dict[str, Part]]] = {}
    for side in sides:
        known = facts[side.name]
        timing = measured.timing(side.name)
        if timing and (step := parts(side, known, measured)):
            columns[side.name] = known.batch / timing.rate, step
    rows = tuple(
        (
            label,
            *(
                part_in_words(step[name], step_s)[0] if name in step else ""
                for step_s, step in columns.values()
            ),
        )
        for name, label in _PARTS.items()
        if any(name in step for _, step in columns.values())
    )
    table = Table("", ("part of a step", *columns), rows)
    return Fold("Where the time of a step goes", tables=(table,))


def parts(side: Side, facts: Facts, measured: Measurement) -> dict[str, Part]:
    """Where the time of a side's step goes; empty where that was not measured."""
    applied = ceilings(facts)
    names = {side.name: AS_GIVEN}
    names |= {without(side.name, change): change.name for change in applied}
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
    every, _ = changes.applicable(facts)
    # The samples say whether there is a card, whose copies nobody timed.
    gpus = int(any(name.startswith("gpu0_") for name in measured.samples))
    return split(step_of(view, facts), every, view, facts, gpus=gpus)


def packages(sides: Sequence[Side], environments: Mapping[Place, Environment]) -> Fold:
    """List the packages whose versions differ; empty where all sides share a place."""
    if not environments:
        return Fold("")
    versions = [
        {"Python": known.python, **known.versions}
        for known in (environments[side.place] for side in sides)
    ]
    rows = tuple(
        (name, *(each.get(name, "none") for each in versions))
        for name in dict.fromkeys(name for each in versions for name in each)
        if len({each.get(name) for each in versions}) > 1
    )
    table = Table("", ("package", *(side.name for side in sides)), rows)
    return Fold("Packages that differ", tables=(table,))
