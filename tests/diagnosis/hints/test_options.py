"""Arguments that are left over from debugging, or are far off."""

import pytest

from tests.diagnosis.hints.seen import nothing_in, only_here

OPEN = "d = Dataset.from_generator(g, output_signature=tf.TensorSpec((16, None)))\n"
KNOWN = [
    (
        "m.compile(run_eagerly=True) # here",
        "uncompiled",
        "m.compile(run_eagerly=False)",
    ),
    (
        "m.compile(\n  'adam',\n  run_eagerly=True, # here\n)",
        "uncompiled",
        "m.compile()",
    ),
    ("m.run_eagerly = True # here", "uncompiled", "m.run_eagerly = False"),
    (
        "tf.config.run_functions_eagerly(True) # here",
        "every tf.function uncompiled",
        "tf.config.run_functions_eagerly(False)",
    ),
    (
        "tf.config.experimental.enable_op_determinism() # here",
        "repeatable",
        "tf.random.set_seed(1)",
    ),
    (
        "tf.debugging.experimental.enable_dump_debug_info(folder) # here",
        "to files",
        "tf.debugging.disable_dump_debug_info()",
    ),
    (
        "tf.config.threading.set_intra_op_parallelism_threads(1) # here",
        "without work",
        "tf.config.threading.set_intra_op_parallelism_threads(cores)",
    ),
    (
        "os.environ['TF_NUM_INTRAOP_THREADS'] = '1' # here",
        "without work",
        "os.environ['TF_NUM_INTRAOP_THREADS'] = '8'",
    ),
    (
        "options.threading.private_threadpool_size = 1 # here",
        "without work",
        "options.threading.private_threadpool_size = 16",
    ),
    (
        "keras.config.set_floatx('float64') # here",
        "float64",
        "keras.config.set_floatx('float32')",
    ),
    (
        "TensorBoard(histogram_freq=1) # here",
        "histogram of every weight",
        "TensorBoard(histogram_freq=0)",
    ),
    (
        "ModelCheckpoint(file, save_freq=10) # here",
        "every so many batches",
        "ModelCheckpoint(file, save_freq='epoch')",
    ),
    (
        "ModelCheckpoint(file, save_freq=10) # here",
        "every so many batches",
        "ModelCheckpoint(file, save_freq=5000)",
    ),
    (
        "keras.metrics.AUC(num_thresholds=5000) # here",
        "5000 thresholds",
        "keras.metrics.AUC(num_thresholds=300)",
    ),
    (
        OPEN + "tf.function(f, reduce_retracing=False) # here",
        "each new length",
        OPEN + "tf.function(f, reduce_retracing=True)",
    ),
    (
        OPEN + "tf.function(f, reduce_retracing=False) # here",
        "each new length",
        # No shape is open but that of the batch.
        OPEN.replace("16, None", "None, 16") + "tf.function(f, reduce_retracing=False)",
    ),
    (
        "tf.data.TFRecordDataset(files, buffer_size=64) # here",
        "64 bytes",
        "tf.data.TFRecordDataset(files, buffer_size=262144)",
    ),
    (
        "SIZE = 64 # here\ntf.data.TFRecordDataset(files, buffer_size=SIZE)",
        "64 bytes",
        "SIZE = 64\nd.shuffle(buffer_size=SIZE)",
    ),
    (
        "keras.layers.LSTM(9, recurrent_dropout=0.2) # here",
        "not in cuDNN's one kernel",
        "keras.layers.LSTM(9, recurrent_dropout=0.0, dropout=0.2)",
    ),
    (
        "keras.layers.GRU(9, activation='relu') # here",
        "not in cuDNN's one kernel",
        "keras.layers.Dense(9, activation='relu')\nkeras.layers.GRU(9, unroll=False)",
    ),
]


@pytest.mark.parametrize(("mistake", "said", "right"), KNOWN)
def test_a_value_that_is_often_a_mistake_is_seen_where_it_stands(mistake, said, right):
    only_here(mistake, said)
    nothing_in(right)


def test_a_value_is_followed_to_the_only_call_that_gives_it():
    source = "def made(size):\n  return TFRecordDataset(f, buffer_size=size)\n"
    only_here(source + "made(64) # here", "64 bytes")
    nothing_in(source + "made(64)\nmade(1000000)")
