"""What is heard of a real script, in a process of its own.

The hooks stay where they are put: here they are gone with their process.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from perfkit.training.account.watch import EAGER_STEPS, Watch, contraction

ROOT = Path(__file__).parents[3]
SCRIPT = """
import json
import sys

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(7)


class Doubled(keras.layers.Layer):
    # It has no __init__ of its own.
    def call(self, x):
        return 2.0 * tf.sin(x)  # @sin


@keras.saving.register_keras_serializable()
class Scaled(keras.layers.Layer):
    def __init__(self, by, **named):
        super().__init__(**named)
        self.by = by
        self.inner = keras.layers.Dense(3, name="inner")  # @inner

    def call(self, x):
        return self.by * self.inner(x)

    def get_config(self):
        return super().get_config() | {"by": self.by}


def decode(x, y):
    return tf.cos(x), y  # @cos


x, y = np.ones((40, 4), "f4"), np.ones((40, 1), "f4")
data = tf.data.Dataset.from_tensor_slices((x, y))  # @slices
data = data.map(decode)  # @map
data = data.batch(10)  # @batch
frozen = keras.layers.Dense(3, name="frozen", trainable=False)  # @frozen
model = keras.Sequential(
    [
        keras.Input((4,)),
        keras.layers.Dense(8, name="wide"),  # @wide
        Doubled(name="doubled"),  # @doubled
        Scaled(0.5, name="scaled"),  # @scaled
        frozen,
        keras.layers.Dense(1, name="head"),  # @head
    ]
)
adam = keras.optimizers.Adam(0.1, name="my_adam")  # @adam
model.compile(  # @compile
    adam, keras.losses.MeanSquaredError(name="my_loss"), metrics=["mae"]  # @loss
)
seen = keras.callbacks.LambdaCallback()  # @callback
inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="within")])
inner.trainable = False
keras.utils.pad_sequences([[1, 2], [3] * 8], maxlen=10)  # @pad
history = model.fit(data, epochs=3, verbose=0, callbacks=[seen]).history  # @fit
for row in x[:5]:
    model.predict(row[None], verbose=0)  # @predict
model.save("model.keras")  # @save
again = keras.models.load_model(
    "model.keras", custom_objects={"Doubled": Doubled}, compile=False
)
results = {
    "history": history,
    "same": bool(np.allclose(again(x), model(x))),
    "by": again.get_layer("scaled").get_config()["by"],
    "names": [one.name for one in again.layers],
    "fit": str(__import__("inspect").signature(keras.Model.fit)),
    "init": str(__import__("inspect").signature(keras.layers.Dense.__init__)),
}
shown = results["same"]
"""
EAGER = """
import tensorflow as tf

w = tf.Variable(1.0)
for _ in range(4):
    with tf.GradientTape() as tape:
        loss = w * w
    w.assign_sub(0.1 * tape.gradient(loss, w))


@tf.function
def square(x):
    return x * x  # @square


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = w * w
    w.assign_sub(0.1 * tape.gradient(loss, w))


for n in (1, 2, 3):
    square(n)  # @again
for _ in range(7):
    step()
model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse", run_eagerly=True)  # @compile
try:

    @tf.function
    def raises(x):
        raise ValueError("lost")

    raises(1)
except ValueError:
    seen = "raised"
"""
KEPT = """
import gc
import weakref

import keras
import numpy as np
import tensorflow as tf

x, y = np.ones((40, 4), "f4"), np.ones((40, 1), "f4")


def train():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])  # @model
    model.compile("adam", "mse")
    for _ in range(2):
        model.fit(x, y, epochs=3, verbose=0)  # @fit
    return weakref.ref(model), weakref.ref(model.optimizer)


references = []
for _ in range(2):
    references += train()  # @train
data = tf.data.Dataset.from_tensor_slices(x).cache()  # @data
for _ in range(4):
    for batch in data:  # @pass
        pass
keras.backend.clear_session()
gc.collect()
seen = [reference() is None for reference in references]
"""
# The first script as it is, then watched; the others with nothing heard before.
RUNS = """
import json, os, sys
import tensorflow as tf
from perfkit.training.account.watch import Watch

def run(file):
    known = {"__name__": "__main__", "__file__": file}
    with open(file) as source:
        exec(compile(source.read(), os.path.abspath(file), "exec"), known)
    return known

def heard(known):
    told = watch.as_note() | {"results": known.get("results"), "seen": known["seen"]}
    told["callbacks"] = [list(place) for place in watch.callbacks.values()]
    told["trained_at"], told["gradients"] = watch.trained_at, watch.gradients
    return told | {"steps": watch.steps, "graphs": list(watch.operations)}

alone = run("train.py")["results"]
watch = Watch()
watch.begin()
told = {"alone": alone, "train": heard(run("train.py"))}
watch.__init__()
told["eager"] = heard(run("eager.py"))
watch.__init__()
told["kept"] = heard(run("kept.py"))
iterator, calls = iter(tf.data.Dataset.range(1)), []
sys.setprofile(lambda frame, *_: calls.append(frame.f_code.co_name))
del iterator
sys.setprofile(None)
told["ends"] = calls
print("TOLD" + json.dumps(told, default=str))
"""


def lines(source):
    """The numbers of lines that end with a mark, by their mark."""
    every = enumerate(source.splitlines(), 1)
    return {t.rpartition("# @")[2]: n for n, t in every if "# @" in t}


AT = lines(SCRIPT)


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """What is heard of these scripts."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "eager.py").write_text(EAGER)
    (folder / "kept.py").write_text(KEPT)
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    ran = subprocess.run(
        [sys.executable, "-c", RUNS],
        cwd=folder,
        env=os.environ | quiet | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.partition("TOLD")[2])


@pytest.fixture
def told(heard):
    return heard["train"]


def test_what_is_watched_gives_what_it_gives_unwatched(heard):
    alone = heard["alone"]
    assert heard["train"]["results"] == alone
    assert alone["same"]
    assert alone["by"] == 0.5
    assert "doubled" in alone["names"]


def test_an_iterator_ends_where_the_sampler_sees_it(heard):
    assert "_end_pass" in heard["ends"]


def test_objects_remember_the_line_that_made_them(told):
    made = {(kind, name): line for kind, name, _, line in told["made"]}
    # ``scaled`` is the script's own, and so is the line in it that makes ``inner``.
    for name in ("wide", "doubled", "scaled", "inner", "head"):
        assert made["layer", name] == AT[name], name
    assert made["optimizer", "my_adam"] == AT["adam"]
    assert made["loss", "my_loss"] == AT["loss"]
    assert made["compile", ""] in (AT["compile"], AT["loss"])
    assert AT["callback"] in {line for _, line in told["callbacks"]}
    assert told["classes"]["wide"] == "Dense"
    # A model that is not trained leaves its layers as they are.
    assert {"frozen", "within"} <= {*told["frozen"]}
    assert not {"wide", "head"} & {*told["frozen"]}
    ((_, line, share),) = told["padded"]
    assert (line, share) == (AT["pad"], pytest.approx(0.5))


def test_calls_are_counted_by_the_line_that_made_them(told):
    counts = {(line, name): count for _, line, name, count in told["calls"]}
    assert counts[AT["fit"], "fit"] == 1
    assert counts[AT["predict"], "predict"] == 5
    assert counts[AT["save"], "save"] == 1
    # What Keras calls within is its own.
    assert {line for line, _ in counts} <= {
        *(AT[mark] for mark in ("compile", "loss", "fit", "predict", "save")),
        *(n for n, t in enumerate(SCRIPT.splitlines(), 1) if "again" in t),
    }


def test_stages_of_the_input_have_a_number_and_their_line(told):
    kinds = {place[1]: kind for place, kind in told["stages"] if place}
    assert "TensorSlice" in kinds[AT["slices"]]
    assert "Map" in kinds[AT["map"]]
    assert "Batch" in kinds[AT["batch"]]


def test_operations_belong_to_the_line_that_made_them(told):
    every = {
        name: found
        for function in told["operations"].values()
        for name, found in function.items()
    }
    places = {place[1] for place, *_ in every.values() if place}
    assert {AT["sin"], AT["cos"]} <= places
    # Keras's own layers are called in its own loop.
    wide = [found for name, found in every.items() if "/wide" in name]
    assert wide
    assert all(in_fit for _, _, in_fit, *_ in wide)
    assert max(elements for *_, elements, _, _ in every.values()) >= 32
    assert any(name.startswith("Dataset_") for name in told["graphs"])


def test_what_may_be_fused_with_a_product_names_it():
    import tensorflow as tf

    with tf.Graph().as_default():
        product = tf.linalg.matmul(tf.ones((2, 2)), tf.ones((2, 2)), name="product")
        active = tf.nn.relu(product + tf.ones(2))
        names = [contraction(x.op) for x in (active, tf.exp(active), product)]
    assert names == ["product", "", ""]


def test_a_tapes_sum_of_gradients_is_heard_as_one_of_them():
    import tensorflow as tf

    with tf.Graph().as_default() as graph, tf.GradientTape() as tape:
        table = tf.ones((4, 2))
        tape.watch(table)
        read = tf.gather(table, [0, 1])
        loss = tf.reduce_sum(read) + tf.reduce_sum(tf.square(table))
        tape.gradient(loss, table)
        tf.add_n([read, read], name="AddN_of_mine")
    heard = {o.name: Watch()._charged(o)[5] for o in graph.get_operations()}
    sums = {name: gradient for name, gradient in heard.items() if "AddN" in name}
    assert sums["AddN"].startswith("gradient_tape/")
    assert sums["AddN_of_mine"] == ""


def test_updates_epochs_and_gradients_are_heard(told):
    assert told["updates"] == told["steps"] == 12
    assert len(told["epochs"]) == 3
    assert all(begin < end for begin, end in told["epochs"])
    assert told["trained_at"] > 0
    # Within a graph: they are taken once, when it is traced.
    assert told["gradients"] == 0
    traces = [one for one in told["traces"] if one["trains"]]
    assert [one["place"][1] for one in traces] == [AT["fit"]] * len(traces)
    # Then the optimizer changes the weights.
    assert {one["backward"][-1] for one in traces} == {None}


def test_a_loop_of_the_users_own_and_what_it_traces_again_is_heard(heard):
    told, at = heard["eager"], lines(EAGER)
    # No optimizer counts the second ones.
    assert (told["gradients"], told["updates"]) == (4, 7)
    ((setting, (_, line)),) = told["settings"]
    assert (setting, line) == (EAGER_STEPS, at["compile"])
    assert told["epochs"] == []
    again = [one for one in told["traces"] if one["name"] == "square"]
    assert [one["place"][1] for one in again] == [at["again"]] * 3
    assert not any(one["trains"] for one in again)
    # A trace that raises ends as it should.
    assert told["seen"] == "raised"


def test_memory_is_read_at_each_end_and_nothing_is_kept_that_the_script_let_go(heard):
    told, at = heard["kept"], lines(KEPT)
    # The stages in which Keras feeds arrays are on no line.
    assert {place[1] for place, _ in told["stages"] if place} <= {
        at["data"],
        at["pass"],
    }
    assert [None, "_MapDataset"] in told["stages"]
    ends = {
        (unit, place[1]): [n for n, _ in read] for unit, place, read in told["memory"]
    }
    assert ends == {
        ("epoch", at["fit"]): [*range(1, 13)],
        ("fit", at["fit"]): [*range(1, 5)],
        ("pass", at["pass"]): [*range(1, 5)],
    }
    assert all(held > 1e6 for *_, read in told["memory"] for _, held in read)
    # A ``Sequential`` makes another model within.
    assert [[n, count] for _, n, count in told["models"]] == [[at["model"], 4]]
    # Those of the first call came before any training.
    assert [[n, count] for _, n, count in told["new_models"]] == [[at["train"], 2]]
    assert told["fills"] == [True, True]
    assert [[n, count] for _, n, count in told["iterators"]] == [[at["pass"], 4]]
    # Both models and their optimizers.
    assert told["seen"] == [True] * 4
    assert told["updates"] == 24


def test_what_was_heard_is_noted_while_the_training_adds_to_it():
    watch, counted = Watch(), itertools.count()
    begun, ended = threading.Event(), threading.Event()

    def train():
        while not ended.is_set():
            number = next(counted)
            watch.makers["layer", str(number)] = "train.py", number
            watch.operations.setdefault("step", {})[str(number)] = None
            begun.set()

    usual = sys.getswitchinterval()
    thread = threading.Thread(target=train)
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        begun.wait()
        noted = [len(watch.as_note()["made"]) for _ in range(8)]
    finally:
        ended.set()
        sys.setswitchinterval(usual)
        thread.join()
    assert noted == sorted(noted)
    assert noted[-1] > 0
