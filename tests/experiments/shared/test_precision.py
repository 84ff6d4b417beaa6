"""What choosing a precision does, in a process of its own."""

import re

import pytest

import perfkit
from perfkit.experiments.shared import precision as formats
from perfkit.experiments.shared.precision import PRECISIONS


def chosen(name, model="small-cnn"):
    """What a network of a precision computes in and keeps, and its optimizer."""

    def look(tf):
        from perfkit.experiments.shared.models import MODELS
        from perfkit.experiments.shared.precision import PRECISIONS

        PRECISIONS[name].choose()
        network = MODELS[model].build()
        return {
            "computes": [layer.compute_dtype for layer in network.layers],
            "keeps": {weight.dtype for weight in network.trainable_variables},
            "optimizer": type(PRECISIONS[name].optimizer()).__name__,
            "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
        }

    return perfkit.fresh(look)


@pytest.mark.parametrize(
    ("name", "computes", "keeps"),
    [
        ("float32", "float32", {"float32"}),
        ("mixed_bfloat16", "bfloat16", {"float32"}),
        ("mixed_float16", "float16", {"float32"}),
        ("float64", "float64", {"float32", "float64"}),
    ],
)
def test_layers_compute_in_the_precision_and_the_last_one_in_float32(
    name, computes, keeps
):
    found = chosen(name)
    *layers, last = found["computes"]
    assert set(layers) == {computes}
    assert last == "float32"
    assert found["keeps"] == keeps
    assert found["tf32"]


def test_only_float16_scales_its_loss():
    assert chosen("mixed_float16", "dense")["optimizer"] == "LossScaleOptimizer"
    assert chosen("mixed_bfloat16", "dense")["optimizer"] == "Adam"


def test_tf32_can_be_switched_off():
    assert not chosen("float32 without TF32", "dense")["tf32"]


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
    "avx512_bf16" not in (formats.here().instructions or ()),
    reason="the processor has no avx512_bf16 that could be left out",
)
def test_what_is_left_out_reaches_onednn_before_its_first_operation(capfd):
    def kernel(name):
        def product(tf):
            import os

            from perfkit.experiments.shared.precision import PRECISIONS

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
    for precision in PRECISIONS.values():
        assert precision.changes.endswith(".")
        assert precision.against in PRECISIONS
