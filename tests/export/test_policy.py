"""Both templates of pages tell the browser to run nothing and to ask nobody."""

import pytest

from perfkit.export import export
from perfkit.export.page import findings_page
from tests.export.books import book, code, result, write
from tests.export.pages import ALLOWED, Page, is_closed, problems
from tests.findings.made import finding

# With nothing to draw.
NOTHING = finding({}, rounds=0)


def of_a_notebook(folder):
    path = write(book("# T", code("1", result(finding()))), folder / "a.ipynb")
    return export(path).read_text(encoding="utf-8")


PAGES = {
    "a report": lambda folder: findings_page([NOTHING]),
    "several": lambda folder: findings_page([NOTHING, NOTHING]),
    "a notebook": of_a_notebook,
}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_allows_no_script_and_no_request(page, tmp_path):
    html = page(tmp_path)
    assert problems(html) == []
    (policy,) = [a["content"] for a in Page(html).all("meta") if "http-equiv" in a]
    assert dict(part.strip().split(" ", 1) for part in policy.split(";")) == ALLOWED
    # What stands before it a browser would load without it.
    before = Page(html.partition("<meta http-equiv")[0])
    assert [tag for tag, _ in before.elements] == ["html", "head", "meta"]


@pytest.mark.parametrize(
    "policy",
    [
        "",
        "default-src *",
        "img-src data:",
        "default-src 'none'; script-src 'self'",
        "default-src 'none'; connect-src *",
        "default-src 'none'; img-src *",
        "default-src 'none'; style-src https:",
    ],
)
def test_a_policy_that_leaves_something_open_is_seen(policy):
    assert not is_closed(policy)
