"""A few steps of a training as TensorFlow's profiler saw them, read by xprof.

A profile explains a difference that was measured and never stands in for one.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from perfkit import units
from perfkit.findings import record as records
from perfkit.findings.record import frame
from perfkit.findings.report import Fold, Report, Table, Verdict
from perfkit.findings.text import minute, one_line

if TYPE_CHECKING:
    from pandas import DataFrame


Device = Literal["host", "device"]
# What a file is checked against.
Seconds = Annotated[float, Meta(ge=0)]
_FEW, _SOME = Meta(max_length=1000), Meta(min_length=1, max_length=1000)
Times = Annotated[tuple[Annotated[float, Meta(gt=0)], ...], _SOME]
# The type of an operation that is a stage of the input.
_STAGE = "Dataset"


@dataclass(frozen=True, kw_only=True)
class Op:
    """One operation of the graph, over all traced steps.

    Its type is such as ``"MatMul"``, or ``"Dataset"`` for a stage of the input. The
    seconds are of all runs, ``self_s`` without what ran within them.
    """

    name: str
    type: str
    device: Device
    count: int
    total_s: float
    self_s: Seconds


@dataclass(frozen=True, kw_only=True)
class ProfiledStep:
    """A step, taken apart by xprof.

    ``parts`` has the seconds of each part, such as ``"input"``: the wait for it.
    """

    name: str
    seconds: Seconds
    parts: Annotated[dict[str, Seconds], Meta(max_length=50)]


@dataclass(frozen=True, kw_only=True, repr=False)
class Profile(records.Replayable):
    """A few steps of one training on one machine, under the profiler.

    Attributes:
        training: The name of the function that makes it.
        recorded: When it began, ISO 8601 with the offset from UTC.
        machine: What it ran on.
        xprof: Version of what read the trace.
        traced_s: Seconds of each traced step.
        untraced_s: Seconds of a step without the tracer, the mean of as many steps as
            were traced, for each time that they were timed in the same process.
        at_a_time: Steps of the training in each of these; it may run several at once.
        steps: As xprof takes them apart; it may leave out the first and the last.
        table: The operations that the trace names, the most expensive first.
        missing: Why something is not here, in a sentence, by its name: ``"steps"``,
            ``"ops"`` or ``"device"``.
        code: A digest of the code around the function, as in a ``Diagnosis``.
        replayed: True in a recording that was shown in place of a profile.
    """

    schema: Literal[1] = 1
    kind: Literal["profile"] = "profile"
    training: str
    xprof: str = ""
    traced_s: Times
    untraced_s: Times
    at_a_time: int = 1
    steps: Annotated[tuple[ProfiledStep, ...], _FEW] = ()
    table: Annotated[tuple[Op, ...], _FEW] = ()
    missing: dict[str, str] = field(default_factory=dict)
    code: str = ""

    def ops(self) -> "DataFrame":
        """One row per operation; ``share`` is that of the work on its device."""
        rows, names = map(asdict, self.table), (field.name for field in fields(Op))
        table = frame([*rows], names)
        device_s = table.groupby("device")["self_s"].transform("sum")
        table["share"] = (table["self_s"] / device_s.where(device_s > 0)).fillna(0.0)
        return table

    def input_stages(self) -> "DataFrame":
        """The operations that are stages of the input; ``count`` is of elements.

        They run beside each other and beside the steps.
        """
        table = self.ops()
        return table[table["type"] == _STAGE]


_SHOWN = 8
_NAME = 60
# Below this share of its time a step's operations do not tell what it did.
_ENOUGH_NAMED = 0.1
_MEANING = (
    "A profile explains a measured difference; it does not prove one. To measure what "
    "a change brings, use perfkit.diagnose."
)

_OPS = "Operations by their own time"
_STAGES = "Stages of the input, which run beside the steps and wait for each other"


@records.report.register
def _report(profile: Profile) -> Report:
    count, name = len(profile.traced_s), one_line(profile.training, _NAME)
    steps = units.count(count, "step")
    if profile.at_a_time > 1:
        steps = f"{count} executions of {profile.at_a_time} steps"
    traced_s = statistics.fmean(profile.traced_s)
    untraced_s = statistics.median(profile.untraced_s)
    headline = (
        f"{name}: {steps} under TensorFlow's profiler, {units.seconds(traced_s)} each."
    )
    cost = (
        f"The tracer costs time itself: without it they take "
        f"{units.seconds(untraced_s)}, so the times below are "
        f"{units.ratio(traced_s / untraced_s)} as long."
    )
    foot = (
        f"Recorded on {profile.machine.summary}, {minute(profile.recorded)}; "
        f"read by xprof {profile.xprof}."
    )
    return Report(
        verdict=Verdict(headline=headline, much=cost),
        stamp=profile.stamp,
        table=_parts(profile),
        besides=(*_missing(profile, "steps", "device"), *_notes(profile)),
        folds=(
            _costliest(_OPS, profile.table, *_missing(profile, "ops")),
            _costliest(_STAGES, [op for op in profile.table if op.type == _STAGE]),
        ),
        foot=(foot,),
    )


def _missing(profile: Profile, *names: str) -> Iterator[str]:
    return (profile.missing[name] for name in names if name in profile.missing)


def _notes(profile: Profile) -> Iterator[str]:
    """What is not in the trace, and what it is good for."""
    read, traced = len(profile.steps), len(profile.traced_s)
    if 0 < read < traced:
        yield (
            f"xprof analyses {read} of the {traced} steps, because it leaves out steps "
            "that look incomplete."
        )
    # The model's own, without the stages of its input.
    named_s = sum(op.self_s for op in profile.table if op.type != _STAGE)
    if profile.table and named_s < _ENOUGH_NAMED * sum(profile.traced_s):
        yield (
            "The operations that the trace names explain less than a tenth of the "
            "steps' time. It names none in eager steps, none that XLA compiles for a "
            "CPU, and none that TensorFlow considers cheap."
        )
    yield _MEANING


def _parts(profile: Profile) -> Table:
    """The seconds of each part: the mean over the steps, none left out."""
    number = max(1, len(profile.steps))
    step_s = sum(step.seconds for step in profile.steps) / number
    names = dict.fromkeys(name for step in profile.steps for name in step.parts)
    parts = {
        name: sum(step.parts.get(name, 0.0) for step in profile.steps) / number
        for name in names
    }
    rows = tuple(
        (name, units.seconds(spent), units.percent(spent / step_s if step_s else 0.0))
        for name, spent in sorted(parts.items(), key=lambda part: -part[1])
        if spent > 0
    )
    headings = ("part", "each step", "share")
    return Table("Where the time of a step went", headings, rows)


def _costliest(title: str, ops: Sequence[Op], *missing: str) -> Fold:
    """What took most time of its own, most of all first."""
    rows = tuple(
        (_short(op.name), units.seconds(op.self_s), f"{op.count:,}")
        for op in ops[:_SHOWN]
    )
    table = Table(title, ("name", "time of its own", "runs"), rows)
    return Fold(title, missing, (table,))


def _short(name: str) -> str:
    """The end of a long name: its beginning is the same for all."""
    end = name.removeprefix("StatefulPartitionedCall/")
    return end if len(end) <= _NAME else f"…{end[-_NAME + 1 :]}"
