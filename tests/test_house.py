"""The rules of the house: how code is written, and which part may know which."""

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "perfkit"
CODE = ("perfkit", "tests", "notebooks", "benchmarks", "start.py")
OURS = (*CODE, ".ci", "binder", "docs", "locks")
ORDER = (
    *({"units", "errors"}, {"machine"}, {"engine"}, {"findings"}, {"progress"}),
    *({"charts"}, {"questions"}, {"training"}, {"machines", "documents"}),
    *({"panel", "lab"}, {"cli", "options", "__init__", "__main__"}),
)
LEVEL = {part: level for level, parts in enumerate(ORDER) for part in parts}
# Written apart, so that this file does not hold what it looks for.
PLACES = re.compile(
    "|".join(
        (
            # Ada and Bob live in the tests.
            r"(?<![\w.])/(root|work|tmp|(home|Users)/(?!ada|bob)\w+)" + r"/\w",
            r"(pypi\.org|pythonhosted\." + r"org)",
            r"://[^\s\"']+/" + r"simple\b",
        )
    )
)


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "--quiet", *CODE),
        ("ruff", "format", "--check", "--quiet", *CODE),
        ("mypy", "--no-error-summary"),
    ],
    ids=["rules", "format", "types"],
)
def test_the_code_keeps_the_style_and_the_types_are_right(command):
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


def part_of(module):
    """The part of perfkit that a dotted name lies in."""
    words = module.split(".")
    return words[1] if len(words) > 1 else "__init__"


def imports(source):
    """Every module of perfkit that a source imports, wherever in it, for types too."""
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # A module or a name in one. The version of perfkit is for all.
            names = [alias.name for alias in node.names if alias.name != "__version__"]
            for name in names:
                inside = f"{node.module}.{name}"
                yield inside if is_module(inside) else node.module


@functools.lru_cache(maxsize=1)
def nodes(source):
    """All parts of a source."""
    return list(ast.walk(ast.parse(source)))


@functools.cache
def is_module(name):
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


def wrong_imports(imported, part):
    found = (m for m in imported if m.split(".")[0] == "perfkit")
    return {m for m in found if LEVEL[part_of(m)] > LEVEL[part]}


@functools.cache
def files():
    """Each file of the package, and what tests look at in it: all are parsed once."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        where, source = path.relative_to(PACKAGE), path.read_text(encoding="utf-8")
        found.append(
            SimpleNamespace(
                path=path,
                part=where.parts[0].removesuffix(".py"),
                name=".".join(
                    path.relative_to(ROOT).with_suffix("").parts
                ).removesuffix(".__init__"),
                imports={*imports(source)},
                names=[*bound_names(source)],
                multiplied=[*texts_times_a_condition(source)],
            )
        )
    return found


# They say grammar, where the name of a thing would say what it is.
NO_NOUNS = """
one found known told said what given of made asked seen kept left shown tried timed
taken named called held wanted heard noted looked counted written drawn chosen used
meant done which who whose why how other others both each every most least it its them
this that these those here then now so more much few some none whole own same rest
"""


def bound_names(source):
    """The names that a source binds."""
    for node in nodes(source):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_names_are_nouns_of_the_field():
    names = [name for file in files() for name in file.names]
    words = NO_NOUNS.split()
    wrong = Counter(name for name in names if name.strip("_") in words)
    assert wrong.total() < 0.01 * len(names), wrong.most_common(20)


def test_a_name_that_is_no_noun_would_be_seen():
    source = "def told(asked, *, rate):\n    one = [found for found in asked]"
    wrong = [name for name in bound_names(source) if name in NO_NOUNS.split()]
    assert sorted(wrong) == ["asked", "found", "one", "told"]


def texts_times_a_condition(source):
    """What multiplies a text in it, and is neither a sum nor a length."""
    for node in nodes(source):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = [ast.unparse(side) for side in (node.left, node.right)]
            factors = [side for side in sides if side.strip("f")[0] not in "'\""]
            for factor in factors if len(factors) == 1 else ():
                if not re.match(r"(len|max|min)\(|.* [+-] ", factor):
                    yield factor


def test_no_text_is_multiplied_by_a_condition():
    assert {file.path: file.multiplied for file in files() if file.multiplied} == {}
    source = "f', {x}' * bool(x), 's' * (count != 1), '-' * max(0, w), ' ' * (n + 4)"
    assert [*texts_times_a_condition(source)] == ["bool(x)", "count != 1"]


def test_imports_point_one_way_and_every_part_has_its_place():
    assert {file.part for file in files()} <= set(LEVEL)
    wrong = {file.path: wrong_imports(file.imports, file.part) for file in files()}
    assert {path: found for path, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("import perfkit.charts", {"perfkit.charts"}),
        ("from perfkit.charts import chart", {"perfkit.charts"}),
        ("from perfkit import charts", {"perfkit.charts"}),
        ("def f():\n    from perfkit.cli import main", {"perfkit.cli"}),
        ("if TYPE_CHECKING:\n    from perfkit.lab import x", {"perfkit.lab"}),
        ("import perfkit", {"perfkit"}),
        ("from perfkit import Finding", {"perfkit"}),
        ("from perfkit import errors, units", set()),
        ("import numpy\nfrom charts import x", set()),
    ],
)
def test_an_import_against_the_order_is_seen_however_it_is_written(source, wrong):
    assert wrong_imports(imports(source), "engine") == wrong


def circle(modules):
    """The first circle in which modules import those of these names; empty for none."""
    graph = graphlib.TopologicalSorter()
    for name, imported in modules.items():
        for other in modules.keys() & imported - {name}:
            graph.add(name, other)
    try:
        graph.prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_no_modules_import_each_other_in_a_circle():
    assert circle({file.name: file.imports for file in files()}) == []


def test_a_circle_would_be_seen():
    assert circle({"record": {"reports"}, "reports": {"record"}})
    assert circle({"record": {"reports"}, "reports": {"re"}}) == []


def published():
    """Every file that is the project's own, whether git is there or not."""
    files = [path for folder in OURS for path in (ROOT / folder).rglob("*")]
    made = {"__pycache__", ".ipynb_checkpoints", ".git"}  # a file in a worktree
    for path in [*files, *ROOT.glob("*.*")]:
        if path.is_file() and not made & set(path.parts):
            yield path


def test_no_file_names_a_place_on_a_machine_or_a_package_index():
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()[:100]}"
        for path in published()
        if PLACES.search(text := path.read_text(errors="replace"))
        for line in text.splitlines()
        if PLACES.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "/".join(("", "work", "x")),
        "/".join(("", "home", "me", "x")),
        "https://a.b/" + "simple/",
        "py" + "pi.org",
    ],
)
def test_a_place_would_be_seen(line):
    assert PLACES.search(line)
