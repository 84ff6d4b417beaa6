"""A pause that comes again, whose share is part of the rate."""

import random
import statistics
from dataclasses import replace

import pytest

from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.engine.steady import Usual, seen_s, steady
from perfkit.engine.trial import ONE_PROCESS, WHOLE
from tests.findings.made import completed

# 1,000 examples/s in ticks of 10 ms, after a first call of a second.
TICKS = ((0.0, 0), (1.0, 10), *((1 + 0.01 * n, 10) for n in range(1, 101)))


def trial_with(pauses, recurring, variant="v", round=1, ticks=TICKS, **more):
    told = {"pauses": pauses, "recurring": recurring}
    return completed(variant, round, ticks, **told, **more)


def pausing(*seconds, done=0, **more):
    """A trial whose pause comes every 1,000 examples, with some of them done in it."""
    return trial_with({"end": seconds}, {"end": (1000, done)}, **more)


@pytest.mark.parametrize(
    ("trial", "rate"),
    [
        # 1,000 examples take a second, and after them comes half a second.
        (pausing(0.4, 0.6), 1000 / 1.5),
        # The work that is done in a pause is not counted twice.
        (pausing(0.5, done=100), 1000 / 1.4),
        # One that does not come again stays out of the rate.
        (trial_with({"checkpoint": (5.0,)}, {}), 1000),
    ],
    ids=["end of an epoch", "works", "once"],
)
def test_the_share_of_a_pause_that_comes_again_is_part_of_the_rate(trial, rate):
    found = steady(trial)
    assert found.with_pauses(found.pauses_s).rate == pytest.approx(rate)
    # One that never saw its pause has none.
    assert steady(trial_with({}, {"end": (1000, 0)})) is None


def test_turns_in_one_process_that_met_no_end_of_an_epoch_are_not_compared():
    together = {"notes": {ONE_PROCESS: True}}
    longer = (*TICKS, *((2 + 0.01 * n, 10) for n in range(1, 101)))
    trials = [
        pausing(0.4, variant="given", **together),
        pausing(0.4, variant="met", **together),
        # Where its turns were over before, its rate is spared what it takes.
        trial_with({}, {}, variant="missed", **together),
        # What lasted for two epochs and met none has none.
        trial_with({}, {}, variant="endless", ticks=longer, **together),
        trial_with({}, {}, variant="fresh"),
        # Where ticks hold whole epochs, it is charged with all of them.
        trial_with({}, {}, variant="whole", notes={ONE_PROCESS: True, WHOLE: True}),
    ]
    names = ("given", "met", "missed", "endless", "fresh", "whole")
    variants = tuple(Variant(name, iter, "", "given") for name in names)
    measured = Measurement(variants=variants, trials=tuple(trials), baseline="given")
    compared = [one.variant for one in measured.comparisons]
    assert compared == ["met", "endless", "fresh", "whole"]


def added(usual, name, trial):
    return 1000 * usual.usual_s(name, trial, 0.001)


def test_what_is_random_in_pauses_is_shared_by_all_variants_alike():
    calm, stalled = pausing(0.1, 0.1, 0.1), pausing(0.1, 0.1, 0.7)
    usual = Usual({"one": [calm], "other": [stalled]})
    # Beyond the two that are the shortest lie 0.6 s on four pauses: 0.9 s on six. All
    # three of a variant are long by chance in one of so many cases.
    usually = 0.1 + 0.15 - 0.9 / 6**3
    assert added(usual, "one", calm) == pytest.approx(usually)
    assert added(usual, "other", stalled) == pytest.approx(usually)
    # A pause that is alone tells nothing of the others, and may be long by chance.
    once, often = pausing(0.3), pausing(0.1, 0.2, 0.3)
    usual = Usual({"one": [once], "other": [often]})
    assert added(usual, "other", often) == pytest.approx(0.2)
    assert added(usual, "one", once) == pytest.approx(0.3)
    error = max(usual.errors_s("one", once).values())
    assert 1000 * error == pytest.approx(statistics.pstdev([0, 0.15, 0.3]))
    assert added(Usual({"one": [once]}), "one", once) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("calm", "slow", "more"),
    [
        # They are shown to differ, or known to.
        (pausing(*(0.1,) * 12), pausing(0.1, *(0.5,) * 11), {}),
        (pausing(0.1, 0.1), pausing(0.1, 0.5), {"apart": ["one"]}),
    ],
    ids=["shown", "known"],
)
def test_a_variant_whose_pauses_differ_keeps_its_own(calm, slow, more):
    third = {} if more else {"third": [slow]}
    usual = Usual({"one": [calm], "other": [slow]} | third, **more)
    assert added(usual, "one", calm) == pytest.approx(0.1)
    (pauses,) = slow.pauses.values()
    assert added(usual, "other", slow) == pytest.approx(statistics.fmean(pauses))


def test_a_stall_counts_for_no_more_than_what_comes_between_two():
    slow = pausing(0.1, 5.1)
    ticks = tuple((at / 10, examples) for at, examples in slow.ticks)
    quick = replace(pausing(0.1), variant="quick", ticks=ticks)
    trials = [replace(one, round=n) for n in (1, 2) for one in (slow, quick)]
    usual = Usual({"slow": trials[::2], "quick": trials[1::2]})
    # A second lies between two pauses of the slow one: beyond their shortest, six
    # pauses of two variants took two seconds, and not ten. All six are long by chance
    # in one of so many cases.
    assert added(usual, "slow", slow) == pytest.approx(0.1 + 0.5 - 1 / 3**6)
    assert 1000 * seen_s(slow, 0.001) == pytest.approx((0.1 + 1.1) / 2)
    variants = (Variant("v", iter), Variant("quick", iter, against="v"))
    found = Measurement(variants=variants, trials=tuple(trials)).compare("quick", "v")
    shorter = 0.1 + 0.1 + 0.1 - 0.1 / 3**6
    assert found.ratio == pytest.approx((1 + 0.1 + 0.5 - 1 / 3**6) / shorter)


def test_the_doubt_in_usual_pauses_is_one_for_all_that_share_it():
    trials = {
        name: pausing(0.1, longer)
        for name, longer in (("one", 0.3), ("other", 0.5), ("third", 0.2))
    }
    usual = Usual({name: [one] for name, one in trials.items()}, apart=["third"])
    one, other, third = (usual.errors_s(*pair) for pair in trials.items())
    assert len(one.keys() & other.keys()) == 1
    assert one.keys().isdisjoint(third)
    assert all(min(error.values()) > 0 for error in (one, other, third))


def test_a_single_long_pause_is_no_difference_where_others_are_long_at_times():
    given = pausing(0.03, 0.3, 0.03, 0.3, 0.3, variant="given")
    ticks = tuple((0.7 * at, examples) for at, examples in TICKS)
    quicker = []
    for once in (0.03, 0.3):
        found = compared([given, pausing(once, variant="change")])
        assert found.low < 1 < found.high
        quick = pausing(once, variant="change", ticks=ticks)
        quicker.append(compared([given, quick]).ratio)
    # Nor does it count for or against quicker steps.
    assert quicker == pytest.approx([(1 + 0.18) / (0.7 + 0.18)] * 2, rel=0.05)
    # Where they never are, one that is long says something.
    same = pausing(*(0.03,) * 5, variant="given")
    assert compared([same, pausing(0.3, variant="change")]).high < 1


def compared(trials, **change):
    """A change against what was given, by trials of both."""
    changed = Variant("change", iter, against="given", **change)
    variants = (Variant("given", iter), changed)
    measured = Measurement(variants=variants, trials=tuple(trials))
    return measured.compare("change", "given")


def test_what_is_not_known_of_pauses_widens_only_where_rates_differ():
    def half_width(given, change):
        return compared(
            pausing(*seconds, variant=name, round=number)
            for number in (1, 2, 3)
            for name, seconds in (("given", given), ("change", change))
        ).half_width

    alike = half_width((0.1, 0.1, 0.7), (0.1, 0.1, 0.7))
    shorter = half_width((5.1, 5.1, 5.7), (0.1, 0.1, 0.7))
    certain = half_width((5.1, 5.1, 5.1), (0.1, 0.1, 0.1))
    assert alike == pytest.approx(certain, abs=0.01)
    assert shorter > certain + 0.05


def test_a_variant_about_its_pauses_counts_those_of_its_own_and_what_is_random():
    trials = pausing(1.0, variant="given"), pausing(0.5, variant="change")
    assert compared(trials, own_pauses=True).ratio == pytest.approx(2 / 1.5)
    # A single pause of the training as given, against a change that has none.
    given = [pausing(1.0, variant="given"), pausing(0.03, variant="given", round=2)]
    without = pausing(0.0, variant="change")
    known = [pausing(1.0, variant="given"), pausing(1.0, variant="given", round=2)]
    wide, narrow = (
        compared([*trials, without], own_pauses=True).half_width
        for trials in (given, known)
    )
    assert wide > narrow + 0.3
    # Nor is it known how many of them lie between the ticks of one that tells of none.
    untold = trial_with({}, {}, variant="change")
    wide, narrow = (compared([*t, untold]).half_width for t in (given, known))
    assert wide > narrow + 0.3


def in_turns(draw, of, turns, long):
    """A trial of so many turns, each with an end of an epoch that is long at times."""
    ticks, begins, pauses, at = [(0.0, 0), (0.1, 32)], [], [], 1.0
    for _ in range(turns):
        begins.append(at)
        for part in range(2):
            ticks.append((at := at + 0.001, 0))
            ticks += [(at := at + 0.0285 * draw.gauss(1, 0.03), 96) for _ in range(12)]
            if not part:
                pauses.append(0.28 if draw.random() < long else 0.03)
                at += pauses[-1]
        at += 1.0
    told = {
        "pauses": {"epoch end": tuple(pauses)},
        "recurring": {"epoch end": (2048, 32)},
        "notes": {ONE_PROCESS: True},
    }
    return completed(of, 1, ticks, turns=tuple(begins), **told)


@pytest.mark.parametrize("long", [0.1, 0.4])
def test_copies_whose_epochs_end_late_at_random_are_hardly_ever_called_different(long):
    draw, claimed = random.Random(3), []
    variants = (
        Variant("given", iter),
        *(Variant(n, iter, against="given") for n in "ab"),
    )
    for _ in range(40):
        turns = {"given": 5, CONTROL: 3, "a": draw.choice([1, 2, 3]), "b": 2}
        trials = tuple(in_turns(draw, of, n, long) for of, n in turns.items())
        found = Measurement(variants=variants, trials=trials, baseline="given")
        claimed += [not compared.is_noise for compared in found.comparisons]
    assert len(claimed) == 80
    assert sum(claimed) <= 0.05 * len(claimed)
