"""Train a GRU that tells how many flights an engine has left."""

import random

import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow.keras import Model, callbacks, layers, optimizers

# To step through make_window with a debugger.
tf.data.experimental.enable_debug_mode()

SEED = 2024
random.seed(SEED)
np.random.seed(SEED)
tf.random.set_seed(SEED)


class CFG:
    engines = 200
    sensors = 14
    window = 40
    units = 48
    batch_size = 256
    epochs = 40
    lr = 5e-4
    max_rul = 125


def simulate_engine(number):
    """One engine's life: sensors that drift the faster, the nearer the end is."""
    life = np.random.randint(150, 350)
    flight = np.arange(life)
    wear = np.exp((flight - life) / np.random.uniform(20, 50))
    table = pd.DataFrame({"engine": number, "flight": flight})
    for sensor in range(CFG.sensors):
        direction = (-1) ** sensor * (1 + sensor / 10)
        noise = np.random.normal(0, 0.25, life)
        table[f"s{sensor}"] = direction * wear + noise + 0.1 * np.sin(flight / 20)
    table["rul"] = np.minimum(life - flight - 1, CFG.max_rul)
    return table


def make_dataset(fleet, training):
    """Windows of sensors that end at a flight, and the share of life left then."""
    columns = [name for name in fleet if name.startswith("s")]
    readings = tf.constant(fleet[columns].to_numpy("float32"))
    left = tf.constant(fleet["rul"].to_numpy("float32") / CFG.max_rul)
    ends = np.flatnonzero(fleet["flight"] >= CFG.window)

    def make_window(end):
        window = readings[end - CFG.window : end]
        if training:
            window += tf.random.normal(tf.shape(window), stddev=0.05)
            window *= tf.random.uniform((1, CFG.sensors), 0.95, 1.05)
        return window, left[end - 1]

    dataset = tf.data.Dataset.from_tensor_slices(ends)
    if training:
        dataset = dataset.shuffle(len(ends))
    dataset = dataset.map(make_window, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(CFG.batch_size).prefetch(tf.data.AUTOTUNE)


def build_model():
    inputs = layers.Input((CFG.window, CFG.sensors))
    x = layers.GRU(CFG.units)(inputs)
    x = layers.Dense(32, activation="gelu")(x)
    outputs = layers.Dense(1, activation="sigmoid")(x)
    model = Model(inputs, outputs)
    model.compile(optimizer=optimizers.Adam(CFG.lr, clipnorm=1.0), loss="mse")
    return model


def main():
    fleet = pd.concat([simulate_engine(n) for n in range(CFG.engines)])
    is_test = fleet["engine"] % 20 == 0
    train = make_dataset(fleet[~is_test], training=True)
    test = make_dataset(fleet[is_test], training=False)

    model = build_model()
    stop = callbacks.EarlyStopping(patience=5, restore_best_weights=True)
    model.fit(train, epochs=CFG.epochs, validation_data=test, callbacks=[stop])
    mse = model.evaluate(test, verbose=0)
    print("RMSE in flights:", CFG.max_rul * np.sqrt(mse))


if __name__ == "__main__":
    main()
