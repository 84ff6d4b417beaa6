"""Segment polyps in endoscopy pictures with dice and a loss on the distance to the edge."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from scipy.ndimage import distance_transform_edt

SIDE = 128
BATCH_SIZE = 16
EPOCHS = 28
EDGE_WEIGHT = 0.01


def endoscopy(count, seed):
    """Reddish pictures, each with one or two brighter ellipses, and the masks of those."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:SIDE, :SIDE]
    pictures = rng.normal(0.3, 0.08, (count, SIDE, SIDE, 3))
    pictures[..., 0] += 0.25
    masks = np.zeros((count, SIDE, SIDE, 1), "float32")
    for picture, mask in zip(pictures, masks):
        for _ in range(rng.integers(1, 3)):
            y, x = rng.uniform(30, SIDE - 30, 2)
            a, b = rng.uniform(10, 24, 2)
            inside = ((yy - y) / a) ** 2 + ((xx - x) / b) ** 2 < 1
            picture[inside] += rng.uniform(0.05, 0.25, 3)
            mask[inside] = 1
    return pictures.astype("float32"), masks


def signed_distance(mask):
    inside = mask.astype(bool)
    if not inside.any():
        return np.zeros_like(mask)
    outside = ~inside
    return (
        distance_transform_edt(outside) * outside
        - (distance_transform_edt(inside) - 1) * inside
    )


def signed_distances(masks):
    return np.array([signed_distance(mask) for mask in masks], "float32")


def edge_loss(distances, y_pred):
    return tf.reduce_mean(distances * y_pred)


def dice_loss(y_true, y_pred):
    overlap = tf.reduce_sum(y_true * y_pred, axis=(1, 2, 3))
    total = tf.reduce_sum(y_true + y_pred, axis=(1, 2, 3))
    return 1 - tf.reduce_mean((2 * overlap + 1) / (total + 1))


def segmentation_loss(y_true, y_pred):
    masks, distances = y_true[..., :1], y_true[..., 1:]
    return dice_loss(masks, y_pred) + EDGE_WEIGHT * edge_loss(distances, y_pred)


def build_unet(filters=(8, 16, 24)):
    inputs = x = keras.Input((SIDE, SIDE, 3))
    x = layers.Conv2D(filters[0], 3, strides=2, padding="same", activation="relu")(x)
    skips = []
    for count in filters[1:]:
        skips.append(x)
        x = layers.MaxPooling2D()(x)
        x = layers.Conv2D(count, 3, padding="same", activation="relu")(x)
    for skip in reversed(skips):
        x = layers.UpSampling2D()(x)
        x = layers.Concatenate()([x, skip])
        x = layers.Conv2D(skip.shape[-1], 3, padding="same", activation="relu")(x)
    x = layers.Conv2D(1, 3, padding="same", activation="sigmoid")(x)
    return keras.Model(inputs, layers.UpSampling2D(interpolation="bilinear")(x))


def main():
    keras.utils.set_random_seed(1)
    pictures, masks = endoscopy(400, seed=14)
    test_pictures, test_masks = endoscopy(48, seed=15)
    targets = np.concatenate([masks, signed_distances(masks)], axis=-1)
    test_targets = np.concatenate([test_masks, signed_distances(test_masks)], axis=-1)
    train = tf.data.Dataset.from_tensor_slices((pictures, targets))
    train = train.shuffle(400, seed=1).batch(BATCH_SIZE).prefetch(2)
    test = tf.data.Dataset.from_tensor_slices((test_pictures, test_targets)).batch(BATCH_SIZE)
    model = build_unet()
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=segmentation_loss)
    model.fit(train, validation_data=test, epochs=EPOCHS, verbose=2)
    found = model.predict(test, verbose=0)
    print("dice:", 1 - float(dice_loss(test_masks, found)))


if __name__ == "__main__":
    main()
