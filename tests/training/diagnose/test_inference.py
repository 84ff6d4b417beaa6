import pytest

from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.findings.diagnosis import Seconds
from perfkit.training.diagnose.causes.machine import inferred
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.rounds import AS_GIVEN
from tests.findings.made import completed

STEP = Seconds(median_s=0.01, low=0.009, high=0.011)
KNOWN = {"changed": {}, "because": [], "traces": 9, "seconds": 1.0, "made_anew": True}


def trials(waited=1.0, traced=(0.0, 0.0, 0.0), variant=AS_GIVEN):
    """Three trials of two seconds each, one after another, at work all the time."""
    return [
        completed(
            variant,
            number + 1,
            ((1.0, 0), (2.0, 10), (3.0, 10)),
            started_s=10.0 * number,
            notes={
                "steady": {
                    "steps": 100,
                    "tracing": {"traces": 5, "seconds": seconds},
                    "waiting": {"ran_s": 2.0, "waited_s": waited},
                }
            },
        )
        for number, seconds in enumerate(traced)
    ]


def measured(*all_trials, **columns):
    times = tuple(10.0 * number + 1.5 for number in range(3))
    samples = {"t": times, **{k: tuple(v) for k, v in columns.items()}}
    return Measurement(variants=(), trials=tuple(all_trials), samples=samples)


def causes(found, facts=None, name=""):
    return {c.cause: c for c in inferred((), STEP, found, facts or Facts(), name)}


@pytest.mark.parametrize(
    ("waited", "others", "own"),
    [
        (1.0, [0.02, 0.1, 0.0], [1.5, 1.4, 1.5]),
        # Threads that wait for each other alone.
        (9.0, [0.0] * 3, [2.0] * 3),
        # Others that leave cores free.
        (0.0, [1.0] * 3, [1.0] * 3),
    ],
)
def test_a_quiet_machine_shows_no_contention(waited, others, own):
    found = measured(*trials(waited), cpu_other=others, cpu_trial=own)
    assert causes(found) == {}


def test_what_others_take_while_threads_wait_is_inferred_to_cost_that_share():
    both = [*trials(), *trials(variant=CONTROL)]
    found = measured(*both, cpu_other=[1.0, 1.1, 0.9], cpu_trial=[1.0, 0.9, 1.1])
    cause = causes(found, name="burner")["contention"]
    # Half of the processor was theirs, and threads waited half as long as they ran.
    assert cause.speedup.estimate == pytest.approx(1 + 0.5 * 0.5, rel=0.02)
    assert (cause.grade, cause.kind) == ("inferred", "defect")
    assert "`burner` and others used 1.0 cores" in cause.evidence


def test_tracing_that_no_change_stops_is_inferred_from_its_seconds():
    found = measured(*trials(traced=(0.50, 0.52, 0.48)))
    cause = causes(found, Facts(retraced={"train_step": KNOWN}))["retracing"]
    # 5 ms of each step of 10 ms.
    assert cause.speedup.estimate == pytest.approx(2.0, rel=0.02)
    assert "Retracing `train_step` takes 50 % of a step." in cause.evidence
    keras = KNOWN | {"library": "the input of `predict`", "made_anew": True}
    cause = causes(found, Facts(retraced={"Dataset_map_take": keras}))["retracing"]
    assert "Retracing the input of `predict` takes 50 %" in cause.evidence
    assert cause.fix.startswith("Each call makes it again")
    # A single trial claims nothing.
    found = measured(*trials(traced=(0.5,)))
    assert causes(found, Facts(retraced={"train_step": KNOWN})) == {}


def test_waiting_for_memory_is_inferred_to_cost_its_share():
    found = measured(*trials(), memory_stalled=[0.5, 0.5, 0.5])
    assert causes(found)["memory-pressure"].speedup.estimate == pytest.approx(2.0)
    assert causes(measured(*trials(), memory_stalled=[0.0] * 3)) == {}


def busy_then_quiet(number, slow):
    """Two seconds beside others, then two without: half the steps, then all."""
    ticks = [(1.0 + tick / 10, 10) for tick in range(41)]
    ticks = [(at, slow if at <= 3.0 else 10) for at, _ in ticks]
    told = {"started_s": 10.0 * number, "notes": trials()[0].notes}
    return completed(AS_GIVEN, number + 1, [(ticks[0][0], 0), *ticks[1:]], **told)


def beside(slow):
    both = [busy_then_quiet(number, slow) for number in range(3)]
    times = [10.0 * n + 1.0 + 0.2 * k + 0.15 for n in range(3) for k in range(20)]
    others = [1.5 if k < 10 else 0.0 for _ in range(3) for k in range(20)]
    samples = {"t": tuple(times), "cpu_other": tuple(others)}
    samples["cpu_trial"] = tuple(1.0 for _ in times)
    return Measurement(variants=(), trials=tuple(both), samples=samples)


def test_quiet_and_busy_moments_of_a_trial_are_compared():
    cause = causes(beside(slow=5))["contention"]
    # 20 ticks of 5 and 20 of 10: three quarters of the quiet rate.
    assert cause.speedup.estimate == pytest.approx(4 / 3, rel=0.03)
    assert cause.grade == "measured here"
    # Others beside whom it is as fast cost nothing.
    assert causes(beside(slow=10)) == {}
