"""Whatever a training does, a diagnosis ends with a clear word and leaves nothing."""

import functools
import os
import sys
from pathlib import Path

import cloudpickle
import psutil
import pytest

from perfkit.engine.live import FAILED
from perfkit.engine.trial import Limits
from perfkit.errors import RunError
from perfkit.training.diagnose import look
from perfkit.training.diagnose.diagnose import DiagnosisSession
from perfkit.training.diagnose.failure import PROBLEM
from perfkit.training.diagnose.look import trial
from perfkit.training.diagnose.maker import InFile
from tests.engine.trials import launched, ticks_of
from tests.guilty import retracing_callback
from tests.training.account.accounts import account
from tests.training.diagnose import odd
from tests.training.diagnose.diagnosed import diagnosis
from tests.training.diagnose.test_script import facts_in_trial, looked

# The process that trials are forked from does not know these folders.
for trainings in (odd, retracing_callback):
    cloudpickle.register_pickle_by_value(trainings)


def heard(work, enough):
    """Run work in a process of its own until it told enough: its ticks, and itself."""
    running, ticks = launched().start(work, 0, Limits(silence=40)), []
    while running.outcome is None and not enough(running.notes, ticks):
        ticks += ticks_of(running.poll(0.1))
    running.kill("stopped", "was stopped")
    return ticks, running


REFUSED = {
    "ValueError: no data today": odd.raises,
    "returned nothing": lambda: None,
    "of type Sequential": odd.model,
    "of type int, not a Keras model": lambda: (1, 2),
    "call model.compile": odd.is_not_compiled,
    "a tuple of 3": lambda: (odd.model(), odd.batches(), ["verbose"]),
    "of type str; give a batched": lambda: odd.fits("images/"),
    "made no step, because its data are empty": lambda: odd.fits(odd.batches(0)),
    "must yield at least one batch": lambda: odd.fits(lambda: (x for x in ())),
    "Invalid input shape": lambda: odd.fits(odd.batches().unbatch()),
    "argument 'epoch'": lambda: odd.fits(odd.batches(), epoch=3),
    "Error: the disk went away": lambda: odd.hooked(on_train_batch_begin=odd.fail),
    "OSError: [Errno 28] No space": lambda: odd.throws(OSError(28, "No space")),
    "MemoryError.": odd.allocates_without_an_end,
}


@pytest.mark.parametrize(("said", "maker"), REFUSED.items(), ids=REFUSED)
@pytest.mark.fault(
    "script", "memory limit", sees="perfkit shows the MemoryError and your own lines."
)
@pytest.mark.fault(
    "script", "full disk", sees="perfkit shows the error and your script's own lines."
)
def test_what_cannot_be_trained_is_refused_in_a_sentence(said, maker):
    notes = looked(maker).notes
    assert said in notes[PROBLEM]
    assert "\n" not in notes[PROBLEM]
    assert look.FACTS not in notes


ENDED = {
    "SystemExit: 3": lambda: sys.exit(3),
    "KeyboardInterrupt": lambda: odd.throws(KeyboardInterrupt()),
    "exit code 5": lambda: os._exit(5),
    "exit code 0": lambda: os._exit(0),
    "SIGKILL": lambda: os.kill(os.getpid(), 9),
    "SIGSEGV": odd.reads_where_nothing_is,
}


@pytest.mark.parametrize(("said", "maker"), ENDED.items(), ids=ENDED)
@pytest.mark.fault(
    "script", "SIGKILL", sees="perfkit names the signal, and suspects a lack of memory."
)
@pytest.mark.fault(
    "script", "SIGSEGV", sees="perfkit names the signal and the last printed line."
)
def test_a_training_that_ends_its_process_is_told_by_how_it_did(said, maker):
    running = looked(maker)
    assert look.FACTS not in running.notes
    assert running.outcome == "crashed"
    assert said in running.message


@pytest.mark.parametrize(
    "maker",
    [odd.hangs, lambda: odd.hooked(on_train_batch_begin=odd.hangs)],
    ids=["made", "in its first step"],
)
def test_a_training_that_hangs_is_ended(maker):
    running = looked(maker, 1)
    assert running.outcome == "timed-out"
    assert not psutil.pid_exists(running.pid)


TRAINED = [
    ("tf.data", 16, None, lambda: odd.fits(odd.batches().repeat())),
    ("tf.data", 16, 16, odd.prints_a_lot),
    ("generator", None, None, lambda: odd.fits(odd.endless())),
    ("generator", 16, 20, lambda: odd.fits(odd.endless, steps_per_epoch=20)),
    ("tf.data", 16, 16, odd.takes_dicts),
    ("arrays", 32, 6, odd.weighs_its_classes),
    ("arrays", 16, 16, odd.gives_y_by_name),
    ("tf.data", 16, 16, odd.trains_in_a_strategy),
    ("tf.data", 16, 16, odd.sets_up_its_machine),
]


@pytest.mark.parametrize(
    ("kind", "batch", "steps", "maker"), TRAINED, ids=range(len(TRAINED))
)
def test_a_training_of_any_kind_is_understood_and_runs(kind, batch, steps, maker):
    facts = facts_in_trial(maker)
    assert (facts.data, facts.steps) == (kind, steps)
    assert batch in (None, facts.batch)
    work = functools.partial(trial, maker, facts)
    ticks, running = heard(work, lambda _, ticks: working(ticks) > 1)
    assert working(ticks) > 1, running.message


def working(ticks):
    return sum(bool(tick[1]) for tick in ticks)


def test_what_a_training_started_ends_with_its_trial():
    assert look.FACTS in looked(odd.starts_processes).notes
    assert [p for p in psutil.process_iter() if "# perfkit-odd" in command_of(p)] == []


def command_of(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


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


@pytest.mark.fault("script", "path", sees="The diagnosis works as in any other folder.")
def test_a_file_is_run_like_an_import_beside_its_neighbours(tmp_path):
    tmp_path /= "mein ärger 数据"
    tmp_path.mkdir()
    (tmp_path / "neighbour.py").write_text(Path(odd.__file__).read_text())
    (tmp_path / "training.py").write_text(SOUND)
    made = InFile(str(tmp_path / "training.py"), "make_training")
    assert facts_in_trial(made).steps == 16


@pytest.mark.parametrize(("code", "said"), FILES.items())
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(code, said, tmp_path):
    (tmp_path / "training.py").write_text(code)
    made = InFile(str(tmp_path / "training.py"), "make_training")
    assert said in looked(made).notes[PROBLEM]


# Whole diagnoses.


def test_a_diagnosis_of_a_training_that_raises_has_no_half_result(alone_here, tmp_path):
    session = DiagnosisSession(odd.raises, budget=10, folder=tmp_path / "found")
    with pytest.raises(RunError, match="ValueError: no data today") as caught:
        list(session.events())
    # Its lines are those of the user's own code.
    lines = caught.value.__notes__[0]
    assert 'raise ValueError("no data today")' in lines
    assert "perfkit/training/diagnose" not in lines
    assert session.finding is None
    assert not (tmp_path / "found").exists()


def test_a_diagnosis_that_cannot_be_saved_stays_in_memory(tmp_path):
    (tmp_path / "file").write_text("no folder")
    session = DiagnosisSession(odd.raises, budget=10, folder=tmp_path / "file")
    session._save(diagnosis())
    assert session.finding == diagnosis()
    assert session.finding.path is None
    assert session.unsaved.endswith(".")


@pytest.mark.parametrize("events", [1, 30])
@pytest.mark.parametrize("known", [None, account()])
def test_a_diagnosis_is_stopped_at_any_moment(events, known, alone_here, tmp_path):
    session = DiagnosisSession(
        lambda: odd.fits(odd.batches().repeat()), budget=3600, folder=tmp_path
    )
    if known:
        session._account, session._take_account, session._code = known, tuple, "old"
    for index, _ in enumerate(session.events()):
        if index == events:
            session.stop()
    assert session.finding is None or session.finding.stopped
    # What was seen before the first turn is kept.
    assert not known or session.finding.account == known
    assert not known or "run it again" in session.finding.verdict.warnings[0]


@pytest.mark.parametrize(
    ("maker", "turns"),
    [(retracing_callback.make_fixed, True), (retracing_callback.make_training, False)],
    ids=["once", "anew"],
)
def test_what_is_traced_anew_for_each_value_takes_no_turns(maker, turns):
    # What one turn had traced would be known in the next.
    work = functools.partial(look.look, maker, 60.0, screens=True)
    _, running = heard(work, lambda notes, ticks: look.SPENT in notes)
    assert bool(running.notes[look.FACTS]["retraced"]) != turns
    assert (look.SPENT in running.notes) == turns


def test_the_changes_of_a_training_in_a_strategy_take_turns():
    tried = {"without input", "without observers", "16 steps at a time"}

    def enough(notes, ticks):
        turns = {str(tick[3]).partition(": ")[2] for tick in ticks}
        return PROBLEM in notes or FAILED in notes or tried <= turns

    work = functools.partial(look.look, odd.trains_in_a_strategy, 600.0, screens=True)
    _, running = heard(work, enough)
    assert running.notes.keys() & {PROBLEM, FAILED} == set()
