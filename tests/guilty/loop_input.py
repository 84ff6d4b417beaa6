"""A loop of one's own whose photographs are decoded anew in every epoch."""

CAUSE = "no-cache"


def make_training():
    train(cached=False)


def make_fixed():
    train(cached=True)


def train(*, cached):
    import keras
    import tensorflow as tf

    import perfkit

    model = keras.Sequential(
        [
            keras.Input((64, 64, 3)),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        weights = model.trainable_variables
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    dataset = photographs()
    dataset = (dataset.cache() if cached else dataset).batch(32).prefetch(2)
    for _ in range(10):
        for images, labels in perfkit.steps(dataset):
            train_step(images, labels)


def photographs():
    import numpy as np
    import tensorflow as tf

    draw = np.random.default_rng(0)
    coarse = draw.integers(256, size=(32, 16, 16, 3), dtype=np.uint8)
    smooth = tf.cast(tf.image.resize(coarse, (256, 256)), tf.uint8)
    files = [tf.io.encode_jpeg(one).numpy() for one in smooth] * 60
    labels = draw.integers(10, size=len(files))

    def decoded(file, label):
        image = tf.io.decode_jpeg(file, channels=3)
        return tf.image.resize(image, (64, 64)), label

    dataset = tf.data.Dataset.from_tensor_slices((files, labels))
    return dataset.map(decoded, num_parallel_calls=tf.data.AUTOTUNE)
