"""What is expected of a precision, from machines that are written down."""

import dataclasses

import pytest

from perfkit.experiments.shared import precision
from perfkit.experiments.shared.precision import (
    GROUPS,
    INSTRUCTIONS,
    NO_TF32,
    PRECISIONS,
    Hardware,
    expected,
    unavailable,
)
from perfkit.machine.gpu import Gpu
from perfkit.machine.record import Processor
from tests.findings.made import MACHINE

AVX2 = ("avx", "avx2", "f16c", "fma")
AVX512 = (*AVX2, "avx512bw", "avx512dq", "avx512f", "avx512vl")
BF16 = (*AVX512, "avx512_bf16")
AMX = (*BF16, "amx_bf16", "amx_int8", "amx_tile", "avx512_fp16")


def with_cores(instructions, **more):
    processor = Processor(instructions=instructions)
    return precision.of(dataclasses.replace(MACHINE, processor=processor, **more))


def with_card(capability):
    card = Gpu(name="NVIDIA Thing", compute_capability=capability)
    return with_cores(AMX, gpus=(card,))


def expect(name, here):
    return expected(PRECISIONS[name], here).expect


@pytest.mark.parametrize(
    ("instructions", "bfloat16"),
    [
        (AMX, "faster"),
        (BF16, "open"),
        (AVX512, "slower"),
        (AVX2, "slower"),
        (("asimd", "bf16"), "open"),
        (("asimd",), "slower"),
        (None, "open"),
    ],
)
def test_the_instruction_sets_decide_about_bfloat16(instructions, bfloat16):
    here = with_cores(instructions)
    assert expect("mixed_bfloat16", here) == bfloat16
    assert expect("mixed_float16", here) == expect("float64", here) == "slower"


@pytest.mark.parametrize(
    ("capability", "float16", "bfloat16", "has_tf32"),
    [
        ("6.1", "open", "slower", False),
        ("7.5", "faster", "slower", False),
        ("8.0", "faster", "faster", True),
        ("9.0", "faster", "faster", True),
        ("12.0", "faster", "faster", True),
    ],
)
def test_the_compute_capability_decides_on_a_gpu(
    capability, float16, bfloat16, has_tf32
):
    here = with_card(capability)
    assert expect("mixed_float16", here) == float16
    assert expect("mixed_bfloat16", here) == bfloat16
    assert expect("float64", here) == "slower"
    assert (unavailable(PRECISIONS[NO_TF32], here) == "") == has_tf32


def test_a_gpu_that_does_not_tell_what_it_can_leaves_it_open():
    here = with_card(None)
    assert expect("mixed_float16", here) == expect("mixed_bfloat16", here) == "open"
    assert unavailable(PRECISIONS[NO_TF32], here) == ""


def test_every_expectation_has_its_reason():
    assert "amx_bf16" in expected(PRECISIONS["mixed_bfloat16"], with_cores(AMX)).because
    because = expected(PRECISIONS["mixed_float16"], with_card("7.5")).because
    assert "the NVIDIA Thing (compute capability 7.5) has Tensor Cores" in because


def test_tf32_is_nothing_that_a_processor_has():
    why = unavailable(PRECISIONS[NO_TF32], with_cores(AMX))
    assert why.startswith("needs a GPU: TF32 is a format of NVIDIA GPUs")
    assert "7.5) has no TF32" in unavailable(PRECISIONS[NO_TF32], with_card("7.5"))


def test_somebody_who_limits_the_processor_is_told_that_nothing_is_known():
    here = with_cores(AMX, environment={INSTRUCTIONS: "AVX2"})
    assert expect("mixed_bfloat16", here) == "open"
    found = expected(PRECISIONS["mixed_bfloat16"], here)
    assert INSTRUCTIONS in found.because
    imitated = PRECISIONS["float32 without AMX"]
    assert "is set already" in unavailable(imitated, here)


@pytest.mark.parametrize(
    ("instructions", "able"),
    [
        (AMX, {"without AMX", "on plain AVX-512"}),
        (BF16, {"on plain AVX-512"}),
        (AVX512, set()),
        (None, set()),
    ],
)
def test_only_a_lesser_machine_can_be_imitated(instructions, able):
    here = with_cores(instructions)
    found = {
        name.partition(" ")[2]
        for name in GROUPS["lesser machine"]
        if PRECISIONS[name].kind == "imitation"
        and not unavailable(PRECISIONS[name], here)
    }
    assert found == able


def test_an_imitation_is_expected_to_be_what_it_imitates():
    here = with_cores(AMX)
    assert expect("mixed_bfloat16 without AMX", here) == "open"
    assert expect("mixed_bfloat16 on plain AVX-512", here) == "slower"
    assert expect("float32 without AMX", here) == "no difference"


def test_a_processor_is_not_imitated_where_a_gpu_computes():
    why = unavailable(PRECISIONS["float32 without AMX"], with_card("8.0"))
    assert "here the GPU computes" in why


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("8.9", (8, 9)), ("12.0", (12, 0)), ("", None), (None, None), ("8", None)],
)
def test_a_compute_capability_is_two_numbers(text, numbers):
    assert precision.parse_capability(text) == numbers


def test_the_machine_at_hand_is_read_without_an_error():
    assert isinstance(precision.here(), Hardware)
