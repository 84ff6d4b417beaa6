# cause: TimeDistributed calls each layer once a frame instead of once for all frames
# report: https://github.com/keras-team/keras/issues/21179
# lines: 63-68
"""Tell swimming strokes apart in short clips from a camera above the lane."""

import keras
import numpy as np
from keras import layers

STROKES = ["butterfly", "backstroke", "breaststroke", "freestyle"]
FRAMES, SIDE = 16, 32
EPOCHS = 60


def film(count, seed=17):
    """A swimmer is a bright trunk whose arms turn at a pace and phase of the stroke."""
    rng = np.random.default_rng(seed)
    strokes = rng.integers(0, len(STROKES), count)
    yy, xx = np.mgrid[:SIDE, :SIDE]
    time = np.arange(FRAMES)[:, None, None]
    clips = rng.normal(60, 12, (count, FRAMES, SIDE, SIDE)).clip(0, 255).astype("uint8")
    for clip, stroke in zip(clips, strokes):
        pace, start = rng.uniform(0.4, 0.7), rng.uniform(0, 6)
        phase = (0, np.pi, 0.3, np.pi)[stroke]
        reach = (9, 9, 5, 9)[stroke] * (1 if stroke != 1 else -1)
        y = SIDE / 2 + rng.normal(0, 2)
        x = SIDE / 2 + 3 * np.sin(0.2 * time + start)
        clip[(np.abs(yy - y) < 3) & (np.abs(xx - x) < 9)] = 190
        for side, shift in ((-1, 0), (1, phase)):
            hand = x + reach * np.cos(pace * time + start + shift)
            clip[(np.abs(yy - y - side * 6) < 2) & (np.abs(xx - hand) < 3)] = 230
    return clips[..., None], strokes


class LanePool(keras.utils.PyDataset):
    """Batches of clips, mirrored at random and set to start at another frame."""

    def __init__(self, clips, strokes, batch_size=8, train=True, **kwargs):
        super().__init__(**kwargs)
        self.clips, self.strokes = clips, strokes
        self.batch_size, self.train = batch_size, train
        self.rows = np.arange(len(clips))

    def __len__(self):
        return int(np.ceil(len(self.clips) / self.batch_size))

    def __getitem__(self, index):
        rows = self.rows[index * self.batch_size : (index + 1) * self.batch_size]
        clips = self.clips[rows]
        if self.train:
            clips = np.roll(clips, np.random.randint(FRAMES), axis=1)
            if np.random.rand() < 0.5:
                clips = clips[:, :, ::-1]
        return clips.astype("float32") / 255.0, self.strokes[rows]

    def on_epoch_end(self):
        if self.train:
            np.random.shuffle(self.rows)


def build_model():
    clip = keras.Input((FRAMES, SIDE, SIDE, 1))
    x = layers.TimeDistributed(layers.Conv2D(8, 3, padding="same", activation="relu"))(clip)
    x = layers.TimeDistributed(layers.MaxPooling2D())(x)
    x = layers.TimeDistributed(layers.Conv2D(16, 3, padding="same", activation="relu"))(x)
    x = layers.TimeDistributed(layers.MaxPooling2D())(x)
    x = layers.TimeDistributed(layers.Conv2D(16, 3, padding="same", activation="relu"))(x)
    x = layers.TimeDistributed(layers.GlobalAveragePooling2D())(x)
    x = layers.Dropout(0.2)(x)
    x = layers.Bidirectional(layers.GRU(16))(x)
    return keras.Model(clip, layers.Dense(len(STROKES), activation="softmax")(x))


class Confusion(keras.callbacks.Callback):
    """Once in a while print which strokes are taken for which."""

    def __init__(self, pool, every=10):
        super().__init__()
        self.pool, self.every = pool, every

    def on_epoch_end(self, epoch, logs=None):
        if epoch % self.every:
            return
        said = self.model.predict(self.pool, verbose=0).argmax(axis=-1)
        table = np.zeros((len(STROKES), len(STROKES)), int)
        np.add.at(table, (self.pool.strokes, said), 1)
        for stroke, line in zip(STROKES, table):
            print(f"{stroke:>14}", line)


def main():
    keras.utils.set_random_seed(9)
    clips, strokes = film(400)
    train = LanePool(clips[60:], strokes[60:])
    test = LanePool(clips[:60], strokes[:60], train=False)
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(train, validation_data=test, epochs=EPOCHS, callbacks=[Confusion(test)], verbose=2)


if __name__ == "__main__":
    main()
