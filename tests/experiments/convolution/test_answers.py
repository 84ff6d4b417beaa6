import itertools

import pytest

from perfkit.experiments.convolution import answers, library, problem
from perfkit.experiments.convolution.problem import Problem, convolving
from perfkit.experiments.convolution.variants import VARIANTS, own
from perfkit.measure.tick import READY, Tick

HUGE = Problem(batch=32, side=112, channels=64, filters=64)
SMALL = Problem(side=8)


def test_loops_that_would_take_minutes_are_refused_without_being_waited_for():
    why = answers.try_method(VARIANTS["python loops"], HUGE).why_not
    assert "takes about" in why
    assert " min " in why


def test_loops_over_few_numbers_are_timed():
    tried = answers.try_method(VARIANTS["python loops"], SMALL)
    assert tried.why_not == ""
    assert 0 < tried.overhead < 1


@pytest.fixture
def costs(monkeypatch):
    """Let calls take what a script says of their problem."""

    def script(seconds):
        monkeypatch.setattr(answers, "call_s", lambda method, problem: seconds(problem))

    return script


def test_a_call_is_foretold_from_how_it_grows(costs):
    costs(lambda problem: 1e-4 + 1e-7 * problem.batch * problem.flops)
    asked = Problem(batch=2, side=64, channels=8, filters=8)
    why = answers._too_slow_to_try(VARIANTS["python loops"], asked, 0.3)
    wanted = 1e-7 * 2 * 64 * 64 * 8 * 8 * 9 * 2
    assert f"about {1000 * wanted:.0f} ms" in why


def test_a_call_that_costs_the_same_at_every_size_is_not_foretold_to_be_long(costs):
    costs(lambda problem: 0.01)
    assert answers._too_slow_to_try(own(None), HUGE, 0.3) == ""


def test_a_call_that_takes_too_long_says_how_long(costs):
    costs(lambda problem: 1.5)
    why = answers.try_method(VARIANTS["numpy taps"], SMALL).why_not
    assert why == "takes about 1.5 s a call, too long to be timed here"
    assert answers.try_method(VARIANTS["numpy taps"], SMALL, 2.0).why_not == ""


def test_a_baseline_that_is_slow_itself_gives_the_others_more_time():
    assert answers.longest_s(0.001) == answers.LONGEST_S
    assert answers.longest_s(2.0) > 2.0


def test_copies_that_do_not_fit_into_memory_are_not_made(monkeypatch):
    class Memory:
        available = 1_000_000

    monkeypatch.setattr(answers.psutil, "virtual_memory", Memory)
    why = answers.try_method(VARIANTS["numpy im2col"], HUGE).why_not
    assert why == "would take 925 MB of memory besides its numbers"


def test_channels_that_cannot_be_grouped_are_said():
    assert (
        "multiples of 4"
        in answers.try_method(VARIANTS["grouped"], Problem(channels=3)).why_not
    )


def test_what_a_function_raises_is_told_and_nothing_breaks():
    def broken(images, kernel, stride, padding):
        raise ValueError("no such axis\nand more")

    assert (
        answers.try_method(own(broken), SMALL).why_not
        == "raised ValueError: no such axis"
    )


@pytest.mark.parametrize("name", ["conv2d", "numpy taps", "grouped", "depthwise"])
def test_the_overhead_is_that_of_the_smallest_convolution(name, costs):
    asked = []
    costs(lambda problem: asked.append(problem) or 1e-5)
    asked_for = Problem(batch=8, side=56, channels=64, filters=64, kernel=5)
    assert answers._overhead(VARIANTS[name], asked_for, 4e-5) == 0.25
    (small,) = asked
    assert (small.batch, small.out, small.kernel) == (1, 1, 5)
    assert small.channels == (4 if name == "grouped" else 1)


def test_a_trial_counts_its_images_and_its_first_call_apart():
    calls = []
    ticks = list(itertools.islice(convolving(lambda: calls.append(1), 3), 4))
    assert ticks[:2] == [READY, 3]
    assert sum(tick.examples for tick in ticks[2:]) == 3 * (len(calls) - 1)


@pytest.mark.parametrize("examples", [0.3, 2.5, 1000.0])
def test_a_limit_counts_whole_examples_and_loses_none(examples):
    counted = list(itertools.islice(problem._whole(lambda: None, examples), 1000))
    assert sum(counted) == pytest.approx(1000 * examples, abs=1)
    assert all(isinstance(number, int) for number in counted)


@pytest.mark.parametrize("limit", [library.multiplying, library.moving])
def test_a_limit_works_and_counts(limit):
    first, *ticks = itertools.islice(limit(1e6), 3)
    assert first is READY
    assert all(isinstance(tick, Tick) and tick.examples > 0 for tick in ticks)
