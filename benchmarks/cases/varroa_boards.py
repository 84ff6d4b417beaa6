# cause: none, this training is healthy
# fix: none
# expect: nothing to gain; nearly all the time goes into the convolutions
# form: PNG files in a temporary folder, tf.data with cache and prefetch, residual U-Net, fit
#       with callbacks, main()
# report: none
# lines: none
"""Count varroa mites on photographs of the bottom boards of beehives."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from PIL import Image

SIDE = 96
BOARDS = 420
BATCH = 12
MITE = np.array([110, 52, 40], "float32")


def photograph(folder, seed=14):
    """Boards with debris and mites, and a density map that sums up to their number."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:SIDE, :SIDE]
    for i in range(BOARDS):
        board = rng.normal(205, 14, (SIDE, SIDE, 3)) - rng.uniform(0, 40)
        density = np.zeros((SIDE, SIDE))
        for _ in range(rng.integers(2, 14)):  # wax
            y, x = rng.uniform(0, SIDE, 2)
            board[((row - y) / 3) ** 2 + (column - x) ** 2 < 4] = (190, 160, 90)
        for _ in range(rng.poisson(6)):
            y, x = rng.uniform(4, SIDE - 4, 2)
            board[((row - y) / 2.2) ** 2 + ((column - x) / 3.1) ** 2 < 1] = MITE
            bump = np.exp(-((row - y) ** 2 + (column - x) ** 2) / 8.0)
            density += bump / bump.sum()
        Image.fromarray(np.clip(board, 0, 255).astype("uint8")).save(folder / f"{i:04d}.png")
        np.save(folder / f"{i:04d}.npy", density.astype("float32"))
    return sorted(str(path) for path in folder.glob("*.png"))


def densities(files):
    return np.stack([np.load(Path(file).with_suffix(".npy")) for file in files])[..., None]


def boards(files, training):
    def decode(file, density):
        return tf.io.decode_png(tf.io.read_file(file), channels=3), density

    def scale(photo, density):
        return tf.cast(photo, tf.float32) / 255.0, 100.0 * density

    def flip(photo, density):
        both = tf.concat([photo, density], axis=-1)
        both = tf.image.random_flip_left_right(both)
        both = tf.image.random_flip_up_down(both)
        return both[..., :3], both[..., 3:]

    data = tf.data.Dataset.from_tensor_slices((files, densities(files)))
    data = data.map(decode, num_parallel_calls=tf.data.AUTOTUNE).cache()
    if training:
        data = data.shuffle(len(files))
    data = data.map(scale, num_parallel_calls=tf.data.AUTOTUNE)
    if training:
        data = data.map(flip, num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(BATCH).prefetch(tf.data.AUTOTUNE)


def residual(x, width):
    way = layers.Conv2D(width, 1)(x)
    x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    x = layers.Conv2D(width, 3, padding="same")(x)
    return layers.ReLU()(layers.Add()([x, way]))


def counter():
    photo = keras.Input((SIDE, SIDE, 3))
    fine = residual(photo, 12)
    middle = residual(layers.MaxPooling2D()(fine), 24)
    x = residual(layers.MaxPooling2D()(middle), 48)
    x = layers.Conv2DTranspose(24, 2, strides=2)(x)
    x = residual(layers.Concatenate()([x, middle]), 24)
    x = layers.Conv2DTranspose(12, 2, strides=2)(x)
    x = residual(layers.Concatenate()([x, fine]), 12)
    return keras.Model(photo, layers.Conv2D(1, 1, name="density")(x))


class MitesPerBoard(keras.metrics.Metric):
    """Mean error of the number of mites on a board."""

    def __init__(self, name="mites", **kwargs):
        super().__init__(name=name, **kwargs)
        self.error = self.add_weight(name="error", initializer="zeros")
        self.boards = self.add_weight(name="boards", initializer="zeros")

    def update_state(self, truth, guess, sample_weight=None):
        gap = tf.reduce_sum(truth - guess, axis=(1, 2, 3)) / 100.0
        self.error.assign_add(tf.reduce_sum(tf.abs(gap)))
        self.boards.assign_add(tf.cast(tf.shape(gap)[0], tf.float32))

    def result(self):
        return self.error / self.boards


def main():
    keras.utils.set_random_seed(14)
    with tempfile.TemporaryDirectory(prefix="varroa_") as folder:
        files = photograph(Path(folder))
        train, held_out = boards(files[:384], True), boards(files[384:], False)
        model = counter()
        model.compile(
            optimizer=keras.optimizers.Adam(5e-4), loss="mse", metrics=[MitesPerBoard()]
        )
        model.fit(
            train,
            validation_data=held_out,
            epochs=30,
            callbacks=[
                keras.callbacks.ReduceLROnPlateau(patience=3, factor=0.5),
                keras.callbacks.ModelCheckpoint(
                    str(Path(folder) / "best.weights.h5"),
                    save_best_only=True,
                    save_weights_only=True,
                ),
            ],
            verbose=2,
        )


if __name__ == "__main__":
    main()
