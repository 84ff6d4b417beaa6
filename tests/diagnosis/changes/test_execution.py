import keras
import pytest
import tensorflow as tf

from perfkit.diagnosis.changes import model
from perfkit.diagnosis.epochs import Epochs
from perfkit.diagnosis.facts import facts_of
from perfkit.diagnosis.training import Training
from tests.diagnosis.changes.offered import named
from tests.diagnosis.fits import BATCH, batches, training, trial


def test_no_more_steps_are_made_at_a_time_than_an_epoch_has():
    assert "16 steps at a time" in named(model.execution)
    assert named(model.execution, steps=6)["6 steps at a time"].steps == 6
    assert not any("at a time" in name for name in named(model.execution, steps=1))


def test_an_eager_training_is_tried_as_a_graph_and_in_no_other_way():
    assert list(named(model.execution, eager=True)) == ["graph"]


@pytest.fixture
def eager_functions():
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def test_eager_steps_are_seen_and_undone_whoever_asked_for_them(eager_functions):
    made = training(batches(2))
    assert facts_of(made).eager
    model.as_graph(made)
    assert not facts_of(made).eager


class Seeing(keras.callbacks.Callback):
    def __init__(self, clock):
        super().__init__()
        self.clock, self.begun, self.ended = clock, [], []

    def on_train_batch_begin(self, batch, logs=None):
        self.begun.append(batch)

    def on_train_batch_end(self, batch, logs=None):
        self.clock.now += 0.03
        self.ended.append(batch)


def test_callbacks_see_every_step_of_an_execution(clock):
    seeing = Seeing(clock)

    def making():
        made = training(batches(6), callbacks=[seeing])
        model.many_steps(made, steps=4, epoch=6)
        return made

    trial(making, Epochs(batch=BATCH, steps=6, examples=6 * BATCH), clock, 5)
    assert seeing.ended[:12] == [*range(6), *range(6)]
    assert seeing.begun[:12] == [*range(6), *range(6)]


def test_a_step_that_is_traced_already_is_traced_anew():
    made = training(batches(2))
    made.fit([], epochs=1)
    model.compiled(made)
    assert made.model.jit_compile
    assert made.model.train_function is None


def recurrent(**options):
    network = keras.Sequential(
        [
            keras.Input((5, 2)),
            keras.layers.Bidirectional(keras.layers.GRU(3, unroll=True)),
            keras.layers.Dense(1),
        ]
    )
    network.compile("sgd", "mse", **options)
    return network


def test_unrolled_layers_are_seen_and_loop_with_the_same_result():
    data = tf.data.Dataset.from_tensors((tf.ones((4, 5, 2)), tf.ones(4)))
    made = Training(recurrent(), data)
    assert len(facts_of(made).unrolled) == 2
    before = made.model.predict(data, verbose=0)
    change = named(model.execution, unrolled=facts_of(made).unrolled)["not unrolled"]
    change.apply(made)
    assert facts_of(made).unrolled == ()
    assert abs(made.model(tf.ones((4, 5, 2))) - before).numpy().max() < 1e-6
