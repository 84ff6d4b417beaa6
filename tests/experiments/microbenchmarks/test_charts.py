import re

import pytest

from perfkit import gallery
from perfkit.experiments.microbenchmarks import charts as own_charts
from tests.charts.test_any_finding import ATTACK, check
from tests.charts.test_kinds import texts, words
from tests.findings import made, parts


def bars(figure):
    """Left and right end of each bar."""
    bar = r'<path d="M([\d.]+) [\d.]+L([\d.]+) [^"]*z"[^>]*clip'
    found = re.findall(bar, figure.svg)
    return [(float(left), float(right)) for left, right in found]


def test_microbenchmarks_are_drawn_first_and_on_no_common_axis():
    kinds = list(gallery.kinds(parts.finding()))
    assert kinds[0] == "microbenchmarks"
    assert not {"rates", "ratios"} & set(kinds)


def test_every_microbenchmark_is_there_with_its_rate_and_unit():
    figure = own_charts.each_part(parts.finding())
    said = words(figure)
    for name in (*parts.RATES, "interpreter", "arrays", "memory", "TensorFlow"):
        assert name in said
    assert any(re.fullmatch(r"\d+ GFLOP/s ± [\d.]+ %", text) for text in said)
    assert any(re.fullmatch(r"[\d,]+ calls/s ± [\d.]+ %", text) for text in said)
    assert "what memory copy does" in said
    # Where the limit is from is told in words.
    assert "A limit: 2 cores at 64 FLOP a tick." in figure.alt
    assert "graph call 4," in figure.alt or "graph call 3," in figure.alt


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
    told = parts.note() | {"GPU microbenchmarks": {"unit": "calls", "group": "GPU"}}
    notes = {"microbenchmarks": told}
    why = {"GPU microbenchmarks": "No NVIDIA driver is installed."}
    figure = own_charts.each_part(parts.finding(notes=notes, unavailable=why))
    said = "was not run: No NVIDIA driver is installed"
    assert f"{said}." in words(figure)
    assert f"GPU microbenchmarks {said}" in figure.alt


def test_nothing_in_the_notes_becomes_markup():
    finding = parts.finding({ATTACK: (2e9, ATTACK, ATTACK, 3e9), **parts.RATES})
    for svg in (check(own_charts.each_part(finding)).svg, finding._repr_html_()):
        assert "<script" not in svg
        assert "\x1b" not in svg


def test_what_happened_when_is_told_in_each_microbenchmarks_own_unit():
    figure = gallery.timeline(parts.finding(samples=made.samples(20)))
    said = " ".join([*words(figure), figure.alt])
    assert "GFLOP/s" in said
    assert "calls/s" in said
    assert "examples" not in said


@pytest.mark.parametrize(
    ("finding", "said"), [(parts.finding, "trial"), (made.finding, "training")]
)
def test_no_microbenchmark_is_said_to_train(finding, said):
    load = {"t": (0.0, 1.0), "cpu_trial": (0.5, 0.5)}
    assert f"the {said} 0.5 cores" in words(gallery.timeline(finding(samples=load)))
