"""Is a leak found by an account, and is no healthy training accused of one?

Run from a checkout: ``python benchmarks/memory.py [--budget 20] [--only NAME]``. Three
trainings leak and nine do not; each runs for seconds, under an account. Ends with 1
where a leak is missed, its size is wrong, or a healthy training is accused. *ends* is
how often its memory was read: below ten nothing is said of it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

from perfkit import units
from perfkit.findings.account_report import memory_advice
from perfkit.progress import Display
from perfkit.questions.runs import watch
from perfkit.training.account import session
from perfkit.training.account.memory import growth_of

MODEL = """
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(7)
ROWS, WIDE = 640, 64
x = np.random.rand(ROWS, WIDE).astype("float32")
y = np.random.rand(ROWS, 1).astype("float32")


def build(units=128):
    model = keras.Sequential(
        [
            keras.Input((WIDE,)),
            keras.layers.Dense(units, "relu"),
            keras.layers.Dense(units, "relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"])
    return model


"""
# Every fit of these traces a model of its own, so they take so many times the budget.
TRACED, LONGER = ("models made in a loop", "k-fold with clear_session"), 8
# What each end adds at least: 5 MB of an array; a model's weights and their two slots.
LEAKS = {
    "leak of 5 MB an epoch": (
        5e6,
        """
        kept = []
        keep = lambda epoch, logs: kept.append(np.ones(625_000))
        callback = keras.callbacks.LambdaCallback(on_epoch_end=keep)
        build().fit(x, y, epochs=100, verbose=0, callbacks=[callback])
        """,
    ),
    "models made in a loop": (
        12 * (64 * 800 + 800 * 800 + 3 * 800),
        """
        models = []
        for _ in range(20):
            models.append(build(800))
            models[-1].fit(x[:320], y[:320], verbose=0)
        """,
    ),
    # TensorFlow 2.21 keeps so much of each fold without perfkit, too.
    "k-fold with clear_session": (
        6e6,
        """
        for fold in range(20):
            keras.backend.clear_session()
            model = build()
            model.fit(x, y, epochs=2, verbose=0)
        """,
    ),
}
HEALTHY = {
    "fit, many epochs": """
        build().fit(x, y, epochs=800, verbose=0)
    """,
    "train_on_batch": """
        model = build()
        for epoch in range(400):
            for begin in range(0, ROWS, 64):
                model.train_on_batch(x[begin : begin + 64], y[begin : begin + 64])
    """,
    "a loop of its own": """
        model, optimizer = build(), keras.optimizers.Adam()
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).prefetch(2)

        @tf.function
        def step(rows, targets):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(rows, training=True) - targets) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        losses = []
        for epoch in range(400):
            for rows, targets in data:
                loss = step(rows, targets)
            losses.append(float(loss))
    """,
    "cache": """
        data = tf.data.Dataset.from_tensor_slices((x, y))
        data = data.map(lambda a, b: (tf.tile(a, [20])[:WIDE], b)).cache()
        build().fit(data.batch(64).prefetch(2), epochs=400, verbose=0)
    """,
    "shuffle and repeat": """
        data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().shuffle(600)
        data = data.batch(64).prefetch(2)
        build().fit(data, epochs=400, steps_per_epoch=10, verbose=0)
    """,
    "a generator": """
        def rows():
            for begin in range(0, ROWS, 64):
                yield x[begin : begin + 64], y[begin : begin + 64]

        shapes = tf.TensorSpec((None, WIDE)), tf.TensorSpec((None, 1))
        data = tf.data.Dataset.from_generator(rows, output_signature=shapes)
        build().fit(data, epochs=400, verbose=0)
    """,
    "a PyDataset": """
        class Rows(keras.utils.PyDataset):
            def __len__(self):
                return ROWS // 64

            def __getitem__(self, n):
                return x[64 * n : 64 * n + 64], y[64 * n : 64 * n + 64]

        build().fit(Rows(workers=2, max_queue_size=8), epochs=400, verbose=0)
    """,
    "callbacks": """
        callbacks = [
            keras.callbacks.ModelCheckpoint("best.keras", save_best_only=False),
            keras.callbacks.CSVLogger("log.csv"),
            keras.callbacks.EarlyStopping(patience=100, restore_best_weights=True),
            keras.callbacks.ReduceLROnPlateau(),
        ]
        build().fit(x, y, epochs=400, verbose=0, callbacks=callbacks)
    """,
    "validation": """
        build().fit(x, y, epochs=400, verbose=0, validation_split=0.3)
    """,
}
WIDTHS = (28, 9, 5, 48, 6, 4)


def main() -> int:
    """Account for each training, print a row for it, and what must hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--only", default="", help="a part of a training's name")
    options = parser.parse_args()
    trainings = LEAKS | {name: (0, text) for name, text in HEALTHY.items()}
    print_row("training", "each adds", "ends", "claimed", "right", "s")
    right = [
        row(name, each, text, options.budget)
        for name, (each, text) in trainings.items()
        if options.only in name
    ]
    print(f"{sum(right)} of {len(right)} right")
    return int(not all(right))


def row(name: str, each: float, text: str, budget: float) -> bool:
    """Account for one training, and say whether its answer is right."""
    began, ends = time.perf_counter(), []

    def count(charges: Any, *index: Any) -> Any:
        ends.extend(len(readings) for *_, readings in charges["memory"])
        return growth_of(charges, *index)

    session.growth_of = count
    with tempfile.TemporaryDirectory(prefix="perfkit-memory-") as folder:
        path = Path(folder, "train.py")
        path.write_text(MODEL + textwrap.dedent(text))
        before = os.getcwd()
        os.chdir(folder)
        try:
            longer = budget * (LONGER if name in TRACED else 1)
            account = watch(session.open_lines(path, longer, folder), Display())
        finally:
            os.chdir(before)
    growth, is_right = account.growth, account.growth is None and not account.error
    if each:
        most = 10 if name in TRACED else 1.2
        is_right = growth is not None and 0.8 < growth.each_bytes / each < most
    claimed = (
        memory_advice(account)[0].partition(",")[0] or account.error or "no growth"
    )
    print_row(
        name,
        units.size(each) if each else "",
        str(max(ends, default=0)),
        claimed.removeprefix("Memory grows by "),
        "yes" if is_right else "NO",
        f"{time.perf_counter() - began:.0f}",
    )
    return is_right


def print_row(*cells: str) -> None:
    """Print cells in columns."""
    padded = (f"{cell:{w}}" for cell, w in zip(cells, WIDTHS, strict=True))
    print(" ".join(padded), flush=True)


if __name__ == "__main__":
    sys.exit(main())
