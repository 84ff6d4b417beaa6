"""Whether perfkit still answers what it answered; see ``answers.py``."""

import json

import pytest

from tests.net import answers

KNOWN = json.loads(answers.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", answers.RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_names_the_same_winner_as_before(path):
    assert answers.verdict_of(path) == KNOWN["recordings"][path.stem]


@pytest.mark.parametrize("command", answers.commands())
def test_a_command_has_the_same_options_as_before(command):
    assert answers.options_of(command) == KNOWN["options"][command]


@pytest.mark.parametrize("case", answers.REFUSED)
def test_what_was_refused_is_refused_in_the_same_sentence(case, tmp_path):
    refused = answers.refusal(answers.REFUSED[case], tmp_path)
    assert refused == KNOWN["refusals"][case]
    assert refused["says"].count("\n") == 1


def test_nothing_was_forgotten():
    assert KNOWN["recordings"].keys() == {path.stem for path in answers.RECORDINGS}
    assert KNOWN["options"].keys() == set(answers.commands())
    assert KNOWN["refusals"].keys() == set(answers.REFUSED)
