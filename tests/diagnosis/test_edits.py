"""Which lines are told to be changed, and that the patch of them applies."""

import ast
import json
import shutil
import subprocess
import textwrap
from dataclasses import replace
from types import SimpleNamespace

import pytest

from perfkit.cli import main
from perfkit.diagnosis import verdict
from perfkit.diagnosis.edits import locate, patch
from perfkit.diagnosis.hints import hints
from perfkit.diagnosis.maker import maker
from perfkit.findings.report import in_text
from tests.diagnosis.diagnosed import cause, diagnosis

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="it needs git")
CAUSES = {
    "graph": "eager",
    "tf.function": "eager",
    "XLA": "xla",
    "16 steps at a time": "step-overhead",
    "without progress bar": "callback",
    "without metrics": "callback",
    "without validation": "validation",
    "without CSVLogger": "callback",
    "without CSVLogger (2)": "callback",
    "without Norms": "callback",
    "parallel maps": "serial-map",
    **{f"batch ×{times}": "small-batch" for times in (2, 4, 8)},
    "2 workers": "python-input",
    "without Python": "python-input",
    "cache": "no-cache",
    "prefetch": "no-prefetch",
    "copied ahead": "host-to-device",
    "one endless iterator": "epoch-boundary",
    "mixed_bfloat16": "precision",
    "validation every 5 epochs": "validation",
    "default threads": "threads",
    "not unrolled": "unrolled",
    "batch before map": "per-example-map",
    "shuffle before map": "late-shuffle",
    "fixed signature": "retracing",
    "read from memory": "slow-read",
    "without input": "input-bound",
}


def stage(kind, **more):
    return {"kind": kind, "parallel": False, "records": False} | more


def pipeline(*kinds, **more):
    return {"pipeline": {"stages": [stage(kind) for kind in kinds]} | more}


IN_ORDER = ("slices in memory", "shuffle", "map", "batch")
CACHE_MOVED = pipeline(*IN_ORDER, cache={"after": 2, "moved": [1]})


def found(*changes, **facts):
    facts = {"data": "tf.data", "batch": 32, "steps": 100} | facts
    gains = range(len(changes) + 2, 1, -1)
    pairs = zip(changes, gains, strict=False)
    causes = [cause(CAUSES[one], one, float(gain)) for one, gain in pairs]
    return diagnosis(causes=causes, facts=facts)


def written(folder, source, name="train.py"):
    path = folder / name
    path.write_text(textwrap.dedent(source).lstrip("\n"))
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


def check(folder, before, after, *changes, **facts):
    before, after = HEAD + before.lstrip("\n"), HEAD + after.lstrip("\n")
    assert changed(folder, before, *changes, **facts) == after


HEAD = "import keras\nimport tensorflow as tf\nmodel = keras.Sequential([])\n"
FIT = "model.fit(data, epochs=9)\n"
COMPILES = {
    "model.compile()\n": "model.compile(jit_compile=True)\n",
    "model.compile('sgd', 'mse')\n": (
        "model.compile('sgd', 'mse', jit_compile=True)\n"
    ),
    'model.compile("adam", loss=(\n    "mse"))  # why\n': 'model.compile("adam", loss=('
    '\n    "mse"), jit_compile=True)  # why\n',
    'model.compile("adam", jit_compile=False)\n': 'model.compile("adam", '
    "jit_compile=True)\n",
    "model.compile(\n    'sgd',  # a\n    loss=lambda x, y: x,  # é, (\n)\n": (
        "model.compile(\n    'sgd',  # a\n    loss=lambda x, y: x,  # é, (\n"
        "    jit_compile=True,\n)\n"
    ),
    'model.compile(\n    "adam",\n    loss="é"  # last\n)\n': "model.compile(\n"
    '    "adam",\n    loss="é",  # last\n    jit_compile=True\n)\n',
    'model.compile("é", "mse",)\n': 'model.compile("é", "mse", jit_compile=True,)\n',
    'model.compile("adam",\n              "mse")\n': 'model.compile("adam",\n'
    '              "mse", jit_compile=True)\n',
    "with scope():\n    model.compile(loss=f'{a!r}, {b}')\n": "with scope():\n"
    "    model.compile(loss=f'{a!r}, {b}', jit_compile=True)\n",
}


@pytest.mark.parametrize(
    "unsure",
    [
        "if small:\n    model.compile('adam')\nelse:\n    model.compile('sgd')\n",
        "for rate in rates:\n    model.compile(rate)\n    model.compile('sgd')\n",
        "import re\nre.compile('a')\n",
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


def test_a_model_with_a_compile_of_its_own_is_told_where_that_calls_keras(tmp_path):
    source = """
    import keras
    class Gan(keras.Model):
        def compile(self, loss_fn):
            super().compile()
            self.loss_fn = loss_fn
    model = Gan()
    model.compile(loss_fn=1)
    model.fit(data, epochs=2)
    """
    made = changed(tmp_path, source, "XLA")
    assert "super().compile(jit_compile=True)" in made
    assert "model.compile(loss_fn=1)" in made


EAGER = {
    "model.compile('a', run_eagerly=True)\n": "model.compile('a')\n",
    "model.compile(run_eagerly=True, loss='a')\n": "model.compile(loss='a')\n",
    "model.compile(\n    'a',\n    run_eagerly=True,  # to debug\n    loss='b',\n)\n": (
        "model.compile(\n    'a',\n    loss='b',\n)\n"
    ),
    "DEBUG = True\nmodel.compile('a', run_eagerly=DEBUG)\n": (
        "DEBUG = True\nmodel.compile('a')\n"
    ),
    "model.compile('a')\nmodel.run_eagerly = True  # debug\n": "model.compile('a')\n",
    "tf.config.run_functions_eagerly(True)\nmodel.compile('a')\n": (
        "model.compile('a')\n"
    ),
    "if 1:\n    tf.config.run_functions_eagerly(True)\n": "if 1:\n    pass\n",
}


def test_what_a_loop_calls_is_made_a_graph(tmp_path):
    source = """
    import tensorflow as tf
    class Trainer:
        def step(self, batch):
            return batch
    @named
    def update(batch):
        with tf.GradientTape() as tape:
            return batch
    for batch in data:
        Trainer().step(update(batch))
    """
    made = changed(
        tmp_path,
        source,
        "tf.function",
        eager_calls=["__main__:Trainer.step", "__main__:update"],
    )
    assert "    @tf.function\n    def step(self, batch):" in made
    assert "@tf.function\n@named\ndef update(batch):" in made


def test_validation_is_never_put_off_beyond_the_last_epoch(tmp_path):
    fit = "model.fit(data, epochs={}, validation_data=held)\n"
    made = changed(tmp_path, HEAD + fit.format(3), "without validation")
    assert "validation_freq=3" in made
    assert changed(tmp_path, HEAD + fit.format(1), "without validation") == ""


# What fit is given, then, and the callbacks that ran.
CALLBACKS = [
    (
        "model.fit(x, callbacks=[CSVLogger('a')])\n",
        "model.fit(x, callbacks=[])\n",
        ["CSVLogger"],
    ),
    (
        "model.fit(x, callbacks=[CSVLogger('a'), Other()])\n",
        "model.fit(x, callbacks=[Other()])\n",
        ["CSVLogger", "Other"],
    ),
    (
        "log = k.CSVLogger('a')\nwatch = [\n    Other(),\n    log,  # to a file\n]\n"
        "model.fit(x, callbacks=watch)\n",
        "log = k.CSVLogger('a')\nwatch = [\n    Other(),\n]\n"
        "model.fit(x, callbacks=watch)\n",
        ["Other", "CSVLogger"],
    ),
    (
        "w = [Other()]\nw.append(CSVLogger('a'))\nmodel.fit(x, callbacks=w)\n",
        "w = [Other()]\nmodel.fit(x, callbacks=w)\n",
        ["Other", "CSVLogger"],
    ),
    (
        "model.fit(x, callbacks=CSVLogger('a'), epochs=2)\n",
        "model.fit(x, epochs=2)\n",
        ["CSVLogger"],
    ),
    (
        "model.fit(x, callbacks=[Other(), make()])\n",
        "model.fit(x, callbacks=[Other()])\n",
        ["Other", "CSVLogger"],
    ),
]


def test_a_callback_in_a_list_that_is_not_seen_has_its_class_shown(tmp_path):
    source = HEAD + "class Norms(keras.callbacks.Callback):\n    pass\n"
    path = written(tmp_path, source + "model.fit(x, callbacks=make())\n")
    diagnosed = found("without Norms", callbacks=["Norms"])
    (one,) = locate(diagnosed, maker(str(path))).causes
    (edit,) = one.edits
    assert (edit.line, edit.new) == (4, None)
    assert edit.old == "class Norms(keras.callbacks.Callback):"


CHAIN = """
data = (
    tf.data.Dataset.from_tensor_slices(x)
    .shuffle(100)
    .map(decode)  # expensive
    .batch(32)
)
model.fit(data)
"""
CHANGED_CHAIN = """
data = (
    tf.data.Dataset.from_tensor_slices(x)
    .map(decode, num_parallel_calls=tf.data.AUTOTUNE)  # expensive
    .cache()
    .shuffle(100)
    .batch(32)
    .prefetch(tf.data.AUTOTUNE)
)
model.fit(data)
"""
STATEMENTS = """
data = tf.data.Dataset.from_tensor_slices(x)
data = data.shuffle(100)
data = data.map(decode, None)
data = data.batch(SIZE)
model.fit(data)
"""
CHANGED_STATEMENTS = """
SIZE = 32
data = tf.data.Dataset.from_tensor_slices(x)
data = data.map(decode, tf.data.AUTOTUNE).cache().shuffle(100)
data = data.batch(4 * SIZE).prefetch(tf.data.AUTOTUNE)
model.fit(data)
"""


@pytest.mark.parametrize("change", ["cache", "parallel maps", "batch ×4"])
def test_stages_that_are_not_those_that_ran_are_left_alone(tmp_path, change):
    # One more stage ran than is written, so nobody knows which is which.
    ran = ("slices in memory", "shuffle", "map", "map", "batch")
    facts = pipeline(*ran, cache={"after": 2, "moved": []})
    assert changed(tmp_path, HEAD + CHAIN, change, **facts) == ""
    # A batch of another size ran.
    facts = pipeline(*IN_ORDER) | {"batch": 64}
    assert changed(tmp_path, HEAD + CHAIN, "batch ×4", **facts) == ""


ROWS = "class Rows(keras.utils.PyDataset):\n{}    def __getitem__(self, i): ...\n"
INIT = "    def __init__(self):\n        super().__init__({})\n"
LSTM = "model.add(keras.layers.LSTM(8, {}return_sequences=True))\n"
BRANCH = "data = load()\nif big:\n    data = data.take(9)\ndata = data.map(f{})\n"
TWICE = "model.compile('a')\nmodel.fit(x, y)\nmodel.compile('b'{})\n"
PARALLEL = ", num_parallel_calls=tf.data.AUTOTUNE"
ARRAYS = {"data": "arrays"}
# The code, what becomes of it, for which changes, and what was seen.
CHANGES = [
    *((old + FIT, new + FIT, ["XLA"], {}) for old, new in COMPILES.items()),
    (TWICE.format("") + FIT, TWICE.format(", jit_compile=True") + FIT, ["XLA"], {}),
    *((old + FIT, new + FIT, ["graph"], {}) for old, new in EAGER.items()),
    *(
        (old, new, ["without CSVLogger"], {"callbacks": ran})
        for old, new, ran in CALLBACKS
    ),
    (
        "model.fit(x, callbacks=[CSVLogger('a'), CSVLogger('b')])\n",
        "model.fit(x, callbacks=[CSVLogger('a')])\n",
        ["without CSVLogger (2)"],
        {"callbacks": ["CSVLogger", "CSVLogger"]},
    ),
    (
        "model.fit(data, None, 32, 20, 1, validation_data=held)\n",
        "model.fit(data, None, 32, 20, 2, validation_data=held, validation_freq=5)\n",
        ["without progress bar", "without validation"],
        {},
    ),
    (CHAIN, CHANGED_CHAIN, ["prefetch", "cache", "parallel maps"], CACHE_MOVED),
    (
        "SIZE = 32\n" + STATEMENTS.lstrip(),
        CHANGED_STATEMENTS,
        ["batch ×4", "prefetch", "cache", "parallel maps"],
        CACHE_MOVED,
    ),
    # A branch hides what comes before it only.
    (
        BRANCH.format("") + FIT,
        BRANCH.format(PARALLEL) + FIT,
        ["parallel maps"],
        pipeline("whatever", "map"),
    ),
    # What is not seen of the data is changed where fit is given them.
    (
        "model.fit(load() if big else other)\n",
        "model.fit((load() if big else other).cache().prefetch(tf.data.AUTOTUNE)"
        ".repeat(), steps_per_epoch=100)\n",
        ["cache", "prefetch", "one endless iterator"],
        pipeline("whatever", cache={"after": 0, "moved": []}),
    ),
    (LSTM.format("unroll=True, ") + FIT, LSTM.format("") + FIT, ["not unrolled"], {}),
    ("model.fit(x, y)\n", "model.fit(x, y, batch_size=128)\n", ["batch ×4"], ARRAYS),
    ("model.fit(x, y, 32)\n", "model.fit(x, y, 128)\n", ["batch ×4"], ARRAYS),
    # Only the best of several is written.
    (
        "model.fit(x, y)\n",
        "model.fit(x, y, batch_size=256)\n",
        ["batch ×8", "batch ×4", "batch ×2"],
        ARRAYS,
    ),
    # The workers of a dataset of one's own are told to its base.
    (
        ROWS.format(INIT.format("")) + "model.fit(Rows(), epochs=2)\n",
        ROWS.format(INIT.format("workers=2")) + "model.fit(Rows(), epochs=2)\n",
        ["2 workers"],
        {"data": "PyDataset"},
    ),
    (
        ROWS.format("") + "model.fit(Rows(), epochs=2)\n",
        ROWS.format("") + "model.fit(Rows(workers=2), epochs=2)\n",
        ["2 workers"],
        {},
    ),
]


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
def test_a_change_is_made_however_the_code_is_written(tmp_path, change):
    before, after, changes, facts = change
    check(tmp_path, before, after, *changes, **facts)


def test_settings_that_were_seen_are_deleted(tmp_path):
    threads = "tf.config.threading.set_{}_op_parallelism_threads(N)\n"
    lines = [threads.format("intra"), threads.format("inter")]
    seen = {"threads": ["tf.config.threading.set_intra_op_parallelism_threads(1)"]}
    lines.append("os.environ['OMP_NUM_THREADS'] = '1'\n")
    seen["threads"].append('os.environ["OMP_NUM_THREADS"] = "1"')
    before, after = "".join([*lines, FIT]), "".join([lines[1], FIT])
    check(tmp_path, before, after, "default threads", settings=seen)
    assert changed(tmp_path, HEAD + FIT, "default threads", settings=seen) == ""


@pytest.mark.parametrize("sep", ["", "\ndata = data"])
def test_a_stage_is_moved_in_front_of_maps(tmp_path, sep):
    chain = "data = tf.data.Dataset.range(9){}\n" + FIT
    maps = f".map(f){sep}.map(g)"
    facts = pipeline("range", "map", "map", "batch", "shuffle")
    facts["pipeline"]["for batches"] = ["g"]
    before = chain.format(f"{sep}{maps}{sep}.batch(8){sep}.shuffle(9)")
    after = chain.format(f"{sep}.map(f).batch(8){sep}.map(g){sep}.shuffle(9)")
    check(tmp_path, before, after, "batch before map", **facts)
    facts = pipeline("range", "map", "map", "shuffle", "batch")
    before = chain.format(f"{sep}{maps}{sep}.shuffle(9){sep}.batch(8)")
    after = chain.format(f"{sep}.shuffle(9).map(f){sep}.map(g){sep}.batch(8)")
    check(tmp_path, before, after, "shuffle before map", **facts)


def test_without_a_name_for_tensorflow_no_constant_of_it_is_written(tmp_path):
    source = "import keras\nmodel = keras.Sequential()\nmodel.fit(data, epochs=2)\n"
    assert changed(tmp_path, source, "prefetch", **pipeline("whatever")) == ""


def test_a_policy_is_set_behind_the_imports(tmp_path):
    made = changed(tmp_path, HEAD + FIT, "mixed_bfloat16")
    assert made.splitlines()[:3] == [
        *HEAD.splitlines()[:2],
        'keras.config.set_dtype_policy("mixed_bfloat16")',
    ]


@pytest.mark.parametrize(
    ("change", "facts", "line"),
    [
        ("without Python", pipeline(python=["numpy_function"]), 5),
        ("fixed signature", {"retraced": {"Trainer.step": {}}}, 7),
        ("without input", {}, 9),
        ("parallel maps", pipeline("whatever", "map", "map"), None),
    ],
)
def test_what_is_more_than_a_line_has_its_place_shown(tmp_path, change, facts, line):
    source = (
        "def make(x):\n    return tf.numpy_function(work, [x], tf.float32)\n"
        "@tf.function\ndef step(x): ...\ndata = data.map(make)\n"
    )
    path = written(tmp_path, HEAD + source + FIT)
    (one,) = locate(found(change, **facts), maker(str(path))).causes
    assert [edit.new for edit in one.edits] == [None] * bool(line)
    assert [edit.line for edit in one.edits] == [line] * bool(line)


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
    path = written(tmp_path, MAKER.format(""))
    changes = ("without progress bar", "graph", "prefetch")
    diagnosed = found(*changes, **pipeline("slices in memory", "batch"))
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
)
def test_a_patch_applies_whatever_the_file_is_like(tmp_path, data, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    made = patch(found("without progress bar"), maker(str(path)), tmp_path)
    applied(made.text, tmp_path)
    assert path.read_bytes() == data.replace(b"epochs=9)", b"epochs=9, verbose=2)")


def test_a_patch_of_a_file_elsewhere_says_where_it_applies(tmp_path):
    path = written(tmp_path, HEAD + "model.fit(x, y)\n")
    (tmp_path / "here").mkdir()
    larger = found("batch ×4", data="arrays")
    made = patch(larger, maker(str(path)), tmp_path / "here")
    assert made.text.startswith(b"--- a/train.py\n+++ b/train.py\n")
    assert "Apply it in the folder of train.py." in made.says
    assert any("what is learnt" in sentence for sentence in made.says)


def test_a_notebook_is_told_by_cell_and_line(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# Train"]},
        {"cell_type": "code", "source": ["!ls\n", *HEAD.splitlines(keepends=True)]},
        {"cell_type": "code", "source": ["# fit\n", FIT]},
    ]
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    diagnosed, made = found("without progress bar", "graph"), maker(str(path))
    said = patch(diagnosed, made, tmp_path)
    assert said.text.decode().splitlines() == [
        "train.ipynb, code cell 2, line 2",
        "  - model.fit(data, epochs=9)",
        "  + model.fit(data, epochs=9, verbose=2)",
    ]
    assert any("notebook" in sentence for sentence in said.says)


def test_a_hint_in_a_notebook_is_told_by_cell_and_line(tmp_path):
    cells = [HEAD, "# eager\nmodel.run_eagerly = True\n", FIT]
    listed = [{"cell_type": "code", "source": [source]} for source in cells]
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": listed}))
    (hint,) = hints(maker(str(path)))
    assert hint.where == "code cell 2, line 2"
    seen = replace(found("graph"), hints=(hint,))
    assert "Seen in the code, not measured" in in_text(seen.report, whole=True)
    there = locate(seen, maker(str(path)))
    assert "Seen in the code" not in in_text(there.report, whole=True)


def test_nothing_to_change_is_an_empty_patch_and_a_sentence(tmp_path):
    path = written(tmp_path, HEAD + FIT)
    made, diagnosed = maker(str(path)), found("without progress bar")
    for nothing in (found(), found("without metrics"), found("without input")):
        empty = patch(nothing, made, tmp_path)
        assert empty.text == b""
        assert empty.says[0].startswith("There is no patch: ")
    # Code that is gone costs the lines alone.
    path.unlink()
    assert locate(diagnosed, made) == diagnosed
    assert patch(diagnosed, made, tmp_path).text == b""


def test_a_line_to_delete_is_the_headline(tmp_path):
    hinted = diagnosis(causes=(cause("eager", "graph", 3.0),), facts={})
    path = written(tmp_path, HEAD + "\n" * 8 + "model.run_eagerly = True\n" + FIT)
    there = locate(hinted, maker(str(path)))
    shown = replace(there, verdict=verdict.verdict_of(there))
    assert shown.verdict.headline == "Delete line 12, `model.run_eagerly = True`."
    for said in (repr(shown), shown._repr_html_()):
        assert "train.py, line 12" in said
        assert "- model.run_eagerly = True" in said


def test_a_saved_diagnosis_without_lines_is_read(tmp_path):
    from perfkit.findings import store
    from perfkit.findings.reading import parse_diagnosis

    data = json.loads(store.to_json(found("graph")))
    for one in data["causes"]:
        one.pop("edits", None)
    (one,) = parse_diagnosis(json.dumps(data).encode(), "old.json").causes
    assert one.edits == ()


def diagnosed_by(monkeypatch, diagnosed):
    """Let the command line have diagnosed this."""
    session = SimpleNamespace(finding=diagnosed)
    monkeypatch.setattr("perfkit.diagnoses.open_diagnosis", lambda *_, **__: session)
    monkeypatch.setattr("perfkit.cli._watched", lambda *_: 0)


def test_the_command_writes_the_patch_alone_to_stdout(tmp_path, monkeypatch, capsys):
    path = written(tmp_path, HEAD + FIT)
    monkeypatch.chdir(tmp_path)
    diagnosed_by(monkeypatch, found("without progress bar"))
    assert main(["diagnose", str(path), "--diff"]) == 0
    out, said = capsys.readouterr()
    assert out.startswith("--- a/train.py\n+++ b/train.py\n@@ ")
    assert said.startswith('perfkit: The patch makes "without progress bar".')
    diagnosed_by(monkeypatch, found())
    assert main(["diagnose", str(path), "--diff"]) == 0
    assert capsys.readouterr() == (
        "",
        "perfkit: There is no patch: no cause was found.\n",
    )


def test_two_things_for_stdout_are_refused(capsys):
    assert main(["diagnose", "train.py", "--diff", "--json", "-"]) == 2
    assert "--diff and --json - both write to stdout" in capsys.readouterr().err
