import datetime
import hashlib
import json
import re
from dataclasses import replace
from unittest.mock import Mock

import pytest

import perfkit
from perfkit.errors import BadFileError, PerfkitError
from perfkit.findings.report import in_text
from perfkit.findings.training import ENDED, Part, Training
from perfkit.machine.record import Busy, Load
from perfkit.machines import record
from perfkit.machines.record import FOLDER, PASSPORT, BenchmarkRate
from perfkit.machines.report import preview
from tests.findings.made import MACHINE
from tests.machines.passports import passport, training


def test_what_is_saved_is_read_back(tmp_path):
    made = passport()
    path = record.save(made, tmp_path / "desk.json")
    again = record.load(path)
    assert record.to_json(again) == record.to_json(made)
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
    )
    again = record.load(record.save(made, tmp_path / "desk.json"))
    assert again == made
    assert again.trainings[0].rate is None
    assert again.microbenchmarks[0].share is None


def test_what_a_later_or_an_older_perfkit_writes_is_read_all_the_same():
    sound = record.to_json(passport())
    older = json.loads(sound) | {"visits": {"a": [[0.0, 1.0]]}, "drift": {"a": 0.02}}
    later = json.loads(sound) | {"colour": "red"}
    for document in (older, later):
        again = record.parse(json.dumps(document).encode(), "x.json")
        assert record.to_json(again) == sound


def test_numbers_are_short_and_what_is_not_known_is_left_out():
    text = record.to_json(passport(budget_s=1 / 3))
    assert '"budget_s":0.333333' in text
    assert json.loads(text)["samples"]["cpu_other"][0] is None
    assert "missing" not in json.loads(text)
    assert '"memory_present":null' not in text


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
    data = record.to_json(passport(**fields)).encode()
    with pytest.raises(BadFileError, match=said) as caught:
        record.parse(data, "theirs.json")
    assert str(caught.value).startswith("theirs.json is not a sound passport: ")


def test_a_file_that_is_too_large_is_refused_in_a_sentence(tmp_path):
    large = b" " * (record.LARGEST_BYTES + 1)
    (tmp_path / "theirs.json").write_bytes(large)
    with pytest.raises(BadFileError, match="too large to be a passport"):
        record.load(tmp_path / "theirs.json")


def test_what_cannot_be_read_again_is_never_written(tmp_path, monkeypatch):
    long = passport(samples={"t": LONG})
    with pytest.raises(PerfkitError, match="cannot be kept"):
        record.save(long, tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []
    # A failed save leaves the file as it was.
    path = record.save(passport(), tmp_path / "a.json")
    before = path.read_bytes()
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(record.store, "write_whole", full)
    with pytest.raises(PerfkitError, match="No space left"):
        record.save(passport(label="other"), path)
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
    untold = ("stopped", "missed", "host", "user")
    assert [name for name in untold if getattr(found, name)] == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_was_changed_since_it_was_recorded(path):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    sums = (FOLDER / "SHA256SUMS").read_text().splitlines()
    assert f"{digest}  {name_of(path)}" in sums


# What a reader is told of it.


def previewed(size=1000, **fields):
    """What is said to be in the file, and what not."""
    held, _, out = preview(passport(**fields), size).partition("Not in")
    return held, out


def test_the_preview_says_what_is_in_the_file_and_what_is_not():
    load = Load(top=(Busy(program="firefox", cores=0.4),))
    held, left_out = previewed(31_400, machine=replace(MACHINE, load=load))
    assert held.splitlines()[0] == "In this file (31.4 KB):"
    for part in (
        *("evidence: 1", "rates of parts of the machine: 4", "where its time goes: 1"),
        *("load meanwhile: 60", "firefox", "OMP_NUM_THREADS"),
    ):
        assert part in held
    assert "the host and user name (`--with-names` puts them in)" in left_out
    assert "host" not in held
    # Names that were asked for are shown as part of it.
    held, left_out = previewed(host="dgx-3", user="ada")
    assert "the host's name, dgx-3, as you asked" in held
    assert "--with-names" not in left_out


def said(made):
    """Each line of a report, with single blanks."""
    lines = in_text(made.report, whole=True).splitlines()
    return [" ".join(line.split()) for line in lines]


def test_the_text_has_every_training_with_its_split():
    lines = said(passport())
    assert any(one.startswith("tiny dense 2 ms (1.8 ms to 2.2 ms) ?") for one in lines)
    product = "NumPy product, float32 200 GFLOP/s (194 to 206), 40 % of its limit"
    assert product in lines
    assert "warn: This laptop runs on its battery" in lines
    # No part reaches more than all of its limit.
    rates = passport().microbenchmarks
    rates = tuple(replace(r, limit=r.limit and r.rate / 1.32) for r in rates)
    lines = said(passport(microbenchmarks=rates))
    assert any("200 GFLOP/s (194 to 206), beyond its limit" in one for one in lines)
    # Parts that were measured one by one may come to more than the step.
    (one,) = passport().trainings
    parts = tuple(replace(p, low=-2e-4, seconds=-1e-4, high=-1e-5) for p in one.parts)
    lines = said(passport(trainings=(replace(one, parts=parts),)))
    assert any(one.startswith("unexplained is below 0 where parts") for one in lines)
    # What is missing says why.
    broken = Training(name="wide dense", batch=32, missing="No room.")
    made = passport(trainings=(broken,), without=("memory copy",), stopped=True)
    text = " ".join(said(made))
    assert "wide dense not measured. No room." in text
    assert "memory copy not measured. Its library is missing." in text
    assert "stopped before it was whole" in text


def test_the_card_has_a_column_for_every_part():
    heads = re.findall(r'<th scope="col">(\w+)', passport()._repr_html_())
    parts = ["input", "dispatch", "transfer", "compute", "unexplained"]
    assert heads[:7] == ["training", "a", *parts]
    # A mixed precision is in the name.
    assert training("a", 1.0, dtype="mixed_bfloat16").title == "a, bfloat16"


def test_a_budget_too_small_for_any_training_is_said_with_one_that_is_not():
    none = tuple(Training(name=n, batch=32, missing=ENDED) for n in ("a", "b"))
    refused = Training(name="c", batch=32, missing="Not tried here: it has no GPU.")
    for budget, enough in ((60.0, 180), (180.0, 360)):
        made = passport(trainings=(*none, refused), budget_s=budget)
        assert made.report.verdict.much == (
            f"No reference training was measured in {budget:.0f} s: make it again "
            f"with a budget of {enough} s."
        )
    some = (*none, training("d", 0.002))
    for trainings in (some, (refused,), ()):
        assert passport(trainings=trainings).report.verdict.much == ""
    # Who pressed Stop knows why.
    assert passport(trainings=none, stopped=True).report.verdict.much == ""
