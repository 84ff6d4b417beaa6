from dataclasses import replace
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from perfkit.charts import timeline
from perfkit.engine.measurement import CONTROL
from perfkit.findings.record import Verdict
from perfkit.machine.record import Gpu
from perfkit.questions import gallery
from tests.findings.made import failed, finding, samples, trial

X = "\N{MULTIPLICATION SIGN}"


def elements(figure, tag):
    """The elements of a picture that have a name."""
    every = ElementTree.fromstring(figure.svg).iter()
    return [element for element in every if element.tag.endswith(f"}}{tag}")]


def texts(figure):
    """All that is written in a picture, with how far to the right it stands."""
    every = elements(figure, "text")
    return [("".join(e.itertext()), float(e.get("x", 0))) for e in every]


def words(figure):
    return [text for text, _ in texts(figure)]


NAMED = ("prefetched", "parallel", "naive", "your guess", "the fastest", "baseline")
LIMITED = {"naive": 1000, "fused": 1500, "one batch": 3000}
FUSED = Verdict(headline="fused is the fastest.", winner="fused")
VAGUE = replace(finding().timings[0], low=1.0)
HOLLOW = replace(finding(), timings=(VAGUE, *finding().timings[1:]))
CRASH = failed("xla", "crashed", "raised ValueError: no")
CACHED = failed("cached", "out-of-memory", "ran out of memory: 3 GB")
WRONG = {"extra": (CACHED, CRASH), "unavailable": {"on the GPU": "it has no GPU"}}
WHY = ("ran out of memory: 3 GB", "crashed: raised ValueError: no")
COUNT = len(samples(20)["t"])
ONE_GPU = samples(20) | {
    "gpu0_busy": (0.5,) * COUNT,
    "gpu0_throttle": tuple(0x41 if 20 < n < 40 else 0x1 for n in range(COUNT)),
}
RIVALS = samples(20) | {"cpu_other": (0.7,) * COUNT}
A4000 = replace(finding().machine, gpus=(Gpu(name="NVIDIA A4000"),))
SILENT = replace(trial("naive", 10.0), parts={})
FOUR = {"naive": 1000.0, "half": 500.0, "same": 1001.0, "double": 2000.0}
CLOCK = "seconds since the start of the run"


@pytest.mark.parametrize(
    ("kind", "made", "said", "unsaid"),
    [
        ("rates", finding(guess="parallel"), NAMED, CONTROL),
        ("rates", finding(), (f"1,900 · 1.9{X}", "1,000", "examples per second"), "?"),
        ("rates", finding(LIMITED, verdict=FUSED), ("limit", "dashed: a limit"), "?"),
        ("rates", HOLLOW, ("?", "hollow: its rate is not known yet"), "\0"),
        ("rates", finding(samples=RIVALS), ("other programs took 0.7 cores",), "\0"),
        ("rates", finding(noise_floor=None), (), "noise"),
        ("rates", finding(**WRONG), (*WHY, "was not run: it has no GPU"), "\0"),
        ("ratios", finding(FOUR), ("faster", "slower", "no difference shown"), "\0"),
        ("ratios", finding({"naive": 50.0, "fast": 9e4}), (f"1,000{X}",), "e+03"),
        # Of a guess the line or, where that is far off or is no ratio, the words.
        ("rates", finding(guess="2x"), ("dotted: your guess",), "\0"),
        ("rates", finding(guess="99x"), ("your guess: 99x",), "dotted"),
        ("timeline", finding(), (CONTROL, CLOCK, "other programs 0.4"), "\0"),
        ("timeline", finding(), ("speed, and never below 80 %. Heat",), "\0"),
        ("timeline", finding(samples=ONE_GPU, machine=A4000),
         ("GPU busy", "GPU 0 was slowed: too hot, slowed by the hardware"), "\0"),
        ("waits", finding({"naive": 1.0}), ("naive: waiting for input 40 %",), "\0"),
        ("waits", finding({"naive": 1.0}, rounds=0, extra=(SILENT,)),
         ("Nothing was measured that this chart shows.",), "\0"),
    ],
)  # fmt: skip
def test_each_chart_says_what_it_shows(kind, made, said, unsaid):
    figure = gallery.chart(made, kind)
    written = "\n".join([figure.alt, *words(figure)])
    assert [text for text in said if text not in written] == []
    assert not any(unsaid in text for text in words(figure))


def test_rates_and_ratios_stand_where_the_axis_says():
    at = dict(texts(figure := gallery.rates(finding())))
    pixels = (at["1,500"] - at["500"]) / 1000
    marks = [e for e in elements(figure, "use") if "stroke:#" in e.get("style", "")]
    where = {round(float(mark.get("x")), 1) for mark in marks}
    for timing in finding().timings:
        expected = at["500"] + (timing.rate - 500) * pixels
        assert min(abs(x - expected) for x in where) < 0.3
    # Rates far apart, and all ratios, are on a logarithmic axis.
    far = gallery.rates(finding({"naive": 100.0, "fast": 5000.0}))
    assert "examples per second (logarithmic)" in words(far)
    at = dict(texts(far))
    assert at["1,000"] - at["200"] == pytest.approx(at["500"] - at["100"], abs=0.3)
    made = finding({"naive": 100.0, "half": 50.0, "double": 200.0})
    at = dict(texts(gallery.ratios(made)))
    half, one, double = (at[text + X] for text in ("0.5", "1", "2"))
    assert one - half == pytest.approx(double - one, abs=0.3)
    ratio = made.comparisons[0].ratio
    assert any(text.startswith(f"{ratio:.2f}{X} (") for text in at)


def test_a_sample_without_a_reading_is_no_core_at_rest():
    load = {"t": (0.2, 0.4, 0.6), "cpu_trial": (None, 1.0, 1.0)}
    axes = Figure().subplots()
    timeline._draw_cores(axes, finding(samples=load | {"cpu_other": (None, 0.5, 0.5)}))
    drawn = [area.get_paths()[0].vertices[:, 0] for area in axes.collections]
    assert [min(x) for x in drawn] == [0.4, 0.4]
