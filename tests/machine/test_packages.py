import importlib.metadata
import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

from perfkit.machine import software
from tests.machine.checks.computers import HELD
from tests.machine.trees import CPU, CUDA, grow, package, tensorflow

OTHER = tensorflow(CPU, "2.20.0", "tensorflow-cpu")
ROCM = CUDA | {"is_cuda_build": False, "is_rocm_build": True}
BUILD = "tensorflow/python/platform/build_info.py"
MADE = "build_info = collections.OrderedDict"


@pytest.mark.parametrize(
    ("mine", "theirs", "told"),
    [
        # A build for GPUs says what it was made with.
        (tensorflow(), {}, {"build": "cuda", "cuda": "12.5.1", "cudnn": "9",
         "capabilities": HELD, "packages": ("tensorflow",)}),
        # Others are told apart; without TensorFlow there is none.
        *[(tensorflow(made) | more, {}, {"build": build}) for made, more, build in (
            (CPU, {}, "cpu"), (CPU, package("tensorflow-metal", "1.2.0"), "metal"),
            (ROCM, {}, "rocm"), ({}, {}, "unknown"),
            ({"is_cuda_build": "yes"}, {}, "unknown"))],
        (package("keras", "3.15.1"), {}, {"build": "none", "packages": (),
         "folder": None}),
        # A build that cannot be read is unknown.
        *[(tensorflow() | {BUILD: source}, {}, {"build": "unknown", "cuda": None,
           "capabilities": None}) for source in (
            "", f"{MADE}([('is_cuda_build', True)", f"{MADE}([1, 2])",
            f"{MADE}([__import__('os').abort()])",
            f"{MADE}([{'(' * 5000}{')' * 5000}])",
            "OrderedDict([('cuda_version', ['12']), "
            "('cuda_compute_capabilities', 5)])")],
        # A file of its name hides TensorFlow, as one in an earlier folder does.
        ({"tensorflow.py": ""}, tensorflow(), {"build": "unknown"}),
        (tensorflow(), OTHER, {"build": "cuda", "packages": ("tensorflow",)}),
        # Two distributions in one folder are both told.
        (tensorflow() | OTHER, {}, {"packages": ("tensorflow", "tensorflow-cpu")}),
        # One that only asks for another is not counted.
        (tensorflow(name="tensorflow-intel") | tensorflow(brings=False), {},
         {"packages": ("tensorflow-intel",)}),
    ],
)  # fmt: skip
def test_the_first_tensorflow_says_how_it_was_built(tmp_path, mine, theirs, told):
    folders = grow(tmp_path / "a", mine), grow(tmp_path / "b", theirs)
    found = software.tensorflow([*map(str, folders)])
    told = {"folder": folders[0]} | told
    assert {name: getattr(found, name) for name in told} == told


CUDNN = "nvidia-cudnn-cu12"
PUBLIC = "tensorflow/include/tensorflow/core/public"
HEADER = """
#define TF_MAJOR_VERSION 2
#define TF_MINOR_VERSION 18
#define TF_PATCH_VERSION 1
"""


OWN = tensorflow(name="a-containers-own")
NIGHTLY = tensorflow(CPU, "2.20.0.dev1", "tf-nightly-cpu")


@pytest.mark.parametrize(
    ("mine", "theirs", "versions"),
    [
        # They are those that Python finds first, of what matters.
        (package(CUDNN, "9.3.0.75"), package(CUDNN, "8.9") | tensorflow()
         | package("secret-project", "1"),
         {CUDNN: "9.3.0.75", "tensorflow": "2.21.0"}),
        # A TensorFlow that nothing known brought says its version itself.
        *[(OWN | {f"{PUBLIC}/{name}": HEADER}, {}, {"tensorflow": "2.18.1"})
          for name in ("release_version.h", "version.h")],
        # Whichever distribution brings the module, it is TensorFlow.
        (NIGHTLY, {}, dict.fromkeys(("tensorflow", "tf-nightly-cpu"), "2.20.0.dev1")),
    ],
)  # fmt: skip
def test_versions_are_those_that_python_finds_first(tmp_path, mine, theirs, versions):
    folders = grow(tmp_path / "a", mine), tmp_path / "gone", tmp_path / "b"
    grow(folders[-1], theirs)
    found = software.versions([*map(str, folders)])
    assert found == {"keras": "3.15.1"} | versions


def test_the_versions_here_are_those_that_are_installed():
    found = software.versions(sys.path)
    assert {"numpy", "keras", "perfkit"} <= set(found)
    assert found == {name: importlib.metadata.version(name) for name in found}
    # The tensorflow here is read without being imported.
    place = importlib.util.find_spec("tensorflow").origin
    told = runpy.run_path(Path(place).parent / "python/platform/build_info.py")
    found = software.tensorflow(sys.path)
    assert found.folder == Path(place).parents[1]
    assert (found.build == "cuda") == told["build_info"]["is_cuda_build"]
    assert found.cuda == told["build_info"].get("cuda_version")
    assert "tensorflow" in " ".join(found.packages)


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        ("keras/src/version.py", '__version__ = "3.11.3"\n', "3.11.3"),
        ("keras/__init__.py", 'import x\n__version__ = "2.15.0"\n', "2.15.0"),
        ("keras/__init__.py", "raise RuntimeError('imported')\n", ""),
    ],
)
def test_keras_says_its_version_without_being_imported(tmp_path, file, text, version):
    assert software.keras_version([str(grow(tmp_path, {file: text}))]) == version
