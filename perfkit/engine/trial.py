"""One variant, run once in one fresh process: what came of it."""

import itertools
from dataclasses import dataclass, field
from typing import Any, Literal

# The note of a trial that took turns with the others of its round in one process.
ONE_PROCESS = "one process"
# The note of one whose ticks hold whole epochs, whose ends are no pauses of their own.
WHOLE = "whole epochs"
# The note of the losses of a trial: after so many examples, their mean since the last.
LOSSES = "losses"
# The note of a trial that is one run, from its beginning to its end, as one tick.
RUN = "whole run"
# The notes of a training that raised: they tell paths, so who runs it sees them, and no
# file holds them.
PROBLEM, TRACEBACK = "problem", "traceback"
Outcome = Literal["completed", "out-of-memory", "crashed", "timed-out", "stopped"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a trial may go.

    Attributes:
        silence: Seconds without any sign of life before it counts as hung.
        memory: Bytes it may allocate above what it starts with; None for no limit.
    """

    silence: float = 60.0
    memory: int | None = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What one trial measured and how it ended.

    Attributes:
        variant: Its name.
        round: 1 for the first round; 0 for a try outside the rounds.
        outcome: How it ended. Only ``completed`` trials enter a timing.
        message: One sentence on an outcome other than ``completed``.
        started_s: Seconds from the start of the run to the start of the trial.
        wall_s: Seconds from the start of the trial to its end.
        setup_s: Seconds from the start of the trial until it was ready; None if never.
        ticks: ``(seconds since the trial's start, examples since the last tick)``. The
            first entry is the moment it was ready. An entry of 0 examples says that no
            rate can be read from the time before it: a pause, or another's turn.
        turns: Seconds since the trial's start at which each of its turns began; empty
            where it ran in one go.
        pauses: Seconds of each pause, by label.
        recurring: Of a pause that comes again and whose share is part of the rate, by
            label: after how many examples, and how many are done during it.
        parts: Seconds of each tick spent in a part, by name, one number per tick
            with examples.
        notes: What the variant told besides, by name; JSON values.
        seed: What its random numbers started from; equal within a round.
    """

    variant: str
    round: int
    outcome: Outcome
    message: str = ""
    started_s: float = 0.0
    wall_s: float = 0.0
    setup_s: float | None = None
    ticks: tuple[tuple[float, int], ...] = ()
    turns: tuple[float, ...] = ()
    pauses: dict[str, tuple[float, ...]] = field(default_factory=dict)
    recurring: dict[str, tuple[float, float]] = field(default_factory=dict)
    parts: dict[str, tuple[float, ...]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def unit(self) -> str:
        """What its ticks count."""
        return "runs" if RUN in self.notes else "examples"

    @property
    def is_try(self) -> bool:
        """Whether it was run outside the rounds, and so is part of no timing."""
        return self.round == 0

    @property
    def worked(self) -> list[tuple[float, float, int]]:
        """From when to when each of its ticks worked, and on how many examples."""
        return [
            (began, ended, examples)
            for (began, _), (ended, examples) in itertools.pairwise(self.ticks)
            if examples
        ]

    @property
    def has_failed(self) -> bool:
        """Whether it ended neither by itself nor because somebody stopped it."""
        return self.outcome not in ("completed", "stopped")

    def shares_process(self, trial: "Trial") -> bool:
        """Whether both took turns in one process."""
        is_shared = ONE_PROCESS in self.notes and ONE_PROCESS in trial.notes
        return is_shared and self.round == trial.round
