"""Samples of stacks that lead through known lines."""

import functools
import itertools
import os
import sys
import threading

import pytest

from perfkit.training.account import places
from perfkit.training.account import sampler as sampling
from perfkit.training.account.places import Kind
from perfkit.training.account.sampler import Key, Sampler
from perfkit.training.account.watch import Watch, _end_pass
from tests.engine.scripted import Seconds

MINE = os.path.join(os.sep, "x", "train.py")
PACKAGES = os.path.join(os.sep, "x", "site-packages")
KERAS = f"{PACKAGES}/keras/src"
TF = f"{PACKAGES}/tensorflow/python"
FIT = (f"{KERAS}/backend/tensorflow/trainer.py", "fit")
PREDICT = (f"{KERAS}/backend/tensorflow/trainer.py", "predict")
EVALUATE = (f"{KERAS}/backend/tensorflow/trainer.py", "evaluate")
CALLED = (f"{TF}/eager/polymorphic_function/polymorphic_function.py", "__call__")
RUNS = (f"{TF}/eager/polymorphic_function/atomic_function.py", "call_flat")
TRACES = (f"{TF}/framework/func_graph.py", "func_graph_from_py_func")
NEXT = (f"{TF}/data/ops/iterator_ops.py", "_next_internal")
MATMUL = (f"{TF}/ops/gen_math_ops.py", "mat_mul")
DATASET = (f"{TF}/ops/gen_dataset_ops.py", "map_dataset")
IMPORTS = ("<frozen importlib._bootstrap>", "_find_and_load")
LISTS = (f"{KERAS}/callbacks/callback_list.py", "on_batch_end")
SAVES = (f"{KERAS}/callbacks/model_checkpoint.py", "on_batch_end")
END = (_end_pass.__code__.co_filename, "_end_pass")
CONCATENATE = (f"{PACKAGES}/numpy/core.py", "concatenate")


def called(chain, inner, myself=None):
    """A function that leads through frames of these files and names to inner calls."""
    for file, name, *line in reversed(chain):
        source = f"def {name}(self=None):\n    for one in inner: one()"
        known, above = {"inner": inner}, (line or [2])[0] - 2
        exec(compile("\n" * above + source, file, "exec"), known)
        # Callbacks have themselves among their variables.
        is_hook = myself is not None and name.startswith("on_")
        inner = [functools.partial(known[name], myself) if is_hook else known[name]]
    return inner[0]


def stack_here():
    """The frames of whoever called this, the innermost first, none of this file."""
    frame, stack = sys._getframe(2), []
    while frame.f_code.co_filename != stack_here.__code__.co_filename:
        stack.append((frame, frame.f_lineno))
        frame = frame.f_back
    return stack


def look(outer, *chains, watch=None, myself=None):
    """What is seen at the end of each of these chains of calls."""
    one, seen = Sampler(watch or Watch(), 0), []

    def sample():
        seen.append(one._look({0: stack_here()}, 0.5))

    inner = [called(chain, [sample], myself) for chain in chains]
    called(outer, inner or [sample], myself)()
    return seen if chains else seen[0]


MINE_AT_7 = (MINE, "step", 7)
WRAPPER = (f"{KERAS}/utils/traceback_utils.py", "error_handler")
WRAPPED = (f"{KERAS}/utils/tracking.py", "wrapped")
TRAINS = (MINE, "train", 9)


@pytest.mark.parametrize(
    ("frames", "place", "call", "kind"),
    [
        ([MINE_AT_7], 7, "", Kind.PYTHON),
        # A library is at work for the line that called it, the innermost one.
        ([MINE_AT_7, CONCATENATE], 7, "concatenate", Kind.PYTHON),
        ([(MINE, "run", 3), MINE_AT_7, CONCATENATE], 7, "concatenate", Kind.PYTHON),
        # What only wraps a function does not name it.
        ([MINE_AT_7, WRAPPER, FIT, CALLED, RUNS], 7, "fit", Kind.GRAPH),
        ([TRAINS, WRAPPER, FIT, EVALUATE, NEXT], 9, "validation", Kind.DATA),
        ([TRAINS, EVALUATE, CALLED, RUNS], 9, "evaluate", Kind.GRAPH),
        # A trace belongs to the line that called for it.
        ([TRAINS, FIT, CALLED, TRACES, (MINE, "call", 55), CONCATENATE], 9, "fit",
         Kind.TRACED),
        # Imports are told whoever asks for them.
        ([(MINE, "top", 2), IMPORTS], 2, "", Kind.IMPORT),
        ([IMPORTS], None, "", Kind.IMPORT),
        ([CONCATENATE], None, "", Kind.PYTHON),
        # Operations one by one are computing, and datasets are set up.
        ([(MINE, "step", 4), MATMUL], 4, "mat_mul", Kind.COMPUTING),
        ([(MINE, "step", 4), DATASET], 4, "map_dataset", Kind.SET_UP),
        # An iterator goes where the line drops it, or what the line called.
        ([(MINE, "step", 4), END], 4, "", Kind.PASS_END),
        ([TRAINS, FIT, END], 9, "fit", Kind.PASS_END),
    ],
)  # fmt: skip
def test_a_sample_is_of_a_line_a_call_and_a_kind(frames, place, call, kind):
    assert look(frames) == Key(place and (MINE, place), call, kind, False)


@pytest.mark.parametrize(
    ("outer", "chains", "kinds"),
    [
        ([TRAINS, FIT], [[CALLED, RUNS], [NEXT]], [Kind.GRAPH, Kind.DATA]),
        # What Keras does before a graph first runs is set-up.
        ([TRAINS, PREDICT], [[WRAPPED], [CALLED, RUNS], [WRAPPED]],
         [Kind.SET_UP, Kind.GRAPH, Kind.PYTHON]),
        # The first run of a traced function is part of its trace, and no other.
        ([TRAINS, FIT, CALLED], [[TRACES], [RUNS]], [Kind.TRACED, Kind.TRACED]),
        ([TRAINS, FIT], [[CALLED, TRACES], [CALLED, RUNS]], [Kind.TRACED, Kind.GRAPH]),
    ],
)  # fmt: skip
def test_what_a_call_does_depends_on_what_it_did(outer, chains, kinds):
    keys = look(outer, *chains)
    assert [key.kind for key in keys] == kinds
    assert {key.place for key in keys} == {(MINE, 9)}


def test_a_callback_of_keras_is_at_work_for_the_line_that_made_it():
    class ModelCheckpoint:
        pass

    made = ModelCheckpoint()
    watch = Watch()
    watch.callbacks[id(made)] = (MINE, 12)
    outer = [(MINE, "train", 9), FIT]
    _, key = look(outer, [CALLED, RUNS], [LISTS, SAVES], watch=watch, myself=made)
    assert key == Key((MINE, 12), "ModelCheckpoint", Kind.CALLBACK, False)
    # One that nobody is known to have made is part of `fit`.
    _, key = look(outer, [CALLED, RUNS], [LISTS, SAVES], myself=made)
    assert key == Key((MINE, 9), "fit", Kind.PYTHON, False)


def test_what_is_in_a_loop_that_trains_or_between_steps_repeats():
    watch, seen = Watch(), []
    chains = [[CONCATENATE], [CALLED, RUNS], [CONCATENATE]]
    assert not any(key.repeats for key in look([MINE_AT_7], *chains, watch=watch))
    watch.trained_at = 5.0
    # A second training may be prepared before its loop is known.
    told = [key.repeats for key in look([MINE_AT_7], *chains, watch=watch)]
    assert told == [False, True, True]
    one = Sampler(watch, 0)
    for watch.steps in (1, 1, 2):
        called([MINE_AT_7], [lambda: seen.append(one._look({0: stack_here()}, 0.5))])()
    assert [key.repeats for key in seen] == [False, False, True]


def test_other_threads_of_the_users_are_seen_beside():
    stacks = []

    def keep():
        stacks.append(stack_here())

    called([(MINE, "step", 7)], [keep])()
    called([(MINE, "rows", 70), CONCATENATE], [keep])()
    one = Sampler(Watch(), 0)
    for spent in (0.5, 0.25):
        one._look(dict(enumerate(stacks)), spent)
    assert one.background == {(MINE, 70): pytest.approx(0.75)}


def test_what_a_library_computes_for_the_input_is_on_the_line_that_asks(monkeypatch):
    stacks = []
    feeds = f"/site-packages/{sampling._PY_FUNC}", "__call__", 7
    called([feeds, CONCATENATE], [lambda: stacks.append(stack_here())])()
    one = Sampler(Watch(), 0)
    monkeypatch.setattr(sampling, "processor_seconds", lambda: {1: 0.4, 2: 0.1})
    one._look_beside({1: stacks[0], 2: []}, 0.5, (MINE, 9))
    assert one.background == {(MINE, 9): pytest.approx(0.4)}


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        # One computes, the other waits for Python's lock.
        ((0.5, 0.0), (0.5, 0.0)),
        ((0.4, 0.05), (0.425, 0.075)),
        # Nobody computes: both wait for a disk.
        ((0.0, 0.0), (0.25, 0.25)),
        # Outside of Python's lock both compute.
        ((0.5, 0.5), (0.5, 0.5)),
        # What a thread did before it came here is not of these seconds.
        ((90.0, 0.0), (0.5, 0.0)),
    ],
)
def test_what_other_threads_compute_is_shared_out(monkeypatch, computed, expected):
    one = Sampler(Watch(), 0)
    counted = iter([dict(zip("ab", computed, strict=True))])
    monkeypatch.setattr(sampling, "processor_seconds", lambda: next(counted))
    monkeypatch.setattr(places, "place_in", lambda stack: (MINE, stack))
    one._look_beside({"a": 7, "b": 8}, 0.5, None)
    assert one.background[MINE, 7] == pytest.approx(expected[0])
    assert one.background[MINE, 8] == pytest.approx(expected[1])


def test_a_line_that_computes_in_c_is_seen_and_not_the_one_behind_it():
    source = "while going:\n    sorted(rows)\n    len(rows)\n"
    known = {"going": [True], "rows": [*range(20_000)] * 20}
    thread = threading.Thread(target=exec, args=(compile(source, MINE, "exec"), known))
    thread.start()
    one, before = Sampler(Watch(), thread.ident), sys.getswitchinterval()
    # The other thread asks for the lock at once, as it does in an account.
    sys.setswitchinterval(0.00005)
    try:
        for _ in range(30):
            one.sample(0.01)
    finally:
        sys.setswitchinterval(before)
        known["going"].clear()
        thread.join(60)
    lines = {key.place[1]: spent for key, spent in one.seconds.items() if key.place}
    assert max(lines, key=lines.get) == 2


class Clock(Seconds):
    """Stands still but for those who sleep, and lets them go on later than asked."""

    def __init__(self):
        self.now, self.late, self.computed = 100.0, 0.0, itertools.count(0.0, 0.5)

    def thread_time(self):
        return next(self.computed)

    def time(self):
        return 7.0

    def sleep(self, seconds):
        self.now += seconds + self.late


@pytest.fixture
def still(monkeypatch):
    """A clock, the sampler of a thread that stands still, and what it is seen at."""
    clock = Clock()
    monkeypatch.setattr(sampling, "time", clock)
    entered, leave = threading.Lock(), threading.Lock()
    entered.acquire()
    leave.acquire()
    # No function of Python's is called where it stands.
    code = compile("\n" * 6 + "entered.release(), leave.acquire()", MINE, "exec")
    known = {"entered": entered, "leave": leave}
    thread = threading.Thread(target=exec, args=(code, known), daemon=True)
    thread.start()
    assert entered.acquire(timeout=60)
    one = Sampler(Watch(), thread.ident, _last=100.0)
    yield clock, one, Key((MINE, 7), "", Kind.PYTHON, False)
    leave.release()
    thread.join(60)


def test_samples_stand_for_the_seconds_since_the_last_one(still):
    clock, one, key = still
    one.sample(1.0)
    one.sample(1.0)
    assert one.seconds == {key: 2.0}
    # Waiting for Python's lock holds up nobody.
    assert (one.samples, one.taken_s) == (2, 1.0)
    clock.now += 1.0
    one.skip()  # nobody looked
    one.window = []
    one.sample(1.0)
    # A window's samples are its own.
    assert one.window == [(7.0, key)]
    assert one.seconds == {key: 2.0}
    assert one.imports_s == 0


def test_behind_a_late_sample_waits_are_random_and_stand_for_the_usual_one(still):
    clock, one, key = still
    clock.late = 0.5
    one.sample(1.0)
    assert one.seconds == {key: 1.5}
    waits = []
    for _ in range(400):
        before = clock.now
        one.sample(1.0)
        waits.append(clock.now - before - clock.late)
    # What it was late by is known; how long it waited says nothing.
    assert one.seconds[key] == pytest.approx(1.5 + 400 * 1.5)
    assert sum(waits) / len(waits) == pytest.approx(1.0, abs=0.15)
    assert min(waits) < 0.05
    assert max(waits) > 2
