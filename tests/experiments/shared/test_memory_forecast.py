import pytest

from perfkit.experiments.shared.batches import forecast


class Variable:
    def __init__(self, *shape, dtype="float32"):
        self.shape, self.dtype = shape, dtype


class Dense:
    def __init__(self, *shape, dtype="float32"):
        self.output, self.compute_dtype = Variable(None, *shape), dtype


class Network:
    input_shape = (None, 28, 28)

    def __init__(self, *layers):
        self.layers = layers
        self.trainable_variables = [Variable(784, 10), Variable(10)]
        self.variables = [*self.trainable_variables, Variable(5)]


class Adam:
    variables = (
        Variable(dtype="int64"),
        *(Variable(*s) for s in ((784, 10), (10,)) * 2),
    )


WEIGHTS = 4 * (784 * 10 + 10)


def test_weights_gradients_and_slots_are_there_once_and_activations_each_time():
    found = forecast(Network(), Adam())
    assert (found.weights, found.gradients) == (WEIGHTS + 20, WEIGHTS)
    assert (found.slots, found.fixed) == (2 * WEIGHTS + 8, 4 * WEIGHTS + 28)
    found = forecast(Network(type("Flatten", (Dense,), {})(784), Dense(10)), Adam())
    assert found.activations == 4 * (28 * 28 + 10)
    assert found.of(3) == found.fixed + 3 * found.activations


@pytest.mark.parametrize(
    ("dtype", "width"), [("float16", 2), ("bfloat16", 2), ("float64", 8)]
)
def test_a_layer_counts_in_the_precision_that_it_computes_in(dtype, width):
    found = forecast(Network(Dense(10, dtype=dtype)), Adam())
    assert found.activations == 4 * 28 * 28 + width * 10
