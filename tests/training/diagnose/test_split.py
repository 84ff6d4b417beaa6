import pytest

from perfkit.findings.diagnosis import Seconds
from perfkit.findings.reports import grade_of, part_in_words
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.gains import ceiling, split, step_of
from perfkit.training.diagnose.rounds import AS_GIVEN
from tests.training.diagnose.measurements import (
    BATCH,
    CEILING,
    change,
    in_rounds,
    stepping,
)

CHANGES = (
    CEILING,
    change("16 steps at a time", "step-overhead", steps=16),
    change("without CSVLogger", "callback"),
)


def measured(seconds, ends=lambda name, number: (), wobble=0.001):
    def make(name, like, number):
        wobbles = 1 + wobble * (-1) ** (number + (name == AS_GIVEN))
        return stepping(name, number, seconds[like] * wobbles, ends(name, number))

    return in_rounds(seconds, make, rounds=4)


def parts(found, facts=None, changes=CHANGES, **more):
    facts = facts or Facts(batch=BATCH)
    step = step_of(found, facts)
    return split(step, changes, found, facts, **more), step


def test_each_part_is_what_its_change_took_away():
    found, step = parts(
        measured(
            {
                AS_GIVEN: 0.010,
                "without input": 0.004,
                "16 steps at a time": 0.00906,
                "without CSVLogger": 0.0095,
            }
        )
    )
    assert found["input"].seconds == pytest.approx(0.006, rel=0.02)
    assert found["dispatch"].seconds == pytest.approx(0.00094 * 16 / 15, rel=0.05)
    assert found["callbacks"].seconds == pytest.approx(0.0005, rel=0.05)
    # No end of an epoch was timed by itself: it is in the other parts.
    assert found.pop("epoch ends").seconds is None
    assert sum(part.seconds for part in found.values()) == pytest.approx(step.median_s)


def test_the_end_of_an_epoch_is_shared_out_and_counted_once():
    seconds = {AS_GIVEN: 0.01, "without input": 0.004, "without CSVLogger": 0.0095}
    given = measured(seconds | {"16 steps at a time": 0.0085}, ends=lambda *_: (0.5,))
    found, step = parts(given)
    assert found["epoch ends"].seconds == pytest.approx(0.005, rel=0.01)
    assert found["input"].seconds == pytest.approx(0.006, rel=0.02)
    assert found["compute"].seconds == pytest.approx(0.004 - 0.0005 - 0.0016, rel=0.02)
    assert step.median_s == pytest.approx(0.015, rel=0.01)


def test_callbacks_that_were_left_out_together_are_counted_once():
    every, logger = "without callbacks", "without CSVLogger"
    changes = (
        change(every, "callback", ceiling=True),
        change(logger, "callback", after=every),
        change("without metrics", "callback"),
    )
    seconds = {AS_GIVEN: 0.01, every: 0.007, logger: 0.008, "without metrics": 0.009}
    found, _ = parts(measured(seconds), changes=changes)
    assert found["callbacks"].seconds == pytest.approx(0.004, rel=0.02)


def test_only_the_training_without_its_input_is_its_ceiling():
    every = change("without callbacks", "callback", ceiling=True)
    found = measured({AS_GIVEN: 0.01, every.name: 0.005, "without input": 0.004})
    told, _ = parts(found, changes=(every,))
    assert told["input"].grade == "not tested"
    assert ceiling([every], found) is None
    assert ceiling([every, *CHANGES], found).estimate == pytest.approx(2.5, rel=0.02)


def stalled(name, number):
    """Ends of 50 ms, but for one of two seconds: a thread slept when it came."""
    return (2.0, 0.05) if (name, number) == ("16 steps at a time", 2) else (0.05, 0.05)


def test_an_end_of_an_epoch_that_stalled_once_is_no_part_of_another_thing():
    seconds = {AS_GIVEN: 0.0218, "without input": 0.02, "16 steps at a time": 0.0187}
    given = measured(seconds, ends=stalled)
    found, step = parts(given)
    brought = given.compare("16 steps at a time", AS_GIVEN).ratio
    saved = step.median_s * (1 - 1 / brought) * 16 / 15
    assert found["dispatch"].seconds == pytest.approx(saved, rel=0.05)
    assert found["dispatch"].low < saved < found["dispatch"].high
    assert sum(part.seconds or 0 for part in found.values()) <= step.median_s


def test_what_is_not_shown_is_unknown_and_no_share_comes_from_it():
    noisy = measured({AS_GIVEN: 0.010, "without input": 0.0099}, wobble=0.2)
    found, _ = parts(noisy)
    assert found["input"].seconds is found["input"].low is None
    assert found["input"].how.startswith("The training without its input: ")
    assert found["compute"].seconds is found["unexplained"].seconds is None
    said = {name: part_in_words(part, 0.01) for name, part in found.items()}
    for name in ("input", "dispatch", "compute", "unexplained"):
        assert said[name] == ("?", "")
    assert (said["callbacks"], grade_of(found["callbacks"])) == (
        ("?", ""),
        "not tested",
    )
    assert grade_of(found["input"]) == "not known yet"


def test_what_is_shown_to_be_small_is_a_range():
    seconds = {AS_GIVEN: 0.010, "without input": 0.00999}
    found, step = parts(measured(seconds, wobble=0.01))
    assert found["input"].seconds is None
    assert found["input"].low == 0 < found["input"].high < 0.1 * step.median_s
    assert part_in_words(found["input"], step.median_s)[0].startswith("at most ")


def test_parts_that_overlap_leave_a_range_and_nothing_below_zero():
    seconds = {AS_GIVEN: 0.010, "without input": 0.003, "16 steps at a time": 0.005}
    found, _ = parts(measured(seconds | {"without CSVLogger": 0.009}))
    assert found["compute"].seconds is None
    assert all((part.low or 0) >= 0 for part in found.values())
    assert "They overlap." in found["compute"].how


def test_a_step_that_is_not_known_is_not_taken_apart():
    given = measured({AS_GIVEN: 0.01})
    step = Seconds(median_s=0.01, low=0.004, high=0.03)
    for unknown in (None, step):
        assert split(unknown, CHANGES, given, Facts(batch=BATCH)) == {}
