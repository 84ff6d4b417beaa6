import pytest

from perfkit.diagnosis import split
from perfkit.diagnosis.facts import Facts
from perfkit.findings.diagnosis import Seconds
from perfkit.measure.measurement import Measurement
from perfkit.measure.trial import Trial

STEP = Seconds(median_s=0.01, low=0.009, high=0.011)


def product_at(rate):
    """The product timed at so many operations per second."""
    ticks = tuple((1 + tick / 10, int(rate / 10) if tick else 0) for tick in range(20))
    trial = Trial(variant=split.NAME, round=0, outcome="completed", ticks=ticks)
    return Measurement(arms=(), trials=(trial,))


def test_the_share_is_the_rate_of_the_step_over_that_of_the_product():
    reached = split.share(STEP, product_at(1e12), Facts(flop=6.2e9))
    assert reached == pytest.approx(0.62)
    assert split.in_words(reached).startswith("It reaches 62 % of what a large matrix")


def test_nothing_is_said_where_a_part_of_it_is_unknown():
    timed, known = product_at(1e12), Facts(flop=6.2e9)
    assert split.share(STEP, Measurement(arms=()), known) is None
    assert split.share(STEP, timed, Facts()) is None
    assert split.share(None, timed, known) is None
    unknown = Seconds(median_s=0.01, low=0.004, high=0.03)
    assert split.share(unknown, timed, known) is None
    assert split.share(STEP, timed, Facts(flop=1.0, policy="mixed_bfloat16")) is None


def test_the_product_is_timed_only_where_a_share_can_be_told():
    assert [one.name for one in split.tries(Facts(flop=1.0), gpus=0)] == [split.NAME]
    assert list(split.tries(Facts(), gpus=0)) == []
