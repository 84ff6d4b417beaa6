"""Which lines are told to be changed, and that the patch of them applies."""

import ast
import functools
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from IPython.core.compilerop import CachingCompiler

from perfkit.cli import main
from perfkit.training.diagnose import verdict
from perfkit.training.diagnose.maker import InFile, maker
from tests.training.diagnose.diagnosed import cause, diagnosis
from tests.training.diagnose.typed import locate, offered, patch

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="it needs git")
HEAD = "import keras\nimport tensorflow as tf\nmodel = keras.Sequential([])\n"
FIT = "model.fit(data, epochs=9)\n"


def versions(difference):
    """The code before and after it: of [-goes-]{+comes+} first "goes", then "comes"."""
    goes, comes = r"\[-(.*?)-\]", r"\{\+(.*?)\+\}"
    for kept, left in ((goes, comes), (comes, goes)):
        code = re.sub(left, "", difference, flags=re.DOTALL)
        yield re.sub(kept, r"\1", code, flags=re.DOTALL)


def found(*changes, **facts):
    """A diagnosis that found each change to help, the first the most."""
    facts = {"data": "tf.data", "batch": 32, "steps": 100} | facts
    causes = []
    for place, name in enumerate(changes):
        one = offered(name, facts)
        more = {"do": one.do, "mind": one.mind}
        causes.append(cause(one.cause, name, len(changes) + 2.0 - place, **more))
    return diagnosis(causes=causes, facts=facts)


def pipeline(code, *stages, **more):
    """Facts of the stages that ran, each ``"kind: text"`` of the line that made it."""
    plain = {"parallel": False, "records": False, "works": True, "python": []}
    listed = []
    for kind, _, text in (one.partition(": ") for one in stages):
        lines = [n for n, one in enumerate(code.split("\n"), 1) if text and text in one]
        line = ["train.py", 0, lines[0]] if lines else []
        listed.append(plain | {"kind": kind, "line": line})
    return {"pipeline": {"stages": listed} | more}


def written(folder, source, name="train.py"):
    path = folder / name
    path.write_text(source)
    return path


def changed(folder, source, *changes, **facts):
    """What git makes of a script with the patch; "" where there is no patch."""
    path = written(folder, source)
    made = patch(found(*changes, **facts), maker(str(path)), folder)
    if not made.text:
        return ""
    applied(made.text, folder)
    ast.parse(path.read_text())
    return path.read_text()


def applied(text, folder):
    # A checkout above would be what git applies it to.
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    ran = subprocess.run(
        ["git", "apply", "-"], cwd=folder, input=text, capture_output=True
    )
    assert ran.returncode == 0, ran.stderr.decode() + text.decode(errors="replace")


COMPILED = {
    "of nothing": "model.compile({+jit_compile=True+})\n",
    "in a bracket": (
        'model.compile("adam", loss=(\n    "mse"){+, jit_compile=True+})  # why\n'
    ),
    "of another value": 'model.compile("adam", jit_compile=[-False-]{+True+})\n',
    "a line each": (
        "model.compile(\n    'sgd',  # a\n    loss=lambda x, y: x,  # é, (\n"
        "{+    jit_compile=True,\n+})\n"
    ),
    "a line each, without a last comma": (
        'model.compile(\n    "adam",\n    loss="é"{+, jit_compile=True+}  # last\n)\n'
    ),
    "with a last comma": 'model.compile("é", "mse",{+ jit_compile=True,+})\n',
}
EAGER = {
    "last": "model.compile('a'[-, run_eagerly=True-])\n",
    "first": "model.compile([-run_eagerly=True, -]loss='a')\n",
    "a line": (
        "model.compile(\n    'a',\n[-    run_eagerly=True,  # to debug\n-]"
        "    loss='b',\n)\n"
    ),
    "a name": "DEBUG = True\nmodel.compile('a'[-, run_eagerly=DEBUG-])\n",
    "set": "model.compile('a')\n[-model.run_eagerly = True  # debug\n-]",
    "functions": ("[-tf.config.run_functions_eagerly(True)\n-]model.compile('a')\n"),
    "all of a branch": (
        "if 1:\n    [-tf.config.run_functions_eagerly(True)-]{+pass+}\n"
    ),
}
# What fit is given, and the callbacks that ran.
CALLBACKS = {
    "model.fit(x, callbacks=[[-CSVLogger('a')-]])\n": ["CSVLogger"],
    "model.fit(x, callbacks=[[-CSVLogger('a'), -]Other()])\n": ["CSVLogger", "Other"],
    "log = k.CSVLogger('a')\nwatch = [\n    Other(),\n[-    log,  # to a file\n-]]\n"
    "model.fit(x, callbacks=watch)\n": ["Other", "CSVLogger"],
    "model.fit(x, [-callbacks=CSVLogger('a'), -]epochs=2)\n": ["CSVLogger"],
    # Which of them it is may not be seen.
    "w = [Other()]\nw.append(CSVLogger('a'))\nmodel.fit(x, callbacks=w)\n": [
        *("Other", "CSVLogger")
    ],
    "model.fit(x, callbacks=[Other(), make()])\n": ["Other", "CSVLogger"],
    "model.fit(x, callbacks=[CSVLogger('a'), *more])\n": ["CSVLogger", "CSVLogger"],
}
CHAIN = """
data = (
    tf.data.Dataset.from_tensor_slices(x)
    .shuffle(100)
    .map(decode{+, num_parallel_calls=tf.data.AUTOTUNE+})  # expensive
    .batch(32)
{+    .prefetch(tf.data.AUTOTUNE)
+})
model.fit(data)
"""
STATEMENTS = """
SIZE = 32
data = tf.data.Dataset.from_tensor_slices(x)
data = data.shuffle(100)
data = data.map(decode, [-None-]{+tf.data.AUTOTUNE+})
data = data.batch({+4 * +}SIZE)
model.fit(data)
"""
IN_ORDER = (
    *("slices in memory: slices(", "shuffle: .shuffle(", "map: .map(decode"),
    "batch: .batch(",
)
THREADS = """
[-tf.config.threading.set_intra_op_parallelism_threads(N)
-]tf.config.threading.set_inter_op_parallelism_threads(N)
[-os.environ['OMP_NUM_THREADS'] = '1'
-]"""
SEEN = [
    "tf.config.threading.set_intra_op_parallelism_threads(1)",
    'os.environ["OMP_NUM_THREADS"] = "1"',
]
RANGE = "data = tf.data.Dataset.range(9)"


def case(difference, *changes, stages=(), more=None, **facts):
    """What changes of a code, for which changes, and what was seen of it."""
    before = next(versions(HEAD + difference))
    seen = pipeline(before, *stages, **(more or {})) if stages else {}
    return difference, changes, facts | seen


# The difference in the code, for which changes, and what was seen. Without a
# difference there is no patch.
CHANGES = {
    **{f"compile {name}": case(one + FIT, "XLA") for name, one in COMPILED.items()},
    "compile where the model is made": case(
        "import keras\ndef make():\n    net = keras.Sequential()\n"
        "    net.compile('sgd'{+, jit_compile=True+})\n    return net\n"
        "model = make()\n" + FIT,
        "XLA",
    ),
    "two changes of one line": case(
        "model.compile('sgd'{+, jit_compile=True+})\n" + FIT,
        *("XLA", "16 steps at a time"),
    ),
    **{f"eager: {name}": case(one + FIT, "graph") for name, one in EAGER.items()},
    **{
        f"callback {n}": case(one, "without CSVLogger", callbacks=ran)
        for n, (one, ran) in enumerate(CALLBACKS.items())
    },
    "the second callback of a class": case(
        "model.fit(x, callbacks=[CSVLogger('a')[-, CSVLogger('b')-]])\n",
        "without CSVLogger (2)",
        callbacks=["CSVLogger", "CSVLogger"],
    ),
    "a callback that steers the training": case(
        "model.fit(x, callbacks=[EarlyStopping()])\n",
        "without EarlyStopping",
        callbacks=["EarlyStopping"],
        steering=["EarlyStopping"],
    ),
    "an argument by place": case(
        "model.fit(data, None, 32, 20, [-1-]{+2+})\n", "without progress bar"
    ),
    "validation": case(
        "model.fit(data, epochs=20, validation_data=held{+, validation_freq=5+})\n",
        "without validation",
    ),
    # It is never put off beyond the last epoch.
    "validation of three epochs": case(
        "model.fit(data, epochs=3, validation_data=held{+, validation_freq=3+})\n",
        "without validation",
    ),
    "validation of one epoch": case(
        "model.fit(data, epochs=1, validation_data=held)\n", "without validation"
    ),
    "validation of as many epochs as fit has by itself": case(
        "model.fit(data, validation_data=held)\n", "validation every 5 epochs"
    ),
    "a chain": case(CHAIN, "prefetch", "parallel maps", stages=IN_ORDER),
    "statements": case(STATEMENTS, "batch ×4", "parallel maps", stages=IN_ORDER),
    "a cache": case(
        f"{RANGE}.map(f){{+.cache()+}}.batch(8)\n{FIT}",
        "cache",
        stages=("range: range(", "map: .map(f)", "batch: .batch("),
        more={"cache": {"after": 1, "moved": []}},
    ),
    "a cache that a stage would have to move for": case(
        f"{RANGE}.shuffle(9).map(f).batch(8)\n{FIT}",
        "cache",
        stages=("range: range(", "shuffle: .shuffle(", "map: .map(f)"),
        more={"cache": {"after": 2, "moved": [1]}},
    ),
    "two maps of one line": case(
        f"{RANGE}.map(f{{+, num_parallel_calls=tf.data.AUTOTUNE+}})"
        f".map(g{{+, num_parallel_calls=tf.data.AUTOTUNE+}})\n{FIT}",
        "parallel maps",
        stages=("range: range(", "map: .map(f)", "map: .map(f)"),
    ),
    "a line that made more stages than it has": case(
        f"{RANGE}\nfor f in functions:\n    data = data.map(f)\n{FIT}",
        "parallel maps",
        stages=("range: range(", "map: .map(f)", "map: .map(f)"),
    ),
    "a stage that another file makes": case(
        f"data = made(x)\n{FIT}", "parallel maps", stages=("range", "map")
    ),
    "a batch of another size ran": case(
        next(versions(STATEMENTS)), "batch ×4", stages=IN_ORDER, batch=64
    ),
    # What is not seen of the data is changed where fit is given them.
    "in the call of fit": case(
        "model.fit({+(+}load() if big else other{+).prefetch(tf.data.AUTOTUNE)+}, "
        "epochs=2)\n",
        "prefetch",
        stages=("whatever",),
    ),
    "no name for TensorFlow": case(
        "import keras\nmodel = keras.Sequential()\nmodel.fit(data, epochs=2)\n",
        "prefetch",
        stages=("whatever",),
    ),
    "data without an end are more than one place": case(
        f"{RANGE}.batch(32)\n{FIT}", "one endless iterator"
    ),
    "batch": case("model.fit(x, y{+, batch_size=128+})\n", "batch ×4", data="arrays"),
    "batch by place": case(
        "model.fit(x, y, [-32-]{+128+})\n", "batch ×4", data="arrays"
    ),
    "the best of several": case(
        "model.fit(x, y{+, batch_size=256+})\n",
        *("batch ×8", "batch ×4", "batch ×2"),
        data="arrays",
    ),
    "threads": case(THREADS + FIT, "default threads", settings={"threads": SEEN}),
    "no threads": case(FIT, "default threads", settings={"threads": SEEN}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_made_however_the_code_is_written(tmp_path, change):
    difference, changes, facts = change
    head = "" if difference.startswith("import") else HEAD
    before, after = versions(head + difference)
    made = changed(tmp_path, before, *changes, **facts)
    assert made == ("" if after == before else after)


@pytest.mark.parametrize(
    "unsure",
    [
        "if small:\n    model.compile('adam')\nelse:\n    model.compile('sgd')\n",
        "for rate in rates:\n    model.compile(rate)\n    model.compile('sgd')\n",
        "import re\nre.compile('a')\n",
        "model.compile('adam')\nmodel.compile('sgd')\n",
        "class Own(keras.Model):\n    def compile(self): ...\nmodel.compile()\n",
        "from models import build\nmodel = build()\nother.compile('adam')\n",
        "other.compile('adam')\nthird.compile('adam')\n",
    ],
)
def test_no_line_is_told_where_another_may_be_meant(tmp_path, unsure):
    path = written(tmp_path, HEAD + unsure + FIT)
    (one,) = locate(found("XLA"), maker(str(path))).causes
    assert one.edits == ()


@pytest.mark.parametrize(
    ("change", "line", "told"),
    [
        # It is given more than is written there, so it is shown alone.
        ("XLA", "model.compile(**options)", "\n    model.compile(**options)"),
        ("graph", "model.run_eagerly = True", "\n  - model.run_eagerly = True"),
        (
            "graph",
            "model.compile('a', run_eagerly=True)",
            "\n  - model.compile('a', run_eagerly=True)\n  + model.compile('a')",
        ),
    ],
)
def test_a_line_is_told_with_its_number_and_the_new_one(tmp_path, change, line, told):
    path = written(tmp_path, f"{HEAD}{line}\n{FIT}")
    there = locate(found(change, "without progress bar"), maker(str(path)))
    assert str(there.causes[0].edits[0]) == f"train.py, line 4{told}"
    # The verdict has those of the largest gain.
    assert verdict.verdict_of(there).edits == there.causes[0].edits


def noted(function):
    @functools.wraps(function)
    def wrapper():
        return function()

    return wrapper


@noted
def eager():
    return "model".compile(run_eagerly=True)


class Makers:
    def eager_too(self):
        return "model".compile(run_eagerly=True)


@pytest.mark.parametrize("made", [eager, Makers().eager_too])
def test_a_function_is_found_in_its_file_through_decorators_and_classes(made):
    (edit,) = locate(found("graph"), made).causes[0].edits
    line = Path(__file__).read_text().splitlines()[edit.line - 1]
    assert line == edit.old
    assert line.strip() == 'return "model".compile(run_eagerly=True)'
    assert edit.new.strip() == 'return "model".compile()'


CELL = """import keras

def make_training():
    model = keras.Sequential([])
    model.compile(
        run_eagerly=True)
    return model
"""


def test_the_line_is_that_of_the_cell_a_function_stands_in():
    compiler, defined = CachingCompiler(), {}
    code = compile(CELL.replace("import keras", ""), compiler.cache(CELL), "exec")
    exec(code, defined)
    (edit,) = locate(found("graph"), defined["make_training"]).causes[0].edits
    assert edit.where == "cell, lines 5-6"
    assert edit.new == "    model.compile()"


EAGERLY = b"def make_training():\n    m.compile(run_eagerly=True)\n"
UNREAD = [
    *(b"def (", b"# coding: none\n", b"(" * 9000, b"x = a" + b".b()" * 20000),
    EAGERLY + b"# " + b"x" * 100_000,
]


@pytest.mark.parametrize(
    "made",
    [*UNREAD, len, functools.partial(eager), Makers(), eval("lambda: 1")],
    ids=lambda made: repr(made)[:12],
)
def test_what_cannot_be_read_has_no_lines(tmp_path, made):
    if isinstance(made, bytes):
        (tmp_path / "train.py").write_bytes(made)
        made = InFile(str(tmp_path / "train.py"), "make_training")
    diagnosed = found("graph")
    assert locate(diagnosed, made) == diagnosed


@pytest.mark.parametrize(
    "before",
    [
        *(b"", b"\r\n\r\n", b"# coding: latin-1\ncaf\xe9 = 1\n", b"\xef\xbb\xbf"),
        # Neither of these ends a line of Python.
        b"x = 1\n\x0c\ny = 2\n",
        "x = 'a\u2028b'\n".encode(),
    ],
    ids=repr,
)
def test_the_line_is_the_one_that_an_editor_shows(tmp_path, before):
    (tmp_path / "train.py").write_bytes(before + EAGERLY)
    made = InFile(str(tmp_path / "train.py"), "make_training")
    (edit,) = locate(found("graph"), made).causes[0].edits
    assert (edit.old, edit.new) == (
        "    m.compile(run_eagerly=True)",
        "    m.compile()",
    )
    assert edit.line == (before + EAGERLY).count(b"\n")


OWN = """import keras
import tensorflow as tf
class Own(keras.Model):
    def {}(self, data):
        return data
def {}(y, z):
    return y
model = Own()
model.compile("sgd", mine, run_eagerly=True)
model.fit(data, epochs=2)
"""


@pytest.mark.parametrize(
    "names",
    [("train_step", "other"), ("call", "other"), ("begin", "mine")],
    ids=["a step", "a layer", "a loss"],
)
def test_no_graph_is_made_of_steps_that_run_code_of_ones_own(tmp_path, names):
    path = written(tmp_path, OWN.format(*names))
    (one,) = locate(found("graph"), maker(str(path))).causes
    assert [(edit.line, edit.new) for edit in one.edits] == [(9, None)]
    assert "then runs once" in one.mind
    assert changed(tmp_path, OWN.format("begin", "other"), "graph") != ""


CALLED = (
    "import keras\nclass Warm(keras.callbacks.Callback):\n"
    "    def {}(self, n, logs=None):\n        self.model.optimizer.lr = n\n"
    "model.compile('adam', 'mse')\n"
    "h = model.fit(x, y, epochs=9, validation_data=v, callbacks=[\n"
    "    keras.callbacks.ModelCheckpoint('best.keras'), Warm()])\n"
)
WATCHED = CALLED.format("on_epoch_end")
SELDOM, UNSAVED = "validation every 5 epochs", "without ModelCheckpoint"
# A code, the change that is typed in it, and what reads later what then goes.
READ = {
    "best.keras": (WATCHED, UNSAVED, "keras.models.load_model('best.keras')"),
    "val_": (WATCHED, SELDOM, "plot(h.history['val_loss'])"),
    "all of it": (WATCHED, SELDOM, "s = h.history\npd.DataFrame(data=s)"),
    "a name that is put together": (WATCHED, SELDOM, "plot(seen['val_' + name])"),
    "what a callback is told": (WATCHED, SELDOM, "logs.get(f'val_{n}')"),
    "the name of a file": (WATCHED, SELDOM, "to = 'm-{val_loss:.2f}.h5'"),
    "a file of another name": (
        WATCHED.replace("'best.keras'", "f'{out}/best.keras'"),
        UNSAVED,
        "model.load_weights(tf.train.latest_checkpoint(out))",
    ),
    "what a callback has seen": (
        f"{HEAD}seen = Losses()\nmodel.fit(x, callbacks=[seen])\n",
        "without Losses",
        "plot(seen.losses)",
    ),
}


RAN_TOO = {"callbacks": ["ModelCheckpoint", "Warm", "Losses"]}


@pytest.mark.parametrize(("source", "change", "later"), READ.values(), ids=READ)
def test_no_line_goes_whose_work_is_read_after_the_training(
    tmp_path, source, change, later
):
    assert changed(tmp_path, source, change, **RAN_TOO) != ""
    assert changed(tmp_path, f"{source}{later}\n", change, **RAN_TOO) == ""


def test_no_call_makes_steps_that_a_callback_steers_one_by_one(tmp_path):
    facts = {"steering": ["Warm"]} | RAN_TOO
    for hook, typed in (("on_epoch_end", True), ("on_train_batch_begin", False)):
        text = changed(tmp_path, CALLED.format(hook), "16 steps at a time", **facts)
        assert bool(text) == typed


SHOWN = f"""{HEAD}@tf.function
def step(x): ...
class Norms(keras.callbacks.Callback):
    pass
data = tf.data.Dataset.range(9)
data = data.shuffle(9)
data = data.map(make)
data = data.shuffle(9)
data = data.batch(8)
model.fit(data, callbacks=callbacks())
"""
RAN = pipeline(
    *(SHOWN, "range: range(", "shuffle: .shuffle(", "map: .map(make)"),
    *("shuffle: .shuffle(", "batch: .batch("),
    cache={"after": 2, "moved": [1]},
)
RAN["pipeline"]["stages"][2]["python"] = ["numpy_function"]
RAN["pipeline"]["stages"][3]["line"] = ["train.py", 0, 11]


@pytest.mark.parametrize(
    ("change", "facts", "line"),
    [
        ("without Python", RAN, 10),
        ("without input", RAN, 12),
        ("cache", RAN, 10),
        ("shuffle before map", RAN, 11),
        ("batch before map", RAN, 12),
        ("fixed signature", {"retraced": {"Trainer.step": {}}}, 5),
        ("tf.function", {"eager_calls": ["__main__:step"]}, 5),
        # The list that it stands in is not seen.
        ("without Norms", {"callbacks": ["Norms"]}, 6),
        ("without input", pipeline("", "whatever", "map"), None),
        ("without input", {}, None),
    ],
)
def test_what_is_more_than_one_edit_has_its_line_shown(tmp_path, change, facts, line):
    path = written(tmp_path, SHOWN)
    (one,) = locate(found(change, **facts), maker(str(path))).causes
    assert [edit.new for edit in one.edits] == [None] * bool(line)
    assert [edit.line for edit in one.edits] == [line] * bool(line)
    lines = path.read_text().splitlines()
    assert [edit.old for edit in one.edits] == [lines[o.line - 1] for o in one.edits]


MAKER = """
def build(**options):
    import tensorflow as tf
    data = tf.data.Dataset.from_tensor_slices([1]).batch(32)
    model = make()
    model.compile("adam", "mse")
    return model, data{}


def make_training():
    return build(run_eagerly=True)


def make_fixed():
    return build(run_eagerly=True, epochs=3)
"""


def test_what_a_maker_returns_is_given_fits_arguments(tmp_path):
    path = written(tmp_path, code := MAKER.format(""))
    changes = ("without progress bar", "graph", "prefetch")
    stages = ("slices in memory: slices(", "batch: .batch(")
    diagnosed = found(*changes, **pipeline(code, *stages))
    made = patch(diagnosed, maker(f"{path}:make_training"), tmp_path)
    applied(made.text, tmp_path)
    text = path.read_text()
    assert 'return model, data, {"verbose": 2}' in text
    assert "return build(run_eagerly=False)" in text
    assert "return build(run_eagerly=True, epochs=3)" in text
    assert ".batch(32).prefetch(tf.data.AUTOTUNE)" in text
    # A dict that it returns is added to.
    made = MAKER.format(', {"epochs": 3}')
    text = changed(tmp_path, made, "without progress bar")
    assert 'data, {"epochs": 3, "verbose": 2}' in text


def test_the_call_of_fit_that_was_asked_for_is_changed(tmp_path):
    fits = "model.fit(x, y)\nmodel.fit(x, y, epochs=5)\nmodel.fit(y, x)\n"
    path = written(tmp_path, HEAD + fits)
    for fit, line in ((0, 5), (1, 4), (3, 6)):
        diagnosed = found("without progress bar")
        (one,) = locate(diagnosed, maker(str(path), (), fit)).causes
        assert [edit.line for edit in one.edits] == [line]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ((HEAD + FIT).replace("\n", "\r\n").encode(), "my train.py"),
        ((HEAD + FIT).rstrip().encode(), "train.py"),
        (("\ufeff" + HEAD + "# é\n" + FIT).encode(), "sub/train.py"),
        (("# coding: latin-1\n" + HEAD + "# é\n" + FIT).encode("latin-1"), "train.py"),
    ],
    ids=["Windows", "no last end of line", "a mark of UTF-8", "Latin"],
)
def test_a_patch_applies_whatever_the_file_is_like(tmp_path, data, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    made = patch(found("without progress bar"), maker(str(path)), tmp_path)
    applied(made.text, tmp_path)
    assert path.read_bytes() == data.replace(b"epochs=9)", b"epochs=9, verbose=2)")


SAID = {
    "where it applies": (found("without progress bar"), "Apply it in the folder of "),
    "what it changes": (found("batch ×4", data="arrays"), "learns differently"),
    "what changes the same lines": (
        found("XLA", "16 steps at a time"),
        '"16 steps at a time" changes the same lines',
    ),
    "what it may break": (
        diagnosis(
            causes=[
                cause("validation", "validation every 5 epochs", 2.0, mind="Divide.")
            ],
            facts={"data": "tf.data"},
        ),
        '"validation every 5 epochs": Divide.',
    ),
}


@pytest.mark.parametrize(("diagnosed", "sentence"), SAID.values(), ids=SAID)
def test_a_patch_of_a_file_elsewhere_says(tmp_path, diagnosed, sentence):
    path = written(tmp_path, f"{HEAD}model.compile('sgd')\n{FIT}")
    (tmp_path / "here").mkdir()
    made = patch(diagnosed, maker(str(path)), tmp_path / "here")
    assert made.text.startswith(b"--- a/train.py\n+++ b/train.py\n")
    assert any(sentence in one for one in made.says)


# A plot is longer than any code.
PLOT = [{"data": {"image/png": "A" * 100_000}}]


def notebook(folder, *cells):
    plain = {"cell_type": "code", "outputs": PLOT}
    code = [plain | {"source": [cell]} for cell in cells]
    cells = [{"cell_type": "markdown", "source": ["# Train"]}, *code]
    return written(folder, json.dumps({"cells": cells}), "train.ipynb")


def test_a_notebook_is_told_by_cell_and_line(tmp_path):
    path = notebook(tmp_path, "!ls\n" + HEAD, "# fit\n" + FIT)
    diagnosed, made = found("without progress bar", "graph"), maker(str(path))
    said = patch(diagnosed, made, tmp_path)
    assert said.text.decode().splitlines() == [
        "train.ipynb, code cell 2, line 2",
        "  - model.fit(data, epochs=9)",
        "  + model.fit(data, epochs=9, verbose=2)",
    ]
    assert any("notebook" in sentence for sentence in said.says)


def test_the_line_of_a_stage_in_a_notebook_is_counted_in_its_cell(tmp_path):
    path = notebook(tmp_path, HEAD, "# data\ndata = data.map(f)\n", FIT)
    stage = {"kind": "map", "parallel": False, "line": ["train.ipynb", 2, 2]}
    ran = found("parallel maps", pipeline={"stages": [stage]})
    (edit,) = locate(ran, maker(str(path))).causes[0].edits
    assert (edit.cell, edit.line) == (2, 2)
    assert edit.new == "data = data.map(f, num_parallel_calls=tf.data.AUTOTUNE)"


def test_nothing_to_change_is_an_empty_patch_and_a_sentence(tmp_path):
    path = written(tmp_path, HEAD + FIT)
    made, diagnosed = maker(str(path)), found("without progress bar")
    for nothing in (found(), found("without metrics"), found("without input")):
        empty = patch(nothing, made, tmp_path)
        assert empty.text == b""
        assert empty.says[0].startswith("There is no patch, because ")
    # Code that is gone costs the lines alone.
    path.unlink()
    assert locate(diagnosed, made) == diagnosed
    assert patch(diagnosed, made, tmp_path).text == b""


def diagnosed_by(monkeypatch, diagnosed):
    """Let the command line have diagnosed this."""
    session = SimpleNamespace(finding=diagnosed)
    monkeypatch.setattr(
        "perfkit.training.diagnose.diagnose.open_diagnosis", lambda *_, **__: session
    )
    monkeypatch.setattr("perfkit.cli._watched", lambda *_: 0)


def test_the_command_writes_the_patch_alone_to_stdout(tmp_path, monkeypatch, capsys):
    path = written(tmp_path, HEAD + FIT)
    monkeypatch.chdir(tmp_path)
    made = maker(str(path))
    diagnosed_by(monkeypatch, locate(found("without progress bar"), made))
    assert main(["diagnose", str(path), "--diff", "--no-race"]) == 0
    out, said = capsys.readouterr()
    assert out.startswith("--- a/train.py\n+++ b/train.py\n@@ ")
    assert said.startswith('perfkit: The patch makes "without progress bar".')
    assert "is not in the patch" not in said
    # What helps most has no lines.
    both = found("without Python", "without progress bar")
    diagnosed_by(monkeypatch, locate(both, made))
    assert main(["diagnose", str(path), "--diff", "--no-race"]) == 0
    left = '"without Python" is not in the patch, because its lines are not certain.'
    assert left in capsys.readouterr().err
    diagnosed_by(monkeypatch, found())
    assert main(["diagnose", str(path), "--diff"]) == 0
    assert capsys.readouterr() == (
        "",
        "perfkit: There is no patch, because no cause was found.\n",
    )
