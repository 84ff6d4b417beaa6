# cause: the PR metric gets thresholds that are not evenly spaced, so Keras compares every
#        pixel of the batch with each of the 302 thresholds, at each training step: four
#        tables of 44 million entries
# fix: AUC(curve="PR") with its 200 evenly spaced thresholds, for which Keras sorts each
#      pixel into a bucket once
# expect: 2.8 times faster a step (measured 277 -> 89 and 256 -> 93 ms on a busy machine)
# form: a flat script, arrays from a function, functional U-Net, compile and fit with metrics
# report: https://github.com/pytorch/ignite/issues/2319
#         https://github.com/Lightning-AI/torchmetrics/issues/625
# lines: 64, 69
"""Which pixels of a radar image will have hail in half an hour?"""

import keras
import numpy as np
from keras import layers
from scipy.ndimage import gaussian_filter, shift

keras.utils.set_random_seed(17)
rng = np.random.default_rng(17)

SIDE = 96
TRAIN, HELD_OUT = 640, 64


def storms(number):
    """Three scans (now, 5 and 10 minutes ago) and the mask of hail later on."""
    scans = np.zeros((number, SIDE, SIDE, 3), "float32")
    hail = np.zeros((number, SIDE, SIDE, 1), "float32")
    for i in range(number):
        cells = np.zeros((SIDE, SIDE), "float32")
        where = rng.integers(20, SIDE - 20, (rng.integers(2, 7), 2))
        cells[where[:, 0], where[:, 1]] = rng.uniform(60, 260, len(where))
        cells = gaussian_filter(cells, 3.0)
        wind = rng.uniform(-3, 3, 2)
        for back in range(3):
            scans[i, :, :, back] = shift(cells, -back * wind, order=1)
        later = shift(cells, 4 * wind, order=1)
        hail[i, :, :, 0] = later > 2.2
    scans += rng.normal(0, 0.15, scans.shape).astype("float32")
    return scans, hail


def double(x, width):
    for _ in range(2):
        x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    return x


scans = keras.Input((SIDE, SIDE, 3))
x = layers.Conv2D(12, 5, strides=2, padding="same", activation="relu")(scans)
fine = double(x, 12)
x = double(layers.MaxPooling2D()(fine), 24)
x = double(layers.MaxPooling2D()(x), 32)
x = layers.UpSampling2D(4, interpolation="bilinear")(x)
x = double(layers.Concatenate()([x, fine]), 12)
x = layers.Conv2DTranspose(8, 2, strides=2, activation="relu")(x)
rare = keras.initializers.Constant(-3)
hail = layers.Conv2D(1, 1, activation="sigmoid", bias_initializer=rare)(x)
model = keras.Model(scans, hail)

# Hail is rare, most of what is interesting happens at small probabilities.
levels = [float(level) for level in np.geomspace(1e-4, 0.995, 300)]
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss="binary_crossentropy",
    metrics=[
        keras.metrics.AUC(curve="PR", thresholds=levels, name="pr_auc"),
        keras.metrics.BinaryIoU(target_class_ids=[1], threshold=0.3, name="iou"),
    ],
)

x_train, y_train = storms(TRAIN)
x_test, y_test = storms(HELD_OUT)
print(f"hail on {100 * y_train.mean():.2f} % of the pixels")

history = model.fit(
    x_train,
    y_train,
    batch_size=16,
    epochs=40,
    validation_data=(x_test, y_test),
    verbose=2,
)
print("best PR-AUC on held-out storms:", max(history.history["val_pr_auc"]))
