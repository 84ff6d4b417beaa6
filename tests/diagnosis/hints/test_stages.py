"""Pipelines in a wrong order, and the same stages in a right one."""

import pytest

from tests.diagnosis.hints.seen import nothing_in, only_here

DATA = """
import numpy as np
import tensorflow as tf
def rows():
    rng = np.random.default_rng(0)
    return tf.data.Dataset.from_tensor_slices(rng.normal(size=(4000, 8)))
"""
KNOWN = [
    ("d.batch(8).shuffle(9) # here", "whole batches", "d.shuffle(9).batch(8)"),
    (
        "d = d.batch(8)\nd = d.cache()\nd = d.shuffle(9) # here",
        "whole batches",
        # The batches are cached, and their order still changes.
        "d = d.shuffle(9).batch(8)\nd = d.cache()\nd = d.shuffle(9)",
    ),
    (
        "d = d.batch(8)\nd = d.prefetch(1) # here\nd = d.map(f)",
        "prefetch stands before map",
        "d = d.batch(8)\nd = d.prefetch(1)\nd = d.map(f, 2)\nd = d.prefetch(1)",
    ),
    ("d.prefetch(1).batch(8) # here", "before batch", "d.prefetch(1).repeat()"),
    # A parallel map works ahead by itself.
    ("d.prefetch(1).map(f) # here", "before map", "d.prefetch(1).map(f, AUTOTUNE)"),
    ("d.repeat().cache() # here", "once for each repetition", "d.cache().repeat()"),
    ("d.cache().take(9) # here", "never read to its end", "d.take(9).cache()"),
    (
        "m.fit(rows().shuffle(4000).cache().batch(8)) # here",
        "order of the first epoch",
        "m.fit(rows().cache().shuffle(4000).batch(8))",
    ),
    (
        "m.fit(rows().shuffle(4).batch(8)) # here",
        "fewer than a batch of 8",
        "m.fit(rows().shuffle(400).batch(8))",
    ),
    (
        "m.fit(rows().shuffle(20).batch(8)) # here",
        "20 examples at a time, of 4,000",
        "m.fit(rows().shuffle(n).batch(8))",
    ),
    (
        "with tf.device('/GPU:0'):\n    d = d.map(f, 2) # here",
        "runs on the CPU",
        "with tf.device('/CPU:0'):\n    d = d.map(f, 2)",
    ),
    (
        "o.experimental_optimization.apply_default_optimizations = False\n"
        "m.fit(rows().map(f, 2).batch(8)) # here",
        "adds no prefetch of its own",
        "o.experimental_optimization.apply_default_optimizations = False\n"
        "m.fit(rows().map(f, 2).batch(8).prefetch(1))",
    ),
    (
        "keras.layers.Dense(9)\nm.fit(rows().batch(2)) # here",
        "A batch of 2",
        "keras.layers.Conv2D(9)\nkeras.layers.Dense(9)\nm.fit(rows().batch(2))",
    ),
]


@pytest.mark.parametrize(("mistake", "said", "right"), KNOWN)
def test_a_wrong_order_is_seen_and_a_right_one_is_not(mistake, said, right):
    only_here(DATA + mistake, said)
    nothing_in(DATA + right)


LOADED = """
(x, y), _ = keras.datasets.cifar10.load_data()
x = x.astype("float32") / 255
d = tf.data.Dataset.from_tensor_slices((x, y))
"""


UNBATCHED = [
    (
        LOADED + "m.fit(d.cache().prefetch(1)) # here",
        LOADED + "m.fit(d.cache().batch(8).prefetch(1))",
    ),
    (
        DATA + "keras.Input((8,))\nm.fit(rows()) # here",
        # One more side than the model takes is the batch.
        DATA.replace("4000, 8", "40, 16, 8") + "keras.Input((8,))\nm.fit(rows())",
    ),
    (
        DATA + "keras.Input((8,))\nm.fit(rows().cache()) # here",
        # Who makes the arrays is not seen.
        "d = Dataset.from_tensor_slices(arrays())\nkeras.Input((8,))\nm.fit(d.cache())",
    ),
]


@pytest.mark.parametrize(("mistake", "right"), UNBATCHED)
def test_a_dataset_that_is_never_batched_is_seen(mistake, right):
    mistake = mistake.replace("m.fit(rows())", "m.fit(rows().take(9))")
    only_here(mistake, "into batches")
    nothing_in(right)


def test_a_missing_prefetch_is_no_mistake_where_tensorflow_adds_one():
    nothing_in(DATA + "m.fit(rows().map(f, 2).batch(8))")


HELPERS = """
def made(cached):
    d = tf.data.Dataset.list_files("*.jpeg").map(f, 2)
    if cached:
        d = d.repeat()
    return finished(d)
def finished(d):
    return d.cache().batch(8)
"""


def test_stages_are_followed_through_functions_and_literal_conditions():
    only_here(
        HELPERS.replace("return d.cache().batch(8)", "return d.cache().batch(8) # here")
        + "m.fit(made(cached=True))",
        "once for each repetition",
    )
    nothing_in(HELPERS + "m.fit(made(cached=False))")
    # Which way it goes is not known.
    nothing_in(HELPERS + "m.fit(made(cached=yes()))")


def test_a_stage_that_only_some_pipelines_have_is_not_taken_for_granted():
    nothing_in("if big():\n    d = d.batch(8)\nd = d.shuffle(9)")
    only_here(
        "d = d.batch(8)\nif big():\n    d = d.take(1)\nd = d.shuffle(9) # here",
        "whole batches",
    )


EITHER = (
    DATA
    + """
def prepared(d):
    if big():
        return d.batch(8)
    return d.take(9)
"""
)


def test_what_only_one_of_two_returns_gives_is_not_taken_for_granted():
    nothing_in(EITHER + "m.fit(prepared(rows()).shuffle(900))")
    both = EITHER.replace("    if big", "    d = d.batch(8)\n    if big")
    both = both.replace("return d.batch(8)", "return d")
    only_here(both + "m.fit(prepared(rows()).shuffle(900)) # here", "whole batches")
