"""Arguments and settings that are left over, come too late, or cost at every batch."""

from tests.diagnosis.hints.seen import nothing_in, only_here, rules

OPEN = "d = Dataset.from_generator(g, output_signature=tf.TensorSpec((16, None)))\n"

CALLBACK = """
class Watching(keras.callbacks.Callback):
    def {hook}(self, batch, logs=None):
        {does}
"""


def callback(does, hook="on_train_batch_end"):
    return CALLBACK.format(hook=hook, does=does)


KNOWN = [
    (
        "m.compile(run_eagerly=True) # here",
        "uncompiled",
        "m.compile(run_eagerly=False)",
    ),
    (
        "m.run_eagerly = True # here",
        "uncompiled",
        "m.run_eagerly = False",
    ),
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
        # No shape is open but that of the batch.
        OPEN.replace("16, None", "None, 16") + "tf.function(f, reduce_retracing=False)",
    ),
    (
        "tf.data.TFRecordDataset(files, buffer_size=64) # here",
        "64 bytes",
        "tf.data.TFRecordDataset(files, buffer_size=262144)",
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
    (
        "import tensorflow\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '2' # here",
        "TensorFlow read TF_CPP_MIN_LOG_LEVEL when it was imported",
        "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '2'\nimport tensorflow",
    ),
    (
        "import keras\nos.environ['KERAS_BACKEND'] = 'jax' # here",
        "Keras read KERAS_BACKEND",
        # It loads Keras no sooner than that is used.
        "import tensorflow\nos.environ['KERAS_BACKEND'] = 'jax'",
    ),
    (
        "from tensorflow import keras\n"
        "os.environ.setdefault('KERAS_BACKEND', 'x') # here",
        "Keras read KERAS_BACKEND",
        "import keras\nbackend = os.environ['KERAS_BACKEND']",
    ),
    (
        "import tensorflow\nos.environ['CUDA_VISIBLE_DEVICES'] = '0' # here",
        "when it first needs it",
        "import numpy\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'",
    ),
    (
        "import keras\nos.environ.update(XLA_FLAGS='--x') # here",
        "when it first needs it",
        "import keras\nsettings.update(XLA_FLAGS='--x')",
    ),
    (
        "import numpy as np\nos.environ |= {}\n"
        "os.environ.update({'OMP_NUM_THREADS': '1'}) # here",
        "NumPy's library read OMP_NUM_THREADS",
        "import json\nos.environ.update({'OMP_NUM_THREADS': '1'})",
    ),
    (
        "import keras\nget_ipython().run_line_magic('env', 'TF_XLA_FLAGS=x') # here",
        "when it first needs it",
        "import keras\nget_ipython().run_line_magic('time', 'TF_XLA_FLAGS=x')",
    ),
    (
        "import keras\ndef f():\n    os.environ['TF_GPU_THREAD_MODE'] = 'x' # here",
        "when it first needs it",
        # The function runs after the module has set it.
        "def f():\n    import keras\nos.environ['TF_GPU_THREAD_MODE'] = 'x'",
    ),
    (
        "import keras\nos.environ['TF_XLA_FLAGS'] = 'x' # here",
        "when it first needs it",
        "import keras\nos.environ['TF_XLA_FLAGS'] = 'x'\nsubprocess.run(command)",
        "if TYPE_CHECKING:\n    import keras\nos.environ['TF_XLA_FLAGS'] = 'x'",
    ),
    (
        "x = tf.constant(1)\ntf.config.set_visible_devices([], 'GPU') # here",
        "is refused once the devices",
        "tf.config.set_visible_devices([], 'GPU')\nx = tf.constant(1)",
    ),
    (
        "tf.config.list_logical_devices()\n"
        "tf.config.experimental.set_memory_growth(gpu, True) # here",
        "is refused once the devices",
        "tf.config.list_physical_devices()\n"
        "tf.config.experimental.set_memory_growth(gpu, True)",
    ),
    (
        "c = tf.compat.v1.ConfigProto()\nc.gpu_options.allow_growth = True # here",
        "belongs to a session",
        "c = tf.compat.v1.ConfigProto()\nc.gpu_options.allow_growth = True\n"
        "tf.compat.v1.InteractiveSession(config=c)",
    ),
    (
        callback("print(logs) # here"),
        "prints a line",
        callback("self.logs = logs"),
        callback("if batch % 100 == 0: print(logs)"),
    ),
    (
        callback("self.kept = self.model.get_weights() # here"),
        "copies all weights",
        callback("self.kept = self.model.get_weights()", "on_epoch_end"),
    ),
    (
        callback("self.model.evaluate(x) # here"),
        "evaluates the model",
        callback("self.history.evaluate(x)"),
    ),
    (
        callback("if batch % self.every == 0: print(logs) # here")
        + "Watching(every=1)",
        "prints a line",
        callback("if batch % self.every == 0: print(logs)") + "Watching(every=50)",
    ),
    (
        "callbacks.LambdaCallback(on_train_batch_end=lambda b, l: print(l)) # here",
        "prints a line",
        "callbacks.LambdaCallback(on_epoch_end=lambda b, l: print(l))",
    ),
]
test_a_mistake_is_seen = rules(KNOWN)


def test_a_value_is_followed_to_the_only_call_that_gives_it():
    source = "def made(size):\n  return TFRecordDataset(f, buffer_size=size)\n"
    only_here(source + "made(64) # here", "64 bytes")
    nothing_in(source + "made(64)\nmade(1000000)")
