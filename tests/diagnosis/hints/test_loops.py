"""What each step and each round of a loop does, and what clocks around it show."""

from tests.diagnosis.hints.seen import rules

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
STOP = "took = time.perf_counter() - start # here"
PLAIN_STEP = "@tf.function\ndef step(x): pass\n"
SIZES = "for size in (32, 64):\n"
EPOCH = "def epoch(d):\n    for x in d:\n        step(x)\n"
COUNTING = """
@tf.function
def average(seen): pass
class Averaging(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.seen = 0
    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        """
MISTAKES = {
    "one by one from Python": [
        EAGER + LOOP + "step(x)",
        EAGER + EPOCH + "{+@tf.function\ndef epochs():\n    +}epoch(d)",
        LOOP + "with tf.GradientTape() as tape: # here\n        loss = model(x)",
    ],
    "A number of Python that changes": [
        STEP + "for n, x in enumerate(d):\n    step(x, [-n-]{+tf.constant(n)+})",
        STEP + "for n in {+tf.+}range(9):\n    step(x, 0.1 * n) # here",
        STEP + "n = [-0-]{+3+}\n" + LOOP + "step(x, float(n)) # here\n"
        "    [-n-]{+m+} += 1",
        STEP + "def rate(n):\n    return 0.1 / n\n"
        "for n in range(9):\n    step(x, [-rate-]{+schedule+}(n))",
        STEP + "for n in range(9):\n    step(x, n) # here",
        COUNTING + "average([-self.seen-]{+tf.constant(self.seen)+})",
        COUNTING + "average([-batch-]{+self.model+})",
    ],
    "a line at each step": [
        METHOD + "            {+if self.n % 100 == 0: +}tf.print(loss)",
        STEP.replace("return model(x)", "tf.print(x) # here")
        + "[-for x in d:\n    -]step(x)",
    ],
    "has to run eagerly": (
        METHOD + "            self.kept.append(loss.numpy()) # here"
    ),
    "waits for the device at each step": [
        STEP + LOOP + "loss = step(x)\n    kept.append(loss[-.numpy()-])",
        STEP + LOOP + "loss = step(x)\n"
        "    {+n += 1\n    if n % 100 == 0: +}print(loss) # here",
        STEP + LOOP + "loss = step(x)\n    total += float(loss) # here",
    ],
    "predict sets up a loop": [
        "for x in d:\n    model[-.predict-](x)",
        "net = keras.Sequential([])\nfor x in d:\n    net.predict(x) # here",
    ],
    "fit sets up a loop": [
        "for x, y in d:\n    self.model.[-fit(x, epochs=1)-]{+train_on_batch(x)+}",
        "for x, y in d:\n    model.fit(x, y, epochs=[-1-]{+9+})",
    ],
    "traced anew": [
        "for x in d:\n    @tf.function\n    def f(): pass # here\n    f()",
        "for x in d:\n    f = tf.function(g) # here\n    f(x)",
        "for x in d:\n    tf.function(g)(x) # here",
    ],
    "The same model is trained on": [
        ONE + SIZES + "{+    keras.utils.clear_session()\n    model = made()\n+}"
        "    model.fit(x, y, batch_size=size) # here",
        ONE + SIZES + "    data = d.batch(size)\n    model.fit(data) # here",
        ONE + "for rate in (0.1, 0.2):\n{+    model.set_weights(start)\n+}"
        "    model.compile(SGD(rate))\n    model.fit(x) # here",
    ],
    "keeps a record of every model": [
        MAKER
        + "for size in sizes:\n    m = made() # here\n    m.fit(x, batch_size=size)",
        "for n in sizes:\n    m = keras.Sequential([Dense(n)]) # here\n    m.fit(x)",
    ],
    "a call returns before its work is done": [
        START + "y = model(x)\n{+y.numpy()\n+}" + STOP,
        PLAIN_STEP + START + "for x in d:\n    {+loss = +}step(x)\n"
        "{+float(loss)\n+}" + STOP,
        # What it prints brings the result.
        "start = time.time()\n[-y = tf.matmul(a, b)-]{+model.fit(x)+}\n"
        "print(time.time() - start) # here",
        "def f():\n    a = time.time()\n    [-model(x)-]{+train()+}\n"
        "    [-b =-]{+return+} time.time() - a # here",
        START + "y = model(x)\n{+float(y)\n+}end = time.perf_counter() # here\n"
        "print(end - start)",
        # Another function may wait for it.
        "def go(): pass\n" + START + "model(x)\n{+go()\n+}" + STOP,
        START + "{+y = +}model(x)\n{+tf.test.experimental.sync_devices()\n+}" + STOP,
    ],
}
RIGHT = [
    STEP + LOOP + "step(x)",
    # A graph is made of it by whom it is handed to.
    EAGER + "fast = tf.function(step)\n" + LOOP + "fast(x)",
    EAGER + "@tf.function\n" + EPOCH,
    *(METHOD, "with tf.GradientTape() as tape:\n    loss = model(x)"),
    # What has a signature takes numbers as tensors.
    SIGNATURE + "for n in range(9):\n    step(x, n)",
    METHOD.replace("train_step", "show") + "            loss.numpy()",
    STEP + "for epoch in range(9):\n    for x in d:\n        loss = step(x)\n"
    "    print(float(loss))",
    "for model in models:\n    model.predict(x)",
    "model = LinearRegression()\nfor x in d:\n    model.predict(x)",
    # Each round trains, and then looks once.
    "for k in range(9):\n    model.fit(x)\n    y = model.predict(x[:k])",
    "@tf.function\ndef f(): pass\nfor x in d:\n    f()",
    # One graph for each way of working, and many steps with each.
    "for way in ways:\n    f = tf.function(way)\n    for x in d:\n        f(x)",
    "graphs = {}\nfor way in ways:\n    graphs[way] = tf.function(way)",
    ONE + "for epoch in range(9):\n    model.fit(x, initial_epoch=epoch)",
    "for x, y in folds:\n    model.fit(x, y, epochs=1, batch_size=32)",
    "for epoch in range(9):\n    model.fit(x, y, epochs=1)",
    # More and more is learnt, of other data each time.
    ONE + "for part in parts:\n    model.fit(part, batch_size=32)",
    MAKER.replace("    model =", "    clear_session()\n    model =")
    + "for size in sizes:\n    m = made()\n    m.fit(x, batch_size=size)",
    # The parts of one model.
    "for n in sizes:\n    part = keras.Sequential([Dense(n)])\n    kept += [part]",
]
test_a_mistake_is_seen, test_what_is_right_is_not = rules(MISTAKES, RIGHT)
