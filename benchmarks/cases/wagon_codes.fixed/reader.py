"""The net that reads a strip, its loss, and the measure of its errors."""

import keras
import tensorflow as tf
from keras import layers


def build(width, height, signs):
    strip = keras.Input((width, height, 1))
    x = layers.Conv2D(24, 3, padding="same", activation="relu")(strip)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(48, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Reshape((width // 4, height // 4 * 48))(x)
    x = layers.Dense(64, activation="relu")(x)
    x = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(x)
    return keras.Model(strip, layers.Dense(signs + 1)(x))  # the last one is the blank


def steps_of(logits):
    return tf.fill([tf.shape(logits)[0]], tf.shape(logits)[1])


def ctc(codes, logits):
    codes = tf.cast(codes, tf.int32)
    lengths = tf.math.count_nonzero(codes >= 0, axis=1, dtype=tf.int32)
    return tf.nn.ctc_loss(
        labels=tf.maximum(codes, 0),
        logits=logits,
        label_length=lengths,
        logit_length=steps_of(logits),
        logits_time_major=False,
        blank_index=-1,
    )


class ReadingErrors(keras.metrics.Metric):
    """Wrong, missing and superfluous signs, per sign of the true code."""

    def __init__(self, name="errors", **options):
        super().__init__(name=name, **options)
        self.wrong = self.add_weight(name="wrong", initializer="zeros")
        self.strips = self.add_weight(name="strips", initializer="zeros")

    def update_state(self, codes, logits, sample_weight=None):
        (read,), _ = tf.nn.ctc_greedy_decoder(
            tf.transpose(logits, (1, 0, 2)), steps_of(logits)
        )
        read = tf.SparseTensor(read.indices, read.values + 1, read.dense_shape)
        true = tf.sparse.from_dense(tf.cast(codes, tf.int64) + 1)
        self.wrong.assign_add(tf.reduce_sum(tf.edit_distance(read, true)))
        self.strips.assign_add(tf.cast(tf.shape(codes)[0], tf.float32))

    def result(self):
        return self.wrong / tf.maximum(self.strips, 1)
