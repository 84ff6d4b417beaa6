"""What is the user's code, and what the frames of libraries do."""

import importlib
import json.decoder
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import perfkit
from perfkit.training.account.places import Kind, Places, outwards, place_of


def touched(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return str(path)


def named(source, file, **known):
    """What a source defines, as if it lay in a file."""
    exec(compile(source, file, "exec"), known)
    return known


FILES = {
    "train.py": True,
    "helpers/layers.py": True,
    # An editable install lies wherever it was checked out.
    "elsewhere/src/mine/data.py": True,
    "lib/site-packages/keras/x.py": False,
    "lib/dist-packages/y.py": False,
    "__autograph_generated_fileab12.py": False,
}
NO_FILES = {
    "<ipython-input-3-0123abcd>": True,
    os.path.join(os.sep, "scratch", "ipykernel_4711", "123.py"): True,
    **dict.fromkeys((os.__file__, json.decoder.__file__, np.__file__), False),
    perfkit.__file__: False,
    "<frozen importlib._bootstrap>": False,
    "<string>": False,
}


def test_a_script_and_its_helpers_are_the_users_own_and_no_library_is(tmp_path):
    files = {touched(tmp_path / name): own for name, own in FILES.items()} | NO_FILES
    places = Places()
    assert {file: places.is_own(file) for file in files} == files


def test_an_environment_inside_of_a_project_is_not_the_projects(tmp_path, monkeypatch):
    environment = tmp_path / "project" / ".venv"
    monkeypatch.setattr(sys, "prefix", str(environment))
    own = Places().is_own
    assert own(touched(tmp_path / "project" / "train.py"))
    assert not own(touched(environment / "lib" / "python3.11" / "sitecustomize.py"))
    # A script may lie beside the environment's folders.
    assert own(touched(environment / "train.py"))


def test_a_project_that_is_linked_into_packages_is_told_by_where_it_lies(tmp_path):
    real = touched(tmp_path / "checkout" / "mine" / "model.py")
    link = tmp_path / "lib" / "site-packages" / "mine"
    link.parent.mkdir(parents=True)
    link.symlink_to(Path(real).parent)
    assert Places().is_own(str(link / "model.py"))


def test_packages_installed_into_a_folder_of_the_path_are_not_the_users(
    tmp_path, monkeypatch
):
    target, project = tmp_path / "target", tmp_path / "project"
    for folder in (target, project):
        (folder / "keras-3.0.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(project), *sys.path, str(target)])
    own = Places().is_own
    assert not own(touched(target / "keras" / "layers.py"))
    assert own(touched(project / "train.py"))


LIBRARY = os.path.join(os.sep, "x", "site-packages", "tensorflow", "python")


@pytest.mark.parametrize(
    ("file", "name", "role"),
    [
        ("framework/func_graph.py", "func_graph_from_py_func", Kind.TRACED),
        ("framework/func_graph.py", "wrapper", Kind.OTHER),
        ("eager/polymorphic_function/concrete_function.py", "__init__", Kind.TRACED),
        ("eager/polymorphic_function/atomic_function.py", "f", Kind.OTHER),
        (
            "eager/polymorphic_function/atomic_function.py",
            "call_flat",
            Kind.GRAPH,
        ),
        ("data/ops/iterator_ops.py", "_next_internal", Kind.DATA),
        ("framework/ops.py", "numpy", Kind.GRAPH),
        ("framework/ops.py", "shape", Kind.OTHER),
        ("ops/gen_math_ops.py", "mat_mul", Kind.COMPUTING),
        ("ops/gen_dataset_ops.py", "map_dataset", Kind.SET_UP),
        ("ops/gen_optional_ops.py", "optional_has_value", Kind.GRAPH),
        ("ops/math_ops.py", "matmul", Kind.OTHER),
    ],
)
def test_a_frame_of_tensorflow_says_what_it_does(file, name, role):
    known = named(f"def {name}(): pass", os.path.join(LIBRARY, *file.split("/")))
    assert Places().role(known[name].__code__) == role


def test_imports_are_told_by_pythons_own_frames():
    code = importlib._bootstrap._find_and_load.__code__
    assert Places().role(code) == Kind.IMPORT


def test_the_innermost_line_of_the_users_is_the_place(tmp_path):
    mine, library = str(tmp_path / "train.py"), os.path.join(LIBRARY, "x.py")
    inner = named("import sys\ndef look():\n    return sys._getframe()", library)
    helper = named("def ask(f):\n    return f()", mine, f=None)
    outer = named("\n\n\ndef run(g, f):\n    return g(f)", mine)
    frame = outer["run"](helper["ask"], inner["look"])
    assert Places().place(frame) == (mine, 2)
    assert Places().place(None) is None
    names = [one.f_code.co_name for one in outwards(frame)]
    assert names[:3] == ["look", "ask", "run"]


def test_what_makes_an_object_is_not_its_own_init(tmp_path):
    mine = str(tmp_path / "model.py")
    known = named(
        "import sys\n"
        "class Base:\n"
        "    def __init__(self):\n"
        "        self.frame = sys._getframe()\n"
        "class Block(Base):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.inner = Base()\n"
        "def build():\n"
        "    return Block()\n",
        mine,
    )
    block = known["build"]()
    at = Places()
    assert at.place(block.frame, block) == (mine, 10)
    assert at.place(block.frame) == (mine, 4)
    # Who makes a part of itself in its init is the one that made the part.
    assert at.place(block.inner.frame, block.inner)[1] in (8, 10)
    assert isinstance(block.frame, types.FrameType)


@pytest.mark.parametrize(("line", "told"), [(7, 7), (None, 3)])
def test_a_frame_between_two_lines_is_at_its_first(line, told):
    code = types.SimpleNamespace(co_filename="train.py", co_firstlineno=3)
    frame = types.SimpleNamespace(f_lineno=line, f_code=code)
    assert place_of(frame) == ("train.py", told)
