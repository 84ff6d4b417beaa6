"""What does it cost a training that its thread is sampled?

Run from a checkout: ``python benchmarks/sampling.py [--pairs 40] [--seconds 1]``.

One ``fit`` goes on and on; for a stretch its thread is sampled as an account does, for
the next it is not, and so on in pairs whose order is drawn. The rate with sampling is
held against the rate without, pair by pair, for steps of about 2, 20 and 200 ms.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import sys
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from scipy import stats

from perfkit.training.account.sampler import EVERY_S, Sampler
from perfkit.training.account.watch import Watch

STEPS_S = (0.002, 0.02, 0.2)
# The lower end of the interval has to be above this.
LEAST = 0.97


def main():
    """Print a row for each length of a step; fail where sampling costs too much."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a stretch")
    options = parser.parse_args()
    watch, held = Watch(), []
    watch.begin()
    print("step        pairs  rate with / without   95 % interval")
    for wanted in STEPS_S:
        training = Training(wanted)
        ratios = [pair(training, watch, options.seconds) for _ in range(options.pairs)]
        step_s = training.step_s
        training.stop()
        logs = [math.log(one) for one in ratios]
        middle = statistics.fmean(logs)
        doubt = stats.t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs)
        half = doubt / math.sqrt(len(logs))
        low, high = math.exp(middle - half), math.exp(middle + half)
        print(
            f"{1000 * step_s:6.1f} ms  {len(logs):6}  {math.exp(middle):19.3f}   "
            f"{low:.3f} to {high:.3f}",
            flush=True,
        )
        held.append(low >= LEAST)
    return int(not all(held))


class Training:
    """A ``fit`` in a thread of its own, whose steps are counted."""

    def __init__(self, step_s):
        self.done, self.over, self.step_s = 0, False, 0.0
        self._wanted = step_s
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._fit, daemon=True)
        self._thread.start()
        self._ready.wait()
        self.ident = self._thread.ident

    def _fit(self):
        width = self._width()
        model = keras.Sequential([keras.Input((width,)), keras.layers.Dense(width)])
        model.compile("sgd", "mse")
        x = np.zeros((64, width), "float32")
        data = __import__("tensorflow").data.Dataset.from_tensors((x, x)).repeat()
        model.fit(data, steps_per_epoch=10**9, verbose=0, callbacks=[Count(self)])

    def _width(self):
        # Six products of 64 x width x width take about the time that is wanted.
        return {0.002: 420, 0.02: 2900, 0.2: 10600}[self._wanted]

    def step(self):
        """Count one; the first few are no steady state."""
        self.done += 1
        if self.done == 10:
            self._ready.set()

    def stop(self):
        """End it."""
        self.over = True
        self._thread.join()


class Count(keras.callbacks.Callback):
    """Counts the steps of a training."""

    def __init__(self, training):
        super().__init__()
        self._training = training

    def on_train_batch_end(self, batch, logs=None):
        """Count one, and end the training if that is asked for."""
        self._training.step()
        self.model.stop_training = self._training.over


def pair(training, watch, seconds):
    """The rate with sampling, as a multiple of that without."""
    sampled = [True, False]
    random.shuffle(sampled)
    rates = {on: rate(training, watch, seconds, on=on) for on in sampled}
    training.step_s = 1 / rates[False]
    return rates[True] / rates[False]


def rate(training, watch, seconds, *, on):
    """Steps a second over a stretch that begins and ends with a step."""
    sampler = Sampler(watch, training.ident)
    first = began = time.perf_counter()
    count, last, at = 0, training.done, None
    before = last
    while time.perf_counter() - began < seconds or count < 3:
        if on:
            sampler.sample(EVERY_S)
        else:
            time.sleep(EVERY_S)
        if training.done != last:
            last, now = training.done, time.perf_counter()
            if at is None:
                first, before = now, last
            at, count = now, last - before
    return count / (at - first)


if __name__ == "__main__":
    sys.exit(main())
