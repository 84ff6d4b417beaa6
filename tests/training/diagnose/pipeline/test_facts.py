"""The plan of a pipeline while it runs, and of one that is driven."""

import gc

import tensorflow as tf

from perfkit.questions.shared import anatomy
from perfkit.training.diagnose.pipeline.facts import (
    driven_plan,
    kinds,
    limited,
    live_plan,
    pipeline_facts,
    tells_too_little,
)
from perfkit.training.diagnose.training import Training


def test_the_plan_of_the_iterator_that_gave_most_is_told():
    few = iter(tf.data.Dataset.range(9).batch(2))
    many = iter(tf.data.Dataset.range(99).map(lambda x: x * 2).batch(1))
    next(few)
    for _ in range(20):
        next(many)
    plan = live_plan()
    assert kinds(plan)[:2] == ["Range", "MapAndBatch"]
    assert plan["limits"] in [stage["name"] for stage in plan["stages"]]


def test_where_nothing_runs_that_is_told():
    gc.collect()
    assert "No tf.data" in live_plan()["missing"]


def test_stages_that_cannot_be_read_are_unknown_and_end_nothing():
    def refused(number):
        return tf.debugging.check_numerics(1.0 / tf.cast(number, tf.float32), "zero")

    numbers = tf.data.Dataset.range(9).map(refused)
    assert "missing" in pipeline_facts(Training(None, numbers.batch(2)))


def shuffled(examples=20):
    data = tf.data.Dataset.range(examples).map(lambda x: x * 2)
    return data.shuffle(99).batch(4)


def test_a_shuffle_that_holds_all_hides_what_is_before_it():
    iterator = iter(shuffled())
    next(iterator)
    assert tells_too_little(anatomy.plan(iterator))
    # One without stages cannot be told better by driving.
    assert not tells_too_little({"missing": "AUTOTUNE is off here."})


def made(examples=50):
    for number in range(examples):
        # So long that nothing which delays a stage in passing takes more.
        yield sum(range(400_000)) + number


def test_a_plan_without_its_source_names_nothing_that_limits():
    spec = tf.TensorSpec((), tf.int64)
    data = tf.data.Dataset.from_generator(made, output_signature=spec)
    data = data.map(lambda x: x * 2).batch(4)
    driven = driven_plan(data)
    assert driven["limits"] == "Python generator"
    # It has none that was left out.
    assert "without" not in driven
    iterator = iter(data)
    for _ in iterator:
        pass
    ended = limited(anatomy.plan(iterator))
    assert tells_too_little(ended)
    assert ended["limits"] == ""


def test_driven_without_its_shuffle_a_pipeline_tells_of_all_its_work():
    plan = driven_plan(shuffled())
    assert plan["without"] == "shuffle"
    assert not any(kind.startswith("Shuffle") for kind in kinds(plan))
    assert "Range" in kinds(plan)
    assert plan["limits"]
