import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import perfkit

ROOT = Path(__file__).parent.parent
HEAVY = ("tensorflow", "keras", "numpy", "pandas", "scipy", "matplotlib")


def python(code, **how):
    """Run lines in a Python of their own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, **how)


@pytest.mark.parametrize(
    ("statement", "unloaded"),
    [
        ("import perfkit", HEAVY),
        ("perfkit.experiments()", ("tensorflow", "keras", "matplotlib", "pandas")),
        ("perfkit.machine()", ("tensorflow", "keras", "numpy", "pandas")),
        ("perfkit.doctor()", ("tensorflow", "keras")),
        ("list(perfkit.steps([1]))", ("tensorflow", "keras", "numpy")),
        ("import perfkit.machine.starting", ("tensorflow", "numpy")),
        ("from perfkit.questions.shared import models; "
         "from perfkit.questions.shared import keras, tf",
         ("tensorflow", "keras")),
        ("import perfkit.cli, perfkit.machines.fleet, perfkit.panel.panel",
         ("distributed", "dask")),
    ],
)  # fmt: skip
def test_nothing_is_loaded_before_it_is_needed(statement, unloaded):
    code = f"import sys, perfkit; {statement}; print('\\n'.join(sys.modules))"
    assert not {*python(code, check=True).stdout.split()}.intersection(unloaded)


def test_the_public_names_fit_on_one_screen_and_each_has_a_docstring():
    assert 15 <= len(perfkit.__all__) <= 36
    assert set(perfkit.__all__) <= set(dir(perfkit))
    found = {name: getattr(perfkit, name) for name in perfkit.__all__}
    assert None not in found.values()
    assert [n for n, one in found.items() if n != "READY" and not one.__doc__] == []
    # An unknown name is an attribute error that names it.
    with pytest.raises(AttributeError, match="benchmark"):
        perfkit.benchmark  # noqa: B018


def test_type_checkers_and_the_interpreter_find_each_name_in_the_same_module():
    tree = ast.parse(Path(perfkit.__file__).read_text())
    block = next(n for n in tree.body if isinstance(n, ast.If))
    typed = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module.startswith("perfkit")
        for alias in node.names
    }
    assert typed == {name: f"perfkit.{home}" for name, home in perfkit._HOME.items()}


def test_the_version_is_that_of_the_project_and_the_changelog_begins_with_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert perfkit.__version__ == project["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    headings = [line for line in changelog.splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == perfkit.__version__


@pytest.mark.parametrize(
    ("call", "module", "extra"),
    [
        ("perfkit.run('data-pipeline')", "tensorflow", "tensorflow"),
        ("perfkit.panel('data-pipeline')", "anywidget", "lab"),
        ("perfkit.pipeline_simulator()", "anywidget", "lab"),
        ("perfkit.findings()", "pandas", "tables"),
        ("perfkit.export('notebooks/00_start_here.ipynb')", "nbconvert", "lab"),
        ("open_lab(perfkit.lab.Path())", "jupyterlab", "lab"),
    ],
)
def test_what_needs_an_extra_says_which_in_one_sentence(call, module, extra):
    code = (
        f"import sys; sys.modules[{module!r}] = None; import importlib.util as u; "
        f"find = u.find_spec; "
        f"u.find_spec = lambda name: None if name == {module!r} else find(name); "
        "import perfkit.lab; from perfkit.lab import open_lab\n"
        f"try: {call}\n"
        "except perfkit.PerfkitError as error: print(error)"
    )
    done = python(code)
    sentence = f'`pip install ".[{extra}]"` in the folder of perfkit.\n'
    assert done.stdout.endswith(sentence), done.stderr
    assert f"pip install {module}` installs it" in done.stdout
    assert f"needs {module}, which is not installed" in done.stdout
