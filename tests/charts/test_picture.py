import itertools
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from perfkit.charts import canvas
from perfkit.charts.canvas import stamped
from perfkit.questions import gallery
from perfkit.questions.gallery import rates
from tests.findings.made import finding


def test_the_style_is_of_no_page_and_names_no_font_and_nothing_outside():
    svg = gallery.timeline(finding()).svg
    selectors = re.findall(r"([^{}>]+)\{color", svg)
    assert selectors
    assert all("svg.perfkit-chart:root" in selector for selector in selectors)
    assert set(re.findall(r"font-family:([^;\"]*)", svg)) == {"system-ui, sans-serif"}
    assert re.findall(r"https?://[^\"' ]*", svg) == ["http://www.w3.org/2000/svg"]
    for word in ["<?xml", "<!DOCTYPE", "<metadata", "<!--", "xlink", "@import"]:
        assert word not in svg


def test_ids_of_pictures_in_a_page_do_not_meet_and_each_refers_to_its_own():
    figure = gallery.timeline(finding())
    shown = figure.in_page(), figure._repr_mimebundle_()["text/html"]
    shown += (gallery.rates(finding()).svg, figure.svg)
    ids = [set(re.findall(r' id="([^"]+)"', svg)) for svg in shown]
    assert all(ids)
    assert not any(one & other for one, other in itertools.combinations(ids, 2))
    for own, svg in zip(ids, shown, strict=True):
        assert own == set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))


def test_a_picture_is_small_and_the_same_finding_makes_the_same():
    assert len(gallery.rates(finding()).svg) < 12_000
    assert gallery.timeline(finding()) == gallery.timeline(finding())
    # A caption is broken between its parts.
    lines = canvas.caption_lines(["one part", "x" * 90, "another part"])
    assert lines[0].startswith("one part")
    assert lines[-1].endswith("another part")
    assert all(len(line) < 130 for line in lines)


def test_drawing_leaves_the_users_own_plots_alone():
    before = dict(mpl.rcParams)
    with ThreadPoolExecutor(4) as threads:
        every = threads.map(lambda _: gallery.rates(finding()).svg, range(4))
    assert len(set(every)) == 1
    assert dict(mpl.rcParams) == before
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


def test_a_notebook_gets_the_picture_within_its_page_and_in_words(tmp_path, recwarn):
    # With names in any script.
    figure = gallery.rates(finding({"größer ½": 10.0, "漢字": 9.0}, against="漢字"))
    bundle = figure._repr_mimebundle_()
    assert bundle["text/html"].startswith('<div class="perfkit-scroll" tabindex="0"')
    assert bundle["image/svg+xml"] == figure.svg
    assert bundle["text/plain"] == figure.alt == repr(figure)
    path = figure.save(tmp_path / "rates.svg")
    assert path.read_text(encoding="utf-8") == figure.svg
    assert [str(w.message) for w in recwarn if "Glyph" in str(w.message)] == []


def box(figure):
    root = ElementTree.fromstring(figure.svg)
    return root, [float(number) for number in root.get("viewBox").split()]


@pytest.mark.parametrize("said", ["Recorded on a day; not run here.", "word " * 60])
def test_a_stamp_lies_above_the_picture_inside_the_view_in_several_lines(said):
    plain = rates(finding())
    made = stamped(plain, said)
    root, (left, top, width, height) = box(made)
    _, (old_left, old_top, old_width, old_height) = box(plain)
    assert (left, width) == (old_left, old_width)
    assert top < old_top
    assert top + height == old_top + old_height
    lines = [element for element in root if element.tag.endswith("}text")]
    assert all(top < float(line.get("y")) <= old_top for line in lines)
    assert " ".join(line.text for line in lines).split() == said.split()
    assert made.alt.startswith(said[:20])
