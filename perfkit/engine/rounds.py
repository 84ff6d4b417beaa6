"""Every variant once per round, in fresh processes, until the answer is narrow enough.

Within a round the trials take turns of a fraction of a second in random order, one at
work and the others standing still. What the machine does meanwhile (another program, a
clock that slows) lasts for seconds, so it falls on all of them alike, and their ratio
keeps clear of it. Where memory is short, or a GPU is used that one process fills, each
trial runs in one go instead.
"""

import contextlib
import math
import random
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import psutil

from perfkit.engine.live import NO_TURNS, Asleep, LiveTrial, OneProcess, Opening
from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.engine.monitor import Monitor, to_columns
from perfkit.engine.plan import (
    FEWEST_TURNS,
    OVERRUN,
    SHORTEST_WARM_UP_S,
    Event,
    Finished,
    Plan,
    Prepared,
    Preparing,
    Progress,
    Sampled,
    Starter,
    Ticked,
    TrialEnded,
    TrialStarted,
    Try,
    longest_warm_up_s,
    next_variants,
    one_go_s,
    seconds_for,
    shortest_round_s,
    turn_s,
    turns,
    turns_of_a_choice,
)
from perfkit.engine.steady import settled
from perfkit.engine.trial import ONE_PROCESS, REFUSED, Limits, Trial
from perfkit.errors import RunError
from perfkit.machine.environment import anonymize
from perfkit.machine.limits import free_bytes

# Once it has shown its pace, a trial without news for so long hangs.
_SILENCE_S = 10.0
_SILENT_TICKS = 30
# A variant that takes turns in one process may be compiled for as long.
_OPENING_SILENCE_S = 90.0
# Until it is ready it hangs after so many times what that took before.
_TIMES_AS_LONG = 4
# Trials that stand still keep their memory; together they may take this share of it.
_MEMORY_SHARE = 0.6
_SLICE_S = 0.1
_PREPARE_SILENCE_S = 900.0
_TRY_SILENCE_S = 30.0
# TensorFlow's allocator waits 10 s for memory before it gives up.
_WAITS_FOR_MEMORY_S = 1.0
_WAITS_FOR_MEMORY = "ran out of memory: it needed more than its limit"


@dataclass
class Run:
    """A run of a plan.

    Attributes:
        clock: The clock that stamps ticks, in nanoseconds.
        stopped: Set it, from any thread, to end the run.
    """

    plan: Plan
    starter: Starter
    watcher: Monitor
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
        # The longest that a trial took to be ready.
        self._ready_s = plan.ready_s
        self._tries_end: float | None = None
        self._in_turns = plan.in_turns
        self._planned = plan.variants
        self._variants = {v.name: v for v in plan.variants if not v.unavailable}
        self._offered = set(self._variants)
        if plan.twice and plan.baseline in self._variants:
            work = self._variants[plan.baseline].work
            self._variants[CONTROL] = Variant(CONTROL, work)

    @property
    def measurement(self) -> Measurement:
        """What has been measured so far."""
        return Measurement(
            variants=self._planned,
            trials=tuple(self._trials),
            samples=to_columns(self._samples),
            notes=self._notes | self.plan.spread.as_note(),
            baseline=self.plan.baseline,
            least_rounds=self.plan.least_rounds,
        )

    def events(self) -> Iterator[Event]:
        """Do it all, and tell what happens; closing the iterator ends the run.

        Raises:
            RunError: The launcher did not start, or preparing failed.
        """
        try:
            yield from self._wait_for_launcher()
            yield from self._prepare()
            opening = self.plan.opening
            self._zero_ns = opening.running.started_ns if opening else self.clock()
            self.watcher.start(self._zero_ns)
            if opening:
                yield from self._open_with(opening)
            while self._next_round_fits():
                yield from self._one_round()
            yield from self._tries()
            yield Finished(self.measurement, self.stopped.is_set())
        finally:
            self.watcher.stop()
            for live in self._live:
                live.end("stopped", "was still running when the run was stopped")

    # Before the budget starts.

    def _wait_for_launcher(self) -> Iterator[Event]:
        if self.plan.opening:
            return
        ready = False
        while not ready:
            yield Preparing("Loading TensorFlow, once")
            ready = self.stopped.is_set() or self.starter.wait(_SLICE_S)

    def _prepare(self) -> Iterator[Event]:
        if self.plan.prepare is None or self.stopped.is_set():
            return
        live = self._start(
            "prepare", self.plan.prepare, Limits(silence=_PREPARE_SILENCE_S)
        )
        while not live.over and not self.stopped.is_set():
            live.listen(_SLICE_S)
            message = live.notes.get("progress", "Preparing the data, once")
            yield Preparing(str(message))
        if self.stopped.is_set():
            live.end("stopped", "the run was stopped")
        self._live.remove(live)
        self._notes = dict(live.notes)
        self._notes.pop("progress", None)
        refused = dict(self._notes.pop(REFUSED, {}))
        self._refuse({name: anonymize(reason) for name, reason in refused.items()})
        if live.running.outcome == "stopped":
            return
        if live.running.outcome != "completed":
            raise RunError(
                "Preparing the variants failed: the preparation "
                f"{live.running.message.rstrip('.')}."
            )
        yield Prepared(dict(self._notes))

    def _refuse(self, reasons: dict[str, str]) -> None:
        """Take out variants that preparing found not worth timing, with the reasons."""
        self._planned = tuple(
            replace(variant, unavailable=reasons.get(variant.name, variant.unavailable))
            for variant in self._planned
        )
        for name in reasons:
            self._variants.pop(name, None)
        if self.plan.baseline in reasons:
            self._variants.pop(CONTROL, None)

    # Rounds.

    def _open_with(self, opening: Opening) -> Iterator[Event]:
        """Hear a process whose variants take turns in it: the first round."""
        running, self._round = opening.running, 1
        longest = max(_OPENING_SILENCE_S, _TIMES_AS_LONG * self.plan.ready_s)
        running.silence = min(running.silence, longest)
        process = OneProcess(
            running.started_ns,
            zero_ns=self._zero_ns,
            clock=self.clock,
            seed=self.plan.seed,
            stood=running.stood,
        )
        variants = {variant.name: variant for variant in opening.variants}
        self.watcher.watch(running.pid)
        messages, turn, started = list(opening.messages), 0, set[str]()
        try:
            while not self._ending and self._now_s() < opening.until_s:
                for message in messages:
                    for name, ticks in process.take(message).items():
                        if name not in started:
                            started.add(name)
                            yield TrialStarted(name, 1, ticks[0][0])
                        yield Ticked(name, ticks)
                if process.turn > turn:
                    turn = process.turn
                    yield from self._tell_opening(process, variants)
                if running.outcome is not None:
                    break
                messages = running.poll(_SLICE_S / 4)
                yield from self._tell()
        finally:
            running.kill("stopped", "was ended")
            self.watcher.watch(None)
        yield from self._tell_opening(process, variants)
        if not self._trials:
            # What takes no turns there is left to rounds in fresh processes.
            self._round = 0
            if process.problem:
                self._notes[NO_TURNS] = anonymize(process.problem)

    def _tell_opening(
        self, process: OneProcess, variants: dict[str, Variant]
    ) -> Iterator[Event]:
        """Put what the turns have shown by now in the place of what they had."""
        self._trials = list(process.trials())
        names = {variant.name for variant in self._planned}
        self._planned += tuple(
            variants[trial.variant]
            for trial in self._trials
            if trial.variant in variants and trial.variant not in names
        )
        if self._trials:
            yield TrialEnded(self._trials[-1], self.measurement)

    def _one_round(self) -> Iterator[Event]:
        names = self._next_names()
        self._round += 1
        self._random.shuffle(names)
        if self.plan.runs and self._round == 1:
            # What the sides take says whether there is room for it.
            names.sort(key=CONTROL.__eq__)
        in_turns = self._in_turns and len(names) > 1
        way = self._round_in_turns if in_turns else self._round_in_one_go
        yield from way(names)

    def _round_in_one_go(self, names: list[str]) -> Iterator[Event]:
        for name in names:
            if name == CONTROL:
                self._make_room(names)
            if name not in self._variants:
                # The baseline has just failed for good, and its control goes with it.
                continue
            live = yield from self._set_up(name)
            yield from self._hear(live, self._one_go(live))
            yield from self._end([live])
            if self._ending or (self.plan.runs and self._trials[-1].has_failed):
                return

    def _make_room(self, names: list[str]) -> None:
        """Leave out the control where as many runs as are wanted do not fit with it."""
        rounds = max(1, self.plan.runs - self._round)
        if self.plan.runs and CONTROL in names and not self._runs_fit(rounds, names):
            self._variants.pop(CONTROL, None)

    def _runs_fit(self, rounds: int, names: list[str]) -> bool:
        """Whether so many rounds of runs fit into what is left of the budget."""
        last_s = {trial.variant: trial.wall_s for trial in self._trials}
        last_s[CONTROL] = last_s.get(self.plan.baseline, 0.0)
        round_s = sum(last_s.get(name, 0.0) for name in names)
        return self._now_s() + rounds * round_s <= self.plan.budget

    def _one_go(self, live: LiveTrial) -> Callable[[float, int], bool]:
        # The first call shows no rate, and may take longer than all that follows.
        def enough(*_: float) -> bool:
            several = len(self._variants)
            seconds = one_go_s(live.tick_s, self.plan.budget, several)
            return live.since_first_call_s >= seconds and len(live.costs) > 2

        return enough

    def _round_in_turns(self, names: list[str]) -> Iterator[Event]:
        began = self._now_s()
        lives: list[LiveTrial] = []
        for name in names:
            if lives and not self._room_for_another(lives, len(names)):
                # Nothing is compared across the two ways, so the round starts anew.
                self._in_turns = False
                for live in lives:
                    live.end("stopped", "had too little memory to take turns")
                yield from self._record(lives)
                yield from self._round_in_one_go(names)
                return
            live = yield from self._set_up(name)
            yield from self._warm_up(live)
            live.freeze()
            lives.append(live)
            if self._ending:
                break
        order = list(lives)
        for turn in range(self._turns(lives, self._now_s() - began)):
            if self._ending:
                break
            # There and back, so that what changes steadily falls on all alike.
            order.reverse() if turn % 2 else self._random.shuffle(order)
            for live in order:
                yield from self._turn(live, lives)
        yield from self._end(lives)

    def _turn(self, live: LiveTrial, lives: list[LiveTrial]) -> Iterator[Event]:
        if live.over or self._ending:
            return
        seconds = turn_s(live.tick_s)
        # With the tick that ends nearest to it.
        least_s = seconds - min(seconds, live.tick_s) / 2

        def enough(spent: float, ticks: int) -> bool:
            return spent >= least_s if ticks > 2 else spent > 4 * seconds

        self.watcher.watch(live.running.pid, [peer.running.pid for peer in lives])
        live.resume()
        yield from self._hear(live, enough)
        live.freeze()

    def _set_up(self, name: str) -> Generator[Event, None, LiveTrial]:
        """Start a trial and wait until it is ready; return it."""
        silence = min(60.0, max(10.0, self.plan.budget / 3))
        silence = max(silence, _TIMES_AS_LONG * self._ready_s)
        if self.plan.runs:
            # It tells nothing until its end.
            silence = math.inf
        live = self._start(name, self._variants[name].work, Limits(silence=silence))
        self.watcher.watch(live.running.pid)
        started_s = self._now_s()
        yield TrialStarted(name, self._round, started_s)
        yield from self._hear(live, lambda _, ticks: ticks > 0)
        if not live.over:
            self._ready_s = max(self._ready_s, self._now_s() - started_s)
        return live

    def _warm_up(self, live: LiveTrial) -> Iterator[Event]:
        """Let a trial work until its rate is steady."""
        chooses = self.plan.choose is not None
        longest = longest_warm_up_s(
            self.plan.budget, len(self._variants), choice=chooses
        )

        def steady(spent: float, _: int) -> bool:
            cost = live.costs
            # From the first call alone nobody knows how long its turns have to be.
            if spent < SHORTEST_WARM_UP_S or len(cost) < 2:
                return False
            return spent >= longest or settled(cost[1:])

        yield from self._hear(live, steady)
        # What setting up held, such as a first end of an epoch, may come again.
        again = _TIMES_AS_LONG * live.set_up_s
        live.running.silence = max(_SILENCE_S, _SILENT_TICKS * live.tick_s, again)

    def _hear(
        self, live: LiveTrial, enough: Callable[[float, int], bool]
    ) -> Iterator[Event]:
        """Listen to the trial until ``enough(seconds, new ticks)`` or its end.

        It is asked where a tick has ended. In the middle of one, the longer that takes,
        the more likely it would be cut off, and stalls would be missing in the rate.
        """
        began, tick_count, is_enough = self._now_s(), 0, False
        while not (live.over or self._ending or is_enough):
            ticks = live.listen(_SLICE_S / 4)
            tick_count += len(ticks)
            if ticks:
                yield Ticked(live.variant, ticks)
                is_enough = enough(self._now_s() - began, tick_count)
            yield from self._tell()

    def _tell(self) -> Iterator[Event]:
        for sample in self.watcher.take():
            self._samples.append(sample)
            yield Sampled(dict(sample))
        yield Progress(self._now_s(), max(self._expected_s, self._now_s()))

    def _end(self, lives: list[LiveTrial]) -> Iterator[Event]:
        self.watcher.watch(None)
        # Of a trial that counts although its round was ended: nobody loses turns. In
        # the first round it is all there is to see, and nothing is claimed of it.
        fewest_turns = 1 if self._round == 1 and not self.plan.choose else 2
        for live in lives:
            if not self._ending or len(live.resumed_ns) >= fewest_turns:
                live.end()
            else:
                over = "budget" if self._tries_end is None else "time for tries"
                cause = "run was stopped" if self.stopped.is_set() else f"{over} ended"
                live.end("stopped", f"was still running when the {cause}")
        yield from self._record(lives)

    def _record(self, lives: list[LiveTrial]) -> Iterator[Event]:
        trials = [live.record() for live in lives]
        self._live = [live for live in self._live if live not in lives]
        self._trials += trials
        for trial in trials:
            if trial.has_failed:
                self._failed(trial)
        # Trials in turns end together, and what they show is worked out once.
        measured = self.measurement
        for trial in trials:
            yield TrialEnded(trial, measured)

    def _failed(self, trial: Trial) -> None:
        """Do not try again what failed twice, or what takes long to fail."""
        trials = (t for t in self._trials if t.variant == trial.variant)
        failures = sum(t.has_failed for t in trials)
        if failures > 1 or trial.outcome == "timed-out":
            self._variants.pop(trial.variant, None)
            if trial.variant == self.plan.baseline:
                self._variants.pop(CONTROL, None)

    # After the rounds.

    def _tries(self) -> Iterator[Event]:
        """Try one thing after another, until there is none or their time is up."""
        if self.plan.tries is None or self.stopped.is_set():
            return
        self._round = 0
        self._tries_end = self._now_s() + seconds_for(self.plan.budget)
        tries = contextlib.closing(self.plan.tries(self.measurement))
        with tries as asking, contextlib.suppress(StopIteration):
            attempt = next(asking)
            while not self._ending:
                yield from self._one_try(attempt)
                attempt = asking.send(self._trials[-1])

    def _one_try(self, attempt: Try) -> Iterator[Event]:
        limits = Limits(silence=_TRY_SILENCE_S, memory=attempt.memory)
        live = self._start(attempt.name, attempt.work, limits)
        self.watcher.watch(live.running.pid)
        yield TrialStarted(attempt.name, self._round, self._now_s())
        longest = attempt.seconds or math.inf
        asleep = Asleep(live.running.pid, self.clock)
        while not live.over and not self._ending:
            if self._now_s() - live.ready_s >= longest:
                break
            live.listen(_SLICE_S / 4)
            if attempt.memory is not None and asleep.seconds() > _WAITS_FOR_MEMORY_S:
                live.end("out-of-memory", _WAITS_FOR_MEMORY)
            yield from self._tell()
        yield from self._end([live])

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

    def _now_s(self) -> float:
        return (self.clock() - self._zero_ns) / 1e9

    @property
    def _ending(self) -> bool:
        """Whether nothing more may run, by Stop or because the time for it is over."""
        if self._tries_end is not None:
            return self.stopped.is_set() or self._now_s() > self._tries_end
        budgets = self.plan.overrun if self._round == 1 else OVERRUN
        overrun = self._now_s() > budgets * self.plan.budget
        return self.stopped.is_set() or (self._round > 0 and overrun)

    @property
    def _expected_s(self) -> float:
        """Seconds that the run will take as it looks now."""
        # Who foresees the end has counted what is tried after the rounds.
        if self.plan.usual is not None:
            return self.plan.usual
        if self._tries_end is not None:
            return self._tries_end
        budget = self.plan.budget
        return budget + (seconds_for(budget) if self.plan.tries else 0.0)

    def _next_round_fits(self) -> bool:
        if not self._variants or self.stopped.is_set():
            return False
        names = self._next_names()
        if self.plan.runs:
            self._make_room(names)
            fits = self._runs_fit(1, [n for n in names if n in self._variants])
        else:
            needed = shortest_round_s(names, self._trials, in_turns=self._in_turns)
            fits = self._now_s() + needed <= self.plan.budget
        return self._round == 0 or (fits and bool(names))

    def _next_names(self) -> list[str]:
        """Which variants the next round holds; none where another adds nothing."""
        if self.plan.choose is not None:
            return self._offer(self.plan.choose(self.measurement))
        measured, answered = self.measurement, self.plan.answered
        # Two rounds or more may say all that was asked.
        if answered and self._round > 1 and answered(measured):
            return []
        return next_variants(self._round, measured, self._variants)

    def _offer(self, variants: tuple[Variant, ...]) -> list[str]:
        planned = {variant.name for variant in self._planned}
        for variant in variants:
            if variant.name not in self._offered:
                self._offered.add(variant.name)
                self._planned += () if variant.name in planned else (variant,)
                self._variants[variant.name] = variant
        names = [variant.name for variant in variants if variant.name in self._variants]
        # Where turns in one process have shown the noise, set-ups are for the changes.
        opened = any(trial.notes.get(ONE_PROCESS) for trial in self._trials)
        twice = names and CONTROL in self._variants and not opened
        return [*names, CONTROL] if twice else names

    def _turns(self, lives: list[LiveTrial], set_up: float) -> int:
        turns_s = [turn_s(live.tick_s) for live in lives if not live.over]
        a_turn, left_s = sum(turns_s), self.plan.budget - self._now_s()
        if not a_turn:
            return 0
        if self._round == 1:
            # The first round may overrun, and one turn alone would claim nothing.
            latest = self.plan.overrun * self.plan.budget
            left_s = max(left_s, min(FEWEST_TURNS * a_turn, latest - self._now_s()))
        budget = self.plan.budget
        if self.plan.choose is not None:
            # There is room for as many rounds as a claim needs.
            share_s = budget / self.plan.least_rounds - set_up
            left_s = min(left_s, max(share_s, FEWEST_TURNS * a_turn))
            return turns_of_a_choice(left_s, turns_s)
        early = self.plan.answered is not None
        return turns(budget, left_s, set_up, a_turn, early=early)

    def _room_for_another(self, lives: list[LiveTrial], count: int) -> bool:
        """Whether all trials of a round fit into memory side by side."""
        active = [live for live in lives if not live.over]
        if not active:
            return True
        try:
            sizes = [psutil.Process(live.running.pid).memory_info() for live in active]
            free = free_bytes()
        except (psutil.Error, OSError):
            return True
        private_bytes = max(size.rss - getattr(size, "shared", 0) for size in sizes)
        missing = count - len(lives)
        return missing * private_bytes < _MEMORY_SHARE * free
