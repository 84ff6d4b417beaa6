"""Train a small network that redraws photographs in the manner of a mosaic."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIDE = 64
EPOCHS = 60


def lay_mosaic(side=400, stones=400, seed=5):
    """The picture whose manner is wanted: each pixel has the colour of the nearest stone."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0, side, (stones, 2))
    colours = rng.uniform(0, 1, (stones, 3))
    yy, xx = np.mgrid[:side, :side]
    nearest, least = np.zeros((side, side), int), np.full((side, side), np.inf)
    for stone, (y, x) in enumerate(centers):
        away = (yy - y) ** 2 + (xx - x) ** 2
        nearest = np.where(away < least, stone, nearest)
        least = np.minimum(away, least)
    return colours[nearest].astype("float32")


def take_photos(count, seed=6):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:SIDE, :SIDE] / SIDE
    photos = np.empty((count, SIDE, SIDE, 3), "float32")
    for photo in photos:
        a, b, c = rng.uniform(1, 9, 3)
        waves = np.sin(a * xx + b * yy) + np.cos(c * (xx - 0.5) ** 2 + a * yy)
        photo[:] = 0.5 + 0.25 * waves[..., None] * rng.uniform(-1, 1, 3)
    return photos


def build_eyes():
    """A fixed network; what its layers see of two pictures tells how alike these are."""
    x = inputs = keras.Input((None, None, 3))
    seen = []
    for filters in (16, 32, 64):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        seen.append(x)
        x = layers.AveragePooling2D(2)(x)
    eyes = keras.Model(inputs, seen)
    eyes.trainable = False
    return eyes


def build_painter():
    inputs = keras.Input((None, None, 3))
    x = layers.Conv2D(12, 5, padding="same", activation="relu")(inputs)
    x = layers.Conv2D(24, 3, strides=2, padding="same", activation="relu")(x)
    for _ in range(2):
        more = layers.Conv2D(24, 3, padding="same", activation="relu")(x)
        x = layers.Add()([x, layers.Conv2D(24, 3, padding="same")(more)])
    x = layers.UpSampling2D()(x)
    x = layers.Conv2D(12, 3, padding="same", activation="relu")(x)
    return keras.Model(inputs, layers.Conv2D(3, 3, padding="same", activation="sigmoid")(x))


def gram(seen):
    size = tf.cast(tf.shape(seen)[1] * tf.shape(seen)[2], tf.float32)
    return tf.einsum("byxc,byxd->bcd", seen, seen) / size


class StyleTransfer(keras.Model):
    def __init__(self, style, style_weight=5.0, smooth_weight=1e-3):
        super().__init__()
        self.eyes, self.painter = build_eyes(), build_painter()
        self.wanted = [gram(layer) for layer in self.eyes(tf.constant(style[None]))]
        self.style_weight, self.smooth_weight = style_weight, smooth_weight
        self.trackers = [keras.metrics.Mean(name=name) for name in ("content", "style", "loss")]

    @property
    def metrics(self):
        return self.trackers

    def style_loss(self, seen):
        pairs = zip(seen, self.wanted)
        return tf.add_n([tf.reduce_mean((gram(s) - w) ** 2) for s, w in pairs])

    def train_step(self, photos):
        target = self.eyes(photos)[1]
        with tf.GradientTape() as tape:
            painted = self.painter(photos, training=True)
            seen = self.eyes(painted)
            content = tf.reduce_mean((seen[1] - target) ** 2)
            style = self.style_loss(seen)
            smooth = tf.reduce_mean(tf.image.total_variation(painted))
            loss = content + self.style_weight * style + self.smooth_weight * smooth
        gradients = tape.gradient(loss, self.painter.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.painter.trainable_variables))
        for tracker, value in zip(self.trackers, (content, style, loss)):
            tracker.update_state(value)
        return {tracker.name: tracker.result() for tracker in self.trackers}


class Gallery(keras.callbacks.Callback):
    def __init__(self, photos):
        super().__init__()
        self.photos = photos

    def on_epoch_end(self, epoch, logs=None):
        painted = self.model.painter(self.photos, training=False).numpy()
        row = np.concatenate([np.concatenate(self.photos, axis=1), np.concatenate(painted, axis=1)])
        keras.utils.save_img(f"mosaic_{epoch % 5}.png", row)


if __name__ == "__main__":
    keras.utils.set_random_seed(11)
    photos = take_photos(400)
    data = tf.data.Dataset.from_tensor_slices(photos[4:]).shuffle(400).batch(4).prefetch(2)
    model = StyleTransfer(lay_mosaic())
    model.compile(optimizer=keras.optimizers.Adam(1e-3))
    model.fit(data, epochs=EPOCHS, callbacks=[Gallery(photos[:4])], verbose=2)
