import sys
import types

import pytest

from perfkit.engine.trial import Pause, Tick
from perfkit.errors import BadParameterError
from perfkit.questions.shared.loops import Left
from perfkit.training.diagnose import steps
from perfkit.training.diagnose.causes import applicable
from perfkit.training.diagnose.causes.surroundings import one_iterator
from perfkit.training.diagnose.epochs import EPOCH_END, Epochs
from perfkit.training.diagnose.facts import facts_of_loop
from perfkit.training.diagnose.loop import LoopCalls, Looping


class Turnstile:
    """Writes down what is told, and lets nobody in after so much of it."""

    def __init__(self, most):
        self.told, self.most = [], most

    def tell(self, what):
        self.told.append(what)
        if len(self.told) >= self.most:
            raise Left


def looped(function, epochs, most_told=12, **options):
    """Run a loop until so much is told; returns that, and the one who listened."""
    turnstile, looping = Turnstile(most_told), Looping(epochs, **options)
    with pytest.raises(Left):
        looping.make_training(function, turnstile)
    return turnstile.told, looping


def facts_seen(function):
    return facts_of_loop(looped(function, Epochs(batch=1), calls=LoopCalls())[1])


@pytest.fixture(autouse=True)
def every_step_is_a_tick(monkeypatch):
    monkeypatch.setattr("perfkit.training.diagnose.loop.TICK_S", 0.0)
    monkeypatch.setattr("perfkit.training.diagnose.loop.wait", lambda: None)


def test_a_loop_without_epochs_goes_on_with_the_data_anew():
    seen = []

    def function():
        for batch in steps([1, 2, 3]):
            seen.append(batch)
        seen.append("past the loop")

    told, looping = looped(function, Epochs(batch=8))
    assert seen == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]
    assert told == [Pause("set-up"), *[Tick(8)] * 11]
    assert not looping.repeated
    assert looping.length == 3


def test_epochs_end_early_and_the_last_one_does_not_end():
    seen = []

    def make_epoch(number):
        for batch in steps(range(100)):
            seen.append((number, batch))
        seen.append("validation")

    def function():
        for number in range(3):
            make_epoch(number)
        seen.append("past the loop")

    epochs = Epochs(batch=8, steps=100, trial_steps=3)
    told, looping = looped(function, epochs, most_told=10)
    assert looping.repeated
    ended = [(0, 0), (0, 1), (0, 2), "validation", (1, 0), (1, 1), (1, 2), "validation"]
    assert seen == [*ended, *((2, batch) for batch in range(7))]
    end = Pause(EPOCH_END, every=800, within=8)
    assert told == [Pause("set-up"), *[Tick(8)] * 2, end, *[Tick(8)] * 6]


def test_a_loop_that_is_left_by_its_own_code_is_run_anew():
    def function():
        for number, _ in enumerate(steps(range(100))):
            if number == 4:
                break

    told, looping = looped(function, Epochs(batch=1), most_told=9)
    assert looping.length == 5
    again = [Pause("set-up"), *[Tick(1)] * 3]
    assert told == [*again, *again, Pause("set-up")]


def test_a_loop_is_run_anew_where_the_batches_end_that_it_draws_itself():
    seen = []

    def function():
        for _ in range(9):
            batches = iter("abc")
            for _ in steps(range(3)):
                seen.append(next(batches))

    assert looped(function, Epochs(batch=1), most_told=22)[1].length == 3
    assert "".join(seen).startswith("abc" * 6)
    with pytest.raises(StopIteration):
        looped(lambda: next(steps([1]) and iter("")), Epochs(batch=1))


def test_a_change_changes_the_data_once_and_for_every_epoch():
    applied, data, seen = [], [1, 2], []

    def tenfold(training):
        batches = list(training.data())
        training.data = lambda: (10 * batch for batch in batches)
        applied.append(training)

    def function():
        for _ in range(5):
            seen.extend(steps(data))

    looped(function, Epochs(batch=1, steps=2), most_told=6, changes=[tenfold])
    assert len(applied) == 1
    assert seen[:4] == [10, 20, 10, 20]


def test_marked_data_are_gone_through_as_they_are():
    marked = steps([1, 2, 3])
    assert [batch for _ in range(2) for batch in marked] == [1, 2, 3] * 2
    assert len(marked) == 3
    assert steps([])


def test_a_loop_without_data_is_refused():
    def function():
        for _ in steps([]):
            pass

    with pytest.raises(BadParameterError, match="made no step"):
        Looping(Epochs(batch=1)).make_training(function, Turnstile(1))


SCRIPT = """
import keras
import tensorflow as tf

weight = tf.Variable(1.0)
traced = []


class Trainer:
    def step(self, batch):
        traced.append("step")
        with tf.GradientTape() as tape:
            loss = self.loss(batch)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    def loss(self, batch):
        return weight * float(batch)


@tf.function
def in_a_graph(batch):
    with tf.GradientTape() as tape:
        loss = weight * 2.0
    return tape.gradient(loss, weight)


def seldom(batch):
    if batch == 1:
        with tf.GradientTape() as tape:
            tape.gradient(weight * 1.0, weight)


class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.layer = keras.layers.Dense(1, kernel_initializer="ones")
        self.ran, self.learnt = [], []

    def call(self, values, training=None):
        self.ran.append(tf.executing_eagerly())
        return self.layer(values)


def with_a_model():
    model, optimizer = Model(), keras.optimizers.SGD(0.1, momentum=0.5)
    models.append(model)
    for batch in steps([[[1.0]], [[2.0]], [[3.0]]]):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(tf.constant(batch), training=True))
        model.learnt.append(float(loss))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))


models = []
data = tf.data.Dataset.range(3)
seen = []


def counting():
    for _ in steps(range(100)):
        pass


def next_batch():
    return next(iter(data))


def drawing_anew():
    for _ in steps(range(100)):
        seen.append(int(next_batch()))


def all_of_it():
    return [int(batch) for batch in data]


def train():
    trainer = Trainer()

    def made_here():
        with tf.GradientTape() as tape:
            return tape.gradient(weight * 1.0, weight)

    for batch in steps([1.0, 2.0, 3.0]):
        [trainer.step(batch) for _ in range(1)]
        in_a_graph(batch)
        seldom(batch)
        made_here()
        with tf.GradientTape() as tape:
            tape.gradient(weight * 1.0, weight)
"""


@pytest.fixture
def script(monkeypatch):
    import keras
    import tensorflow as tf

    # What listens is never taken off again: its process ends.
    for of, name in (
        (tf.GradientTape, "gradient"),
        (keras.Layer, "__call__"),
        (keras.optimizers.Optimizer, "apply"),
        (tf.data.Dataset, "__iter__"),
    ):
        monkeypatch.setattr(of, name, getattr(of, name))
    module = types.ModuleType("a_script")
    monkeypatch.setitem(sys.modules, "a_script", module)
    module.steps = steps
    exec(SCRIPT, module.__dict__)
    return module


def test_what_each_step_of_a_loop_computes_eagerly_is_named_and_made_a_graph(script):
    facts = facts_seen(script.train)
    assert facts.eager_calls == ("a_script:Trainer.step",)
    (change,) = [one for one in applicable(facts)[0] if one.cause == "eager"]
    assert "`Trainer.step`" in change.fix
    script.traced.clear()
    change.apply(None)
    change.apply(None)
    # Python runs while it is traced, which the first call of a graph may do twice.
    looped(script.train, Epochs(batch=1), most_told=9)
    assert len(script.traced) <= 3 * 2
    assert float(script.weight) != 1.0


def test_what_a_loop_computes_itself_runs_its_models_as_graphs_and_learns_the_same(
    script,
):
    facts = facts_seen(script.with_a_model)
    assert (facts.eager_calls, facts.computes) == ((), "layers")
    (change,) = [one for one in applicable(facts)[0] if one.cause == "eager"]
    assert "@tf.function" in change.fix
    change.apply(None)
    change.apply(None)
    looped(script.with_a_model, Epochs(batch=1), most_told=9)
    eager, graph = script.models[0], script.models[-1]
    steps = min(len(eager.learnt), len(graph.learnt))
    assert steps > 2
    assert graph.learnt[:steps] == pytest.approx(eager.learnt[:steps])
    # Keras looks at shapes first; then the first step of the graphs makes weights.
    assert all(eager.ran[1:])
    assert graph.ran[1]
    assert not any(graph.ran[2:])
    assert len(graph.ran) <= 2 + 2


@pytest.mark.parametrize(
    ("loop", "names"), [("counting", set()), ("drawing_anew", {"one iterator"})]
)
def test_a_loop_that_makes_iterators_itself_is_offered_one(script, loop, names):
    facts = facts_seen(getattr(script, loop))
    assert facts.counts
    changes, untested = applicable(facts)
    assert {one.name for one in changes} == names
    assert "input-bound" in untested
    assert facts.iterators == pytest.approx(float(bool(names)), abs=0.2)


def test_one_iterator_goes_on_and_begins_again_at_its_end(script):
    one_iterator(None)
    one_iterator(None)
    looped(script.drawing_anew, Epochs(batch=1), most_told=6)
    assert script.seen == [0, 1, 2, 0, 1, 2]
    assert script.all_of_it() == [0, 1, 2]
