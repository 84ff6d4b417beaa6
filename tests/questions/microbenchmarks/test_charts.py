import re

import pytest

from perfkit.questions import gallery
from perfkit.questions.microbenchmarks import charts as own_charts
from tests.charts.test_kinds import texts, words
from tests.findings import made, parts


def bars(figure):
    """Left and right end of each bar."""
    bar = r'<path d="M([\d.]+) [\d.]+L([\d.]+) [^"]*z"[^>]*clip'
    found = re.findall(bar, figure.svg)
    return [(float(left), float(right)) for left, right in found]


def test_every_microbenchmark_is_drawn_first_with_its_rate_unit_and_limit():
    kinds = list(gallery.kinds(parts.finding()))
    assert kinds[0] == "microbenchmarks"
    # Nothing is on a common axis.
    assert not {"rates", "ratios"} & set(kinds)
    figure = own_charts.each_part(parts.finding())
    shown = words(figure)
    for name in (*parts.RATES, "interpreter", "arrays", "memory", "TensorFlow"):
        assert name in shown
    for rate in (r"\d+ GFLOP/s ± [\d.]+ %", r"[\d,]+ calls/s ± [\d.]+ %"):
        assert any(re.fullmatch(rate, text) for text in shown)
    assert "what memory copy does" in shown
    assert "A limit: 2 cores at 64 FLOP a tick." in figure.alt
    assert re.search(r"graph call [34],", figure.alt)


def test_a_bar_reaches_the_share_of_the_limit_and_stays_in_the_picture():
    finding = parts.finding()
    figure = own_charts.each_part(finding)
    at = {text: x for text, x, _ in texts(figure)}
    (bar,) = bars(figure)
    rate = next(t.rate for t in finding.timings if t.variant == parts.PRODUCT)
    share = (bar[1] - at["0 %"]) / (at["100 %"] - at["0 %"])
    assert share == pytest.approx(rate / 5e11, abs=0.01)
    far = {**parts.RATES, parts.PRODUCT: (2e11, "FLOP", "arrays", 1e9)}
    figure = own_charts.each_part(parts.finding(far))
    ((_, right),) = bars(figure)
    at = {text: x for text, x, _ in texts(figure)}
    assert right == pytest.approx(at["100 %"], abs=1)
    assert "its limit" in figure.alt
    assert not re.search(r"\b1\d\d(\.\d+)? % of its limit", figure.alt)


def test_what_was_not_run_says_why():
    counts = parts.note() | {"GPU microbenchmarks": {"unit": "calls", "group": "GPU"}}
    why = {"GPU microbenchmarks": "No NVIDIA driver is installed."}
    notes = {"microbenchmarks": counts}
    figure = own_charts.each_part(parts.finding(notes=notes, unavailable=why))
    sentence = "was not run: No NVIDIA driver is installed"
    assert f"{sentence}." in words(figure)
    assert f"GPU microbenchmarks {sentence}" in figure.alt


def test_the_timeline_has_each_unit_and_says_that_none_trains():
    figure = gallery.timeline(parts.finding(samples=made.samples(20)))
    text = " ".join([*words(figure), figure.alt])
    assert "GFLOP/s" in text
    assert "calls/s" in text
    assert "examples" not in text
    load = {"t": (0.0, 1.0), "cpu_trial": (0.5, 0.5)}
    for make, noun in ((parts.finding, "trial"), (made.finding, "training")):
        assert f"the {noun} 0.5 cores" in words(gallery.timeline(make(samples=load)))
