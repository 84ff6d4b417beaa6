import importlib.metadata
import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

from perfkit.machine import software
from tests.machine.trees import CPU, CUDA, grow, package, tensorflow


def built(folder, files):
    return software.tensorflow([str(grow(folder, files))])


def test_a_build_for_gpus_says_what_it_was_made_with(tmp_path):
    found = built(tmp_path, tensorflow())
    assert (found.build, found.cuda, found.cudnn) == ("cuda", "12.5.1", "9")
    assert found.capabilities == ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90")
    assert found.packages == ("tensorflow",)


@pytest.mark.parametrize(
    ("told", "more", "build"),
    [
        (CPU, {}, "cpu"),
        (CPU, package("tensorflow-metal", "1.2.0"), "metal"),
        (CUDA | {"is_cuda_build": False, "is_rocm_build": True}, {}, "rocm"),
        ({}, {}, "unknown"),
        ({"is_cuda_build": "yes"}, {}, "unknown"),
    ],
)
def test_other_builds_are_told_apart(tmp_path, told, more, build):
    assert built(tmp_path, tensorflow(told) | more).build == build


def test_without_tensorflow_there_is_no_build(tmp_path):
    found = built(tmp_path, package("keras", "3.15.1"))
    assert (found.build, found.packages, found.folder) == ("none", (), None)


def test_a_file_of_its_name_hides_tensorflow(tmp_path):
    mine, theirs = grow(tmp_path / "a", {"tensorflow.py": ""}), tmp_path / "b"
    grow(theirs, tensorflow())
    found = software.tensorflow([str(mine), str(theirs)])
    assert (found.build, found.folder) == ("unknown", mine)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "build_info = collections.OrderedDict([('is_cuda_build', True)",
        "build_info = collections.OrderedDict([__import__('os').abort()])",
        "build_info = collections.OrderedDict([" + "(" * 5000 + ")" * 5000 + "])",
        "build_info = collections.OrderedDict([1, 2])",
        "OrderedDict([('cuda_version', ['12']), ('cuda_compute_capabilities', 5)])",
    ],
)
def test_a_build_that_cannot_be_read_is_unknown(tmp_path, source):
    files = tensorflow() | {"tensorflow/python/platform/build_info.py": source}
    found = built(tmp_path, files)
    assert found.build == "unknown"
    assert (found.cuda, found.capabilities) == (None, None)


def test_two_distributions_in_one_folder_are_both_told(tmp_path):
    files = tensorflow() | tensorflow(CPU, "2.20.0", "tensorflow-cpu")
    assert built(tmp_path, files).packages == ("tensorflow", "tensorflow-cpu")


def test_one_that_only_asks_for_another_is_not_counted(tmp_path):
    files = tensorflow(name="tensorflow-intel") | tensorflow(brings=False)
    assert built(tmp_path, files).packages == ("tensorflow-intel",)


def test_one_in_another_folder_is_hidden_and_does_no_harm(tmp_path):
    mine = grow(tmp_path / "a", tensorflow())
    theirs = grow(tmp_path / "b", tensorflow(CPU, "2.15.0", "tensorflow-cpu"))
    found = software.tensorflow([str(mine), str(theirs)])
    assert (found.build, found.packages) == ("cuda", ("tensorflow",))


def test_versions_are_those_that_python_finds_first(tmp_path):
    mine = grow(tmp_path / "a", package("nvidia-cudnn-cu12", "9.3.0.75"))
    theirs = grow(tmp_path / "b", package("nvidia-cudnn-cu12", "8.9") | tensorflow())
    grow(theirs, package("secret-project", "1"))
    assert software.versions([str(mine), str(tmp_path / "gone"), str(theirs)]) == {
        "keras": "3.15.1",
        "nvidia-cudnn-cu12": "9.3.0.75",
        "tensorflow": "2.21.0",
    }


def test_the_versions_here_are_those_that_are_installed():
    found = software.versions(sys.path)
    assert {"numpy", "keras", "perfkit"} <= set(found)
    assert found == {name: importlib.metadata.version(name) for name in found}


def test_the_tensorflow_here_is_read_without_being_imported():
    place = importlib.util.find_spec("tensorflow").origin
    told = runpy.run_path(Path(place).parent / "python/platform/build_info.py")
    found = software.tensorflow(sys.path)
    assert found.folder == Path(place).parents[1]
    assert (found.build == "cuda") == told["build_info"]["is_cuda_build"]
    assert found.cuda == told["build_info"].get("cuda_version")
    assert "tensorflow" in " ".join(found.packages)


PUBLIC = "tensorflow/include/tensorflow/core/public"
HEADER = """
#define TF_MAJOR_VERSION 2
#define TF_MINOR_VERSION 18
#define TF_PATCH_VERSION 1
"""


@pytest.mark.parametrize("name", ["release_version.h", "version.h"])
def test_a_tensorflow_that_nothing_known_brought_says_its_version_itself(
    tmp_path, name
):
    files = tensorflow(name="a-containers-own") | {f"{PUBLIC}/{name}": HEADER}
    found = software.versions([str(grow(tmp_path, files))])
    assert found == {"keras": "3.15.1", "tensorflow": "2.18.1"}


def test_whichever_distribution_brings_the_module_it_is_tensorflow(tmp_path):
    files = tensorflow(CPU, "2.20.0.dev1", "tf-nightly-cpu")
    found = software.versions([str(grow(tmp_path, files))])
    assert found["tensorflow"] == found["tf-nightly-cpu"] == "2.20.0.dev1"


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
