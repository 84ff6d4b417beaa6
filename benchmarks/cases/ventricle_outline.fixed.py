# cause: the boundary loss works out the distance maps of the masks (two SciPy distance
#        transforms for each picture and part) in a py_function in each step; the masks
#        never change
# fix: work the maps out once before the training and hand them over with the masks
# expect: about 2.6 times faster a step (measured: 83 ms, fixed 32 ms)
# form: functions and main(), own loss, tf.data from arrays
# report: https://github.com/LIVIAETS/boundary-loss/issues/14 and
#         https://github.com/JunMa11/SegLossOdyssey/issues/42
# lines: 63, 43-53
"""Outline four parts of the heart in MR pictures with Dice and boundary loss."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from scipy.ndimage import distance_transform_edt

SIZE, PARTS = 128, 5
PICTURES = 320
BATCH_SIZE = 16
EPOCHS = 150
BOUNDARY_WEIGHT = 0.01


def load_pictures(seed=2):
    """Pictures of a slice through the heart; part 0 is what lies around it."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:SIZE, :SIZE]
    pictures = np.zeros((PICTURES, SIZE, SIZE, 1), "float32")
    labels = np.zeros((PICTURES, SIZE, SIZE), int)
    for picture, label in zip(pictures, labels):
        cx, cy = rng.uniform(50, 78, 2)
        wide, high = rng.uniform(13, 20, 2)
        for part, (dx, dy, scale) in enumerate(
            [(0, 0, 1.45), (0, 0, 1.0), (-32, 4, 1.0), (8, -34, 0.9)], start=1
        ):
            ring = ((x - cx - dx) / wide) ** 2 + ((y - cy - dy) / high) ** 2
            label[ring < scale**2] = part
        picture[..., 0] = label / PARTS + rng.normal(0, 0.25, label.shape)
    return pictures, np.eye(PARTS, dtype="float32")[labels]


def distance_maps(masks):
    """Signed distance to the edge of each part, negative within it."""
    inside = np.asarray(masks) > 0.5
    maps = np.zeros(inside.shape, "float32")
    for one_map, one in zip(maps, inside):
        for part in range(1, PARTS):
            mask = one[..., part]
            if mask.any():
                outer = distance_transform_edt(~mask)
                one_map[..., part] = outer - distance_transform_edt(mask)
    return maps


def dice_loss(y_true, y_pred):
    both = tf.reduce_sum(y_true * y_pred, axis=[1, 2])
    total = tf.reduce_sum(y_true + y_pred, axis=[1, 2])
    return 1 - tf.reduce_mean((2 * both + 1) / (total + 1))


def boundary_loss(maps, y_pred):
    return tf.reduce_mean(maps * y_pred)


def outline_loss(y_true, y_pred):
    y_true, maps = y_true[..., :PARTS], y_true[..., PARTS:]
    boundary = boundary_loss(maps, y_pred)
    return dice_loss(y_true, y_pred) + BOUNDARY_WEIGHT * boundary


def make_model():
    inputs = keras.Input((SIZE, SIZE, 1))
    half = layers.Conv2D(8, 3, 2, padding="same", activation="relu")(inputs)
    quarter = layers.Conv2D(16, 3, 2, padding="same", activation="relu")(half)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(quarter)
    x = layers.Conv2DTranspose(8, 2, 2, activation="relu")(x)
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(layers.Add()([x, half]))
    x = layers.Conv2DTranspose(8, 2, 2, activation="relu")(x)
    return keras.Model(inputs, layers.Conv2D(PARTS, 1, activation="softmax")(x))


def main():
    keras.utils.set_random_seed(9)
    pictures, masks = load_pictures()
    masks = np.concatenate([masks, distance_maps(masks)], axis=-1)
    train = tf.data.Dataset.from_tensor_slices((pictures, masks))
    train = train.shuffle(PICTURES).batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)
    model = make_model()
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss=outline_loss)
    model.fit(train, epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
