from pathlib import Path

import pytest

from perfkit.machine.starting import explain_log, explained

# As they were recorded.
HERE = Path(__file__).parent
RECORDED = (HERE / "tensorflow-2.21-without-gpu.log").read_text()
ON_A_GPU = (HERE / "tensorflow-2.21-h200.log").read_text()


def test_a_recorded_log_is_explained_line_by_line_each_line_once():
    found = [(one.line.split(",")[0][:36], one.weight) for one in explain_log(RECORDED)]
    assert found == [
        ("WARNING: All log messages before abs", "harmless"),
        ("oneDNN custom operations are on. You", "harmless"),
        ("Could not find cuda drivers on your ", "fatal"),
        ("This TensorFlow binary is optimized ", "harmless"),
        ("To enable the following instructions", "harmless"),
        ("failed call to cuInit: INTERNAL: CUD", "fatal"),
    ]


def test_nothing_is_wrong_in_the_log_of_a_gpu_that_computes():
    found = explain_log(ON_A_GPU)
    assert {one.weight for one in found} == {"harmless"}
    assert sum("GPU" in one.meaning for one in found) >= 2


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
    assert {line: explained(line).weight for line in lines.split("\n")[1:]} == (
        dict.fromkeys(lines.split("\n")[1:], weight)
    )
    assert explained("the moon is full") is None


GLOG = "I0000 00:00:1.2 9 a.cc:1] "


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        # What nobody explained is kept as it was said, but for who and where.
        ("2026-11-21 02:28:49.953958: W /src/moon.cc:12] Phase 3 at 0x7f3a2b00 on "
         "ada-pc in /home/ada/data\n", ["Phase 3 at 0x… on <name> in <path>"]),
        # A host is left out of the lines that name it, whatever it is called.
        (f"{GLOG}hostname: moon\n", ["hostname: <name>"]),
        # Lines that differ in numbers alone are one.
        ("".join(f"{GLOG}Step {n} is late\n" for n in range(9)), ["Step 0 is late"]),
        ("\x1b[31mred\x1b[0m \x07alarm", ["red alarm"]),
        ("\n \n", []),
    ],
    ids=["names and places", "host", "numbers", "colours", "empty"],
)  # fmt: skip
def test_what_nobody_explained_is_kept_without_who_and_where(log, shown):
    found = explain_log(log, ("ada", "ada-pc"))
    assert [one.line for one in found] == shown
    if "Phase" in log:
        assert (found[0].weight, found[0].meaning) == ("unexplained", "")
    # A name that is a word of the log hides no meaning.
    assert explain_log(f"{GLOG}Loaded cuDNN version 9", ("loaded",))[0].meaning


def test_unexplained_lines_are_limited_in_number_and_length():
    words = [chr(97 + n % 26) * (n + 1) for n in range(60)]
    log = "".join(f"{GLOG}{word} {word * 20}\n" for word in words)
    found = explain_log(log + RECORDED)
    assert sum(one.weight == "unexplained" for one in found) == 20
    assert max(len(one.line) for one in found) <= 240
    # What comes after them is explained all the same.
    assert found[-1].weight == "fatal"
