import pytest

from perfkit.machine.record import Library
from perfkit.machine.starting.log import loaded
from tests.machine.trees import grow, package

SITE = "/venv/lib/python3.12/site-packages"


def one(path, **variables):
    (library,) = loaded([path], variables)
    return library


def test_a_library_of_a_package_has_the_version_of_the_package(tmp_path):
    site = tmp_path / "site-packages"
    grow(site, package("nvidia-cuda-runtime-cu12", "12.9.79"))
    path = f"{site}/nvidia/cuda_runtime/lib/libcudart.so.12"
    known = Library(name="libcudart.so.12", version="12.9.79", origin="package")
    assert one(path) == known
    # One that no package owns up to has no version, and none is made up.
    assert one(f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9").version is None


def test_a_library_of_the_system_has_the_version_in_its_name():
    found = one("/usr/lib/x86_64-linux-gnu/libcublas.so.12.5.3.2")
    assert (found.name, found.version) == ("libcublas.so.12", "12.5.3.2")
    assert found.origin == "system"


def test_a_library_from_the_search_path_is_told_from_one_of_the_system():
    path = "/opt/cuda-11/lib64/libcudnn.so.8.9.7"
    assert one(path, LD_LIBRARY_PATH="/else:/opt/cuda-11/lib64/").origin == (
        "search path"
    )
    assert one(path, LD_LIBRARY_PATH="/opt/cuda-1:").origin == "system"


def test_the_driver_is_named_as_it_is_asked_for():
    found = one("/usr/lib/libcuda.so.570.133.20")
    assert (found.name, found.version) == ("libcuda.so.1", "570.133.20")


@pytest.mark.parametrize(
    "path",
    [
        "/usr/lib/libcurl.so.4.8.0",
        "/usr/lib/libc.so.6",
        f"{SITE}/nvidia/cudnn/lib/libcudnn_ops.so.9",
        f"{SITE}/tensorflow/libtensorflow_cc.so.2",
        "/dev/shm/libcuda.so.1 (deleted)",
        "",
    ],
)
def test_what_is_no_library_for_a_gpu_is_left_out(path):
    assert loaded([path], {}) == ()


def test_the_same_library_from_two_places_is_named_twice():
    paths = ["/usr/lib/libcudnn.so.9.3.0", f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"]
    found = loaded(paths * 2, {})
    assert [library.origin for library in found] == ["system", "package"]
