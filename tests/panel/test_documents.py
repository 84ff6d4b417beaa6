import os

import pytest

import perfkit
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings import store
from perfkit.panel import documents
from perfkit.passports.passport import FOLDER
from tests.findings import made
from tests.hostile.kinds import KINDS
from tests.hostile.places import places
from tests.machines.pairs import passport
from tests.panel.runs import put


def offered(start):
    return [label for label in documents.offered() if label.startswith(start)]


def test_what_lies_here_comes_before_what_perfkit_brings_and_newest_first(here):
    for age, name in enumerate(("new", "old")):
        os.utime(put(name, here), (1000 - age, 1000 - age))
    store.save(made.finding())
    labels = list(documents.offered())
    kinds = [label.split()[0] for label in labels]
    recorded = [at for at, kind in enumerate(kinds) if kind == "recorded:"]
    assert kinds[:2] == ["new.json", "old.json"]
    assert recorded[0] == 2
    assert kinds[-1] == "finding"
    assert len(recorded) == len(list(FOLDER.glob("*/*.json")))


def test_what_is_none_of_ours_is_not_offered_and_what_is_broken_is(here):
    (here / "package.json").write_text('{"name": "x", "kind": "module"}')
    sound = put("sound", here).read_bytes()
    (here / "cut.json").write_bytes(sound[:2000])
    assert offered("package") == []
    assert offered("cut") == ["cut.json (cannot be read)"]


def test_odd_things_in_the_folder_are_passed_over(here):
    # A pipe among them would be waited for until somebody writes into it.
    places(here, KINDS["passport"].sound())
    assert offered("recorded: ")


def test_many_findings_crowd_out_no_passport(here, monkeypatch):
    monkeypatch.setattr(documents, "_MOST", 2)
    os.utime(put("old", here), (1, 1))
    for _ in range(4):
        store.save(made.finding())
    assert len(offered("old.json")) == 1
    assert len(offered("finding ")) == 2


def test_a_label_says_which_machine_and_day_and_of_one_name_which_file(here):
    (here / "perfkit-findings").mkdir()
    put("copy", here)
    put("copy", here / "perfkit-findings")
    first = "copy.json · AMD EPYC, 2 cores, 2025-03-14 09:26"
    assert offered("copy.json") == [first, f"{first} (2)"]


@pytest.mark.parametrize("kind", ["passport", "finding", "diagnosis"])
def test_an_upload_may_be_any_kind(kind):
    label, document = documents.uploaded("a.json", KINDS[kind].sound())
    assert label.startswith("uploaded: ")
    assert "a.json" in label
    assert document.kind == kind


def test_an_upload_that_is_too_large_is_refused_with_the_way_round():
    with pytest.raises(BadFileError, match=r"8 MB at most: put the file into the fol"):
        documents.uploaded("a.json", b" " * (documents.LARGEST_UPLOAD + 1))


def test_a_recorded_machine_is_given_by_its_name(here):
    label, path = documents.given("epyc-2-cores")
    assert path.samefile(perfkit.recorded()["epyc-2-cores"].path)
    assert label in documents.offered()


def test_what_is_nothing_to_compare_is_refused(here):
    (here / "x.json").write_text("{}")
    with pytest.raises(BadFileError, match="There is no file"):
        documents.given("nowhere.json")
    with pytest.raises(BadFileError, match=r"x\.json is not a"):
        documents.given("x.json")
    with pytest.raises(BadParameterError, match="is nothing to compare"):
        documents.given(3)
    with pytest.raises(BadParameterError, match="is no passport"):
        documents.passport(3)


def test_a_passport_of_its_own_is_given_as_it_is():
    one = passport(label="mine")
    assert documents.given(one) == ("mine · AMD EPYC, 2 cores, 2025-03-14 09:26", one)
    assert documents.passport(one) is one
