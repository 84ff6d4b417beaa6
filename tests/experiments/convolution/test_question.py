import functools
import itertools
import math
import os
import pickle
import random
import re
import struct

import cloudpickle
import pytest

from perfkit import gallery
from perfkit.errors import BadParameterError
from perfkit.experiments.convolution import Convolution, convolution_with
from perfkit.experiments.convolution.numbers import at_equal_work, speeds, widened
from perfkit.experiments.convolution.ways import GROUPS, WAYS
from perfkit.measure.measurement import TWIN, Arm, Measurement
from perfkit.measure.statistics import Comparison
from perfkit.measure.steady import steady
from perfkit.measure.tick import REFUSED, Note
from perfkit.measure.trial import Trial
from perfkit.running import run

LIMITS = ["arithmetic limit", "memory limit"]


# How much faster than usual the rounds are, in standard deviations; zero on average.
ROUNDS = (-1.2, 1.2, -0.4, 0.4)


def trial(variant, rate, round=1, *, noise=0.01, first_s=0.05):
    """Forty ticks of 50 ms after a first call."""
    draw = random.Random(f"{variant} {noise}")
    usual = rate * math.exp(noise * draw.sample(ROUNDS, 4)[round % 4])
    lengths = [0.05 * draw.uniform(0.98, 1.02) for _ in range(40)]
    stamps = list(itertools.accumulate([first_s, *lengths], initial=0.3))
    done = [int(usual * (at - stamps[1])) for at in stamps[1:]]
    counts = [0, 1, *(after - before for before, after in itertools.pairwise(done))]
    return Trial(
        variant=variant,
        round=round,
        outcome="completed",
        setup_s=0.3,
        ticks=tuple(zip(stamps, counts, strict=True)),
    )


def measured(rates, *, firsts=None, notes=None, rounds=4, refused=None, **more):
    """A run in which each variant has the rate that is asked for."""
    names = dict(rates) | {TWIN: next(iter(rates.values()))}
    firsts = firsts or {}
    trials = [
        trial(name, rate, number, first_s=firsts.get(name, 0.05), **more)
        for number in range(1, rounds + 1)
        for name, rate in names.items()
    ]
    base = next(iter(rates))
    arms = [
        Arm(name, list, against="" if name.endswith("limit") else base)
        for name in rates
    ]
    arms += [Arm(name, list, unavailable=why) for name, why in (refused or {}).items()]
    return Measurement(
        arms=tuple(arms), trials=tuple(trials), notes=notes or {}, baseline=base
    )


def verdict(rates, *, asked=None, **more):
    return (asked or Convolution()).verdict(measured(rates, **more))


def because(rates, **more):
    return " ".join(verdict(rates, **more).because)


# What is asked.


def test_the_default_run_has_the_essential_ways_and_the_limits():
    arms = Convolution().variants()
    limits = [*LIMITS, "bfloat16 limit"]
    assert list(arms) == [*GROUPS["essential"], *limits]
    assert all(arm.changes for arm in arms.values())
    assert [arm.against for arm in arms.values()][-3:] == ["", "", ""]


def test_a_way_stands_against_the_one_it_changes_if_that_is_in_the_run():
    both = Convolution(arms="numpy").variants()
    assert both["numpy im2col"].against == "numpy taps"
    assert Convolution(arms="numpy im2col").variants()["numpy im2col"].against == (
        "conv2d"
    )


@pytest.mark.parametrize("asked", [Convolution(arms="all"), Convolution()])
def test_arms_travel_to_their_trials(asked):
    for arm in asked.variants().values():
        assert pickle.loads(pickle.dumps(arm)).name == arm.name


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"side": 4, "kernel": 5}, "kernel is 5 and side is 4"),
        ({"side": 256, "batch": 64}, "would take 1.07 GB; choose a smaller batch"),
        ({"arms": "fastest"}, "arms is 'fastest'; choose from"),
        ({"channels": 0}, "channels is 0"),
    ],
)
def test_what_cannot_be_convolved_is_refused_before_anything_runs(wrong, said):
    with pytest.raises(BadParameterError, match=said):
        Convolution(**wrong)


def test_the_sizes_in_the_question_are_accepted():
    small = Convolution(batch=1, side=28, channels=1, filters=1)
    large = Convolution(batch=32, side=112, channels=64, filters=64)
    assert small.problem.out == 28
    assert large.problem.flops == 2 * 112 * 112 * 64 * 64 * 9


# A function of one's own.


def mine(images, kernel, stride, padding):
    side = kernel.shape[0]
    rows = images.shape[1] - side + 1
    return sum(
        images[:, y : y + rows, x : x + rows] @ kernel[y, x]
        for y in range(side)
        for x in range(side)
    )


SMALL = {"batch": 2, "side": 10, "channels": 4, "filters": 4, "padding": "valid"}


def refused(asked):
    notes = {note.name: note.value for note in asked.prepare() if type(note) is Note}
    return notes[REFUSED]


def test_a_function_becomes_an_arm_beside_the_others():
    asked = convolution_with(mine, arms="numpy taps", **SMALL)
    assert list(asked.variants()) == ["conv2d", "yours", "numpy taps", *LIMITS]
    assert asked.name == "convolution"
    assert asked.question == Convolution().question
    assert set(asked.parameters) == set(Convolution().parameters)


def test_it_travels_to_its_trials_and_survives_a_change_of_parameters():
    import dataclasses

    asked = dataclasses.replace(convolution_with(mine, **SMALL), side=12)
    arm = cloudpickle.loads(cloudpickle.dumps(asked.variants()["yours"]))
    ticks = list(itertools.islice(arm.work(), 2))
    assert ticks[1] == 2


def test_a_function_that_is_right_is_timed_and_one_to_be_written_is_not():
    assert refused(convolution_with(mine, arms="numpy taps", **SMALL)) == {}
    empty = convolution_with(lambda *given: None, arms="numpy taps", **SMALL)
    assert "still to be written" in refused(empty)["yours"]


def test_what_is_no_function_is_refused():
    with pytest.raises(BadParameterError, match="7 is no function"):
        convolution_with(7)


# Wrong answers.


def test_every_mistake_is_refused_before_anything_is_timed():
    asked = Convolution(**SMALL | {"padding": "same"}, arms="mistakes")
    assert set(refused(asked)) == set(GROUPS["mistakes"])
    assert len(refused(asked)) == 5


def test_what_is_refused_is_in_the_verdict():
    why = {"as circulated": "its answer is wrong: nothing but zeros"}
    text = because({"conv2d": 100}, refused=why)
    assert '"as circulated" is not timed: its answer is wrong: nothing but' in text


# What a run means.


def test_the_winner_is_named_with_its_gain_and_its_speed():
    found = verdict({"conv2d": 100, "numpy taps": 200})
    assert found.winner == "numpy taps"
    assert found.headline.startswith(
        '"numpy taps" computes this convolution fastest here: 200 images/s ('
    )
    assert "GFLOP/s, 2.0" in found.headline
    assert found.headline.endswith(", 4 rounds).")
    assert found.next.startswith('Use "numpy taps": NumPy: a loop over the kernel')


def test_the_baseline_may_be_the_fastest_or_beat_nobody():
    found = verdict({"conv2d": 2000, "numpy taps": 1000})
    assert found.headline.startswith('"conv2d" is the fastest way here: 2,000 images/s')
    tied = verdict({"conv2d": 100.4, "numpy taps": 100})
    assert tied.headline.startswith("No way is shown to be faster than")
    assert re.search(r"which reaches 100 images/s \(9\S+ to 10\S+\), ", tied.headline)
    assert (found.winner, tied.winner) == ("", "")


def test_a_baseline_that_may_be_beaten_by_far_is_not_said_to_be_the_best():
    found = verdict({"conv2d": 100, "numpy taps": 98}, noise=0.3, rounds=2)
    assert found.headline.startswith("Too noisy to say whether any way is faster")
    assert found.next.startswith("End what else runs")


def test_what_shorter_numbers_gain_is_not_denied():
    found = verdict({"conv2d": 100.4, "numpy taps": 100, "conv2d bfloat16": 300})
    assert found.headline.startswith(
        'No way with all digits of float32 is shown to be faster than "conv2d"'
    )


def test_noise_is_said_as_such():
    found = verdict({"conv2d": 100, "numpy taps": 115}, noise=0.5, rounds=3)
    assert found.winner == ""
    assert found.headline.startswith("Too noisy to say whether any way is faster")
    assert found.next.startswith("End what else runs")


@pytest.mark.parametrize("loud", ["conv2d bfloat16", "depthwise", *LIMITS])
def test_what_gives_another_answer_never_wins(loud):
    found = verdict({"conv2d": 100, "numpy taps": 200, loud: 900})
    assert found.winner == "numpy taps"


def test_shorter_numbers_are_told_beside_the_contest():
    text = because({"conv2d": 100, "conv2d bfloat16": 300})
    assert '"conv2d bfloat16" runs at 3.0' in text
    assert "right to 2 or 3 digits only" in text


def test_a_layer_with_less_arithmetic_is_told_for_what_it_is():
    text = because({"conv2d": 100, "depthwise": 300})
    assert '"depthwise" is another layer with 1.6 % of the arithmetic' in text


def test_shares_of_the_limits_are_ratios_of_the_same_run():
    problem = Convolution().problem
    rates = {"conv2d": 90, "arithmetic limit": 100, "memory limit": 900}
    (found,) = speeds(measured(rates), problem)
    assert found.compute == pytest.approx(0.9, rel=0.02)
    assert found.memory == pytest.approx(0.1, rel=0.02)
    assert found.gflops == pytest.approx(90 * problem.flops / 1e9, rel=0.02)
    assert found.bound == "compute"


def test_a_share_has_its_interval_and_says_of_which_limit_it_is():
    rates = {"conv2d": 90, "conv2d bfloat16": 180, "arithmetic limit": 100}
    text = because({**rates, "memory limit": 9000, "bfloat16 limit": 200})
    assert re.search(r'"conv2d" 90 % \(8\d % to 9\d %\)[,.]', text)
    assert re.search(
        r'"conv2d bfloat16" 90 % \(8\d % to 9\d %\) of that in bfloat16', text
    )
    assert "More than 100 %" not in text
    above = because({"conv2d": 150, "arithmetic limit": 100, "memory limit": 9000})
    assert "More than 100 %: a limit is the speed of one large piece" in above
    assert "Winograd and FFT need fewer operations than are counted" in above


def test_one_round_that_leaves_it_open_says_nothing_of_what_holds_a_way_up():
    rates = {"conv2d": 97, "arithmetic limit": 100, "memory limit": 103}
    (found,) = speeds(measured(rates, rounds=1), Convolution().problem)
    assert (found.compute, found.memory) == (None, None)
    assert "bound" not in because(rates, rounds=1)


def test_a_lighter_layer_is_held_against_its_own_work():
    problem = Convolution().problem
    rates = {"conv2d": 90, "depthwise": 400, "arithmetic limit": 100}
    found = {s.variant: s for s in speeds(measured(rates), problem)}
    assert found["depthwise"].compute == pytest.approx(4 / 64, rel=0.02)


@pytest.mark.parametrize(
    ("rates", "overhead", "said"),
    [
        ({"arithmetic limit": 110, "memory limit": 900}, 0.01, "Compute-bound, "),
        ({"arithmetic limit": 900, "memory limit": 110}, 0.01, "Memory-bound, "),
        ({"arithmetic limit": 900, "memory limit": 900}, 0.7, "Overhead-bound, "),
        ({"arithmetic limit": 900, "memory limit": 900}, 0.01, "Held up by none of"),
        # Faster than the memory: its numbers stay in the caches.
        ({"arithmetic limit": 900, "memory limit": 50}, 0.01, "Held up by none of"),
    ],
)
def test_what_holds_a_way_up_is_said_from_what_was_measured(rates, overhead, said):
    notes = {"overhead": {"conv2d": overhead}}
    text = because({"conv2d": 100, **rates}, notes=notes)
    assert f"{said.rstrip(', ')}" in text
    (sentence,) = (part for part in text.split(". ") if said.rstrip(", ") in part)
    assert '"conv2d"' in sentence


def test_the_side_of_the_ridge_is_said():
    compute = because({"conv2d": 100, "arithmetic limit": 110, "memory limit": 900})
    memory = because({"conv2d": 100, "arithmetic limit": 900, "memory limit": 110})
    assert "so of the two it is arithmetic." in compute
    assert "so of the two it is memory." in memory


def test_a_dear_first_call_pays_back_or_never_does():
    rates = {"conv2d": 100, "conv2d under XLA": 200}
    text = because(rates, firsts={"conv2d under XLA": 1.05, "conv2d": 0.05})
    # A call of 8 images takes 80 ms and 40 ms: a second is 25 calls of 40 ms.
    assert "it pays back after 2" in text
    slow = because(
        {"conv2d": 100, "conv2d under XLA": 50}, firsts={"conv2d under XLA": 5.0}
    )
    assert '"conv2d under XLA" takes 5 s for its first call: that is not' in slow


def test_nothing_timed_is_no_verdict():
    failed = Trial(variant="conv2d", round=1, outcome="crashed", message="raised X")
    found = Convolution().verdict(
        Measurement(arms=(Arm("conv2d", list),), trials=(failed,), baseline="conv2d")
    )
    assert found.headline.startswith("No way of computing this convolution could be")
    assert found.because == ('"conv2d" raised X.',)


# Channel counts.


def counts(**more):
    return Convolution(compare="channels", **more)


def test_channel_counts_lie_around_the_ones_that_are_asked_for():
    asked = counts(channels=64, filters=32)
    names = list(asked.variants())
    assert asked.baseline == names[0] == "64 in, 32 out"
    assert len(names) == 16
    assert {"63 in, 31 out", "65 in, 33 out", "72 in, 40 out"} <= set(names)


def test_the_baseline_follows_the_counts():
    import dataclasses

    changed = dataclasses.replace(counts(), channels=16)
    assert changed.baseline == "16 in, 64 out"
    assert dataclasses.replace(changed, compare="ways").baseline == "conv2d"


def test_no_count_is_below_one():
    names = counts(channels=1, filters=1).variants()
    assert next(iter(names)) == "1 in, 1 out"
    assert not any(name.startswith("0") or " 0 " in name for name in names)


def test_counts_are_compared_at_equal_work():
    asked = counts()
    # The same images per second with more work each: more arithmetic per second.
    rates = {"64 in, 64 out": 100, "72 in, 72 out": 100, "65 in, 65 out": 60}
    found = verdict(rates, asked=asked)
    assert found.headline.startswith("Channel counts matter here: 65 in, 65 out runs")
    assert "at 0.62" in found.headline
    assert "72 in, 72 out runs at 1.27" in " ".join(found.because)
    assert found.next.startswith("Try 72 in, 72 out")


def test_counts_that_show_no_difference_are_not_told_apart():
    rates = {"64 in, 64 out": 100, "65 in, 65 out": 100 * 64 * 64 / 65 / 65}
    found = verdict(rates, asked=counts())
    assert found.headline.startswith("No channel count is shown to run at another")
    assert found.next.startswith("Choose channel counts for what they learn")
    noisy = verdict(rates, asked=counts(), noise=0.3, rounds=2)
    assert noisy.headline.startswith("Too noisy to say whether any channel count")
    assert noisy.next.startswith("End what else runs")


def test_one_of_many_counts_that_differs_by_chance_is_not_claimed():
    seen = Comparison(
        variant="a",
        baseline="b",
        ratio=0.9,
        low=0.83,
        high=0.98,
        verdict="slower",
        rounds=4,
    )
    assert at_equal_work(widened(seen, 1), 1.0, 1.0).verdict == "slower"
    assert at_equal_work(widened(seen, 15), 1.0, 1.0).verdict == "too noisy to say"
    # Student's t for 3 degrees of freedom, at 2.5 % and at a fifteenth of that.
    reach = math.log(widened(seen, 15).low / 0.9) / math.log(0.83 / 0.9)
    assert reach == pytest.approx(8.575 / 3.182, rel=0.001)


@pytest.mark.parametrize(
    ("factor", "floor", "said"),
    [
        (1.0, 1.0, "slower"),
        (1.25, 1.0, "no difference shown"),
        (2.0, 1.0, "faster"),
        (2.0, 1.7, "too noisy to say"),
    ],
)
def test_a_ratio_at_equal_work_is_judged_anew(factor, floor, said):
    seen = Comparison(
        variant="a",
        baseline="b",
        ratio=0.8,
        low=0.76,
        high=0.84,
        verdict="slower",
        rounds=3,
    )
    assert at_equal_work(seen, factor, floor).verdict == said


# Whole runs.


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """A short run with all mistakes, and a function that keeps its own time."""
    stamps = tmp_path_factory.mktemp("stamps")
    asked = convolution_with(
        functools.partial(stamped, str(stamps)),
        batch=4,
        side=34,
        channels=16,
        filters=16,
        padding="valid",
        arms="mistakes,python loops",
    )
    return run(asked, budget=12, folder=tmp_path_factory.mktemp("found")), stamps


_STAMP = struct.Struct("d")


def stamped(folder, images, kernel, stride, padding):
    """Convolve, and write down when that began."""
    import time

    with open(os.path.join(folder, str(os.getpid())), "ab", buffering=0) as file:
        file.write(_STAMP.pack(time.perf_counter()))
    return mine(images, kernel, stride, padding)


def test_a_run_shows_what_is_wrong_and_times_the_rest(small_run):
    found, _ = small_run
    ran = {trial.variant for trial in found.trials if trial.outcome == "completed"}
    assert ran == {"conv2d", "yours", *LIMITS, TWIN}
    # A busy machine may leave no time for the end of the last round.
    assert {trial.outcome for trial in found.trials} <= {"completed", "stopped"}
    assert set(found.unavailable) == {*GROUPS["mistakes"], "python loops"}
    assert found.unavailable["python loops"].startswith("one call takes about")
    # Which of the two is faster, a busy machine may leave open.
    assert "conv2d" in found.verdict.headline
    assert "GFLOP/s" in " ".join(found.verdict.because)
    assert set(found.notes["overhead"]) == {"conv2d", "yours"}


def test_a_run_can_be_drawn_under_its_roofs(small_run):
    found, _ = small_run
    assert "roofline" in gallery.kinds(found)
    assert "channels" not in gallery.kinds(found)
    alt = gallery.chart(found, "roofline").alt
    assert all(name in alt for name in ("conv2d", "yours", "arithmetic limit"))


def test_the_steady_rate_is_that_of_a_loop_with_a_clock_of_its_own(small_run):
    found, folder = small_run
    # The process that prepares is the first, then one trial a round.
    logs = sorted(map(read_stamps, folder.iterdir()))[1:]
    trials = [trial for trial in found.trials if trial.variant == "yours"]
    assert len(logs) == len(trials)
    timed = [pair for pair in zip(logs, trials, strict=True) if steady(pair[1])]
    assert timed
    for begins, one in timed:
        # The first call begins when the trial is ready; that ties the clocks.
        shift = begins[0] - one.ticks[0][0]
        calls = spent = 0
        for low, high in stretches(one):
            inside = [at for at in begins if low <= at - shift <= high]
            calls += max(0, len(inside) - 1)
            spent += inside[-1] - inside[0] if inside else 0
        assert steady(one).rate == pytest.approx(4 * calls / spent, rel=0.05)


def stretches(one):
    """From when to when a trial worked without a break, once it was warm."""
    # Where memory is short trials run in one go, without turns.
    warm = one.turns[0] if one.turns else one.ticks[0][0] + steady(one).warm_up_s
    found = []
    for (began, _), (end, examples) in itertools.pairwise(one.ticks):
        if not examples or began < warm - 1e-6:
            continue
        if found and found[-1][1] == began:
            found[-1] = (found[-1][0], end)
        else:
            found.append((began, end))
    return found


def read_stamps(path):
    return [at for (at,) in _STAMP.iter_unpack(path.read_bytes())]


@pytest.mark.slow
def test_conv2d_is_as_fast_as_the_same_call_in_a_loop_of_ones_own(tmp_path):
    def same(images, kernel, stride, padding):
        import tensorflow as tf

        known = vars(tf).setdefault("_placed", {})
        if id(images) not in known:
            # The images too: the next ones could have the address of freed ones.
            known[id(images)] = images, tf.identity(images), tf.identity(kernel)
        return tf.nn.conv2d(*known[id(images)][1:], stride, padding.upper())

    found = run(convolution_with(same, arms="conv2d"), budget=60, folder=tmp_path)
    assert found.unavailable == {}
    (compared,) = (c for c in found.comparisons if c.variant == "yours")
    assert compared.ratio == pytest.approx(1, rel=0.05)


def test_every_way_is_known_to_the_experiment():
    assert set(Convolution(arms="all").variants()) >= set(WAYS)
