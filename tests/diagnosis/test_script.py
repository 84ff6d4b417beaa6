"""A script as it is: what is taken over, what is refused, and what it may not touch."""

import ast
import functools
import json
import os
import subprocess
import sys
import tempfile

import pytest

from perfkit.diagnosis import contained, look
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.hints import hints
from perfkit.diagnosis.maker import InFile, maker, name_of
from perfkit.diagnosis.script import MarkSteps, Script, fit_calls
from perfkit.errors import BadParameterError
from perfkit.measure.processes import in_process
from perfkit.profiling.stepping import STEPPED, stepped

MODEL = """
import sys
import keras
import numpy as np
import tensorflow as tf

x, y = np.ones((640, 4), "float32"), np.ones((640, 1), "float32")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
"""
FIT = f"""{MODEL}
assert open("train.py").read()
open("log.txt", "w").write("begun")
model.fit(x, y, batch_size=int(sys.argv[1]), epochs=3, validation_split=0.5)
raise RuntimeError("what stands behind the training ran")
"""
LOOP = f"""{MODEL}
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
optimizer = keras.optimizers.SGD()

@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

def train():
    for epoch in range(5):
        for step, (a, b) in enumerate(data):
            train_step(a, b)
        for a, b in data:
            model(a)

if __name__ == "__main__":
    train()
    open("weights.txt", "w").write("trained to the end")
"""


def _layers():
    """Whether this system lets a process have its own view of the files."""
    code = (
        "import sys; from pathlib import Path; from perfkit.diagnosis import contained"
    )
    call = "contained.contain([Path(sys.argv[1])])"
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, "-c", f"{code}; {call}", folder]
        return subprocess.run(run, capture_output=True).returncode == 0


LAYERS = _layers()


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes a script into a folder of its own, and goes there."""
    if not LAYERS:
        monkeypatch.setenv("PERFKIT_UNCONTAINED", "1")
    folder = tmp_path / "ü b"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def write(text, name="train.py"):
        (folder / name).write_text(text)
        return folder / name

    return write


def looked(made, longest=60):
    return in_process(functools.partial(look.look, made), longest).notes


def test_a_script_is_taken_over_at_its_fit_and_writes_nothing_of_the_users(script):
    path = script(FIT)
    (path.parent / "log.txt").write_text("mine")
    notes = looked(maker(path, ["16"]))
    facts = Facts(**notes[look.FACTS])
    assert (facts.batch, facts.steps) == (16, 20)
    if LAYERS:
        assert (path.parent / "log.txt").read_text() == "mine"
    assert sorted(os.listdir(path.parent)) == ["log.txt", "train.py"]


def test_a_profile_of_a_script_writes_nothing_of_the_users_either(script, tmp_path):
    path = script(FIT)
    work = functools.partial(stepped, maker(path, ["16"]), 2, str(tmp_path))
    assert STEPPED in in_process(work, 60).notes
    if LAYERS:
        assert os.listdir(path.parent) == ["train.py"]


def test_the_steps_of_a_loop_are_found_and_nothing_behind_it_runs(script):
    path = script(LOOP)
    facts = Facts(**looked(maker(path))[look.FACTS])
    assert facts.loop
    assert (facts.batch, facts.steps) == (16, 40)
    assert os.listdir(path.parent) == ["train.py"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('hello')", "trains nothing with TensorFlow"),
        ("from sklearn import x\nx.fit(1, 2)", "trains nothing with TensorFlow"),
        ("import tensorflow\nimport other", "trains nothing with TensorFlow"),
        ("import keras\ndef (", "cannot be read as Python"),
        (f"{MODEL}\ntf.GradientTape()", "mark its steps"),
        (f"{MODEL}\nmodel.fit(x, y)\n", "there is no number 3"),
    ],
)
def test_what_trains_nothing_is_refused_before_it_runs(script, text, said):
    path = script(f"open('ran.txt', 'w')\n{text}")
    script("import sys", "other.py")
    with pytest.raises(BadParameterError, match=said):
        maker(path, fit=3 if "number 3" in said else 0)
    assert not (path.parent / "ran.txt").exists()


@pytest.mark.parametrize("fit", [-1, "two"])
def test_a_call_of_fit_that_is_no_number_is_refused(script, fit):
    with pytest.raises(BadParameterError, match="from 1"):
        maker(script(FIT), fit=fit)


def test_a_script_may_train_in_a_file_beside_it(script):
    script(
        f"def main():\n    {MODEL.strip().replace(chr(10), chr(10) + '    ')}\n"
        "    model.fit(x, y)\n",
        "inside.py",
    )
    path = script("import keras\nfrom inside import main\nmain()")
    assert Facts(**looked(maker(path))[look.FACTS]).steps == 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{MODEL}\nif x is None:\n    model.fit(x, y)", "without a call of fit"),
        (f"{MODEL}\nsys.exit('no data')\nmodel.fit(x, y)", "ended itself with 'no dat"),
        (f"{MODEL}\n1 / 0\nmodel.fit(x, y)", "ZeroDivisionError"),
    ],
)
def test_a_script_that_comes_to_no_training_says_why(script, text, said):
    assert said in looked(maker(script(text)))[look.PROBLEM]


def test_of_several_fits_the_longest_is_taken_or_the_one_that_is_asked_for(script):
    text = f"""{MODEL}
before = model.fit(x, y, batch_size=8, epochs=1)
print(before.history["loss"][-1])
model.fit(
    x, y,
    batch_size=64, epochs=9,
)
"""
    path = script(text)
    assert Facts(**looked(maker(path))[look.FACTS]).batch == 64
    assert Facts(**looked(maker(path, fit=1))[look.FACTS]).batch == 8


def test_a_function_that_makes_a_training_stays_what_it_was(script):
    path = script("def make_training(): ...\nmodel.fit(1, 2)")
    assert maker(path) == InFile(str(path), "make_training")
    assert maker(f"{path}:other") == InFile(str(path), "other")


def test_a_script_has_a_name_without_a_path_and_hints_with_lines(script):
    path = script(FIT.replace('"mse")', '"mse", run_eagerly=True)'))
    made = maker(path, ["16"])
    assert name_of(made) == "train.py"
    assert [hint.line for hint in hints(made) if "eager" in hint.says] == [9]


def test_fits_of_other_things_are_no_trainings():
    text = "scaler.fit(x)\nmodel.fit(data, epochs=2)\nfit(x)\n"
    assert [call.lineno for call in fit_calls(ast.parse(text))] == [2]


@pytest.mark.parametrize(
    ("loop", "marked"),
    [
        ("for b in data:\n    model.train_on_batch(b)", "for b in STEPS(data)"),
        ("for i, b in enumerate(data):\n    step(b)", "in enumerate(STEPS(data))"),
        ("for e in range(3):\n    epoch()", "for e in range(3)"),
        ("for b in data:\n    print(b)", "for b in data"),
    ],
)
def test_the_innermost_loop_that_trains_is_marked(loop, marked):
    functions = (
        "def step(b):\n    tf.GradientTape()\n"
        "def epoch():\n    for b in data:\n        step(b)\n"
    )
    tree = ast.parse(functions + loop)
    MarkSteps(tree)
    text = ast.unparse(tree).replace("__perfkit_steps__", "STEPS")
    assert marked in text.partition("STEPS(data):\n        step(b)")[2]


def test_steps_that_are_marked_by_hand_are_left_as_they_are():
    text = "for b in perfkit.steps(data):\n    model.train_on_batch(b)"
    tree = ast.parse(text)
    assert MarkSteps(tree).count == 1
    assert ast.unparse(tree) == text


def test_where_files_cannot_be_kept_apart_nothing_is_run(monkeypatch):
    def refused(*folders):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(contained, "contain", refused)
    with pytest.raises(BadParameterError, match=r"\(Operation not permitted\)"):
        Script("train.py").contain()
    Script("train.py", apart=False).contain()


def test_who_lets_a_script_write_says_so_beforehand(script, monkeypatch):
    monkeypatch.delenv("PERFKIT_UNCONTAINED", raising=False)
    assert maker(script(FIT)).apart
    monkeypatch.setenv("PERFKIT_UNCONTAINED", "1")
    assert not maker(script(FIT)).apart


def test_the_outermost_of_several_folders_is_covered(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(inner)
    assert contained.covered([inner, tmp_path / "a", link]) == [
        (tmp_path / "a").resolve()
    ]


def test_the_code_of_a_notebook_is_a_script(script):
    cells = [
        {"cell_type": "markdown", "source": ["# model.fit(x)"]},
        {"cell_type": "code", "source": ["%pip install keras\n", "!ls\n", MODEL]},
        {"cell_type": "code", "source": ["model.fit(x, y, batch_size=64)"]},
    ]
    path = script(json.dumps({"cells": cells}), "train.ipynb")
    assert Facts(**looked(maker(path))[look.FACTS]).batch == 64


def test_a_script_on_keras_2_is_refused_before_it_runs(script):
    path = script("import tf_keras as keras\nkeras.Model().fit(1, 2)\n")
    script("", "tf_keras.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)
        with pytest.raises(BadParameterError, match="Keras 2, and perfkit measures"):
            maker(path)
