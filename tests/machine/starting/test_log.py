from pathlib import Path

import pytest

from perfkit.machine.starting.log import explained, patterns, said

# As it was recorded there.
RECORDED = (Path(__file__).parent / "tensorflow-2.21-without-gpu.log").read_text()


def weight(line):
    found = explained(line)
    return found and found.weight


def test_a_recorded_log_is_explained_line_by_line_each_line_once():
    found = [(one.line.split(",")[0][:36], one.weight) for one in said(RECORDED)]
    assert found == [
        ("WARNING: All log messages before abs", "harmless"),
        ("oneDNN custom operations are on. You", "harmless"),
        ("Could not find cuda drivers on your ", "fatal"),
        ("This TensorFlow binary is optimized ", "harmless"),
        ("To enable the following instructions", "harmless"),
        ("failed call to cuInit: INTERNAL: CUD", "fatal"),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Cannot dlopen some GPU libraries. Please make sure the missing", "fatal"),
        ("Cannot dlopen all TensorRT libraries.", "harmless"),
        ("Could not load dynamic library 'libnvinfer.so.7'; dlerror: lib", "harmless"),
        ("Could not load dynamic library 'libcudnn.so.8'; dlerror: libcu", "fatal"),
        ("TF-TRT Warning: Could not find TensorRT", "harmless"),
        ("failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable", "fatal"),
        ("kernel version 384.130.0 does not match DSO version 375.66.0", "fatal"),
        ("TensorFlow was not built with CUDA kernel binaries compatible", "matters"),
        ("'cuModuleLoadData' failed with 'CUDA_ERROR_INVALID_PTX'", "fatal"),
        ("with core count: 5. You can adjust this requirement with the env var "
         "TF_MIN_GPU_MULTIPROCESSOR_COUNT.", "fatal"),
        ("Loaded runtime CuDNN library: 9.0.0 but source was compiled with: 9.3.0.",
         "fatal"),
        ("Loaded cuDNN version 90300", "harmless"),
        ("Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB. The caller "
         "indicates that this is not a failure", "matters"),
        ("Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB", "matters"),
        ("ptxas too old. Falling back to the driver to compile.", "matters"),
        ("successful NUMA node read from SysFS had negative value (-1)", "harmless"),
        ("Unable to register cuDNN factory: Attempting to register", "harmless"),
        ("Created device /job:localhost/replica:0/task:0/device:GPU:0", "harmless"),
        ("Filling up shuffle buffer (this may take a while): 12 of 900", "harmless"),
        ("the moon is full", None),
    ],
)  # fmt: skip
def test_what_is_known_of_a_line(line, expected):
    assert weight(line) == expected


def test_every_meaning_is_a_sentence_and_every_pattern_another():
    known = patterns()
    assert all(pattern.meaning.endswith(".") for pattern in known)
    assert {pattern.weight for pattern in known} == {"fatal", "matters", "harmless"}
    assert len({pattern.text for pattern in known}) == len(known) > 40


def test_what_nobody_explained_is_kept_as_it_was_said_but_for_who_and_where():
    log = (
        "2026-11-21 02:28:49.953958: W /src/moon.cc:12] Phase 3 at 0x7f3a2b00 on ada-pc"
        " in /home/ada/data\n"
    )
    (one,) = said(log, ("ada", "ada-pc"))
    assert one.weight == "unexplained"
    assert one.meaning == ""
    assert one.line == "Phase 3 at 0x… on <name> in <path>"


def test_a_host_is_left_out_of_the_lines_that_name_it_whatever_it_is_called():
    log = "I0000 00:00:1.2 9 cuda_diagnostics.cc:165] hostname: moon\n"
    assert said(log)[0].line == "hostname: <name>"


def test_a_name_that_is_a_word_of_the_log_hides_no_meaning():
    assert said("I0000 00:00:1.2 9 a.cc:1] Loaded cuDNN version 9", ("loaded",))[
        0
    ].meaning


def test_lines_that_differ_in_numbers_alone_are_one():
    log = "".join(f"W0000 00:00:1.{n} {n} a.cc:1] Step {n} is late\n" for n in range(9))
    assert [one.line for one in said(log)] == ["Step 0 is late"]


def test_unexplained_lines_are_limited_in_number_and_length():
    words = [chr(97 + n % 26) * (n + 1) for n in range(60)]
    log = "".join(f"I0000 00:00:1.2 9 a.cc:1] {word} {word * 20}\n" for word in words)
    found = said(log + RECORDED)
    assert sum(one.weight == "unexplained" for one in found) == 20
    assert max(len(one.line) for one in found) <= 240
    # What comes after them is explained all the same.
    assert found[-1].weight == "fatal"


def test_colours_and_control_characters_do_not_come_through():
    (one,) = said("\x1b[31mred\x1b[0m \x07alarm")
    assert one.line == "red alarm"


def test_an_empty_log_says_nothing():
    assert said("\n \n") == ()
