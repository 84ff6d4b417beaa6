"""What a process tells of its steps, and what its trial records of that."""

import pytest

from perfkit.engine.live import Asleep, LiveTrial
from perfkit.engine.tick import READY, Note, Pause, Tick, every
from tests.engine.scripted import Clock
from tests.machine.trees import grow

MS = 1_000_000


def test_short_steps_are_grouped_and_the_device_is_awaited_once_a_tick(monkeypatch):
    clock, awaited = iter(range(1000)), []
    monkeypatch.setattr("perfkit.engine.tick.time.perf_counter", lambda: next(clock))
    ticks = every([3] * 5, seconds=2, sync=lambda: awaited.append(True))
    assert list(ticks) == [Tick(6), Tick(6), Tick(3)]
    assert len(awaited) == 3


def test_parts_of_steps_add_up_in_their_tick():
    steps = [Tick(2, {"input": 0.25}), 1, Tick(2, {"input": 0.5, "copy": 1.0})]
    assert list(every(steps, seconds=1e9)) == [Tick(5, {"input": 0.75, "copy": 1.0})]
    # A pause ends the tick before it and is passed on.
    steps = [READY, 1, 1, Note("plan", []), Pause("end of epoch"), 1]
    assert list(every(steps, seconds=1e9)) == [
        READY,
        Tick(2),
        Note("plan", []),
        Pause("end of epoch"),
        Tick(1),
    ]


class Telling:
    """A running process that tells what it is given."""

    started_ns = 0
    outcome = None
    message = ""

    def __init__(self):
        self.told, self.stood = [], {}

    def poll(self, timeout):
        told, self.told = self.told, []
        return told

    def resume(self):
        """Go on."""

    freeze = resume

    def kill(self, outcome, message):
        self.outcome, self.message = outcome, message


class Stage:
    """A trial that is ready, its process and their clock."""

    def __init__(self):
        self.now = 0
        self.running = Telling()
        self.trial = LiveTrial(
            "v", 1, self.running, zero_ns=0, clock=lambda: self.now, seed=0
        )
        self.tick(1, 0)

    def tick(self, milliseconds, examples=10, label="", **every):
        """So much later so many examples are done, or a pause has ended."""
        self.now += milliseconds * MS
        recurring = [(1000, 0)] if every else []
        message = (self.now, examples, {}, label, *recurring)
        self.running.told.append(("ticks", [message]))
        self.trial.listen(0)

    def stand(self, milliseconds):
        self.trial.freeze()
        self.now += milliseconds * MS
        self.trial.resume()

    def record(self):
        self.trial.end()
        return self.trial.record()


def test_the_first_call_is_no_usual_tick_unless_it_is_the_only_one():
    stage = Stage()
    assert stage.trial.tick_s == 0.0
    stage.tick(3000)
    assert stage.trial.tick_s == 3.0
    for _ in range(2):
        stage.tick(40)
    assert stage.trial.tick_s == pytest.approx(0.04)


END = {"label": "epoch end", "every": 1000}
CHANGE = {"label": "change"}


@pytest.mark.parametrize(
    ("pause", "turns", "counted"),
    [
        # The first of a turn is left out where there are others.
        (END, ((900, 20, 30), (700, 40)), (0.02, 0.03, 0.04)),
        # Where each turn has but one they all count.
        (END, ((90,), (70,)), (0.09, 0.07)),
        # A change counts as well, unless it had to wait.
        (CHANGE, ((25, 20, 30), (35, 20), (700,)), (0.025, 0.02, 0.03, 0.035, 0.02)),
    ],
)
def test_pauses_are_counted_turn_by_turn(pause, turns, counted):
    stage = Stage()
    for turn in turns:
        stage.stand(5000)
        for spent in turn:
            stage.tick(5)
            stage.tick(spent, 0, **pause)
    assert stage.record().pauses[pause["label"]] == pytest.approx(counted)


def test_in_one_go_every_pause_counts_but_for_what_stood_still_in_it():
    stage = Stage()
    for spent in (90, 20):
        stage.tick(5)
        stage.tick(spent, 0, **END)
    assert stage.record().pauses["epoch end"] == pytest.approx((0.09, 0.02))
    stage = Stage()
    stage.tick(5)
    stage.stand(5000)
    stage.tick(60, 0, **END)
    assert stage.record().pauses["epoch end"] == pytest.approx((0.06,))


def looks(root, *states):
    """Seconds asleep at each look, two apart, by threads as ``(state, worked)``."""
    clock = Clock()
    asleep, seconds = Asleep(7, clock, root), []
    for threads in states:
        for number, (state, worked) in enumerate(threads):
            rest = f"{state} {' 0' * 10} {worked} 0 0"
            stat = f"{number} (a (odd) name) {rest}"
            grow(root, {f"proc/7/task/{number}/stat": stat})
        seconds.append(asleep.seconds())
        clock.forward(2)
    return seconds


@pytest.mark.parametrize(
    ("states", "seconds"),
    [
        # All threads sleep.
        ([[("S", 5), ("S", 0)]] * 2, [0, 2]),
        # One that waits for a core keeps it awake.
        ([[("S", 5), ("R", 0)]] * 2, [0, 0]),
        # Work between two looks is seen.
        ([[("S", 5)], [("S", 6)], [("S", 6)]], [0, 0, 2]),
        # One that nobody can see is not asleep.
        ([[]] * 2, [0, 0]),
    ],
    ids=["asleep", "waits", "works", "not seen"],
)
def test_a_process_is_asleep_whose_threads_all_sleep(tmp_path, states, seconds):
    assert looks(tmp_path, *states) == seconds
