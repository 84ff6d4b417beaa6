"""Real fits of a tiny model, in which time is what callbacks say it is."""

import itertools

import keras
import numpy as np
import tensorflow as tf

from perfkit.engine.trial import Note, Pause
from perfkit.training.diagnose.loop import Looping, fitted
from perfkit.training.diagnose.training import handed_over
from tests.findings.made import completed

BATCH = 4


class Costs(keras.callbacks.Callback):
    """Lets a known time pass for each step, epoch's end and step of validation."""

    def __init__(self, clock, step=0.01, end=0.0, validation=0.0, begin=0.0):
        super().__init__()
        self.clock, self.step, self.end, self.validation = clock, step, end, validation
        self.begin = begin

    def on_train_batch_end(self, batch, logs=None):
        self.clock.now += self.step

    def on_epoch_end(self, epoch, logs=None):
        self.clock.now += self.end

    def on_test_begin(self, logs=None):
        self.clock.now += self.begin

    def on_test_batch_end(self, batch, logs=None):
        self.clock.now += self.validation


def rows(steps, batch=BATCH):
    features = np.ones((steps * batch, 2), "float32")
    return features, features.sum(1)


def batches(steps):
    return tf.data.Dataset.from_tensor_slices(rows(steps)).batch(BATCH)


def model(**options):
    network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    network.compile("sgd", "mse", **options)
    return network


def training(data, **arguments):
    """What a maker hands over, held against the contract."""
    options = {"metrics": arguments.pop("metrics", None)}
    return handed_over((model(**options), data, {"verbose": 0, **arguments}))


def returned(training):
    options = training.arguments | {"epochs": training.epochs}
    return training.model, training.data, options


def trial(making, epochs, clock, most=60):
    """What a trial of it measures, on this clock."""
    ticks, pauses, recurring, notes, last = [], {}, {}, {}, 0.0
    told = fitted(lambda: returned(making()), Looping(epochs))
    for what in itertools.islice(told, most):
        if isinstance(what, Note):
            notes[what.name] = what.value
            continue
        if isinstance(what, Pause) and ticks:
            pauses.setdefault(what.label, []).append(clock.now - last)
            if what.every:
                recurring[what.label] = what.every, what.within
        ticks.append((clock.now, 0 if isinstance(what, Pause) else what.examples))
        last = clock.now
    told.close()
    known = {label: tuple(spent) for label, spent in pauses.items()}
    told = {"recurring": recurring, "notes": notes}
    return completed("as given", 1, ticks, pauses=known, **told)
