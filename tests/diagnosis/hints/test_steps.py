"""Loops of one's own: eager steps, numbers that are traced, results that are read."""

import pytest

from tests.diagnosis.hints.seen import nothing_in, only_here

STEP = """
@tf.function
def step(x, rate=0.1):
    with tf.GradientTape() as tape:
        return model(x)
"""
EAGER = STEP.replace("@tf.function\n", "").replace("tape:", "tape: # here")
LOOP = "for x in d:\n    "
SIGNATURE = STEP.replace("tf.function", "tf.function(input_signature=[a, b])")
METHOD = """
class Mine(keras.Model):
    def train_step(self, data):
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = self(data)
"""
KNOWN = [
    (EAGER + LOOP + "step(x)", "one by one from Python", STEP + LOOP + "step(x)"),
    (
        EAGER + LOOP + "step(x)",
        "one by one from Python",
        # A graph is made of it by whom it is handed to.
        EAGER.replace(" # here", "") + "fast = tf.function(step)\n" + LOOP + "fast(x)",
    ),
    (
        EAGER + LOOP + "step(x)",
        "one by one from Python",
        EAGER + "@tf.function\ndef epoch(d):\n    for x in d:\n        step(x)",
    ),
    (
        EAGER + "def epoch(d):\n    for x in d:\n        step(x)\nepoch(d)",
        "one by one from Python",
        EAGER + "def epoch(d):\n    for x in d:\n        step(x)\n"
        "@tf.function\ndef epochs():\n    epoch(d)",
    ),
    (
        LOOP + "with tf.GradientTape() as tape: # here\n        loss = model(x)",
        "one by one from Python",
        METHOD,
    ),
    (
        LOOP + "with tf.GradientTape() as tape: # here\n        loss = model(x)",
        "one by one from Python",
        "with tf.GradientTape() as tape:\n    loss = model(x)",
    ),
    (
        STEP + "for n, x in enumerate(d):\n    step(x, n) # here",
        "A number of Python that changes",
        STEP + "for n, x in enumerate(d):\n    step(x, tf.constant(n))",
    ),
    (
        STEP + "for n in range(9):\n    step(x, 0.1 * n) # here",
        "A number of Python that changes",
        STEP + "for n in tf.range(9):\n    step(x, 0.1 * n)",
    ),
    (
        STEP + "n = 0\n" + LOOP + "step(x, float(n)) # here\n    n += 1",
        "A number of Python that changes",
        STEP + "n = 3\n" + LOOP + "step(x, float(n))\n    m += 1",
    ),
    (
        STEP + "def rate(n):\n    return 0.1 / n\n"
        "for n in range(9):\n    step(x, rate(n)) # here",
        "A number of Python that changes",
        STEP + "for n in range(9):\n    step(x, schedule(n))",
    ),
    (
        STEP + "for n in range(9):\n    step(x, n) # here",
        "A number of Python that changes",
        # What has a signature takes numbers as tensors.
        SIGNATURE + "for n in range(9):\n    step(x, n)",
    ),
    (
        METHOD + "            tf.print(loss) # here",
        "a line at each step",
        METHOD + "            if self.n % 100 == 0:\n                tf.print(loss)",
    ),
    (
        STEP.replace("return model(x)", "tf.print(x) # here") + LOOP + "step(x)",
        "a line at each step",
        STEP.replace("return model(x)", "tf.print(x)") + "step(x)",
    ),
    (
        METHOD + "            self.kept.append(loss.numpy()) # here",
        "has to run eagerly",
        METHOD.replace("train_step", "show") + "            loss.numpy()",
    ),
    (
        STEP + LOOP + "loss = step(x)\n    kept.append(loss.numpy()) # here",
        "waits for the device at each step",
        STEP + LOOP + "loss = step(x)\n    kept.append(loss)",
    ),
    (
        STEP + LOOP + "loss = step(x)\n    print(loss) # here",
        "waits for the device at each step",
        STEP
        + LOOP
        + "loss = step(x)\n    n += 1\n    if n % 100 == 0:\n        print(loss)",
    ),
    (
        STEP + LOOP + "loss = step(x)\n    total += float(loss) # here",
        "waits for the device at each step",
        STEP
        + "for epoch in range(9):\n    for x in d:\n        loss = step(x)\n"
        + "    print(float(loss))",
    ),
]


@pytest.mark.parametrize(("mistake", "said", "right"), KNOWN)
def test_what_slows_each_step_of_a_loop_is_seen(mistake, said, right):
    only_here(mistake, said)
    nothing_in(right)


COUNTING = """
@tf.function
def average(seen): pass
class Averaging(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.seen = 0
    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        average({given})
"""


def test_a_number_that_a_callback_counts_is_seen():
    only_here(COUNTING.format(given="self.seen) # here\n        str("), "A number of")
    only_here(
        COUNTING.format(given="batch) # here\n        str("), "A number of Python"
    )
    nothing_in(COUNTING.format(given="tf.constant(self.seen)"))
    nothing_in(COUNTING.format(given="self.model"))
