"""Trainings that people hand over and nobody plans for; each function makes one."""

import os


def model(inputs=8, outputs=1):
    import keras
    from keras import layers

    made = keras.Sequential([keras.Input((inputs,)), layers.Dense(outputs)])
    made.compile("sgd", "mse")
    return made


def arrays(examples=256):
    import numpy as np

    return np.ones((examples, 8), "float32"), np.ones((examples, 1), "float32")


def batches(examples=256, size=16):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(arrays(examples)).batch(size)


def hooked(**hooks):
    """The plain training with one callback made of these functions."""
    import keras

    return model(), batches(), {"callbacks": [keras.callbacks.LambdaCallback(**hooks)]}


# Refused: each is one sentence.


def raises():
    raise ValueError("no data today")


def returns_nothing():
    pass


def returns_a_model_alone():
    return model()


def returns_numbers():
    return 1, 2


def is_not_compiled():
    import keras

    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)]), batches()


def has_arguments_in_a_list():
    return model(), batches(), ["verbose"]


def has_data_in_a_string():
    return model(), "images/"


def has_no_data():
    return model(), batches(0)


def has_no_rows():
    return model(), arrays(0)


def has_an_empty_generator():
    return model(), lambda: (batch for batch in ())


def is_never_batched():
    return model(), batches().unbatch()


def has_an_argument_that_fit_lacks():
    return model(), batches(), {"epoch": 3}


def raises_at_step_one():
    return hooked(on_train_batch_begin=fail)


def fail(*_, **__):
    raise RuntimeError("the disk went away")


# These end their process, each in its own way.


def exits():
    raise SystemExit(3)


def is_interrupted():
    raise KeyboardInterrupt


def exits_at_once():
    os._exit(5)


def claims_success_at_once():
    os._exit(0)


def kills_itself():
    os.kill(os.getpid(), 9)


def reads_where_nothing_is():
    import ctypes

    ctypes.string_at(0)


def asks_for_too_much_memory():
    raise MemoryError("not enough of it")


def allocates_without_an_end():
    import resource

    import psutil

    limit = psutil.Process().memory_info().data + 2**28
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    return [bytearray(2**26) for _ in range(64)]


# These hang.


def hangs_while_it_is_made():
    import threading

    threading.Event().wait()


def hangs_in_its_first_step():
    return hooked(on_train_batch_begin=lambda *_, **__: hangs_while_it_is_made())


# These train like any other.


def never_ends_an_epoch():
    return model(), batches().repeat()


def has_epochs_of_one_step():
    return model(), batches(16)


def ends_before_it_said():
    return model(), batches(64), {"steps_per_epoch": 100}


def prints_a_lot():
    return hooked(on_epoch_end=lambda *_, **__: print("x" * 10_000_000))


def has_a_generator():
    return model(), endless(arrays(16))


def has_a_factory():
    return model(), lambda: endless(arrays(16)), {"steps_per_epoch": 20}


def has_a_dataset_of_many_workers():
    import keras

    batch = arrays(16)

    class Slow(keras.utils.PyDataset):
        def __len__(self):
            return 500

        def __getitem__(self, index):
            sum(range(300_000))
            return batch

    return model(), Slow(workers=2)


def has_a_generator_that_ends():
    return model(), (arrays(16) for _ in range(200))


def endless(batch):
    while True:
        yield batch


def takes_dicts():
    import keras
    from keras import layers

    one, other = keras.Input((8,), name="one"), keras.Input((8,), name="other")
    joined = layers.Concatenate()([one, other])
    outputs = {n: layers.Dense(1, name=n)(joined) for n in ("left", "right")}
    made = keras.Model({"one": one, "other": other}, outputs)
    made.compile("sgd", {"left": "mse", "right": "mae"})
    x, y = arrays()
    return made, dataset({"one": x, "other": x}, {"left": y, "right": y})


def dataset(*parts):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(parts).batch(16)


def takes_several_arrays():
    import keras
    from keras import layers

    one, other = keras.Input((8,)), keras.Input((8,))
    made = keras.Model([one, other], layers.Dense(1)(layers.Add()([one, other])))
    made.compile("sgd", "mse")
    x, y = arrays()
    return made, ([x, x], y), {"batch_size": 16}


def validates_seldom():
    x, y = arrays()
    return model(), (x, y), {"validation_data": (x, y), "validation_freq": 5}


def takes_dicts_of_arrays():
    made, _ = takes_dicts()
    x, y = arrays()
    return made, ({"one": x, "other": x}, {"left": y, "right": y}), {"batch_size": 16}


def weighs_its_samples():
    import numpy as np

    return model(), dataset(*arrays(), np.ones(256, "float32"))


def weighs_its_arrays():
    import numpy as np

    return model(), (*arrays(), np.ones(256, "float32")), {"batch_size": 16}


def weighs_its_classes():
    x, y = arrays()
    options = {"class_weight": {0: 1.0, 1: 2.0}, "validation_split": 0.25}
    return model(), (x, y.astype("int64")), options


def gives_y_by_name():
    x, y = arrays()
    return model(), x, {"y": y, "batch_size": 16}


def steps_its_own_way():
    import keras

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            import tensorflow as tf

            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            found = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(found, self.trainable_variables)
            return {"loss": loss}

    made = Own()
    made.compile("sgd")
    return made, batches()


def trains_in_a_strategy():
    import tensorflow as tf

    with tf.distribute.MirroredStrategy().scope():
        return model(), batches()


def sets_up_its_machine():
    import signal
    import tempfile
    import threading

    import tensorflow as tf

    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    os.chdir(tempfile.gettempdir())
    tf.config.threading.set_intra_op_parallelism_threads(1)
    threading.Thread(target=threading.Event().wait).start()
    return model(), batches()


def starts_processes():
    import multiprocessing
    import subprocess
    import sys

    nap = [sys.executable, "-c", "import time; time.sleep(600)  # perfkit-odd"]
    subprocess.Popen(nap)
    subprocess.Popen(nap, start_new_session=True)
    multiprocessing.Process(target=hangs_while_it_is_made).start()
    return model(), batches()
