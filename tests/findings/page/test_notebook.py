import base64
import json
import os
from functools import partial

import nbformat
import pytest
from nbformat import v4

from perfkit.findings import store
from perfkit.findings.page import notebook
from perfkit.findings.page.clean import Room
from perfkit.findings.page.export import export
from perfkit.findings.record import Verdict
from perfkit.questions import gallery
from tests.findings.made import finding
from tests.findings.page.books import (
    PNG,
    book,
    code,
    error,
    printed,
    result,
    widget,
    write,
)
from tests.findings.page.pages import Page, problems

URI = f"data:image/png;base64,{PNG}"


@pytest.fixture
def page(tmp_path):
    """Exports a notebook of these cells; gives the page taken apart."""

    def made(*cells, code="folded", name="book.ipynb", **metadata):
        path = write(book(*cells, **metadata), tmp_path / name)
        html = export(path, code=code).read_text(encoding="utf-8")
        assert problems(html) == []
        return Page(html)

    return made


def test_the_first_heading_is_the_title_and_without_one_the_file_gives_it(page):
    shown = page("# What is $x^2$?\n\nText.", "## Next")
    assert shown.words("title") == ["What is x2?"]
    assert shown.levels == [1, 2]
    assert shown.text.index("Made from book.ipynb") < shown.text.index("Text.")
    shown = page("Text.", "# Later")
    assert shown.words("h1") == ["book.ipynb"]
    assert shown.levels == [1, 2]
    assert page(code("1"), title="Named").words("title") == ["Named"]
    assert page("Text.\n\n# Later").all("h2") == [{"id": "Later"}]
    # Headings leave no level out.
    cells = ("#### A", "# B", "<h6>C</h6>", code("1", result(html="<h1>D")))
    assert page("## Why?", *cells).levels == [1, 2, 2, 3]


def test_the_conclusions_come_first_each_once_with_a_link_to_its_place(page):
    verdict = Verdict(headline="Cache `it`.", much="Twice as fast.", sure="sure")
    found, other = finding(), finding(verdict=verdict)
    panel = code("panel", result(found), widget_of(found))
    last = code("1", printed("1"))
    shown = page("# T", "Why?", panel, code("other", result(other)), last)
    assert shown.levels[:2] == [1, 2]
    links = [a["href"] for a in shown.all("a")]
    assert links == ["#cell-2", "#cell-3"]
    ids = [a["id"] for a in shown.all("div") if "id" in a]
    assert ids == ["cell-2", "cell-3", "cell-4"]
    assert shown.words("a") == [found.verdict.headline, "Cache it."]
    said = shown.text.index("Cache it. Twice as fast. sure")
    assert said < shown.text.index("Made from book.ipynb") < shown.text.index("Why?")


def widget_of(found):
    """A panel that shows a finding, and the text that stands for it."""
    return result(**widget("VBox") | {"html": found._repr_html_()})


@pytest.mark.parametrize(
    ("how", "details", "seen"),
    [("folded", 1, True), ("shown", 0, True), ("hidden", 0, False)],
)
def test_code_is_folded_shown_or_hidden(page, how, details, seen):
    shown = page("# T", code("answer = 42", printed("ready")), code=how)
    assert len(shown.all("details")) == details
    assert ("answer = 42" in shown.text) is seen
    assert "ready" in shown.text


NEVER = "never run, or its outputs were cleared"
UNTOLD = "as they were saved. The file does not show whether a cell was"


@pytest.mark.parametrize(
    ("cells", "said", "warns"),
    [
        ([code("1", count=None)], (NEVER, "Code, not run"), True),
        ([code("1", result(text="2"))], ("The export runs nothing", UNTOLD), False),
        ([code("1", count=2), code("2", count=9), code(" ", count=None)], (), False),
        ([code("1"), code("2", count=None)], ("1 of its 2 code cells was not",), True),
        ([code("1", count=3), code("2", count=2)], ("not run from top to",), True),
        ([code("1", error("x"))], ("1 of its code cells ended in an error",), True),
    ],
)
def test_a_notebook_says_whether_it_was_run_and_what_it_cannot_tell(
    page, cells, said, warns
):
    shown = page("# T", "Nothing is below.", *cells)
    assert [words for words in said if words not in shown.text] == []
    # A warning stands above the text.
    (text,) = [n for n, tag in enumerate(shown.elements) if tag == ("p", {})][:1]
    notices = [n for n, tag in enumerate(shown.elements) if tag[0] == "ul"]
    assert bool(notices) == warns
    assert all(notice < text for notice in notices)


def test_exporting_runs_nothing_and_reads_old_and_odd_notebooks(page, tmp_path):
    trap = tmp_path / "ran"
    page("# T", code(f"open({str(trap)!r}, 'w')"), code("!touch ran", count=None))
    assert not trap.exists()
    # Outputs of what is no code are none.
    path = write(book("Text."), tmp_path / "book.ipynb")
    broken = json.loads(path.read_text())
    said = {"output_type": "stream", "name": "stdout", "text": ["done"]}
    broken["cells"][0]["outputs"] = [said]
    path.write_text(json.dumps(broken))
    assert "done" not in Page(export(path).read_text(encoding="utf-8")).text
    # An old notebook is read.
    shown = v4.new_output("execute_result", {"text/plain": "2"}, execution_count=1)
    old = nbformat.convert(book("# Old", code("1 + 1", shown)), 3)
    assert [cell.cell_type for cell in old.worksheets[0].cells] == ["heading", "code"]
    page = Page(export(write(old, tmp_path / "old.ipynb")).read_text())
    assert page.words("h1") == ["Old"]
    assert "1 + 1" in page.text


def test_findings_that_came_after_the_notebook_are_told(page, tmp_path):
    folder = tmp_path / "perfkit-findings"
    path = store.save(finding(), folder)
    os.utime(path, (2e9, 2e9))
    shown = page("# T", code("finding", printed("x")))
    assert "1 finding is newer than the notebook's file." in shown.text
    os.utime(path, (1e9, 1e9))
    assert "newer" not in page("# T", code("finding", printed("x"))).text


def test_charts_stand_in_the_page_with_their_words_and_it_stays_small(page):
    figure = gallery.chart(finding())
    shown = page("# T", code("chart", result(figure)))
    for svg in shown.all("svg"):
        assert (svg["role"], svg["aria-label"]) == ("img", figure.alt)
    found = [finding(), finding(rounds=6)]
    kinds = ("rates", "ratios", "waits", "timeline")
    cells = [
        code("chart", result(gallery.chart(f, kind))) for f in found for kind in kinds
    ]
    cards = [code("finding", result(f)) for f in found]
    shown = page("# T", *cells, *cards)
    assert len(shown.all("svg")) == len(cells) + len(cards)
    assert len(shown.html.encode()) <= 400_000


CONTROL = "A control (IntSlider) is here in the notebook, where it works."
SCRIPT = "A script draws something here; only the notebook shows it."
DRAWING = {"js": "draw()", "html": "<div id=x></div><script>draw()</script>"}


@pytest.mark.parametrize(
    ("outputs", "said", "unsaid"),
    [
        ([widget() | {"html": "<p>In its place</p>"}], ["In its place"], "is here"),
        ([widget()], [CONTROL], "value=5"),
        ([DRAWING, {"html": "<script>1</script>"}], [SCRIPT] * 2, "draw()"),
    ],
    ids=["widget", "control", "script"],
)
def test_what_only_works_live_is_its_control_or_is_named(page, outputs, said, unsaid):
    shown = page("# T", code("1", *(result(**forms) for forms in outputs)))
    assert shown.text.count(said[0]) == len(said)
    assert unsaid not in shown.text


def test_a_page_has_room_for_so_many_bytes_of_pictures(page, tmp_path, monkeypatch):
    monkeypatch.setattr(notebook, "Room", partial(Room, 3 * len(URI)))
    (tmp_path / "b.png").write_bytes(base64.b64decode(PNG))
    held, text = {"a.png": {"image/png": PNG}}, "![A](attachment:a.png)\n" * 2
    twice = [v4.new_markdown_cell(text, attachments=held) for _ in range(2)]
    # The first cell is tried as a title; what that took is given back.
    shown = page(twice[0], "![A](b.png)", twice[1])
    assert [img["src"] for img in shown.all("img")] == [URI] * 3
    assert shown.text.count("too large") == 2


def test_mathematics_needs_no_script_and_a_terminal_shows_no_colours(page):
    shown = page("# T", "The mean $\\bar x$ and\n\n$$\\frac{a}{b}$$\n\nbut $\\frac{$.")
    assert (len(shown.all("math")), len(shown.all("mfrac"))) == (2, 1)
    assert "\\frac{" in shown.words("code")
    shown = page("# T", code("1", printed("\x1b[31mred\x1b[0m\n 10%\r100%\n")))
    (text,) = [data for open_, data in shown.texts if "pre" in open_ and "red" in data]
    assert text == "red\n100%"
