import pytest

from perfkit import units
from perfkit.findings import store
from perfkit.findings.page.page import findings_page
from tests.findings.made import MACHINE, failed, finding
from tests.findings.page.pages import Page, problems

FOUND = finding(
    guess="3x",
    extra=(failed("parallel", "crashed", "it ran into a wall", 4),),
    unavailable={"numba": "Numba is not installed"},
    notes={"images": {"count": 256, "names": []}},
)


@pytest.fixture(scope="module")
def page():
    return Page(findings_page([FOUND]))


def at(page, words):
    assert words in page.text
    return page.text.index(words)


def test_it_says_first_what_was_asked_on_what_and_what_came_of_it(page):
    order = [FOUND.verdict.headline, MACHINE.summary, "2025-03-14 09:26"]
    order += [FOUND.verdict.next, FOUND.question, "Repeat it: ", "Charts"]
    order += ["All variants", "How sure is this?", "How it was measured"]
    places = [at(page, words) for words in (*order, "Environment variables")]
    assert places == sorted(places)
    assert page.words("title") == page.words("h1") == [FOUND.verdict.headline]
    for words in (*FOUND.verdict.because, "Your guess: 3x"):
        at(page, words)


def test_headings_the_language_the_policy_and_the_width_are_in_order(page):
    assert page.levels == [1, *[2] * 6]
    assert Page(findings_page([FOUND, FOUND])).levels == [1, *[2, *[3] * 6] * 2]
    assert page.all("html") == [{"lang": "en"}]
    named = {a["name"]: a["content"] for a in page.all("meta") if "name" in a}
    assert named["viewport"] == "width=device-width, initial-scale=1"
    assert problems(page.html) == []
    # Each chart says what it shows.
    charts = page.all("svg")
    titles = ["how fast", "where the time", "what happened"]
    for title, chart in zip(titles, charts, strict=True):
        assert chart["role"] == "img"
        assert title in chart["aria-label"]
        assert len(chart["aria-label"]) > 80


def test_every_number_is_in_a_table_with_named_rows_and_columns(page):
    assert {a["scope"] for a in page.all("th")} == {"row", "col"}
    named = [a["aria-label"] for a in page.all("div") if a.get("role") == "group"]
    assert len(list(filter(None, named))) == len(page.all("table"))
    for timing in FOUND.timings:
        for value in (timing.rate, timing.low, timing.high):
            assert units.significant(value) in page.text
    for compared in FOUND.comparisons:
        assert units.ratio(compared.ratio) in page.text
        assert compared.verdict in page.text


@pytest.mark.parametrize(
    "words",
    [
        "perfkit run data-pipeline --image-side=256 --augment --budget=60 --seed=7",
        "(perfkit 0.1.0)",
        "The baseline is naive.",
        "numba was not run: Numba is not installed.",
        "13 in 4 rounds: 12 completed, 1 crashed.",
        "95 % interval",
        "60 s for measuring",
        "no difference shown: if there is",
        "it is below 10 %",
        "parallel, round 4, crashed: it ran into a wall",
        "image_side 256",
        "images count 256",
        "tensorflow 2.21.0",
        "OMP_NUM_THREADS 2",
        "cores 2 of 8",
    ],
)
def test_it_says_how_it_was_measured(page, words):
    at(page, words)


def test_the_file_is_named_without_its_folder(tmp_path):
    path = store.save(finding(), tmp_path)
    html = findings_page([store.load(path)])
    assert path.name in html
    assert str(tmp_path) not in html
    # That of a long run stays small.
    names = ["naive", *(f"variant {n}" for n in range(15))]
    rates = {name: 1000.0 + 37 * n for n, name in enumerate(names)}
    assert len(findings_page([finding(rates, rounds=12)]).encode()) <= 200_000
