# song_teacher.py, fixed by hand: the teacher's variables are moved in place
"""Guess the genre of playlists, most of them without a label, by a mean teacher."""

import time

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

SONGS, LENGTH, GENRES = 40000, 30, 15


def make_playlists(count, seed):
    """Playlists of mostly one genre; genres have songs of their own."""
    rng = np.random.default_rng(seed)
    genres = rng.integers(GENRES, size=count)
    favourites = rng.zipf(1.3, (count, LENGTH)) % (SONGS // GENRES)
    own = genres[:, None] + GENRES * favourites
    other = rng.integers(SONGS, size=(count, LENGTH))
    songs = np.where(rng.random((count, LENGTH)) < 0.3, own % SONGS, other)
    return songs.astype("int32"), genres.astype("int32")


def build_model():
    songs = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(SONGS, 96)(songs)
    x = layers.Dropout(0.2)(x)
    x = layers.Conv1D(64, 3, activation="relu")(x)
    x = layers.GlobalMaxPooling1D()(x)
    x = layers.Dense(64, activation="relu")(x)
    return keras.Model(songs, layers.Dense(GENRES)(x))


class MeanTeacher:
    def __init__(self, decay=0.99, weight=0.5):
        self.student = build_model()
        self.teacher = build_model()
        self.teacher.set_weights(self.student.get_weights())
        self.decay = decay
        self.weight = weight
        self.optimizer = keras.optimizers.SGD(0.3)
        self.entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(self, songs, genres, unknown):
        aim = tf.nn.softmax(self.teacher(unknown, training=False))
        with tf.GradientTape() as tape:
            loss = self.entropy(genres, self.student(songs, training=True))
            guess = tf.nn.softmax(self.student(unknown, training=True))
            loss += self.weight * tf.reduce_mean(tf.reduce_sum((guess - aim) ** 2, 1))
        variables = self.student.trainable_variables
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables))
        return loss

    @tf.function
    def update_teacher(self):
        pairs = zip(self.teacher.weights, self.student.weights)
        for teacher, student in pairs:
            teacher.assign_sub((1 - self.decay) * (teacher - student))

    def train(self, dataset, epochs):
        for epoch in range(epochs):
            start, losses = time.time(), keras.metrics.Mean()
            for (songs, genres), unknown in dataset:
                losses.update_state(self.step(songs, genres, unknown))
                self.update_teacher()
            print(
                f"epoch {epoch + 1}: loss {float(losses.result()):.4f}, "
                f"{time.time() - start:.1f} s"
            )

    def accuracy(self, songs, genres):
        guess = tf.argmax(self.teacher(songs, training=False), axis=1)
        return float(np.mean(guess.numpy() == genres))


def main():
    keras.utils.set_random_seed(2)
    known = tf.data.Dataset.from_tensor_slices(make_playlists(1600, seed=1))
    unknown = tf.data.Dataset.from_tensor_slices(make_playlists(6400, seed=2)[0])
    known = known.shuffle(1600).repeat().batch(16)
    unknown = unknown.shuffle(6400).batch(32)
    trainer = MeanTeacher()
    trainer.train(tf.data.Dataset.zip((known, unknown)).prefetch(2), epochs=6)
    print("accuracy of the teacher:", trainer.accuracy(*make_playlists(2000, seed=3)))


if __name__ == "__main__":
    main()
