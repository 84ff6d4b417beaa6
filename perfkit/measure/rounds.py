"""Every variant once per round, in fresh processes, until the answer is narrow enough.

Within a round the trials take turns of a fraction of a second in random order, one at
work and the others standing still. What the machine does meanwhile (another program, a
clock that slows) lasts for seconds, so it falls on all of them alike, and their ratio
keeps clear of it. Where memory is short, or a GPU is used that one process fills, each
trial runs in one go instead.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import psutil

from perfkit.errors import RunError
from perfkit.measure.events import (
    Event,
    Finished,
    Preparing,
    Progress,
    Sampled,
    Ticked,
    TrialEnded,
    TrialStarted,
)
from perfkit.measure.live import LiveTrial
from perfkit.measure.measurement import TWIN, Arm, Measurement
from perfkit.measure.steady import settled
from perfkit.measure.trial import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from perfkit.measure.launcher import Running
    from perfkit.measure.trial import Trial

# A turn is long enough for a few ticks and short against what disturbs a machine.
_TURN_S = 0.15
_TICKS_A_TURN = 5
# Trials in one go work this long.
_ONE_GO_S = 1.5
# Fewer rounds say little of how processes differ, more of them cost their set-up, which
# may take this share of the budget.
_ROUNDS = (3, 8)
_SET_UP_SHARE = 0.4
_FEWEST_TURNS = 2
# A long budget makes more rounds, not longer ones, so that it can end early.
_LONGEST_ROUND_S = 12.0
# Warm-up ends when the ticks look settled, or after so many seconds.
_WARM_UP_S = (0.3, 3.0)
# Once it has shown its pace, a trial without news for so long hangs.
_SILENCE_S = 10.0
_SILENT_TICKS = 30
# An interval this narrow needs no more rounds, if there have been a few.
_NARROW = 0.02
_LEAST_ROUNDS = 3
# Trials that stand still keep their memory; together they may take this share of it.
_MEMORY_SHARE = 0.6
_SLICE_S = 0.1
_PREPARE_SILENCE_S = 900.0


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
    """

    arms: tuple[Arm, ...]
    baseline: str
    budget: float
    seed: int = 0
    prepare: Callable[[], Iterator[Any]] | None = None
    in_turns: bool = True
    memory: int | None = None


@dataclass
class Run:
    """A run of a plan.

    Attributes:
        plan: What to do.
        starter: Starts the trials.
        watcher: Samples the machine.
        clock: The clock that stamps ticks, in nanoseconds.
        stopped: Set it, from any thread, to end the run.
    """

    plan: Plan
    starter: Starter
    watcher: Watcher
    clock: Callable[[], int] = time.perf_counter_ns
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Set the run's state."""
        plan = self.plan
        self._random = random.Random(plan.seed)
        self._zero_ns = self.clock()
        self._trials: list[Trial] = []
        self._samples: list[dict[str, float]] = []
        self._notes: dict[str, Any] = {}
        self._live: list[LiveTrial] = []
        self._round = 0
        self._in_turns = plan.in_turns
        self._arms = {arm.name: arm for arm in plan.arms if not arm.unavailable}
        if plan.baseline in self._arms:
            self._arms[TWIN] = Arm(TWIN, self._arms[plan.baseline].work)

    @property
    def measurement(self) -> Measurement:
        """What has been measured so far."""
        return Measurement(
            arms=self.plan.arms,
            trials=tuple(self._trials),
            samples=_columns(self._samples),
            notes=dict(self._notes),
            baseline=self.plan.baseline,
        )

    def events(self) -> Iterator[Event]:
        """Do it all, and tell what happens; closing the iterator ends the run.

        Raises:
            RunError: The launcher did not start, or preparing failed.
        """
        try:
            yield from self._wait_for_launcher()
            yield from self._prepare()
            self._zero_ns = self.clock()
            self.watcher.start(self._zero_ns)
            while not self.stopped.is_set() and self._next_round_fits():
                yield from self._one_round()
            yield Finished(self.measurement, self.stopped.is_set())
        finally:
            self.watcher.stop()
            for live in self._live:
                live.end("stopped", "was running when the run was stopped")

    # Before the budget starts.

    def _wait_for_launcher(self) -> Iterator[Event]:
        yield Preparing("Loading TensorFlow, once")
        while not self.stopped.is_set() and not self.starter.wait(_SLICE_S):
            yield Preparing("Loading TensorFlow, once")

    def _prepare(self) -> Iterator[Event]:
        if self.plan.prepare is None or self.stopped.is_set():
            return
        live = self._start(
            "prepare", self.plan.prepare, Limits(silence=_PREPARE_SILENCE_S)
        )
        while not live.over and not self.stopped.is_set():
            live.listen(_SLICE_S)
            notes = live.notes
            yield Preparing(str(notes.get("progress", "Preparing the data, once")))
        if self.stopped.is_set():
            live.end("stopped", "the run was stopped")
        self._live.remove(live)
        self._notes = {k: v for k, v in live.notes.items() if k != "progress"}
        if live.running.outcome == "stopped":
            return
        if live.running.outcome != "completed":
            raise RunError(
                "Preparing what the variants need did not end well: it "
                f"{live.running.message}."
            )

    # Rounds.

    def _one_round(self) -> Iterator[Event]:
        self._round += 1
        names = self._wanted()
        self._random.shuffle(names)
        if self._in_turns and len(names) > 1:
            yield from self._round_in_turns(names)
        else:
            yield from self._round_in_one_go(names)

    def _round_in_one_go(self, names: list[str]) -> Iterator[Event]:
        for name in names:
            live = yield from self._set_up(name)
            yield from self._hear(live, self._one_go(live))
            yield from self._end([live])
            if self.stopped.is_set():
                return

    def _one_go(self, live: LiveTrial) -> Callable[[float, int], bool]:
        seconds = max(_ONE_GO_S, 2 * _TICKS_A_TURN * live.tick_s)
        return lambda spent, _: spent >= seconds

    def _round_in_turns(self, names: list[str]) -> Iterator[Event]:
        began = self._now()
        lives: list[LiveTrial] = []
        for name in names:
            if lives and not self._room_for_another(lives, len(names)):
                # Nothing is compared across the two ways, so the round starts anew.
                self._in_turns = False
                for live in lives:
                    live.end("stopped", "memory was too short for trials in turns")
                yield from self._record(lives)
                yield from self._round_in_one_go(names)
                return
            live = yield from self._set_up(name)
            yield from self._warm_up(live)
            live.freeze()
            lives.append(live)
            if self.stopped.is_set():
                break
        overhead = self._now() - began
        order = list(lives)
        for turn in range(self._turns_that_fit(lives, overhead)):
            if self.stopped.is_set():
                break
            # There and back, so that what changes steadily falls on all alike.
            order.reverse() if turn % 2 else self._random.shuffle(order)
            for live in order:
                yield from self._turn(live, lives)
        yield from self._end(lives)

    def _turn(self, live: LiveTrial, lives: list[LiveTrial]) -> Iterator[Event]:
        if live.over or self.stopped.is_set():
            return
        seconds = self._turn_s(live)

        def enough(spent: float, ticks: int) -> bool:
            # A turn without a single tick goes on until there is one, or it is a hang.
            return spent >= seconds and (
                ticks > 2 or (ticks > 0 and spent > 4 * seconds)
            )

        self.watcher.watch(live.running.pid, [other.running.pid for other in lives])
        live.resume()
        yield from self._hear(
            live,
            lambda spent, ticks: (
                spent >= seconds and (ticks > 2 or spent > 4 * seconds)
            ),
        )
        live.freeze()

    def _set_up(self, name: str) -> Generator[Event, None, LiveTrial]:
        """Start a trial and wait until it is ready; return it."""
        silence = min(60.0, max(10.0, self.plan.budget / 3))
        limits = Limits(silence=silence, memory=self.plan.memory)
        live = self._start(name, self._arms[name].work, limits)
        self.watcher.watch(live.running.pid)
        yield TrialStarted(name, self._round, self._now())
        yield from self._hear(live, lambda _, ticks: ticks > 0)
        return live

    def _warm_up(self, live: LiveTrial) -> Iterator[Event]:
        """Let a trial work until its rate is steady."""
        shortest, longest = _WARM_UP_S
        longest = max(shortest, min(longest, self.plan.budget / (4 * len(self._arms))))

        def steady(spent: float, _: int) -> bool:
            if spent < shortest:
                return False
            return spent >= longest or settled(live.costs[1:])

        yield from self._hear(live, steady)
        live.running.silence = max(_SILENCE_S, _SILENT_TICKS * live.tick_s)

    def _hear(
        self, live: LiveTrial, enough: Callable[[float, int], bool]
    ) -> Iterator[Event]:
        """Listen to the trial until ``enough(seconds, new ticks)`` or its end."""
        began, heard = self._now(), 0
        while not live.over and not self.stopped.is_set():
            if enough(self._now() - began, heard):
                break
            ticks = live.listen(_SLICE_S / 4)
            heard += len(ticks)
            if ticks:
                yield Ticked(live.variant, ticks)
            yield from self._tell()

    def _tell(self) -> Iterator[Event]:
        for sample in self.watcher.take():
            self._samples.append(sample)
            yield Sampled(dict(sample))
        yield Progress(self._now(), max(self.plan.budget, self._now()))

    def _end(self, lives: list[LiveTrial]) -> Iterator[Event]:
        self.watcher.watch(None)
        for live in lives:
            # A Stop loses no turns: two of them are a trial.
            if not self.stopped.is_set() or live.turns_done >= 2:
                live.end()
            else:
                live.end("stopped", "was running when the run was stopped")
        yield from self._record(lives)

    def _record(self, lives: list[LiveTrial]) -> Iterator[Event]:
        trials = [live.record() for live in lives]
        self._live = [live for live in self._live if live not in lives]
        self._trials += trials
        for trial in trials:
            if trial.outcome not in ("completed", "stopped"):
                self._failed(trial)
        # Trials in turns end together, and what they show is worked out once.
        measured = self.measurement
        for trial in trials:
            yield TrialEnded(trial, measured)

    def _failed(self, trial: Trial) -> None:
        """Do not try again what failed twice, or what takes long to fail."""
        failures = sum(
            t.outcome not in ("completed", "stopped")
            for t in self._trials
            if t.variant == trial.variant
        )
        if failures > 1 or trial.outcome == "timed-out":
            self._arms.pop(trial.variant, None)
            if trial.variant == self.plan.baseline:
                self._arms.pop(TWIN, None)

    def _start(
        self, name: str, work: Callable[[], Iterator[Any]], limits: Limits
    ) -> LiveTrial:
        seed = random.Random(f"{self.plan.seed} {self._round}").randrange(2**31)
        live = LiveTrial(
            name,
            self._round,
            self.starter.start(work, seed, limits),
            zero_ns=self._zero_ns,
            clock=self.clock,
            seed=seed,
        )
        self._live.append(live)
        return live

    # How the budget is spent.

    def _now(self) -> float:
        return (self.clock() - self._zero_ns) / 1e9

    def _next_round_fits(self) -> bool:
        if not self._arms:
            return False
        if self._round == 0:
            return True
        if self._round >= _LEAST_ROUNDS and not self._wide():
            return False
        return self._now() + self._least_round_s() <= self.plan.budget

    def _wanted(self) -> list[str]:
        """All variants for two rounds, then those whose interval is wide."""
        if self._round <= 2:
            return list(self._arms)
        wide = self._wide() or set(self._arms)
        against = {self._arms[name].against for name in wide}
        return [
            name
            for name in self._arms
            if name in wide | against | {self.plan.baseline, TWIN}
        ]

    def _wide(self) -> set[str]:
        """The variants whose comparison another round would make clearer."""
        measured = self.measurement
        compared = {c.variant: c for c in measured.comparisons}
        if TWIN in self._arms:
            twin = measured.compare(TWIN, self.plan.baseline)
            compared |= {TWIN: twin} if twin else {}
        return {
            name
            for name, arm in self._arms.items()
            if (name == TWIN or arm.against not in ("", name))
            and (name not in compared or compared[name].half_width > _NARROW)
        }

    def _least_round_s(self) -> float:
        """Seconds that the shortest useful round takes, as far as rounds have shown."""
        names = self._wanted()
        last = {trial.variant: trial for trial in self._trials}
        set_up = sum(last[n].setup_s or 0.0 for n in names if n in last)
        if self._in_turns:
            return set_up + len(names) * (_WARM_UP_S[0] + _FEWEST_TURNS * _TURN_S)
        return set_up + len(names) * _ONE_GO_S

    def _turn_s(self, live: LiveTrial) -> float:
        return max(_TURN_S, _TICKS_A_TURN * live.tick_s)

    def _turns_that_fit(self, lives: list[LiveTrial], overhead: float) -> int:
        """How many turns each trial of this round gets."""
        a_turn = sum(self._turn_s(live) for live in lives if not live.over)
        if not a_turn:
            return 0
        fewest, most = _ROUNDS
        rounds = self.plan.budget * _SET_UP_SHARE / max(overhead, 1e-3)
        round_s = self.plan.budget / min(most, max(fewest, int(rounds)))
        round_s = min(round_s, max(_LONGEST_ROUND_S, overhead / _SET_UP_SHARE))
        turns = max(_FEWEST_TURNS, int((round_s - overhead) / a_turn))
        # A rest that is too short for a round of its own is spent on this one.
        left = int((self.plan.budget - self._now()) / a_turn)
        if left - turns < overhead / a_turn + _FEWEST_TURNS:
            turns = left
        return max(1, min(turns, left))

    def _room_for_another(self, lives: list[LiveTrial], count: int) -> bool:
        """Whether all trials of a round fit into memory side by side."""
        try:
            sizes = [psutil.Process(live.running.pid).memory_info() for live in lives]
        except psutil.Error:
            return True
        own = max(size.rss - getattr(size, "shared", 0) for size in sizes)
        missing = count - len(lives)
        return missing * own < _MEMORY_SHARE * psutil.virtual_memory().available


def _columns(samples: list[dict[str, float]]) -> dict[str, tuple[float | None, ...]]:
    names = dict.fromkeys(name for sample in samples for name in sample)
    columns = {name: tuple(s.get(name) for s in samples) for name in names}
    # The pulse is told as a share of the fastest seen, which only the end knows.
    pulses = [p for p in columns.get("pulse", ()) if p is not None]
    if pulses:
        best = max(pulses)
        columns["pulse"] = tuple(
            None if p is None else p / best for p in columns["pulse"]
        )
    return columns
