"""The plan of a pipeline while it runs, and of one that is driven."""

import tensorflow as tf

from perfkit.questions.shared import anatomy
from perfkit.training.diagnose.pipeline.facts import (
    driven_plan,
    limited,
    pipeline_facts,
    tells_too_little,
)
from perfkit.training.diagnose.training import Training


def test_stages_that_cannot_be_read_are_unknown_and_end_nothing():
    def refused(number):
        return tf.debugging.check_numerics(1.0 / tf.cast(number, tf.float32), "zero")

    numbers = tf.data.Dataset.range(9).map(refused)
    assert "missing" in pipeline_facts(Training(None, numbers.batch(2)))


def made(examples=50):
    for number in range(examples):
        # So long that nothing which delays a stage in passing takes more.
        yield sum(range(400_000)) + number


def test_a_plan_without_its_source_names_nothing_that_limits():
    spec = tf.TensorSpec((), tf.int64)
    data = tf.data.Dataset.from_generator(made, output_signature=spec)
    data = data.map(lambda x: x * 2).batch(4)
    driven = driven_plan(data)
    assert driven["limits"] == "Python generator"
    # It has none that was left out.
    assert "without" not in driven
    iterator = iter(data)
    for _ in iterator:
        pass
    ended = limited(anatomy.plan(iterator))
    assert tells_too_little(ended)
    assert ended["limits"] == ""
