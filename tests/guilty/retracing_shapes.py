"""Sentences of every length in a loop of one's own: each new shape is traced."""

CAUSE = "retracing"


def make_training():
    train(reduce_retracing=False)


def make_fixed():
    train(reduce_retracing=True)


def train(*, reduce_retracing):
    import keras
    import tensorflow as tf

    import perfkit

    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(2000, 64),
            keras.layers.Conv1D(64, 5, padding="same", activation="relu"),
            keras.layers.GlobalMaxPooling1D(),
            keras.layers.Dense(4),
        ]
    )
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(reduce_retracing=reduce_retracing)
    def train_step(words, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(words, training=True))
        weights = model.trainable_variables
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    dataset = sentences()
    for _ in range(10):
        for words, labels in perfkit.steps(dataset):
            train_step(words, labels)


def sentences():
    import numpy as np
    import tensorflow as tf

    draw = np.random.default_rng(0)
    batches = []
    for length in draw.permutation(np.arange(20, 620)):
        words = draw.integers(2000, size=(16, length), dtype=np.int32)
        batches.append((words, draw.integers(4, size=16)))

    def generate():
        yield from batches

    shapes = (tf.TensorSpec((16, None), tf.int32), tf.TensorSpec((16,), tf.int64))
    return tf.data.Dataset.from_generator(generate, output_signature=shapes)
