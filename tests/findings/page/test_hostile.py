"""Whatever comes from a file or a machine, a page of it runs and loads nothing."""

import pytest

from perfkit.findings import store
from perfkit.findings.page import export, findings_page
from tests.findings.page import hostile
from tests.findings.page.books import book, write
from tests.findings.page.pages import POLICY, Page, problems

FINDING, NOTEBOOKS = hostile.finding(), hostile.notebooks()


@pytest.mark.parametrize("kind", NOTEBOOKS)
def test_a_hostile_notebook_makes_a_harmless_page(kind, tmp_path):
    path = write(NOTEBOOKS[kind], tmp_path / "x.ipynb")
    html = export(path).read_text(encoding="utf-8")
    assert problems(html) == []
    assert "evil.example/x#" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_a_hostile_file_name_and_several_findings_are_harmless(tmp_path):
    name = "<img src=x onerror=alert(1)>&{{7*7}}"
    html = export(write(book("no heading"), tmp_path / f"{name}.ipynb")).read_text()
    assert problems(html) == []
    assert f"{name}.ipynb" in Page(html).words("title")[0]
    finding = store.save(FINDING, path=tmp_path / f"{name}.json")
    assert problems(export(finding).read_text()) == []
    assert problems(findings_page([FINDING, FINDING])) == []


@pytest.mark.parametrize(
    "html",
    [
        "<script>1</script>",
        "<b onclick=x>",
        "<a href='java\nscript:x'>",
        "<img src=http://a.b/c>",
        "<p style='background:url(http://a.b)'>",
        "<use href='http://a.b#c'>",
        "<style>x{background:url(a)}</style>",
        "<meta http-equiv=refresh content=0>",
    ],
)
def test_the_check_of_this_file_sees_what_is_harmful(html):
    assert problems(POLICY) == []
    assert problems(POLICY + html) != []
