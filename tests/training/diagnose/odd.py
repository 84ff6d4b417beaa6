"""Trainings that people hand over and nobody plans for; each function makes one."""

import ctypes
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading

import keras
import numpy as np
import psutil
import tensorflow as tf
from keras import layers


def model(inputs=8, outputs=1):
    made = keras.Sequential([keras.Input((inputs,)), layers.Dense(outputs)])
    made.compile("sgd", "mse")
    return made


def arrays(examples=256):
    return np.ones((examples, 8), "float32"), np.ones((examples, 1), "float32")


def batches(examples=256, size=16):
    return tf.data.Dataset.from_tensor_slices(arrays(examples)).batch(size)


def fits(data, **arguments):
    return model(), data, arguments


def hooked(**hooks):
    return model(), batches(), {"callbacks": [keras.callbacks.LambdaCallback(**hooks)]}


def raises():
    raise ValueError("no data today")


def is_not_compiled():
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)]), batches()


def fail(*_, **__):
    raise RuntimeError("the disk went away")


def reads_where_nothing_is():
    ctypes.string_at(0)


def throws(error):
    raise error


def allocates_without_an_end():
    limit = psutil.Process().memory_info().data + 2**28
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    return [bytearray(2**26) for _ in range(64)]


def hangs(*_, **__):
    threading.Event().wait()


def prints_a_lot():
    return hooked(on_epoch_end=lambda *_, **__: print("x" * 10_000_000))


def endless():
    batch = arrays(16)
    while True:
        yield batch


def takes_dicts():
    one, other = keras.Input((8,), name="one"), keras.Input((8,), name="other")
    joined = layers.Concatenate()([one, other])
    outputs = {n: layers.Dense(1, name=n)(joined) for n in ("left", "right")}
    made = keras.Model({"one": one, "other": other}, outputs)
    made.compile("sgd", {"left": "mse", "right": "mae"})
    x, y = arrays()
    parts = {"one": x, "other": x}, {"left": y, "right": y}
    return made, tf.data.Dataset.from_tensor_slices(parts).batch(16)


def weighs_its_classes():
    x, y = arrays()
    options = {"class_weight": {0: 1.0, 1: 2.0}, "validation_split": 0.25}
    return model(), (x, y.astype("int64")), options


def gives_y_by_name():
    x, y = arrays()
    return model(), x, {"y": y, "batch_size": 16}


def trains_in_a_strategy():
    def rate(*_):
        return float(made.optimizer.learning_rate.numpy())

    told = keras.callbacks.LambdaCallback(on_epoch_end=rate)
    falling = keras.callbacks.LearningRateScheduler(lambda _, rate: 0.9 * rate)
    with tf.distribute.MirroredStrategy().scope():
        made = model()
    return made, batches(), {"callbacks": [told, falling]}


def sets_up_its_machine():
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    os.chdir(tempfile.gettempdir())
    tf.config.threading.set_intra_op_parallelism_threads(1)
    threading.Thread(target=threading.Event().wait).start()
    return model(), batches()


def starts_processes():
    nap = [sys.executable, "-c", "import time; time.sleep(600)  # perfkit-odd"]
    subprocess.Popen(nap)
    subprocess.Popen(nap, start_new_session=True)
    multiprocessing.Process(target=hangs).start()
    return model(), batches()
