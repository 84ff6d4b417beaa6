from dataclasses import replace

import numpy as np
import pytest

from perfkit.engine.tick import Note, Tick
from perfkit.questions.execution_mode.variants import VARIANTS, prepared
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


@pytest.mark.parametrize("jit_compile", [False, True])
def test_fit_leaves_the_batch_size_open_and_traces_no_ragged_batch_anew(jit_compile):
    network = JOB.network()
    traces = prepared(JOB, network, jit_compile=jit_compile)
    network.fit(*JOB.examples(20), batch_size=8, epochs=2, verbose=0)
    assert traces.inputs == [{"features": "float32[?, 100]", "labels": "int32[?]"}]


def test_batches_come_again_in_the_same_order_as_often_as_the_job_has_steps():
    features = [batch.numpy() for batch, _ in JOB.first(2 * loops.BATCHES).batches()]
    np.testing.assert_array_equal(features[: loops.BATCHES], features[loops.BATCHES :])
    assert not np.array_equal(features[0], features[1])
    for left, right in zip(*(JOB.network().weights for _ in "ab"), strict=True):
        np.testing.assert_array_equal(left, right)
