import numpy as np
import pytest
import tensorflow as tf

from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.pipeline.chain import chain, kind
from perfkit.diagnosis.pipeline.facts import pipeline_facts
from perfkit.diagnosis.swap import Swap
from perfkit.diagnosis.swaps import pipeline
from perfkit.diagnosis.training import Training

DATA = tf.data.Dataset
IMAGES = np.arange(12 * 4 * 4 * 3, dtype="uint8").reshape(12, 4, 4, 3)


def images(**more):
    return DATA.from_tensor_slices((IMAGES, np.arange(12) % 3))


def halved(image, label):
    return tf.cast(image, tf.float32) / 2, tf.one_hot(label, 3)


def shifted(image, label):
    return image + 1, label


def swapped(dataset, offer):
    """What is offered for a pipeline, and the pipeline with it."""
    made = Training(None, dataset)
    found = list(offer(Facts(data="tf.data", pipeline=pipeline_facts(made))))
    for one in found:
        if isinstance(one, Swap):
            one.apply(made)
    return found, made.data


def kinds(dataset):
    return [kind(one) for one in chain(dataset)]


def values(dataset):
    return [
        part.tolist()
        for batch in dataset.as_numpy_iterator()
        for part in tf.nest.flatten(batch)
    ]


def test_maps_that_do_the_same_to_a_batch_follow_it_in_their_order():
    given = images().map(halved).map(shifted).batch(5).prefetch(1)
    (swap,), made = swapped(given, pipeline.per_example)
    assert swap.fix.startswith(".batch(...).map(halved).map(shifted) instead of")
    assert swap.after == "without input"
    assert kinds(made)[1:] == ["batch", "map", "map", "prefetch"]
    assert values(made) == values(given)
    assert made.element_spec == given.element_spec


def test_a_shuffle_between_stays_in_front_of_the_batch():
    given = images().map(halved, num_parallel_calls=2).shuffle(12).batch(4)
    (_,), made = swapped(given, pipeline.per_example)
    assert kinds(made)[1:] == ["shuffle", "batch", "map"]
    assert int(chain(made)[-1]._num_parallel_calls) == 2


def by_its_largest(image, label):
    pixels = tf.cast(image, tf.float32)
    return pixels / (1 + tf.reduce_max(pixels)), label


def flat(image, label):
    return tf.reshape(image, [-1]), label


def drawn(image, label):
    return tf.cast(image, tf.float32) + tf.random.uniform(()), label


def if_bright(image, label):
    return (image // 2 if tf.reduce_sum(tf.cast(image, tf.int32)) > 0 else image), label


def rows_only(image, label):
    return tf.ensure_shape(image, (4, 4, 3)), label


@pytest.mark.parametrize(
    "function", [by_its_largest, flat, drawn, if_bright, rows_only]
)
def test_what_does_something_else_to_a_batch_is_not_offered(function):
    assert swapped(images().map(function).batch(4), pipeline.per_example)[0] == []


def test_examples_that_are_all_alike_do_not_hide_what_tells_them_apart():
    alike = DATA.from_tensor_slices((np.full((8, 4, 4, 3), 7, "uint8"), np.zeros(8)))
    assert swapped(alike.map(by_its_largest).batch(4), pipeline.per_example)[0] == []


def test_maps_behind_what_does_not_commute_stay_where_they_are():
    given = images().map(flat).map(shifted).batch(4)
    (swap,), made = swapped(given, pipeline.per_example)
    assert "halved" not in swap.fix
    assert kinds(made)[1:] == ["map", "batch", "map"]
    assert values(made) == values(given)
    for stays in (
        images().map(shifted).cache().batch(4),
        images().map(shifted),
        images().batch(4).map(shifted),
    ):
        assert swapped(stays, pipeline.per_example)[0] == []


def test_a_shuffle_of_all_is_put_before_the_maps_that_fill_it():
    given = images().map(halved).map(shifted).prefetch(1).shuffle(12, seed=3).batch(4)
    (swap,), made = swapped(given, pipeline.late_shuffle)
    assert swap.own_pauses
    assert "shuffle(12) before" in swap.fix
    assert kinds(made)[1:] == ["shuffle", "map", "map", "prefetch", "batch"]
    assert sorted(np.concatenate(values(made)[::2]).ravel()) == sorted(
        np.concatenate(values(given)[::2]).ravel()
    )


def test_a_shuffle_in_its_place_is_left_there():
    for right in (
        images().shuffle(12).map(halved).batch(4),
        images().map(halved).cache().shuffle(12).batch(4),
        images().batch(4).shuffle(3),
    ):
        assert swapped(right, pipeline.late_shuffle)[0] == []


def test_what_short_epochs_would_show_wrongly_is_not_tried():
    def why(dataset):
        ((one,), _) = swapped(dataset, pipeline.late_shuffle)
        return one.why

    assert "short epoch" in why(images().map(halved).shuffle(6).batch(4))
    some = images().filter(lambda image, label: label > 0)
    assert "short epoch" in why(some.map(halved).shuffle(90).batch(4))
    assert "once" in why(images().repeat().map(halved).shuffle(90).batch(4))
