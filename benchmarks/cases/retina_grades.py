# cause: none
"""Grade photographs of retinas; a network that learnt vessels before is tuned further."""

import time

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

SIDE, GRADES, BATCH = 64, 4, 32
EPOCHS, WARM_UP = 60, 3


def photograph(count, seed):
    """Orange discs with a bright spot; the grade is how many dark lesions there are."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:SIDE, :SIDE]
    disc = ((yy - 32) ** 2 + (xx - 32) ** 2 < 900).astype("float32")
    pictures = rng.normal(0, 0.05, (count, SIDE, SIDE, 3)).astype("float32")
    pictures += disc[..., None] * np.array([0.8, 0.4, 0.2], "float32")
    grades = rng.integers(0, GRADES, count)
    for picture, grade in zip(pictures, grades):
        for _ in range(3 * grade):
            y, x = rng.integers(14, SIDE - 14, 2)
            picture[y - 2 : y + 2, x - 2 : x + 2] *= 0.4
    return pictures, grades.astype("int32")


def build_backbone():
    pictures = keras.Input((SIDE, SIDE, 3))
    x = pictures
    for filters in (16, 32, 64):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(x)
    return keras.Model(pictures, layers.GlobalAveragePooling2D()(x), name="backbone")


def build_grader(backbone):
    pictures = keras.Input((SIDE, SIDE, 3))
    x = layers.Dropout(0.3)(backbone(pictures))
    return keras.Model(pictures, layers.Dense(GRADES)(x))


def augment(pictures):
    """Eyes come left and right, and cameras differ in their exposure."""
    pictures = tf.image.random_flip_left_right(pictures)
    shape = (tf.shape(pictures)[0], 1, 1, 1)
    return pictures * tf.random.uniform(shape, 0.9, 1.1)


class Tuner:
    def __init__(self, model, steps):
        self.model = model
        rate = keras.optimizers.schedules.CosineDecay(
            1e-5, steps * EPOCHS, warmup_target=5e-4, warmup_steps=steps * WARM_UP
        )
        self.optimizer = keras.optimizers.AdamW(rate, weight_decay=1e-4)
        self.optimizer.build(model.trainable_variables)
        self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.mean, self.right = keras.metrics.Mean(), keras.metrics.Mean()

    @tf.function
    def step(self, pictures, grades):
        with tf.GradientTape() as tape:
            logits = self.model(augment(pictures), training=True)
            loss = self.loss(grades, logits)
        variables = self.model.trainable_variables
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 5.0)
        self.optimizer.apply_gradients(zip(gradients, variables))
        self.mean.update_state(loss)

    @tf.function
    def judge(self, pictures, grades):
        guessed = tf.argmax(self.model(pictures), axis=1, output_type=tf.int32)
        self.right.update_state(tf.cast(guessed == grades, tf.float32))


def main():
    pictures, grades = photograph(1280, seed=1)
    training = tf.data.Dataset.from_tensor_slices((pictures, grades))
    training = training.shuffle(1280).batch(BATCH, drop_remainder=True).prefetch(2)
    testing = tf.data.Dataset.from_tensor_slices(photograph(128, seed=2)).batch(BATCH)
    tuner = Tuner(build_grader(build_backbone()), len(pictures) // BATCH)
    for epoch in range(1, EPOCHS + 1):
        began = time.perf_counter()
        for number, (batch, marks) in enumerate(training, 1):
            tuner.step(batch, marks)
            if number % 10 == 0:
                print(f"  step {number}: loss {float(tuner.mean.result()):.3f}")
        for batch, marks in testing:
            tuner.judge(batch, marks)
        loss, right = float(tuner.mean.result()), float(tuner.right.result())
        tuner.mean.reset_state()
        tuner.right.reset_state()
        took = time.perf_counter() - began
        print(f"epoch {epoch}: loss {loss:.3f}, accuracy {right:.3f}, {took:.1f} s")


if __name__ == "__main__":
    main()
