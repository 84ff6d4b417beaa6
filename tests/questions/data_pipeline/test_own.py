"""The lines that a reader is shown, and a pipeline that a reader has written."""

import dataclasses
import functools
import itertools
import linecache

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.engine.measurement import OWN
from perfkit.errors import BadParameterError
from perfkit.questions import experiment
from perfkit.questions.data_pipeline import variants
from perfkit.questions.data_pipeline.variants import VARIANTS
from perfkit.questions.data_pipeline.work import PARTS, Again, Method
from perfkit.questions.shared import decoding

LIBRARIES = {"tf": tf, "np": np, "keras": keras, "itertools": itertools}


def typed(method, task):
    """What the lines make that a reader is shown, with the parts that they name."""
    used = {*method.parts, "augment", "crop", "side"} - {"decode", "example"}
    scope = LIBRARIES | {name: PARTS[name](task, method.form) for name in used}
    scope["window"] = functools.partial(decoding.window, side=task.side)
    # What the model does with a batch comes after the pipeline.
    code = "\n".join(li for li in method.code.splitlines() if "squares" not in li)
    # TensorFlow reads the source of what it is to put into a graph.
    file = f"<{method.name}>"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    exec(compile(code, file, "exec"), scope)
    return Again(scope["batches"]) if "batches" in scope else scope["dataset"]


@pytest.mark.parametrize("name", VARIANTS)
def test_a_way_and_its_shown_lines_give_the_images_that_all_ways_give(
    name, task, forms
):
    method = VARIANTS[name]
    _, labels = next(iter(method.build(task)))
    assert list(np.asarray(labels)) == list(task.images.labels[: task.batch])
    assert variants.comparable(method) != (
        name in ("random in map", "augment in model")
    )
    shown = dataclasses.replace(
        method, name="as shown", function=lambda: typed(method, task), example=None
    )
    assert variants.differences([method, shown], task) == {}


def why_not(function, task):
    return variants.why_not(Method(OWN, "", function), task)


def right(files, example, cores, batch):
    return files.map(example, num_parallel_calls=cores).batch(batch).prefetch(2)


def cached(images, decode, draws, augment, batch):
    kept = tf.data.Dataset.zip(images.map(decode).cache().repeat(), draws)
    return kept.map(lambda one, drawn: (augment(one[0], drawn), one[1])).batch(batch)


def shuffled_a_little(files, example, batch):
    return files.shuffle(4).map(example).batch(batch)


def after(change):
    return lambda files, example, batch: files.map(example).map(change).batch(batch)


def of_a_few(images, decode, draws, augment, batch):
    return cached(images.take(4), decode, draws, augment, batch)


WRONG = {
    "write its function first": lambda files: None,
    "cache before the augmentation, not after it": (
        lambda files, count, example, batch: (
            files.take(count).map(example).cache().repeat().batch(batch)
        )
    ),
    "gives other images": after(lambda image, label: (0.9 * image, label)),
    "gives its images wrong labels": after(lambda image, label: (image, label + 1)),
    "gives batches of 8 images instead of 4": (
        lambda files, example, batch: files.map(example).batch(2 * batch)
    ),
    "gives batches of 1 images": lambda files, example: files.map(example),
    "ends, but the others never do": (
        lambda files, example, batch: files.take(8).map(example).batch(batch)
    ),
    "gives some images more often": of_a_few,
    "raised ZeroDivisionError": lambda files: 1 / 0,
}


@pytest.mark.parametrize("why", WRONG)
def test_a_pipeline_of_ones_own_that_gives_something_else_is_refused(why, task):
    assert why in why_not(WRONG[why], task)


@pytest.mark.parametrize("function", [right, cached, shuffled_a_little])
def test_a_pipeline_of_ones_own_that_gives_the_images_is_timed(function, task):
    assert why_not(function, task) == ""


def test_it_is_one_more_way_and_refused_at_once_where_it_cannot_be():
    asked = experiment("data-pipeline", mine=right, variants="prefetch")
    assert list(asked.make_variants()) == ["naive map", "yours", "prefetch"]
    with pytest.raises(BadParameterError, match="7 is not a function"):
        experiment("data-pipeline", mine=7)
    with pytest.raises(BadParameterError, match=r"Did you mean 'files'\?"):
        experiment("data-pipeline", mine=lambda file, batch: None)
    with pytest.raises(BadParameterError, match="scaling takes no function of yours"):
        experiment("scaling", mine=right)
