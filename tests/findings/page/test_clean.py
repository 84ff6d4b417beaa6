import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.findings.page import clean as cleaning
from perfkit.findings.page.clean import Pictures, shows_something
from perfkit.questions import gallery
from tests.findings.made import finding
from tests.findings.page.pages import POLICY, Page, problems


def clean(markup):
    return cleaning.clean(markup, Pictures(Path()))


MARKUP = (
    "<svg>|</svg>|<math>|</math>|<p>|</p>|<style>|</style>|<mtext>|<mglyph>|<title>|"
    "</title>|<textarea>|</textarea>|<script>|</script>|<noscript>|<xmp>|<!--|-->|"
    "<![CDATA[|]]>|<table>|<td>|</table>|<select>|<option>|<template>|<a href='|"
    "<img src=x onerror=alert(1)>|<img alt='|'>|\"|'|>|<|&lt;|&#60;|&quot;|"
    "<foreignObject>|<desc>|</br>|<annotation-xml>|<use href='|#a|http://evil.example|"
    "javascript:alert(1)| onload=x |<p style='|fill:url(|)|;|<details open|<h1>|</h1>|"
    '<form>|</form>|<path id="|x|\x00'
)


@given(st.lists(st.sampled_from(MARKUP.split("|")), max_size=14).map("".join))
def test_no_mixture_of_markup_leaves_anything_that_runs_or_loads(markup):
    cleaned = clean(markup)
    assert problems(POLICY + str(cleaned)) == []
    # What a browser reads is what was written: cleaning again changes nothing.
    assert problems(POLICY + str(clean(cleaned))) == []


@pytest.mark.parametrize(
    ("markup", "cleaned"),
    [
        ("<b>a</b> & <i>b</i>", "<b>a</b> &amp; <i>b</i>"),
        ("<p>a<script>x</script>b</p>", "<p>ab</p>"),
        ("<style>p {color: red}</style><p>a</p>", "<p>a</p>"),
        ("<blink>a</blink>", "a"),
        ("a<!-- b -->c", "ac"),
        ("<p id=x class='a perfkit-report'>a</p>", '<p class="perfkit-report">a</p>'),
        ("<p style='color:red;vertical-align:top'>", '<p style="vertical-align:top">'),
        ("<p style='fill:url(http://a.b/#c)'>a</p>", "<p>a</p>"),
        ("<a href='https://a.b/?c&d=2'>", '<a href="https://a.b/?c&amp;d=2" rel='),
        ("<a href='#e'>e</a>", '<a href="#e" rel='),
        ("<a href='other.ipynb'>e</a>", "<a rel="),
        ("<table><tr><td>a</table>", '<table tabindex="0">'),
        ("&copy; &lt;b&gt; &amp;lt;", "\u00a9 &lt;b&gt; &amp;lt;"),
        ("<details open><summary>a</summary>", '<details open=""><summary>a</s'),
    ],
)
def test_what_stays_and_what_goes(markup, cleaned):
    assert clean(markup).startswith(cleaned)


def test_what_is_used_within_what_is_used_is_not_drawn():
    uses = [10 * f'<use href="#a{n}"/>' for n in range(5)]
    levels = "".join(f'<g id="a{n + 1}">{ten}</g>' for n, ten in enumerate(uses))
    svg = clean(f'<svg><path id="a0"/>{levels}<use href="#a5"/></svg>')
    # Only those of a shape stay.
    assert svg.count("<use") == svg.count('href="#a0"') == 10
    # As Matplotlib draws its letters.
    text = '<svg><defs><path id="b"/></defs><g id="t"><use href="#b"/></g></svg>'
    assert clean(text).count("<use") == 1
    # Markup that shows nothing is known.
    markup = ("<p> </p>", "<div><br></div>", "<hr>", "<b>a</b>")
    shown = [shows_something(clean(each)) for each in markup]
    assert shown == [False, False, True, True]


@pytest.mark.parametrize("kind", ["rates", "ratios", "timeline", "waits"])
def test_a_chart_keeps_all_that_is_drawn(kind):
    figure = gallery.chart(finding(), kind)
    before, after = Page(figure.svg), Page(clean(figure.svg))
    drawn = ("path", "use", "rect", "text", "clippath", "pattern")
    for tag in drawn:
        assert len(after.all(tag)) == len(before.all(tag)), tag
    for name in ("d", "href", "clip-path", "transform", "x", "y"):
        kept = [a[name] for _, a in after.elements if name in a]
        assert kept == [a[name] for _, a in before.elements if name in a]
    assert _fills(after) == _fills(before)
    (svg,) = after.all("svg")
    assert (svg["aria-label"], svg["role"]) == (figure.alt, "img")


def _fills(page):
    styles = " ".join(a.get("style", "") for _, a in page.elements)
    return re.findall(r"fill:\s*([^;\s]+)", styles)


@pytest.mark.parametrize(
    "markup",
    [
        *("<b>" * 5000, "<i/>" * 70_000, "x" * 5_000_000),
        *("<a " + "b " * 90_000, "&" * 70_000),
    ],
)
def test_what_would_take_a_browser_long_is_left_out(markup):
    assert "too large to show" in clean(markup)
