import pytest

from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import Comparison
from perfkit.training.race.rounds import choose_variants, decided
from tests.findings.made import failed
from tests.training.race.built import NEW, OLD, THIRD, WAVERING, measured, race, sides

THREE = sides(OLD, NEW, THIRD)
FASTER = {OLD: 1000.0, NEW: 2000.0}
SLOWER = {OLD: 1000.0, NEW: 500.0}
OPEN = {OLD: 1000.0, NEW: WAVERING}


def failing(number):
    return [failed(NEW, "crashed", "raised", number)]


BOTH = [OLD, NEW]
WIDE = measured({OLD: 1000.0, NEW: (2000.0, 3000.0, 2000.0, 3000.0)}, rounds=4)
CHECK = {"worse": 0.05}
# What has been measured, the names of the next round, and the race's options.
NEXT = {
    "nothing yet": (Measurement(variants=(), baseline=OLD), BOTH, {}),
    "two rounds": (measured(FASTER, rounds=2), BOTH, {}),
    "plainly alike": (measured(), [], {}),
    "open": (measured(OPEN), BOTH, {}),
    "a plain difference": (measured(FASTER), [], {}),
    "a difference of unknown size": (WIDE, BOTH, {}),
    "a side never runs": (measured({OLD: 1000.0}, trials=failing(3)), [], {}),
    "slower by 5 %": (measured(SLOWER), [], CHECK),
    "slower, but not by 60 %": (measured(SLOWER), [], {"worse": 0.6}),
    "not slower": (measured(), [], CHECK),
    "open whether it is slower": (measured(OPEN), BOTH, CHECK),
    # However plain, one or two rounds decide nothing.
    "slower in two rounds": (measured(SLOWER, rounds=2), BOTH, CHECK),
}


@pytest.mark.parametrize(("run", "names", "options"), NEXT.values(), ids=NEXT)
def test_a_round_holds_what_is_still_open(run, names, options):
    chosen = choose_variants(race(), run, **options)
    assert [one.name for one in chosen] == names


def test_a_check_ends_once_a_side_is_seen_to_do_another_job():
    other = race(new={"batch": 20, "steps": 50})
    run = measured(OPEN, rounds=1)
    assert choose_variants(other, run)
    assert choose_variants(other, run, worse=0.05) == ()


def test_each_side_is_compared_with_the_first():
    run = measured({OLD: 1000.0, NEW: WAVERING, THIRD: 1001.0})
    variants = choose_variants(race(THREE), run)
    assert [one.work.side.name for one in variants] == [OLD, NEW, THIRD]
    assert {one.against for one in variants} == {OLD}


def compared(low, high, verdict="no difference shown"):
    return Comparison(
        variant=NEW,
        baseline=OLD,
        ratio=(low * high) ** 0.5,
        low=low,
        high=high,
        verdict=verdict,
        rounds=4,
    )


LESS = compared(0.5, 0.6, "slower")
SAME = compared(0.97, 1.03)
MORE = compared(1.5, 1.6, "faster")
NOISY = compared(0.7, 1.4, "too noisy to say")


@pytest.mark.parametrize(
    ("comparisons", "answer"),
    [
        ([LESS], True),
        ([SAME], False),
        ([MORE], False),
        ([NOISY], None),
        ([None], None),
        ([], None),
        ([SAME, LESS], True),
        ([NOISY, LESS], True),
        ([SAME, NOISY], None),
        # Slower for sure, but by less than 5 %, or by who knows how much.
        ([compared(0.96, 0.98, "slower")], False),
        ([compared(0.94, 0.96, "slower")], None),
        # Beyond the interval's end, but not beyond the noise.
        ([compared(0.90, 0.94, "too noisy to say")], None),
        # At the very border it is not slower by more.
        ([compared(0.95, 0.99, "slower")], False),
        ([compared(0.90, 0.95, "slower")], None),
        ([compared(0.90, 0.9499, "slower")], True),
        ([compared(0.9499, 1.1)], None),
    ],
)
def test_what_is_decided_of_being_slower_by_5_percent(comparisons, answer):
    assert decided(comparisons, 0.05, 1.02) is answer


@pytest.mark.parametrize(
    ("ratio", "noise", "answer"),
    [
        *((0.8, noise, True) for noise in (1.05, 1.06, 1.11)),
        *((0.8, noise, None) for noise in (1.12, None)),
        *((1.0, 1.05, False), (1.0, 1.06, None)),
        *((1.25, 1.11, False), (1.25, 1.12, None)),
    ],
)
def test_where_the_same_code_differs_only_twice_as_much_decides(ratio, noise, answer):
    verdict = "slower" if ratio < 1 else "no difference shown"
    comparison = compared(ratio / 1.01, ratio * 1.01, verdict)
    assert decided([comparison], 0.05, noise) is answer
