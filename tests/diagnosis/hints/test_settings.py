"""Settings that come too late, and the same in time."""

import pytest

from tests.diagnosis.hints.seen import nothing_in, only_here

KNOWN = [
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
    ),
    (
        "import keras\nos.environ['TF_XLA_FLAGS'] = 'x' # here",
        "when it first needs it",
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
]


@pytest.mark.parametrize(("mistake", "said", "right"), KNOWN)
def test_what_is_set_too_late_is_seen(mistake, said, right):
    only_here(mistake, said)
    nothing_in(right)
