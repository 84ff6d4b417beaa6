"""Which devices a process takes, and what lies on them; GPUs are played."""

from types import SimpleNamespace

import pytest

import perfkit
from perfkit.errors import RunError
from perfkit.experiments.scaling import work
from perfkit.experiments.scaling.work import GPU, LOGICAL, Job, counts
from perfkit.measure.tick import Note, Pause, Tick

JOB = Job(model="tiny-dense", kind=LOGICAL, count=2, batch=6)


@pytest.mark.parametrize(
    ("most", "tried"),
    [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (8, (1, 2, 4, 8)), (6, (1, 2, 4, 6))],
)
def test_numbers_of_devices_double_up_to_the_most(most, tried):
    assert counts(most) == tried


def test_logical_devices_are_made_of_one_processor():
    def look(tf):
        places = work.taken(LOGICAL, 3)
        return places, len(tf.config.list_logical_devices("CPU"))

    assert perfkit.fresh(look) == (("CPU:0", "CPU:1", "CPU:2"), 3)


def test_only_the_gpus_that_train_are_seen():
    def look(tf):
        seen = []
        tf.config = SimpleNamespace(
            list_physical_devices=lambda kind: ["a", "b", "c"],
            set_visible_devices=lambda these, kind: seen.append((these, kind)),
        )
        return work.taken(GPU, 2), seen

    assert perfkit.fresh(look) == (("GPU:0", "GPU:1"), [(["a", "b"], "GPU")])


def test_gpus_that_are_not_there_are_not_taken():
    with pytest.raises(RunError, match=r"TensorFlow can use 0 of 4000 GPUs here"):
        perfkit.fresh(lambda tf: work.taken(GPU, 4000))


def test_each_device_holds_its_share_of_the_batch():
    def look(tf):
        places = work.taken(LOGICAL, 2)
        strategy = work.mirrored(places)
        features, labels = work.resident_on_each(JOB, strategy, places)
        parts = strategy.experimental_local_results(features)
        ends = strategy.experimental_local_results(labels)
        whole, _ = JOB.examples()
        return (
            [part.device[-5:] for part in parts],
            [tuple(part.shape) for part in (*parts, *ends)],
            bool((tf.concat(parts, 0).numpy() == whole).all()),
        )

    assert perfkit.fresh(look) == (
        ["CPU:0", "CPU:1"],
        [(3, 100), (3, 100), (3,), (3,)],
        True,
    )


def test_a_pipeline_gives_batches_for_all_devices_together():
    def look(tf):
        features, labels = next(iter(work.decoded(JOB, 32)))
        brightest = float(tf.reduce_max(features))
        return tuple(features.shape), tuple(labels.shape), 0 < brightest <= 1

    assert perfkit.fresh(look) == ((6, 100), (6,), True)


def test_bytes_are_counted_as_examples_and_none_is_lost():
    moved = [Pause("set-up"), 25, Note("x", 1), 25, 60]
    found = list(work.counted(moved, 20.0))
    assert [item.examples for item in found if isinstance(item, Tick)] == [1, 1, 3]
    assert [type(item) for item in found[:1]] == [Pause]


def test_a_copy_from_one_device_to_another_is_made():
    def look(tf):
        places = work.taken(LOGICAL, 2)
        work._BLOCK = 1 << 12
        copies = work._between_gpus(*places)
        ready, moved = next(copies), next(copies)
        return ready.label, moved % work._BLOCK

    assert perfkit.fresh(look) == ("set-up", 0)
