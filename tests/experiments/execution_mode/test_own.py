"""The lines that a reader is shown, and a step that a reader has written."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.experiments.execution_mode import ExecutionMode, execution_with, variants
from perfkit.experiments.execution_mode.variants import VARIANTS
from perfkit.experiments.shared import loops
from perfkit.experiments.shared.loops import Job
from perfkit.measure.tick import REFUSED

JOB = Job("tiny-dense", 8, epoch=10)


def typed(method, job):
    """How far the weights move that are trained by the lines a reader is shown."""
    network = job.network()
    before = variants._weights(network)
    features, labels = job.examples(2 * job.batch - 1)
    scope = {"tf": tf, "keras": keras, "model": network, "steps": job.steps}
    scope |= {"batches": job.batches(method.feed), "loss_of": loops.loss_function()}
    scope |= {"loss": scope["loss_of"], "epochs": 1, "folder": "."}
    scope["optimizer"] = loops.optimizer_for(network)
    scope["held_back"] = job.first(1).batches()
    # Batches of other sizes are handed over, as endless as they are measured.
    code = [li for li in method.code.splitlines() if not li.startswith("batches = ")]
    exec("\n".join(code), scope)
    assert features.shape[0] == labels.shape[0]
    return variants._weights(network) - before


@pytest.mark.parametrize("name", [n for n in VARIANTS if n != "histograms"])
def test_the_lines_that_are_shown_learn_what_is_measured(name, capsys):
    method, short = VARIANTS[name], JOB.first(variants.STEPS)
    wanted = variants.expected(short, method.feed)
    moved = typed(method, short)
    capsys.readouterr()
    assert np.linalg.norm(moved - wanted) < 0.01 * np.linalg.norm(wanted)


@pytest.mark.parametrize("method", VARIANTS.values(), ids=lambda method: method.name)
def test_what_costs_time_has_lines_to_write_instead(method):
    assert bool(method.fix()) == bool(method.do and method.kind != "mode")
    assert method.fix() != method.lines


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
    assert variants.why_not(right, JOB) == ""


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
    assert why in variants.why_not(function, JOB)


def test_it_is_one_more_way_and_a_wrong_one_leaves_the_others():
    asked = execution_with(idle, variants="eager loop,tf.function")
    assert list(asked.make_variants()) == ["eager loop", "yours", "tf.function"]
    assert (
        asked.parameters == ExecutionMode(variants="eager loop,tf.function").parameters
    )
    *_, told = asked.prepare()
    assert told.name == REFUSED
    assert list(told.value) == ["yours"]
