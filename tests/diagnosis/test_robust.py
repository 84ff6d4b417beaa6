"""Whatever a training does, a diagnosis ends with a clear word and leaves nothing."""

import functools
from pathlib import Path

import cloudpickle
import psutil
import pytest

from perfkit.diagnosis import look
from perfkit.diagnosis.choosing import AS_GIVEN, Choosing
from perfkit.diagnosis.epochs import EPOCH_END
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.maker import InFile
from perfkit.diagnosis.raised import in_text
from perfkit.diagnosis.session import DiagnosisSession
from perfkit.diagnosis.swap import Swap
from perfkit.diagnosis.trial import trial
from perfkit.errors import RunError
from perfkit.measure import alone
from perfkit.measure.launcher import launcher
from perfkit.measure.measurement import Measurement
from perfkit.measure.trial import Limits, Trial
from tests.diagnosis import odd

# A trial that is heard nothing of for so long hangs, even on a busy machine.
SILENCE = 40


@pytest.fixture(autouse=True)
def _carried_along():
    """The process that trials are forked from does not know this folder."""
    cloudpickle.register_pickle_by_value(odd)
    yield
    cloudpickle.unregister_pickle_by_value(odd)


def heard(work, silence=SILENCE, enough=lambda notes, ticks: False):
    """Run work in a process of its own: its notes, its ticks, and how it ended."""
    while not launcher().wait(1):
        pass
    running = launcher().start(work, 0, Limits(silence=silence))
    notes, ticks = {}, []
    while running.outcome is None and not enough(notes, ticks):
        for message in running.poll(0.1):
            if message[0] == "note":
                notes[message[1]] = message[2]
            else:
                ticks += message[1]
    running.kill("stopped", "was stopped")
    return notes, ticks, running


def looked(maker, silence=SILENCE):
    notes, _, running = heard(functools.partial(look.look, maker), silence)
    return notes, running


REFUSED = {
    odd.raises: "ValueError: no data today",
    odd.returns_nothing: "returned nothing",
    odd.returns_a_model_alone: "of type Sequential",
    odd.returns_numbers: "of type int, no Keras model",
    odd.is_not_compiled: "call model.compile",
    odd.has_arguments_in_a_list: "a tuple of 3",
    odd.has_data_in_a_string: "of type str; give a batched",
    odd.has_no_data: "made no step: its data are empty",
    odd.has_no_rows: "made no step: its data are empty",
    odd.has_an_empty_generator: "must yield at least one batch",
    odd.is_never_batched: "Invalid input shape",
    odd.has_an_argument_that_fit_lacks: "argument 'epoch'",
    odd.raises_at_step_one: "RuntimeError: the disk went away",
    odd.asks_for_too_much_memory: "MemoryError: not enough of it",
    odd.allocates_without_an_end: "MemoryError.",
}


def short(value):
    """The same in every process that collects these tests: no address is in it."""
    return getattr(value, "__name__", str(value)[:40])


@pytest.mark.parametrize(("maker", "said"), REFUSED.items(), ids=short)
def test_what_cannot_be_trained_is_refused_in_a_sentence(maker, said):
    notes, _ = looked(maker)
    assert said in notes[look.PROBLEM]
    assert "\n" not in notes[look.PROBLEM]
    assert look.FACTS not in notes


def test_the_traceback_is_that_of_the_users_own_code():
    notes, _ = looked(odd.raises)
    told = in_text(notes[look.TRACEBACK])
    assert 'raise ValueError("no data today")' in told
    assert "perfkit/diagnosis" not in told


ENDED = {
    odd.exits: "SystemExit: 3",
    odd.is_interrupted: "KeyboardInterrupt",
    odd.exits_at_once: "exit code 5",
    odd.claims_success_at_once: "exit code 0",
    odd.kills_itself: "SIGKILL",
    odd.reads_where_nothing_is: "SIGSEGV",
}


@pytest.mark.parametrize(("maker", "said"), ENDED.items(), ids=short)
def test_a_training_that_ends_its_process_is_told_by_how_it_did(maker, said):
    notes, running = looked(maker)
    assert look.FACTS not in notes
    assert running.outcome == "crashed"
    assert said in running.message


@pytest.mark.parametrize(
    "maker", [odd.hangs_while_it_is_made, odd.hangs_in_its_first_step]
)
def test_a_training_that_hangs_is_ended(maker):
    _, running = looked(maker, silence=1)
    assert running.outcome == "timed-out"
    assert not psutil.pid_exists(running.pid)


TRAINED = {
    odd.never_ends_an_epoch: ("tf.data", 16, None),
    odd.has_epochs_of_one_step: ("tf.data", 16, 1),
    odd.ends_before_it_said: ("tf.data", 16, 100),
    odd.prints_a_lot: ("tf.data", 16, 16),
    odd.has_a_generator: ("generator", None, None),
    odd.has_a_generator_that_ends: ("generator", None, None),
    odd.has_a_factory: ("generator", 16, 20),
    odd.takes_dicts: ("tf.data", 16, 16),
    odd.takes_several_arrays: ("arrays", 16, 16),
    odd.takes_dicts_of_arrays: ("arrays", 16, 16),
    odd.weighs_its_samples: ("tf.data", 16, 16),
    odd.weighs_its_arrays: ("arrays", 16, 16),
    odd.weighs_its_classes: ("arrays", 32, 6),
    odd.gives_y_by_name: ("arrays", 16, 16),
    odd.steps_its_own_way: ("tf.data", 16, 16),
    odd.trains_in_a_strategy: ("tf.data", 16, 16),
    odd.sets_up_its_machine: ("tf.data", 16, 16),
}


@pytest.mark.parametrize(("maker", "known"), TRAINED.items(), ids=short)
def test_a_training_of_any_kind_is_understood_and_runs(maker, known):
    notes, _ = looked(maker)
    facts = Facts(**notes[look.FACTS])
    kind, batch, steps = known
    assert (facts.data, facts.steps) == (kind, steps)
    assert batch in (None, facts.batch)
    work = functools.partial(trial, maker, facts)
    _, ticks, running = heard(work, enough=lambda _, ticks: working(ticks) > 1)
    assert working(ticks) > 1, running.message


def test_how_seldom_a_training_validates_is_known_after_a_look_at_it():
    notes, _ = looked(odd.validates_seldom)
    facts = Facts(**notes[look.FACTS])
    assert facts.validated == 5


def working(ticks):
    return sum(bool(tick[1]) for tick in ticks)


def test_what_a_training_started_ends_with_its_trial():
    notes, _ = looked(odd.starts_processes)
    assert look.FACTS in notes
    left = [p for p in psutil.process_iter() if "# perfkit-odd" in command_of(p)]
    assert left == []


def command_of(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_a_function_brings_what_it_has_closed_over():
    x, y = odd.arrays(4096)

    def make_training():
        return odd.model(), (x, y)

    notes, _ = looked(make_training)
    assert Facts(**notes[look.FACTS]).steps == 4096 // 32
    notes, _ = looked(lambda: (odd.model(), odd.batches()))
    assert Facts(**notes[look.FACTS]).steps == 16


def test_a_dataset_with_workers_has_epochs_that_end_early():
    notes, _ = looked(odd.has_a_dataset_of_many_workers)
    facts = Facts(**notes[look.FACTS])
    work = functools.partial(trial, odd.has_a_dataset_of_many_workers, facts)
    _, ticks, running = heard(work, enough=lambda _, ticks: ends(ticks) > 1)
    assert ends(ticks) > 1, running.message


def ends(ticks):
    return sum(tick[3] == EPOCH_END for tick in ticks)


# Trainings in files.

SOUND = """
from neighbour import model, batches
def make_training():
    return model(), batches()
if __name__ == "__main__":
    raise RuntimeError("run as a script")
"""
FILES = {
    "def make_training(:\n": "SyntaxError",
    "from .neighbour import model\n": "ImportError",
    "make = 1\n": "has no function make_training",
    "make_training = 1\n": "TypeError",
    "import nowhere_to_be_found\n": "No module named",
}


def test_a_file_is_run_like_an_import_beside_its_neighbours(tmp_path):
    (tmp_path / "neighbour.py").write_text(Path(odd.__file__).read_text())
    (tmp_path / "training.py").write_text(SOUND)
    notes, _ = looked(InFile(str(tmp_path / "training.py"), "make_training"))
    assert Facts(**notes[look.FACTS]).steps == 16


@pytest.mark.parametrize(("code", "said"), FILES.items())
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(code, said, tmp_path):
    (tmp_path / "training.py").write_text(code)
    notes, _ = looked(InFile(str(tmp_path / "training.py"), "make_training"))
    assert said in notes[look.PROBLEM]


# Whole diagnoses.


@pytest.fixture
def alone_here(monkeypatch, tmp_path):
    """Wait for no other run of this user: nothing here is judged by its rates."""
    monkeypatch.setattr(alone, "lock_file", lambda: tmp_path / "lock")


def test_a_diagnosis_of_a_training_that_raises_has_no_half_result(alone_here, tmp_path):
    session = DiagnosisSession(odd.raises, budget=10, folder=tmp_path / "found")
    with pytest.raises(RunError, match="ValueError: no data today") as caught:
        list(session.events())
    assert "in raises" in caught.value.__notes__[0]
    assert session.finding is None
    assert not (tmp_path / "found").exists()


def test_a_diagnosis_that_cannot_be_saved_stays_in_memory(alone_here, tmp_path):
    (tmp_path / "file").write_text("no folder")
    session = DiagnosisSession(
        odd.never_ends_an_epoch, budget=10, folder=tmp_path / "file"
    )
    list(session.events())
    assert session.finding is not None
    assert session.finding.path is None
    assert session.unsaved.endswith(".")


@pytest.mark.parametrize("events", [1, 3, 30])
def test_a_diagnosis_is_stopped_at_any_moment(events, alone_here, tmp_path):
    session = DiagnosisSession(odd.never_ends_an_epoch, budget=3600, folder=tmp_path)
    for index, _ in enumerate(session.events()):
        if index == events:
            session.stop()
    assert session.finding is None or session.finding.stopped


def test_two_diagnoses_at_once_wait_for_each_other(alone_here, tmp_path):
    first, second = (
        DiagnosisSession(odd.never_ends_an_epoch, budget=3600, folder=tmp_path)
        for _ in range(2)
    )
    events, others = first.events(), second.events()
    next(events)
    assert next(others).message.startswith("Waiting")
    events.close()
    while next(others).message.startswith("Waiting"):
        pass
    others.close()


def test_time_that_loading_took_up_is_told(alone_here, tmp_path, monkeypatch):
    clock = iter(range(0, 1000, 6))
    monkeypatch.setattr(
        "perfkit.diagnosis.session.time",
        type("Clock", (), {"perf_counter": lambda: next(clock)}),
    )
    monkeypatch.setattr(launcher(), "wait", lambda timeout: False)
    session = DiagnosisSession(odd.raises, budget=10, folder=tmp_path)
    with pytest.raises(RunError, match="not loaded after 10 s"):
        list(session.events())


# What the next round holds.


def swap(name):
    return Swap(
        name=name, cause=name, kind="defect", changes="", fix="", apply=lambda _: None
    )


def choosing(*names):
    return Choosing([swap(n) for n in names], lambda _: lambda: iter(()), 120, 1.0)


def ended(variant, outcome="completed", round=1, rate=10.0):
    ticks = tuple((index / rate * 10, 10 if index else 0) for index in range(60))
    return Trial(variant=variant, round=round, outcome=outcome, ticks=ticks)


def measured(*trials):
    names = dict.fromkeys(t.variant for t in trials)
    choose = choosing(*(n for n in names if n != AS_GIVEN))
    arms = (choose.given, *(choose.arm(swap(n)) for n in names if n != AS_GIVEN))
    return Measurement(arms=arms, trials=trials, baseline=AS_GIVEN)


def names_of(arms):
    return [arm.name for arm in arms]


def test_nothing_more_is_run_where_the_training_as_given_cannot_run():
    failed = ended(AS_GIVEN, "crashed")
    assert choosing("a", "b")(measured(failed, ended("a"))) == ()
    assert choosing("a", "b")(measured(ended(AS_GIVEN), ended("a"))) != ()


def test_what_one_round_shows_to_be_slow_is_seen_once_more_where_time_is_left():
    once = measured(ended(AS_GIVEN), ended("a", rate=5), ended("b", rate=4))
    assert names_of(choosing("a", "b")(once)) == [AS_GIVEN, "a", "b"]
    twice = measured(
        *(ended(n, round=r, rate=f) for r in (1, 2) for n, f in RATES.items())
    )
    assert choosing("a", "b")(twice) == ()


RATES = {AS_GIVEN: 10.0, "a": 5.0, "b": 4.0}


def test_what_looked_good_once_comes_before_what_is_new():
    once = measured(ended(AS_GIVEN), ended("b", rate=20))
    assert names_of(choosing("a", "b")(once)) == [AS_GIVEN, "b", "a"]
