"""The charts of all recordings as a browser draws them: is every word there?"""

import contextlib

import pytest

import perfkit
from perfkit.questions import gallery
from perfkit.questions.replay import BROUGHT

# The words that reach more than a pixel or two beyond their picture.
CUT = """() => [...document.querySelectorAll("svg text")].filter(text => {
    const picture = text.ownerSVGElement.getBoundingClientRect();
    const words = text.getBoundingClientRect();
    return Math.max(
        picture.left - words.left, words.right - picture.right,
        picture.top - words.top, words.bottom - picture.bottom,
    ) > 2;
}).map(text => text.textContent.trim()).filter(Boolean)"""


# A profile has no chart, nor has an account.
DRAWN = [p for p in BROUGHT.glob("*.json") if p.stem[:5] not in ("profi", "lines")]


@pytest.fixture(scope="module")
def sheet(browser):
    with contextlib.closing(browser.new_page()) as page:
        yield page


@pytest.mark.parametrize("path", sorted(DRAWN), ids=lambda p: p.stem)
def test_no_word_of_a_chart_is_cut(sheet, path):
    found = perfkit.load(path)
    for kind in gallery.kinds(found):
        sheet.set_content(gallery.chart(found, kind).svg)
        assert sheet.evaluate(CUT) == [], kind
