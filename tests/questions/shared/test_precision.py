import pytest

import perfkit
from perfkit.machine.record import Gpu
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.precision import (
    NO_TF32,
    PRECISIONS,
    expected,
    hardware_of,
    unavailable,
)

CHOSEN = {
    "float32": ("float32", {"float32"}, "Adam"),
    "float32 without TF32": ("float32", {"float32"}, "Adam"),
    "mixed_bfloat16": ("bfloat16", {"float32"}, "Adam"),
    # Only float16 scales its loss.
    "mixed_float16": ("float16", {"float32"}, "LossScaleOptimizer"),
    "float64": ("float64", {"float32", "float64"}, "Adam"),
}


def test_layers_compute_in_the_precision_but_the_last():
    def chosen(tf, name):
        network, optimizer = PRECISIONS[name].build(MODELS["small-cnn"])
        *computing, last = [layer.compute_dtype for layer in network.layers]
        assert set(computing) == {CHOSEN[name][0]}
        assert last == "float32"
        tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
        assert tf32 == (name != NO_TF32)
        keeps = {weight.dtype for weight in network.trainable_variables}
        return CHOSEN[name][0], keeps, type(optimizer).__name__

    assert perfkit.fresh(lambda tf: {n: chosen(tf, n) for n in CHOSEN}) == CHOSEN


AVX512 = ("avx", "avx2", "fma", "avx512bw", "avx512dq", "avx512f", "avx512vl")
BF16 = (*AVX512, "avx512_bf16")
AMX = (*BF16, "amx_bf16", "amx_int8", "amx_tile", "avx512_fp16")


def with_cores(instructions):
    return hardware_of(instructions, (), {})


def with_card(capability, name="NVIDIA Thing"):
    return hardware_of(AMX, [Gpu(name=name, compute_capability=capability)], {})


GTX = with_card("7.5", "NVIDIA GeForce GTX 1650")


@pytest.mark.parametrize(
    ("name", "here", "expect", "because"),
    [
        ("mixed_bfloat16", with_cores(AMX), "faster", "has amx_bf16, which multiplies"),
        ("mixed_bfloat16", with_cores(BF16), "open", "has avx512_bf16 but no amx_bf16"),
        ("mixed_bfloat16", with_cores(AVX512), "slower", "no instructions for bfloat"),
        ("float64", with_cores(AMX), "slower", "each number takes twice the"),
        (NO_TF32, with_card("8.0"), "slower", "runs without the Tensor Cores"),
        ("mixed_float16", with_card("6.1"), "open", "6.1) has no Tensor Cores, but"),
        ("mixed_bfloat16", with_card("7.5"), "slower", "Cores only for float16"),
        # These cards were made without them.
        ("mixed_float16", GTX, "open", "no Tensor Cores"),
        ("mixed_float16", with_card("8.0"), "faster", "has Tensor Cores for float16"),
        ("mixed_bfloat16", with_card(None), "open", "capability is not known"),
    ],
)
def test_instruction_sets_and_capabilities_decide(name, here, expect, because):
    expectation = expected(PRECISIONS[name], here)
    assert expectation.expect == expect
    assert because in expectation.because


def test_a_card_that_is_older_than_tf32_says_so_and_no_other():
    old = unavailable(PRECISIONS[NO_TF32], with_card("7.5"))
    assert "7.5) is older than TF32 (8.0)" in old
    assert unavailable(PRECISIONS[NO_TF32], with_card("8.0")) == ""


def test_the_card_that_programs_see_decides_and_of_unlike_ones_none():
    cards = [Gpu(name=n, compute_capability=c) for n, c in (("A", "6.1"), ("B", "8.0"))]

    def seen(**environment):
        order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        here = hardware_of(None, cards, order | environment)
        return here.gpu, here.capability

    assert seen() == ("A", (6, 1))
    assert seen(CUDA_VISIBLE_DEVICES="1") == ("B", (8, 0))
    assert seen(CUDA_VISIBLE_DEVICES="") == ("", None)
    assert seen(CUDA_DEVICE_ORDER="FASTEST_FIRST") == ("GPU", None)
