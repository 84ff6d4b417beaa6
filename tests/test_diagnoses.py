import json

import pytest

import perfkit
from perfkit import cli
from perfkit.errors import BadParameterError, RunError
from perfkit.training.diagnose import diagnose as diagnoses
from tests.engine.scripted import Session
from tests.training.diagnose.diagnosed import diagnosis


@pytest.fixture
def scripted(monkeypatch, here):
    (here / "train.py").write_text("import keras\n" + 2 * "model.fit(x, epochs=2)\n")
    asked = []

    def script(found=None, error=None):
        def opened(*given, replay=None, **script):
            asked.append((*given, *script.values()))
            return Session(*filter(None, [error]), finding=found)

        monkeypatch.setattr(diagnoses, "open_diagnosis", opened)
        return asked

    return script


@pytest.mark.parametrize(
    ("training", "given", "why"),
    [
        (lambda: None, {"budget": "soon"}, "give the seconds"),
        (lambda: None, {"budget": 3}, "The budget is 3"),
        (lambda: None, {"seed": -1}, "seed is -1"),
        (lambda: None, {"seed": 2**32}, "a whole number from 0 to 4294967295"),
        # What is no training.
        (3, {}, "takes a function"),
    ],
)
def test_what_cannot_be_diagnosed_is_refused_before_anything_runs(training, given, why):
    with pytest.raises(BadParameterError, match=why):
        perfkit.diagnose(training, **given)


def test_a_training_that_cannot_run_keeps_the_lines_of_the_user(scripted, capsys):
    error = RunError("The training raised KeyError: 'price'")
    error.add_note("Traceback (most recent call last):\n  there")
    scripted(error=error)
    with pytest.raises(RunError, match="KeyError") as caught:
        perfkit.diagnose(lambda: None)
    assert caught.value.__notes__[0].startswith("Traceback")
    # For the command it is a sentence and these lines.
    assert cli.main(["diagnose", "train.py"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "perfkit: The training raised KeyError: 'price'",
        "Traceback (most recent call last):",
        "  there",
    ]


def test_the_command_writes_the_diagnosis_and_nothing_else_to_stdout(scripted, capsys):
    asked = scripted(diagnosis())
    line = "diagnose train.py --budget 90 --json - --fit 2 --out there --seed 7"
    assert cli.main([*line.split(), "--", "--epochs", "3"]) == 0
    said = capsys.readouterr()
    [(made, *rest)] = asked
    assert (made.arguments, made.fit) == (("--epochs", "3"), 2)
    assert rest[:3] == [90.0, 7, "there"]
    written = json.loads(said.out)
    assert written["kind"] == "diagnosis"
    assert [cause["cause"] for cause in written["causes"]] == ["serial-map", "callback"]
    assert diagnosis().verdict.headline in said.err


def test_a_stopped_diagnosis_is_shown_and_ends_as_an_interrupt(scripted, capsys):
    scripted(diagnosis(stopped=True))
    assert cli.main(["diagnose", "train.py"]) == 130
    assert diagnosis().verdict.headline in capsys.readouterr().out
    # One that cannot be timed fails.
    scripted(diagnosis((), step=None, timings=(), comparisons=(), outcome="timed-out"))
    assert cli.main(["diagnose", "train.py"]) == 1
