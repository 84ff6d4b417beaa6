import pytest
import tensorflow as tf

from perfkit.experiments.execution_mode.variants import VARIANTS, prepared
from perfkit.experiments.shared.loops import (
    ANEW,
    NOTE,
    Job,
    Traces,
    described,
    with_notes,
)
from perfkit.measure.tick import Note, Tick

JOB = Job("tiny-dense", 8)


def told(name, steps):
    """What a way says of its traces after so many steps."""
    found = {}
    # Ticks end when they are long enough, so notes come when they may; the last counts.
    for item in VARIANTS[name].run(JOB.first(steps), JOB.network()):
        if isinstance(item, Note) and item.name == NOTE:
            found = item.value
    return found


@pytest.fixture(autouse=True)
def _a_tick_for_every_step(monkeypatch):
    from perfkit.experiments.shared import loops

    def every(steps, sync):
        yield from (Tick(step) for step in steps)

    monkeypatch.setattr(loops, "every", every)


@pytest.mark.parametrize(
    ("name", "traces", "because"),
    [
        ("tf.function", 1, ""),
        ("fit", 1, ""),
        ("Python number", 4, "number: int 0, then int 1"),
        ("number as tensor", 1, ""),
        (
            "changing shapes",
            4,
            "features: float32[8, 100], then float32[9, 100]; "
            "labels: int32[8], then int32[9]",
        ),
        (
            "shapes left open",
            2,
            "features: float32[8, 100], then float32[?, 100]; "
            "labels: int32[8], then int32[?]",
        ),
        ("made anew", 4, ANEW),
        ("ragged last batch", 1, ""),
    ],
)
def test_a_way_is_traced_as_often_as_its_arguments_ask_for(name, traces, because):
    found = told(name, 4)
    assert found["traces"] == traces
    assert (found["because"] or [""])[0] == because


def test_a_ragged_last_batch_is_traced_once_more_and_never_again():
    found = told("ragged last batch", 16)
    assert (found["steps"], found["traces"]) == (16, 3 - 1)
    assert found["because"] == [
        "features: float32[8, 100], then float32[4, 100]; "
        "labels: int32[8], then int32[4]"
    ]


def test_tensorflows_own_counter_agrees():
    traces = Traces()

    @tf.function
    def body(number):
        traces.trace(number=number)
        return tf.convert_to_tensor(number) + 1

    for number in (1, 2, 2, 3, 1):
        body(number)
    assert len(traces.seen) == body.experimental_get_tracing_count() == 3


def test_what_is_told_stays_small_however_long_a_trial_lasts():
    traces = Traces()
    for number in range(1000):
        traces.trace(number=number)
    notes = [n for n in with_notes([Tick(1)] * 1000, traces) if isinstance(n, Note)]
    assert len(notes) == 10
    assert notes[-1].value["traces"] == 1000
    assert len(notes[-1].value["because"]) == 4


def test_arguments_are_described_as_tracing_sees_them():
    assert described(tf.zeros([2, 3])) == "float32[2, 3]"
    assert described(0.5) == "float 0.5"
    assert described(tf.constant(1)) == "int32[]"


@pytest.mark.parametrize("jit_compile", [False, True])
def test_fit_leaves_the_batch_size_open_and_traces_a_ragged_batch_no_second_time(
    jit_compile,
):
    network = JOB.network()
    traces = prepared(JOB, network, jit_compile=jit_compile)
    network.fit(*JOB.examples(20), batch_size=8, epochs=2, verbose=0)
    assert traces.seen == [{"features": "float32[?, 100]", "labels": "int32[?]"}]
