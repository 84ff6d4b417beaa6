import dataclasses
import itertools

import cloudpickle
import pytest

from perfkit.engine.measurement import CONTROL
from perfkit.engine.statistics import Estimate
from perfkit.engine.trial import REFUSED, Note
from perfkit.errors import BadParameterError
from perfkit.questions import experiment
from perfkit.questions.convolution import Convolution, bound_of, shares_of
from perfkit.questions.convolution.variants import VARIANTS
from perfkit.questions.runs import run
from tests.questions.convolution.test_answers import of_taps as mine
from tests.questions.races import measured

LIMITS = ["arithmetic limit", "memory limit"]


def ran(rates, **more):
    """A run in which limits are compared with nothing."""
    return measured(rates, {n: "" for n in rates if n.endswith("limit")}, **more)


def verdict(rates, **more):
    return Convolution().verdict(ran(rates, **more))


def facts(rates, **more):
    rows = verdict(rates, **more).facts
    return {row.label: f"{row.value} ({row.interval})" for row in rows}


def test_a_way_stands_against_what_it_changes_and_a_limit_against_nothing():
    variants = Convolution().make_variants()
    assert [one.against for one in variants.values()][-2:] == ["", ""]
    both = Convolution(variants="numpy").make_variants()
    assert both["numpy im2col"].against == "numpy taps"
    alone = Convolution(variants="numpy im2col").make_variants()
    assert alone["numpy im2col"].against == "conv2d"


def test_what_cannot_be_convolved_is_refused_before_anything_runs():
    with pytest.raises(BadParameterError, match="kernel is 5 and side is 4"):
        Convolution(side=4, kernel=5)
    with pytest.raises(BadParameterError, match="GB; choose a smaller batch"):
        Convolution(side=256, batch=64)


SMALL = {"batch": 2, "side": 10, "channels": 4, "filters": 4, "padding": "valid"}


def refused(**given):
    told = experiment("convolution", **SMALL | given).prepare()
    return {note.name: note.value for note in told if type(note) is Note}[REFUSED]


def test_a_function_becomes_a_variant_that_travels_and_stays_when_parameters_change():
    asked = experiment("convolution", mine=mine, variants="numpy taps", **SMALL)
    assert list(asked.make_variants()) == ["conv2d", "yours", "numpy taps", *LIMITS]
    asked = dataclasses.replace(experiment("convolution", mine=mine, **SMALL), side=12)
    variant = cloudpickle.loads(cloudpickle.dumps(asked.make_variants()["yours"]))
    assert list(itertools.islice(variant.work(), 2))[1] == 2


def test_what_is_right_is_timed_and_what_is_unwritten_or_a_mistake_is_refused():
    assert refused(mine=mine, variants="numpy taps") == {}
    empty = refused(mine=lambda *given: None, variants="numpy taps")
    assert "write its function first" in empty["yours"]
    assert set(refused(padding="same", variants="as circulated")) == {"as circulated"}


@pytest.mark.parametrize("loud", ["as circulated", *LIMITS])
def test_the_winner_gives_the_same_answer(loud):
    found = verdict({"conv2d": 100, "numpy taps": 200, loud: 900})
    assert (found.winner, found.sure) == ("numpy taps", "sure")
    assert found.edits[0].new == VARIANTS["numpy taps"].code


def shares(rates, **more):
    return shares_of(ran(rates, **more))["conv2d"]


def test_shares_of_the_limits_are_ratios_of_the_same_run_and_of_its_own_work():
    near = shares({"conv2d": 90, "arithmetic limit": 100, "memory limit": 900})
    assert near["compute"].value == pytest.approx(0.9, rel=0.02)
    assert near["memory"].value == pytest.approx(0.1, rel=0.02)
    assert bound_of(near) == "compute"
    # A share that may be small names no limit.
    wide = Estimate(value=0.55, low=0.25, high=1.2)
    assert bound_of(near | {"compute": wide}) == "unknown"


@pytest.mark.parametrize(
    ("limits", "overhead", "said"),
    [
        ((110, 900), 0.01, "compute-bound"),
        ((900, 110), 0.01, "memory-bound"),
        ((900, 900), 0.7, "overhead-bound"),
        ((900, 900), 0.01, ""),
        # Faster than the memory: its numbers stay in the caches.
        ((900, 50), 0.01, ""),
    ],
)
def test_what_holds_a_way_up_is_said_from_what_was_measured(limits, overhead, said):
    notes = {"overhead": {"conv2d": overhead}}
    rates = {"conv2d": 100, **dict(zip(LIMITS, limits, strict=True))}
    assert said in verdict(rates, notes=notes).next
    ground = said or "limited by extra work"
    assert facts(rates, notes=notes)['"conv2d" is'].startswith(ground)


def test_one_round_leaves_open_what_holds_a_way_up():
    rates = {"conv2d": 97, "arithmetic limit": 100, "memory limit": 103}
    assert shares(rates, rounds=1) == {}
    assert '"conv2d" is' not in facts(rates, rounds=1)


def test_a_run_shows_what_is_wrong_and_times_the_rest(tmp_path):
    # With so many images loops in Python are too slow to be timed.
    size = SMALL | {"batch": 16, "side": 34, "channels": 16, "filters": 16}
    variants = "as circulated,python loops"
    asked = experiment("convolution", mine=mine, variants=variants, **size)
    found = run(asked, budget=8, folder=tmp_path)
    ran = {trial.variant for trial in found.trials if trial.outcome == "completed"}
    assert ran == {"conv2d", "yours", *LIMITS, CONTROL}
    # A busy machine may leave no time for the end of the last round.
    assert {trial.outcome for trial in found.trials} <= {"completed", "stopped"}
    assert set(found.unavailable) == {"as circulated", "python loops"}
    assert found.unavailable["python loops"].startswith("takes about")
    assert found.verdict.much
    assert set(found.notes["overhead"]) == {"conv2d", "yours"}
