"""What cannot be read of a training is unknown, and ends nothing."""

import functools

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from perfkit.training.diagnose.facts import facts_of
from perfkit.training.diagnose.failure import try_read
from perfkit.training.diagnose.script import not_trained
from perfkit.training.diagnose.training import (
    examples_in,
    first_batch,
    handed_over,
    parted,
)
from tests.training.diagnose import fits

ROWS = 24


def scaled(truth, predicted, by):
    return by * tf.reduce_mean(tf.abs(truth - predicted))


class Plain:
    """A loss, or a metric, of a class that knows nothing of Keras."""

    def __call__(self, truth, predicted):
        return scaled(truth, predicted, 1.0)


class Warmed(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule without a configuration, as tutorials have it."""

    def __call__(self, step):
        return 0.1 / (1.0 + tf.cast(step, "float32"))


def test_whatever_a_model_is_compiled_with_its_metrics_have_names():
    def names_of(metrics):
        inputs = keras.Input((2,))
        model = keras.Model(inputs, keras.layers.Dense(1, name="out")(inputs))
        model.compile(keras.optimizers.Adam(Warmed()), Plain(), metrics=metrics)
        names = facts_of(handed_over((model, fits.batches(3)))).metrics
        # A training that is passed over has a history with the same names.
        assert list(not_trained({"self": model}).history) == ["loss", *names]
        return names

    area = keras.metrics.AUC(name="area")
    every = names_of([functools.partial(scaled, by=3.0), "mae", Plain(), area])
    assert every == ("partial", "mae", "Plain", "area")
    assert names_of({"out": [scaled]}) == ("scaled",)


def dense():
    return np.arange(2 * ROWS, dtype="float32").reshape(ROWS, 2) % 5


ARRAYS = {
    "array": lambda rows: rows,
    "ragged tensor": lambda rows: tf.RaggedTensor.from_tensor(rows),
    # Its rows are called by numbers that are no places.
    "table": lambda rows: pd.DataFrame(rows, index=np.arange(ROWS)[::-1] / 2),
}


@pytest.mark.parametrize("made", ARRAYS.values(), ids=ARRAYS)
def test_rows_of_every_kind_are_counted_and_parted_by_their_places(made):
    training = fits.training((made(dense()), np.ones(ROWS)), batch_size=5)
    found = facts_of(training)
    assert (found.data, found.steps, found.batch) == ("arrays", 5, 5)
    assert found.element[0] == "float32[5, 2]" or made is ARRAYS["ragged tensor"]
    features, labels = first_batch(training)
    assert in_full(features).tolist() == dense()[:5].tolist()
    assert labels.shape == (5,)
    # It may be held in memory, and it may be trained on.
    tf.data.Dataset.from_tensors((features, labels))
    kept, held = parted(training.data, 0.25)
    for part, rows in ((kept, dense()[:18]), (held, dense()[18:])):
        again = fits.training(part, batch_size=len(rows))
        assert in_full(first_batch(again)[0]).tolist() == rows.tolist()


def in_full(rows):
    return np.array(rows.to_list()) if hasattr(rows, "to_list") else np.asarray(rows)


@pytest.mark.parametrize(
    ("arguments", "batch", "steps"),
    [
        ({"batch_size": None}, 32, 1),
        ({"steps_per_epoch": 5}, 5, 5),
        ({"steps_per_epoch": 5, "validation_split": 0.25}, 4, 5),
        ({"steps_per_epoch": 5, "batch_size": 3}, 3, 5),
    ],
)
def test_a_batch_of_arrays_holds_as_many_as_keras_puts_into_it(arguments, batch, steps):
    seen = []
    watching = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda step, logs: seen.append(int(logs["examples"]))
    )

    class Counting(keras.Model):
        def train_step(self, data):
            return {"examples": tf.shape(data[0])[0]}

    model = Counting()
    model.compile()
    data, more = (dense(), np.ones(ROWS, "float32")), {"verbose": 0}
    held = {n: v for n, v in arguments.items() if n != "validation_split"}
    share = 1 - arguments.get("validation_split", 0)
    rows = [part[: int(ROWS * share)] for part in data]
    model.fit(*rows, callbacks=[watching], **held | more)
    training = handed_over((model, data, {**arguments}))
    assert training.arguments["batch_size"] == batch
    assert facts_of(training).steps == steps
    assert max(seen) == min(batch, len(rows[0]))


def test_data_that_give_nothing_beside_the_training_are_unknown():
    class Once(keras.utils.PyDataset):
        num_batches = 9

        def __getitem__(self, index):
            raise RuntimeError("its epoch has not begun")

    found = facts_of(handed_over((fits.model(), Once())))
    assert (found.steps, found.element) == (9, ())


def test_only_what_is_raised_is_replaced():
    assert try_read(examples_in, np.ones((4, 2)), otherwise=1) == 4
    assert try_read(examples_in, {1: 2, "a": 3}, otherwise=1) == 1
    with pytest.raises(KeyboardInterrupt):
        try_read(interrupted, otherwise=1)


def interrupted():
    raise KeyboardInterrupt
