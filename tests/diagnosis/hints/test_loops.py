"""What each step and each round of a loop does, and what clocks around it show."""

from tests.diagnosis.hints.seen import nothing_in, only_here, rules

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

MAKER = """
def made():
    model = keras.Sequential([])
    model.compile("adam", "mse")
    return model
"""
ONE = MAKER + "model = made()\n"
START = "start = time.perf_counter()\n"
UNREAD = "a call returns before its work is done"
STOP = "took = time.perf_counter() - start"
PLAIN_STEP = "@tf.function\ndef step(x): pass\n"
KNOWN = [
    (
        EAGER + LOOP + "step(x)",
        "one by one from Python",
        STEP + LOOP + "step(x)",
        # A graph is made of it by whom it is handed to.
        EAGER.replace(" # here", "") + "fast = tf.function(step)\n" + LOOP + "fast(x)",
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
    (
        "for x in d:\n    model.predict(x) # here",
        "predict sets up a loop",
        "for x in d:\n    model(x)",
        "for model in models:\n    model.predict(x)",
        "model = LinearRegression()\nfor x in d:\n    model.predict(x)",
    ),
    (
        "net = keras.Sequential([])\nfor x in d:\n    net.predict(x) # here",
        "predict sets up a loop",
        # Each round trains, and then looks once.
        "for k in range(9):\n    model.fit(x)\n    y = model.predict(x[:k])",
    ),
    (
        "for x in d:\n    @tf.function\n    def f(): pass # here\n    f()",
        "traced anew",
        "@tf.function\ndef f(): pass\nfor x in d:\n    f()",
    ),
    (
        "for x in d:\n    f = tf.function(g) # here\n    f(x)",
        "traced anew",
        # One graph for each way of working, and many steps with each.
        "for way in ways:\n    f = tf.function(way)\n    for x in d:\n        f(x)",
    ),
    (
        "for x in d:\n    tf.function(g)(x) # here",
        "traced anew",
        "graphs = {}\nfor way in ways:\n    graphs[way] = tf.function(way)",
    ),
    (
        ONE + "for size in (32, 64):\n    model.fit(x, y, batch_size=size) # here",
        "The same model is trained on",
        MAKER + "for size in (32, 64):\n    keras.utils.clear_session()\n"
        "    model = made()\n    model.fit(x, y, batch_size=size)",
        ONE + "for epoch in range(9):\n    model.fit(x, initial_epoch=epoch)",
    ),
    (
        ONE
        + "for size in (32, 64):\n    data = d.batch(size)\n    model.fit(data) # here",
        "The same model is trained on",
        # More and more is learnt, of other data each time.
        ONE + "for part in parts:\n    model.fit(part, batch_size=32)",
    ),
    (
        ONE + "for rate in (0.1, 0.2):\n    model.compile(SGD(rate))\n"
        "    model.fit(x) # here",
        "The same model is trained on",
        ONE + "for rate in (0.1, 0.2):\n    model.set_weights(start)\n"
        "    model.compile(SGD(rate))\n    model.fit(x)",
    ),
    (
        MAKER
        + "for size in sizes:\n    m = made() # here\n    m.fit(x, batch_size=size)",
        "keeps a record of every model",
        MAKER.replace("    model =", "    clear_session()\n    model =")
        + "for size in sizes:\n    m = made()\n    m.fit(x, batch_size=size)",
    ),
    (
        "for n in sizes:\n    m = keras.Sequential([Dense(n)]) # here\n    m.fit(x)",
        "keeps a record of every model",
        # The parts of one model.
        "for n in sizes:\n    part = keras.Sequential([Dense(n)])\n    kept += [part]",
    ),
    (
        START + "y = model(x)\n" + STOP + " # here",
        UNREAD,
        START + "y = model(x)\ny.numpy()\n" + STOP,
    ),
    (
        PLAIN_STEP + START + "for x in d:\n    step(x)\n" + STOP + " # here",
        UNREAD,
        PLAIN_STEP + START + "for x in d:\n    loss = step(x)\nfloat(loss)\n" + STOP,
    ),
    (
        "start = time.time()\ny = tf.matmul(a, b)\nprint(time.time() - start) # here",
        UNREAD,
        # What it prints brings the result.
        "start = time.time()\nmodel.fit(x)\nprint(time.time() - start)",
    ),
    (
        "def f():\n    a = time.time()\n    model(x)\n    b = time.time() - a # here",
        UNREAD,
        "def f():\n    a = time.time()\n    train()\n    return time.time() - a",
    ),
    (
        START + "y = model(x)\nend = time.perf_counter() # here\nprint(end - start)",
        UNREAD,
        START + "y = model(x)\nfloat(y)\nend = time.perf_counter()\nprint(end - start)",
    ),
    (
        "def go(): pass\n" + START + "model(x)\n" + STOP + " # here",
        UNREAD,
        # Another function may wait for it.
        "def go(): pass\n" + START + "model(x)\ngo()\n" + STOP,
    ),
    (
        START + "model(x)\n" + STOP + " # here",
        UNREAD,
        START + "y = model(x)\ntf.test.experimental.sync_devices()\n" + STOP,
    ),
]
test_a_mistake_is_seen = rules(KNOWN)


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
