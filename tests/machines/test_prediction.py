import pytest

from perfkit.machines.compare import compare
from perfkit.machines.comparison import UNEXPLAINED
from tests.machines import pairs

ALIKE = ("one_core", "onednn_off", "busy", "slow_disk", "waiting_elements")


@pytest.mark.parametrize("name", ALIKE)
def test_what_the_microbenchmarks_show_predicts_the_step(name):
    found = compare(pairs.passport(), getattr(pairs, name)())
    for work in found.works:
        assert work.predicted.seconds == pytest.approx(work.b, rel=0.05), work.name
        assert work.predicted.low < work.predicted.seconds < work.predicted.high
        # The changes add up to the difference.
        total = sum(one.change for one in work.changes)
        assert total == pytest.approx(work.b - work.a, abs=0.03 * work.b)
        assert work.changes[-1].name == UNEXPLAINED


def test_what_no_microbenchmark_shows_stays_and_is_said():
    found = compare(pairs.passport(), pairs.little_memory())
    left = found.main.b - found.main.predicted.seconds
    assert left == pytest.approx(0.03, rel=0.05)
    assert any("do not explain the 30 ms" in said for said in found.because)
    # What lies in the interval of a prediction is nothing that it leaves open.
    found = compare(pairs.passport(), pairs.one_core())
    assert any("which lies within that" in said for said in found.because)
    assert not any("do not explain" in said for said in found.because)


def test_shares_of_a_difference_add_up_to_all_of_it():
    one, other = pairs.passport(), pairs.one_core()
    main = compare(one, other).main
    assert sum(c.share for c in main.changes) == pytest.approx(1, abs=0.02)
    a, b = (
        pairs.split(pairs.TRAININGS[2], {r.name: r.rate for r in p.microbenchmarks})
        for p in (one, other)
    )
    share = (b["input"] - a["input"]) / (sum(b.values()) - sum(a.values()))
    assert main.change("input").share == pytest.approx(share, abs=0.01)


def test_a_step_that_is_mostly_open_is_predicted_by_nothing():
    """Without its compute, what is left of a step would grow as its input does."""
    whole = pairs.passport({"tf.data map": 0.5})
    open_ = tuple(
        pairs.changed(
            one,
            parts=tuple(
                p if p.name == "input" else pairs.changed(p, seconds=None, low=None)
                for p in one.parts
            ),
        )
        for one in whole.trainings
    )
    found = compare(pairs.passport(), pairs.changed(whole, trainings=open_))
    assert {one.name for one in found.works if one.predicted} <= {"small CNN from JPEG"}


def test_a_wait_below_the_rest_of_the_step_costs_nothing():
    """At half its rate the disk is still done before the step is."""
    found = compare(pairs.passport(), pairs.passport({"data disk": 0.6}))
    work = next(one for one in found.works if one.name == "small CNN from disk")
    assert work.predicted.seconds == pytest.approx(work.a, rel=0.02)
    assert not work.claimed
    # A core that is slower makes no element late.
    slow = {"tf.data map": 0.4, "Python loop": 0.45}
    found = compare(pairs.passport(), pairs.passport(slow))
    for work in found.works:
        assert work.predicted.seconds == pytest.approx(work.b, rel=0.05), work.name


def test_a_microbenchmark_that_is_missing_is_predicted_by_nothing():
    without = pairs.passport()
    kept = tuple(r for r in without.microbenchmarks if r.name != "convolution, float32")
    found = compare(pairs.passport(), pairs.changed(without, microbenchmarks=kept))
    works = {work.name: work for work in found.works}
    assert works["small CNN from memory"].predicted is None
    assert works["wide dense"].predicted is not None
    assert works["small CNN from memory"].change("compute").predicted is None


@pytest.mark.parametrize(
    ("hidden", "times", "name", "takes"),
    [
        # The input is what shows of the pipeline: a third of the step is hidden below
        # it. Twice the rate halves all of the pipeline, and not what shows of it.
        (False, 2.0, "small CNN from memory", 0.5),
        # One that is hidden stays hidden while it is the shorter.
        (True, 0.7, "wide dense", 1.0),
    ],
)
def test_beside_a_gpu_the_longer_of_two_counts(hidden, times, name, takes):
    a, b = (
        pairs.on_gpu(pairs.passport({"tf.data map": one}), hidden=hidden)
        for one in (1.0, times)
    )
    work = next(work for work in compare(a, b).works if work.name == name)
    assert work.predicted.seconds == pytest.approx(work.a * takes, rel=0.03)
