import datetime
import hashlib
import json
from dataclasses import replace

import pytest

import perfkit
from perfkit.errors import BadFileError, PerfkitError
from perfkit.findings import store
from perfkit.findings.reading import parse
from perfkit.findings.training import Part
from perfkit.machines import record
from perfkit.machines.record import FOLDER, PASSPORT, BenchmarkRate, Passport
from tests.findings.made import MACHINE
from tests.machines.passports import passport, training


def test_a_file_may_be_of_another_perfkit():
    text = store.to_json(passport())
    older = {"visits": {"a": [[0.0, 1.0]]}, "drift": {"a": 0.02}}
    for more in (older, {"colour": "red"}):
        again = parse(json.dumps(json.loads(text) | more).encode(), "x.json", Passport)
        assert store.to_json(again) == text


LONG = tuple(float(at) for at in range(record.MOST_SAMPLES + 1))
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
        (rates(rate=-1.0), "not above 0"),
        (rates(rate=3.0, low=1.0, high=2.0), "microbenchmark a lies outside its inter"),
        (trainings(batch=0), "not above 0"),
        (trainings(parts=(PART,)), "are not input, dispatch"),
    ],
)
def test_what_no_machine_can_have_shown_is_refused_in_a_sentence(fields, said):
    data = store.to_json(passport(**fields)).encode()
    with pytest.raises(BadFileError, match=said) as caught:
        parse(data, "theirs.json", Passport)
    assert str(caught.value).startswith("theirs.json is not a valid passport: ")


def test_what_is_too_large_or_cannot_be_read_again_is_refused(tmp_path, monkeypatch):
    large = b" " * (10**6 + 1)
    (tmp_path / "theirs.json").write_bytes(large)
    with pytest.raises(BadFileError, match="too large to be a passport"):
        store.read(tmp_path / "theirs.json", Passport)
    with pytest.raises(PerfkitError, match="cannot be kept"):
        store.save(passport(samples={"t": LONG}), path=tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


# What perfkit brings along was measured, and is as it was written.

FILES = sorted(path for path in FOLDER.glob("*/*.json"))


def test_every_recorded_machine_has_a_small_passport_as_it_was_recorded():
    assert set(perfkit.recorded()) == {path.parent.name for path in FILES} != set()
    # A passport is small enough for a class.
    sizes = [path.stat().st_size for path in FILES if path.name == PASSPORT]
    assert max(sizes) < 50_000
    sums = (FOLDER / "SHA256SUMS").read_text().splitlines()
    for path in FILES:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert f"{digest}  {path.parent.name}/{path.name}" in sums


@pytest.mark.parametrize("machine", perfkit.recorded())
def test_a_passport_says_when_where_and_how_it_was_recorded(machine):
    recorded = perfkit.recorded()[machine]
    assert datetime.datetime.fromisoformat(recorded.recorded).tzinfo
    assert recorded.machine.cpu
    assert recorded.budget_s >= 60
    names = ("label", "perfkit", "microbenchmarks", "trainings")
    assert [name for name in names if not getattr(recorded, name)] == []
    # Nothing was broken off.
    names = ("stopped", "missed")
    assert [name for name in names if getattr(recorded, name)] == []
