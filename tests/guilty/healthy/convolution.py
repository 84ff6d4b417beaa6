"""Images from memory through a parallel pipeline into a small convolutional network."""


def make_training():
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import layers

    random = np.random.default_rng(0)
    images = random.integers(0, 256, (4096, 32, 32, 3), np.uint8)
    labels = random.integers(0, 10, 4096)

    def augmented(image, label):
        image = tf.cast(image, tf.float32) / 255
        return tf.image.random_flip_left_right(image), label

    dataset = (
        tf.data.Dataset.from_tensor_slices((images, labels))
        .shuffle(4096)
        .map(augmented, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(64)
        .prefetch(tf.data.AUTOTUNE)
    )
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return model, dataset
