import tensorflow as tf

from perfkit.diagnosis.pipeline.facts import driven_plan, kinds, tells_too_little
from perfkit.experiments.shared import anatomy


def shuffled(examples=20):
    data = tf.data.Dataset.range(examples).map(lambda x: x * 2)
    return data.shuffle(99).batch(4)


def test_a_shuffle_that_holds_all_hides_what_is_before_it():
    iterator = iter(shuffled())
    next(iterator)
    assert tells_too_little(anatomy.plan(iterator))


def test_a_plan_without_stages_cannot_be_told_better_by_driving():
    assert not tells_too_little({"missing": "AUTOTUNE is off here."})


def test_driven_without_its_shuffle_a_pipeline_tells_of_all_its_work():
    # Long enough that its end, where a part of it is gone, is hardly ever met.
    plan = driven_plan(shuffled(100_000).repeat())
    assert plan["without"] == "shuffle"
    assert not any(kind.startswith("Shuffle") for kind in kinds(plan))
    assert "Range" in kinds(plan)
    assert plan["limits"]
