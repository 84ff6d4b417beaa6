"""What is changed in the model, and what takes the place of its input."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from perfkit.errors import BadParameterError
from perfkit.questions.shared.precision import Hardware
from perfkit.training.diagnose.causes import model, steps, surroundings
from perfkit.training.diagnose.causes.model import PADDING, SMALL_BATCH
from perfkit.training.diagnose.causes.steps import EAGER, STEP_OVERHEAD, XLA
from perfkit.training.diagnose.change import Untested
from perfkit.training.diagnose.epochs import Epochs
from perfkit.training.diagnose.facts import Facts, facts_of, padded
from perfkit.training.diagnose.loop import in_loop
from perfkit.training.diagnose.training import Training, steps_of
from tests.training.diagnose.causes.offered import named, why
from tests.training.diagnose.fits import BATCH, Costs, batches, rows, training, trial


def test_four_times_comes_first_and_the_others_after_it():
    known = functools.partial(Facts, data="arrays", batch=32)
    first, *others = model.batch(known(steps=100))
    assert (first.name, first.batches, first.after) == ("batch ×4", 4, "")
    assert [one.batches for one in others] == [2, 8]
    assert {one.after for one in others} == {"batch ×4"}
    assert not any(one.combines for one in (first, *others))
    # No batch is larger than the data.
    assert [one.batches for one in model.batch(known(steps=3))] == [2]
    assert "holds all the data" in why(SMALL_BATCH, data="arrays", steps=1)


def test_larger_batches_hold_the_same_examples_in_the_same_order():
    made = training(batches(5))
    before = [np.asarray(x) for x, _ in made.data]
    model.enlarge(made, times=4)
    after = [np.asarray(x) for x, _ in made.data]
    assert [len(x) for x in after] == [4 * BATCH, BATCH]
    assert np.array_equal(np.concatenate(before), np.concatenate(after))
    assert "joins no batches" in why(SMALL_BATCH, data="generator")


def test_arrays_take_a_larger_batch_and_validation_keeps_its_own():
    made = training(rows(10), batch_size=BATCH, validation_data=rows(2))
    model.enlarge(made, times=2)
    assert steps_of(made) == 5
    assert made.arguments["validation_batch_size"] == BATCH
    # Given steps of an epoch hold the same examples.
    made = training(batches(10).repeat(), steps_per_epoch=10)
    model.enlarge(made, times=4)
    assert steps_of(made) == 3


def test_no_more_steps_are_made_at_a_time_than_an_epoch_has():
    assert "16 steps at a time" in named(STEP_OVERHEAD)
    assert named(STEP_OVERHEAD, steps=6)["6 steps at a time"].steps == 6
    assert not any("at a time" in name for name in named(STEP_OVERHEAD, steps=1))
    # Nor more than it has, where the data go on behind it.
    goes_on = functools.partial(named, STEP_OVERHEAD, endless=True)
    assert goes_on(steps=20)["10 steps at a time"].steps == 10
    assert "16 steps at a time" in goes_on(steps=32)
    assert not any("at a time" in name for name in goes_on(steps=97))
    assert "divides the 97" in why(STEP_OVERHEAD, steps=97, endless=True)


def test_a_step_of_keras_is_counted_by_its_optimizer_and_any_in_a_known_epoch():
    unknown = batches(3).filter(lambda x, y: True)
    assert facts_of(training(unknown)).counted
    halves = training(unknown)
    halves.model.compile(
        keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD()), "mse"
    )
    assert facts_of(halves).counted
    halves.model.train_step = lambda data: {}
    assert not facts_of(halves).counted
    halves.data = batches(3)
    assert facts_of(halves).counted


def test_eager_steps_are_seen_and_undone_whoever_asked_for_them(request):
    request.addfinalizer(lambda: tf.config.run_functions_eagerly(False))
    tf.config.run_functions_eagerly(True)
    made = training(batches(2))
    assert facts_of(made).eager
    steps.as_graph(made)
    assert not facts_of(made).eager
    # They are tried as a graph and in no other way.
    assert list(named(EAGER, STEP_OVERHEAD, XLA, eager=True)) == ["graph"]


def test_callbacks_see_every_step_of_an_execution(clock):
    begun, ended = [], []
    seeing = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda step, logs: begun.append(step),
        on_train_batch_end=lambda step, logs: ended.append(step),
    )
    made = training(batches(6), callbacks=[seeing, Costs(clock, 0.03)])
    steps.many_steps(made, steps=4, epoch=6)
    trial(lambda: made, Epochs(batch=BATCH, steps=6, examples=6 * BATCH), clock, 5)
    assert begun[:12] == ended[:12] == [*range(6), *range(6)]


def found(machine, **known):
    return list(model.precisions(Facts(**known), machine))


TILES = Hardware(instructions=("amx_bf16",))


@pytest.mark.parametrize(
    ("machine", "kinds"),
    [
        (TILES, ["bfloat16"]),
        (Hardware(gpu="a card", capability=(8, 0)), ["bfloat16", "float16"]),
        (Hardware(gpu="a card", capability=(7, 5)), ["float16"]),
    ],
)
def test_what_a_machine_is_made_for_is_tried(machine, kinds):
    tried = found(machine)
    assert [one.name for one in tried] == [f"mixed_{kind}" for kind in kinds]
    for change in tried:
        assert not change.combines
        assert 'dtype="float32"' in change.fix
    (left_out,) = found(Hardware(instructions=("avx2",)))
    assert isinstance(left_out, Untested)
    assert "no instructions for bfloat16" in left_out.reason


def test_the_policy_is_set_before_the_model_is_made():
    # One of the user's own is left alone.
    (left_out,) = found(TILES, policy="mixed_float16")
    assert "mixed_float16" in left_out.reason
    (change,) = found(TILES)
    try:
        change.before()
        assert keras.layers.Dense(1).compute_dtype == "bfloat16"
    finally:
        keras.config.set_dtype_policy("float32")


KNOWN = {"traces": 9, "seconds": 1.0, "changed": {}, "because": [], "made_anew": False}
of = functools.partial(named, model.RETRACING)


def test_what_is_traced_anew_is_fixed_unless_keras_makes_it():
    because = ["rate: float 0.1, then float 0.2"]
    known = KNOWN | {"changed": {"rate": "value"}, "because": because}
    found = of(retraced={"step": known})
    assert list(found) == ["fixed signature"]
    assert found["fixed signature"].fix.startswith(
        "Call `step` with rate=tf.constant(rate): a new number retraces"
    )
    assert found["fixed signature"].after == ""
    # Keras sees to its own.
    anew = KNOWN | {"made_anew": True}
    keras = anew | {"library": "the input of `predict`"}
    assert of(retraced={"Dataset_map_take": keras}) == {}
    both = of(retraced={"Dataset_map_take": keras, "step": anew})
    assert both["fixed signature"].changes.startswith("`step` keeps")


def validated(made):
    found = facts_of(made)
    return found.validated, found.validation_steps


def test_without_input_what_is_held_back_is_validated_as_before():
    features, labels = rows(10)
    labels[:] = np.arange(len(labels))
    made = training((features, labels), batch_size=8, validation_split=0.4)
    before, steps = validated(made), steps_of(made)
    surroundings.keep_one_batch(made)
    assert validated(made) == before == (1.0, 2)
    assert steps_of(made) == steps == 3
    assert list(made.arguments["validation_data"][1]) == list(range(24, 40))


def test_batches_are_padded_to_the_largest_and_keep_what_they_hold():
    def lengths():
        for length in (3, 5, 4):
            yield np.arange(2 * length).reshape(2, length) + 1, np.zeros(2)

    kinds = (tf.TensorSpec((None, None), tf.int64), tf.TensorSpec((None,), tf.float64))
    made = in_loop(tf.data.Dataset.from_generator(lengths, output_signature=kinds))
    model.one_shape(made)
    texts = [(x.tolist(), y.shape) for x, y in made.data.as_numpy_iterator()]
    assert [len(words[0]) for words, _ in texts] == [5, 5, 5]
    assert texts[0] == ([[1, 2, 3, 0, 0], [4, 5, 6, 0, 0]], (2,))


LENGTHS = np.random.default_rng(0).permutation(np.arange(1, 41))


def words(dataset):
    """The words of each text, and the share of what holds them that is padding."""
    texts = [words for words, _ in dataset.as_numpy_iterator()]
    kept = [tuple(row[row > 0]) for batch in texts for row in batch]
    return sorted(kept), 1 - sum(map(len, kept)) / sum(batch.size for batch in texts)


PADDED = [np.arange(1, n + 1) for n in LENGTHS]


def padded_before(where):
    side = {"padding": where, "truncating": where}
    return keras.utils.pad_sequences(PADDED, maxlen=90, **side), LENGTHS % 2


def as_arrays(where):
    return Training(None, padded_before(where), {"batch_size": 8, "shuffle": False})


def as_batches(where):
    data = tf.data.Dataset.from_tensor_slices(padded_before(where))
    return Training(None, data.batch(8))


@pytest.mark.parametrize("where", ["pre", "post"])
@pytest.mark.parametrize("make", [as_arrays, as_batches])
def test_texts_that_were_padded_beforehand_are_cut(make, where):
    made = make(where)
    batch = tuple(part[:8] for part in padded_before(where))
    (change,) = PADDING.candidates(Facts(data=made.kind, padded=padded(None, batch)))
    change.apply(made)
    after, wasted = words(made.data)
    assert after == sorted(map(tuple, PADDED))
    assert wasted < 0.4
    assert "batch_size" not in made.arguments


def test_texts_that_are_full_or_of_one_length_are_left_alone():
    full = np.ones((8, 90), np.int64)
    assert padded(None, (full, full[:, 0])) == {}
    assert padded(None, (padded_before("pre")[0].astype("float32"),)) == {}
    # Labels are no texts, and a mask would have to be cut as well.
    texts = padded_before("pre")[0]
    assert padded(None, (np.ones((len(texts), 3), "float32"), texts)) == {}
    assert padded(None, ({"ids": texts, "mask": texts != 0}, texts[:, 0])) == {}
    assert padded(None, (texts, texts)) == {}
    fixed = keras.Sequential([keras.Input((90,)), keras.layers.Dense(1)])
    assert padded(fixed, (padded_before("pre")[0],)) == {}
    open_length = keras.Sequential([keras.Input((None,)), keras.layers.Embedding(9, 2)])
    assert padded(open_length, (padded_before("pre")[0],)) == {"part": 0, "front": True}


def test_texts_of_one_length_have_no_buckets():
    rows = np.zeros((16, 90), np.int64)
    rows[:, :5] = 1
    made = Training(None, (rows, rows[:, 0]), {"batch_size": 8, "shuffle": False})
    known = {"part": 0, "front": False}
    (change,) = PADDING.candidates(Facts(data="arrays", padded=known))
    with pytest.raises(BadParameterError, match="one length"):
        change.apply(made)
    (said,) = PADDING.candidates(Facts(data="generator", padded=known))
    assert isinstance(said, Untested)
