import pytest
import tensorflow as tf

from perfkit.diagnosis.pipeline.chain import chain, stage

DATA = tf.data.Dataset


def last(dataset):
    return stage(dataset, source=len(chain(dataset)) == 1)


def numbers():
    return DATA.range(10)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + tf.random.uniform((), 0, 9, tf.int64),
        lambda x: tf.cond(
            x > 3, lambda: tf.random.uniform((), 0, 9, tf.int64), lambda: x
        ),
        lambda x: tf.random.stateless_uniform((), [x, x]),
        lambda x: tf.random.shuffle(tf.range(x)),
        lambda x: tf.image.random_flip_left_right(tf.zeros((4, 4, 3))),
        lambda x: tf.random.truncated_normal((2,)),
    ],
)
def test_random_numbers_are_found_wherever_they_are_drawn(function):
    assert last(numbers().map(function)).random


def test_what_only_computes_is_neither_random_nor_python():
    found = last(numbers().map(lambda x: tf.sqrt(tf.cast(x, tf.float32))))
    assert not found.random
    assert not found.stateful
    assert found.python == ()
    assert found.works


@pytest.mark.parametrize(
    ("function", "way"),
    [
        (lambda x: tf.numpy_function(lambda v: v, [x], tf.int64), "numpy_function"),
        (lambda x: tf.py_function(lambda v: v, [x], tf.int64), "py_function"),
        (
            lambda x: tf.map_fn(
                lambda y: tf.numpy_function(lambda v: v, [y], tf.int64), x[None]
            ),
            "numpy_function",
        ),
        (
            lambda x: tf.function(
                lambda y: tf.numpy_function(lambda v: v, [y], tf.int64)
            )(x),
            "numpy_function",
        ),
    ],
)
def test_python_is_found_in_inner_functions_too(function, way):
    found = last(numbers().map(function))
    assert found.python == (way,)
    assert found.stateful


def test_a_source_tells_of_all_that_feeds_it():
    python = numbers().map(lambda x: tf.numpy_function(lambda v: v, [x], tf.int64))
    zipped = last(DATA.zip((python, numbers().shuffle(3))))
    assert zipped.kind == "zip"
    assert zipped.python == ("numpy_function",)
    assert zipped.random
    made = DATA.from_generator(
        lambda: iter([1]), output_signature=tf.TensorSpec((), tf.int32)
    )
    assert last(made).kind == "Python generator"
    assert last(made).python == ("from_generator",)


def test_reading_is_told_apart_from_reading_and_working(tmp_path):
    name = str(tmp_path / "nothing")
    files = DATA.from_tensor_slices([name])
    decoding = files.interleave(
        lambda name: tf.data.TFRecordDataset(name).map(tf.io.decode_jpeg)
    )
    assert last(tf.data.TFRecordDataset([name])).records
    assert last(files.interleave(tf.data.TextLineDataset)).records
    assert last(decoding).reads
    assert not last(decoding).records
    assert last(files.map(tf.io.read_file)).reads
    assert last(files).texts


def test_arguments_and_sizes_are_plain_numbers():
    batch = last(DATA.from_tensors(tf.zeros((2, 3))).repeat(9).batch(4, True))
    assert batch.arguments["batch_size"] == 4
    assert batch.arguments["drop_remainder"] is True
    assert batch.elements == 2
    assert batch.bytes == 4 * 2 * 3 * 4
    assert last(numbers().map(lambda x: x, num_parallel_calls=-1)).parallel
    # Nobody knows the size of texts.
    assert last(DATA.from_tensor_slices(["a", "bcd"])).bytes is None
