"""The work of a line is left out, and all else stays as it is."""

import collections
import functools
from dataclasses import asdict

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.errors import BadParameterError
from perfkit.findings.account import Account, Line
from perfkit.training.diagnose import gains, look
from perfkit.training.diagnose.causes import lines
from perfkit.training.diagnose.causes.lines import (
    hot,
    leave_out,
    remember,
    with_obstacles,
)
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.maker import LineNames
from perfkit.training.diagnose.rounds import Screening, unmeasured
from perfkit.training.diagnose.training import handed_over
from tests.training.diagnose import fits
from tests.training.diagnose.causes.offered import named, why
from tests.training.diagnose.measurements import change, measured

DATA = tf.data.Dataset
LINE = {"file": "train.py", "cell": 0, "line": 7} | {
    "name": "without line 7",
    "where": "line 7",
}
HIDDEN, LOSS = (
    LINE | {"parts": [part]} for part in ("layer hidden Dense", "loss mine")
)


def at(made, line=7):
    vars(made)["_perfkit_line"] = ("train.py", 0, line)
    return made


def three(hidden=None):
    """Three layers, of which the line has made the one in the middle."""
    hidden = hidden or keras.layers.Dense(5, activation="tanh", name="hidden")
    return keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(3, activation="tanh", name="first"),
            at(hidden),
            keras.layers.Dense(1, name="last"),
        ]
    )


def training(network=None, *, loss="mse", **compiled):
    network = network or three()
    network.compile("sgd", loss, **compiled)
    return handed_over((network, fits.batches(3), {"verbose": 0}))


def backward(made):
    """The layers whose weights have gradients, and the operations of these by type."""

    @tf.function
    def step(features, labels):
        with tf.GradientTape() as tape:
            given = made.model(features, training=True)
            loss = made.model.compute_loss(features, labels, given)
        return tape.gradient(loss, made.model.trainable_variables)

    graph = step.get_concrete_function(*next(iter(made.data)))
    taken = zip(made.model.trainable_variables, graph.structured_outputs, strict=True)
    types = collections.Counter(
        one.type for one in graph.graph.get_operations() if "gradient_tape" in one.name
    )
    return {
        w.path.split("/")[-2] for w, gradient in taken if gradient is not None
    }, types


def trains(made):
    """The losses of two epochs, which are numbers."""
    losses = made.model.fit(made.data, epochs=2, verbose=0).history["loss"]
    assert np.isfinite(losses).all()
    return losses


def test_layers_before_the_line_keep_their_backward_pass_and_its_own_is_gone():
    given = training()
    before, all_of_it = backward(given)
    leave_out(given, line=HIDDEN)
    after, left = backward(given)
    assert (before, after) == ({"first", "hidden", "last"}, {"first", "last"})
    # Two products of each layer, but for the input of the first one.
    assert (all_of_it["MatMul"], left["MatMul"]) == (5, 3)
    assert (all_of_it["TanhGrad"], left["TanhGrad"]) == (2, 1)
    hidden = given.model.get_layer("hidden").get_weights()
    trains(given)
    assert np.array_equal(hidden[0], given.model.get_layer("hidden").get_weights()[0])


class Whole(keras.Model):
    """A model that calls its layers in one line."""

    def __init__(self):
        super().__init__()
        self.first = at(keras.layers.Dense(4, name="first"), 3)
        self.hidden = at(keras.layers.Dense(4, name="hidden"), 4)
        self.last = at(keras.layers.Dense(1, name="last"), 5)

    def call(self, values):
        return self.last(self.hidden(self.first(values)))


@pytest.mark.parametrize("eager", [False, True])
def test_a_layer_that_a_line_calls_is_left_out_before_the_model_is_built(eager):
    given = training(Whole(), run_eagerly=eager)
    leave_out(given, line=HIDDEN)
    trains(given)
    assert backward(given)[0] == {"first", "last"}


def test_what_a_line_has_not_made_cannot_be_left_out():
    elsewhere = HIDDEN | {"line": 8, "parts": ["layer another Dense"]}
    with pytest.raises(BadParameterError, match="no layer of the model"):
        leave_out(training(), line=elsewhere)


def test_without_its_loss_every_layer_still_has_gradients():
    def mine(labels, given):
        raise AssertionError("It is left out.")

    given = training(loss=mine)
    leave_out(given, line=LOSS)
    given.model.fit(given.data, verbose=0)
    assert backward(given)[0] == {"first", "hidden", "last"}
    assert given.model.metrics_names[:1] == ["loss"]


def test_what_is_left_out_is_that_of_one_variant_and_of_no_other():
    given = training(loss="mse")
    layer, compiled = given.model.get_layer("hidden"), given.model._compile_loss
    as_given = look.capture(given.model, [])
    for line in (HIDDEN, LOSS):
        leave_out(given, line=line)
    without = look.capture(given.model, [])
    as_given()
    assert "call" not in vars(layer)
    assert given.model._compile_loss is compiled
    assert backward(given)[0] == {"first", "hidden", "last"}
    without()
    assert backward(given)[0] == {"first", "last"}


# What cannot be left out, and what is said of it.


def obstacle(made, line=HIDDEN):
    (told,) = with_obstacles(made, [line])
    return told["why"]


def test_lines_are_offered_and_of_the_others_is_said_why_not():
    known = with_obstacles(
        training(), [HIDDEN, HIDDEN | {"name": "without line 9", "line": 9}]
    )
    assert [one["why"] for one in known] == ["", ""]
    offer = named(lines.LINE, lines=known)
    assert [one.cause for one in offer.values()] == ["line", "line"]
    assert all(one.ceiling and one.in_place for one in offer.values())
    assert "cannot" in why(lines.LINE, lines=[HIDDEN | {"why": "it cannot"}])
    # As they come from another process.
    assert Facts(**asdict(Facts(lines=known))) == Facts(lines=known)


def test_what_cannot_be_left_out_is_known_before_it_is_tried():
    assert obstacle(training()) == obstacle(training(), LOSS) == ""
    assert "a part of a layer" in obstacle(
        training(), HIDDEN | {"line": 8, "parts": ["layer own Own"]}
    )
    inner = keras.Sequential([keras.Input((3,)), at(keras.layers.Dense(5), 8)])
    assert "other lines" in obstacle(training(three(inner)))
    only = keras.Sequential([keras.Input((2,)), at(keras.layers.Dense(1))])
    assert "learns nothing" in obstacle(training(only))
    held = training()
    held.model.train_step = tf.function(held.model.train_step)
    assert "tf.function" in obstacle(held)
    two = keras.Model(x := keras.Input((2,)), [keras.layers.Dense(1)(x)] * 2)
    assert "several" in obstacle(training(two, loss=["mse", "mae"]), LOSS)


def test_a_shape_that_is_left_open_is_no_shape():
    layers = (keras.layers.Dense(2), at(keras.layers.Dense(2)), keras.layers.Dense(1))
    given = training(keras.Sequential([keras.Input((None, 2)), *layers]))
    texts = given.data.unbatch().map(lambda x, y: (x[None, None], y[None, None, None]))
    kept = tf.TensorSpec((1, None, 2)), tf.TensorSpec((1, None, 1))
    given.data = DATA.from_generator(lambda: texts, output_signature=kept)
    assert "shape" in obstacle(given)
    leave_out(given, line=HIDDEN)
    with pytest.raises(BadParameterError, match="shape"):
        given.model.fit(given.data, verbose=0)
    # Where a batch tells it, nothing is open.
    given.data = texts
    assert obstacle(given) == ""


# Which line, and what it is called.


def test_what_keras_makes_remembers_its_line(tmp_path, monkeypatch):
    for owner in (
        *(keras.layers.Layer, keras.losses.Loss, keras.metrics.Metric),
        *(keras.optimizers.Optimizer, keras.callbacks.Callback),
    ):
        # Keras is as before once the test is over.
        monkeypatch.setattr(owner, "__init__", owner.__init__)
    script = tmp_path / "train.py"
    script.write_text("import keras\n\nlayer = keras.layers.Dense(1)\n")
    maker = functools.partial(int)
    maker.path = str(script)
    remember(maker)
    exec(compile(script.read_text(), str(script), "exec"), made := {})
    assert vars(made["layer"])["_perfkit_line"] == ("train.py", 0, 3)
    assert LineNames(maker).locate(str(script), 3) == ("train.py", 0, 3)


def test_lines_of_an_account_are_those_whose_layers_and_losses_take_most():
    def line(number, seconds, *parts):
        spent = {"computing": seconds}
        return Line(file="train.py", line=number, seconds=spent, parts=parts)

    rows = (line(1, 5.0, "layer a Dense"), line(2, 3.0), line(3, 2.0, "loss own"))
    account = Account.__new__(Account)
    vars(account).update(training="train.py", lines=rows, elsewhere_s=0.0)
    names = [(one["name"], one["where"]) for one in hot(account)]
    assert names == [("without line 1", "line 1"), ("without line 3", "line 3")]


# What comes of it: a ceiling, and never a cause.


def test_a_line_is_no_cause_and_makes_nothing_healthy():
    one = change("without line 7", "line", ceiling=True, leaves_out="line 7")
    run = measured(without_line_7=3.0)
    assert gains.causes((one,), run) == ()
    assert not gains.healthy((one,), (), run)
    assert unmeasured((one,), measured()) == ()
    assert Screening((one,))(measured(rounds=0)) == [one.name]
