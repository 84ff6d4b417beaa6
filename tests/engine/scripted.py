"""A machine on a clock of its own: trials that cost what a script says.

Nothing here waits: listening to a trial moves the clock on.
"""

import math
import random
import signal
from dataclasses import dataclass
from types import SimpleNamespace

from perfkit.engine.measurement import Variant
from perfkit.engine.plan import Plan, Progress
from perfkit.engine.rounds import Run
from perfkit.engine.trial import READY


class Clock:
    """Nanoseconds that pass only when somebody listens to a trial."""

    def __init__(self):
        self.now_ns = 1_000_000_000

    def __call__(self):
        return self.now_ns

    def forward(self, seconds):
        self.now_ns += round(seconds * 1e9)


class Seconds:
    """A clock that goes on only where the test says so."""

    now = 0.0

    def __call__(self):
        return self.now

    perf_counter = __call__


class Weather:
    """What the whole machine does: slow and fast spells that last for seconds."""

    def __init__(self, seed=0, spread=0.0, lasts=2.0):
        self._random = random.Random(seed)
        self._spread, self._lasts = spread, lasts
        self._level, self._at = 0.0, 0.0

    def slowdown(self, now):
        """How much longer work takes now; asked with times that never go back."""
        if self._spread:
            stays = math.exp(-(now - self._at) / self._lasts)
            fresh = self._random.gauss(0, self._spread)
            self._level = self._level * stays + fresh * math.sqrt(1 - stays**2)
            self._at = now
        return math.exp(self._level)


@dataclass(eq=False)
class Script:
    """What one variant's trials do, on a calm machine."""

    tick_s: float = 0.03
    set_up_s: float = 0.3
    # Standard deviation of the log of a process's own speed, and of a single tick's.
    spread: float = 0.0
    jitter: float = 0.0
    first_s: float | None = None
    # After so many ticks: ``(ticks, outcome, message)``.
    ends: tuple | None = None
    hangs_after: int | None = None
    # How many times as long the ticks after the first take.
    warm_up: tuple = ()
    # Every so many ticks, one takes so many seconds more.
    stalls: tuple = (1, 0.0)
    examples: int = 10
    notes: tuple = ()

    def __call__(self):
        raise AssertionError("a script is played by the starter, never run")


class ScriptedTrial:
    """Answers like ``launcher.Running``."""

    def __init__(self, script, clock, weather, silence, seed):
        self._script, self._clock, self._weather = script, clock, weather
        self._random = random.Random(seed)
        self.silence = silence
        self._own = math.exp(self._random.gauss(0, script.spread))
        self._ticks = 0
        self._frozen = False
        self._due_ns = clock() + round(script.set_up_s * 1e9)
        self._heard_ns = clock()
        self._notes = script.notes
        self.started_ns = clock()
        self.pid = id(self)
        self.outcome, self.message = None, ""
        self.tail, self.stood = "", {}

    def freeze(self):
        assert not self._frozen
        self._frozen = True
        self._frozen_ns = self._clock()

    def resume(self):
        assert self._frozen
        self._frozen = False
        self._due_ns += self._clock() - self._frozen_ns
        self._heard_ns += self._clock() - self._frozen_ns

    def kill(self, outcome, message):
        if self.outcome is None:
            self.outcome, self.message = outcome, message

    def poll(self, timeout):
        if self.outcome is not None:
            return []
        messages = [("note", name, value) for name, value in self._notes]
        self._notes, until = (), self._clock() + round(timeout * 1e9)
        while self._due_ns <= until and not self._frozen and self.outcome is None:
            messages.append(("ticks", [self._tick()]))
        self._clock.now_ns = max(self._clock.now_ns, until)
        if (self._clock() - self._heard_ns) / 1e9 > self.silence:
            self.kill("timed-out", "gave no sign of life and was ended")
        return messages

    def _tick(self):
        script, at = self._script, self._due_ns
        self._heard_ns = at
        ready = self._ticks == 0
        self._ticks += 1
        self._due_ns = at + round(self._next_tick_s(at) * 1e9)
        if script.hangs_after is not None and self._ticks > script.hangs_after:
            self._due_ns = 2**62
        if script.ends and self._ticks > script.ends[0]:
            self.outcome, self.message = script.ends[1:]
        if ready:
            return (at, 0, {}, READY.label)
        return (at, script.examples, {"input": 0.001}, "")

    def _next_tick_s(self, at):
        script, done = self._script, self._ticks
        if done == 1 and script.first_s is not None:
            return script.first_s
        factor = script.warm_up[done - 2] if 0 <= done - 2 < len(script.warm_up) else 1
        noise = math.exp(self._random.gauss(0, script.jitter))
        slow = self._weather.slowdown(at / 1e9)
        every, longer = script.stalls
        stall = longer if longer and self._random.randrange(every) == 0 else 0.0
        return script.tick_s * factor * self._own * noise * slow + stall


class Starter:
    """Answers like the launcher; what it started is in ``started``."""

    def __init__(self, clock, weather=None, seed=0):
        self._clock, self._weather = clock, weather or Weather()
        self._seeds = random.Random(seed)
        self.started = []

    def wait(self, timeout):
        return True

    def start(self, work, seed, limits):
        self._clock.forward(0.05)
        trial = ScriptedTrial(
            work, self._clock, self._weather, limits.silence, self._seeds.random()
        )
        self.started.append((work, trial))
        return trial


def ignore(*_):
    """What the monitor of a machine that tells nothing does."""


SILENT = SimpleNamespace(take=list, watch=ignore, start=ignore, stop=ignore)


def play(scripts, *, baseline="base", budget=60.0, weather=None, seed=0, **plan):
    """A run of scripts, or of variants, by name; and what starts its trials."""
    clock = Clock()
    starter = Starter(clock, weather, seed)
    variants = tuple(
        one if isinstance(one, Variant) else Variant(name, one, against=baseline)
        for name, one in scripts.items()
    )
    plan = Plan(variants=variants, baseline=baseline, budget=budget, seed=seed, **plan)
    return Run(plan, starter, SILENT, clock=clock), starter


class Session:
    """A run that tells what it was told to, and can be stopped.

    An error among its events is raised, and a signal comes; ``passes`` is called before
    each of them.
    """

    unsaved = ""

    def __init__(self, *told, finding="found", passes=lambda: None):
        self.told, self.finding, self._passes = told, finding, passes
        self.stopped = self.closed = False

    def stop(self):
        self.stopped = True

    def events(self):
        try:
            for event in self.told:
                if isinstance(event, BaseException):
                    raise event
                if event is signal.SIGINT:
                    signal.raise_signal(signal.SIGINT)
                    event = Progress(1.0, 2.0)
                self._passes()
                yield event
                if self.stopped:
                    return
        finally:
            self.closed = True
