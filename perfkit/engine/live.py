"""A trial while it runs: it is given turns, listened to, and in the end recorded.

Variants may also take turns in one process, which was set up once. It tells by a pause
whose turn begins, and numbers the turns, so that those of one number are compared side
by side. All of it counts as one round: it cannot show how processes differ.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit.engine.launcher import Message, Started
from perfkit.engine.measurement import Variant
from perfkit.engine.steady import awakening
from perfkit.engine.trial import (
    ONE_PROCESS,
    PROBLEM,
    TRACEBACK,
    Note,
    Outcome,
    Pause,
    Trial,
)
from perfkit.machine.environment import anonymize

# A tick that is shorter holds no time in which somebody stood still.
_SHORT_NS = 1_000_000_000
_TOLD_ONCE = (PROBLEM, TRACEBACK)


class Asleep:
    """Tells for how long all threads of a process have slept without a break.

    Where there is no ``proc`` in the folder ``root``, nothing ever sleeps.
    """

    def __init__(
        self, pid: int, clock: Callable[[], int], root: Path = Path("/")
    ) -> None:
        self._tasks = root / "proc" / str(pid) / "task"
        self._clock = clock
        self._worked: list[list[str]] = []
        self._since_ns = clock()

    def seconds(self) -> float:
        """Look now; 0.0 where it has done anything since the last look."""
        try:
            # The name before the last bracket may hold anything.
            threads = [
                (task / "stat").read_text().rpartition(")")[2].split()
                for task in sorted(self._tasks.iterdir())
            ]
        except (OSError, ValueError):
            threads = []
        worked = [fields[11:13] for fields in threads]
        is_asleep = bool(threads) and all(fields[0] == "S" for fields in threads)
        if not is_asleep or worked != self._worked:
            self._worked, self._since_ns = worked, self._clock()
        return (self._clock() - self._since_ns) / 1e9


class LiveTrial:
    """One process at work, seen by the parent.

    Args:
        variant: Its name.
        zero_ns: The run's start, on the clock that stamps the ticks.
        clock: That clock: ``time.perf_counter_ns`` or a test's own.
        seed: What its random numbers started from.

    Attributes:
        notes: What it told so far, by name.
        resumed_ns: When each of its turns began.
    """

    def __init__(
        self,
        variant: str,
        round: int,
        running: Started,
        *,
        zero_ns: int,
        clock: Callable[[], int],
        seed: int,
    ) -> None:
        self.variant = variant
        self.round = round
        self.running = running
        self._zero_ns = zero_ns
        self._clock = clock
        self._seed = seed
        self._last_ns = 0
        self.resumed_ns: list[int] = []
        self._frozen_ns: list[int] = []
        self._ticks: list[tuple[int, int]] = []
        # Seconds of each pause, and whether it was the first of its kind in a turn.
        self._pauses: dict[str, list[tuple[float, bool]]] = {}
        # The kinds of this turn.
        self._paused: set[str] = set()
        self._recurring: dict[str, tuple[float, float]] = {}
        self._parts: list[dict[str, float]] = []
        self.notes: dict[str, Any] = {}

    @property
    def over(self) -> bool:
        """Whether its process has ended."""
        return self.running.outcome is not None

    @property
    def ready_s(self) -> float:
        """Seconds from the start of the run until it was ready; endless before that."""
        return (self._ticks[0][0] - self._zero_ns) / 1e9 if self._ticks else math.inf

    @property
    def set_up_s(self) -> float:
        """Seconds from its own start until it was ready; 0.0 before that."""
        ready_ns = self._ticks[0][0] if self._ticks else self.running.started_ns
        return (ready_ns - self.running.started_ns) / 1e9

    @property
    def costs(self) -> NDArray[np.float64]:
        """Seconds per example of each tick so far, shape (ticks,)."""
        return np.array([spent / examples for spent, examples in self._worked])

    @property
    def tick_s(self) -> float:
        """The usual length of a tick in seconds; 0.0 while there is none.

        The first one traces and compiles: it counts only where it is the only one.
        """
        spent = [seconds for seconds, _ in self._worked]
        spent = spent[1:] or spent
        return float(np.median(spent)) if spent else 0.0

    @property
    def _worked(self) -> list[tuple[float, int]]:
        """Seconds and examples of each tick so far."""
        return [
            ((at - before) / 1e9, examples)
            for (before, _), (at, examples) in itertools.pairwise(self._ticks)
            if examples
        ]

    @property
    def since_first_call_s(self) -> float:
        """Seconds from the end of its first call to its last tick; 0.0 before that."""
        ends = [at for at, examples in self._ticks if examples]
        return (ends[-1] - ends[0]) / 1e9 if ends else 0.0

    def resume(self) -> None:
        """Give it its turn."""
        self.resumed_ns.append(self._clock())
        self._paused.clear()
        self.running.resume()

    def freeze(self) -> None:
        """End its turn."""
        self._frozen_ns.append(self._clock())
        self.running.freeze()

    def end(self, outcome: Outcome = "completed", message: str = "") -> None:
        """End it for good; what it did so far counts."""
        self.running.kill(outcome, message)

    def listen(self, timeout: float) -> tuple[tuple[float, int], ...]:
        """Wait for news; give new ticks: seconds since the run began, and examples."""
        old_count = len(self._ticks)
        for message in self.running.poll(timeout):
            self.take(message)
        return tuple(
            ((time_ns - self._zero_ns) / 1e9, examples)
            for time_ns, examples in self._ticks[old_count:]
        )

    def take(self, message: Message) -> None:
        """Keep what the process told."""
        if message[0] == "note":
            self.notes[message[1]] = message[2]
            return
        for time_ns, examples, parts, label, *recurrence in message[1]:
            if self._has_stood_still(time_ns):
                # Neither a rate nor a pause can be read from that time.
                examples, label, recurrence = 0, "", []
            broken = any(self._last_ns < at <= time_ns for at in self.resumed_ns[-2:])
            # What spans another's turn is neither work nor a pause of its own.
            if label and self._ticks and (recurrence or not broken):
                spent = (time_ns - self._last_ns - self._stood(time_ns)) / 1e9
                is_first = bool(self.resumed_ns) and label not in self._paused
                self._pauses.setdefault(label, []).append((spent, is_first))
                self._paused.add(label)
            self._recurring |= {label: recurrence[0]} if recurrence else {}
            # A variant that never says it is ready is ready at its first tick.
            if broken or label or not self._ticks:
                examples = 0
            if examples:
                self._parts.append(parts)
            self._ticks.append((time_ns, examples))
            self._last_ns = time_ns

    def _has_stood_still(self, until_ns: int) -> bool:
        """Whether it was stopped from outside in the tick that ends then."""
        return until_ns - self._last_ns > _SHORT_NS and any(
            begin < until_ns and self._last_ns < end
            for begin, end in self.running.stood.items()
        )

    def _stood(self, until_ns: int) -> int:
        """Nanoseconds that it stood still between its last tick and ``until_ns``."""
        # A trial's first turn ends its warm-up, so it stands still before it.
        stops = zip(self._frozen_ns, self.resumed_ns, strict=False)
        return sum(
            max(0, min(resumed, until_ns) - max(frozen, self._last_ns))
            for frozen, resumed in stops
        )

    def record(self) -> Trial:
        """What it measured, once it is over."""
        started = self.running.started_ns
        outcome, message = self.running.outcome or "stopped", self.running.message
        if outcome == "completed" and not any(n for _, n in self._ticks):
            outcome, message = "crashed", "ended before its first example"
        names = {name for parts in self._parts for name in parts}
        return Trial(
            variant=self.variant,
            round=self.round,
            outcome=outcome,
            message=anonymize(message),
            started_s=(started - self._zero_ns) / 1e9,
            wall_s=(self._clock() - started) / 1e9,
            setup_s=self.set_up_s if self._ticks else None,
            ticks=tuple(((at - started) / 1e9, n) for at, n in self._ticks),
            turns=tuple((at - started) / 1e9 for at in self.resumed_ns),
            pauses={label: self._without_waits(label) for label in self._pauses},
            parts={
                name: tuple(parts.get(name, 0.0) for parts in self._parts)
                for name in sorted(names)
            },
            recurring=self._recurring,
            notes={n: v for n, v in self.notes.items() if n not in _TOLD_ONCE},
            seed=self._seed,
        )

    def _without_waits(self, label: str) -> tuple[float, ...]:
        """Leave out what a pause had to wait for because its turn had just begun."""
        spent, firsts = zip(*self._pauses[label], strict=True)
        seconds, first = np.array(spent), np.array(firsts)
        if label in self._recurring:
            # An iterator is dropped at the end of an epoch: nearly each of them waits.
            waited = first & (not first.all())
        else:
            waited = awakening(first, seconds)
        return tuple(float(second) for second in seconds[~waited])


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
        until_s: Seconds from its start after which it is ended.
    """

    running: Started
    messages: tuple[Message, ...]
    variants: tuple[Variant, ...]
    until_s: float = math.inf


class OneProcess:
    """Takes what such a process tells, and gives a trial of each variant.

    Args:
        started_ns: When the process was started.
        zero_ns: As ``LiveTrial`` takes it, and the rest.
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
        self._started_ns, self._stood = started_ns, {} if stood is None else stood
        self._zero_ns, self._clock, self._seed = zero_ns, clock, seed
        self._lives: dict[str, LiveTrial] = {}
        self._began_ns: dict[str, int] = {}
        self.at_work: LiveTrial | None = None
        self.turn, self.problem = 0, ""

    def take(self, message: Message) -> dict[str, tuple[tuple[float, int], ...]]:
        """Keep what it told; give new ticks of each variant, as ``listen`` does."""
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
            # The part that the variant has in the process, which a trial has alone.
            part = Started(0, self._started_ns, math.inf)
            part.outcome, part.stood = "completed", self._stood
            self._lives[variant] = LiveTrial(
                variant,
                1,
                part,
                zero_ns=self._zero_ns,
                clock=self._clock,
                seed=self._seed,
            )
        self.turn, self.at_work = number, self._lives[variant]
        # Those that it missed are empty.
        resumed_ns = self.at_work.resumed_ns
        resumed_ns += [at_ns] * (number - len(resumed_ns))

    def _trial(self, name: str, live: LiveTrial) -> Trial:
        trial = live.record()
        trial = replace(trial, notes=trial.notes | {ONE_PROCESS: True})
        if not trial.ticks:
            return trial
        ready_ns = self._started_ns + round(trial.ticks[0][0] * 1e9)
        return replace(trial, setup_s=(ready_ns - self._began_ns[name]) / 1e9)
