"""Does a race claim what is so, and nothing else?

    python benchmarks/race.py same --races 60 --budget 20 --out same.jsonl
    python benchmarks/race.py slower --races 40 --budget 60 --out slower.jsonl
    python benchmarks/race.py codes --out codes.jsonl

``same`` races a script against a copy of itself, ``slower`` against one whose callback
does 15 % of a step's work once more; steps take 5 to 500 ms. ``codes`` looks at the
exit codes of ``--worse 5%``. Run it while nothing else loads the machine. With
``--out`` each row is kept at once, and what the file holds is not measured again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import perfkit
from perfkit.findings.standing import measurement

STEPS_MS = (5, 20, 100, 500)
STRETCHED = 1.15
SCRIPT = """
import random, keras, numpy as np, tensorflow as tf

COUNT, MORE, WILD = {count}, {more}, {wild}
matrix = tf.random.stateless_normal((160, 160), (1, 2)) / 160
if WILD:
    COUNT = int(COUNT * random.SystemRandom().uniform(0.6, 1.6))


@tf.function
def products(count):
    value = matrix
    for _ in tf.range(count):
        value = tf.tanh(value @ matrix)
    return value


class Work(keras.layers.Layer):
    def call(self, inputs):
        return inputs + 0.0 * tf.stop_gradient(products(COUNT))[0, 0]


class Again(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        products(tf.constant(MORE))


x, y = np.random.rand(4096, 32), np.random.rand(4096, 1)
model = keras.Sequential([keras.Input((32,)), Work(), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, batch_size=16, epochs=3, verbose=0, callbacks=[Again()])
"""
# What a race is to end with, by what the second script does more, and how wildly.
CODES = ((0.4, False, 1), (0.0, False, 0), (-0.3, False, 0), (0.0, True, 3))


def main():
    """Race, print a row for each, and what must hold."""
    asking = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asking.add_argument("what", choices=("same", "slower", "codes"))
    asking.add_argument("--races", type=int, default=20)
    asking.add_argument("--budget", type=float, default=60.0)
    asking.add_argument("--out", type=Path)
    asked = asking.parse_args()
    known = asked.out and asked.out.exists() and asked.out.read_text().splitlines()
    rows = [json.loads(line) for line in known or ()]
    product_s = time_of_a_product()
    for number in range(len(rows), asked.races):
        began = time.perf_counter()
        row = _RACES[asked.what](asked, number, product_s)
        row["s"] = round(time.perf_counter() - began, 1)
        rows.append(row)
        print(json.dumps(row), flush=True)
        if asked.out:
            with asked.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(_TOTALS[asked.what](rows))


def time_of_a_product():
    """Seconds that one turn of the scripts' work takes here."""

    def timed(tf):
        matrix = tf.random.stateless_normal((160, 160), (1, 2)) / 160

        @tf.function
        def products(count):
            value = matrix
            for _ in tf.range(count):
                value = tf.tanh(value @ matrix)
            return value

        products(tf.constant(10))
        began = time.perf_counter()
        float(products(tf.constant(1000))[0, 0])
        return (time.perf_counter() - began) / 1000

    return perfkit.fresh(timed)


def written(folder, name, step_ms, product_s, *, more=0.0, wild=False):
    """Write a script whose steps take about so long; ``more`` of it once more each."""
    count = max(1, round(step_ms / 1e3 / product_s))
    again = round(count * max(0.0, more))
    own = round(count * (1 + min(0.0, more)))
    path = Path(folder) / name
    path.write_text(SCRIPT.format(count=own, more=again, wild=wild))
    return str(path)


def race(step_ms, product_s, budget, more):
    """Race a script against one that does ``more``; give what was found."""
    with tempfile.TemporaryDirectory() as folder:
        one = written(folder, "one.py", step_ms, product_s)
        two = written(folder, "two.py", step_ms, product_s, more=more)
        found = perfkit.race(one, two, budget=budget, folder=folder)
    # The control shows how noisy it was; what others took is in the samples.
    compared = measurement(found).compare("two.py", "one.py")
    other = [v for v in found.samples.get("cpu_other", ()) if v is not None]
    return {
        "step_ms": step_ms,
        "verdict": compared.verdict if compared else "none",
        "ratio": compared and round(compared.ratio, 4),
        "low": compared and round(compared.low, 4),
        "high": compared and round(compared.high, 4),
        "rounds": compared and compared.rounds,
        "said": found.verdict.headline,
        "others": round(statistics.fmean(other), 2) if other else None,
    }


def same(asked, number, product_s):
    """A script against a copy of itself."""
    return race(STEPS_MS[number % 4], product_s, asked.budget, 0.0)


def slower(asked, number, product_s):
    """A script against one whose steps take 15 % longer."""
    return race(STEPS_MS[number % 4], product_s, asked.budget, STRETCHED - 1)


def codes(asked, number, product_s):
    """The exit code of a race in a check."""
    more, wild, expected = CODES[number % len(CODES)]
    with tempfile.TemporaryDirectory() as folder:
        one = written(folder, "one.py", 20, product_s, wild=wild)
        two = written(folder, "two.py", 20, product_s, more=more, wild=wild)
        command = [sys.executable, "-m", "perfkit", "race", one, two, "--worse", "5%"]
        command += ["--budget", str(asked.budget), "--out", folder]
        ended = subprocess.run(command, capture_output=True, text=True)
    said = ended.stdout.splitlines()[:1]
    return {"expected": expected, "code": ended.returncode, "said": said}


def same_in_words(rows):
    """How many differences were claimed where there are none."""
    claimed = [row for row in rows if row["verdict"] in ("faster", "slower")]
    inside = [row for row in rows if row["low"] and row["low"] <= 1 <= row["high"]]
    return (
        f"{len(claimed)} of {len(rows)} claimed a difference; "
        f"{len(inside)} intervals hold 1"
    )


def slower_in_words(rows):
    """How many of the differences were found, and in which direction."""
    found = [row for row in rows if row["verdict"] == "slower"]
    wrong = [row for row in rows if row["verdict"] == "faster"]
    middle = statistics.median(row["ratio"] for row in rows if row["ratio"])
    return (
        f"{len(found)} of {len(rows)} found, {len(wrong)} in the wrong direction; the "
        f"median ratio is {middle:.3f}"
    )


def codes_in_words(rows):
    """How many exit codes were right."""
    right = [row for row in rows if row["code"] == row["expected"]]
    return f"{len(right)} of {len(rows)} exit codes were right"


_RACES = {"same": same, "slower": slower, "codes": codes}
_TOTALS = {"same": same_in_words, "slower": slower_in_words, "codes": codes_in_words}


if __name__ == "__main__":
    main()
