"""A few steps of a training as TensorFlow's profiler saw them, read by xprof.

A profile explains a difference that was measured and never stands in for one.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from perfkit.findings.report import Shown

# Not for type checkers alone: files are held against these types.
from perfkit.machine.record import Machine  # noqa: TC001

if TYPE_CHECKING:
    from pandas import DataFrame

    from perfkit.findings.report import Report

Device = Literal["host", "device"]


@dataclass(frozen=True, kw_only=True)
class Op:
    """One operation of the graph, over all traced steps.

    Attributes:
        name: In the graph.
        type: Such as ``"MatMul"``; ``"Dataset"`` for a stage of the input.
        device: Where it ran.
        count: How often.
        total_s: Seconds of all runs.
        self_s: The same without what ran within them.
    """

    name: str
    type: str
    device: Device
    count: int
    total_s: float
    self_s: float


@dataclass(frozen=True, kw_only=True)
class ProfiledStep:
    """A step, taken apart by xprof.

    Attributes:
        name: As it was marked, with its number.
        seconds: From its beginning to its end.
        parts: Seconds of each part, such as ``"input"``: the wait for it.
    """

    name: str
    seconds: float
    parts: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of the input; stages run beside each other and beside the steps.

    Attributes:
        name: As ``tf.data`` calls it, the last stage first.
        category: What it does, such as ``"Preprocessing"``.
        count: Elements.
        total_s: Seconds of all of them.
        self_s: The same without the stages that it takes them from.
    """

    name: str
    category: str
    count: int
    total_s: float
    self_s: float


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One kernel that a GPU ran.

    Attributes:
        name: Of the kernel.
        op: The operation that launched it.
        count: How often it ran.
        total_s: Seconds of all runs; ``least_s`` and ``most_s`` of one.
        occupancy: Share of the threads that fit which it can keep busy.
        tensor_cores: Whether it uses them.
        could_use_them: Whether its operation is one that could.
    """

    name: str
    op: str
    count: int
    total_s: float
    least_s: float
    most_s: float
    occupancy: float
    tensor_cores: bool
    could_use_them: bool


@dataclass(frozen=True, kw_only=True)
class Held:
    """What an allocator of a device held, in bytes.

    Attributes:
        allocator: Its name.
        capacity: Bytes that it may hand out.
        peak: Most that were in use while the steps were traced.
        peak_ever: Most since the process began.
        fragmentation: Share of what was free at the peak that was in small pieces.
    """

    allocator: str
    capacity: int
    peak: int
    peak_ever: int
    fragmentation: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Profile(Shown):
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
        table: Every operation that the trace names, the most expensive first.
        more_ops: How many more there are.
        stages: Of the input.
        launched: Kernels, the most expensive first.
        held: What the allocators held.
        missing: Why something is not here, in a sentence, by the name of the table:
            ``"steps"``, ``"ops"``, ``"stages"``, ``"kernels"`` or ``"memory"``.
        trace_bytes: Size of the trace, which is not kept.
    """

    schema: Literal[1] = 1
    kind: Literal["profile"] = "profile"
    training: str
    recorded: str
    perfkit: str
    machine: Machine
    xprof: str = ""
    traced_s: tuple[float, ...]
    untraced_s: tuple[float, ...]
    at_a_time: int = 1
    steps: tuple[ProfiledStep, ...] = ()
    table: tuple[Op, ...] = ()
    more_ops: int = 0
    stages: tuple[Stage, ...] = ()
    launched: tuple[Kernel, ...] = ()
    held: tuple[Held, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)
    trace_bytes: int = 0

    @property
    def traced_step_s(self) -> float:
        """Seconds of a step while it was traced: the mean."""
        return statistics.fmean(self.traced_s)

    @property
    def untraced_step_s(self) -> float:
        """Seconds of a step without the tracer: the median of all times."""
        return statistics.median(self.untraced_s)

    @property
    def cost(self) -> float:
        """How many times as long a step took while it was traced."""
        return self.traced_step_s / self.untraced_step_s

    @property
    def usual_step_s(self) -> tuple[float, float]:
        """Seconds of a step without the tracer: eight in ten times lie between them."""
        if len(self.untraced_s) < 2:
            return self.untraced_step_s, self.untraced_step_s
        tenths = statistics.quantiles(self.untraced_s, n=10, method="inclusive")
        return tenths[0], tenths[-1]

    @property
    def shows_cost(self) -> bool:
        """Whether the tracer slowed the steps by more than they differ anyway."""
        return self.traced_step_s > self.usual_step_s[1]

    @property
    def parts(self) -> dict[str, float]:
        """Seconds of each part of a step: the mean over the steps, none left out."""
        names = dict.fromkeys(name for step in self.steps for name in step.parts)
        return {
            name: statistics.fmean(step.parts.get(name, 0.0) for step in self.steps)
            for name in names
        }

    def ops(self) -> DataFrame:
        """One row per operation: where it ran, how often, its seconds, its share."""
        from perfkit.findings.tables import ops

        return ops(self)

    def input(self) -> DataFrame:
        """One row per step: its seconds, and those of each part of it."""
        from perfkit.findings.tables import steps

        return steps(self)

    def input_stages(self) -> DataFrame:
        """One row per stage of the input: elements, and seconds of its own."""
        from perfkit.findings.tables import stages

        return stages(self)

    def kernels(self) -> DataFrame:
        """One row per kernel of a GPU; where there is none ``missing`` says why."""
        from perfkit.findings.tables import kernels

        return kernels(self)

    def memory(self) -> DataFrame:
        """One row per allocator; where there is none ``missing`` says why."""
        from perfkit.findings.tables import memory

        return memory(self)

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        from perfkit.findings.profile_report import report

        return report(self)
