from dataclasses import replace

import pytest

from perfkit.findings.diagnosis import TOGETHER, Seconds
from perfkit.training.diagnose import gains
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.rounds import AS_GIVEN
from tests.training.diagnose.diagnosed import cause
from tests.training.diagnose.measurements import (
    CEILING,
    MAP,
    at_rates,
    change,
    in_rounds,
    measured,
    stepping,
)

LOGGER = change("without logger", "callback")
BATCH = change("batch", "small-batch", "opportunity", combines=False)
ENDLESS = change("endless", "epoch-boundary", "by gain", own_pauses=True)
ALL = (CEILING, MAP, LOGGER, BATCH, ENDLESS)


def named(**brought):
    return [cause.cause for cause in gains.causes(ALL, measured(**brought))]


def test_a_ceiling_is_not_the_input_s_while_what_it_hides_is_not_tried():
    anew = change("fixed signature", "retracing")

    def first(**brought):
        found = gains.causes((*ALL, anew), measured(**brought))
        return [cause.cause for cause in found][:1]

    assert first(without_input=9.0) == []
    assert first(without_input=9.0, fixed_signature=7.0) == ["retracing"]
    assert first(without_input=9.0, fixed_signature=1.0) == ["input-bound"]


def test_the_largest_gain_comes_first_and_one_below_a_twentieth_is_no_cause():
    assert named(parallel_map=1.3, without_logger=2.0) == ["callback", "serial-map"]
    assert named(without_logger=1.03) == []
    assert named(without_logger=1.09) == ["callback"]


def test_the_ceiling_gives_way_to_what_names_the_reason():
    assert named(without_input=3.0, parallel_map=2.0) == ["serial-map"]
    assert named(without_input=3.0, parallel_map=1.1) == ["input-bound", "serial-map"]
    assert named(without_input=3.0, without_logger=2.0) == ["input-bound", "callback"]
    assert named(without_input=3.0, endless=2.0) == ["epoch-boundary"]
    # As fast in two rounds as in none: the mean is plain, its interval is not.
    assert named(without_input=3.0, endless=(1.0, 1.0, 6.0))[0] == "input-bound"


def test_a_ceiling_of_an_input_with_which_nothing_is_wrong_comes_last():
    limit = cause("input-bound", "without input", 2.0, "opportunity")
    steps = cause("step-overhead", "16 steps at a time", 1.4, "opportunity")
    assert gains.rank((limit, steps)) == (steps, limit)
    slow = replace(limit, kind="defect")
    assert gains.rank((steps, slow)) == (slow, steps)


def test_a_callback_comes_behind_what_stops_its_tracing_and_brings_as_much():
    fixed = cause("retracing", "fixed signature", 5.9, spread=0.15)
    left_out = cause("callback", "without Averaging", 6.7, spread=0.15)
    assert gains.rank((left_out, fixed)) == (fixed, left_out)
    more = cause("callback", "without Averaging", 20.0)
    assert gains.rank((fixed, more)) == (more, fixed)


def test_what_changes_the_learning_waits_for_a_defect():
    assert named(batch=3.0, without_logger=1.4) == ["callback"]
    assert named(batch=9.0, without_logger=1.3) == ["small-batch", "callback"]
    assert named(batch=1.7) == ["small-batch"]


def test_an_opportunity_that_is_the_largest_of_many_by_chance_is_not_named():
    by_chance = (1.15, 1.25, 1.35)
    others = {f"another {number}": 1.0 for number in range(8)}
    assert named(batch=by_chance) == ["small-batch"]
    assert named(batch=by_chance, **others) == []
    # What would be wrong with the training is named, as likely.
    assert named(without_logger=by_chance, **others) == ["callback"]


def test_what_stands_out_only_together_is_named_as_likely():
    others = {f"another {number}": 1000.0 for number in range(8)}
    by_chance = {"batch": (1150.0, 1250.0, 1350.0), TOGETHER: 2000.0}
    made = at_rates({AS_GIVEN: 1000.0} | by_chance | others, 3)
    at_once = ("batch", "endless")
    assert gains.causes(ALL, made) == ()
    assert [c.change for c in gains.causes(ALL, made, at_once=at_once)] == ["batch"]
    assert made.compare("batch", AS_GIVEN).sure == "likely"
    # All of it may be the work of one that stands out by itself.
    plain = at_rates({AS_GIVEN: 1000.0, "endless": 1900.0} | by_chance | others, 3)
    found = gains.causes(ALL, plain, at_once=at_once)
    assert [cause.change for cause in found] == ["endless"]


def test_what_changes_the_learning_does_not_wait_for_itself():
    buckets = change("buckets", "padding", "by gain", combines=False)
    shorter = change("shorter", "padding", "by gain", combines=False)
    found = gains.causes((buckets, shorter), measured(buckets=3.5, shorter=2.4))
    assert [(one.change, one.kind) for one in found] == [
        ("buckets", "defect"),
        ("shorter", "defect"),
    ]


def test_only_a_large_batch_waits_for_another_way_to_make_fewer_steps():
    several = change("16 steps", "step-overhead", "by gain")
    large = replace(BATCH, spares="step-overhead")
    watched = change("no watching", "callback", "by gain", defect_from=1.2)
    brought = measured(batch=3.0, **{"16_steps": 2.5})
    assert gains.set_aside((BATCH, several), brought) == ()
    assert gains.set_aside((large, several), brought) == ("batch",)
    brought = measured(batch=3.0, no_watching=1.4)
    assert gains.set_aside((BATCH, watched), brought) == ("batch",)
    # A ceiling alone sets no larger one aside.
    assert gains.set_aside(ALL, measured(batch=1.7, without_input=1.5)) == ()
    assert gains.set_aside(ALL, measured(batch=1.7, without_logger=1.5)) == ("batch",)


def test_what_one_round_leaves_open_proves_no_training_healthy_and_is_no_ceiling():
    assert not gains.healthy(ALL, (), measured(rounds=1, without_logger=1.06))
    # That another change is slower says nothing of what slows the training.
    assert not gains.healthy(ALL, (), measured(rounds=1, without_logger=0.1))
    assert gains.healthy(ALL, (), measured(rounds=2, without_logger=1.0))
    slow = measured(without_logger=2.0)
    assert not gains.healthy(ALL, gains.causes(ALL, slow), slow)
    assert gains.ceiling(measured(rounds=1, without_input=1.06)) is None
    assert gains.ceiling(measured(rounds=1, without_input=3.0)).estimate > 2.9
    assert gains.ceiling(measured(without_input=3.0)).estimate > 2.9
    # Only the training without its input is one.
    assert gains.ceiling(measured(without_callbacks=2.0)) is None


def test_a_step_holds_its_share_of_an_epoch_s_end():
    def make(name, like, number):
        step_s = 0.01 * (1 + 0.001 * (-1) ** (number + (name == AS_GIVEN)))
        return stepping(name, number, step_s, (0.5,))

    found = in_rounds([AS_GIVEN, "without input"], make, rounds=4)
    step = gains.step_of(found, Facts(batch=10))
    # An epoch has 100 steps.
    assert step.median_s == pytest.approx(0.015, rel=0.01)


def traced(*seconds):
    """What trials of 100 steps tell that traced for so many seconds each."""

    def make(name, like, number):
        told = {"traces": 5, "seconds": seconds[number - 1]}
        steady = {"steps": 100, "tracing": told}
        return stepping(name, number, 0.01, notes={"steady": steady})

    return in_rounds([AS_GIVEN], make, rounds=len(seconds))


def test_tracing_that_no_change_stops_is_inferred_from_its_seconds():
    step = Seconds(median_s=0.01, low=0.009, high=0.011)
    known = {"changed": {}, "because": [], "traces": 9, "made_anew": True}

    def inferred(found, name, **more):
        return gains.inferred((), step, found, Facts(retraced={name: known | more}))

    found = traced(0.50, 0.52, 0.48)
    (one,) = inferred(found, "train_step")
    # 5 ms of each step of 10 ms.
    assert (one.cause, one.grade) == ("retracing", "inferred")
    assert one.speedup.estimate == pytest.approx(2.0, rel=0.02)
    assert "Retracing `train_step` takes 50 % of a step." in one.evidence
    (one,) = inferred(found, "Dataset_map_take", library="the input of `predict`")
    assert "Retracing the input of `predict` takes 50 %" in one.evidence
    assert one.fix.startswith("Each call makes it again")
    # A single trial claims nothing.
    assert inferred(traced(0.5), "train_step") == ()
