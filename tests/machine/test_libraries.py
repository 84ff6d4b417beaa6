"""Libraries that do nothing, and a TensorFlow whose loader is asked for them."""

import platform
import subprocess
import sys

import pytest

from perfkit.machine import software
from tests.machine.checks.computers import NEEDED
from tests.machine.trees import CPU, grow, package, tensorflow

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="TensorFlow's loader is asked on Linux with x86-64 only",
)

# As TensorFlow's own: its status is written where the first argument points.
LOADER = """
#include <dlfcn.h>
void _ZN3tsl8internal18LoadDynamicLibraryEPKcPPv(
    long *status, const char *name, void **handle) {
  *handle = dlopen(name, RTLD_LAZY);
  *status = *handle ? 1 : 0;
}
"""


def compiled(path, source="int x;", *flags):
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", str(path)]
    subprocess.run([*command, *flags], input=source, text=True, check=True)
    return path


@pytest.fixture(scope="module")
def loader(tmp_path_factory):
    """A TensorFlow that looks for libraries in two of NVIDIA's packages."""
    ways = "$ORIGIN/../nvidia/cuda_runtime/lib:$ORIGIN/../nvidia/cublas/lib"
    path = tmp_path_factory.mktemp("loader") / "libtensorflow_framework.so.2"
    return compiled(path, LOADER, f"-Wl,-rpath,{ways},--enable-new-dtags")


@pytest.fixture
def site(tmp_path, loader):
    """A folder of packages with that TensorFlow."""
    folder = grow(tmp_path / "site", tensorflow())
    (folder / "tensorflow" / loader.name).write_bytes(loader.read_bytes())
    return folder


def tried(folder, variables=None, names=()):
    built = software.tensorflow([str(folder)])
    found = software.tried(built, variables or {}, names)()
    return {library.name: library for library in found}


def test_each_library_that_is_missing_is_named_in_the_loaders_words(site):
    found = tried(site)
    assert tuple(found) == NEEDED
    for name, library in found.items():
        assert library.problem.startswith(f"{name}: cannot open shared object file")
        assert (library.origin, library.version) == (None, None)
    # A spoiled library is told without its place.
    grow(site, {"nvidia/cublas/lib/libcublas.so.12": "not a library"})
    found = tried(site, names=("ada",))["libcublas.so.12"]
    assert found.problem
    assert str(site) not in found.problem


def test_a_library_of_a_package_has_its_version(site):
    compiled(site / "nvidia/cuda_runtime/lib/libcudart.so.12")
    compiled(site / "nvidia/cusolver/lib/libcusolver.so.11")
    grow(site, package("nvidia-cuda-runtime-cu12", "12.5.82"))
    grow(site, package("nvidia-cusolver-cu12", "11.6.3.83"))
    found = tried(site)["libcudart.so.12"]
    assert (found.problem, found.origin, found.version) == ("", "package", "12.5.82")
    # One where TensorFlow does not look is told apart.
    found = tried(site)["libcusolver.so.11"]
    assert "where this TensorFlow does not look" in found.problem
    assert (found.origin, found.version) == ("package", "11.6.3.83")


def test_the_search_path_comes_before_the_packages(site, tmp_path):
    compiled(site / "nvidia/cublas/lib/libcublas.so.12")
    real = compiled(tmp_path / "old/libcublas.so.12.1.3.1")
    real.with_name("libcublas.so.12").symlink_to(real)
    found = tried(site, {"LD_LIBRARY_PATH": f"{tmp_path}/none:{real.parent}"})
    assert found["libcublas.so.12"].origin == "search path"
    assert found["libcublas.so.12"].version == "12.1.3.1"
    assert found["libcublas.so.12"].problem == ""


def test_a_library_that_lacks_another_says_which(site):
    lacks = site / "elsewhere/libnvJitLink.so.12"
    compiled(lacks, "int x;", f"-Wl,-soname,{lacks.name}")
    needs = ["-xnone", "-Wl,--no-as-needed", str(lacks), "-Wl,-soname,libcublas.so.12"]
    compiled(site / "nvidia/cublas/lib/libcublas.so.12", "int x;", *needs)
    lacks.unlink()
    assert lacks.name in tried(site)["libcublas.so.12"].problem


@pytest.mark.parametrize(
    "files",
    [
        # A build without CUDA needs none.
        tensorflow(CPU),
        # A loader that cannot be asked says nothing.
        tensorflow(),
        tensorflow() | {"tensorflow/libtensorflow_framework.so.2": "not a library"},
    ],
    ids=["no CUDA", "no loader", "no library"],
)
def test_where_there_is_nothing_to_ask_nothing_is_said(tmp_path, files):
    assert tried(grow(tmp_path, files)) == {}


def test_an_answer_that_takes_too_long_is_not_waited_for(site, monkeypatch):
    hanging = LOADER.replace("*handle = dlopen", "for (;;) pause(); *handle = dlopen")
    source = f"#include <unistd.h>\n{hanging}"
    compiled(site / "tensorflow/libtensorflow_framework.so.2", source)
    monkeypatch.setattr(software, "_PATIENCE_S", 0.2)
    assert tried(site) == {}


@pytest.mark.skipif(
    software.tensorflow(sys.path).build != "cuda",
    reason="needs a TensorFlow that was built with CUDA",
)
def test_the_tensorflow_here_is_asked_itself(tmp_path):
    folder = grow(tmp_path, tensorflow())
    real = software.tensorflow(sys.path).folder / "tensorflow"
    framework = "libtensorflow_framework.so.2"
    (folder / "tensorflow" / framework).symlink_to(real / framework)
    for part, name in [("cufft", "libcufft.so.11"), ("cudnn", "libcudnn.so.9")]:
        compiled(folder / f"nvidia/{part}/lib/{name}")
    found = tried(folder)
    assert tuple(found) == NEEDED
    loaded = [name for name, library in found.items() if not library.problem]
    assert set(loaded) >= {"libcufft.so.11", "libcudnn.so.9"}
