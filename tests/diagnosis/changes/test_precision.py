import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.diagnosis.change import Untested
from perfkit.diagnosis.changes import model
from perfkit.diagnosis.facts import Facts
from perfkit.experiments.shared.precision import Hardware
from tests.diagnosis.changes.offered import applied, offered


def found(machine, **known):
    return list(model.precisions(Facts(**known), machine))


TILES = Hardware(instructions=("amx_bf16",))


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        (TILES, ["mixed_bfloat16"]),
        (Hardware(instructions=("avx2",)), []),
        (
            Hardware(gpu="a card", capability=(8, 0)),
            ["mixed_bfloat16", "mixed_float16"],
        ),
        (Hardware(gpu="a card", capability=(7, 5)), ["mixed_float16"]),
    ],
)
def test_what_a_machine_is_made_for_is_tried(machine, names):
    tried = found(machine)
    if not names:
        (left_out,) = tried
        assert isinstance(left_out, Untested)
        assert "no instructions for bfloat16" in left_out.why
        return
    assert [one.name for one in tried] == names
    for change in tried:
        assert (change.kind, change.combines) == ("opportunity", False)
        assert 'dtype="float32"' in change.fix


def test_the_policy_is_set_before_the_model_is_made():
    # One of the user's own is left alone.
    (left_out,) = found(TILES, policy="mixed_float16")
    assert "mixed_float16" in left_out.why
    (change,) = found(TILES)
    try:
        change.before()
        assert keras.layers.Dense(1).compute_dtype == "bfloat16"
    finally:
        keras.config.set_dtype_policy("float32")


def test_slices_of_float64_are_cast_once():
    rows = np.random.default_rng(0).normal(size=(8, 3))
    data = tf.data.Dataset.from_tensor_slices((rows, np.arange(8)))
    given = data.map(lambda x, y: (x * 2, y)).batch(4)
    (change,), made = applied(model.wide_data, given)
    assert (change.cause, change.after) == ("float64", "without input")
    assert [part.dtype.name for part in made.element_spec] == ["float32", "int64"]
    seen = np.concatenate([x for x, _ in made.as_numpy_iterator()])
    assert np.allclose(seen, rows * 2, 1e-5)


def test_where_a_function_asks_for_float64_it_stays():
    wide = tf.data.Dataset.from_tensor_slices(np.ones((8, 3)))
    asks = wide.map(lambda x: x * tf.ones((3,), tf.float64)).batch(4)
    narrow = tf.data.Dataset.from_tensor_slices(np.ones(3, "float32"))
    assert offered(model.wide_data, asks) == offered(model.wide_data, narrow) == []
