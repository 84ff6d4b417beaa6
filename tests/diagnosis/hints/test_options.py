"""Arguments and settings that are left over, come too late, or cost at every batch."""

from tests.diagnosis.hints.seen import rules

OPEN = "d = Dataset.from_generator(g, output_signature=tf.TensorSpec((16, None)))\n"

CALLBACK = """
class Watching(keras.callbacks.Callback):
    def {hook}(self, batch, logs=None):
        {does}
"""


def callback(does, hook="on_train_batch_end"):
    return CALLBACK.format(hook=hook, does=does)


MISTAKES = {
    "uncompiled": [
        "m.compile(run_eagerly=[-True-]{+False+})",
        "m.run_eagerly = [-True-]{+False+}",
    ],
    "every tf.function uncompiled": (
        "tf.config.run_functions_eagerly([-True-]{+False+})"
    ),
    "repeatable": (
        "tf.[-config.experimental.enable_op_determinism()-]{+random.set_seed(1)+}"
    ),
    "without work": [
        "tf.config.threading.set_intra_op_parallelism_threads([-1-]{+cores+})",
        "os.environ['TF_NUM_INTRAOP_THREADS'] = '[-1-]{+8+}'",
        "options.threading.private_threadpool_size = [-1-]{+16+}",
    ],
    "float64": "keras.config.set_floatx('float[-64-]{+32+}')",
    "histogram of every weight": "TensorBoard(histogram_freq=[-1-]{+0+})",
    "every so many batches": "ModelCheckpoint(file, save_freq=[-10-]{+'epoch'+})",
    "5000 thresholds": "keras.metrics.AUC(num_thresholds=[-5000-]{+300+})",
    "each new length": OPEN + "tf.function(f, reduce_retracing=[-False-]{+True+})",
    "64 bytes": [
        "tf.data.TFRecordDataset(files, buffer_size=[-64-]{+262144+})",
        # A value is followed to the only call that gives it.
        "def made(size):\n  return TFRecordDataset(f, buffer_size=size)\n"
        "made(64) # here{+\nmade(1000000)+}",
    ],
    "not in cuDNN's one kernel": [
        "keras.layers.LSTM(9, recurrent_dropout=0.[-2-]{+0, dropout=0.2+})",
        "keras.layers.[-GRU-]{+Dense+}(9, activation='relu')",
    ],
    "TensorFlow read TF_CPP_MIN_LOG_LEVEL when it was imported": (
        "[-import tensorflow\n-]os.environ['TF_CPP_MIN_LOG_LEVEL'] = '2' # here"
        "{+\nimport tensorflow+}"
    ),
    "Keras read KERAS_BACKEND": [
        # TensorFlow loads Keras no sooner than that is used.
        "import [-keras-]{+tensorflow+}\nos.environ['KERAS_BACKEND'] = 'jax' # here",
        "from tensorflow import keras\n"
        "os.environ.setdefault('KERAS_BACKEND', 'x') # here",
    ],
    "when it first needs it": [
        "import [-tensorflow-]{+numpy+}\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = '0' # here",
        "import keras\n[-os.environ-]{+settings+}.update(XLA_FLAGS='--x')",
        "import keras\n"
        "get_ipython().run_line_magic('[-env-]{+time+}', 'TF_XLA_FLAGS=x')",
        "import keras\ndef f():\n    os.environ['TF_GPU_THREAD_MODE'] = 'x' # here",
        "import keras\nos.environ['TF_XLA_FLAGS'] = 'x' # here"
        "{+\nsubprocess.run(command)+}",
    ],
    "NumPy's library read OMP_NUM_THREADS": (
        "import [-numpy as np-]{+json+}\nos.environ |= {}\n"
        "os.environ.update({'OMP_NUM_THREADS': '1'}) # here"
    ),
    "is refused once the devices": [
        "[-x = tf.constant(1)\n-]tf.config.set_visible_devices([], 'GPU') # here"
        "{+\nx = tf.constant(1)+}",
        "tf.config.list_[-log-]{+phys+}ical_devices()\n"
        "tf.config.experimental.set_memory_growth(gpu, True) # here",
        # A scaler is fitted to one thing, and uses no device.
        "model.fit(x[-, y-])\ntf.config.set_visible_devices([], 'GPU') # here",
    ],
    "belongs to a session": (
        "c = tf.compat.v1.ConfigProto()\nc.gpu_options.allow_growth = True # here"
        "{+\ntf.compat.v1.InteractiveSession(config=c)+}"
    ),
    "prints a line": [
        callback("[-print(logs)-]{+self.logs = logs+}"),
        callback("if batch % self.every == 0: print(logs) # here")
        + "Watching(every=[-1-]{+50+})",
        "callbacks.LambdaCallback("
        "on_[-train_batch-]{+epoch+}_end=lambda b, l: print(l))",
    ],
    "copies all weights": callback("self.kept = self.model.get_weights() # here"),
    "evaluates the model": callback("self.[-model-]{+history+}.evaluate(x)"),
}
RIGHT = [
    "ModelCheckpoint(file, save_freq=5000)",
    # No shape is open but that of the batch.
    OPEN.replace("16, None", "None, 16") + "tf.function(f, reduce_retracing=False)",
    "keras.layers.GRU(9, unroll=False)",
    "import keras\nbackend = os.environ['KERAS_BACKEND']",
    # The function runs after the module has set it.
    "def f():\n    import keras\nos.environ['TF_GPU_THREAD_MODE'] = 'x'",
    "if TYPE_CHECKING:\n    import keras\nos.environ['TF_XLA_FLAGS'] = 'x'",
    callback("if batch % 100 == 0: print(logs)"),
    callback("self.kept = self.model.get_weights()", "on_epoch_end"),
]
test_a_mistake_is_seen, test_what_is_right_is_not = rules(MISTAKES, RIGHT)
