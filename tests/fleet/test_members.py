import dataclasses
import io
import json

import pytest
from rich.console import Console

from perfkit.findings.store import to_json
from perfkit.fleet import members
from perfkit.fleet.members import Gathered
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


SLY = "<script>alert(1)</script>\x1b[2J"


def completed(number, rates=None, version="2.21.0", **more):
    machine = dataclasses.replace(made.MACHINE, versions={"tensorflow": version})
    found = made.finding(rates, machine=machine, **more)
    told = {"said": found.verdict.headline, "seconds": 61.2, "document": found}
    return member(number, how="completed", **told)


def gathered(*outcomes):
    return Gathered(asked="data-pipeline", outcomes=outcomes, seconds=64.0)


FAILED = member(9, how="left", said=f"It left. {SLY}", seconds=12.0)


def test_the_table_tells_of_each_how_it_ended_what_was_fastest_and_how_long_it_took():
    lines = repr(gathered(completed(1), FAILED)).splitlines()
    assert lines[0] == "1 of 2 sent what they measured, in 64 s."
    rows = {" ".join(line.split()[:3]): line for line in lines}
    assert "host outcome fastest" in rows
    assert "prefetched, 1,9" in rows["host 1 completed"]
    assert "61 s" in rows["host 1 completed"]
    assert "host 9 left" in rows
    assert lines[-1] == "Asked: data-pipeline"


USUAL = {"naive": 1000.0, "prefetched": 1900.0}


def slow(*rates):
    room = gathered(*(completed(number, one) for number, one in enumerate(rates, 1)))
    return list(room.slow())


def test_a_machine_whose_baseline_is_slow_is_named_with_what_shows_it():
    (said,) = slow(USUAL, USUAL, {"naive": 400.0, "prefetched": 800.0})
    assert said.startswith("host 3 is well behind: 'naive' ran at ")
    assert " examples/s" in said
    assert "on the 2 others at" in said
    # One that differs by little is not called slow, nor is one beside one.
    assert slow(USUAL, USUAL, {"naive": 900.0}) == []
    assert slow(USUAL, {"naive": 100.0}) == []


def test_different_versions_of_tensorflow_are_told():
    room = gathered(completed(1), completed(2), completed(3, version="2.20.0"))
    told = list(room.closing())
    assert told[-1].endswith("the same TensorFlow: 2.21.0 on 2, 2.20.0 on 1.")
    assert len(list(gathered(completed(1), completed(2)).closing())) == 1


def test_nothing_that_a_machine_says_becomes_markup_or_moves_the_cursor():
    room = gathered(completed(1), FAILED)
    assert "<script>" not in room._repr_html_()
    assert "\x1b" not in repr(room)
    row = member(1, began=0.0, doing=SLY)
    assert "<script>" not in members.rows_in_html([row])
    console = Console(width=200, record=True, force_terminal=False)
    room.write(console)
    written = console.export_text()
    assert "\x1b" not in written
    assert "It left. <script>alert(1)</script>" in written


def test_plain_lines_say_only_what_is_new():
    row, written = member(1), io.StringIO()
    with members.drawn_on(Console(file=written)) as draw:
        draw([row])
        row.began, row.doing = 0.0, "starting"
        draw([row])
        for share in (0.1, 0.2, 0.3):
            row.share = share
            draw([row])
        for seconds in (6, 7):
            row.silent = f"nothing heard for {seconds} s"
            draw([row])
        row.how, row.said = "left", "It was killed."
        draw([row])
    assert written.getvalue().splitlines() == [
        "host 1: waiting for its turn",
        "host 1: getting ready",
        "host 1: measuring",
        "host 1: nothing is heard of it",
        "host 1: left: It was killed.",
    ]


def test_a_terminal_is_left_without_the_rows():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=60, color_system=None)
    with members.drawn_on(console) as draw:
        draw([member(1, began=0.0, doing="Round 2", share=0.5)])
        before = screen.getvalue()
    assert "50 % Round 2" in before
    assert "1 running" in before
    # The last thing written erases the lines and leaves the cursor on the first.
    assert screen.getvalue().endswith("\x1b[1A\x1b[2K")


def test_live_rows_say_how_many_are_where_and_who_is_behind():
    rows = [
        member(1, began=0.0, doing="Round 2", share=0.5, left="30 s left"),
        member(2, began=0.0, doing="Round 1", behind="behind: 2 % done"),
        member(3),
        FAILED,
    ]
    assert members.summary(rows) == "2 running, 1 waiting, 1 left"
    assert members.state(rows[0]) == "Round 2, 30 s left"
    assert members.state(rows[1]).endswith("behind: 2 % done")
    html = members.rows_in_html(rows)
    assert html.count("<progress") == 4
    assert "value='0.500'" in html
