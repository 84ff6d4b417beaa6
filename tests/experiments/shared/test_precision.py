import dataclasses
import os
import re

import pytest

import perfkit
from perfkit.experiments.shared import precision
from perfkit.experiments.shared.models import MODELS
from perfkit.experiments.shared.precision import PRECISIONS, expected, unavailable
from perfkit.machine.record import Gpu, Processor
from tests.findings.made import MACHINE


@pytest.mark.parametrize(
    ("name", "computes", "keeps", "optimizer"),
    [
        ("float32", "float32", {"float32"}, "Adam"),
        ("float32 without TF32", "float32", {"float32"}, "Adam"),
        ("mixed_bfloat16", "bfloat16", {"float32"}, "Adam"),
        ("mixed_float16", "float16", {"float32"}, "LossScaleOptimizer"),
        ("float64", "float64", {"float32", "float64"}, "Adam"),
    ],
)
def test_layers_compute_in_the_precision_but_the_last(name, computes, keeps, optimizer):
    def look(tf):
        PRECISIONS[name].choose()
        network = MODELS["small-cnn"].build()
        return {
            "computes": [layer.compute_dtype for layer in network.layers],
            "keeps": {weight.dtype for weight in network.trainable_variables},
            "optimizer": type(PRECISIONS[name].optimizer()).__name__,
            "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
        }

    found = perfkit.fresh(look)
    *layers, last = found["computes"]
    assert set(layers) == {computes}
    assert last == "float32"
    # Only float16 scales its loss.
    assert (found["keeps"], found["optimizer"]) == (keeps, optimizer)
    assert found["tf32"] == (name != "float32 without TF32")


def test_a_loop_that_forgets_to_scale_the_loss_learns_next_to_nothing():
    def moved(tf, *, forgets):
        import keras

        weight = keras.Variable([1.0])
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5))
        optimizer.build([weight])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight**2)
            loss = loss if forgets else optimizer.scale_loss(loss)
        optimizer.apply(tape.gradient(loss, [weight]), [weight])
        return 1 - float(weight[0])

    assert perfkit.fresh(lambda tf: moved(tf, forgets=False)) == 1.0
    forgotten = perfkit.fresh(lambda tf: moved(tf, forgets=True))
    assert forgotten == pytest.approx(1 / 2**15, rel=0.01)


@pytest.mark.skipif(
    "avx512_bf16" not in (precision.here().instructions or ()),
    reason="the processor has no avx512_bf16 that could be left out",
)
def test_what_is_left_out_reaches_onednn_before_its_first_operation(capfd):
    def kernel(name):
        def product(tf):
            os.environ["ONEDNN_VERBOSE"] = "1"
            PRECISIONS[name].choose()
            numbers = tf.cast(tf.ones((64, 64)), "bfloat16")
            return str(tf.matmul(numbers, numbers).dtype)

        perfkit.fresh(product)
        ran = [line for line in capfd.readouterr().out.splitlines() if ",exec," in line]
        return next(line for line in ran if "matmul" in line)

    own = re.compile("avx512_core_(bf16|amx|fp16)|avx10")
    assert own.search(kernel("mixed_bfloat16"))
    assert not own.search(kernel("mixed_bfloat16 on plain AVX-512"))


def test_every_precision_says_its_one_change_and_stands_against_another():
    for one in PRECISIONS.values():
        assert one.changes.endswith(".")
        assert one.against in PRECISIONS


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
        ("12.0", "faster", "faster", True),
    ],
)
def test_the_capability_decides_on_a_gpu(capability, float16, bfloat16, has_tf32):
    here = with_card(capability)
    assert expect("mixed_float16", here) == float16
    assert expect("mixed_bfloat16", here) == bfloat16
    assert expect("float64", here) == "slower"
    assert (unavailable(PRECISIONS[precision.NO_TF32], here) == "") == has_tf32


def test_the_card_that_programs_see_decides_and_of_unlike_ones_none():
    slow, fast = with_card("6.1"), with_card("8.0")
    cards = [Gpu(name=n, compute_capability=c) for n, c in (("A", "6.1"), ("B", "8.0"))]

    def found(**environment):
        told = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} | environment
        return precision._of(None, cards, told)

    assert found().capability == slow.capability
    assert found(CUDA_VISIBLE_DEVICES="1").capability == fast.capability
    assert found(CUDA_VISIBLE_DEVICES="").gpu == ""
    unlike = found(CUDA_DEVICE_ORDER="FASTEST_FIRST")
    assert (unlike.gpu, unlike.capability) == ("GPU", None)


def test_cards_that_were_made_without_tensor_cores_have_none():
    here = dataclasses.replace(with_card("7.5"), gpu="NVIDIA GeForce GTX 1650")
    assert expect("mixed_float16", here) == "open"
    assert "no Tensor Cores" in expected(PRECISIONS["mixed_float16"], here).because


def test_every_expectation_has_its_reason_and_a_gpu_that_tells_none_is_open():
    here = with_card(None)
    assert expect("mixed_float16", here) == expect("mixed_bfloat16", here) == "open"
    assert unavailable(PRECISIONS[precision.NO_TF32], here) == ""
    assert "amx_bf16" in expected(PRECISIONS["mixed_bfloat16"], with_cores(AMX)).because
    because = expected(PRECISIONS["mixed_float16"], with_card("7.5")).because
    assert "the NVIDIA Thing (compute capability 7.5) has Tensor Cores" in because


def test_tf32_is_nothing_of_a_processor_and_a_limited_one_is_not_known():
    why = unavailable(PRECISIONS[precision.NO_TF32], with_cores(AMX))
    assert why.startswith("needs a GPU: TF32 is a format of NVIDIA GPUs")
    why = unavailable(PRECISIONS[precision.NO_TF32], with_card("7.5"))
    assert "7.5) has no TF32" in why
    here = with_cores(AMX, environment={precision.INSTRUCTIONS: "AVX2"})
    assert expect("mixed_bfloat16", here) == "open"
    because = expected(PRECISIONS["mixed_bfloat16"], here).because
    assert precision.INSTRUCTIONS in because
    assert "is set already" in unavailable(PRECISIONS["float32 without AMX"], here)


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
    lesser = (PRECISIONS[name] for name in precision.GROUPS["lesser machine"])
    found = [a for a in lesser if a.kind == "imitation" and not unavailable(a, here)]
    assert {one.name.partition(" ")[2] for one in found} == able


def test_an_imitation_is_expected_to_be_what_it_imitates_but_beside_no_gpu():
    here = with_cores(AMX)
    assert expect("mixed_bfloat16 without AMX", here) == "open"
    assert expect("mixed_bfloat16 on plain AVX-512", here) == "slower"
    assert expect("float32 without AMX", here) == "no difference"
    why = unavailable(PRECISIONS["float32 without AMX"], with_card("8.0"))
    assert "here the GPU computes" in why


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("8.9", (8, 9)), ("12.0", (12, 0)), ("", None), (None, None), ("8", None)],
)
def test_a_compute_capability_is_two_numbers(text, numbers):
    assert precision.parse_capability(text) == numbers
