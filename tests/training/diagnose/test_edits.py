"""Which lines are told to be changed, and that the patch of them applies."""

import ast
import json
import re
import shutil
import subprocess

import pytest

from perfkit.training.diagnose.maker import maker
from tests.training.diagnose.diagnosed import cause, diagnosis
from tests.training.diagnose.typed import locate, offered, patch

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="it needs git")
HEAD = "import keras\nimport tensorflow as tf\nmodel = keras.Sequential([])\n"
FIT = "model.fit(data, epochs=9)\n"
SGD = f"model.compile('sgd')\n{FIT}"


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
    "a line each": (
        "model.compile(\n    'sgd',  # a\n    loss=lambda x, y: x"
        "{+, jit_compile=True+},  # é, (\n)\n"
    ),
    "with a last comma": 'model.compile("é", "mse"{+, jit_compile=True+},)\n',
}
EAGER = {
    "last": "model.compile('a'[-, run_eagerly=True-])\n",
    "a line": (
        "model.compile(\n    'a',\n[-    run_eagerly=True,  # to debug\n-]"
        "    loss='b',\n)\n"
    ),
    "a name": "DEBUG = True\nmodel.compile('a'[-, run_eagerly=DEBUG-])\n",
    "set": "model.compile('a')\n[-model.run_eagerly = True  # debug\n-]",
    "all of a branch": (
        "if 1:\n    [-tf.config.run_functions_eagerly(True)-]{+pass+}\n"
    ),
}
CHAIN = """
data = (
    tf.data.Dataset.from_tensor_slices(x)
    .shuffle(100)
    .map(decode{+, num_parallel_calls=tf.data.AUTOTUNE+})  # expensive
    .batch(32){+.prefetch(tf.data.AUTOTUNE)+}
)
model.fit(data)
"""
STATEMENTS = """
SIZE = 32
data = tf.data.Dataset.from_tensor_slices(x)
data = data.shuffle(100)
data = data.map(decode, [-None-]{+tf.data.AUTOTUNE+})
data = data.batch(SIZE)
model.fit(data)
"""
IN_ORDER = (
    *("slices in memory: slices(", "shuffle: .shuffle(", "map: .map(decode"),
    "batch: .batch(",
)
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
    "a chain": case(CHAIN, "prefetch", "parallel maps", stages=IN_ORDER),
    "statements": case(STATEMENTS, "parallel maps", stages=IN_ORDER),
    "a cache": case(
        f"{RANGE}.map(f){{+.cache()+}}.batch(8)\n{FIT}",
        "cache",
        stages=("range: range(", "map: .map(f)", "batch: .batch("),
        more={"cache": {"after": 1, "moved": []}},
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
        "other.compile('adam')\nthird.compile('adam')\n",
    ],
)
def test_no_line_is_told_where_another_may_be_meant(tmp_path, unsure):
    path = written(tmp_path, HEAD + unsure + FIT)
    (one,) = locate(found("XLA"), maker(str(path))).causes
    assert one.edits == ()


WATCHED = HEAD + (
    "class Mine(Callback): ...\nmodel.fit(\n    x, callbacks=[Mine(), Log()]\n)\n"
)
# A change that no edit of one place makes, and the line that it is about.
SHOWN = {
    "without Mine": "class Mine(Callback): ...",
    "without Log": "    x, callbacks=[Mine(), Log()]",
    "without validation": "model.fit(",
    "without progress bar": "model.fit(",
}


@pytest.mark.parametrize(("change", "line"), SHOWN.items(), ids=SHOWN)
def test_where_nothing_is_certain_to_type_the_line_is_shown(tmp_path, change, line):
    path = written(tmp_path, WATCHED)
    seen = {"callbacks": ["Mine", "Log"], "validation": True}
    (one,) = locate(found(change, **seen), maker(str(path))).causes
    assert [(edit.old, edit.new) for edit in one.edits] == [(line, None)]


def test_a_notebook_has_no_patch_and_says_where_its_lines_are(tmp_path):
    cells = [{"cell_type": "code", "source": [HEAD + SGD]}]
    path = written(tmp_path, json.dumps({"cells": cells}), "train.ipynb")
    made = patch(found("XLA"), maker(str(path)), tmp_path)
    assert made.text == b""
    assert "The report says which lines" in made.says[0]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ((HEAD + SGD).replace("\n", "\r\n").encode(), "my train.py"),
        # Neither of these ends a line of Python.
        (f"x = 1\n\x0c\ny = 'a\u2028b'\n{HEAD}{SGD}".encode(), "train.py"),
        ((HEAD + SGD).rstrip().encode(), "train.py"),
        (("\ufeff" + HEAD + "# é\n" + SGD).encode(), "sub/train.py"),
        (("# coding: latin-1\n" + HEAD + "# é\n" + SGD).encode("latin-1"), "train.py"),
    ],
    ids=["Windows", "odd lines", "no last end of line", "a mark of UTF-8", "Latin"],
)
def test_a_patch_applies_whatever_the_file_is_like(tmp_path, data, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    applied(patch(found("XLA"), maker(str(path)), tmp_path).text, tmp_path)
    assert path.read_bytes() == data.replace(b"('sgd')", b"('sgd', jit_compile=True)")
