import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.errors import BadParameterError
from perfkit.training.diagnose.causes import applicable, model, stages
from perfkit.training.diagnose.change import Change
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.pipeline import chain
from perfkit.training.diagnose.pipeline.facts import pipeline_facts
from perfkit.training.diagnose.pipeline.memory import Worth
from perfkit.training.diagnose.training import Training
from tests.training.diagnose.causes.offered import applied, kinds, offered

DATA = tf.data.Dataset


def drawn(number):
    return number + tf.random.uniform((), 0, 9, tf.int64)


def python(number):
    return tf.numpy_function(lambda value: value, [number], tf.int64)


def one(offer, dataset, **more):
    (only,) = offered(offer, dataset, **more)
    return only


def test_a_random_map_that_is_serial_is_made_parallel_and_others_stay():
    dataset = DATA.range(10).map(drawn).batch(2, drop_remainder=True)
    (change,), made = applied(stages.SERIAL_MAP, dataset)
    _, mapped, batch = chain(made)
    assert int(mapped._num_parallel_calls) == tf.data.AUTOTUNE
    assert bool(batch._drop_remainder)
    assert change.after == "without input"
    assert "num_parallel_calls" in change.fix


def half(number):
    return tf.cast(number, tf.float32) / 2


def without_parallel_maps(dataset):
    options = tf.data.Options()
    options.experimental_optimization.map_parallelization = False
    return dataset.with_options(options)


def test_a_prefetch_comes_last():
    _, made = applied(model.NO_PREFETCH, DATA.range(9).map(half).batch(2))
    assert kinds(made)[-1] == "prefetch"


def test_a_cache_is_offered_with_what_it_would_take():
    dataset = DATA.range(1000).shuffle(9).map(half).batch(2)
    (change,), made = applied(stages.NO_CACHE, dataset)
    # A thousand numbers of four bytes.
    assert "about 4 KB" in change.mind
    assert "shuffle after it" in change.fix
    order = kinds(made)
    assert order.index("map") < order.index("cache") < order.index("shuffle")
    assert int(made.cardinality()) == 500


def test_where_tensorflow_does_not_tell_of_its_stages_nothing_is_tested(monkeypatch):
    dataset = DATA.range(9).map(drawn).batch(2)
    monkeypatch.delattr(tf.data.Dataset, "options")
    known = pipeline_facts(Training(None, dataset)) | {"memory": 10**9}
    _, untested = applicable(Facts(data="tf.data", pipeline=known))
    assert {"serial-map", "no-cache", "python-input"} <= untested.keys()


IMAGES = np.arange(12 * 4 * 4 * 3, dtype="uint8").reshape(12, 4, 4, 3)


def images():
    return DATA.from_tensor_slices((IMAGES, np.arange(12) % 3))


def halved(image, label):
    return tf.cast(image, tf.float32) / 2, tf.one_hot(label, 3)


def shifted(image, label):
    return image + 1, label


def values(dataset):
    return [
        part.tolist()
        for batch in dataset.as_numpy_iterator()
        for part in tf.nest.flatten(batch)
    ]


def test_maps_that_do_the_same_to_a_batch_follow_it_in_their_order():
    given = images().map(halved).map(shifted).batch(5).prefetch(1)
    (change,), made = applied(stages.PER_EXAMPLE_MAP, given)
    assert change.fix.startswith(".batch(...).map(halved).map(shifted) instead of")
    assert change.after == "without input"
    assert kinds(made)[1:] == ["batch", "map", "map", "prefetch"]
    assert values(made) == values(given)
    assert made.element_spec == given.element_spec
    # A shuffle between them stays in front of the batch.
    given = images().map(halved, num_parallel_calls=2).shuffle(12).batch(4)
    (_,), made = applied(stages.PER_EXAMPLE_MAP, given)
    assert kinds(made)[1:] == ["shuffle", "batch", "map"]
    assert int(chain(made)[-1]._num_parallel_calls) == 2


def by_its_largest(image, label):
    pixels = tf.cast(image, tf.float32)
    return pixels / (1 + tf.reduce_max(pixels)), label


def flat(image, label):
    return tf.reshape(image, [-1]), label


def drawn_too(image, label):
    return tf.cast(image, tf.float32) + tf.random.uniform(()), label


def if_bright(image, label):
    return (image // 2 if tf.reduce_sum(tf.cast(image, tf.int32)) > 0 else image), label


def rows_only(image, label):
    return tf.ensure_shape(image, (4, 4, 3)), label


NUMBERS = DATA.range(9)
# What is offered for such data or not tried, and why.
NOT_TRIED = [
    (stages.SERIAL_MAP, NUMBERS.map(half), {}, "already runs these maps"),
    (stages.SERIAL_MAP, without_parallel_maps(NUMBERS.map(half)), {}, ""),
    (stages.SERIAL_MAP, NUMBERS.map(python), {}, ""),
    (model.NO_PREFETCH, NUMBERS.batch(2).prefetch(1), {}, "already"),
    (model.NO_PREFETCH, NUMBERS.batch(2), {}, "by itself"),
    (model.NO_PREFETCH, NUMBERS.batch(2), {"rewrites": False}, ""),
    # A map and its batch become one stage, which works ahead.
    (model.NO_PREFETCH, NUMBERS.map(half).batch(2), {}, ""),
    (model.NO_PREFETCH, NUMBERS.batch(2, num_parallel_calls=2), {}, ""),
    (stages.NO_CACHE, NUMBERS.map(drawn), {}, "freeze the augmentation"),
    (stages.NO_CACHE, NUMBERS.map(python), {}, "Python"),
    (stages.NO_CACHE, NUMBERS.map(half).cache(), {}, "already"),
    (stages.NO_CACHE, NUMBERS.map(half), {"memory": 30}, "of memory is free"),
    (
        stages.NO_CACHE,
        NUMBERS.filter(lambda n: n > 3).map(half),
        {},
        "elements is unknown",
    ),
]


@pytest.mark.parametrize(("cause", "dataset", "known", "reason"), NOT_TRIED)
def test_what_cannot_help_or_be_shown_is_not_tried_and_says_why(
    cause, dataset, known, reason
):
    found = one(cause, dataset, **known)
    assert isinstance(found, Change) == (not reason)
    assert reason in getattr(found, "reason", "")


# Examples that are all alike do not hide what tells them apart.
ALIKE = DATA.from_tensor_slices((np.full((8, 4, 4, 3), 7, "uint8"), np.zeros(8)))


@pytest.mark.parametrize(
    ("offer", "right"),
    [
        *(
            (stages.PER_EXAMPLE_MAP, images().map(function).batch(4))
            for function in (by_its_largest, flat, drawn_too, if_bright, rows_only)
        ),
        (stages.PER_EXAMPLE_MAP, ALIKE.map(by_its_largest).batch(4)),
        (stages.PER_EXAMPLE_MAP, images().map(shifted).cache().batch(4)),
        (stages.PER_EXAMPLE_MAP, images().map(shifted)),
        (stages.PER_EXAMPLE_MAP, images().batch(4).map(shifted)),
        (stages.SERIAL_MAP, DATA.range(10).map(drawn, num_parallel_calls=2).batch(2)),
        (stages.SLOW_READ, DATA.range(3)),
        # Other data than a pipeline have no stages.
        *(
            (offer, (np.zeros(3), np.zeros(3)))
            for offer in (*(stages.SERIAL_MAP, model.NO_PREFETCH, stages.NO_CACHE),)
        ),
    ],
)
def test_what_is_right_or_would_do_something_else_is_left_alone(offer, right):
    assert offered(offer, right) == []


def test_records_are_kept_behind_their_reader_and_read_once(tmp_path):
    path = str(tmp_path / "some.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(12):
            writer.write(f"record {number:02d}")
    dataset = tf.data.TFRecordDataset(path).map(tf.strings.length).batch(3)
    # Their number is guessed from the size of the file: twelve of four bytes.
    assert pipeline_facts(Training(None, dataset))["bytes"] == 48
    _, made = applied(stages.SLOW_READ, dataset)
    (tmp_path / "some.tfrecord").unlink()
    assert next(iter(made)).numpy().tolist() == [9, 9, 9]


def label_and_text(name):
    return tf.strings.split(name, "/")[-2], tf.io.read_file(name)


def test_files_are_read_from_copies_whose_folders_keep_their_names(tmp_path):
    files = [tmp_path / f"class-{n % 2}" / f"{n}.txt" for n in range(4)]
    for path in files:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text {path.name}")
    names = DATA.from_tensor_slices([str(path) for path in files])
    dataset = names.map(label_and_text).batch(2)
    before = [[part.numpy().tolist() for part in batch] for batch in dataset]
    _, made = applied(stages.SLOW_READ, dataset)
    # What reads and works in one stage cannot be told apart.
    both = DATA.zip((names.map(tf.io.read_file), names)).batch(2)
    assert "one stage" in one(stages.SLOW_READ, both).reason
    for path in files:
        path.unlink()
    assert [[part.numpy().tolist() for part in batch] for batch in made] == before


# Python in a pipeline.


class Batches(keras.utils.PyDataset):
    """Ten batches that count how often they are made."""

    made = 0

    def __len__(self):
        return 10

    def __getitem__(self, index):
        type(self).made += 1
        return np.full((2, 1), index), np.zeros(2)


def without_python(data, steps=2):
    training = Training(None, data)
    stages.made_beforehand(training, worth=Worth(steps))
    return training.data


def test_python_in_a_map_is_called_beforehand_only_and_what_comes_before_it_goes_on(
    counted,
):
    function, calls = counted
    seen = tf.Variable(0)

    def noted(number):
        seen.assign_add(1)
        return number

    data = without_python(DATA.range(20).map(noted).map(function).batch(2))
    assert sorted(calls) == [0, 1, 2, 3]
    before = int(seen)
    batches = [batch.numpy().tolist() for batch in data]
    assert batches[:3] == [[0, 1], [2, 3], [0, 1]]
    assert (len(batches), int(seen)) == (10, before + 20)
    assert sorted(calls) == [0, 1, 2, 3]


def test_a_generator_in_a_pipeline_is_run_beforehand_only():
    begun = []

    def numbers():
        begun.append(1)
        yield from range(8)

    dataset = DATA.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int32))
    data = without_python(dataset.batch(2))
    assert next(iter(data)).numpy().tolist() == [0, 1]
    assert [b.numpy().tolist() for b in data.take(3)] == [[0, 1], [2, 3], [0, 1]]
    assert begun == [1]


def test_batches_of_a_py_dataset_are_made_beforehand():
    Batches.made = 0
    data = without_python(Batches(workers=2))
    assert isinstance(data, keras.utils.PyDataset)
    assert [int(data[at][0][0, 0]) for at in range(5)] == [0, 1, 0, 1, 0]
    assert (len(data), data.num_batches, data.workers) == (10, 10, 2)
    assert Batches.made == 2


def test_a_generator_goes_on_with_what_was_made_beforehand():
    making = without_python(lambda: iter(itertools.count()), steps=3)
    assert list(itertools.islice(making(), 5)) == [0, 1, 2, 0, 1]
    # One that ended ends again.
    making = without_python(lambda: iter([7, 8]), steps=3)
    assert list(making()) == list(making()) == [7, 8]
    with pytest.raises(BadParameterError, match="no batch"):
        without_python(lambda: iter([]))
