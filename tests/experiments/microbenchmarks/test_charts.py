import re
from xml.etree import ElementTree

import pytest

from perfkit import gallery
from perfkit.experiments.microbenchmarks import charts as own_charts
from tests.findings import made, parts


def words(figure):
    root = ElementTree.fromstring(figure.svg)
    return [
        ("".join(e.itertext()), float(e.get("x", 0)))
        for e in root.iter()
        if e.tag.endswith("}text")
    ]


def bars(figure):
    """Left and right end of each bar."""
    bar = r'<path d="M([\d.]+) [\d.]+L([\d.]+) [^"]*z"[^>]*clip'
    found = re.findall(bar, figure.svg)
    return [(float(left), float(right)) for left, right in found]


def test_microbenchmarks_are_drawn_first_and_on_no_common_axis():
    kinds = list(gallery.kinds(parts.finding()))
    assert kinds[0] == "microbenchmarks"
    assert not {"rates", "ratios"} & set(kinds)
    assert "microbenchmarks" not in gallery.kinds(made.finding())


def test_every_microbenchmark_is_there_with_its_rate_and_unit():
    said = [text for text, _ in words(own_charts.each_part(parts.finding()))]
    for name in (*parts.RATES, "interpreter", "arrays", "memory", "TensorFlow"):
        assert name in said
    assert any(re.fullmatch(r"\d+ GFLOP/s ± [\d.]+ %", text) for text in said)
    assert any(re.fullmatch(r"[\d,]+ calls/s ± [\d.]+ %", text) for text in said)
    assert "what memory copy does" in said


def test_a_bar_reaches_the_share_of_the_limit():
    finding = parts.finding()
    figure = own_charts.each_part(finding)
    at = dict(words(figure))
    (bar,) = bars(figure)
    rate = next(t.rate for t in finding.timings if t.variant == parts.PRODUCT)
    share = (bar[1] - at["0 %"]) / (at["100 %"] - at["0 %"])
    assert share == pytest.approx(rate / 5e11, abs=0.01)


def test_a_rate_beyond_its_limit_stays_in_the_picture():
    far = {**parts.RATES, parts.PRODUCT: (2e11, "FLOP", "arrays", 1e9)}
    figure = own_charts.each_part(parts.finding(far))
    ((_, right),) = bars(figure)
    assert right == pytest.approx(dict(words(figure))["100 %"], abs=1)
    assert "its limit" in figure.alt
    assert not re.search(r"\b1\d\d(\.\d+)? % of its limit", figure.alt)


def test_the_words_say_where_the_limit_is_from():
    alt = own_charts.each_part(parts.finding()).alt
    assert "A limit: 2 cores at 64 FLOP a tick." in alt
    assert "graph call 4," in alt or "graph call 3," in alt


def test_what_was_not_run_says_why():
    notes = {
        "microbenchmarks": parts.note()
        | {"GPU microbenchmarks": {"unit": "calls", "group": "GPU"}}
    }
    why = {"GPU microbenchmarks": "No NVIDIA driver is installed."}
    figure = own_charts.each_part(parts.finding(notes=notes, unavailable=why))
    assert "was not run: No NVIDIA driver is installed." in dict(words(figure))
    assert (
        "GPU microbenchmarks was not run: No NVIDIA driver is installed" in figure.alt
    )


def test_nothing_in_the_notes_becomes_markup():
    attack = '"><script>alert(1)</script>&\x1b]]>$\\frac$'
    told = {attack: (2e9, attack, attack, 3e9), **parts.RATES}
    finding = parts.finding(told)
    for svg in (own_charts.each_part(finding).svg, finding._repr_html_()):
        assert "<script" not in svg
        assert "\x1b" not in svg
    ElementTree.fromstring(own_charts.each_part(finding).svg)


def test_what_happened_when_is_told_in_each_microbenchmarks_own_unit():
    finding = parts.finding(samples=made.samples(20))
    figure = gallery.timeline(finding)
    said = " ".join([*(text for text, _ in words(figure)), figure.alt])
    assert "GFLOP/s" in said
    assert "calls/s" in said
    assert "examples" not in said


@pytest.mark.parametrize(
    ("finding", "said"), [(parts.finding, "trial"), (made.finding, "training")]
)
def test_no_microbenchmark_is_said_to_train(finding, said):
    load = {"t": (0.0, 1.0), "cpu_trial": (0.5, 0.5)}
    drawn = dict(words(gallery.timeline(finding(samples=load))))
    assert f"the {said} 0.5 cores" in drawn
