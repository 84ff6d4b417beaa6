"""A word that is planted in every private place stands in nothing that is shared."""

import platform
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest

import perfkit
from perfkit.findings import store
from perfkit.findings.page import export
from perfkit.findings.report import in_text
from perfkit.machine.collect import machine
from perfkit.questions.data_pipeline import DataPipeline
from perfkit.questions.gallery import chart, kinds
from perfkit.questions.session import Session, shareable
from perfkit.questions.shared import cache, images
from tests.engine.trials import launched
from tests.findings.made import finding
from tests.findings.page.books import book, code, result, write
from tests.machines import pairs
from tests.questions.conftest import ended
from tests.questions.toy import Leaky

MARK = "quibbleworth"
# It names no place of its own: a line of code is shown by purpose.
SCRIPT = """
import sys
import keras
import numpy as np
import tensorflow as tf

def read(path):
    return tf.ones([4]) * tf.cast(tf.strings.length(tf.io.read_file(path)), "float32")

folder, name = sys.argv[1:]
files = tf.data.Dataset.list_files(folder + "/images/*/*.bin").repeat(64)
data = files.map(lambda path: (read(path), tf.ones([1]))).batch(16)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, epochs=3, callbacks=[
    keras.callbacks.ModelCheckpoint(f"{folder}/{name}.keras"),
    keras.callbacks.CSVLogger(f"{folder}/{name}.csv"),
])
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The project of somebody whose user, host, home and secrets bear the mark."""
    # Where it keeps its fonts is known from now on.
    matplotlib.get_cachedir()
    project = tmp_path / f"{MARK}-home" / MARK / "project"
    (project / "images" / MARK).mkdir(parents=True)
    for number in range(16):
        (project / "images" / MARK / f"{MARK}-{number}.bin").write_bytes(b"x" * number)
    for name in (
        *("USER", "LOGNAME", "USERNAME", "SUDO_USER", "JUPYTERHUB_USER", "HOSTNAME"),
        *("AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY"),
    ):
        monkeypatch.setenv(name, MARK)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / f"{MARK}-home"))
    monkeypatch.setenv("JPY_SESSION_NAME", str(project / "notes.ipynb"))
    monkeypatch.setattr(platform, "node", lambda: f"{MARK}.example.org")
    monkeypatch.chdir(project)
    # What it writes goes to a folder of this test all the same.
    monkeypatch.setenv("PERFKIT_UNCONTAINED", "1")
    return project


def shared(found, folder):
    """Everything that a finding can be sent as, by what it is."""
    page = export(found, folder / "page.html")
    yield "file", found.path.read_text(encoding="utf-8")
    yield "page", page.read_text(encoding="utf-8")
    yield "terminal", in_text(found.report, in_full=True)
    yield "notebook", found._repr_html_()
    yield from ((kind, chart(found, kind).svg) for kind in kinds(found))


def leaks(texts):
    """Where the mark stands, with what is around it."""
    for what, text in texts:
        at = text.lower().find(MARK)
        if at >= 0:
            yield what, text[max(0, at - 80) : at + 80]


def test_a_finding_tells_no_folder_not_even_in_what_a_trial_raised(home, tmp_path):
    session = Session(Leaky(where=str(home)), budget=2, folder=tmp_path / "out")
    for _ in session.events():
        pass
    found = session.finding
    assert "<path>" in found.unavailable["refused"]
    assert any("<path>" in t.message for t in found.trials if t.variant == "broken")
    assert list(leaks(shared(found, tmp_path))) == []


def test_a_diagnosis_tells_neither_arguments_nor_names_of_files(home, tmp_path):
    (home / "train.py").write_text(SCRIPT)
    # What loading takes is no part of so small a budget.
    launched()
    found = perfkit.diagnose(
        home / "train.py",
        budget=12,
        folder=tmp_path / "out",
        arguments=[str(home), MARK],
    )
    assert found.training == "train.py"
    assert list(leaks(shared(found, tmp_path))) == []


def test_a_machine_tells_nobody_whose_it_is(home, tmp_path, monkeypatch):
    for name, value in {
        "LD_LIBRARY_PATH": str(home),
        "TF_VAR_password": MARK,
        "TF_CUDA_PATHS": f"{home},{MARK}",
        "XLA_FLAGS": f"--xla_dump_to={home} --xla_who={MARK}",
    }.items():
        monkeypatch.setenv(name, value)
    seen = machine()
    assert {"LD_LIBRARY_PATH", "XLA_FLAGS"} <= seen.environment.keys()
    made = replace(pairs.passport(), machine=seen)
    folder = tmp_path / "class"
    store.save(made, path=folder / "one.json")
    store.save(pairs.passport(), path=folder / "two.json")
    compared = perfkit.compare(folder / "one.json", folder / "two.json")
    store.save(found := replace(finding(), machine=seen), folder)
    pages = [
        perfkit.classroom(folder).export(tmp_path / "class.html"),
        compared.export(tmp_path / "compared.html"),
        export(found, tmp_path / "a.html"),
    ]
    texts = [
        ("passport", store.to_json(made)),
        *(("terminal", in_text(one.report, in_full=True)) for one in (made, compared)),
        *((path.name, path.read_text(encoding="utf-8")) for path in pages),
    ]
    assert list(leaks(texts)) == []


def test_images_tell_neither_folder_nor_classes(home, tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    (home / "images" / MARK / "empty.jpg").touch()
    good = home / "images" / MARK / "good.jpg"
    good.write_bytes(images.jpeg(0, 0))
    asked = DataPipeline(images=str(home / "images"))
    _, found = ended(images.look_at(asked.folder, count=9, side=64))
    told = found.describe()
    assert told["skipped_names"] == ["empty.jpg"]
    texts = [("notes", repr(told)), ("parameters", repr(shareable(asked)))]
    assert list(leaks(texts)) == []


def test_a_notebook_tells_no_folder(home):
    store.save(found := finding(), home / "perfkit-findings")
    path = write(book("# T", code("1", result(found))), Path("notes.ipynb").absolute())
    html = export(path).read_text(encoding="utf-8")
    assert "notes.ipynb" in html
    assert list(leaks([("page", html)])) == []


def test_the_mark_would_be_seen():
    texts = [("clean", "x"), ("not", f"<p>{MARK.upper()}</p>")]
    assert [what for what, _ in leaks(texts)] == ["not"]
