"""Which devices a process takes, and what lies on them; GPUs are played."""

import functools
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

import perfkit
from perfkit.errors import RunError
from perfkit.questions import scaling as work
from perfkit.questions.scaling import GPU, LOGICAL, Job

JOB = Job(model="tiny-dense", kind=LOGICAL, count=2, batch=6)
TWO = Job(model="dense", kind=LOGICAL, count=2, batch=8)


def test_two_logical_devices_hold_their_shares():
    def look(tf):
        places = work.claim_devices(JOB)
        strategy = work.mirrored(places)
        features, labels = work.batch_at_hand(JOB, strategy)
        parts = strategy.experimental_local_results(features)
        ends = strategy.experimental_local_results(labels)
        whole, _ = JOB.examples(JOB.batch)
        return {
            "places": places,
            "devices": [part.device[-5:] for part in parts],
            "shapes": [tuple(part.shape) for part in (*parts, *ends)],
            "whole": bool((tf.concat(parts, 0).numpy() == whole).all()),
        }

    assert perfkit.fresh(look) == {
        "places": ("CPU:0", "CPU:1"),
        "devices": ["CPU:0", "CPU:1"],
        "shapes": [(3, 100), (3, 100), (3,), (3,)],
        "whole": True,
    }


def test_only_the_gpus_that_are_there_and_train_are_taken(monkeypatch):
    seen = []
    config = SimpleNamespace(
        list_physical_devices=lambda kind: ["a", "b", "c"],
        set_visible_devices=lambda these, kind: seen.append((these, kind)),
    )
    monkeypatch.setattr("tensorflow.config", config)
    assert work.claim_devices(replace(TWO, kind=GPU)) == ("GPU:0", "GPU:1")
    assert seen == [(["a", "b"], "GPU")]
    # Missing ones are an error, out of the process that looks for them as well.
    with pytest.raises(RunError, match=r"use \d of 4000 GPUs here.*on=logical"):
        work.why_not_equal(replace(TWO, kind=GPU, count=4000))


def test_two_devices_go_where_one_goes_unless_they_keep_their_gradients():
    assert perfkit.fresh(lambda tf: work.deviation(TWO)) < work.TOLERANCE / 10
    own = perfkit.fresh(lambda tf: work.deviation(TWO, summed=False))
    assert own > 10 * work.TOLERANCE


def answer(share, job):
    if share is None:
        time.sleep(60)
    return share


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.5, "after one step its weights are 50 % off"),
        (0.001, ""),
        (None, "gave no answer within 1 s"),
    ],
)
def test_a_difference_and_a_silence_of_devices_are_reasons(monkeypatch, share, words):
    monkeypatch.setattr(work, "deviation", functools.partial(answer, share))
    monkeypatch.setattr(work, "LONGEST_S", 60.0 if share else 1.0)
    reason = work.why_not_equal(TWO)
    assert words in reason
    assert bool(reason) == bool(words)
