"""Tell types of roof apart in aerial pictures with a network trained on fields."""

import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIDE = 64
ROOFS = ["flat", "gable", "hip", "shed", "dome"]
RATES = {"backbone": 0.0, "head": 1.0}
BATCH_SIZE, EPOCHS = 32, 80


def aerial(count, kinds, seed):
    """Patches of ground with a structure whose ridges depend on the kind."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(kinds, size=count)
    yy, xx = np.mgrid[:SIDE, :SIDE] / SIDE - 0.5
    turn = rng.uniform(0, np.pi, (count, 1, 1))
    u = xx * np.cos(turn) + yy * np.sin(turn)
    v = yy * np.cos(turn) - xx * np.sin(turn)
    ridge = np.abs(u) * (kind % 5 > 0)[:, None, None]
    ridge = ridge + np.abs(v) * (kind % 5 > 1)[:, None, None]
    ridge = np.where((kind % 5 == 4)[:, None, None], u**2 + v**2, ridge)
    inside = (np.abs(u) < 0.3) & (np.abs(v) < 0.22)
    light = 0.5 + 0.8 * ridge + 0.1 * (kind // 5)[:, None, None]
    patches = np.where(inside, light, 0.3)[..., None] * rng.uniform(
        0.7, 1.2, (count, 1, 1, 3)
    )
    patches += rng.normal(0, 0.08, patches.shape)
    return patches.astype("float32"), kind.astype("int32")


def pretrain(path):
    """Stands for the weights that would come from somewhere else."""
    backbone = keras.Sequential([layers.Input((SIDE, SIDE, 3))], name="backbone")
    for filters in (24, 48, 96, 96):
        backbone.add(layers.Conv2D(filters, 3, padding="same", use_bias=False))
        backbone.add(layers.BatchNormalization())
        backbone.add(layers.ReLU())
        backbone.add(layers.MaxPooling2D())
    backbone.add(layers.GlobalAveragePooling2D())
    model = keras.Sequential([backbone, layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    model.fit(*aerial(128, 10, seed=1), batch_size=32, epochs=1, verbose=2)
    backbone.save(path)


class RoofNet(keras.Model):
    """A backbone and a head that learn at rates of their own."""

    def __init__(self, backbone, rates, **kwargs):
        super().__init__(**kwargs)
        self.backbone = backbone
        self.head = keras.Sequential(
            [
                layers.Dense(64, activation="relu"),
                layers.Dropout(0.3),
                layers.Dense(len(ROOFS), activation="softmax"),
            ],
            name="head",
        )
        self.rates = {part: tf.Variable(rate) for part, rate in rates.items()}

    def call(self, patches, training=False):
        features = self.backbone(patches, training=False)
        return self.head(features, training=training)

    def train_step(self, data):
        patches, roofs = data
        with tf.GradientTape() as tape:
            predicted = self(patches, training=True)
            loss = self.compute_loss(y=roofs, y_pred=predicted)
        parts = (self.backbone, self.head)
        variables = [v for part in parts for v in part.trainable_variables]
        rates = [self.rates[p.name] for p in parts for _ in p.trainable_variables]
        gradients = tape.gradient(loss, variables)
        gradients = [rate * gradient for rate, gradient in zip(rates, gradients)]
        self.optimizer.apply(gradients, variables)
        return self.compute_metrics(patches, roofs, predicted)


def batches(patches, roofs, training):
    data = tf.data.Dataset.from_tensor_slices((patches, roofs))
    if training:
        data = data.shuffle(len(patches))
    return data.batch(BATCH_SIZE, drop_remainder=training).prefetch(tf.data.AUTOTUNE)


if __name__ == "__main__":
    keras.utils.set_random_seed(5)
    path = os.path.join(tempfile.mkdtemp(prefix="roofs_"), "backbone.keras")
    pretrain(path)
    backbone = keras.models.load_model(path)
    backbone.trainable = False
    model = RoofNet(backbone, RATES)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(
        batches(*aerial(1920, 5, seed=2), training=True),
        validation_data=batches(*aerial(192, 5, seed=3), training=False),
        epochs=EPOCHS,
        verbose=2,
    )
