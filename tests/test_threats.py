"""Nothing that comes from outside is run: which calls could, and why each of them may.

A call is looked for by its name in the code. What is listed here reads a text of the
user's own, or what a process of perfkit's own has sent over a pipe that nobody else
can reach.
"""

import ast
from pathlib import Path

import pytest

from perfkit.training.diagnose.source import dotted

ROOT = Path(__file__).resolve().parents[1]
# What runs or makes objects of what it is given, by the last words of its name.
RUNS = {
    *("eval", "exec", "compile", "__import__", "exec_module"),
    *("runpy.run_path", "runpy.run_module", "os.system", "os.popen", "os.execve"),
    *("loads", "load", "Unpickler", "recv", "read_pickle", "open_memmap"),
    *("load_model", "model_from_json", "load_weights"),
    *("fromstring", "iterparse", "XML", "parseString"),
}
# Whose load and loads read data and nothing else; perfkit's own by the names that they
# are imported by.
# NumPy reads no objects unless it is told to.
DATA = {"json", "tomllib", "np", "", "load", "store"}
SCRIPT = "the user's own script"
OWN_PIPE = "a pipe to a process of its own, which it started itself"
DRAWN = "a drawing that Matplotlib has just made here"
ALLOWED = {
    ("perfkit/training/diagnose/script.py", "compile"): SCRIPT,
    ("perfkit/training/diagnose/script.py", "exec"): SCRIPT,
    ("perfkit/training/diagnose/maker.py", "spec.loader.exec_module"): SCRIPT,
    ("perfkit/lab/__init__.py", "os.execve"): "this Python, which becomes JupyterLab",
    ("start.py", "os.execve"): "the Python that it has just set up",
    ("perfkit/engine/worker.py", "cloudpickle.loads"): OWN_PIPE,
    ("perfkit/engine/launcher.py", "self._messages.recv"): OWN_PIPE,
    ("perfkit/engine/host.py", "self._connection.recv"): OWN_PIPE,
    ("perfkit/engine/host.py", "asking.recv"): OWN_PIPE,
    ("perfkit/charts/canvas.py", "ElementTree.fromstring"): DRAWN,
}


def risky(source):
    """Names of the calls in a source that may run what they are given."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func) or getattr(node.func, "attr", "")
        module, _, last = name.rpartition(".")
        if {"shell", "allow_pickle"} & {keyword.arg for keyword in node.keywords}:
            yield name
        elif last in ("load", "loads"):
            yield from () if module in DATA else (name,)
        elif last == "compile":
            # That of a pattern or of a model is another.
            yield from () if module else (name,)
        elif last in RUNS or name in RUNS:
            yield name


def test_no_call_runs_what_comes_from_outside():
    paths = [*(ROOT / "perfkit").rglob("*.py"), ROOT / "start.py"]
    assert set(ALLOWED) == {
        (path.relative_to(ROOT).as_posix(), name)
        for path in paths
        for name in risky(path.read_text(encoding="utf-8"))
    }


SEEN = """
eval(text)
pickle.loads(data)
pickle.load(file)
np.load(path, allow_pickle=True)
subprocess.run(line, shell=True)
os.system(line)
keras.models.load_model(path)
connection.recv()
__import__(name)
"""
LEFT_ALONE = "json.loads(text)", "re.compile(text)", "model.compile()", "store.load(p)"


@pytest.mark.parametrize("line", [*SEEN.split("\n")[1:-1], *LEFT_ALONE])
def test_a_call_that_may_run_something_is_seen_and_one_that_reads_data_is_not(line):
    assert bool(list(risky(line))) == (line not in LEFT_ALONE)
