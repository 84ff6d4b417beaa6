import pytest

from perfkit.diagnosis.pipeline.chain import Stage
from perfkit.diagnosis.pipeline.rebuilding import CachePoint, cache_point

SOURCE = Stage(kind="slices in memory")
DECODE = Stage(kind="map", works=True, reads=True)
AUGMENT = Stage(kind="map", works=True, random=True)
SHUFFLE = Stage(kind="shuffle", random=True)
REPEAT = Stage(kind="repeat")
BATCH = Stage(kind="batch")
READ = Stage(kind="TFRecord files", works=True, reads=True, records=True)
PYTHON = Stage(kind="map", works=True, python=("py_function",))


def point(*stages):
    return cache_point([stage.as_facts() for stage in stages])


@pytest.mark.parametrize(
    ("stages", "after", "moved"),
    [
        ((SOURCE, DECODE, BATCH), 1, ()),
        ((SOURCE, DECODE, AUGMENT, BATCH), 1, ()),
        ((SOURCE, SHUFFLE, DECODE, BATCH), 2, (1,)),
        ((SOURCE, SHUFFLE, REPEAT, DECODE, BATCH), 3, (1, 2)),
        ((SOURCE, DECODE, SHUFFLE, BATCH), 1, ()),
        ((SOURCE, BATCH, DECODE), 2, ()),
        ((READ, DECODE, SHUFFLE, AUGMENT), 1, ()),
    ],
)
def test_a_cache_goes_behind_the_last_work_that_is_the_same_each_time(
    stages, after, moved
):
    assert point(*stages) == CachePoint(after, moved)


@pytest.mark.parametrize(
    ("stages", "why"),
    [
        ((SOURCE, AUGMENT, BATCH), "freeze the augmentation"),
        ((READ, AUGMENT, BATCH), "freeze the augmentation"),
        ((SOURCE, PYTHON, BATCH), "Python"),
        ((SOURCE, BATCH), "work"),
        ((READ, SHUFFLE, BATCH), "work"),
    ],
)
def test_where_no_cache_is_right_the_reason_is_told(stages, why):
    assert why in point(*stages)


def test_batches_of_shuffled_elements_are_not_kept():
    assert isinstance(point(SOURCE, SHUFFLE, BATCH, DECODE), str)
