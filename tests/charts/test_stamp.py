from xml.etree import ElementTree

from perfkit.charts.canvas import stamped
from perfkit.gallery import rates
from tests.findings.made import finding


def box(figure):
    root = ElementTree.fromstring(figure.svg)
    return root, [float(number) for number in root.get("viewBox").split()]


def test_the_band_lies_above_the_picture_and_inside_the_view():
    plain = rates(finding())
    made = stamped(plain, "Recorded on a day, a machine; not run here.")
    root, (left, top, width, height) = box(made)
    _, (old_left, old_top, old_width, old_height) = box(plain)
    assert (left, width) == (old_left, old_width)
    assert top < old_top
    assert top + height == old_top + old_height
    assert float(root.get("height")) == height
    band = root[-1]
    assert all(top < float(part.get("y")) <= old_top for part in band)
    assert [part.text for part in band][1:] == [
        "Recorded on a day, a machine; not run here."
    ]


def test_a_long_sentence_takes_several_lines():
    made = stamped(rates(finding()), "word " * 60)
    root, (_, top, _, _) = box(made)
    lines = root[-1][1:]
    assert len(lines) >= 3
    assert all(top < float(line.get("y")) < 0 for line in lines)
    assert made.alt.startswith("word word")
