"""Tell jets of top quarks from jets of gluons by pictures of where their energy went."""

import keras
import numpy as np
from keras import layers

PARTICLES = 300
CELLS = 32
REACH = 0.8
KINDS = 3  # charged, neutral, photons
JETS = 4000
FOLDS = 4
BATCH_SIZE = 64
EPOCHS = 20


def collide(count, seed):
    """Angles, energy and kind of each particle; a top's jet has three cores."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    cores = rng.normal(0, 0.22, (count, 3, 2))
    cores[labels == 0, 1:] = cores[labels == 0, :1]
    belongs = rng.integers(0, 3, (count, PARTICLES))
    spread = rng.exponential(0.09, (count, PARTICLES, 1))
    angles = np.take_along_axis(cores, belongs[..., None], axis=1)
    angles = angles + spread * rng.normal(0, 1, (count, PARTICLES, 2))
    energy = rng.pareto(2.5, (count, PARTICLES)) + 0.1
    kind = rng.choice(KINDS, (count, PARTICLES), p=[0.6, 0.15, 0.25])
    return angles.astype("float32"), energy.astype("float32"), kind, labels


def turned(angles, rng):
    """Each jet turned by an angle of its own about its axis."""
    turn = rng.uniform(0, 2 * np.pi, len(angles))
    cos, sin = np.cos(turn), np.sin(turn)
    rotation = np.stack([cos, -sin, sin, cos], axis=-1).reshape(-1, 2, 2)
    return np.einsum("jpa,jab->jpb", angles, rotation)


def centred(angles, energy):
    weight = energy[..., None] / energy.sum(axis=1)[:, None, None]
    return angles - (angles * weight).sum(axis=1, keepdims=True)


def calorimeter(angles, energy, kind):
    cells = np.floor((angles + REACH) * (CELLS / (2 * REACH))).astype("int64")
    inside = ((cells >= 0) & (cells < CELLS)).all(axis=-1)
    jet = np.arange(len(angles))[:, None]
    place = ((jet * CELLS + cells[..., 0]) * CELLS + cells[..., 1]) * KINDS + kind
    size = len(angles) * CELLS * CELLS * KINDS
    pictures = np.bincount(place[inside], energy[inside], minlength=size)
    return pictures.reshape(-1, CELLS, CELLS, KINDS).astype("float32")


class Jets(keras.utils.PyDataset):
    def __init__(self, angles, energy, kind, labels, training, **kwargs):
        super().__init__(**kwargs)
        self.jets = centred(angles, energy), energy, kind
        self.labels, self.training = labels, training
        self.rng = np.random.default_rng(len(labels))
        self.order = np.arange(len(labels))

    def __len__(self):
        return len(self.labels) // BATCH_SIZE

    def __getitem__(self, index):
        rows = self.order[index * BATCH_SIZE : (index + 1) * BATCH_SIZE]
        angles, energy, kind = (part[rows] for part in self.jets)
        if self.training:
            angles = turned(angles, self.rng)
        pictures = calorimeter(angles, energy, kind)
        return np.log1p(pictures), self.labels[rows]

    def on_epoch_end(self):
        if self.training:
            self.rng.shuffle(self.order)


def tagger():
    model = keras.Sequential(
        [
            layers.Input((CELLS, CELLS, KINDS)),
            layers.Conv2D(12, 5, strides=2, activation="relu"),
            layers.Conv2D(24, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(48, activation="relu"),
            layers.Dense(1),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.02),
        metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
    )
    return model


def cross_validate(collisions):
    fold_of = np.random.default_rng(9).integers(0, FOLDS, JETS)
    scores = []
    for fold in range(FOLDS):
        train = Jets(*(part[fold_of != fold] for part in collisions), training=True)
        test = Jets(*(part[fold_of == fold] for part in collisions), training=False)
        model = tagger()
        model.fit(train, epochs=EPOCHS, verbose=2)
        scores.append(model.evaluate(test, verbose=0)[1])
        print(f"fold {fold + 1} of {FOLDS}: {scores[-1]:.3f}")
    return np.mean(scores)


if __name__ == "__main__":
    print(f"accuracy {cross_validate(collide(JETS, seed=21)):.3f}")
