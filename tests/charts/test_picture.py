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


def luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
@pytest.mark.parametrize("name", ["BLUE", "GREEN", "RED", "GREY"])
def test_marks_stand_out_from_light_and_dark_pages(name, page):
    assert contrast(getattr(canvas, name), page) >= 3


def test_text_is_the_ink_of_the_page_and_readable_without_one():
    svg = gallery.rates(finding()).svg
    for text in re.findall(r"<text [^>]*>", svg):
        assert "fill:currentColor" in text or "fill:#" in text
    ours = re.findall(r":root\{color:(#\w+);background:(#\w+)\}", svg)
    assert len(ours) == 2
    for ink, page in ours:
        page = page if len(page) == 7 else "#" + "".join(2 * c for c in page[1:])
        assert contrast(ink, page) >= 7


def test_the_style_is_of_no_page_and_names_no_font_and_nothing_outside():
    svg = gallery.rates(finding()).svg
    assert svg.count("<style>") == 1
    selectors = re.findall(r"([^{}>]+)\{color", svg)
    assert selectors
    assert all("svg.perfkit-chart:root" in selector for selector in selectors)
    svg = gallery.timeline(finding()).svg
    assert set(re.findall(r"font-family:([^;\"]*)", svg)) == {"system-ui, sans-serif"}
    assert re.findall(r"https?://[^\"' ]*", svg) == ["http://www.w3.org/2000/svg"]
    for word in ["<?xml", "<!DOCTYPE", "<metadata", "<!--", "xlink", "@import"]:
        assert word not in svg
    assert 'href="h' not in svg


def test_ids_of_pictures_in_a_page_do_not_meet_and_each_refers_to_its_own():
    ids = [
        set(re.findall(r' id="([^"]+)"', gallery.chart(finding(), kind).svg))
        for kind in ("rates", "timeline", "waits")
    ]
    assert all(ids)
    assert not set.intersection(*ids)
    assert ids[0].isdisjoint(ids[1])
    figure = gallery.timeline(finding())
    twice = figure.in_page(), figure._repr_mimebundle_()["text/html"]
    ids = [set(re.findall(r' id="([^"]+)"', svg)) for svg in twice]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])
    assert ids[0] == set(re.findall(r'(?:url\(#|href="#)([^)"]+)', twice[0]))
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', figure.svg))
    assert used == set(re.findall(r' id="([^"]+)"', figure.svg))


def test_coordinates_are_short_and_the_same_finding_makes_the_same_picture():
    svg = gallery.rates(finding()).svg
    numbers = re.findall(
        r"\d+\.(\d+)", " ".join(re.findall(r' (?:d|x|y)="([^"]*)"', svg))
    )
    assert numbers
    assert max(map(len, numbers)) == 1
    assert len(svg) < 12_000
    assert gallery.timeline(finding()) == gallery.timeline(finding())
    # A caption is broken between its parts.
    lines = canvas.caption_lines(["one part", "x" * 90, "another part"])
    assert lines[0].startswith("one part")
    assert lines[-1].endswith("another part")
    assert all(len(line) < 130 for line in lines)
    assert canvas.caption_lines([]) == []


def test_drawing_leaves_the_users_own_plots_alone():
    before = dict(mpl.rcParams)
    with ThreadPoolExecutor(4) as threads:
        every = threads.map(lambda _: gallery.rates(finding()).svg, range(4))
    assert len(set(every)) == 1
    assert dict(mpl.rcParams) == before
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


def test_a_notebook_gets_the_picture_within_its_page_and_in_words(tmp_path, recwarn):
    figure = gallery.rates(finding())
    bundle = figure._repr_mimebundle_()
    assert bundle["text/html"].startswith('<div class="perfkit-scroll" tabindex="0"')
    assert bundle["text/html"].count("<svg ") == 1
    assert bundle["image/svg+xml"] == figure.svg
    assert bundle["text/plain"] == figure.alt == repr(figure)
    # It can be kept, with names in any script.
    figure = gallery.rates(finding({"größer ½": 10.0, "naive": 9.0}))
    path = figure.save(tmp_path / "rates.svg")
    assert path.read_text(encoding="utf-8") == figure.svg
    gallery.rates(finding({"漢字": 10.0, "naive": 9.0}))
    assert [str(w.message) for w in recwarn if "Glyph" in str(w.message)] == []


@pytest.mark.parametrize("kind", ["rates", "ratios", "timeline"])
def test_a_picture_is_shrunk_no_further_than_its_text_can_be_read(kind):
    html = gallery.chart(finding(), kind).in_page()
    wide = float(re.search(r'viewBox="0 0 (\S+) ', html)[1])
    least = float(re.search(r"min-width:(\d+)px", html)[1])
    sizes = [float(size) for size in re.findall(r"font-size:([\d.]+)px", html)]
    assert wide == canvas.WIDTH
    assert min(sizes) * least / wide >= 9


def box(figure):
    root = ElementTree.fromstring(figure.svg)
    return root, [float(number) for number in root.get("viewBox").split()]


def test_a_stamp_lies_above_the_picture_inside_the_view_in_several_lines():
    plain = rates(finding())
    said = "Recorded on a day, a machine; not run here."
    made = stamped(plain, said)
    root, (left, top, width, height) = box(made)
    _, (old_left, old_top, old_width, old_height) = box(plain)
    assert (left, width) == (old_left, old_width)
    assert top < old_top
    assert top + height == old_top + old_height
    assert float(root.get("height")) == height
    band = root[-1]
    assert all(top < float(part.get("y")) <= old_top for part in band)
    assert [part.text for part in band][1:] == [said]
    made = stamped(rates(finding()), "word " * 60)
    root, (_, top, _, _) = box(made)
    lines = root[-1][1:]
    assert len(lines) >= 3
    assert all(top < float(line.get("y")) < 0 for line in lines)
    assert made.alt.startswith("word word")
