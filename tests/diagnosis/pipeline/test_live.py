import gc

import tensorflow as tf

from perfkit.diagnosis.pipeline.facts import kinds, live_plan


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
