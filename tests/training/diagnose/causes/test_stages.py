import itertools
import os

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.errors import BadParameterError
from perfkit.training.diagnose.causes import ahead, applicable, stages
from perfkit.training.diagnose.change import Change
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.pipeline import chain
from perfkit.training.diagnose.pipeline.facts import pipeline_facts
from perfkit.training.diagnose.pipeline.memory import Worth
from perfkit.training.diagnose.training import Training
from tests.training.diagnose import fits
from tests.training.diagnose.causes.offered import applied, kinds, offered, why, with_it

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


def test_a_serial_interleave_and_python_are_made_parallel():
    dataset = DATA.range(4).interleave(DATA.range, cycle_length=3).batch(2)
    first = chain(applied(stages.SERIAL_MAP, dataset)[1])[0]
    assert type(first).__name__ == "_ParallelInterleaveDataset"
    assert int(first._cycle_length) == 3
    assert isinstance(one(stages.SERIAL_MAP, DATA.range(9).map(python)), Change)


def test_what_tensorflow_makes_parallel_itself_is_not_tried():
    plain = DATA.range(10).map(lambda x: x * 2).batch(2)
    assert "in parallel" in one(stages.SERIAL_MAP, plain).reason
    options = tf.data.Options()
    options.experimental_optimization.map_parallelization = False
    assert isinstance(one(stages.SERIAL_MAP, plain.with_options(options)), Change)


def test_a_prefetch_is_tried_only_where_there_is_none():
    plain = DATA.range(9).batch(2)
    options = tf.data.Options()
    own = plain.prefetch(1).with_options(options)
    assert "already" in one(ahead.NO_PREFETCH, own).reason
    plan = ["Range", "BatchV2", "Prefetch"]
    assert "by itself" in one(ahead.NO_PREFETCH, plain, plan=plan).reason
    _, made = applied(ahead.NO_PREFETCH, plain, plan=plan[:2])
    assert kinds(made)[-1] == "prefetch"


def half(number):
    return tf.cast(number, tf.float32) / 2


def test_a_cache_is_offered_with_what_it_would_take():
    dataset = DATA.range(1000).shuffle(9).map(half).batch(2)
    (change,), made = applied(stages.NO_CACHE, dataset)
    # A thousand numbers of four bytes.
    assert "about 4 KB" in change.changes
    assert "shuffle after it" in change.fix
    order = kinds(made)
    assert order.index("map") < order.index("cache") < order.index("shuffle")
    assert int(made.cardinality()) == 500


def test_no_cache_is_offered_where_it_would_be_wrong():
    data = DATA.range(9)
    for dataset, said in (
        (data.map(drawn), "freeze the augmentation"),
        (data.map(python), "Python"),
        (data.map(half).cache(), "already"),
        (data.map(half), "is free"),
        (data.filter(lambda number: number > 3).map(half), "unknown"),
    ):
        assert said in one(stages.NO_CACHE, dataset.batch(2), memory=60).reason


@pytest.mark.parametrize("shuffle", [True, False])
def test_behind_a_map_inside_keras_no_cache_is_to_be_typed(tmp_path, shuffle):
    black = tf.io.encode_png(np.zeros((8, 8, 3), "uint8"))
    for label in ("a", "b"):
        tf.io.write_file(str(tmp_path / label / "0.png"), black)
    images = keras.utils.image_dataset_from_directory(
        tmp_path, image_size=(8, 8), batch_size=2, shuffle=shuffle
    )
    drawn = images.map(lambda image, label: (tf.image.random_hue(image, 0.1), label))
    fix = one(stages.NO_CACHE, drawn).fix
    assert fix.startswith("image_dataset_from_directory(..., batch_size=None), then ")
    assert f".cache(){'.shuffle(n)' * shuffle}.batch(b) right after it" in fix


def test_windows_with_their_targets_are_kept_inside_keras_too():
    windows = keras.utils.timeseries_dataset_from_array(
        np.zeros((99, 2), "float32"), np.zeros(99, "float32"), 8
    )
    fix = one(stages.NO_CACHE, windows).fix
    assert fix.startswith("timeseries_dataset_from_array(..., batch_size=None), then ")
    zipped = DATA.zip(windows, windows)
    assert one(stages.NO_CACHE, zipped).fix == ".cache() after the zip"


def test_batches_are_copied_ahead_to_a_gpu_alone():
    assert "no GPU" in one(ahead.HOST_TO_DEVICE, DATA.range(3)).reason
    change = one(ahead.HOST_TO_DEVICE, DATA.range(3), gpus=1)
    assert "prefetch_to_device" in change.fix


def test_all_that_helps_can_be_applied_one_after_the_other():
    dataset = DATA.range(40).map(half).map(lambda x: x + tf.random.uniform(())).batch(2)
    offers = (stages.SERIAL_MAP, stages.NO_CACHE, ahead.NO_PREFETCH)
    plan = ["Range", "MapAndBatch"]
    made = with_it(dataset, *(one(offer, dataset, plan=plan) for offer in offers))
    assert kinds(made) == [
        *("range", "map", "take", "cache", "repeat", "take"),
        *("map", "batch", "prefetch"),
    ]
    assert len(list(made)) == 20


def test_where_tensorflow_does_not_tell_of_its_stages_nothing_is_tested(monkeypatch):
    dataset = DATA.range(9).map(drawn).batch(2)
    monkeypatch.delattr(tf.data.Dataset, "cardinality")
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
        (stages.LATE_SHUFFLE, images().shuffle(12).map(halved).batch(4)),
        (stages.LATE_SHUFFLE, images().map(halved).cache().shuffle(12).batch(4)),
        (stages.LATE_SHUFFLE, images().batch(4).shuffle(3)),
        (stages.SERIAL_MAP, DATA.range(10).map(drawn, num_parallel_calls=2).batch(2)),
        (stages.SLOW_READ, DATA.range(3)),
        # Other data than a pipeline have no stages.
        *(
            (offer, (np.zeros(3), np.zeros(3)))
            for offer in (
                *(stages.SERIAL_MAP, ahead.NO_PREFETCH, stages.NO_CACHE),
                *(ahead.HOST_TO_DEVICE, stages.LATE_SHUFFLE),
            )
        ),
    ],
)
def test_what_is_right_or_would_do_something_else_is_left_alone(offer, right):
    assert offered(offer, right) == []


def test_a_shuffle_of_all_is_put_before_the_maps_that_fill_it():
    given = images().map(halved).map(shifted).prefetch(1).shuffle(12, seed=3).batch(4)
    (change,), made = applied(stages.LATE_SHUFFLE, given)
    assert change.own_pauses
    assert "shuffle(12) before" in change.fix
    assert kinds(made)[1:] == ["shuffle", "map", "map", "prefetch", "batch"]
    assert sorted(np.concatenate(values(made)[::2]).ravel()) == sorted(
        np.concatenate(values(given)[::2]).ravel()
    )


def test_what_short_epochs_would_show_wrongly_is_not_tried():
    some = images().filter(lambda image, label: label > 0)
    for dataset, said in (
        (images().map(halved).shuffle(6), "short epoch"),
        (some.map(halved).shuffle(90), "short epoch"),
        (images().repeat().map(halved).shuffle(90), "once"),
    ):
        assert said in one(stages.LATE_SHUFFLE, dataset.batch(4)).reason


def files(folder, count=4):
    names = []
    for number in range(count):
        path = folder / f"class-{number % 2}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text {number}")
        names.append(str(path))
    return names


def records(folder, count=12):
    path = str(folder / "some.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(count):
            writer.write(f"record {number:02d}")
    return path


def test_records_are_kept_behind_their_reader_and_read_once(tmp_path):
    path = records(tmp_path)
    dataset = tf.data.TFRecordDataset(path).map(tf.strings.length).batch(3)
    # Their number is guessed from the size of the file: twelve of four bytes.
    assert pipeline_facts(Training(None, dataset))["bytes"] == 48
    _, made = applied(stages.SLOW_READ, dataset)
    (tmp_path / "some.tfrecord").unlink()
    assert next(iter(made)).numpy().tolist() == [9, 9, 9]


def label_and_text(name):
    return tf.strings.split(name, "/")[-2], tf.io.read_file(name)


def test_files_are_read_from_copies_whose_folders_keep_their_names(tmp_path):
    names = DATA.from_tensor_slices(files(tmp_path))
    dataset = names.map(label_and_text).batch(2)
    before = [[part.numpy().tolist() for part in batch] for batch in dataset]
    _, made = applied(stages.SLOW_READ, dataset)
    # What reads and works in one stage cannot be told apart.
    both = DATA.zip((names.map(tf.io.read_file), names)).batch(2)
    assert "one stage" in one(stages.SLOW_READ, both).reason
    for path in tmp_path.rglob("*.txt"):
        path.unlink()
    after = [[part.numpy().tolist() for part in batch] for batch in made]
    assert after == before


def test_a_cache_behind_the_work_is_not_combined_with_this(tmp_path):
    texts = tf.data.TFRecordDataset(records(tmp_path))
    change = one(stages.SLOW_READ, texts.map(tf.strings.length))
    assert isinstance(change, Change)
    assert not change.combines
    random = texts.map(
        lambda text: tf.strings.length(text) + tf.random.uniform((), 0, 9, tf.int32)
    )
    assert one(stages.SLOW_READ, random).combines


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


def found(data):
    return offered(stages.PYTHON_INPUT, data)


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


def test_keras_trains_on_what_a_generator_made_beforehand():
    def batches():
        while True:
            yield np.ones((4, 2), "float32"), np.ones(4, "float32")

    training = fits.training(batches, steps_per_epoch=5)
    stages.made_beforehand(training, worth=Worth(3))
    training.fit([], epochs=2)
    assert training.model.optimizer.iterations == 10


def test_a_generator_goes_on_with_what_was_made_beforehand():
    making = without_python(lambda: iter(itertools.count()), steps=3)
    assert list(itertools.islice(making(), 5)) == [0, 1, 2, 0, 1]
    # One that ended ends again.
    making = without_python(lambda: iter([7, 8]), steps=3)
    assert list(making()) == list(making()) == [7, 8]
    with pytest.raises(BadParameterError, match="no batch"):
        without_python(lambda: iter([]))


def test_a_py_dataset_with_one_worker_is_offered_more(monkeypatch):
    monkeypatch.setattr(stages, "cores", lambda: 6)
    beforehand, workers = found(Batches())
    assert beforehand.cause == workers.cause == "python-input"
    assert workers.name == "6 workers"
    training = Training(None, data := Batches())
    workers.apply(training)
    assert training.data.workers == 6
    # Others go on with the same data.
    assert data.workers == 1
    assert len(found(Batches(workers=6))) == 1


def test_where_nobody_limits_cores_there_are_as_many_workers_as_of_all(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert found(Batches())[1].name == "7 workers"


def test_of_keras_own_generator_no_class_is_to_be_changed(monkeypatch):
    monkeypatch.setattr(stages, "cores", lambda: 6)
    images = tf.keras.preprocessing.image.ImageDataGenerator()
    beforehand, workers = found(images.flow(np.zeros((4, 8, 8, 3))))
    assert workers.fix == "generator.workers = 6 above fit"
    assert beforehand.fix.startswith(f"{workers.fix}, or a tf.data.Dataset")


def test_each_way_to_call_python_is_named_with_what_to_write_instead(counted):
    function, _ = counted
    (change,) = found(DATA.range(3).map(function))
    assert "numpy_function" in change.changes
    assert "instead of numpy_function, or .cache() after it" in change.fix

    def load(number):
        return function(number)

    (change,) = found(DATA.range(3).map(load))
    assert "instead of numpy_function in the map of `load`" in change.fix
    (change,) = found(lambda: iter([1]))
    assert "generator" in change.fix


def test_python_is_not_tried_where_there_is_none_or_another_change_tells_of_it():
    retraced = {"step": {"changed": {"words": "shape"}, "because": [], "traces": 9}}
    known = {"data": "tf.data", "pipeline": {"python": ["generator"]}}
    assert "retracing" in why(stages.PYTHON_INPUT, **known, retraced=retraced)
    debugging = {"debugging": ["tf.data.experimental.enable_debug_mode()"]}
    assert "debug mode" in why(stages.PYTHON_INPUT, **known, settings=debugging)
    assert found(DATA.range(3).map(lambda x: x + 1)) == []
    assert found((np.zeros(3), np.zeros(3))) == []
