import dataclasses
import json

import pytest

from perfkit.findings.store import to_json
from perfkit.passports.passport import to_json as passport_to_json
from tests.findings import made
from tests.fleet.scripted import TASK, member, sent
from tests.machines.pairs import passport

PASSPORT = dataclasses.replace(TASK, experiment="")


def outcome(data, folder, task=TASK):
    row = member(1, began=1.0)
    row.receive(data, task, folder, 62.0)
    return row


def test_a_finding_is_read_saved_and_told_by_its_headline(tmp_path):
    found = outcome(sent(), tmp_path)
    headline = "prefetched is the fastest way here."
    assert (found.how, found.said) == ("completed", headline)
    assert found.path.parent == tmp_path
    # What was measured by then is kept, and why there is no more is said.
    found = outcome(sent(how="failed", why="It was killed."), tmp_path)
    assert found.how == "failed"
    assert found.said.startswith("It was killed. What it measured by then: prefetched")
    assert found.path.exists()
    # A machine cannot say of its finding that it is a recording.
    said = to_json(made.finding(replayed=True))
    assert not outcome(sent(said), tmp_path).document.replayed


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04cos\nsystem\n.",
        b"[" * 100_000,
        b'{"how": "completed"}',
        b'{"how": "by magic", "why": "", "document": ""}',
        b'{"how": "completed", "why": "", "document": {}}',
        sent("{"),
        sent("{}"),
        sent('{"kind": "finding", "schema": 99}'),
        sent(to_json(made.finding(experiment="batch-size"))),
        sent(passport_to_json(passport())),
    ],
)
def test_what_is_no_answer_is_an_outcome_with_a_sentence_and_no_file(data, tmp_path):
    found = outcome(data, tmp_path)
    assert found.how == "failed"
    assert found.said.startswith("What it sent was not kept: ")
    assert found.document is None
    assert list(tmp_path.iterdir()) == []


def test_a_passport_is_kept_and_another_tensorflow_is_said(tmp_path):
    data = sent(passport_to_json(passport()))
    found = outcome(data, tmp_path, dataclasses.replace(PASSPORT, tensorflow="2.20.0"))
    assert found.how == "completed"
    assert "it has TensorFlow 2.21.0, the asking machine 2.20.0" in found.said
    assert json.loads(found.path.read_text())["kind"] == "passport"
    assert "TensorFlow" not in outcome(data, tmp_path, PASSPORT).said


@pytest.mark.fault("fleet", "full disk", sees="That it could not be saved here.")
def test_a_disk_that_is_full_here_is_told(tmp_path):
    (tmp_path / "no-folder").touch()
    found = outcome(sent(), tmp_path / "no-folder")
    assert "could not be saved" in found.said
