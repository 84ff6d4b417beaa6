"""What a process tells of its steps, and what its trial records of that."""

import pytest

from perfkit.engine.live import (
    NO_TURNS,
    Asleep,
    LiveTrial,
    OneProcess,
    Opening,
    failed,
    turn,
)
from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.engine.plan import Ticked, TrialEnded
from perfkit.engine.steady import steady
from perfkit.engine.trial import PROBLEM, READY, TRACEBACK, Note, Pause, Tick, every
from tests.engine.scripted import Clock, Script, play
from tests.machine.trees import grow

MS = 1_000_000


def test_short_steps_are_grouped_and_the_device_is_awaited_once_a_tick(monkeypatch):
    clock, awaited = iter(range(1000)), []
    monkeypatch.setattr("perfkit.engine.trial.time.perf_counter", lambda: next(clock))
    ticks = every([3] * 5, seconds=2, sync=lambda: awaited.append(True))
    assert list(ticks) == [Tick(6), Tick(6), Tick(3)]
    assert len(awaited) == 3
    # One without examples would be no rate's: its time belongs to the next.
    assert list(every([0, 3, 0, 0], seconds=0)) == [Tick(3)]


def test_parts_of_steps_add_up_in_their_tick():
    steps = [Tick(2, {"input": 0.25}), 1, Tick(2, {"input": 0.5, "copy": 1.0})]
    assert list(every(steps, seconds=1e9)) == [Tick(5, {"input": 0.75, "copy": 1.0})]
    # A pause ends the tick before it and is passed on.
    steps = [READY, 1, 1, Note("plan", []), Pause("end of epoch"), 1]
    grouped = [READY, Tick(2), Note("plan", []), Pause("end of epoch"), Tick(1)]
    assert list(every(steps, seconds=1e9)) == grouped


class Telling:
    """A running process that tells what it is given, a message each time."""

    pid, started_ns, message, silence = 1, 0, "", 60.0
    outcome = None

    def __init__(self, told=(), ends=None):
        self.told, self.ends, self.stood, self.killed = list(told), ends, {}, False

    def poll(self, timeout):
        if self.told:
            return [self.told.pop(0)]
        self.outcome = self.ends
        return []

    def resume(self):
        """Go on."""

    freeze = resume

    def kill(self, outcome, message):
        self.outcome, self.message, self.killed = outcome, message, True


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
    for pauses in turns:
        stage.stand(5000)
        for spent in pauses:
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
            stat = f"{number} (a (odd) name) {state} {' 0' * 10} {worked} 0 0"
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


class Told:
    """What a process tells whose variants take turns, on a clock of its own."""

    def __init__(self, turns=(), **rates):
        self.now, self.messages = 0, []
        for number in turns:
            for variant, rate in rates.items():
                self.turn(variant, number, rate)

    def turn(self, variant, number, rate, steps=5):
        """A turn in which each tick of ten examples lasts as the rate has it."""
        self._tick(turn(variant, number).label)
        self.now += 50 * MS
        self._tick(READY.label)
        for _ in range(steps):
            self.now += round(10 / rate * 1e9)
            self._tick(examples=10)

    def _tick(self, label="", examples=0):
        self.messages.append(("ticks", [(self.now, examples, {}, label)]))

    def note(self, note):
        self.messages.append(("note", note.name, note.value))

    def trials(self):
        heard = OneProcess(0, zero_ns=0, clock=lambda: self.now)
        for message in self.messages:
            heard.take(message)
        return heard.trials()


def test_what_a_training_raises_is_in_no_trial():
    told = Told((1, 2), a=100)
    told.note(Note(TRACEBACK, {"frames": [["/home/ada/x.py", 1, "f"]]}))
    told.note(Note(PROBLEM, "It raised at /home/ada."))
    told.note(Note("plan", 1))
    told.note(failed("a", "raised OSError: '/home/ada/x'"))
    (trial,) = told.trials()
    assert not {TRACEBACK, PROBLEM} & trial.notes.keys()
    assert trial.notes["plan"] == 1
    assert trial.message == "raised OSError: '<path>'"


def test_turns_of_one_number_are_held_side_by_side():
    told = Told((1, 2), a=100)
    for number, rate in ((3, 50), (4, 80)):
        # The machine slows down, for both alike.
        told.turn("a", number, rate)
        told.turn("b", number, 2 * rate)
    variants = tuple(Variant(name, Script(), "", "a") for name in ("a", "b"))
    trials = told.trials()
    measured = Measurement(variants=variants, trials=trials, baseline="a")
    assert steady(trials[1]).keys == (3, 4)
    assert measured.compare("b", "a").ratio == pytest.approx(2, rel=0.05)
    # What comes before the first turn warms up.
    told = Told((0,), a=10)
    for number in (1, 2):
        told.turn("a", number, 100)
    (trial,) = told.trials()
    assert steady(trial).rate == pytest.approx(100)
    # Set up is that of the variants own first turn.
    trials = Told((1,), a=100, b=100).trials()
    assert [trial.setup_s for trial in trials] == [0.05, 0.05]


def test_a_variant_that_cannot_run_says_why_and_the_others_go_on():
    told = Told((1,), a=100, b=100)
    told.note(failed("b", "raised ValueError: no"))
    told.turn("a", 2, 100)
    outcomes = {t.variant: (t.outcome, t.message) for t in told.trials()}
    assert outcomes["b"] == ("crashed", "raised ValueError: no")
    assert outcomes["a"][0] == "completed"
    # A turn that has only begun is no trial that crashed.
    told = Told((1, 2), a=100)
    told.turn("b", 2, 100, steps=0)
    assert [trial.variant for trial in told.trials()] == ["a"]
    told.turn("b", 3, 100)
    assert [trial.outcome for trial in told.trials()] == ["completed"] * 2


def messages(turns):
    return Told(range(1, turns + 1), base=100, other=200).messages


VARIANTS = tuple(Variant(name, Script(), "", "base") for name in ("base", "other"))


def opened(told, choose=lambda measured: (), ends="completed"):
    opening = Opening(Telling(told, ends), (), VARIANTS)
    return play({"base": Script()}, opening=opening, choose=choose)


def test_a_process_in_which_variants_take_turns_is_the_first_round():
    run, starter = opened(messages(4))
    told = {event.variant for event in run.events() if isinstance(event, Ticked)}
    found = run.measurement
    assert [t.variant for t in found.trials] == ["base", "other"]
    # Each has its own ticks.
    assert [steady(t).rate for t in found.trials] == pytest.approx([100, 200])
    assert {(t.round, t.outcome) for t in found.trials} == {(1, "completed")}
    assert found.compare("other", "base").ratio == pytest.approx(2, rel=0.05)
    assert starter.started == []
    assert told == {"base", "other"}


def test_where_none_takes_a_turn_fresh_processes_begin_with_a_control_and_it_is_said():
    def choose(measured):
        return () if measured.trials else VARIANTS

    run, _ = opened([("note", PROBLEM, "It found no /home/ada/x there.")], choose)
    list(run.events())
    names = {(trial.variant, trial.round) for trial in run.measurement.trials}
    assert names == {("base", 1), ("other", 1), (CONTROL, 1)}
    assert run.measurement.notes[NO_TURNS] == "It found no <path> there."


def test_fresh_processes_come_after_it_and_its_variants_are_among_them():
    def choose(measured):
        return VARIANTS if {trial.round for trial in measured.trials} == {1} else ()

    run, _ = opened(messages(4), choose)
    list(run.events())
    rounds = [(trial.variant, trial.round) for trial in run.measurement.trials]
    assert sorted(rounds[2:]) == [("base", 2), ("other", 2)]


def test_a_turn_that_takes_long_takes_no_time_of_fresh_processes():
    opening = Opening(shared := Telling(messages(9)), (), VARIANTS, until_s=0.0)
    run, _ = play({"base": Script()}, opening=opening, choose=lambda _: ())
    list(run.events())
    assert shared.killed
    assert shared.told


def test_what_a_process_told_before_it_broke_or_was_stopped_stays():
    run, _ = opened(messages(3), ends="crashed")
    list(run.events())
    assert len(run.measurement.trials) == 2
    assert run.measurement.compare("other", "base") is not None
    opening = Opening(shared := Telling(messages(9), "completed"), (), VARIANTS)
    run, _ = play({"base": Script()}, opening=opening)
    for event in run.events():
        if isinstance(event, TrialEnded):
            run.stopped.set()
    assert shared.killed
    assert run.measurement.trials
