"""Which layers can gain from 16 bits."""

import pytest

import perfkit
from perfkit.experiments.mixed_precision import numbers
from perfkit.experiments.mixed_precision.numbers import Layer


def layer(**more):
    usual = {"name": "a", "computes": "bfloat16", "inputs": 8, "outputs": 16}
    return Layer(**usual | {"products": 100} | more)


@pytest.fixture(scope="module")
def small_cnn():
    def look(tf):
        from perfkit.experiments.mixed_precision import numbers
        from perfkit.experiments.shared.models import MODELS
        from perfkit.experiments.shared.precision import PRECISIONS

        PRECISIONS["mixed_bfloat16"].choose()
        network = MODELS["small-cnn"].build()
        return [vars(one) for one in numbers.layers(network)]

    return numbers.layers_of({"layers": perfkit.fresh(look)})


def test_a_network_is_looked_at_layer_by_layer(small_cnn):
    assert [(one.inputs, one.outputs) for one in small_cnn] == [
        (3, 32),
        (32, 64),
        (64 * 8 * 8, 128),
        (128, 10),
    ]
    # A place of the output takes a kernel's worth of multiplications.
    assert [one.products for one in small_cnn] == [
        32 * 32 * 3 * 3 * 3 * 32,
        16 * 16 * 3 * 3 * 32 * 64,
        4096 * 128,
        128 * 10,
    ]


def test_the_first_and_the_last_layer_are_left_out_with_their_reasons(small_cnn):
    first, *inner, last = small_cnn
    assert first.hindrance == "has 3 inputs, no multiple of 8"
    assert [one.hindrance for one in inner] == ["", ""]
    assert last.hindrance == "computes in float32"
    work = [one.products for one in small_cnn]
    assert numbers.share(small_cnn) == (work[1] + work[2]) / sum(work)


@pytest.mark.parametrize(
    ("sides", "hindrance"),
    [
        ({}, ""),
        ({"inputs": 784, "outputs": 128}, ""),
        ({"outputs": 10}, "has 10 outputs, no multiple of 8"),
        ({"inputs": 3, "outputs": 1001}, "has 3 inputs and 1,001 outputs, no multiple"),
        ({"computes": "float64"}, "computes in float64"),
    ],
)
def test_a_layer_gains_in_16_bits_and_whole_blocks(sides, hindrance):
    assert layer(**sides).hindrance.startswith(hindrance)
    assert bool(layer(**sides).hindrance) == bool(hindrance)


@pytest.mark.parametrize(
    "note",
    [None, 3, [None], [{}], [{"name": 1}], [{**vars(layer()), "inputs": -1}]],
)
def test_a_note_that_is_no_list_of_layers_is_none(note):
    assert numbers.layers_of({"layers": note}) == ()
    assert numbers.share(()) is None


def test_layers_come_back_from_their_note():
    assert numbers.layers_of({"layers": [vars(layer())]}) == (layer(),)
