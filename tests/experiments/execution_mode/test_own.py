"""The lines that a reader is shown, and a step that a reader has written."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.experiments.execution_mode import ExecutionMode, execution_with, ways
from perfkit.experiments.execution_mode.ways import WAYS
from perfkit.experiments.shared import loops
from perfkit.experiments.shared.loops import Job
from perfkit.measure.tick import REFUSED

JOB = Job("tiny-dense", 8, epoch=10)


def typed(way, job):
    """How far the weights move that are trained by the lines a reader is shown."""
    network = job.network()
    before = ways._weights(network)
    features, labels = job.examples(2 * job.batch - 1)
    scope = {"tf": tf, "keras": keras, "model": network, "steps": job.steps}
    scope |= {"batches": job.batches(way.feed), "loss_of": loops.loss_function()}
    scope |= {"loss": scope["loss_of"], "epochs": 1, "folder": "."}
    scope["optimizer"] = loops.optimizer_for(network)
    scope["held_back"] = job.first(1).batches()
    # Batches of other sizes are handed over, as endless as they are measured.
    code = [li for li in way.code.splitlines() if not li.startswith("batches = ")]
    exec("\n".join(code), scope)
    assert features.shape[0] == labels.shape[0]
    return ways._weights(network) - before


@pytest.mark.parametrize("name", [n for n in WAYS if n != "histograms"])
def test_the_lines_that_are_shown_learn_what_is_measured(name, capsys):
    way, short = WAYS[name], JOB.first(ways.STEPS)
    wanted = ways.expected(short, way.feed)
    moved = typed(way, short)
    capsys.readouterr()
    assert np.linalg.norm(moved - wanted) < 0.01 * np.linalg.norm(wanted)


@pytest.mark.parametrize("way", WAYS.values(), ids=lambda way: way.name)
def test_what_costs_time_has_lines_to_write_instead(way):
    assert bool(way.fix()) == bool(way.do and way.kind != "mode")
    assert way.fix() != way.lines


def right(model, optimizer, loss_of):
    @tf.function
    def step(features, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(features, training=True))
        slopes = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(slopes, model.trainable_variables)

    return step


def idle(model, optimizer, loss_of):
    return lambda features, labels: loss_of(labels, model(features))


def twice(model, optimizer, loss_of):
    step = right(model, optimizer, lambda labels, given: 2 * loss_of(labels, given))
    return step


def test_a_step_of_ones_own_that_learns_the_same_is_timed():
    assert ways.why_not(right, JOB) == ""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda *given: None, "still to be written"),
        (idle, "its weights are 100 % of the way"),
        (twice, "does not learn what the others learn"),
        (lambda *given: 1 / 0, "raised ZeroDivisionError"),
        (lambda model: None, "raised TypeError"),
    ],
)
def test_a_step_of_ones_own_that_learns_something_else_is_refused(function, why):
    assert why in ways.why_not(function, JOB)


def test_it_is_one_more_way_and_a_wrong_one_leaves_the_others():
    asked = execution_with(idle, arms="eager loop,tf.function")
    assert list(asked.variants()) == ["eager loop", "yours", "tf.function"]
    assert asked.parameters == ExecutionMode(arms="eager loop,tf.function").parameters
    *_, told = asked.prepare()
    assert told.name == REFUSED
    assert list(told.value) == ["yours"]
