"""What a run is to do, and what it needs from the world: trials and a watcher."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from perfkit.measure.spread import Spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perfkit.measure.launcher import Running
    from perfkit.measure.measurement import Arm, Measurement
    from perfkit.measure.one_process import Opening
    from perfkit.measure.trial import Limits
    from perfkit.measure.tries import Tries


class Starter(Protocol):
    """What starts trials: the launcher, or a test's script."""

    def wait(self, timeout: float) -> bool:
        """Wait until trials can start; False if that takes longer."""

    def start(
        self, work: Callable[[], Iterator[Any]], seed: int, limits: Limits
    ) -> Running:
        """Start one."""


class Watcher(Protocol):
    """What samples the machine: the monitor, or a test's script."""

    def start(self, zero_ns: int) -> None:
        """Begin; samples count from ``zero_ns``."""

    def stop(self) -> None:
        """End."""

    def watch(self, pid: int | None, others: Sequence[int] = ()) -> None:
        """Say which process has its turn, and which stand still."""

    def take(self) -> list[dict[str, float]]:
        """The samples since the last call."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run is to do.

    Attributes:
        arms: The variants.
        baseline: The one that is run twice a round, to know the noise.
        budget: Seconds to spend on rounds.
        seed: Of the order and of the trials' random numbers.
        prepare: Makes what every variant needs; its time is not in the budget.
        in_turns: Whether the trials of a round may take turns.
        memory: Bytes that each trial may allocate; None for no limit.
        tries: What to try after the rounds, in time of its own; None for nothing.
        overrun: Times the budget that the first round may take, because without it
            there is no answer at all.
        choose: Names the arms of the next round from what has been measured, none to
            end; it may add arms that are new. None leaves the choice to how narrow
            the intervals are.
        opening: A process at work whose variants are the first round; its time counts
            from when it was started. None where all rounds are of fresh processes.
        spread: What is known of the machine's spread; kept in the run's notes.
    """

    arms: tuple[Arm, ...]
    baseline: str
    budget: float
    seed: int = 0
    prepare: Callable[[], Iterator[Any]] | None = None
    in_turns: bool = True
    memory: int | None = None
    tries: Callable[[Measurement], Tries] | None = None
    overrun: float = 2.0
    choose: Callable[[Measurement], tuple[Arm, ...]] | None = None
    opening: Opening | None = None
    spread: Spread = field(default_factory=Spread)
