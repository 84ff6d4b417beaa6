import datetime
import hashlib
import json
from dataclasses import replace
from unittest.mock import Mock

import pytest

import perfkit
from perfkit.errors import BadFileError, PerfkitError
from perfkit.passports import passport as machines_passport
from perfkit.passports.passport import FOLDER, PASSPORT, BenchmarkRate, Part, Training
from tests.findings.made import MACHINE
from tests.machines.passports import passport, training


def test_what_is_saved_is_read_back(tmp_path):
    made = passport()
    path = machines_passport.save(made, tmp_path / "desk.json")
    again = machines_passport.load(path)
    assert machines_passport.to_json(again) == machines_passport.to_json(made)
    assert again.trainings[0].seconds == made.trainings[0].seconds
    assert again.path == made.path == path
    # One that is not whole is read back as it is.
    none = BenchmarkRate(name="disk", unit="B", missing="There is none.")
    made = passport(
        microbenchmarks=(none,),
        trainings=(Training(name="tiny dense", batch=32, missing="No room."),),
        missed=("The budget ended.",),
        stopped=True,
        samples={},
        phases={},
    )
    again = machines_passport.load(machines_passport.save(made, tmp_path / "desk.json"))
    assert again == made
    assert again.trainings[0].rate is None
    assert again.microbenchmarks[0].share is None


def test_what_a_later_or_an_older_perfkit_writes_is_read_all_the_same():
    sound = machines_passport.to_json(passport())
    visited = machines_passport.to_json(passport(visits={"a": ((0.0, 1.0),)}))
    older, later = json.loads(visited), json.loads(sound) | {"colour": "red"}
    assert older.pop("visits") == {"a": [[0.0, 1.0]]}
    for document in (older, later):
        again = machines_passport.parse(json.dumps(document).encode(), "x.json")
        assert again.visits == {}
        assert machines_passport.to_json(again) == sound


def test_numbers_are_short_and_what_is_not_known_is_left_out():
    text = machines_passport.to_json(passport(budget_s=1 / 3))
    assert '"budget_s":0.333333' in text
    assert json.loads(text)["samples"]["cpu_other"][0] is None
    assert "missing" not in json.loads(text)
    assert '"memory_present":null' not in text


LONG = tuple(float(at) for at in range(machines_passport.MOST_SAMPLES + 1))
PART = Part(name="input", seconds=1.0)


def rates(**fields):
    return {"microbenchmarks": (BenchmarkRate(name="a", unit="B", **fields),)}


def trainings(**fields):
    return {"trainings": (training("a", 1.0, **fields),)}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"samples": {"t": LONG}}, "more than 300 samples"),
        ({"samples": {"t": (2.0, 1.0)}}, "samples are not in order"),
        ({"samples": {"cpu": (1.0,)}}, "do not fit together"),
        ({"samples": {"t": (None,)}}, "a sample has no time"),
        ({"label": "x" * 201}, "its label is too long"),
        ({"machine": replace(MACHINE, cores=0)}, "its machine has no cores"),
        ({"missed": ("x",) * 101}, "more than 100 missed"),
        ({"noise_floors": {"a": 0.0}}, "noise floor is not above 0"),
        ({"phases": {"a": (2.0, 1.0)}}, "ends before it begins"),
        ({"visits": {"a": ((0.0, 1.0), (3.0, 2.0))}}, "ends before it begins"),
        ({"visits": {"a": ((0.0, 1.0),) * 101}}, "more than 100 visits"),
        ({"visits": {str(n): () for n in range(101)}}, "more than 100 visits"),
        (rates(rate=-1.0), "not above 0"),
        (rates(rate=3.0, low=1.0, high=2.0), "microbenchmark a lies outside its inter"),
        (trainings(batch=0), "not above 0"),
        (trainings(parts=(PART,)), "are not input, dispatch"),
    ],
)
def test_what_no_machine_can_have_shown_is_refused_in_a_sentence(fields, said):
    data = machines_passport.to_json(passport(**fields)).encode()
    with pytest.raises(BadFileError, match=said) as caught:
        machines_passport.parse(data, "theirs.json")
    assert str(caught.value).startswith("theirs.json is not a sound passport: ")


def test_a_file_that_is_too_large_is_refused_in_a_sentence(tmp_path):
    large = b" " * (machines_passport.LARGEST_BYTES + 1)
    (tmp_path / "theirs.json").write_bytes(large)
    with pytest.raises(BadFileError, match="too large to be a passport"):
        machines_passport.load(tmp_path / "theirs.json")


def test_what_cannot_be_read_again_is_never_written(tmp_path, monkeypatch):
    long = passport(samples={"t": LONG})
    with pytest.raises(PerfkitError, match="cannot be kept"):
        machines_passport.save(long, tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []
    # A failed save leaves the file as it was.
    path = machines_passport.save(passport(), tmp_path / "a.json")
    before = path.read_bytes()
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(machines_passport.store, "write_whole", full)
    with pytest.raises(PerfkitError, match="No space left"):
        machines_passport.save(passport(label="other"), path)
    assert path.read_bytes() == before


# What perfkit brings along was measured, and is as it was written.

FILES = sorted(path for path in FOLDER.glob("*/*.json"))


def name_of(path):
    return f"{path.parent.name}/{path.name}"


def test_every_recorded_machine_has_a_passport():
    assert set(perfkit.recorded()) == {path.parent.name for path in FILES} != set()
    # A passport is small enough for a class.
    sizes = [path.stat().st_size for path in FILES if path.name == PASSPORT]
    assert max(sizes) < 50_000


@pytest.mark.parametrize("machine", perfkit.recorded())
def test_a_passport_says_when_where_and_how_it_was_recorded(machine):
    found = perfkit.recorded()[machine]
    assert datetime.datetime.fromisoformat(found.recorded).tzinfo
    assert found.machine.cpu
    assert found.budget_s >= 60
    told = ("label", "perfkit", "parameters", "microbenchmarks", "trainings")
    assert [name for name in told if not getattr(found, name)] == []
    # Nothing was broken off, and no name is in it.
    untold = ("stopped", "unfinished", "missed", "host", "user")
    assert [name for name in untold if getattr(found, name)] == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_was_changed_since_it_was_recorded(path):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    sums = (FOLDER / "SHA256SUMS").read_text().splitlines()
    assert f"{digest}  {name_of(path)}" in sums
