"""Whatever comes from a file or a machine, a page of it runs and loads nothing."""

import pytest
from hypothesis import HealthCheck, assume, given, settings

from perfkit.errors import BadFileError
from perfkit.export import export
from perfkit.export.page import findings_page
from perfkit.findings import store
from perfkit.findings.reading import parse
from tests.export import hostile
from tests.export.books import write
from tests.export.pages import POLICY, Page, problems
from tests.findings.spoiled import spoiled

FINDING, NOTEBOOKS = hostile.finding(), hostile.notebooks()
# Those that a page of a finding shows.
PLACES = (
    *("headline", "reason", "code", "advice", "question", "experiment", "guess"),
    *("time", "perfkit", "parameter", "note", "unavailable", "message", "processor"),
    *("system", "python", "version", "variable", "gpu", "variant", "other", "stage"),
)


def test_a_hostile_finding_makes_a_harmless_page_that_shows_it_as_text():
    page = Page(findings_page([FINDING]))
    assert problems(page.html) == []
    assert "\x1b" not in page.html
    assert "\u202e" not in page.html
    assert "49" not in page.words("title")[0]
    shown = page.text + " ".join(a.get("aria-label", "") for _, a in page.elements)
    assert [place for place in PLACES if f"{place} \"'></title>" not in shown] == []


@pytest.mark.parametrize(
    ("kind", "code"),
    [*((kind, "shown") for kind in NOTEBOOKS), ("code", "folded"), ("code", "hidden")],
)
def test_a_hostile_notebook_makes_a_harmless_page(kind, code, tmp_path):
    path = write(NOTEBOOKS[kind], tmp_path / "x.ipynb")
    html = export(path, code=code).read_text(encoding="utf-8")
    assert problems(html) == []
    assert "evil.example/x#" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_a_hostile_file_name_and_several_findings_are_harmless(tmp_path):
    name = "<img src=x onerror=alert(1)>&{{7*7}}"
    path = write(hostile.book("no heading"), tmp_path / f"{name}.ipynb")
    html = export(path).read_text()
    assert problems(html) == []
    assert f"{name}.ipynb" in Page(html).words("title")[0]
    finding = store.save(FINDING, path=tmp_path / f"{name}.json")
    assert problems(export(finding).read_text()) == []
    several = Page(findings_page([FINDING, hostile.finding(gpus=())]))
    assert problems(several.html) == []
    assert "no gpu \"'></title>" in several.text


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


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=spoiled(alike=True))
def test_every_finding_that_can_be_read_makes_a_harmless_page(data):
    try:
        found = parse(data, "x")
    except BadFileError:
        assume(False)
    assert problems(findings_page([found])) == []
