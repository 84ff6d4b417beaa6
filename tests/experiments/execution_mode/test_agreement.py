import dataclasses

import keras
import pytest
import tensorflow as tf

from perfkit.experiments.execution_mode import variants
from perfkit.experiments.execution_mode.variants import VARIANTS
from perfkit.experiments.shared.loops import Job, step_of
from perfkit.measure.tick import READY

JOB = Job("tiny-dense", 8, epoch=10)


@pytest.mark.parametrize(
    "name", [name for name, one in VARIANTS.items() if not one.missing()]
)
def test_every_way_learns_what_a_plain_loop_learns(name, capsys):
    assert variants.differences([VARIANTS[name]], JOB) == {}
    capsys.readouterr()


def guilty(run):
    return dataclasses.replace(VARIANTS["eager loop"], name="guilty", run=run)


def forgetful(job, network):
    """Computes every loss and updates nothing."""
    yield READY
    for features, _ in job.batches():
        network(features)
        yield len(features)


def hasty(job, network):
    """Leaves out one step of eight."""
    step = step_of(network)
    for number, (features, labels) in enumerate(job.batches()):
        if number != 3:
            step(features, labels)
        yield len(labels)


def eager_learner(job, network):
    """Learns at twice the rate."""
    network.compile(
        optimizer=keras.optimizers.SGD(0.02),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    yield READY
    network.fit(job.batches(), steps_per_epoch=job.steps, verbose=0, shuffle=False)
    yield 1


@pytest.mark.parametrize(
    ("run", "far"), [(forgetful, "100 %"), (hasty, ""), (eager_learner, "")]
)
def test_a_way_that_learns_something_else_is_named(run, far):
    found = variants.differences([VARIANTS["fit"], guilty(run)], JOB)
    assert list(found) == ["guilty"]
    assert f"after 8 steps its weights are {far}" in found["guilty"]


def test_a_way_that_cannot_run_is_left_to_say_so_in_its_trial():
    def broken(job, network):
        raise tf.errors.UnimplementedError(None, None, "no compiler for this device")
        yield

    assert variants.differences([guilty(broken)], JOB) == {}
