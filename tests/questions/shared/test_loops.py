from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from perfkit.engine.tick import Note, Tick
from perfkit.questions.execution_mode.variants import VARIANTS
from perfkit.questions.execution_mode.work import prepared
from perfkit.questions.shared import loops
from perfkit.questions.shared.loops import Job

JOB = Job("tiny-dense", 8)
SHAPES = "features: float32[8, 100], then float32[{0}, 100]; "
SHAPES += "labels: int32[8], then int32[{0}]"


def told(name, steps):
    """What a way says of its traces after so many steps."""
    found, method = {}, VARIANTS[name]
    job = replace(JOB.first(steps), feed=method.feed)
    # Ticks end when they are long enough, so notes come when they may; the last counts.
    for item in method.run(job, job.network()):
        if isinstance(item, Note) and item.name == loops.NOTE:
            found = item.value
    return found


@pytest.fixture(autouse=True)
def _a_tick_for_every_step(monkeypatch):
    monkeypatch.setattr(loops, "every", lambda steps, sync: map(Tick, steps))


@pytest.mark.parametrize(
    ("name", "steps", "traces", "because"),
    [
        ("tf.function", 4, 1, ""),
        ("fit", 4, 1, ""),
        ("Python number", 4, 4, "number: int 0, then int 1"),
        ("number as tensor", 4, 1, ""),
        ("changing shapes", 4, 4, SHAPES.format(9)),
        ("shapes left open", 4, 2, SHAPES.format("?")),
        ("made anew", 4, 4, loops.ANEW),
        # It is traced once more where an epoch ends, and never again.
        ("ragged last batch", 4, 1, ""),
        ("ragged last batch", 16, 2, SHAPES.format(4)),
    ],
)
def test_a_way_is_traced_as_often_as_its_arguments_ask_for(
    name, steps, traces, because
):
    found = told(name, steps)
    assert (found["steps"], found["traces"]) == (steps, traces)
    assert (found["because"] or [""])[0] == because


def test_arguments_are_described_as_tracing_sees_them_and_as_often():
    traces = loops.Traces()

    @tf.function
    def body(number):
        traces.trace(number=number)
        return tf.convert_to_tensor(number) + 1

    for number in (1, 2, 2, 3, 1):
        body(number)
    assert len(traces.inputs) == body.experimental_get_tracing_count() == 3
    assert loops.described(tf.zeros([2, 3])) == "float32[2, 3]"
    assert loops.described(0.5) == "float 0.5"
    assert loops.described(tf.constant(1)) == "int32[]"


def test_what_is_told_stays_small_however_long_a_trial_lasts():
    traces = loops.Traces()
    for number in range(1000):
        traces.trace(number=number)
    told = loops.with_notes([Tick(1)] * 1000, traces)
    notes = [item for item in told if isinstance(item, Note)]
    assert (len(notes), notes[-1].value["traces"]) == (10, 1000)
    assert len(notes[-1].value["because"]) == 4


@pytest.mark.parametrize("jit_compile", [False, True])
def test_fit_leaves_the_batch_size_open_and_traces_no_ragged_batch_anew(jit_compile):
    network = JOB.network()
    traces = prepared(JOB, network, jit_compile=jit_compile)
    network.fit(*JOB.examples(20), batch_size=8, epochs=2, verbose=0)
    assert traces.inputs == [{"features": "float32[?, 100]", "labels": "int32[?]"}]


def sizes(feed, steps):
    job = replace(JOB.first(steps), feed=feed)
    return [len(labels) for _, labels in job.batches()]


def test_weights_are_fresh_and_the_same_for_the_same_seed():
    one, same, other = (JOB.network(), JOB.network(), Job("tiny-dense", 8, seed=1))
    for left, right in zip(one.get_weights(), same.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(one.get_weights()[0], other.network().get_weights()[0])


def test_batches_come_again_in_the_same_order_as_often_as_the_job_has_steps():
    features = [batch.numpy() for batch, _ in JOB.first(2 * loops.BATCHES).batches()]
    np.testing.assert_array_equal(features[: loops.BATCHES], features[loops.BATCHES :])
    assert not np.array_equal(features[0], features[1])
    assert sizes("even", 3) == [8, 8, 8]
    assert JOB.batches().cardinality().numpy() == -1
    assert JOB.first(5).batches().cardinality().numpy() == 5


def test_feeds_are_ragged_or_change_their_sizes_as_they_say():
    assert sizes("ragged", 10) == [8, 8, 8, 8, 8, 8, 8, 4, 8, 8]
    changing = sizes("changing", 15)
    assert sorted(changing) == list(range(1, 16))
    assert changing[:5] == [8, 9, 7, 10, 6]
