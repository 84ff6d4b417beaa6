from dataclasses import replace

import numpy as np
import pytest

from perfkit.engine.trial import Note, Tick
from perfkit.questions.execution_mode import VARIANTS
from perfkit.questions.shared import loops
from perfkit.questions.shared.loops import Job

JOB = Job("tiny-dense", 8)


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
    ("name", "steps", "traces"),
    [
        ("Python number", 4, 4),
        ("number as tensor", 4, 1),
        ("changing shapes", 4, 4),
        ("shapes left open", 4, 2),
        ("made anew", 4, 4),
        # It is traced once more where an epoch ends, and never again.
        ("ragged last batch", 4, 1),
        ("ragged last batch", 16, 2),
    ],
)
def test_a_way_is_traced_as_often_as_its_arguments_ask_for(name, steps, traces):
    assert told(name, steps) == {"steps": steps, "traces": traces}


def test_batches_come_again_in_the_same_order_as_often_as_the_job_has_steps():
    features = [batch.numpy() for batch, _ in JOB.first(2 * loops.BATCHES).batches()]
    np.testing.assert_array_equal(features[: loops.BATCHES], features[loops.BATCHES :])
    assert not np.array_equal(features[0], features[1])
    for left, right in zip(*(JOB.network().weights for _ in "ab"), strict=True):
        np.testing.assert_array_equal(left, right)
