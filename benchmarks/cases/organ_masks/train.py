# cause: the loss computes the distance maps of the true masks with SciPy in a
#        tf.numpy_function, anew for every mask of every batch of every epoch
# fix: compute them once before the training, and hand them over with the masks
# expect: 1.8 to 4 times faster a step
# form: train.py with its loss in helpers.py beside it, PNG files of scans, small U-Net,
#       fit
# report: https://github.com/JunMa11/SegLossOdyssey/issues/42
#         https://github.com/LIVIAETS/boundary-loss/issues/59
# lines: helpers.py:16-17, helpers.py:33-35
"""Outline organs in slices of scans with a small U-Net and a boundary loss."""

import tempfile
from pathlib import Path

import numpy as np
from helpers import OrganLoss
from PIL import Image
from tensorflow import keras
from tensorflow.keras import layers

SIZE = 160
ORGANS = 6
SLICES = 200
EPOCHS = 14


def scan(folder, seed=5):
    """Slices with an ellipse for each organ, and masks with the organ's number."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:SIZE, :SIZE] / SIZE
    for number in range(SLICES):
        mask = np.zeros((SIZE, SIZE), "uint8")
        for organ in range(1, ORGANS):
            center = rng.uniform(0.2, 0.8, 2)
            radius = rng.uniform(0.06, 0.22, 2)
            inside = ((x - center[0]) / radius[0]) ** 2
            inside += ((y - center[1]) / radius[1]) ** 2
            mask[inside < 1] = organ
        image = 50 + 30 * mask + rng.normal(0, 18, mask.shape)
        image = Image.fromarray(np.clip(image, 0, 255).astype("uint8"))
        image.save(folder / f"slice_{number:03d}.png")
        Image.fromarray(mask).save(folder / f"mask_{number:03d}.png")


def load(folder, kind):
    paths = sorted(folder.glob(f"{kind}_*.png"))
    return np.stack([np.asarray(Image.open(path)) for path in paths])


def block(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return x


def build_model():
    inputs = keras.Input((SIZE, SIZE, 1))
    x = layers.Conv2D(8, 5, strides=4, padding="same", activation="relu")(inputs)
    first = block(x, 8)
    second = block(layers.MaxPooling2D()(first), 16)
    x = block(layers.MaxPooling2D()(second), 32)
    x = layers.concatenate([layers.UpSampling2D()(x), second])
    x = layers.concatenate([layers.UpSampling2D()(block(x, 16)), first])
    x = layers.UpSampling2D(4)(block(x, 8))
    return keras.Model(inputs, layers.Conv2D(ORGANS, 3, padding="same")(x))


def main():
    keras.utils.set_random_seed(5)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scan(folder)
        images = load(folder, "slice")[..., None].astype("float32") / 255
        masks = load(folder, "mask")
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss=OrganLoss(ORGANS, boundary=0.01),
    )
    history = model.fit(
        images, masks, batch_size=16, epochs=EPOCHS, validation_split=0.1, verbose=2
    )
    print("best loss:", min(history.history["val_loss"]))


if __name__ == "__main__":
    main()
