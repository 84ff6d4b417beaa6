import inspect

import pytest
import tensorflow as tf

from perfkit.training.diagnose.pipeline import (
    _draws,
    chain,
    describe,
    rebuilt,
    stacked,
    stage,
)
from tests.training.diagnose.causes.offered import kinds

DATA = tf.data.Dataset


def numbers(count=23):
    return DATA.range(count)


def doubled(number):
    return 2 * number


def drawn(number):
    return number + tf.random.uniform((), 0, 100, tf.int64, seed=3)


def several(number):
    return DATA.range(number % 4)


def python(number):
    return tf.numpy_function(lambda value: value * 3, [number], tf.int64)


def unordered():
    options = tf.data.Options()
    options.deterministic = False
    options.autotune.enabled = False
    return options


PIPELINES = {
    "random": lambda: numbers().map(drawn).batch(4, drop_remainder=True),
    "shuffled": lambda: numbers().shuffle(7, seed=5).batch(3),
    "the same shuffle each time": lambda: numbers().shuffle(
        7, seed=5, reshuffle_each_iteration=False
    ),
    "padded": lambda: (
        numbers().map(tf.range).padded_batch(3, padding_values=tf.constant(9, tf.int64))
    ),
    "in turns": lambda: numbers(9).interleave(several, cycle_length=3, block_length=2),
    "flat": lambda: numbers(9).flat_map(several).filter(lambda number: number > 0),
    "part of it": lambda: numbers().skip(2).shard(2, 1).take(5).repeat(2),
    "cached": lambda: numbers().map(doubled).cache().batch(4).prefetch(2),
    "with options": lambda: (
        numbers().map(doubled).with_options(unordered()).batch(4).prefetch(-1)
    ),
    "zipped": lambda: DATA.zip((numbers().map(doubled), numbers())).map(
        lambda a, b: a + b
    ),
    "a structure": lambda: numbers().map(lambda a: {"a": a, "b": (a, a)}).batch(2),
    "counted": lambda: (
        numbers()
        .filter(lambda a: a > 2)
        .apply(tf.data.experimental.assert_cardinality(20))
    ),
}


def elements(dataset):
    tf.random.set_seed(4)
    return [tf.nest.map_structure(lambda t: t.numpy().tolist(), e) for e in dataset]


def built_anew(dataset):
    """Every stage anew, though nothing is another."""
    source, *stages = chain(dataset)
    return stacked(stages, source.take(-1))


@pytest.fixture(autouse=True)
def _global_seed():
    tf.random.set_seed(4)


@pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES)
def test_a_pipeline_built_anew_gives_what_it_gave_and_unchanged_it_is_itself(make):
    dataset = make()
    assert stacked(chain(dataset)) is dataset
    assert rebuilt(dataset, lambda place, stage, before: None) is dataset
    anew = built_anew(dataset)
    assert anew is not dataset
    assert anew.element_spec == dataset.element_spec
    assert int(anew.cardinality()) == int(dataset.cardinality())
    assert anew.options().deterministic == dataset.options().deterministic
    assert anew.options().autotune.enabled == dataset.options().autotune.enabled
    assert elements(anew) == elements(dataset)


def test_the_arguments_of_stages_survive():
    dataset = (
        numbers()
        .map(doubled, num_parallel_calls=3, deterministic=False)
        .batch(4, drop_remainder=True, num_parallel_calls=2)
        .prefetch(5)
    )
    _, _, mapped, batch, ahead = chain(built_anew(dataset))
    assert int(mapped._num_parallel_calls) == 3
    assert mapped._deterministic == "false"
    assert int(batch._num_parallel_calls) == 2
    assert bool(batch._drop_remainder)
    assert int(ahead._buffer_size) == 5


def test_without_a_global_seed_a_shuffle_stays_as_random_as_it_was():
    from tensorflow.python.eager import context

    context.context()._seed = None
    shuffle = chain(built_anew(numbers().shuffle(7)))[-1]
    assert (int(shuffle._seed), int(shuffle._seed2)) == (0, 0)


def test_a_chain_ends_at_what_cannot_be_built_anew(tmp_path):
    turns = numbers(9).interleave(several, num_parallel_calls=2, deterministic=False)
    scanned = numbers().scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s))
    assert kinds(turns.batch(2)) == ["interleave", "batch"]
    assert kinds(scanned.batch(2)) == ["ScanDataset", "batch"]
    # What has several inputs, and readers of files, are sources.
    assert kinds(PIPELINES["zipped"]()) == ["zip", "map"]
    (tmp_path / "lines").write_text("1\n2\n3")
    lines = tf.data.TextLineDataset(str(tmp_path / "lines"))
    assert kinds(lines.map(tf.strings.to_number)) == ["lines of text files", "map"]


def last(dataset):
    return stage(dataset, source=len(chain(dataset)) == 1)


@pytest.mark.parametrize(
    "function",
    [
        drawn,
        lambda x: tf.cond(x > 3, lambda: drawn(x), lambda: x),
        lambda x: tf.random.stateless_uniform((), [x, x]),
        lambda x: tf.random.shuffle(tf.range(x)),
        lambda x: several(x).shuffle(3).batch(9).get_single_element(),
    ],
)
def test_random_numbers_are_found_wherever_they_are_drawn(function):
    assert last(numbers().map(function))["random"]


# What of the names of randomness draws nothing.
DETERMINED = {
    *("StatelessIf", "StatelessCase", "StatelessWhile", "StatefulPartitionedCall"),
    *("PyFuncStateless", "DeleteSeedGenerator", "DummySeedGenerator"),
    # Its numbers are the same each time.
    "SobolSample",
}
NAMED = ("Random", "Rng", "Stateless", "Stateful", "Sampl", "Seed", "Shuffle")
DRAWN = ("Multinomial", "TruncatedNormal", "RandomGamma", "RandomPoisson")


def test_no_operation_of_tensorflow_that_draws_is_missed():
    # What one is called with says it as well as what it is called.
    drawing = {
        name
        for name, operation in vars(tf.raw_ops).items()
        if callable(operation)
        and (
            any(word in name for word in NAMED + DRAWN)
            or any("seed" in one for one in inspect.signature(operation).parameters)
        )
    }
    assert {name for name in drawing if not _draws(name)} <= DETERMINED


@pytest.mark.parametrize(
    ("function", "way"),
    [
        (python, "numpy_function"),
        (lambda x: tf.py_function(lambda v: v, [x], tf.int64), "py_function"),
        (lambda x: tf.map_fn(python, x[None]), "numpy_function"),
        (lambda x: tf.function(python)(x), "numpy_function"),
    ],
)
def test_python_is_found_in_inner_functions_too(function, way):
    found = last(numbers().map(function))
    assert found["python"] == (way,)
    assert found["stateful"]


def test_a_source_tells_of_all_that_feeds_it():
    zipped = last(DATA.zip((numbers().map(python), numbers().shuffle(3))))
    assert zipped["kind"] == "zip"
    assert zipped["python"] == ("numpy_function",)
    assert zipped["random"]
    assert last(DATA.zip((numbers().map(doubled), numbers())))["works"]
    assert not last(DATA.zip((numbers(), numbers())))["works"]
    # In which order files come is no augmentation.
    turns = {"cycle_length": 2, "num_parallel_calls": 2}
    files = numbers().shuffle(3).interleave(several, **turns)
    assert not describe(chain(files.shuffle(9)))[0]["random"]
    # But a cache would freeze it where nothing is shuffled behind.
    assert last(files)["random"]
    made = DATA.from_generator(
        lambda: iter([1]), output_signature=tf.TensorSpec((), tf.int32)
    )
    assert last(made)["kind"] == "Python generator"
    assert last(made)["python"] == ("from_generator",)


def test_reading_is_told_apart_from_reading_and_working(tmp_path):
    name = str(tmp_path / "nothing")
    files = DATA.from_tensor_slices([name])
    decoding = files.interleave(
        lambda name: tf.data.TFRecordDataset(name).map(tf.io.decode_jpeg)
    )
    assert last(tf.data.TFRecordDataset([name]))["records"]
    assert last(files.interleave(tf.data.TextLineDataset))["records"]
    assert last(decoding)["reads"]
    assert not last(decoding)["records"]
    assert last(files.map(tf.io.read_file))["reads"]
    assert last(files)["texts"]
