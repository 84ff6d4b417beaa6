"""One environment, however it is made: start.py, conda, Binder or pip."""

import ast
import functools
import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import start

ROOT = Path(start.__file__).parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
GROUPS = PYPROJECT["dependency-groups"]
LOCKS = ("cpu", "gpu", "slim", "test", "uv")
# Imported by name, and always there with the declared package that they belong to.
COMES_WITH = {
    "jupyter_server": "jupyterlab",
    "IPython": "ipykernel",
    "jupyter_client": "ipykernel",
    "traitlets": "ipykernel",
    "keras": "tensorflow",
    "dask": "distributed",
}


def entries(lock):
    """Each package of a lock, by name: its version and its hashes."""
    packages = re.findall(
        r"^([\w.-]+)==([^\s;]+)((?:[^\n]*\\\n)*[^\n]*)", text(lock), re.MULTILINE
    )
    return {
        name: (version, frozenset(re.findall(r"sha256:[0-9a-f]{64}", rest)))
        for name, version, rest in packages
    }


def versions(lock):
    return {name: version for name, (version, _) in entries(lock).items()}


def text(lock):
    return (ROOT / "locks" / f"{lock}.txt").read_text()


def requirements(lines):
    return [Requirement(line) for line in lines]


def named(requirement):
    return canonicalize_name(requirement.name)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_of_a_lock_has_hashes_and_no_place_to_download_from(lock):
    assert entries(lock)
    assert all(hashes for _, hashes in entries(lock).values())
    lines = (line for line in text(lock).splitlines() if line.lstrip()[:1] != "#")
    sound = r"[a-z0-9._-]+==\S+( ; .+?)?( \\)?|    --hash=sha256:\w+( \\)?"
    assert [line for line in lines if not re.fullmatch(sound, line)] == []


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        *((lock, PROJECT["dependencies"] + GROUPS["build"])
          for lock in ("cpu", "gpu", "slim")),
        *(("cpu", EXTRAS[extra]) for extra in ("lab", "tables", "tensorflow")),
        *(("gpu", EXTRAS[extra]) for extra in ("lab", "tables", "gpu")),
        *(("slim", EXTRAS[extra]) for extra in ("lab", "tables")),
        ("slim", GROUPS["slim"]),
        ("test", GROUPS["test"]),
    ],
)  # fmt: skip
def test_a_lock_holds_every_direct_dependency_as_the_project_wants_it(lock, wanted):
    have = versions(lock)
    for one in requirements(wanted):
        assert have[named(one)] in one.specifier, one


def test_the_gpu_lock_is_the_cpu_lock_and_nvidias_libraries():
    cpu, gpu = entries("cpu"), entries("gpu")
    assert cpu.items() <= gpu.items()
    more = set(gpu) - set(cpu)
    assert {"nvidia-cudnn-cu12", "nvidia-cublas-cu12"} <= more
    assert all(name.startswith("nvidia-") for name in more)
    # The slim lock is the cpu lock with another tensorflow.
    cpu, slim, tests = versions("cpu"), versions("slim"), entries("test")
    assert slim.pop("tensorflow-cpu") == cpu["tensorflow"]
    assert slim == cpu
    # The tests need no other version than the lab.
    shared = gpu.keys() & tests.keys()
    assert shared
    assert all(gpu[name] == tests[name] for name in shared)
    # An extra of our own is tested.
    assert {*EXTRAS["fleet"], *EXTRAS["profile"]} <= set(GROUPS["test"])


def test_whatever_makes_the_environment_takes_the_pythons_that_are_allowed():
    allowed = SpecifierSet(PROJECT["requires-python"])
    taken = [(3, minor) for minor in range(8, 20) if f"3.{minor}.1" in allowed]
    assert (taken[0], taken[-1]) == (start.OLDEST, start.NEWEST)
    ((version, _),) = entries("uv").values()
    assert tuple(map(int, version.split(".")[:2])) >= start.OLDEST_UV


def imported(folder):
    """The first word of every module that the files of a folder import."""
    names = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add((node.module or "").partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"perfkit"}


def declared(*lists):
    return {named(one) for lines in lists for one in requirements(lines)}


# It reads what every installed package says of itself.
owners_of = functools.cache(importlib.metadata.packages_distributions)


def distributions(module):
    """What may provide a module; a package that it comes with first."""
    owners = (COMES_WITH.get(module), *owners_of().get(module, ()))
    return {canonicalize_name(name) for name in owners if name}


def test_perfkit_declares_what_it_imports_and_only_what_it_needs():
    have = declared(PROJECT["dependencies"], *EXTRAS.values())
    found = {module: distributions(module) for module in imported("perfkit")}
    assert {module for module, owners in found.items() if not owners & have} == set()
    run = {"jupyterlab", "ipykernel", "seaborn"}  # run, or for notebooks' own charts
    assert have.difference(run, *found.values()) == set()
    # Who has a tensorflow keeps it and what lies beside it.
    needed = declared(PROJECT["dependencies"])
    # pandas takes a newer NumPy than the oldest TensorFlow allows, and pip follows.
    assert not needed & {"tensorflow", "keras", "jupyterlab", "pandas", "protobuf"}
    bounded = (s for r in requirements(PROJECT["dependencies"]) for s in r.specifier)
    assert {bound.operator for bound in bounded} == {">="}


def test_the_wheel_holds_the_package_and_what_the_project_declares(tmp_path):
    # What `pip install .` builds and installs, built with what is here.
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("perfkit-*.whl"))) as wheel:
        texts = {name: wheel.read(name) for name in wheel.namelist()}
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "perfkit").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    # The training of the course, which the ladder begins from.
    files.add("perfkit/training/race/photos.py")
    about = {name.partition(".dist-info/")[2]: text for name, text in texts.items()}
    assert {name for name in texts if ".dist-info/" not in name} == files
    assert b"perfkit = perfkit.cli:main" in about["entry_points.txt"]
    lines = re.findall(r"^Requires-Dist: (.+)$", about["METADATA"].decode(), re.M)
    found = requirements(lines)
    plain = {str(r) for r in found if r.marker is None}
    assert plain == {str(Requirement(d)) for d in PROJECT["dependencies"]}
    extras = {(named(r), *r.extras, str(r.marker)) for r in found if r.marker}
    assert extras == {
        (named(r), *r.extras, f'extra == "{extra}"')
        for extra, lines in EXTRAS.items()
        for r in requirements(lines)
    }
