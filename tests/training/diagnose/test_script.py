"""A script as it is: what is taken over, what is refused, and what it may not touch."""

import ast
import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from perfkit.engine.launcher import launcher
from perfkit.engine.processes import in_process
from perfkit.errors import BadParameterError
from perfkit.training.diagnose import guard, layers, look
from perfkit.training.diagnose.facts import Facts, facts_of
from perfkit.training.diagnose.failure import PROBLEM
from perfkit.training.diagnose.maker import contain, maker, source_of
from perfkit.training.diagnose.script import (
    MarkSteps,
    Script,
    WholeScript,
    hand_over,
    run_until_held,
)
from perfkit.training.diagnose.source import fit_calls, longest, trains_by_fit
from perfkit.training.diagnose.training import handed_over
from perfkit.training.profile.course import STEPPED, stepped

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


def in_layers(code, *folders, **how):
    """Run lines in a process of their own, which may put layers over these folders."""
    begin = """
import os, sys, tempfile
from pathlib import Path
from perfkit.training.diagnose import layers

folders = [Path(folder) for folder in sys.argv[1:]]
"""
    run = [sys.executable, "-c", begin + code, *map(str, folders)]
    return subprocess.run(run, capture_output=True, text=True, **how)


@functools.cache
def has_layers():
    """Whether this system lets a process have its own view of the files."""
    with tempfile.TemporaryDirectory() as folder:
        return in_layers("layers.contain(folders)", folder).returncode == 0


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes a script into a folder of its own, and goes there."""
    if not has_layers():
        monkeypatch.setenv("PERFKIT_UNCONTAINED", "1")
        launcher().load_with({})
    # What a script that runs in this process leaves there.
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    folder = tmp_path / "ü b"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def write(text, name="train.py"):
        (folder / name).write_text(text)
        return folder / name

    return write


def looked(made, longest=60):
    """How a look at a training ended, in a process of its own."""
    return in_process(functools.partial(look.look, made), longest)


def facts_in_trial(made):
    notes = looked(made).notes
    assert PROBLEM not in notes
    return Facts(**notes[look.FACTS])


def facts_here(made):
    return facts_of(handed_over(made()))


def test_a_script_is_taken_over_at_its_fit(script):
    facts = facts_in_trial(maker(script(FIT), ["16"]))
    assert (facts.batch, facts.steps) == (16, 20)


def test_a_profile_of_a_script_writes_nothing_of_the_users(script, tmp_path):
    path, traces = script(FIT), tmp_path / "traces"
    traces.mkdir()
    work = functools.partial(stepped, maker(path, ["16"]), 2, str(traces))
    assert STEPPED in in_process(work, 60).notes
    assert os.listdir(traces)
    if has_layers():
        assert os.listdir(path.parent) == ["train.py"]


def test_the_steps_of_a_loop_are_found_and_nothing_behind_it_runs(script):
    path = script(LOOP)
    facts = facts_in_trial(maker(path))
    assert facts.loop
    assert (facts.batch, facts.steps) == (16, 40)
    assert os.listdir(path.parent) == ["train.py"]


@pytest.mark.parametrize(
    ("text", "fit", "said"),
    [
        ("from sklearn import x\nx.fit(1, 2)", 0, "trains nothing with TensorFlow"),
        ("import tensorflow\nimport other", 0, "trains nothing with TensorFlow"),
        ("import keras\ndef (", 0, "cannot be read as Python"),
        (f"{MODEL}\nmodel.fit(x, y)\n", 3, "there is no call 3"),
        (FIT, -1, "1 or more"),
        (FIT, "two", "1 or more"),
        ("import tf_keras as k\nk.Model().fit(1, 2)", 0, "Keras 2, but perfkit"),
    ],
)
def test_what_trains_nothing_is_refused_before_it_runs(
    script, monkeypatch, text, fit, said
):
    path = script(f"open('ran.txt', 'w')\n{text}")
    script("import sys", "other.py")
    script("", "tf_keras.py")
    monkeypatch.syspath_prepend(path.parent)
    with pytest.raises(BadParameterError, match=said):
        maker(path, fit=fit)
    assert not (path.parent / "ran.txt").exists()


@pytest.mark.parametrize(
    "text",
    [
        f"{MODEL}\ntf.GradientTape()",
        "import keras, beside\nScaler().fit(x)\nbeside.train()",
    ],
    ids=["nowhere", "beside"],
)
def test_what_trains_by_steps_that_are_not_found_is_to_be_run_whole(script, text):
    path = script(f"open('ran.txt', 'w')\n{text}")
    script("def train():\n    tf.GradientTape()", "beside.py")
    assert isinstance(maker(path), WholeScript)
    assert not (path.parent / "ran.txt").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{MODEL}\nif x is None:\n    model.fit(x, y)", "without a call of fit"),
        (f"{MODEL}\nsys.exit('no data')\nmodel.fit(x, y)", "exited with 'no data'"),
        (f"{MODEL}\n1 / 0\nmodel.fit(x, y)", "ZeroDivisionError"),
    ],
)
def test_a_script_that_comes_to_no_training_says_why(script, text, said):
    assert said in looked(maker(script(text))).notes[PROBLEM]


def test_of_several_fits_the_longest_is_taken_or_the_one_that_is_asked_for(script):
    text = f"""{MODEL}
before = model.fit(x, y, batch_size=8, epochs=2, validation_split=0.1)
LONG = 9
assert list(before.history) == ["loss", "val_loss"]
assert len(before.epoch) == len(before.history["loss"]) == 2
assert before.params["epochs"] == 2
assert len(model.get_weights()) == 2, "the first fit builds the model"
model.fit(
    x, y,
    batch_size=64, epochs=LONG,
)
"""
    path = script(text)
    assert facts_here(maker(path)).batch == 64
    assert facts_here(maker(path, fit=1)).batch == 8
    # What needs what a training has learnt does not run behind one passed over.
    path = script(text.replace("LONG = 9", "9 / before.history['loss'][0]; LONG = 9"))
    with pytest.raises(ZeroDivisionError) as raised:
        maker(path)()
    assert "--fit 1 diagnoses" in raised.value.__notes__[0]


def test_where_the_longest_fit_never_comes_one_that_was_passed_over_trains(script):
    fits = ((8, 2), (16, 3), (32, 1))
    calls = [f"model.fit(x, y, batch_size={b}, epochs={e})" for b, e in fits]
    text = "\n".join([MODEL, *calls, "if x is None:\n    model.fit(x, y, epochs=9)\n"])
    for code in text, f"{text}sys.exit()":
        assert facts_here(maker(script(code))).batch == 16
    # Nobody reads in the code which line that is.
    assert source_of(maker(script(text))).fit == 0
    closed = text.replace("model.fit", "with open('train.py'): model.fit")
    for code, fit in (text, 4), (closed, 0), (f"{text}model.compile('sgd', 'mse')", 0):
        with pytest.raises(BadParameterError, match="without a call of fit"):
            maker(script(code), fit=fit)()


def test_a_fit_of_another_file_is_no_call_of_the_script(script):
    script(
        "import keras\n"
        "class Keeps(keras.callbacks.Callback):\n"
        "    def on_epoch_end(self, epoch, logs=None):\n"
        "        self.model.save_weights('best.weights.h5')\n"
        "def search(model, *data, **options):\n"
        "    found = model.fit(*data, callbacks=[Keeps()], **options)\n"
        "    assert isinstance(found, keras.callbacks.History)\n"
        "    model.load_weights('best.weights.h5')\n",
        "keras_tuner.py",
    )
    text = f"""{MODEL}
import keras_tuner

keras_tuner.search(model, x, y, batch_size=8, epochs=2)
model.fit(x, y, batch_size=64, epochs=3)
"""
    path = script(text)
    assert facts_here(maker(path)).batch == 64
    assert facts_here(maker(path, fit=1)).batch == 64
    # One without a word of epochs may be another library's.
    assert facts_here(maker(script(text.replace(", epochs=3", "")))).batch == 8
    del sys.modules["keras_tuner"]


STEPPING = """
def step(b):
    tf.GradientTape()
def epoch():
    for b in data:
        step(b)
def critics(b):
    for _ in range(5):
        step(b)
class Agent:
    def update(self, b):
        tf.GradientTape()
agent = Agent()
"""
METHOD = "class Agent:\n    def {}(self, b):\n        tf.GradientTape()\n"
UPDATE, STEP = METHOD.format("update"), METHOD.format("step")
CRITIC = """
def step(b):
    for _ in range(critic_steps):
        critic.train_on_batch(b)
    generator.train_on_batch(b)

for epoch in range(9):
    for b in data:
        step(b)
"""
OF_TWO = "for _ in range(9):\n    env.step(1)\nfor b in data:\n    made().step(b)"
BAR = "for e in range(9):\n    for b in data:\n        it.step(b)\n    bar.step(1)"
BY_HAND = "from perfkit import steps as s\nfor b in s(data):\n    tf.GradientTape()"
# Code, and what its last loop of steps goes over once that is marked.
MARKED = {
    "a call of a method": (
        "for b in data:\n    model.train_on_batch(b)",
        "STEPS(data)",
    ),
    "counted": ("for i, b in enumerate(data):\n    step(b)", "enumerate(STEPS(data))"),
    "in a strategy": ("for b in data:\n    by.run(step, args=(b,))", "STEPS(data)"),
    "for ever": ("while True:\n    step(next(it))", "STEPS(iter(int, 1))"),
    "a loop within": ("for b in data:\n    critics(b)\n    step(b)", "STEPS(data)"),
    "of an own class": ("for b in data:\n    agent.update(b)", "STEPS(data)"),
    # What a call makes of a step is one, and what a step gives is none.
    "made": ("fast = tf.function(step)\nfor b in data:\n    fast(b)", "STEPS(data)"),
    "given": ("loss = step(1)\nfor e in range(3):\n    print(loss)", "range(3)"),
    # Methods of that name belong to many things.
    "of others": ("for f in files:\n    bar.update(1)", "files"),
}


@pytest.mark.parametrize(("loop", "data"), MARKED.values(), ids=MARKED)
def test_the_loop_whose_turns_are_steps_is_marked(loop, data):
    tree = ast.parse(STEPPING + loop)
    MarkSteps(tree)
    said = ast.unparse(tree.body[-1]).replace("__perfkit_steps__", "STEPS")
    assert said.partition("\n")[0].endswith(f" in {data}:")


@pytest.mark.parametrize(
    ("code", "count", "marked"),
    [
        # Where nothing else makes steps, any method of that name may, and a function
        # may have the name of the method that its loop calls.
        (
            f"{UPDATE}def update(it):\n    for i in data:\n        it.update(i)",
            *(1, "in STEPS(data)"),
        ),
        # Where that may be one of several loops, none is marked.
        (STEP + OF_TWO, 0, ""),
        # A bar around the loop is around steps all the same.
        (STEP + BAR, 1, "for b in STEPS(data)"),
        # A loop within a step is none of steps.
        (CRITIC, 1, "for b in STEPS(data)"),
        # Steps that are marked by hand are left as they are, by whatever name.
        (CRITIC.replace("in data", "in perfkit.steps(data)"), 1, ""),
        (BY_HAND, 1, ""),
    ],
)
def test_the_one_loop_of_steps_is_marked_once(code, count, marked):
    tree = ast.parse(code)
    assert MarkSteps(tree).count == count
    text = ast.unparse(tree).replace("__perfkit_steps__", "STEPS")
    assert marked in text
    assert text.count("STEPS") == bool(marked)


def test_the_longest_fit_is_known_by_names_of_numbers():
    text = (
        "LONG = 9\na.fit(x, y, epochs=5)\nb.fit(x, y, epochs=LONG)\nc.fit(x, y, 8, 7)"
        # Fits of other things are no trainings.
        "\nscaler.fit(x)\nfit(x)"
    )
    tree = ast.parse(text)
    assert [call.lineno for call in fit_calls(tree)] == [2, 3, 4]
    assert longest(fit_calls(tree), tree).lineno == 3
    # What may be another library's, or a function, hides no loop.
    assert not trains_by_fit(ast.parse("forest.fit(x, y)"))
    assert not trains_by_fit(ast.parse("def fit(x, epochs): ...\nfit(x, epochs=2)"))
    assert trains_by_fit(tree)
    # Other libraries fit without a word of epochs.
    for words in ("epochs=args.epochs", "32, 10", "validation_data=z"):
        tree = ast.parse(f"forest.fit(x, y)\nmodel.fit(x, y, {words})")
        assert longest(fit_calls(tree), tree).lineno == 2


@pytest.mark.parametrize("restricted", ["", "1", "0"])
def test_where_nothing_can_be_sealed_a_training_is_guarded_and_that_is_said_before(
    monkeypatch, tmp_path, restricted
):
    guarded, tries = [], []

    def guarding(folders, keep, *, reason, lent):
        guarded.append(folders)
        return f"Guarded ({reason})."

    def refused(*folders, online):
        tries.append(folders)
        raise OSError(1, "Operation not permitted")

    # As Ubuntu says it, and as other systems do, which have no such file.
    monkeypatch.setattr(layers, "_RESTRICTED", tmp_path / "restricted")
    if restricted:
        (tmp_path / "restricted").write_text(f"{restricted}\n")
    monkeypatch.setattr(layers, "contain", refused)
    monkeypatch.setattr(guard, "guard", guarding)
    monkeypatch.delenv(guard.FORCED, raising=False)
    monkeypatch.delenv("PERFKIT_UNCONTAINED", raising=False)
    script = Script(str(Path("elsewhere/train.py").absolute()))
    words = (
        "Guarded (this system allows no layers over folders: Operation not permitted)."
    )
    assert contain(script) == words
    assert guarded == [[Path.cwd(), Path.cwd() / "elsewhere"]]
    # Where half of it may be done, a child has tried.
    assert len(tries) == (restricted != "1")
    made = []
    told = look.look(lambda: made.append(1))
    said = next(told)
    assert (said.name, said.value) == (look.UNCONTAINED, words)
    assert made == []
    monkeypatch.setenv("PERFKIT_UNCONTAINED", "1")
    assert contain(Script("train.py")) == contain(lambda: None) == ""


@pytest.mark.skipif("not has_layers()", reason="this system has no layers for users")
@pytest.mark.fault(
    "script", "read-only", sees="The write fails, and perfkit shows the script's error."
)
def test_a_folder_with_another_disk_in_it_is_closed_and_what_is_beside_covered(
    tmp_path,
):
    code = """
home, tempfile.tempdir = folders[0], str(folders[1])
os.environ["HOME"] = str(home)
layers._own_view()
layers._mount("tmpfs", home / "disk")
layers.contain([home / "project"])
for name in ("project/a", "beside/a", "disk/a", "a"):
    try:
        (home / name).write_text("written")
        print("written")
    except OSError as error:
        print(error.strerror)
"""
    home, trial = tmp_path / "ada", tmp_path / "trial"
    for folder in (home / "project", home / "beside", home / "disk", trial):
        folder.mkdir(parents=True)
    ended = in_layers(code, home, trial, cwd=home)
    said = ended.stdout.splitlines()
    assert said == [*["written"] * 3, "Read-only file system"], ended.stderr
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_the_outermost_of_several_folders_is_covered(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(inner)
    assert layers.covered([inner, tmp_path / "a", link]) == [(tmp_path / "a").resolve()]


def test_a_home_that_is_a_link_is_a_place_of_users(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.symlink_to("/usr/share")
    assert layers._of_the_system(Path("/usr/share"))
    monkeypatch.setenv("HOME", str(home))
    assert not layers._of_the_system(Path("/usr/share"))


def test_the_code_of_a_notebook_is_a_script(script, monkeypatch):
    begin = "import os\nfolder = os.getcwd()\nassert folder.endswith('ü b')"
    commands = """%env PERFKIT_A=1 = 1
%env PERFKIT_B 2
%env PERFKIT_A
%cd "no folder"
%cd ..
assert [os.environ[f"PERFKIT_{name}"] for name in "AB"] == ["1 = 1", "2"]
assert os.getcwd() == os.path.dirname(folder)
"""
    # Autograph, which reads the code, allows a condition on a tensor.
    step = """@tf.function
def train_step(x, y):
    if tf.reduce_sum(x) > 1e9:
        x = x * 0.0
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    tape.gradient(loss, model.trainable_variables)
"""
    loop = """data = tf.data.Dataset.from_tensors(x)
for step, (a, b) in tf.data.Dataset.zip(data, data).repeat().enumerate():
    train_step(a, b)
"""
    code = (
        *(begin, f"%pip install keras\n!ls\n{MODEL}", commands, step),
        *("display(x)\nfiles = !ls", loop),
    )
    cells = [{"cell_type": "code", "source": [cell]} for cell in code]
    cells.insert(1, {"cell_type": "markdown", "source": ["# model.fit(x)"]})
    path = script(json.dumps({"cells": cells}), "train.ipynb")
    # Jupyter starts it in its own folder, wherever it is asked from.
    monkeypatch.chdir(path.parent.parent)
    facts = facts_in_trial(maker(path))
    assert (facts.loop, facts.batch) == (True, 640)


def test_keras_2_that_a_library_brings_trains_nothing(script, tmp_path):
    # Not beside the script, where its code would be read.
    library = tmp_path / "library"
    library.mkdir()
    (library / "tf_keras.py").write_text("class Model:\n    def fit(*given): ...\n")
    (library / "bert.py").write_text("import tf_keras\nBert = tf_keras.Model\n")
    head = f"import sys, keras\nsys.path.append({str(library)!r})\n"
    path = script(f"{head}from bert import Bert\nBert().fit(1, 2)")
    assert "Keras 2, but perfkit measures only" in looked(maker(path)).notes[PROBLEM]


# What a script holds open stays open while its training goes on.


def test_what_is_handed_over_finds_its_files_and_what_its_thread_has_set():
    mine = threading.local()

    def work():
        mine.policy = "mixed_bfloat16"
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "data").write_text("rows")
            hand_over((threading.get_ident(), Path(folder, "data")))

    thread, data = run_until_held(work)
    assert data.read_text() == "rows"
    assert (thread, mine.policy) == (threading.get_ident(), "mixed_bfloat16")
    # A script that ends hands over nothing.
    assert run_until_held(lambda: None) is None
