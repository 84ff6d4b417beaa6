import numpy as np

from perfkit.experiments.shared.loops import BATCHES, Job, changing_sizes

JOB = Job("tiny-dense", 8)


def sizes(feed, steps):
    return [len(labels) for _, labels in JOB.first(steps).batches(feed)]


def test_weights_are_fresh_and_the_same_for_the_same_seed():
    one, same, other = (JOB.network(), JOB.network(), Job("tiny-dense", 8, seed=1))
    for left, right in zip(one.get_weights(), same.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(one.get_weights()[0], other.network().get_weights()[0])


def test_batches_come_again_in_the_same_order():
    features = [batch.numpy() for batch, _ in JOB.first(2 * BATCHES).batches()]
    np.testing.assert_array_equal(features[:BATCHES], features[BATCHES:])
    assert not np.array_equal(features[0], features[1])
    assert sizes("even", 3) == [8, 8, 8]


def test_every_eighth_batch_is_smaller_in_a_ragged_feed():
    assert sizes("ragged", 10) == [8, 8, 8, 8, 8, 8, 8, 4, 8, 8]


def test_no_size_comes_twice_before_all_have_come_and_the_mean_is_the_batch():
    every = changing_sizes(8)
    assert sorted(every) == list(range(1, 16))
    assert sum(every) / len(every) == 8
    assert sizes("changing", 15) == every


def test_a_job_without_an_end_has_batches_without_an_end():
    assert JOB.batches().cardinality().numpy() == -1
    assert JOB.first(5).batches().cardinality().numpy() == 5
