"""Whether several devices learn what one learns, and a process that is asked for it."""

import os
import threading

import pytest

import perfkit
from perfkit.experiments.scaling import agreement
from perfkit.experiments.scaling.agreement import call_or_none
from perfkit.experiments.scaling.work import LOGICAL, Job

TWO = Job(model="dense", kind=LOGICAL, count=2, batch=8)


def test_two_devices_go_where_one_goes_with_the_whole_batch():
    apart, normalises = perfkit.fresh(lambda tf: agreement.apart(TWO))
    assert apart < agreement.TOLERANCE / 10
    assert not normalises


def test_devices_that_keep_their_gradients_to_themselves_go_elsewhere():
    apart, _ = perfkit.fresh(lambda tf: agreement.apart(TWO, summed=False))
    assert apart > 10 * agreement.TOLERANCE


def test_devices_that_do_not_answer_are_told_in_a_sentence(monkeypatch):
    def hang(function, longest_s):
        raise TimeoutError

    monkeypatch.setattr(agreement, "call_or_none", hang)
    assert "gave no answer within 90 s" in agreement.difference(TWO)


def test_what_cannot_run_is_left_to_its_trial(monkeypatch):
    monkeypatch.setattr(agreement, "call_or_none", lambda function, longest_s: None)
    assert agreement.difference(TWO) == ""


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((0.5, False), "50 % of the way from where they should be"),
        ((0.5, True), "BatchNormalization"),
        ((0.001, True), ""),
    ],
)
def test_a_difference_is_told_with_its_size(monkeypatch, found, words):
    monkeypatch.setattr(agreement, "call_or_none", lambda function, longest_s: found)
    told = agreement.difference(TWO)
    assert words in told
    assert bool(told) == bool(words)


def test_a_question_is_answered_by_a_process_of_its_own():
    assert call_or_none(os.getpid, 60) not in (None, os.getpid())


def test_a_process_that_ends_gives_no_answer():
    assert call_or_none(lambda: os._exit(1), 60) is None


def test_a_process_that_hangs_is_ended():
    with pytest.raises(TimeoutError):
        call_or_none(threading.Event().wait, 0)
