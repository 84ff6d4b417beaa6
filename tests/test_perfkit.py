import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import perfkit
from perfkit import _verbs

ROOT = Path(__file__).parent.parent
HEAVY = ("tensorflow", "keras", "numpy", "pandas", "scipy", "matplotlib")


def modules_after(statement):
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def test_importing_perfkit_loads_no_numerical_library():
    assert not modules_after("import perfkit").intersection(HEAVY)


def test_listing_experiments_loads_no_tensorflow():
    loaded = modules_after("import perfkit; perfkit.experiments()")
    assert not loaded.intersection(("tensorflow", "keras", "matplotlib", "pandas"))


def test_the_module_docstring_teaches_in_at_most_fifteen_lines():
    lines = perfkit.__doc__.strip().splitlines()
    assert 10 <= len(lines) <= 15
    shown = [line for line in lines if "perfkit." in line]
    assert all(
        getattr(perfkit, name, None)
        for name in ("experiments", "run", "chart", "findings", "load", "machine")
        if any(f"perfkit.{name}(" in line for line in shown)
    )


def test_the_public_names_fit_on_one_screen():
    assert 15 <= len(perfkit.__all__) <= 35
    assert set(perfkit.__all__) <= set(dir(perfkit))


def test_every_public_name_can_be_imported():
    for name in perfkit.__all__:
        assert getattr(perfkit, name) is not None


def test_every_public_name_has_a_docstring():
    documented = [n for n in perfkit.__all__ if n != "READY"]
    assert [n for n in documented if not getattr(perfkit, n).__doc__] == []


def test_type_checkers_and_the_interpreter_find_each_name_in_the_same_module():
    tree = ast.parse(Path(perfkit.__file__).read_text())
    block = next(n for n in tree.body if isinstance(n, ast.If))
    typed = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module.startswith("perfkit")
        for alias in node.names
    }
    lazy = {name: f"perfkit.{home}" for name, home in perfkit._HOME.items()}
    assert typed == lazy
    assert sorted(lazy) == sorted(perfkit.__all__)


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="benchmark"):
        perfkit.benchmark  # noqa: B018


def test_a_package_with_the_name_of_a_verb_stays_a_verb_after_its_parts_are_imported():
    code = (
        "import perfkit, perfkit.experiments.base, perfkit.findings.record;"
        "assert isinstance(perfkit.experiments(), dict);"
        "assert perfkit.findings.record.Finding is perfkit.Finding"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_verb_travels_to_another_process():
    import cloudpickle

    assert isinstance(perfkit.findings, _verbs.Verb)
    assert cloudpickle.loads(cloudpickle.dumps(perfkit.findings)) is perfkit.findings


def test_a_verb_shows_its_parameters():
    import inspect

    from perfkit.machine.collect import machine

    assert inspect.signature(perfkit.machine) == inspect.signature(machine)


def test_the_version_is_the_one_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert perfkit.__version__ == project["version"]


def test_the_changelog_begins_with_this_version():
    headings = [
        line
        for line in (ROOT / "CHANGELOG.md").read_text().splitlines()
        if line.startswith("## ")
    ]
    assert headings[0].split()[1] == perfkit.__version__


@pytest.mark.parametrize(
    ("call", "module", "extra"),
    [
        ("perfkit.panel('data-pipeline')", "anywidget", "lab"),
        ("perfkit.findings()", "pandas", "tables"),
        ("perfkit.export('notebooks/00_start_here.ipynb')", "nbconvert", "lab"),
        ("open_lab(perfkit.lab.launch.Path())", "jupyterlab", "lab"),
    ],
)
def test_what_needs_an_extra_says_which_in_one_sentence(call, module, extra):
    code = (
        f"import sys; sys.modules[{module!r}] = None; import importlib.util as u; "
        f"find = u.find_spec; "
        f"u.find_spec = lambda name: None if name == {module!r} else find(name); "
        "import perfkit.lab.launch; from perfkit.lab import open_lab\n"
        f"try: {call}\n"
        "except perfkit.PerfkitError as error: print(error)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    sentence = f'`pip install "perfkit[{extra}]"` brings it.\n'
    assert done.stdout.endswith(sentence), done.stderr
    assert f"needs {module}, which is not installed" in done.stdout
