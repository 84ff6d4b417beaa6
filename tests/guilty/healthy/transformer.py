"""A small transformer that predicts the next token."""


def make_training():
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import layers

    tokens = np.random.default_rng(0).integers(0, 512, (4096, 65), np.int32)
    dataset = (
        tf.data.Dataset.from_tensor_slices((tokens[:, :-1], tokens[:, 1:]))
        .shuffle(4096)
        .batch(32)
        .prefetch(tf.data.AUTOTUNE)
    )
    inputs = keras.Input((64,), dtype="int32")
    hidden = layers.Embedding(512, 128)(inputs)
    for _ in range(2):
        normed = layers.LayerNormalization()(hidden)
        attention = layers.MultiHeadAttention(4, 32)
        hidden = hidden + attention(normed, normed, use_causal_mask=True)
        normed = layers.LayerNormalization()(hidden)
        wide = layers.Dense(512, "gelu")(normed)
        hidden = hidden + layers.Dense(128)(wide)
    model = keras.Model(inputs, layers.Dense(512)(hidden))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(3e-4), loss)
    return model, dataset
