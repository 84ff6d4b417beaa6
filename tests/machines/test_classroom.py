import errno
import os
from dataclasses import replace
from unittest.mock import Mock

import pytest

import perfkit
from perfkit import cli
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings.store import save
from perfkit.machine.checks.base import Check
from perfkit.machine.record import Software, Start
from tests.findings.made import MACHINE
from tests.findings.page.pages import Page, problems
from tests.hostile import shown
from tests.hostile.broken import write_small
from tests.hostile.kinds import KINDS
from tests.hostile.places import places
from tests.hostile.texts import ATTACKS, attacked
from tests.machines import pairs
from tests.machines.passports import passport, training

SPEEDS = {"ada": 0.25, "bob": 1.0, "eve": 1.0, "kim": 4.0}


@pytest.fixture
def folder(tmp_path):
    """Four machines, of which one lacks a microbenchmark."""
    for name, speed in SPEEDS.items():
        without = ("loop over an array",) if name == "kim" else ()
        save(trained(name, speed, without=without), path=tmp_path / f"{name}.json")
    return tmp_path


def trained(name, speed=1.0, **more):
    steps = {"tiny dense": 0.002, "wide dense": 0.004}
    every = tuple(training(one, step / speed) for one, step in steps.items())
    return passport(name, speed, **{"trainings": every} | more)


def verdict(folder):
    return perfkit.classroom(folder).report.verdict


def test_every_machine_is_compared_with_the_median_one(folder):
    room = perfkit.classroom(folder)
    ratios = {
        row.words[0]: {room.name(n): round(x, 6) for n, x in row.speeds.items()}
        for row in room.rows
    }
    # What all do 0.25, 1, 1 and 4 times as fast has the median 1.
    for name in ("tiny dense, step", "wide dense, step", "graph call"):
        assert ratios[name] == SPEEDS
    assert ratios["loop over an array"].keys() == {"ada", "bob", "eve"}
    rows = {row[0]: row[1:] for row in room.report.table.rows}
    assert rows["graph call"] == ("4", "4,000 calls/s", "0.25× ada", "4.00× kim")
    assert rows["tiny dense, step"] == ("4", "2 ms", "0.25× ada", "4.00× kim")
    machines = room.report.folds[0].tables[0]
    assert [row[0] for row in machines.rows] == list(SPEEDS)
    assert machines.rows[0][3] in ("tiny dense, 0.25×", "wide dense, 0.25×")


def test_an_empty_folder_is_a_class_of_none_and_two_machines_have_no_median(tmp_path):
    room = perfkit.classroom(tmp_path)
    assert repr(room).startswith(
        "A class of 0 machines\nNext: The folder has no passport"
    )
    assert "Nothing was measured on three machines" in room.chart.alt
    for name in ("x", "y"):
        save(passport(name), path=tmp_path / f"{name}.json")
    room = perfkit.classroom(tmp_path)
    assert room.rows == ()
    assert room.report.verdict.headline == ("A class needs at least three machines.")
    assert "Nothing was measured on three machines" in room.page()


def test_another_job_or_unit_is_not_compared_with_the_median_machine(folder):
    one = trained("zoe", 0.1)
    first, *rest = one.trainings
    other = replace(first, job=first.job | {"network": "another"})
    loops = replace(one.microbenchmarks[0], unit="loops")
    odd = replace(one, trainings=(other, *rest), microbenchmarks=(loops,))
    save(odd, path=folder / "zoe.json")
    counts = {row.words[0]: len(row.speeds) for row in perfkit.classroom(folder).rows}
    assert (counts["tiny dense, step"], counts["wide dense, step"]) == (4, 5)
    assert counts[loops.name] == len({*SPEEDS} - {"kim"})


def test_only_who_is_shown_to_be_slower_is_called_so(folder):
    worst = verdict(folder)
    assert worst.headline == "Look at ada first."
    much = "takes 4.0 times as long there as on the median of 4 machines."
    assert worst.much in (f"Tiny dense {much}", f"Wide dense {much}")
    assert worst.sure == "sure"
    # One trial shows nothing, and neither does an interval that holds 1.
    for odd in ({"trials": 1}, {"low": 0.0001, "high": 0.1}, {"low": None}):
        ada = trained("ada", 0.25)
        steps = pairs.each(ada.trainings, **odd)
        save(replace(ada, trainings=steps), path=folder / "ada.json")
        assert verdict(folder).headline.startswith("No machine is shown")


@pytest.mark.fault(
    "class", "two at once", sees="The class skips a half-copied passport and says so."
)
def test_what_is_no_passport_is_a_row_and_the_others_still_load(folder):
    odd = places(folder, KINDS["finding"].sound)
    write_small(folder, KINDS["passport"].sound)
    room = perfkit.classroom(folder)
    assert [room.name(place) for place in range(4)] == list(SPEEDS)
    assert len(room.passports) == 4
    assert len(room.problems) > len(odd) - 4
    assert all(why.isprintable() for why in room.problems.values())
    assert problems(room.page()) == []


@pytest.mark.fault("class", "full disk", sees="perfkit asks you to free some space.")
def test_a_page_that_cannot_be_written_is_a_sentence(folder, monkeypatch):
    room = perfkit.classroom(folder)
    # It never takes the place of a passport.
    with pytest.raises(BadParameterError, match="is not a page's name"):
        room.export(folder / "ada.json.x")
    full = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BadFileError, match=r"device\): free some space or"):
        room.export(folder / "class.html")
    assert not list(folder.glob("*class.html*"))


NO_GPU = Check(
    id="x", status="fail", title="No GPU is seen", evidence="", remedy="Do this."
)


@pytest.mark.parametrize(
    ("lacks", "why"),
    [
        ({"versions": {"numpy": "2.4"}}, "TensorFlow is not installed"),
        ({"software": Software(build="none")}, "TensorFlow is not installed"),
        ({"start": Start(problem="No.")}, "TensorFlow does not start: No."),
    ],
    ids=["no package", "no build", "does not start"],
)
def test_who_is_not_ready_comes_first_with_the_reason(lacks, why, folder):
    more = {"checks": (NO_GPU,), "trainings": ()}
    old = passport("old", machine=replace(MACHINE, **lacks), **more)
    save(old, path=folder / "old.json")
    first = verdict(folder)
    assert first.headline == "Fix old first."
    assert first.much.startswith(why)
    text = Page(perfkit.classroom(folder).page()).text
    assert f"Not ready: old. {why}" in text
    assert "No GPU is seen: Do this." in text
    # What only warns makes no machine fail.
    assert "save power" not in text


def test_a_start_that_was_only_slow_or_trained_later_is_no_fault(folder):
    for problem, more, said in (
        ("It hung.", {}, "Every machine is ready."),
        ("Ended after 40 s.", {"trainings": ()}, "Not known yet: old."),
    ):
        machine = replace(MACHINE, start=Start(problem=problem))
        save(trained("old", machine=machine, **more), path=folder / "old.json")
        room = perfkit.classroom(folder)
        assert (room.not_ready, said in repr(room)) == ({}, True)


def test_a_class_of_attackers_makes_a_harmless_page(tmp_path):
    sound = KINDS["passport"].sound
    for number, attack in enumerate(ATTACKS.values()):
        (tmp_path / f"{number}.json").write_bytes(attacked(sound, attack))
    room = perfkit.classroom(tmp_path)
    assert len(room.passports) > 30
    shown.check([repr(room), room.chart.svg], [room._repr_html_()], [room.page()])


@pytest.mark.fault("class", "path", sees="perfkit writes the page as usual.")
def test_the_command_makes_the_page_in_any_folder(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    odd = folder / "mein ärger 数据"
    odd.mkdir()
    for path in folder.glob("*.json"):
        path.rename(odd / path.name)
    written = odd / "die klasse.html"
    assert cli.main(["class", str(odd), "-o", str(written)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Look at ada first."
    assert "Written:" in "\n".join(said)
    html = written.read_text(encoding="utf-8")
    assert problems(html) == []
    assert all(name in Page(html).text for name in SPEEDS)
    assert Page(html).all("svg")
