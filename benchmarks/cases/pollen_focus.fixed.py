"""Bring pollen grains under the microscope back into focus."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIDE = 64
GRAINS = 640
BATCH_SIZE = 16
WIDTH = 31
EPOCHS = 80


def draw_grains(count, seed):
    """Bright bodies with spines on a dim, uneven slide."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:SIDE, :SIDE].astype("float32")
    slides = np.empty((count, SIDE, SIDE, 3), "float32")
    for number in range(count):
        y, x = rng.uniform(20, SIDE - 20, 2)
        radius, spines = rng.uniform(9, 17), rng.integers(5, 18)
        angle = np.arctan2(rows - y, columns - x)
        outline = radius * (1 + 0.15 * np.cos(spines * angle))
        body = np.hypot(rows - y, columns - x) < outline
        pattern = 0.7 + 0.3 * np.sin(rows * rng.uniform(0.5, 2)) * np.sin(columns)
        colour = rng.uniform(0.3, 1, 3)
        slides[number] = 0.15 + 0.001 * columns[..., None] * rng.uniform(0, 1)
        slides[number] += (body * pattern)[..., None] * colour
    slides += rng.normal(0, 0.01, slides.shape)
    return np.clip(slides, 0, 1)


def bell(sigma):
    place = tf.range(WIDTH, dtype=tf.float32) - WIDTH // 2
    weights = tf.exp(-0.5 * tf.square(place / sigma))
    return weights / tf.reduce_sum(weights)


def defocus(slides, sigma):
    """The slides as a lens sees them that is sigma pixels out of focus."""
    weights = bell(sigma)
    down = tf.tile(weights[:, None, None, None], [1, 1, 3, 1])
    across = tf.tile(weights[None, :, None, None], [1, 1, 3, 1])
    edge = WIDTH // 2
    slides = tf.pad(slides, [[0, 0], [edge, edge], [edge, edge], [0, 0]], "REFLECT")
    slides = tf.nn.depthwise_conv2d(slides, down, [1, 1, 1, 1], "VALID")
    return tf.nn.depthwise_conv2d(slides, across, [1, 1, 1, 1], "VALID")


def gradient_energy(slides):
    down, across = tf.image.image_gradients(slides)
    return tf.reduce_mean(tf.abs(down) + tf.abs(across))


class Refocuser(keras.Model):
    def __init__(self, network, **kwargs):
        super().__init__(**kwargs)
        self.network = network
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.gain_tracker = keras.metrics.Mean(name="gain")

    @property
    def metrics(self):
        return [self.loss_tracker, self.gain_tracker]

    def call(self, slides, training=False):
        return slides + self.network(slides, training=training)

    def spoil(self, sharp):
        blurred = defocus(sharp, tf.random.uniform([], 1.0, 5.0))
        grain = tf.random.normal(tf.shape(blurred), stddev=0.02)
        return tf.clip_by_value(blurred + grain, 0.0, 1.0)

    def train_step(self, sharp):
        blurred = self.spoil(sharp)
        with tf.GradientTape() as tape:
            restored = self(blurred, training=True)
            loss = tf.reduce_mean(tf.abs(restored - sharp))
            missing = gradient_energy(sharp) - gradient_energy(restored)
            loss += 0.1 * tf.nn.relu(missing)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        before = tf.reduce_mean(tf.abs(blurred - sharp))
        self.loss_tracker.update_state(loss)
        self.gain_tracker.update_state(before - tf.reduce_mean(tf.abs(restored - sharp)))
        return {metric.name: metric.result() for metric in self.metrics}


def network():
    inputs = keras.Input((SIDE, SIDE, 3))
    x = layers.Conv2D(16, 5, strides=2, padding="same", activation="relu")(inputs)
    for _ in range(3):
        y = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
        x = layers.Add()([x, y])
    x = layers.Conv2D(12, 3, padding="same")(x)
    x = layers.Lambda(lambda t: tf.nn.depth_to_space(t, 2), (SIDE, SIDE, 3))(x)
    return keras.Model(inputs, x)


class Report(keras.callbacks.Callback):
    def __init__(self, slides):
        super().__init__()
        self.sharp = slides
        self.blurred = defocus(tf.constant(slides), tf.constant(3.0))

    def on_epoch_end(self, epoch, logs=None):
        restored = self.model(self.blurred, training=False)
        error = tf.reduce_mean(tf.square(restored - self.sharp))
        print(f"  slide kept back: {-10 * np.log10(float(error)):.2f} dB")


if __name__ == "__main__":
    keras.utils.set_random_seed(4)
    grains = draw_grains(GRAINS, seed=4)
    data = tf.data.Dataset.from_tensor_slices(grains[8:]).cache().shuffle(GRAINS)
    data = data.batch(BATCH_SIZE, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    model = Refocuser(network())
    model.compile(optimizer=keras.optimizers.Adam(1e-3))
    model.fit(data, epochs=EPOCHS, callbacks=[Report(grains[:8])], verbose=2)
