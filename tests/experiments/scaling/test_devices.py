"""Which devices a process takes, and what lies on them; GPUs are played."""

import os
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import perfkit
from perfkit.errors import RunError
from perfkit.experiments.scaling import agreement, work
from perfkit.experiments.scaling.agreement import call_or_none
from perfkit.experiments.scaling.work import GPU, LOGICAL, Job, counts
from perfkit.measure.tick import Note, Pause, Tick

JOB = Job(model="tiny-dense", kind=LOGICAL, count=2, batch=6)


@pytest.mark.parametrize(
    ("most", "tried"),
    [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (8, (1, 2, 4, 8)), (6, (1, 2, 4, 6))],
)
def test_numbers_of_devices_double_up_to_the_most(most, tried):
    assert counts(most) == tried


def test_logical_devices_are_made_of_one_processor():
    def look(tf):
        return work.taken(LOGICAL, 3), len(tf.config.list_logical_devices("CPU"))

    assert perfkit.fresh(look) == (("CPU:0", "CPU:1", "CPU:2"), 3)


def test_only_the_gpus_that_are_there_and_train_are_taken():
    def look(tf):
        seen = []
        tf.config = SimpleNamespace(
            list_physical_devices=lambda kind: ["a", "b", "c"],
            set_visible_devices=lambda these, kind: seen.append((these, kind)),
        )
        return work.taken(GPU, 2), seen

    assert perfkit.fresh(look) == (("GPU:0", "GPU:1"), [(["a", "b"], "GPU")])
    with pytest.raises(RunError, match=r"TensorFlow can use 0 of 4000 GPUs here"):
        perfkit.fresh(lambda tf: work.taken(GPU, 4000))


def test_each_of_two_devices_holds_its_share_and_copies_it():
    def look(tf):
        places = work.taken(LOGICAL, 2)
        strategy = work.mirrored(places)
        features, labels = work.resident_on_each(JOB, strategy, places)
        parts = strategy.experimental_local_results(features)
        ends = strategy.experimental_local_results(labels)
        whole, _ = JOB.examples()
        work._BLOCK = 1 << 12
        copies = work._between_gpus(*places)
        ready, moved = next(copies), next(copies)
        return {
            "devices": [part.device[-5:] for part in parts],
            "shapes": [tuple(part.shape) for part in (*parts, *ends)],
            "whole": bool((tf.concat(parts, 0).numpy() == whole).all()),
            "copied": (ready.label, moved % work._BLOCK),
        }

    two = perfkit.fresh(look)
    assert two["devices"] == ["CPU:0", "CPU:1"]
    assert two["shapes"] == [(3, 100), (3, 100), (3,), (3,)]
    assert two["whole"]
    assert two["copied"] == ("set-up", 0)


def test_a_pipeline_gives_batches_for_all_devices_together():
    def look(tf):
        features, labels = next(iter(work.decoded(JOB, 32)))
        brightest = float(tf.reduce_max(features))
        return tuple(features.shape), tuple(labels.shape), 0 < brightest <= 1

    assert perfkit.fresh(look) == ((6, 100), (6,), True)


def test_bytes_are_counted_as_examples_and_none_is_lost():
    found = list(work.counted([Pause("set-up"), 25, Note("x", 1), 25, 60], 20.0))
    assert [item.examples for item in found if isinstance(item, Tick)] == [1, 1, 3]
    assert [type(item) for item in found[:1]] == [Pause]


TWO = Job(model="dense", kind=LOGICAL, count=2, batch=8)


def test_two_devices_go_where_one_goes_unless_they_keep_their_gradients():
    apart, normalises = perfkit.fresh(lambda tf: agreement.apart(TWO))
    assert apart < agreement.TOLERANCE / 10
    assert not normalises
    apart, _ = perfkit.fresh(lambda tf: agreement.apart(TWO, summed=False))
    assert apart > 10 * agreement.TOLERANCE


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((0.5, False), "50 % of the way from where they should be"),
        ((0.001, True), ""),
        # They cannot run, which their trials say themselves.
        (None, ""),
        (TimeoutError, "gave no answer within 90 s"),
    ],
)
def test_a_difference_and_a_silence_of_devices_are_told(monkeypatch, found, words):
    monkeypatch.setattr(agreement, "call_or_none", Mock(side_effect=[found]))
    told = agreement.difference(TWO)
    assert words in told
    assert bool(told) == bool(words)


def test_a_process_of_its_own_answers_or_ends_or_is_ended():
    assert call_or_none(os.getpid, 60) not in (None, os.getpid())
    assert call_or_none(lambda: os._exit(1), 60) is None
    with pytest.raises(TimeoutError):
        call_or_none(threading.Event().wait, 0)
