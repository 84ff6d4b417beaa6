"""A ``PyDataset`` done right: whole batches at once, made while the model works."""


def make_training():
    import keras
    import numpy as np
    from keras import layers

    random = np.random.default_rng(0)
    images = random.integers(0, 256, (8192, 28, 28, 1), np.uint8)
    labels = random.integers(0, 10, 8192)

    class Images(keras.utils.PyDataset):
        """Batches cut from two arrays in an order that changes every epoch."""

        def __init__(self):
            super().__init__(workers=2, max_queue_size=8)
            self._order = random.permutation(len(images))

        def __len__(self):
            return len(images) // 128

        def __getitem__(self, index):
            chosen = self._order[index * 128 : (index + 1) * 128]
            return images[chosen].astype(np.float32) / 255, labels[chosen]

        def on_epoch_end(self):
            random.shuffle(self._order)

    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(128, "relu"),
            layers.Dense(10, "softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model, Images()
