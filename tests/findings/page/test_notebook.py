import base64
import json
from functools import partial

import pytest
from nbformat import v4

from perfkit.findings.page import export, notebook
from perfkit.findings.page.clean import Pictures
from perfkit.findings.record import Verdict
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

    def made(*cells):
        html = export(write(book(*cells), tmp_path / "book.ipynb")).read_text()
        assert problems(html) == []
        return Page(html)

    return made


def test_the_conclusions_come_first_each_once_with_a_link_to_its_place(page):
    verdict = Verdict(headline="Cache `it`.", much="Twice as fast.", sure="sure")
    found, other = finding(), finding(verdict=verdict)
    # A panel that shows a finding, and the text that stands for it.
    static = result(**widget("VBox") | {"html": found._repr_html_()})
    panel = code("panel", result(found), static)
    last = code("1", printed("1"))
    again = code("other", result(other))
    shown = page("# T", "Why?", panel, "## Files or *records*?", again, last)
    assert shown.levels[:2] == [1, 2]
    assert [a["href"] for a in shown.all("a")] == ["#cell-2", "#cell-4"]
    ids = [a["id"] for a in shown.all("div") if "id" in a]
    assert ids == ["cell-2", "cell-4", "cell-5"]
    assert shown.words("a") == [found.verdict.headline, "Cache it."]
    said = shown.text.index("Files or records? Cache it. Twice as fast. sure")
    assert said < shown.text.index("Made from book.ipynb") < shown.text.index("Why?")


def test_exporting_runs_nothing_and_reads_odd_notebooks(page, tmp_path):
    trap = tmp_path / "ran"
    page("# T", code(f"open({str(trap)!r}, 'w')"), code("!touch ran", count=None))
    assert not trap.exists()
    # Half a surrogate has no bytes.
    half = "# Half \ud83d"
    forms = [result(html=half), result(svg=f"<svg><text>{half}</text></svg>")]
    every = code(half, *forms, result(md=half), printed(half), error(half))
    assert page(half, half + "_" * 60_000, every).text.count("Half") == 9
    # Outputs of what is no code are none.
    path = write(book("Text."), tmp_path / "book.ipynb")
    broken = json.loads(path.read_text())
    said = {"output_type": "stream", "name": "stdout", "text": ["done"]}
    broken["cells"][0]["outputs"] = [said]
    path.write_text(json.dumps(broken))
    assert "done" not in Page(export(path).read_text(encoding="utf-8")).text


def test_a_page_has_room_for_so_many_bytes_of_pictures(page, tmp_path, monkeypatch):
    few = partial(Pictures, bytes_left=3 * len(URI))
    monkeypatch.setattr(notebook, "Pictures", few)
    (tmp_path / "b.png").write_bytes(base64.b64decode(PNG))
    held, text = {"a.png": {"image/png": PNG}}, "![A](attachment:a.png)\n" * 2
    twice = [v4.new_markdown_cell(text, attachments=held) for _ in range(2)]
    shown = page(twice[0], "![A](b.png)", twice[1])
    assert [img["src"] for img in shown.all("img")] == [URI] * 3
    assert shown.text.count("too large") == 2
