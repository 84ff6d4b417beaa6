"""When moments are traced, and what is written down of them."""

import pytest

from perfkit.errors import BadParameterError
from perfkit.training.account import collect
from perfkit.training.account.collect import _Windows
from perfkit.training.account.places import Kind
from perfkit.training.account.sampler import VALIDATION, Key, Sampler
from perfkit.training.account.watch import Watch
from perfkit.training.diagnose.maker import InFile
from perfkit.training.diagnose.script import WholeScript
from tests.engine.scripted import Seconds


class Clock(Seconds):
    now = 100.0
    time = Seconds.perf_counter


@pytest.fixture
def windows(tmp_path, monkeypatch):
    """Windows of a run of 30 s, its clock, and what the watch has heard."""
    clock = Clock()

    class Marks:
        def __init__(self, folder, *, all_operations):
            pass

        def start(self):
            pass

        def stop(self):
            # Each window takes a while to be written.
            clock.now += 0.2

    monkeypatch.setattr(collect, "time", clock)
    monkeypatch.setattr(collect, "Marks", Marks)
    watch = Watch()
    sampler = Sampler(watch, 0)
    monkeypatch.setattr(sampler, "skip", lambda: None)
    return _Windows(sampler, 30.0, tmp_path), clock, watch


def run_once(windows, clock, began=100.0, each=0.01):
    windows.look(clock.now - began)
    clock.now += each


def run(windows, clock, until, began=100.0, each=0.01):
    while clock.now < began + until:
        run_once(windows, clock, began, each)
    windows.close()


def test_five_windows_are_spread_over_a_training(windows):
    made, clock, watch = windows
    watch.steps = 100
    run(made, clock, 31.0)
    first, *others, last = [round(one["started"] - 100) for one in made.traced]
    assert len(others) == 3
    assert first <= 4
    assert last >= 20
    assert made.is_done
    # All of them with what it costs to write them are a tenth, about.
    assert made.looking_s <= 0.1 * 30 + 0.5


def test_nothing_is_traced_before_it_trains_or_while_it_traces(windows):
    made, clock, watch = windows
    for until in (10.0, 12.0):
        run(made, clock, until)
        assert made.traced == []
        assert not made.is_done
        watch.is_tracing, watch.steps = True, 100
    watch.is_tracing = False
    run(made, clock, 20.0)
    assert made.traced


def test_where_another_profiler_runs_there_are_no_windows(windows, monkeypatch):
    made, clock, watch = windows
    watch.steps = 100

    def start(_):
        raise BadParameterError("Another profiler runs.")

    monkeypatch.setattr(collect.Marks, "start", start)
    run(made, clock, 31.0)
    assert made.failed == "Another profiler runs."
    assert made.traced == []
    assert made.is_done


def test_what_takes_long_and_was_not_traced_is_waited_for(windows):
    made, clock, watch = windows
    watch.steps = 100
    trains = Key(("train.py", 3), "fit", Kind.GRAPH, True)
    validates = trains._replace(call=VALIDATION, kind=Kind.DATA)
    made.sampler.seconds.update({trains: 3.0, validates: 1.0})
    made.sampler.key = trains
    while not made.traced:
        run_once(made, clock)
    made.sampler.window = [(104.0, trains)]
    run(made, clock, 6.0)
    # The second one is due.
    run(made, clock, 10.0)
    assert len(made.traced) == 1
    made.sampler.key = validates
    run(made, clock, 10.5)
    assert len(made.traced) == 2
    # It is waited for no longer than a little.
    made.sampler.key = trains
    run(made, clock, 31.0)
    assert len(made.traced) == 5


def test_a_function_in_a_file_stands_for_the_fit_that_perfkit_calls(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import keras\n\n\ndef make_training():\n    return None\n")
    assert collect._home(InFile(str(path), "make_training")) == (str(path), 4)
    assert collect._home(InFile(str(path), "another")) is None
    assert collect._home(WholeScript(str(path))) is None
