import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from perfkit import gallery, units
from perfkit.charts import rates, timeline
from perfkit.charts.timeline import before_steady, steps
from perfkit.findings.record import Verdict
from perfkit.findings.standing import guess
from perfkit.machine.record import Gpu
from perfkit.measure.measurement import CONTROL
from perfkit.measure.trial import LOSSES, Trial
from tests.findings.made import failed, finding, samples, trial

X = "\N{MULTIPLICATION SIGN}"
UNDECIDED = Verdict(headline="No difference shown.")


def texts(figure):
    """All that is written in a picture, with where it stands."""
    root = ElementTree.fromstring(figure.svg)
    return [
        ("".join(e.itertext()), float(e.get("x", 0)), float(e.get("y", 0)))
        for e in root.iter()
        if e.tag.endswith("}text")
    ]


def words(figure):
    return [text for text, *_ in texts(figure)]


def marks(figure, colour):
    """Where the markers of a colour stand."""
    root = ElementTree.fromstring(figure.svg)
    return [
        (float(e.get("x")), float(e.get("y")))
        for e in root.iter()
        if e.tag.endswith("}use") and colour in e.get("style", "")
    ]


def test_rates_stand_where_the_axis_says():
    figure = gallery.rates(finding())
    at = {text: x for text, x, _ in texts(figure)}
    pixels = (at["1,500"] - at["500"]) / 1000
    rates = {t.variant: t.rate for t in finding().timings}
    where = {round(x, 1) for x, _ in marks(figure, "stroke:#")}
    for rate in rates.values():
        expected = at["500"] + (rate - 500) * pixels
        assert min(abs(x - expected) for x in where) < 0.3


def test_rates_name_every_variant_with_its_number_and_place():
    said = words(gallery.rates(finding(guess="parallel")))
    assert {"prefetched", "parallel", "naive", "your guess"} <= set(said)
    assert {"the fastest", "baseline", "examples per second"} <= set(said)
    assert {f"1,900 · 1.9{X}", "1,000"} <= set(said)


def test_ties_and_limits_are_told_in_words_and_by_shape():
    rates = {"naive": 1000, "parallel": 1500, "prefetched": 1500.1}
    figure = gallery.rates(finding(rates, verdict=UNDECIDED))
    assert words(figure).count("among the fastest") == 2
    assert "the fastest" not in words(figure)
    assert "fastest, or not shown to be slower" in " ".join(words(figure))
    rates = {"naive": 1000, "fused": 1500, "one batch": 3000}
    verdict = Verdict(headline="fused is the fastest.", winner="fused")
    said = words(gallery.rates(finding(rates, verdict=verdict)))
    assert [text for text in said if text in rates] == ["fused", "naive", "one batch"]
    assert "limit" in said
    assert "dashed: a limit" in " ".join(said)


def test_what_is_hardly_known_is_hollow_and_has_no_number():
    made = finding()
    vague = replace(made.timings[0], low=1.0)
    said = words(gallery.rates(replace(made, timings=(vague, *made.timings[1:]))))
    assert "?" in said
    assert "hollow: its rate is not known yet" in " ".join(said)


def test_what_others_took_of_the_machine_is_said_below():
    load = "other programs took 0.7 cores, 15 to 29 s"
    assert load in words(gallery.rates(finding()))
    assert "the machine" not in words(gallery.rates(replace(finding(), samples={})))


def test_the_noise_floor_is_a_band_with_its_size_and_the_control_no_variant():
    assert "± 4.0 %" in " ".join(words(gallery.rates(finding(noise_floor=1.04))))
    without = gallery.rates(finding(noise_floor=None))
    assert "noise floor" not in " ".join(words(without))
    assert CONTROL not in words(gallery.rates(finding()))


def test_rates_far_apart_are_on_a_logarithmic_axis():
    far = finding({"naive": 100.0, "fast": 5000.0})
    assert "examples per second (logarithmic)" in words(gallery.rates(far))
    at = {text: x for text, x, _ in texts(gallery.rates(far))}
    assert at["1,000"] - at["200"] == pytest.approx(at["500"] - at["100"], abs=0.3)


def test_what_went_wrong_is_in_the_chart_even_where_nothing_could_be_timed():
    cached = failed("cached", "out-of-memory", "ran out of memory: 3 GB")
    xla = failed("xla", "crashed", "raised ValueError: no")
    gone = {"on the GPU": "this machine has no GPU"}
    said = words(gallery.rates(finding(extra=(cached, xla), unavailable=gone)))
    why = {"ran out of memory: 3 GB", "crashed: raised ValueError: no"}
    why |= {"was not run: this machine has no GPU"}
    assert {"cached", "xla", "on the GPU", *why} <= set(said)
    said = words(gallery.rates(finding({}, rounds=0, extra=(xla,))))
    assert {"xla", "crashed: raised ValueError: no"} <= set(said)
    assert "examples per second" not in said


def test_ratios_stand_where_the_axis_says_and_say_their_verdict_in_words():
    made = finding({"naive": 100.0, "half": 50.0, "double": 200.0})
    at = {text: x for text, x, _ in texts(gallery.ratios(made))}
    half, one, double = (at[text + X] for text in ("0.5", "1", "2"))
    assert one - half == pytest.approx(double - one, abs=0.3)
    made = finding({"naive": 1000.0, "half": 500.0, "same": 1001.0, "double": 2000.0})
    said = words(gallery.ratios(made))
    assert {"faster", "slower", "no difference shown"} <= set(said)
    ratio = made.comparisons[0]
    assert any(text.startswith(f"{ratio.ratio:.2f}{X} (") for text in said)
    assert "rate, as a multiple of naive (logarithmic)" in said


def test_steps_hold_every_example_after_the_first_call():
    made = trial("naive", 1000.0, started=5.0)
    for longest in (0.0, 0.2, 100.0):
        found = list(steps(made, longest))
        done = sum((end - start) * rate for start, end, rate in found)
        assert done == pytest.approx(sum(n for _, n in made.ticks[2:]))
        assert found[0][0] == pytest.approx(5.0 + made.ticks[1][0])
        assert found[-1][1] == pytest.approx(5.0 + made.ticks[-1][0])
    assert len(list(steps(made, 100.0))) == 1


def ticked(ticks):
    return Trial(variant="x", round=1, outcome="completed", ticks=ticks)


def test_no_step_spans_a_pause_and_a_slow_stretch_has_a_lower_rate():
    until = ((1.0, 0), (2.0, 10), (3.0, 10), (4.0, 10))
    ticks = (*until, (9.0, 0), (10.0, 10), (11.0, 30))
    assert list(steps(ticked(ticks), 100.0)) == [(2.0, 4.0, 10.0), (9.0, 11.0, 20.0)]
    slow = [(0.1 * n, 10 if n < 20 else 7) for n in range(1, 40)]
    ticks = ((0.0, 0), *slow)
    rates = [rate for *_, rate in steps(ticked(ticks), 0.0)]
    assert rates[0] == pytest.approx(100)
    assert rates[-1] == pytest.approx(70)


@pytest.mark.parametrize(
    "ticks", [(), ((1.0, 0),), ((1.0, 0), (2.0, 5)), ((1.0, 0),) * 3]
)
def test_too_few_ticks_make_no_step(ticks):
    assert list(steps(ticked(ticks), 0.0)) == []


def test_a_wait_for_the_first_turn_is_no_set_up():
    alone = ticked(((3.0, 0), (4.0, 10), (5.0, 10)))
    assert list(before_steady(alone)) == [(0.0, 3.0), (3.0, 4.0)]
    assert list(before_steady(replace(alone, setup_s=0.5))) == [(2.5, 3.0), (3.0, 4.0)]


def test_the_timeline_has_a_lane_for_the_control_and_the_load_below_if_any():
    figure = gallery.timeline(finding())
    said = words(figure)
    assert CONTROL in said
    # Told of what was timed; the control is no variant with a rate of its own.
    assert said.count("1,000 examples/s") == 1
    assert "seconds since the start of the run" in said
    assert any(text.startswith("other programs 0.4") for text in said)
    assert "of its best speed mostly, and at 80 % at the least: two" in figure.alt
    said = words(gallery.timeline(finding(samples={})))
    assert "cores busy" not in said
    assert "seconds since the start of the run" in said


def test_the_use_and_the_throttling_of_a_gpu_are_shown_and_many_are_one_line():
    load = samples(20)
    count = len(load["t"])
    load |= {
        "gpu0_busy": (0.5,) * count,
        "gpu0_throttle": tuple(0x41 if 20 < n < 40 else 0x1 for n in range(count)),
    }
    machine = replace(finding().machine, gpus=(Gpu(name="NVIDIA A4000"),))
    figure = gallery.timeline(finding(samples=load, machine=machine))
    assert "GPU 0 busy (dashed)" in words(figure)
    assert "▼ GPU slowed" in words(figure)
    assert "GPU 0 was slowed: too hot, slowed by the hardware" in figure.alt
    load = {"t": (0.0, 1.0)} | {f"gpu{n}_busy": (n / 8, None) for n in range(8)}
    said = words(gallery.timeline(finding(samples=load)))
    assert "8 GPUs busy, mean (dashed)" in said


def test_the_share_of_waiting_is_that_of_the_ticks_or_said_to_be_missing():
    made = finding({"naive": 1000.0})
    assert "naive: waiting for input 40 %" in gallery.waits(made).alt
    parts = {"input": (9.0,) + (0.0,) * 39}
    first_only = replace(made.trials[0], variant="late", parts=parts)
    # The first tick is the first call: what it waited for is no steady waiting.
    timings = (replace(made.timings[0], variant="late"),)
    late = replace(made, timings=timings, trials=(first_only,))
    assert "late: waiting for input 0 %" in gallery.waits(late).alt
    silent = replace(trial("naive", 10.0), parts={})
    bare = finding({"naive": 1.0}, rounds=0, extra=(silent,))
    assert "No variant reported where its time goes." in gallery.waits(bare).alt


LISTED = {"name": "list in memory", "share": 0.02, "ns_per_element": 900}
MAPPED = {"name": "map, parallel", "share": 0.98, "ns_per_element": 2_000_000}
CHOSEN = {"parallelism": 4, "tuned": True}
PLAN = {"stages": [LISTED | {"buffer": None}, MAPPED | CHOSEN]}


def test_a_plan_shows_each_stage_with_its_work_and_settings():
    made = finding(extra=(trial("parallel", 1300.0, 4, notes={"plan": PLAN}),))
    figure = gallery.plan(made)
    said = words(figure)
    assert "parallel: what TensorFlow runs" in said
    assert {"2.0 %, 900 ns each", "98 %, 2 ms each", "4 at a time"} <= set(said)
    assert "chosen by AUTOTUNE" in figure.alt


@pytest.mark.parametrize(
    ("text", "variant", "ratio"),
    [
        *((text, "parallel", None) for text in ("parallel", "Parallel ")),
        *(("3x", "", 3.0), ("about 1,5 times faster", "", 1.5), (f"2.25{X}", "", 2.25)),
        *(("1,900x", "", 1900.0), ("prefetched, 1.9x", "", 1.9)),
        *((text, "", None) for text in ("0x", "42", "3 xylophones", "", "1/2x")),
        *((text, "", 0.5) for text in ("2x slower", "2x as slow", "2x the time")),
    ],
)
def test_a_guess_is_a_variant_or_a_ratio_or_words(text, variant, ratio):
    found = guess(finding(guess=text))
    assert (found.variant, found.ratio) == (variant, ratio)


def test_a_guessed_ratio_is_a_line_and_words_are_in_the_caption():
    assert "dotted: your guess" in " ".join(words(gallery.rates(finding(guess="2x"))))
    said = " ".join(words(gallery.rates(finding(guess="none of them"))))
    assert "your guess: none of them" in said


@pytest.mark.parametrize("kind", ["rates", "ratios"])
def test_a_guess_that_is_too_far_off_for_the_axis_is_in_the_caption_alone(kind):
    near, far = (
        " ".join(words(gallery.chart(finding(guess=text), kind)))
        for text in ("0.5x", "99x")
    )
    assert "dotted" in near
    assert "dotted" not in far
    assert "your guess: 99x" in far


def test_a_ratio_that_was_guessed_below_all_others_stands_on_the_axis():
    lower, usual = (words(gallery.ratios(finding(guess=g))) for g in ("0.5x", ""))
    assert f"0.6{X}" in lower
    assert f"0.6{X}" not in usual


@pytest.mark.parametrize(
    "draw",
    [
        timeline._draw_cores,
        lambda axes, made: rates._draw_machine(axes, made, ""),
    ],
)
def test_a_sample_without_a_reading_is_no_core_at_rest(draw):
    load = {"t": (0.2, 0.4, 0.6), "cpu_trial": (None, 1.0, 1.0)}
    axes = Figure().subplots()
    draw(axes, finding(samples=load | {"cpu_other": (None, 0.5, 0.5)}))
    drawn = [area.get_paths()[0].vertices[:, 0] for area in axes.collections]
    assert [min(x) for x in drawn] == [0.4, 0.4]


def test_a_mean_goes_as_far_as_all_trials_and_a_loss_that_is_no_number_is_left_out():
    losses = {
        4: ("naive", [2.0, 1.0, 0.5, 0.25]),
        5: ("naive", [4.0, 3.0, math.nan, math.nan]),
        6: ("parallel", [math.nan] * 4),
    }
    extra = [
        trial(one, 1000.0, number, notes={LOSSES: list(zip(AFTER, told, strict=True))})
        for number, (one, told) in losses.items()
    ]
    made = finding(extra=tuple(extra))
    (rate,) = (timing.rate for timing in made.timings if timing.variant == "naive")
    figure = gallery.chart(made, "learning_time")
    assert f"naive: 2 after {units.seconds(200 / rate)}" in figure.alt
    assert "naive" in words(figure)
    assert "parallel" not in words(figure)


AFTER = (100, 200, 300, 400)


def test_no_more_cores_are_busy_than_there_are():
    made = finding()
    count = len(made.samples["t"])
    many = made.samples | {"cpu_trial": (3.9,) * count, "cpu_other": (1.5,) * count}
    two = replace(made.machine, cores=2, cores_granted=2.0)
    figure = gallery.chart(replace(made, machine=two, samples=many), "timeline")
    assert "kept 2 cores" in figure.alt
    assert not {"3", "4", "5"} & set(words(figure)[-12:])
