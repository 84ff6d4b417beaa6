from pathlib import Path

import pytest

from perfkit.machine.starting import explain_log, explained

# As they were recorded.
RECORDED = Path(__file__).with_name("tensorflow-2.21-without-gpu.log").read_text()
ON_A_GPU = Path(__file__).with_name("tensorflow-2.21-h200.log").read_text()


def test_of_a_recorded_log_the_lines_that_matter_are_told():
    found = [(one.line.split(",")[0][:36], one.weight) for one in explain_log(RECORDED)]
    assert found == [
        ("Could not find cuda drivers on your ", "fatal"),
        ("failed call to cuInit: INTERNAL: CUD", "fatal"),
    ]
    # A GPU that computes logs none.
    assert explain_log(ON_A_GPU) == ()


@pytest.mark.parametrize(
    ("weight", "lines"),
    {
        "fatal": """
Cannot dlopen some GPU libraries. Please make sure the missing
Could not load dynamic library 'libcudnn.so.8'; dlerror: libcu
failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable
'cuModuleLoadData' failed with 'CUDA_ERROR_INVALID_PTX'
with core count: 5. You can adjust it with the env var TF_MIN_GPU_MULTIPROCESSOR_COUNT.
Loaded runtime CuDNN library: 9.0.0 but source was compiled with: 9.3.0.""",
        "harmless": """
Cannot dlopen all TensorRT libraries.
Could not load dynamic library 'libnvinfer.so.7'; dlerror: lib""",
        "matters": """
TensorFlow was not built with CUDA kernel binaries compatible
Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB. It is not a failure
Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB
ptxas too old. Falling back to the driver to compile.""",
    }.items(),
)
def test_what_is_known_of_a_line(weight, lines):
    assert {line: explained(line)[0] for line in lines.split("\n")[1:]} == (
        dict.fromkeys(lines.split("\n")[1:], weight)
    )
    assert explained("the moon is full") is None


GLOG = "I0000 00:00:1.2 9 a.cc:1] "
OLD = "ptxas too old"


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        ("2026-11-21 02:28:49.953958: W /src/moon.cc:12] ptxas too old at 0x7f3a2b00 "
         "on ada-pc in /home/ada/data\n", [f"{OLD} at 0x… on <name> in <path>"]),
        # Lines that differ in numbers alone are one.
        ("".join(f"{GLOG}{OLD} {n}\n" for n in range(9)), [f"{OLD} 0"]),
        (f"\x1b[31m{OLD}\x1b[0m \x07alarm", [f"{OLD} alarm"]),
        (f"{GLOG}{OLD} {'x' * 999}", [f"{OLD} {'x' * 223}..."]),
        ("\n \n", []),
    ],
    ids=["names and places", "numbers", "colours", "long", "empty"],
)  # fmt: skip
def test_a_line_is_told_without_who_and_where(log, shown):
    found = explain_log(log, ("ada", "ada-pc"))
    assert [one.line for one in found] == shown
    # A name that is a word of the log hides no meaning.
    assert explain_log(f"{GLOG}{OLD}", ("ptxas",))[0].meaning
