import dataclasses
import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.engine.trial import REFUSED
from perfkit.questions import execution_mode, experiment
from perfkit.questions.execution_mode import VARIANTS, why_not
from perfkit.questions.shared import loops
from perfkit.questions.shared.loops import Job

JOB = Job("tiny-dense", 8)
SHORT = JOB.first(execution_mode.STEPS)


def typed(method, job):
    """How far the weights move that are trained by the lines a reader is shown."""
    network = job.network()
    before = execution_mode._weights(network)
    scope = {"tf": tf, "keras": keras, "model": network, "steps": job.steps}
    scope |= {"batches": job.batches(), "loss_of": loops.loss_function()}
    scope |= {"loss": scope["loss_of"]}
    scope["optimizer"] = loops.optimizer_for(network)
    # Batches of other sizes are handed over, as endless as they are measured.
    code = [li for li in method.code.splitlines() if not li.startswith("batches = ")]
    exec("\n".join(code), scope)
    return execution_mode._weights(network) - before


wanted = functools.cache(execution_mode.expected)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_way_and_its_shown_lines_learn_what_a_plain_loop_learns(name):
    method = VARIANTS[name]
    job = dataclasses.replace(SHORT, feed=method.feed)
    far = wanted(job)
    assert execution_mode._difference(method, job, far) == ""
    assert np.linalg.norm(typed(method, job) - far) < 0.01 * np.linalg.norm(far)
    # What costs time has lines to write instead.
    assert bool(method.fix()) == bool(method.do)
    assert method.fix() != method.read()


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


def hasty(model, optimizer, loss_of):
    """Leaves out one step of eight."""
    step, steps = right(model, optimizer, loss_of), itertools.count()
    return lambda features, labels: next(steps) == 3 or step(features, labels)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (right, ""),
        (lambda *given: None, "write its function first"),
        (idle, "after 8 steps its weights are 100 % of the way"),
        (hasty, "does not learn what the others learn: after 8 steps its weights"),
        (lambda *given: 1 / 0, "raised ZeroDivisionError"),
        (lambda model: None, "raised TypeError"),
    ],
)
def test_a_step_of_ones_own_is_refused_unless_it_learns_the_same(function, why):
    found = why_not(function, JOB)
    assert why in found
    assert bool(found) == bool(why)


def test_a_wrong_one_leaves_the_others():
    asked = experiment("execution-mode", mine=idle, variants="eager loop,tf.function")
    assert list(asked.make_variants()) == ["eager loop", "yours", "tf.function"]
    *_, told = asked.prepare()
    assert (told.name, list(told.value)) == (REFUSED, ["yours"])


def test_a_way_that_cannot_run_is_left_to_say_so_in_its_trial():
    def broken(job, network):
        raise tf.errors.UnimplementedError(None, None, "no compiler for this device")
        yield

    guilty = dataclasses.replace(VARIANTS["eager loop"], run=broken)
    assert execution_mode.differences([guilty], JOB) == {}
