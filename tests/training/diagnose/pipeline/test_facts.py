import tensorflow as tf

from perfkit.training.diagnose.pipeline.facts import pipeline_facts
from perfkit.training.diagnose.training import Training


def test_stages_that_cannot_be_read_are_unknown_and_end_nothing():
    def refused(number):
        return tf.debugging.check_numerics(1.0 / tf.cast(number, tf.float32), "zero")

    numbers = tf.data.Dataset.range(9).map(refused)
    assert "missing" in pipeline_facts(Training(None, numbers.batch(2)))
