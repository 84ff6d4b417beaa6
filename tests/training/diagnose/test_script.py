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
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.failure import PROBLEM
from perfkit.training.diagnose.maker import InFile, contain, maker, name_of
from perfkit.training.diagnose.script import (
    MarkSteps,
    Script,
    WholeScript,
    hand_over,
    run_until_held,
)
from perfkit.training.diagnose.source import fit_calls, longest, text_of, trains_by_fit
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
import os
import shutil

assert open("train.py").read()
open("log.txt", "w").write("begun")
if len(sys.argv) > 2:
    shutil.rmtree(sys.argv[2])
    os.makedirs(os.path.join(sys.argv[2], "runs"))
    np.save(os.path.join(sys.argv[2], "runs", "x"), x)
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


@functools.cache
def has_layers():
    """Whether this system lets a process have its own view of the files."""
    code = (
        "import sys; from pathlib import Path; "
        "from perfkit.training.diagnose import layers"
    )
    call = "layers.contain([Path(sys.argv[1])])"
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, "-c", f"{code}; {call}", folder]
        return subprocess.run(run, capture_output=True).returncode == 0


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes a script into a folder of its own, and goes there."""
    if not has_layers():
        monkeypatch.setenv("PERFKIT_UNCONTAINED", "1")
        launcher().load_with({})
    folder = tmp_path / "ü b"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def write(text, name="train.py"):
        (folder / name).write_text(text)
        return folder / name

    return write


def looked(made, longest=60):
    return in_process(functools.partial(look.look, made), longest).notes


def facts_of(made):
    notes = looked(made)
    assert PROBLEM not in notes
    return Facts(**notes[look.FACTS])


def test_a_script_is_taken_over_at_its_fit_and_writes_nothing_of_the_users(script):
    path = script(FIT)
    (path.parent / "log.txt").write_text("mine")
    elsewhere = path.parents[1] / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "model.keras").write_text("mine")
    facts = facts_of(maker(path, ["16", str(elsewhere)]))
    assert (facts.batch, facts.steps) == (16, 20)
    if has_layers():
        assert (path.parent / "log.txt").read_text() == "mine"
        assert [f.read_text() for f in elsewhere.iterdir()] == ["mine"]
    assert sorted(os.listdir(path.parent)) == ["log.txt", "train.py"]


def test_a_profile_of_a_script_writes_nothing_of_the_users_either(script, tmp_path):
    path, traces = script(FIT), tmp_path / "traces"
    traces.mkdir()
    work = functools.partial(stepped, maker(path, ["16"]), 2, str(traces))
    assert STEPPED in in_process(work, 60).notes
    assert os.listdir(traces)
    if has_layers():
        assert os.listdir(path.parent) == ["train.py"]


def test_the_steps_of_a_loop_are_found_and_nothing_behind_it_runs(script):
    path = script(LOOP)
    facts = facts_of(maker(path))
    assert facts.loop
    assert (facts.batch, facts.steps) == (16, 40)
    assert os.listdir(path.parent) == ["train.py"]


@pytest.mark.parametrize(
    ("text", "fit", "said"),
    [
        ("print('hello')", 0, "trains nothing with TensorFlow"),
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
)
def test_what_trains_by_steps_that_are_not_found_is_to_be_run_whole(script, text):
    path = script(f"open('ran.txt', 'w')\n{text}")
    script("def train():\n    tf.GradientTape()", "beside.py")
    assert isinstance(maker(path), WholeScript)
    assert not (path.parent / "ran.txt").exists()


def test_a_script_may_end_itself_once_its_loop_has_trained(script):
    loop = (
        "for _ in range(2):\n    for b in [x] * 9:\n        model.train_on_batch(b, y)"
    )
    path = script(f"{MODEL}\n{loop}\nsys.exit(0)")
    assert facts_of(maker(path)).steps == 9


def test_a_refusal_waits_for_nothing_that_measures(script):
    code = (
        "import sys; from perfkit.cli import main; main(['diagnose', sys.argv[1]]); "
        "print({'numpy', 'keras', 'tensorflow', 'IPython'} & set(sys.modules))"
    )
    run = [sys.executable, "-c", code, str(script("import tensorflow"))]
    ended = subprocess.run(run, capture_output=True, text=True)
    assert "trains nothing with TensorFlow" in ended.stderr
    assert ended.stdout == "set()\n"


def test_a_script_may_train_in_a_package_whose_files_import_each_other(script):
    path = script("import keras\nfrom src.cli import main\nmain()")
    (path.parent / "src" / "deep").mkdir(parents=True)
    script("from src.deep.one import main", "src/cli.py")
    script("from ..other import main", "src/deep/one.py")
    script("def main():\n    model.fit(x, y)", "src/other.py")
    assert isinstance(maker(path), Script)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{MODEL}\nif x is None:\n    model.fit(x, y)", "without a call of fit"),
        (f"{MODEL}\nsys.exit('no data')\nmodel.fit(x, y)", "ended itself with 'no dat"),
        (f"{MODEL}\n1 / 0\nmodel.fit(x, y)", "ZeroDivisionError"),
    ],
)
def test_a_script_that_comes_to_no_training_says_why(script, text, said):
    assert said in looked(maker(script(text)))[PROBLEM]


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
    assert facts_of(maker(path)).batch == 64
    assert facts_of(maker(path, fit=1)).batch == 8
    # What needs what a training has learnt does not run behind one passed over.
    path = script(text.replace("LONG = 9", "9 / before.history['loss'][0]; LONG = 9"))
    with pytest.raises(ZeroDivisionError) as raised:
        maker(path)()
    assert "--fit 1 diagnoses" in raised.value.__notes__[0]


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
    assert facts_of(maker(path)).batch == 64
    assert facts_of(maker(path, fit=1)).batch == 64
    # One without a word of epochs may be another library's.
    assert facts_of(maker(script(text.replace(", epochs=3", "")))).batch == 8


def test_a_fit_that_comes_again_for_an_epoch_each_time_is_noted(script):
    fit = "model.fit(x, y, epochs=1)"
    once, each = f"{MODEL}\n{fit}", f"{MODEL}\nfor _ in range(3):\n    {fit}"
    assert not facts_of(maker(script(once))).again
    assert facts_of(maker(script(each))).again
    assert not facts_of(maker(script(each.replace("epochs=1", "epochs=2")))).again


def test_a_dataset_with_a_shape_is_no_array(script):
    rows = """
class Rows(keras.utils.PyDataset):
    shape = (640, 4)

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return x[:16], y[:16]
"""
    facts = facts_of(maker(script(f"{MODEL}{rows}\nmodel.fit(Rows(), epochs=2)")))
    assert (facts.data, facts.steps) == ("PyDataset", 5)


def test_a_function_that_makes_a_training_stays_what_it_was(script):
    path = script("def make_training(): ...\nmodel.fit(1, 2)")
    assert maker(path) == InFile(str(path), "make_training")
    assert maker(f"{path}:other") == InFile(str(path), "other")
    # A script has a name without a path.
    assert name_of(maker(script(FIT), ["16"])) == "train.py"


def test_each_stage_of_a_pipeline_has_the_line_that_made_it(script):
    data = (
        "def made():\n    data = tf.data.Dataset.from_tensor_slices((x, y))\n"
        "    return (\n        data.shuffle(9)\n"
        "        .map(lambda a, b: (a, b)).batch(\n            32)\n    )\n"
    )
    path = script(f"{MODEL}{data}model.fit(made(), epochs=2)\n")
    lines = path.read_text().splitlines()
    stages = facts_of(maker(path)).stages
    at = [stage["line"] for stage in stages]
    assert [one[:2] for one in at] == [["train.py", 0]] * 4
    texts = ["from_tensor_slices(", "data.shuffle(9)", ".map(lambda", ".batch("]
    for (*_, line), text in zip(at, texts, strict=True):
        assert text in lines[line - 1]


@pytest.mark.parametrize(
    ("loop", "marked"),
    [
        ("for b in data:\n    model.train_on_batch(b)", "for b in STEPS(data)"),
        ("for i, b in enumerate(data):\n    step(b)", "in enumerate(STEPS(data))"),
        ("for e in range(3):\n    epoch()", "for e in range(3)"),
        ("for b in data:\n    print(b)", "for b in data"),
        ("for b in data:\n    strategy.run(step, args=(b,))", "for b in STEPS(data)"),
        ("while True:\n    step(next(it))", "for _ in STEPS(iter(int, 1))"),
        ("while going():\n    step(next(it))", "while going()"),
        ("for b in data:\n    critics(b)\n    step(b)", "for b in STEPS(data)"),
        ("for fold in folds:\n    epoch()", "for fold in folds"),
        # Methods of that name belong to many things.
        ("for f in files:\n    bar.update(1)", "for f in files"),
        ("for b in data:\n    agent.update(b)", "for b in STEPS(data)"),
        # What a call makes of a step is one, and what a step gives is none.
        ("fast = tf.function(step)\nfor b in data:\n    fast(b)", "in STEPS(data)"),
        ("fast = made()\nfor b in data:\n    fast(b)", "in STEPS(data)"),
        ("loss = step(1)\nfor e in range(3):\n    print(loss)", "in range(3)"),
    ],
)
def test_the_loop_whose_turns_are_steps_is_marked(loop, marked):
    functions = (
        "def step(b):\n    tf.GradientTape()\n"
        "def epoch():\n    for b in data:\n        step(b)\n"
        "def critics(b):\n    for _ in range(5):\n        step(b)\n"
        "def made():\n    def inner(b):\n        step(b)\n    return inner\n"
        "class Agent:\n    def update(self, b):\n        tf.GradientTape()\n"
        "agent = Agent()\n"
    )
    tree = ast.parse(functions + loop)
    MarkSteps(tree)
    said = ast.unparse(tree.body[-1]).replace("__perfkit_steps__", "STEPS")
    assert marked in said.partition("\n")[0]


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


@pytest.mark.parametrize(
    ("code", "count", "marked"),
    [
        # Where nothing else makes steps, any method of that name may.
        (
            f"{UPDATE}def train(it):\n    for i in range(9):\n        it.update(i)",
            *(1, "in STEPS(range(9))"),
        ),
        (
            f"{UPDATE}agent, env = A(), Env()\nfor i in range(9):\n    agent.update(i)",
            *(1, "in STEPS(range(9))"),
        ),
        # A function may have the name of the method that its loop calls.
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
        (
            "fast = tf.function(step)\n" + CRITIC.replace("    step(b)", "    fast(b)"),
            *(1, "for b in STEPS(data)"),
        ),
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
    # Other libraries fit without a word of epochs.
    for fit in ("model.fit(x, y, epochs=args.epochs)", "model.fit(x, y, 32, 10)"):
        for other in ("forest.fit(x, y)", "trees.fit(x, y, verbose=False)"):
            tree = ast.parse(f"{other}\n{fit}")
            assert longest(fit_calls(tree), tree).lineno == 2
    tree = ast.parse("forest.fit(x, y)\nmodel.fit(x, y, validation_data=z)")
    assert longest(fit_calls(tree), tree).lineno == 2


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("model.fit(x, epochs=2)", True),
        ("forest.fit(x, y)", False),
        ("def fit(data, epochs): ...\nfit(data, epochs=2)", False),
    ],
)
def test_a_fit_that_may_be_another_hides_no_loop(text, sure):
    assert trains_by_fit(ast.parse(text)) == sure


@pytest.mark.parametrize(
    "trains",
    [
        """if "loop" in sys.argv:
    for _ in range(2):
        model.train_on_batch(x, y)
else:
    model.fit(x, y, epochs=3)
""",
        """def train():
    if "fit" in sys.argv:
        return model.fit(x, y, epochs=3)
    for _ in range(2):
        model.train_on_batch(x, y)


train()
""",
    ],
    ids=["else", "return"],
)
def test_a_script_that_chooses_between_a_loop_and_fit_has_the_loop_found(
    script, trains
):
    path = script(f"{MODEL}\n{trains}")
    assert maker(path, ["loop"])() is None
    assert maker(path, ["fit"])()[2]["epochs"] == 3


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
    doing = look.doing({said.name: said.value}, "")
    assert doing == words
    assert made == []
    monkeypatch.setenv("PERFKIT_UNCONTAINED", "1")
    assert contain(Script("train.py")) == contain(lambda: None) == ""


@pytest.mark.skipif("not has_layers()", reason="this system has no layers for users")
@pytest.mark.fault(
    "script",
    "read-only",
    sees="What it raises where a folder is closed to it, with its own lines.",
)
def test_a_folder_with_another_disk_in_it_is_closed_and_what_is_beside_covered(
    tmp_path,
):
    code = """
import os, sys, tempfile
from pathlib import Path
from perfkit.training.diagnose import layers

home, tempfile.tempdir = Path(sys.argv[1]), sys.argv[2]
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
    run = [sys.executable, "-c", code, str(home), str(trial)]
    ended = subprocess.run(run, capture_output=True, text=True, cwd=home)
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
    loop = """
@tf.function
def train_step(x, y):
    if tf.reduce_sum(x) > 1e9:  # Autograph, which reads the code, allows this.
        x = x * 0.0
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

for step, (a, b) in tf.data.Dataset.zip(data, data).repeat().enumerate():
    train_step(a, b)
"""
    begin = "import os\nfolder = os.getcwd()\nassert folder.endswith('ü b')"
    commands = """%env PERFKIT_A=1 = 1
%env PERFKIT_B 2
%env PERFKIT_A
%cd "no folder"
%cd ..
assert [os.environ[f"PERFKIT_{name}"] for name in "AB"] == ["1 = 1", "2"]
assert os.getcwd() == os.path.dirname(folder)
"""
    cells = [
        {"cell_type": "code", "source": [begin]},
        {"cell_type": "markdown", "source": ["# model.fit(x)"]},
        {"cell_type": "code", "source": ["%pip install keras\n", "!ls\n", MODEL]},
        {"cell_type": "code", "source": [commands]},
        {"cell_type": "code", "source": ["data = tf.data.Dataset.from_tensors(x)\n"]},
        {"cell_type": "code", "source": ["display(data)\n", "files = !ls"]},
        {"cell_type": "code", "source": [loop]},
    ]
    path = script(json.dumps({"cells": cells}), "train.ipynb")
    # Jupyter starts it in its own folder, wherever it is asked from.
    monkeypatch.chdir(path.parent.parent)
    facts = facts_of(maker(path))
    assert (facts.loop, facts.batch) == (True, 640)


def test_what_only_ipython_understands_is_no_code_and_lines_stay(tmp_path):
    code = [
        "!pip install \\\n  keras\n",
        "%%bash\nfor x in y; do :; done",
        "%%time\nsay = (\n    'a'\n    % b\n)",
        "last = 1",
        "%%capture out\nfor n in range(2):\n    %time best = n",
    ]
    cells = [{"cell_type": "code", "source": [cell]} for cell in code]
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    tree = ast.parse(text_of(str(path)))
    lines = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Assign)]
    assert sorted(lines) == [6, 10, 13]


def test_keras_2_that_a_library_brings_trains_nothing(script, tmp_path):
    # Not beside the script, where its code would be read.
    library = tmp_path / "library"
    library.mkdir()
    (library / "tf_keras.py").write_text("class Model:\n    def fit(*given): ...\n")
    (library / "bert.py").write_text("import tf_keras\nBert = tf_keras.Model\n")
    head = f"import sys, keras\nsys.path.append({str(library)!r})\n"
    path = script(f"{head}from bert import Bert\nBert().fit(1, 2)")
    assert "Keras 2, but perfkit measures" in looked(maker(path))[PROBLEM]


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
