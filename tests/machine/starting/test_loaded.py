import pytest

from perfkit.machine.record import Library
from perfkit.machine.starting.log import loaded
from tests.machine.trees import grow, package

SITE = "/venv/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("path", "name", "version", "origin"),
    [
        ("{site}/nvidia/cuda_runtime/lib/libcudart.so.12", "libcudart.so.12", "12.9.79",
         "package"),
        # One that no package owns up to has no version, and none is made up.
        (f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9", "libcudnn.so.9", None, "package"),
        ("/usr/lib/x86_64-linux-gnu/libcublas.so.12.5.3.2", "libcublas.so.12",
         "12.5.3.2", "system"),
        ("/opt/cuda-11/lib64/libcudnn.so.8.9.7", "libcudnn.so.8", "8.9.7",
         "search path"),
        ("/opt/cuda-110/libcudnn.so.8.9.7", "libcudnn.so.8", "8.9.7", "system"),
        # The driver is named as it is asked for.
        ("/usr/lib/libcuda.so.570.133.20", "libcuda.so.1", "570.133.20", "system"),
    ],
)  # fmt: skip
def test_a_library_is_told_by_where_it_lies(tmp_path, path, name, version, origin):
    site = grow(
        tmp_path / "site-packages", package("nvidia-cuda-runtime-cu12", "12.9.79")
    )
    searched = {"LD_LIBRARY_PATH": "/else:/opt/cuda-11/lib64/:/opt/cuda-1:"}
    (found,) = loaded([path.format(site=site)], searched)
    assert found == Library(name=name, version=version, origin=origin)


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
