import re

import pytest

from perfkit.machine.gpu import Clocks, Gpu
from perfkit.machines.compare import compare
from tests.findings.test_report import words_in_sight
from tests.machines import pairs

# What is made worse on purpose, the part that has to be named first, and what of the
# cause has to stand in the headline.
PAIRS = {
    "one_core": ("input", "cores granted: 1 on B, 2 on A"),
    "slow_disk": ("input", "data disk: 125 MB/s instead of 2.5 GB/s"),
    "onednn_off": ("compute", "TF_ENABLE_ONEDNN_OPTS: 0 on B, not set on A"),
    "busy": ("background load", "kept 1 of 2 cores busy on B (renderer)"),
    "little_memory": ("input", "memory granted: 2 GB on B, 25 GB on A"),
    "waiting_elements": ("input", "tf.data map: 982 instead of"),
}
TO_DO = r"On B, .+(can explain|is) (all|\d+ %) of the difference.* \(sure: .+ %\)\.$"


@pytest.mark.parametrize("name", PAIRS)
def test_the_cause_is_named_first(name):
    part, said = PAIRS[name]
    found = compare(pairs.passport(), getattr(pairs, name)())
    assert found.verdict == "slower"
    assert found.main.causes[0].name == part
    assert said in repr(found)
    assert len(words_in_sight(found.report)) <= 60
    # What to do stands first, and how sure it is directly behind how much that is.
    assert re.match(TO_DO, found.report.verdict.headline)
    # The other way round it is the same cause.
    turned = compare(getattr(pairs, name)(), pairs.passport())
    assert turned.verdict == "faster"
    assert turned.main.causes[0].name == part


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("seed", range(5))
def test_noise_does_not_hide_the_cause(name, seed, monkeypatch):
    usual = pairs.passport

    def noisy(*arguments, **more):
        return usual(*arguments, **{"seed": seed, "noise": 0.01} | more)

    monkeypatch.setattr(pairs, "passport", noisy)
    found = compare(noisy(seed=seed + 100), getattr(pairs, name)())
    assert found.main.causes[0].name == PAIRS[name][0]


def test_two_differences_that_fit_are_not_told_apart():
    slow = dict.fromkeys(pairs.KERNELS, 0.5)
    machine = pairs.changed(
        environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
        versions={"tensorflow": "2.16.1", "keras": "3.15.1", "numpy": "2.4.6"},
    )
    found = compare(pairs.passport(), pairs.passport(slow, machine))
    assert "it is not known which of these" in repr(found)
    assert "TF_ENABLE_ONEDNN_OPTS, tensorflow" in repr(found)
    # Where nothing differs it is said that nothing is known.
    slow = pairs.passport(extra={"small CNN from JPEG": 0.03})
    found = compare(pairs.passport(), slow)
    assert "why is not recorded" in repr(found)
    # Fewer cores, but what runs on all of them is as fast: something else it is.
    machine = pairs.changed(cores_granted=1.0)
    slow = pairs.changed(pairs.waiting_elements(), machine=machine)
    found = compare(pairs.passport(), slow)
    assert found.main.causes[0].name == "input"
    assert "cores granted" not in repr(found)


def sampled(passport, **columns):
    """The same with other samples: of each column a value, or one for each."""
    every = {
        name: value if isinstance(value, tuple) else (value,) * pairs.SAMPLES
        for name, value in columns.items()
    }
    return pairs.changed(passport, samples=passport.samples | every)


def test_slower_clocks_are_a_part_of_their_own():
    steady, fallen, count = 0.95, 0.6, pairs.SAMPLES
    slow = pairs.passport(dict.fromkeys(pairs.RATES, fallen / steady))
    core_speed = tuple(steady if at < count / 4 else fallen for at in range(count))
    found = compare(pairs.passport(), sampled(slow, core_speed=core_speed))
    assert found.main.causes[0].name == "throttling"
    assert "the cores of B ran at 63 % of their best" in repr(found)


def test_a_core_that_is_slower_while_the_other_works_is_not_throttled():
    """Two that share their arithmetic: every third sample finds the other at rest."""
    core_speed = tuple(1.0 if at % 3 == 0 else 0.55 for at in range(pairs.SAMPLES))
    shared = sampled(pairs.onednn_off(), core_speed=core_speed)
    main = compare(pairs.passport(), shared).main
    assert main.change("throttling").b == 0
    assert main.causes[0].name == "compute"


def test_a_load_costs_nothing_while_cores_stand_idle_or_are_free():
    slow = sampled(pairs.waiting_elements(), cpu_trial=0.3, cpu_other=0.2)
    found = compare(pairs.passport(), slow)
    assert found.main.causes[0].name == "input"
    assert found.main.change("background load").b == 0
    beside = pairs.passport({}, pairs.changed(cores=32))
    found = compare(pairs.passport(), sampled(beside, cpu_trial=1.9, cpu_other=4.0))
    assert all(work.change("background load").b == 0 for work in found.works)


@pytest.mark.parametrize("number", [0, 1])
def test_a_gpu_that_was_slowed_is_named_with_its_reason(number):
    def passport(rates, *reasons):
        clocks = Clocks(sm_max=2e9, busy_throttle=reasons)
        cards = (*[Gpu(name="T4")] * number, Gpu(name="T4", clocks=clocks))
        # The others are hidden, and TensorFlow calls this one the first.
        alone = {"CUDA_VISIBLE_DEVICES": str(number)}
        machine = pairs.changed(gpus=cards, environment=alone)
        return pairs.on_gpu(pairs.passport(rates, machine), hidden=True)

    rates = dict.fromkeys(("convolution, float32", "TensorFlow product, float32"), 0.5)
    hot = passport(rates, "power limit reached")
    worked = {f"gpu{number}_sm_clock": 1e9, f"gpu{number}_busy": 0.9}
    slow = sampled(hot, **worked)
    found = compare(passport({}), slow)
    assert found.main.causes[0].name == "throttling"
    assert "the GPU of B was slowed: power limit reached" in repr(found)
