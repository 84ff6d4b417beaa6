"""What a profile reports: where the time of a few steps went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.profile import Profile

_SHOWN = 8
_NAME = 60
# In front of every operation of a function.
_CALL = "StatefulPartitionedCall/"
# Below this share of its time a step's operations do not tell what it did.
_TELLING = 0.1
_MEANING = (
    "A profile explains a difference that was measured; it never stands in for one. "
    "What a change brings is measured by perfkit.diagnose."
)

_STAGES = "Stages of the input, beside the steps; they wait for each other in this time"


def report(profile: Profile) -> Report:
    """What a person reads of it."""
    missing, ops = profile.missing, len(profile.table) + profile.more_ops
    every = (
        (
            "Operations by their own time" + f", {_SHOWN} of {ops}" * (ops > _SHOWN),
            *("ops", _ops(profile)),
        ),
        (_STAGES, "stages", _stages(profile)),
        ("Kernels", "kernels", _kernels(profile)),
        ("Memory", "memory", _memory(profile)),
    )
    read = f"read by xprof {profile.xprof}" if profile.xprof else "not read"
    recorded = profile.recorded[:16].replace("T", " ")
    foot = (
        f"Recorded on {profile.machine.summary}, {recorded}; "
        f"a trace of {units.size(profile.trace_bytes)}, {read}."
    )
    return Report(
        verdict=Verdict(headline=headline(profile), much=cost(profile)),
        table=_parts(profile),
        besides=(*filter(None, [missing.get("steps")]), *said(profile)),
        folds=tuple(
            Fold(title, (*rows, *filter(None, [missing.get(name)])))
            for title, name, rows in every
        ),
        foot=(foot,),
    )


def headline(profile: Profile) -> str:
    """How many steps there are, and how long one is."""
    count, name = len(profile.traced_s), plain(profile.training, _NAME)
    steps = "step" if count == 1 else "steps"
    if profile.at_a_time > 1:
        steps = f"executions of {profile.at_a_time} steps"
    return (
        f"{name}: {count} {steps} under TensorFlow's profiler, "
        f"{units.seconds(profile.traced_step_s)} each."
    )


def said(profile: Profile) -> Iterator[str]:
    """What is not in the trace, and what it is good for."""
    read, traced = len(profile.steps), len(profile.traced_s)
    if 0 < read < traced:
        yield (
            f"xprof takes {read} of the {traced} steps apart; it leaves out those that "
            "it does not hold for whole."
        )
    if profile.table and named(profile) < _TELLING:
        yield (
            "The operations that the trace names explain less than a tenth of the "
            "steps' time: those of eager steps, those that XLA compiles for a CPU, and "
            "those that TensorFlow holds for cheap have no names in it."
        )
    yield _MEANING


def cost(profile: Profile) -> str:
    """What the steps took with and without the tracer."""
    between = " to ".join(map(units.seconds, profile.usual_step_s))
    without = (
        f"{units.seconds(profile.untraced_step_s)} without it ({between} in most of "
        f"{len(profile.untraced_s)} times)"
    )
    if profile.shows_cost:
        return (
            f"The tracer costs something itself: a step takes {without}, so what is "
            f"below is {units.ratio(profile.cost)} as long."
        )
    return f"No cost of the tracer shows: a step takes {without}."


def named(profile: Profile) -> float:
    """The share of the steps' time that is the model's own named operations'."""
    own = sum(op.self_s for op in profile.table if op.type != "Dataset")
    return own / sum(profile.traced_s)


def _parts(profile: Profile) -> Table:
    whole = sum(step.seconds for step in profile.steps) / max(1, len(profile.steps))
    parts = sorted(profile.parts.items(), key=lambda part: -part[1])
    rows = tuple(
        (name, units.seconds(spent), _share(spent, whole))
        for name, spent in parts
        if spent > 0
    )
    headings = ("part", "each step", "share")
    return Table("Where the time of a step went", headings, rows)


def _ops(profile: Profile) -> list[str]:
    wholes = {
        device: sum(op.self_s for op in profile.table if op.device == device)
        for device in ("host", "device")
    }
    kinds = ("" if op.type in op.name else f", {op.type}" for op in profile.table)
    return [
        f"{short(op.name)}{kind}: {units.seconds(op.self_s)}, "
        f"{_share(op.self_s, wholes[op.device])} of the {op.device}'s, "
        f"{_times(op.count)}"
        for op, kind in zip(profile.table[:_SHOWN], kinds, strict=False)
    ]


def _stages(profile: Profile) -> list[str]:
    whole = sum(stage.self_s for stage in profile.stages)
    return [
        f"{short(stage.name)}: {units.seconds(stage.self_s)} of its own, "
        f"{_share(stage.self_s, whole)}, {_times(stage.count)}"
        for stage in profile.stages[:_SHOWN]
    ]


def _kernels(profile: Profile) -> list[str]:
    whole = sum(kernel.total_s for kernel in profile.launched)
    return [
        f"{plain(kernel.name, _NAME)}: {units.seconds(kernel.total_s)}, "
        f"{_share(kernel.total_s, whole)}, {_times(kernel.count)}"
        + (", tensor cores" if kernel.tensor_cores else "")
        for kernel in profile.launched[:_SHOWN]
    ]


def _memory(profile: Profile) -> list[str]:
    return [
        f"{plain(held.allocator, _NAME)}: at most {units.size(held.peak)} of "
        f"{units.size(held.capacity)} in use"
        for held in profile.held[:_SHOWN]
    ]


def short(name: str, longest: int = _NAME) -> str:
    """The end of a long name: its beginning is the same for all."""
    kept = plain(name).removeprefix(_CALL)
    return kept if len(kept) <= longest else f"…{kept[-longest + 1 :]}"


def _share(part: float, whole: float) -> str:
    return units.percent(part / whole) if whole > 0 else "0 %"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
