import errno
import os
import statistics
from dataclasses import replace
from unittest.mock import Mock

import pytest

import perfkit
from perfkit import cli
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings import store
from perfkit.findings.record import Verdict
from perfkit.machine.checks.base import Check
from perfkit.machine.record import Software, Start
from perfkit.machines.class_page import page
from perfkit.machines.classroom import held_back, notebooks, unable
from perfkit.passports.passport import ENDED, save
from tests.export.pages import Page, problems
from tests.findings import made
from tests.findings.made import MACHINE
from tests.hostile import shown
from tests.hostile.broken import write_small
from tests.hostile.kinds import KINDS
from tests.hostile.places import places
from tests.hostile.texts import ATTACKS, attacked
from tests.machines.passports import passport, training

SPEEDS = {"ada": 0.5, "bob": 1.0, "eve": 1.0, "kim": 4.0}


@pytest.fixture
def folder(tmp_path):
    """Four machines, of which one lacks a microbenchmark."""
    for name, speed in SPEEDS.items():
        without = ("Python loop",) if name == "kim" else ()
        save(trained(name, speed, without=without), tmp_path / f"{name}.json")
    return tmp_path


def trained(name, speed=1.0, **more):
    """A machine with six parts: one may be missing, and it still has a speed."""
    steps = {"tiny dense": 0.002, "wide dense": 0.004}
    every = tuple(training(one, step / speed) for one, step in steps.items())
    return passport(name, speed, **{"trainings": every} | more)


def class_of(folder, **speeds):
    for name, speed in speeds.items():
        save(trained(name, speed), folder / f"{name}.json")
    return perfkit.classroom(folder)


def verdict(folder, you=None):
    return perfkit.classroom(folder, you and folder / f"{you}.json").report.verdict


def test_every_machine_is_held_against_the_median_one(folder):
    room = perfkit.classroom(folder)
    found = room.table().set_index("machine")
    # What every one does 0.5, 1, 1 and 4 times as fast has the median 1.
    assert found.speed.round(6).to_dict() == SPEEDS
    assert found.measured.to_dict() == {"ada": 6, "bob": 6, "eve": 6, "kim": 5}
    assert {m.median / m.rates[1] for m in room.measures} == {1.0}


def test_the_spread_is_that_between_one_in_ten_and_nine_in_ten(folder):
    for number in range(7):
        save(passport(f"x{number}", 1 + number), folder / f"x{number}.json")
    copy = next(m for m in perfkit.classroom(folder).measures if m.name == "graph call")
    tenths = statistics.quantiles(copy.rates.values(), n=10, method="inclusive")
    assert copy.spread == pytest.approx(tenths[8] / tenths[0])


def test_an_empty_folder_is_a_class_of_none_and_few_machines_have_no_spread(tmp_path):
    room = perfkit.classroom(tmp_path)
    assert repr(room).startswith("A class of 0 machines\nNext: No passport lies there")
    assert len(room.table()) == 0
    assert "No passport holds a rate" in room.chart.alt
    save(passport(), tmp_path / "x.json")
    room = perfkit.classroom(tmp_path)
    assert {m.spread for m in room.measures} == {None}
    assert "too few to say" in room._repr_html_()


@pytest.mark.parametrize("others", [{}, {"bob": 2.0}])
def test_no_machine_is_held_against_itself_or_one_other(others, tmp_path):
    room = class_of(tmp_path, ada=1.0, **others)
    assert {(m.median, *m.ratios) for m in room.measures} == {(None,)}
    assert [(row.speed, row.slowest) for row in room.table().itertuples()] == [
        (None, "")
    ] * len(room.passports)
    said = repr(room)
    assert said.startswith("No machine is called slow: that takes 5 parts that 3 mach")
    assert "fastest" not in said
    # What was measured is shown as it was.
    rows = {row[0]: row[3:] for row in room.report.table.rows}
    low, few = "4,000 calls/s ada", "too few to say"
    high = "8,000 calls/s bob" if others else low
    assert rows["graph call"] == (few, low, high, few)
    assert "No part was measured on 3 machines" in room.chart.alt


def test_what_few_machines_measured_is_in_no_speed(folder):
    few = ("NumPy product, float32", "memory copy", "graph call")
    save(trained("zoe", 2.0, trainings=(), without=few), folder / "zoe.json")
    save(trained("one", 9.0, trainings=(training("alone", 1.0),)), folder / "one.json")
    room = perfkit.classroom(folder)
    found = room.table().set_index("machine")
    # It shares one part with the others, the Python loop.
    assert found.speed.isna().to_dict() == dict.fromkeys(SPEEDS, False) | {
        "one": True,
        "zoe": True,
    }
    alone = next(m for m in room.measures if m.name == "alone")
    assert (alone.median, alone.ratio(4)) == (None, None)
    assert "alone" not in room.chart.alt
    assert "1 of 7, no trainings" in page(room)


def test_whose_budget_was_too_small_for_a_training_is_said_with_what_to_type(folder):
    none = (replace(training("tiny dense", 1.0), seconds=None, missing=ENDED),)
    for name in ("x", "y"):
        save(passport(name, trainings=none, budget_s=60.0), folder / f"{name}.json")
    said = "x, y: no reference training was measured in 60 s: make it again with"
    assert f"{said} a budget of 180 s." in perfkit.classroom(folder).report.besides


def test_nobody_is_the_fastest_or_slowest_of_machines_that_are_alike(tmp_path):
    room = class_of(tmp_path, ada=0.99, bob=1.0, eve=1.01, kim=1.0)
    said = room.report.verdict
    assert said.headline == (
        "Leave the machines as they are: none is shown to be slower than the median "
        "one."
    )
    assert said.much == "Their speeds are 0.99 to 1.01 times the median machine's."
    assert (said.sure, said.next) == ("", "")
    assert not any(row.slowest for row in room.table().itertuples())
    mine = perfkit.classroom(tmp_path, tmp_path / "ada.json").report.verdict
    assert mine.headline == "Leave your machine, ada, as it is."
    assert mine.next == ""


def test_only_who_is_shown_to_be_fastest_or_slowest_is_called_so(tmp_path):
    one = class_of(tmp_path, ada=1.0, bob=1.0, eve=1.01, kim=2.0).report.verdict
    assert one.headline.startswith("Leave the machines as they are")
    assert one.next == "kim is the fastest."
    two = class_of(tmp_path, ada=0.5, bob=0.5).report.verdict
    assert two.headline == "Look at ada first."
    assert two.next.endswith(" kim is the fastest.")


def test_a_machine_is_called_as_its_file_is(folder):
    save(trained("Zoe180"), folder / "Zoe.json")
    room = perfkit.classroom(folder)
    assert [room.name(at) for at in range(5)] == ["Zoe", *SPEEDS]
    assert perfkit.classroom(folder, passport("kim's")).name(5) == "kim's"


def test_microbenchmarks_of_one_name_that_count_something_else_are_not_mixed(tmp_path):
    one = passport("one")
    other = replace(one.microbenchmarks[0], unit="loops")
    save(one, tmp_path / "one.json")
    save(passport("other", microbenchmarks=(other,)), tmp_path / "other.json")
    found = perfkit.classroom(tmp_path).measures
    same = [(m.unit, len(m.rates)) for m in found if m.name == other.name]
    assert same == [("steps", 1), ("loops", 1)]


def test_you_are_marked_whether_your_passport_is_in_the_folder_or_not(folder):
    inside = perfkit.classroom(folder, folder / "kim.json")
    assert (inside.name(inside.you), len(inside.passports)) == ("kim", 4)
    outside = perfkit.classroom(folder, passport("zoe", 2.0))
    assert (outside.name(outside.you), len(outside.passports)) == ("zoe", 5)
    assert "you are here" in outside.chart.svg
    assert "you at 2.00×" in outside.chart.alt
    assert "you" not in perfkit.classroom(folder).chart.alt


def test_files_are_passports_however_their_names_end(folder):
    (folder / "kim.json").rename(folder / "kim.JSON")
    # What macOS puts beside a file that it copies.
    (folder / "._ada.json").write_bytes(b"\0\5\x16\7")
    room = perfkit.classroom(folder)
    assert [room.name(place) for place in range(4)] == list(SPEEDS)
    assert room.problems == {}


@pytest.mark.fault(
    "class",
    "two at once",
    sees="A passport that is half copied is a row that says so; the others load.",
)
def test_what_is_no_passport_is_a_row_and_the_others_still_load(folder):
    odd = places(folder, KINDS["finding"].sound())
    write_small(folder, KINDS["passport"].sound())
    room = perfkit.classroom(folder)
    assert [room.name(place) for place in range(4)] == list(SPEEDS)
    table = room.table()
    assert len(table) == 4 + len(room.problems) > len(odd)
    assert all(why.isprintable() for why in table.problem)
    assert problems(page(room)) == []


def test_a_machine_in_the_folder_that_is_yours_must_be_a_passport(folder):
    (folder / "mine.json").write_bytes(KINDS["finding"].sound())
    with pytest.raises(BadFileError, match=r"mine\.json is not a passport but a fin"):
        perfkit.classroom(folder, folder / "mine.json")
    with pytest.raises(BadParameterError, match=r"no folder .*nowhere"):
        perfkit.classroom(folder / "nowhere")


@pytest.mark.fault("class", "full disk", sees="Why the page cannot be written.")
def test_a_page_that_cannot_be_written_is_a_sentence(folder, monkeypatch):
    room = perfkit.classroom(folder)
    # It never takes the place of a passport.
    with pytest.raises(BadParameterError, match="is no name for a page"):
        room.export(folder / "ada.json.x")
    full = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BadFileError, match=r"device\): free some space or"):
        room.export(folder / "class.html")
    assert not list(folder.glob("*class.html*"))


BUILDLESS = Software(platform="linux", build="none")


@pytest.mark.parametrize(
    ("lacks", "why"),
    [
        ({"versions": {"numpy": "2.4"}}, "TensorFlow is not installed"),
        ({"software": BUILDLESS}, "TensorFlow is not installed"),
        ({"start": Start(problem="It needs AVX.")},
         "TensorFlow does not start: It needs AVX."),
    ],
    ids=["no package", "no build", "does not start"],
)  # fmt: skip
def test_who_cannot_run_what_is_said_with_the_reason(lacks, why, tmp_path):
    one = passport("old", machine=replace(MACHINE, **lacks))
    found = unable(one.machine)
    assert set(found.values()) == {why}
    assert found.keys() == set(notebooks()) - {"01_gpu_verification"}
    assert unable(MACHINE) == {}
    save(one, tmp_path / "x.json")
    text = Page(page(perfkit.classroom(tmp_path))).text
    assert "Who cannot run which notebook" in text
    assert why in text


NO_GPU = Check(
    id="x", status="fail", title="No GPU is seen", evidence="", remedy="Do this."
)


def test_who_cannot_work_comes_before_who_is_slow(folder):
    assert list(held_back((NO_GPU,))) == ["No GPU is seen: Do this."]
    assert list(held_back(passport().checks)) == []
    save(passport("zoe", checks=(NO_GPU,)), folder / "zoe.json")
    said = verdict(folder)
    assert said.headline == "See to zoe first."
    assert said.much == "No GPU is seen: Do this."
    assert verdict(folder, "ada").headline == "Look at your machine, ada, first."


def test_the_page_is_whole_and_holds_every_machine(folder):
    html = page(perfkit.classroom(folder, folder / "ada.json"))
    shown = Page(html)
    assert problems(html) == []
    assert shown.all("svg")
    for said in (
        *SPEEDS,
        "Look at your machine, ada, first.",
        "ada takes 2.0 times as long as the median of 4 machines. sure",
        "perfkit compare bob.json ada.json",
    ):
        assert said in shown.text


def test_a_machine_that_is_not_slow_is_left_as_it_is(folder):
    quick = verdict(folder, "kim")
    assert quick.headline == "Leave your machine, kim, as it is."
    assert quick.much == "kim runs 4.0 times as fast as the median of 4 machines."
    # Each end is 3 % off, and so is the median's: 4 x 0.97 / 1.03 and 4 x 1.03 / 0.97.
    assert (quick.sure, quick.interval) == ("sure", "3.8 to 4.2")


def test_without_intervals_nobody_is_called_slow(tmp_path):
    for name, speed in SPEEDS.items():
        one = trained(name, speed)
        parts = [replace(part, low=None, high=None) for part in one.microbenchmarks]
        vague = [replace(step, low=None, high=None) for step in one.trainings]
        one = replace(one, microbenchmarks=tuple(parts), trainings=tuple(vague))
        save(one, tmp_path / f"{name}.json")
    said = verdict(tmp_path)
    assert said.headline.startswith("Leave the machines as they are")
    assert (said.sure, said.interval) == ("not known yet", "")
    assert said.much == "How far they are from it is not known yet."
    mine = verdict(tmp_path, "ada")
    assert mine.much == "How far ada is from the median of 4 machines is not known yet."


def test_of_each_claim_it_is_said_how_many_machines_say_what(folder):
    faster, slower = (
        made.finding({"naive": 1000.0, "cache": rate}) for rate in (2000.0, 500.0)
    )
    store.save(faster, folder / "ada")
    store.save(slower, folder / "bob")
    store.save(replace(faster, replayed=True), folder / "eve")
    # Each races trainings of one's own.
    race = replace(faster, parameters={"command": "perfkit.race(mine, other)"})
    store.save(race, folder / "eve")
    # Who asks again has one answer, the newest.
    later = replace(slower, recorded="2999-01-01T00:00:00+00:00")
    store.save(later, folder / "bob")
    (folder / "bob" / "x.json").write_text("{}")
    room = perfkit.classroom(folder)
    ((_, *held), said), *others = room.claims.items()
    assert (held, others) == (["cache", "naive"], [])
    assert said == {"faster": 1, "slower": 1}
    assert room.report.verdict.headline == "Look at ada first."
    bobs = verdict(folder, "bob").headline
    assert bobs == "Leave your machine, bob, as it is."
    store.save(faster, folder / "kim")
    one = verdict(folder, "bob")
    assert one.headline == 'Take "cache" in place of "naive".'
    assert one.much == "It is faster on 2 of 3 machines that tried it."
    assert one.sure == "likely"
    assert "What the machines answered" in Page(page(room)).text


def test_what_no_machine_may_choose_is_no_advice_and_few_machines_make_none_sure(
    folder,
):
    limit = Verdict(headline="Nothing is faster.")
    for name in ("ada", "bob"):
        rates = {"naive": 1000.0, "one batch": 9000.0}
        store.save(made.finding(rates, verdict=limit), folder / name)
    room = perfkit.classroom(folder, folder / "bob.json")
    assert [dict(said) for said in room.claims.values()] == [{"faster": 2}]
    assert "Take " not in room.report.verdict.headline
    for name in ("ada", "bob"):
        store.save(made.finding({"naive": 1000.0, "cache": 2000.0}), folder / name)
    two = verdict(folder, "bob")
    assert (two.headline[:12], two.sure) == ('Take "cache"', "likely")


def test_you_are_in_the_folder_with_fewer_digits_than_in_memory(folder):
    measured = trained("zoe", 1 / 3)
    save(measured, folder / "zoe.json")
    # The file may have got another label since, or no names.
    for you in measured, replace(measured, label="mine", host="dgx-3", user="zoe"):
        room = perfkit.classroom(folder, replace(you))
        assert (room.name(room.you), len(room.passports)) == ("zoe", 5)


def test_a_speed_whose_interval_holds_the_median_is_no_difference(folder):
    wide = [
        replace(part, low=part.rate * 0.5, high=part.rate * 1.5)
        for part in trained("zoe", 1.2).microbenchmarks
    ]
    steps = [
        replace(one, low=one.seconds / 1.5, high=one.seconds / 0.5)
        for one in trained("zoe", 1.2).trainings
    ]
    zoe = trained("zoe", 1.2, trainings=tuple(steps))
    save(replace(zoe, microbenchmarks=tuple(wide)), folder / "zoe.json")
    said = verdict(folder, "zoe")
    assert said.much == "zoe is not shown to differ from the median of 5 machines."
    assert (said.sure, said.interval) == ("not known yet", "")


def test_a_class_of_attackers_makes_a_harmless_page(tmp_path):
    sound = KINDS["passport"].sound()
    for number, attack in enumerate(ATTACKS.values()):
        (tmp_path / f"{number}.json").write_bytes(attacked(sound, attack))
    room = perfkit.classroom(tmp_path)
    assert len(room.passports) > 30
    texts = [repr(room), room.chart.svg]
    shown.check(texts, [room._repr_html_()], [page(room)])


def test_a_dot_stands_for_all_that_lie_at_its_place(tmp_path):
    def drawn(machines):
        for number in machines:
            save(passport(f"m{number}", 1.0), tmp_path / f"{number}.json")
        return len(perfkit.classroom(tmp_path).chart.svg)

    assert drawn(range(40)) == drawn(range(40, 60))


@pytest.mark.fault("class", "path", sees="The class, as in any other folder.")
def test_the_command_makes_the_page_in_any_folder(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    odd = folder / "mein ärger 数据"
    odd.mkdir()
    for path in folder.glob("*.json"):
        path.rename(odd / path.name)
    written = odd / "die klasse.html"
    assert cli.main(["class", str(odd), "-o", str(written)]) == 0
    first, second, *rest = said = capsys.readouterr().out.splitlines()
    assert first == "Look at ada first."
    much = "ada takes 2.0 times as long as the median of 4 machines. Sure: 1.9 to 2.1."
    assert second == much
    assert "kim is the fastest, ada the slowest." in "\n".join(rest)
    row = next(line for line in said if line.startswith("graph call"))
    assert [part in row for part in ("4,000 calls/s", "0.50×", "4.00×")] == [True] * 3
    assert "Written:" in "\n".join(rest)
    assert problems(written.read_text(encoding="utf-8")) == []
    assert cli.main(["class", str(folder / "nowhere")]) == 2
