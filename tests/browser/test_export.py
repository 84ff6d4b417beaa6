"""Exported pages in a real browser that can reach nothing but the file."""

import re
import shutil
from pathlib import Path

import pytest

from perfkit.findings.page import export
from perfkit.questions import gallery
from perfkit.questions.replay import BROUGHT
from perfkit.training.race.ladder import AS_FOUND, Ladder
from tests.browser import states
from tests.browser.conftest import REPOSITORY, barriers, fits_its_width, picture, watch
from tests.findings.made import failed, finding
from tests.findings.page import hostile
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

FOUND = finding(
    guess="3x", extra=(failed("parallel", "crashed", "it ran into a wall", 4),)
)
DRAWN = [
    Path("pictures") / path.name
    for path in sorted((REPOSITORY / "notebooks" / "pictures").glob("*.svg"))
]
WIDE = "|".join(f" a rather wide column {n} " for n in range(9))
MATHEMATICS = r"""## Mathematics

The mean $\bar x$ of $n$ rates is

$$\bar x = \frac{1}{n}\sum_{i=1}^{n} x_i, \qquad
s^2 = \frac{1}{n-1}\sum_{i=1}^{n} (x_i - \bar x)^2$$
"""


def run_notebook():
    """A notebook with one of everything that a run leaves behind."""
    kinds = ("rates", "ratios", "waits", "timeline")
    shown = [
        code(k, result(gallery.chart(FOUND, k)), count=n)
        for n, k in enumerate(kinds, 1)
    ]
    static = widget("VBox") | {"html": FOUND._repr_html_()}
    return book(
        "# Is this training waiting for its images?\n\nRead [on](https://a.b/c).",
        *shown,
        code("panel", result(**static), count=5),
        code("slider", result(**widget()), count=6),
        code("frame", result(html=FOUND.table().to_html()), count=7),
        code("print('long ' * 99)", printed("long " * 99), count=8),
        code("1 / 0", error("\x1b[31mValueError\x1b[0m", "it broke " * 30), count=9),
        code("picture", result(png=PNG, metadata={"alt": "A grey point"}), count=10),
        MATHEMATICS,
        f"### Wide\n\n|{WIDE}|\n|{'-|' * 9}\n|{WIDE}|\n\n![gone](http://a.b/c.png)",
        "<details><summary>Why?</summary>\n\nBecause.\n\n```python\nfor x in y:\n```\n"
        "</details>",
        code("pass", count=11),
    )


def course():
    """The pictures of the notebooks, and the ladder."""
    rates = {AS_FOUND: 1000.0, "cached input": 2100.0, "one decimal less": 1001.0}
    ladder = Ladder(finding(rates, against=AS_FOUND).comparisons)
    shown = [f"![A picture of {path.stem}]({path})" for path in DRAWN]
    return book("# Course", *shown, code("ladder", result(html=ladder._repr_html_())))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The files: of a finding, of two, of a notebook that was run, of others."""
    folder = tmp_path_factory.mktemp("pages")
    notebook = write(run_notebook(), folder / "run.ipynb")
    first = REPOSITORY / "notebooks" / "00_start_here.ipynb"
    other = finding({"eager": 100.0, "graph": 300.0}, against="eager", question="Why?")
    (machines := folder / "machines").mkdir()
    kept = {name: folder / f"{name}.html" for name in states.NAMES}
    for path, html in zip(kept.values(), states.reports(machines), strict=True):
        path.write_text(html, encoding="utf-8")
    shutil.copytree(REPOSITORY / "notebooks" / "pictures", folder / "pictures")
    return {
        "course": export(write(course(), folder / "course.ipynb")),
        "finding": export(FOUND, folder / "finding.html"),
        "findings": export([FOUND, other], folder / "findings.html"),
        "notebook": export(notebook),
        "never run": export(first, folder / "first.html"),
        **kept,
    }


@pytest.fixture
def visit(browser):
    """Opens a file; fails the test on a request, an error or a script that runs."""
    contexts, problems = [], []

    def opened(path, width=1280, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        contexts.append(context)
        watch(context, "file://", problems)
        page = context.new_page()
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: asked.append(request.url))
        asked = opened.asked = []
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


KINDS = ["course", "finding", "findings", "notebook", "never run", *states.NAMES]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
def test_a_page_opens_alone_fits_its_width_and_bars_nobody(
    kind, width, scheme, pages, visit
):
    page = visit(pages[kind], width, scheme)
    # Neither a network, an error nor a script.
    assert [url for url in visit.asked if not url.startswith("data:")] == [
        pages[kind].as_uri()
    ]
    assert page.locator("h1").count() == 1
    assert page.locator("script").count() == 0
    assert page.title() == page.locator("h1").inner_text()
    assert fits_its_width(page)
    page.evaluate(
        "document.querySelectorAll('details').forEach(d => { d.open = true })"
    )
    page.screenshot(path=picture(f"export {kind} {width} {scheme}"), full_page=True)
    assert barriers(page) == []


def test_a_notebook_scrolls_folds_and_draws_without_a_script(pages, visit):
    page = visit(pages["notebook"], 360)
    # What is wider than a phone scrolls in a box of its own.
    boxes = page.locator("table[tabindex], .perfkit-scroll, pre.out, pre.error")
    overflowing = boxes.evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.tabIndex)"
    )
    assert len(overflowing) > 4
    assert set(overflowing) == {0}
    # Folded code opens by keyboard.
    code_of_the_chart = page.locator("details.code pre").first
    assert not code_of_the_chart.is_visible()
    page.locator("details.code summary").first.focus()
    page.keyboard.press("Enter")
    assert code_of_the_chart.is_visible()
    # Charts take the colour of the page.
    for scheme, ink in (("light", "rgb(26, 26, 26)"), ("dark", "rgb(232, 232, 232)")):
        page = visit(pages["finding"], scheme=scheme)
        label = page.locator("svg.perfkit-chart text").first
        assert label.evaluate("e => getComputedStyle(e).fill") == ink
    # Advice of several lines keeps them.
    lines = page.locator(".perfkit-lines").first
    assert lines.evaluate("e => getComputedStyle(e).whiteSpace") == "pre-wrap"


@pytest.mark.parametrize(
    "name", ["machine-ladder", "batch-size", "diagnosis-make-mended"]
)
def test_a_report_is_one_sheet_of_at_most_three(name, tmp_path, visit):
    page = visit(export(BROUGHT / f"{name}.json", tmp_path / "x.html"))
    assert max(sheets(page)) <= 3
    page.add_style_tag(content=".appendix { display: none !important }")
    assert sheets(page) == [1, 1]


def sheets(page):
    """How many sheets a page takes, of either paper."""
    printed = (page.pdf(format=paper) for paper in ("A4", "Letter"))
    return [len(re.findall(rb"/Type\s*/Page\b", sheet)) for sheet in printed]


def test_nothing_hostile_does_anything_in_a_browser(tmp_path, visit):
    files = [export(hostile.finding(), tmp_path / "finding.html")]
    files += [
        export(write(made, tmp_path / f"{number}.ipynb"))
        for number, made in enumerate(hostile.notebooks().values())
    ]
    page = visit(files[0])
    for file in files:
        page.goto(file.as_uri())
        handlers = page.evaluate("""() => [...document.querySelectorAll('*')].filter(
            (e) => [...e.attributes].some((a) => a.name.startsWith('on'))).length""")
        assert handlers == 0
        assert page.locator("script, iframe, object, embed, form").count() == 0
    assert {url for url in visit.asked if not url.startswith("data:")} == {
        file.as_uri() for file in files
    }


def test_the_policy_of_a_page_would_stop_what_came_through(browser, pages, tmp_path):
    attack = (
        "<script>alert(1)</script><img src='http://evil.example/x'>"
        "<img src='x' onerror='alert(1)'><iframe src='http://evil.example/y'></iframe>"
    )
    html = pages["never run"].read_text(encoding="utf-8")
    (tmp_path / "x.html").write_text(html.replace("</h1>", f"</h1>{attack}"))
    context, problems = browser.new_context(), []
    watch(context, "file://", problems)
    page = context.new_page()
    page.on("dialog", lambda dialog: problems.append("it ran"))
    page.goto((tmp_path / "x.html").as_uri())
    context.close()
    assert len([p for p in problems if "Content Security Policy" in p]) >= 4
    assert "it ran" not in problems
    assert not any(problem.startswith("request") for problem in problems)
