"""Every kind of page tells the browser to run nothing and to ask nobody."""

import pytest

from perfkit.export import export
from perfkit.export.page import findings_page
from perfkit.machines.classroom import classroom
from perfkit.machines.compare import compare
from perfkit.passports import passport as passports
from tests.diagnosis.diagnosed import diagnosis
from tests.export.books import book, code, result, write
from tests.export.pages import ALLOWED, Page, is_closed, problems
from tests.findings.made import finding
from tests.machines import pairs

# With nothing to draw.
NOTHING = finding({}, rounds=0)


def of_two_machines(folder):
    found = compare(pairs.passport(label="A"), pairs.passport(label="B"))
    return found.export(folder / "page.html").read_text(encoding="utf-8")


def of_a_class(folder):
    for name in ("one", "two"):
        passports.save(pairs.passport(label=name), folder / f"{name}.json")
    room = classroom(folder)
    return room.export(folder / "page.html").read_text(encoding="utf-8")


def of_a_notebook(folder):
    path = write(book("# T", code("1", result(finding()))), folder / "a.ipynb")
    return export(path).read_text(encoding="utf-8")


PAGES = {
    "a finding": lambda folder: findings_page([NOTHING]),
    "a diagnosis": lambda folder: findings_page([diagnosis()]),
    "several": lambda folder: findings_page([NOTHING, NOTHING]),
    "two machines": of_two_machines,
    "a class": of_a_class,
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
