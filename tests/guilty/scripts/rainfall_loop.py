"""Predict tomorrow's rain from a week of weather, in a loop of its own."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, losses, metrics, optimizers

BATCH = 64
EPOCHS = 50


def weather(days=60000, seed=3):
    """Weeks of pressure, humidity, wind and cloud, and whether it rained after them."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(days + 7, 4)).astype("float32")
    series = np.cumsum(noise, axis=0) * 0.1
    weeks = np.lib.stride_tricks.sliding_window_view(series, 7, axis=0)[:days]
    rained = (series[7:, 1] > series[7:, 0]).astype("float32")
    return weeks.reshape(days, -1), rained[:, None]


x, y = weather()
train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(10000).batch(BATCH)

model = tf.keras.Sequential(
    [
        layers.Dense(128, activation="relu"),
        layers.Dropout(0.2),
        layers.Dense(128, activation="relu"),
        layers.Dense(64, activation="relu"),
        layers.Dense(1),
    ]
)
loss_fn = losses.BinaryCrossentropy(from_logits=True)
optimizer = optimizers.Adam(1e-3)
accuracy = metrics.BinaryAccuracy(threshold=0.0)

for epoch in range(EPOCHS):
    for step, (weeks, rained) in enumerate(train):
        with tf.GradientTape() as tape:
            logits = model(weeks, training=True)
            loss = loss_fn(rained, logits)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        accuracy.update_state(rained, logits)
        if step % 200 == 0:
            print(epoch, step, float(loss), float(accuracy.result()))
    accuracy.reset_state()
