"""Variants that take turns in one process, which was set up once: who did what.

The process tells by a pause whose turn begins; what follows is that variant's. Its
turns are numbered, so that those of one number are held side by side. All of it counts
as one round: what differs from process to process does not show in one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from perfkit.engine.launcher import Message, Started
from perfkit.engine.live import LiveTrial
from perfkit.engine.measurement import Variant
from perfkit.engine.tick import Note, Pause
from perfkit.engine.trial import ONE_PROCESS, PROBLEM, Outcome, Trial

# Before the number of a turn and its variant, in the label of a pause.
_TURN = "turn "
# The note that says which variant could not be run, and why.
FAILED = "failed"
# Of a run: why nothing took turns in the process that was to be its first round.
NO_TURNS = "no turns"


def turn(variant: str, number: int) -> Pause:
    """Say that the turn of a variant begins.

    Turns of one number lie side by side; what comes before number 1 warms up.
    """
    return Pause(f"{_TURN}{number}: {variant}")


def failed(variant: str, reason: str) -> Note:
    """Say that a variant cannot be run: in half a sentence, after its name."""
    return Note(FAILED, [variant, reason])


@dataclass(frozen=True)
class Opening:
    """A process at work whose variants are the first round of a run.

    Attributes:
        running: The process; it ends by itself.
        messages: Those that it sent before the run began.
        variants: What it may tell of, by name.
    """

    running: Started
    messages: tuple[Message, ...]
    variants: tuple[Variant, ...]


@dataclass
class _Part:
    """The part that a variant has in the process, as a trial sees its own."""

    started_ns: int
    stood: dict[int, int]
    outcome: Outcome | None = "completed"
    message: str = ""


class OneProcess:
    """Takes what such a process tells, and gives a trial of each variant.

    Args:
        started_ns: When the process was started.
        zero_ns: The run's start, on the clock that stamps the ticks.
        clock: That clock.
        seed: What its random numbers started from.
        stood: When it stood still, as ``Started.stood`` has it.

    Attributes:
        at_work: The variant whose turn it is; None before the first one.
        turn: Its number.
        problem: What was raised before any turn began, in a sentence; "" if nothing.
    """

    def __init__(
        self,
        started_ns: int,
        *,
        zero_ns: int,
        clock: Callable[[], int],
        seed: int = 0,
        stood: dict[int, int] | None = None,
    ) -> None:
        self._made = (started_ns, {} if stood is None else stood)
        self._zero_ns, self._clock, self._seed = zero_ns, clock, seed
        self._lives: dict[str, LiveTrial] = {}
        self._began_ns: dict[str, int] = {}
        self.at_work: LiveTrial | None = None
        self.turn, self.problem = 0, ""

    def take(self, message: Message) -> dict[str, tuple[tuple[float, int], ...]]:
        """Keep what it told.

        Returns:
            New ticks of each variant, in seconds since the run's start.
        """
        if message[0] == "note":
            if message[1] == FAILED:
                variant, reason = message[2]
                if variant in self._lives:
                    part = self._lives[variant].running
                    part.outcome, part.message = "crashed", reason
            elif self.at_work is not None:
                self.at_work.take(message)
            elif message[1] == PROBLEM:
                self.problem = str(message[2])
            return {}
        new: dict[str, tuple[tuple[float, int], ...]] = {}
        for stamped in message[1]:
            label = stamped[3]
            if label.startswith(_TURN):
                number, _, variant = label.removeprefix(_TURN).partition(": ")
                self._begin(variant, int(number), stamped[0])
            elif self.at_work is not None:
                self.at_work.take(("ticks", [stamped]))
                tick = (stamped[0] - self._zero_ns) / 1e9, int(stamped[1])
                name = self.at_work.variant
                new[name] = (*new.get(name, ()), tick)
        return new

    def trials(self) -> tuple[Trial, ...]:
        """What each variant has measured so far; with no step done it is none."""
        pairs = [(life, self._trial(name, life)) for name, life in self._lives.items()]
        # A turn that was cut off before its first step is told as one that crashed.
        return tuple(t for life, t in pairs if t.outcome == life.running.outcome)

    def _begin(self, variant: str, number: int, at_ns: int) -> None:
        if variant not in self._lives:
            self._began_ns[variant] = at_ns
            self._lives[variant] = LiveTrial(
                variant,
                1,
                cast("Started", _Part(*self._made)),
                zero_ns=self._zero_ns,
                clock=self._clock,
                seed=self._seed,
            )
        self.turn, self.at_work = number, self._lives[variant]
        self.at_work.has_turn(at_ns, number)

    def _trial(self, name: str, live: LiveTrial) -> Trial:
        trial = live.record()
        trial = replace(trial, notes=trial.notes | {ONE_PROCESS: True})
        if not trial.ticks:
            return trial
        ready_ns = self._made[0] + round(trial.ticks[0][0] * 1e9)
        return replace(trial, setup_s=(ready_ns - self._began_ns[name]) / 1e9)
