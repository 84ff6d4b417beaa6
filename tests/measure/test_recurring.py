"""A pause that comes again, whose share is part of the rate."""

import random
import statistics
from dataclasses import replace

import pytest

from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.steady import Usual, seen_s, steady
from perfkit.measure.trial import Trial


def trial_with(pauses, recurring):
    """1,000 examples/s in ticks of 10 ms, after a first call of a second."""
    ticks = ((0.0, 0), (1.0, 10), *((1 + 0.01 * n, 10) for n in range(1, 101)))
    return Trial(
        variant="v",
        round=1,
        outcome="completed",
        ticks=ticks,
        pauses=pauses,
        recurring=recurring,
    )


def with_pauses_rate(found):
    return found.with_pauses(found.pauses_s).rate


def test_the_share_of_an_epochs_end_is_part_of_the_rate():
    found = steady(trial_with({"epoch end": (0.4, 0.6)}, {"epoch end": (1000, 0)}))
    # 1,000 examples take a second, and after them comes half a second.
    assert with_pauses_rate(found) == pytest.approx(1000 / 1.5)


def test_the_work_that_is_done_in_a_pause_is_not_counted_twice():
    found = steady(trial_with({"epoch end": (0.5,)}, {"epoch end": (1000, 100)}))
    assert with_pauses_rate(found) == pytest.approx(1000 / 1.4)


def test_a_pause_that_does_not_come_again_stays_out_of_the_rate():
    found = steady(trial_with({"checkpoint": (5.0,)}, {}))
    assert with_pauses_rate(found) == pytest.approx(1000)


def test_a_trial_that_never_saw_its_pause_has_no_rate():
    assert steady(trial_with({}, {"epoch end": (1000, 0)})) is None


def pausing(*seconds):
    return trial_with({"end": seconds}, {"end": (1000, 0)})


def added(usual, name, trial):
    return 1000 * usual.usual_s(name, trial, 0.001)


def test_what_is_random_in_pauses_is_shared_by_all_variants_alike():
    calm, stalled = pausing(0.1, 0.1, 0.1), pausing(0.1, 0.1, 0.7)
    usual = Usual({"one": [calm], "other": [stalled]})
    # Beyond the two that are the shortest lie 0.6 s on four pauses.
    assert added(usual, "one", calm) == pytest.approx(0.1 + 0.15)
    assert added(usual, "other", stalled) == pytest.approx(0.1 + 0.15)


def test_the_mean_beyond_the_shortest_is_right_for_few_pauses():
    draw = random.Random(1)
    found = []
    for _ in range(400):
        groups = {
            n: [pausing(*(0.1 + draw.expovariate(20) for _ in range(3)))]
            for n in "abcd"
        }
        usual = Usual(groups)
        found.append(
            usual.usual_s("a", groups["a"][0], 0.001) * 1000
            - min(groups["a"][0].pauses["end"])
        )
    assert statistics.fmean(found) == pytest.approx(0.05, rel=0.05)


def test_a_pause_that_is_alone_tells_nothing_of_the_others():
    once, often = pausing(0.3), pausing(0.1, 0.2, 0.3)
    usual = Usual({"one": [once], "other": [often]})
    assert added(usual, "other", often) == pytest.approx(0.1 + 0.15)
    assert added(usual, "one", once) == pytest.approx(0.3 + 0.15)
    assert added(Usual({"one": [once]}), "one", once) == pytest.approx(0.3)


def test_a_variant_whose_pauses_are_shown_to_differ_keeps_its_own():
    calm, slow = pausing(*(0.1,) * 12), pausing(0.1, *(0.5,) * 11)
    usual = Usual({"one": [calm], "other": [slow], "third": [slow]})
    assert added(usual, "one", calm) == pytest.approx(0.1)
    assert added(usual, "other", slow) == pytest.approx(0.5)


def test_a_variant_whose_pauses_are_known_to_differ_keeps_its_own():
    calm, slow = pausing(0.1, 0.1), pausing(0.1, 0.5)
    usual = Usual({"one": [calm], "other": [slow]}, apart=["one"])
    assert added(usual, "one", calm) == pytest.approx(0.1)
    assert added(usual, "other", slow) == pytest.approx(0.5)


def test_a_stall_counts_for_no_more_than_what_comes_between_two():
    slow = pausing(0.1, 5.1)
    ticks = tuple((at / 10, examples) for at, examples in slow.ticks)
    quick = replace(pausing(0.1), variant="quick", ticks=ticks)
    trials = [replace(one, round=n) for n in (1, 2) for one in (slow, quick)]
    usual = Usual({"slow": trials[::2], "quick": trials[1::2]})
    # A second lies between two pauses of the slow one: beyond their shortest, six
    # pauses of two variants took two seconds, and not ten.
    assert added(usual, "slow", slow) == pytest.approx(0.1 + 2 / (6 - 2))
    assert 1000 * seen_s(slow, 0.001) == pytest.approx((0.1 + 1.1) / 2)
    variants = (Variant("v", iter), Variant("quick", iter, against="v"))
    found = Measurement(variants=variants, trials=tuple(trials)).compare("quick", "v")
    assert found.ratio == pytest.approx((1 + 0.1 + 0.5) / (0.1 + 0.1 + 0.1), rel=0.01)


def test_the_doubt_in_usual_pauses_is_one_for_all_that_share_it():
    one, other, third = pausing(0.1, 0.3), pausing(0.1, 0.5), pausing(0.1, 0.2)
    usual = Usual({"one": [one], "other": [other], "third": [third]}, apart=["third"])
    errors = [
        usual.errors_s(*pair)
        for pair in (("one", one), ("other", other), ("third", third))
    ]
    assert errors[0] == errors[1]
    assert errors[0].keys().isdisjoint(errors[2])
    assert all(min(error.values()) > 0 for error in errors)


def test_a_variant_about_its_pauses_counts_those_of_its_own_trials():
    label = "epoch end"
    change = Variant("change", iter, against="given", own_pauses=True)
    variants = (Variant("given", iter), change)
    slow = trial_with({label: (1.0,)}, {label: (1000, 0)})
    quick = trial_with({label: (0.5,)}, {label: (1000, 0)})
    trials = (replace(slow, variant="given"), replace(quick, variant="change"))
    compared = Measurement(variants=variants, trials=trials).compare("change", "given")
    assert compared.ratio == pytest.approx(2 / 1.5)


def test_what_is_not_known_of_pauses_widens_only_where_rates_differ():
    def compared(*pauses):
        trials = [
            replace(
                trial_with({"end": seconds}, {"end": (1000, 0)}), variant=name, round=n
            )
            for n in (1, 2, 3)
            for name, seconds in zip(("given", "change"), pauses, strict=True)
        ]
        variants = (Variant("given", iter), Variant("change", iter, against="given"))
        return Measurement(variants=variants, trials=tuple(trials)).compare(
            "change", "given"
        )

    alike = compared((0.1, 0.1, 0.7), (0.1, 0.1, 0.7))
    shorter = compared((5.1, 5.1, 5.7), (0.1, 0.1, 0.7))
    certain = compared((5.1, 5.1, 5.1), (0.1, 0.1, 0.1))
    assert alike.half_width == pytest.approx(certain.half_width)
    assert shorter.half_width > certain.half_width + 0.05
