"""The ladder of the course: which races are its rungs, and how it is shown."""

import html
import linecache
from pathlib import Path

import pytest

import perfkit
from perfkit.errors import BadParameterError
from perfkit.findings import store
from perfkit.training.diagnose.diagnose import LEAST_BUDGET_S
from perfkit.training.diagnose.maker import digest
from perfkit.training.race.ladder import AS_FOUND, read_ladder, training_as_found
from tests.findings.made import of_run
from tests.training.race.built import make_training, measured, race, sides

ORIGINAL = training_as_found()
FILE = Path(ORIGINAL.path)
CACHED, BATCH, LOWER = "cached input", "a batch of 64", "fewer bits"


def raced(label, rate, second=0, **more):
    """A race of an edit against the training as found, which makes 1,000 a second."""
    fields = {
        "parameters": {"sides": [AS_FOUND, label], "code": [digest(ORIGINAL), "b"]},
        "result": {"same_job": True},
        "recorded": f"2026-01-01T10:00:{second:02}+00:00",
    }
    run = measured({AS_FOUND: 1000.0, label: rate})
    return of_run(run, experiment="race", **fields | more)


def labels(ladder):
    return [rung.variant for rung in ladder.rungs]


def test_the_newest_race_of_each_label_is_a_rung(tmp_path):
    for one in (
        raced(CACHED, 1500.0, 1),
        raced(BATCH, 3000.0, 2),
        raced(LOWER, 1000.0, 3),
        raced(CACHED, 2000.0, 4),
        raced("another model", 9000.0, 5, result={"same_job": False}),
        raced("of an old file", 9000.0, 6, result={}),
        raced(
            "another start",
            9000.0,
            7,
            parameters={"sides": [AS_FOUND, "another start"], "code": ["x", "y"]},
        ),
        raced("three", 9000.0, 8, parameters={"sides": [AS_FOUND, "a", "b"]}),
    ):
        store.save(one, tmp_path)
    (tmp_path / "race-broken.json").write_text("{")
    ladder = read_ladder(ORIGINAL, tmp_path)
    assert labels(ladder) == [BATCH, LOWER, CACHED]
    assert [rung.verdict for rung in ladder.rungs] == [
        "faster",
        "no difference shown",
        "faster",
    ]
    assert 1.9 < ladder.rungs[2].ratio < 2.1
    page = ladder._repr_html_()
    for words in (*labels(ladder), "no difference shown", "2.0", AS_FOUND):
        assert words in page
    assert perfkit.ladder(folder=tmp_path).chart.alt == ladder.chart.alt


def test_a_label_from_a_file_is_text(tmp_path):
    label = "<script>alert(1)</script>"
    store.save(raced(label, 2000.0), tmp_path)
    ladder = read_ladder(ORIGINAL, tmp_path)
    assert "<script" not in ladder._repr_html_()
    assert html.escape(label) in ladder.chart.alt or label in ladder.chart.alt


@pytest.mark.parametrize(
    ("known", "same_job"),
    [({"batch": 64, "steps": 16}, True), ({"parameters": 7}, False)],
)
def test_a_larger_batch_is_a_rung_and_another_job_is_none(known, same_job):
    edited = race(sides(AS_FOUND, CACHED, retuned=True), **{CACHED: known})
    run = measured({AS_FOUND: 1000.0, CACHED: 3000.0})
    assert edited.result(run) == {"same_job": same_job}
    assert edited.verdict(run).winner == (CACHED if same_job else "")


@pytest.mark.parametrize(
    ("training", "label", "says"),
    [
        (3, "", r"not int\."),
        (FILE, "", r"photos.py is a script: give \"photos.py:photos\"\."),
        (make_training, AS_FOUND, "say what you edited"),
        (make_training, 3, "say what you edited"),
    ],
)
def test_what_cannot_be_raced_is_refused(training, label, says, tmp_path):
    with pytest.raises(BadParameterError, match=says):
        perfkit.ladder(training, label=label, folder=tmp_path)


def cell(source, name="<a cell>"):
    """The function ``photos`` of a notebook's cell."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), scope)
    return scope["photos"]


EDITED = """
def photos():
    from photos import WeightLog, files, load, small_cnn

    data = files().map(load).cache().shuffle(640).batch(8)
    model = small_cnn()
    model.compile("adam", "sparse_categorical_crossentropy")
    return model, data, {"callbacks": [WeightLog()], "epochs": 5, "verbose": 2}
"""


def test_the_training_as_found_trains(tmp_path, monkeypatch):
    monkeypatch.setenv("PERFKIT_CACHE", str(tmp_path))
    model, data, arguments = ORIGINAL()
    assert len(list(tmp_path.glob("photos/*/*.jpg"))) == 640
    history = model.fit(data.take(3), **arguments | {"epochs": 1, "verbose": 0})
    assert history.history["loss"][0] > 0
    assert len(arguments["callbacks"][0].sizes) == 3


@pytest.mark.slow
def test_an_edited_cell_becomes_a_rung_and_its_photographs_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFKIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "photos.py").write_text(FILE.read_text())
    monkeypatch.syspath_prepend(str(tmp_path))
    ladder = perfkit.ladder(cell(EDITED), label=CACHED, budget=LEAST_BUDGET_S)
    assert ladder.race.result == {"same_job": True}
    assert len(list(tmp_path.glob("cache/photos/*/*.jpg"))) == 640
    assert set(labels(perfkit.ladder())) <= {CACHED}
