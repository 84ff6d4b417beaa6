"""CTC loss and the character error rate."""

import keras
import tensorflow as tf


def as_sparse(texts):
    shifted = tf.sparse.from_dense(tf.cast(texts, tf.int32) + 1)
    return shifted.with_values(shifted.values - 1)


def steps_of(logits):
    return tf.fill([tf.shape(logits)[0]], tf.shape(logits)[1])


def ctc_loss(texts, logits):
    return tf.nn.ctc_loss(
        labels=as_sparse(texts),
        logits=logits,
        label_length=None,
        logit_length=steps_of(logits),
        logits_time_major=False,
        blank_index=-1,
    )


def read(logits):
    """The most likely text of each plate."""
    by_time = tf.transpose(logits, [1, 0, 2])
    texts, _ = tf.nn.ctc_greedy_decoder(by_time, steps_of(logits))
    return texts[0]


class CharErrorRate(keras.metrics.Metric):
    """Wrong letters (edit distance) for each letter on the plates."""

    def __init__(self, name="cer", **kwargs):
        super().__init__(name=name, **kwargs)
        self.wrong = self.add_weight(name="wrong", initializer="zeros")
        self.letters = self.add_weight(name="letters", initializer="zeros")

    def update_state(self, texts, logits, sample_weight=None):
        truth = tf.cast(as_sparse(texts), tf.int64)
        distance = tf.edit_distance(read(logits), truth, normalize=False)
        self.wrong.assign_add(tf.reduce_sum(distance))
        self.letters.assign_add(tf.cast(tf.size(texts), tf.float32))

    def result(self):
        return self.wrong / tf.maximum(self.letters, 1.0)
