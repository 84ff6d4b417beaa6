"""The page of a finding."""

import pytest

from perfkit import units
from perfkit.export.page import compact, findings_page
from perfkit.findings import store
from perfkit.findings.record import Verdict
from tests.diagnosis.diagnosed import diagnosis
from tests.export.pages import Page, problems
from tests.findings.made import MACHINE, failed, finding

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


def test_headings_are_in_order(page):
    assert page.levels == [1, *[2] * 6]
    several = Page(findings_page([FOUND, FOUND]))
    assert several.levels == [1, *[2, *[3] * 6] * 2]


def test_the_language_the_policy_and_the_width_are_said(page):
    assert page.all("html") == [{"lang": "en"}]
    named = {a["name"]: a["content"] for a in page.all("meta") if "name" in a}
    assert named["viewport"] == "width=device-width, initial-scale=1"
    assert problems(page.html) == []


def test_each_chart_of_a_page_says_what_it_shows(page):
    charts = page.all("svg")
    # The first for much and for little room.
    titles = [*["how fast"] * 2, "where the time", "what happened"]
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
        f"differed by up to {units.percent(abs(FOUND.noise_floor - 1))}",
        "60 s for measuring",
        "no difference shown: neither is so",
        "larger than 10 %",
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


def test_turns_are_told_where_there_were_any(page):
    assert "one trial ran after the other" in page.text
    turns = [t.__class__(**vars(t) | {"turns": (0.1, 0.2)}) for t in FOUND.trials]
    told = Page(findings_page([finding(trials=tuple(turns))])).text
    assert f"{2 * len(turns)} turns in all" in told


def test_a_run_without_an_answer_says_so():
    nothing = finding({}, rounds=0, timings=(), comparisons=(), noise_floor=None)
    page = Page(findings_page([nothing]))
    at(page, "No variant could be timed.")
    at(page, "is not known: the run was too short")
    stopped = Page(findings_page([finding(stopped=True)]))
    at(stopped, "The run was stopped early: this is what was measured by then.")


def test_what_one_trial_does_not_show_is_not_shown():
    page = Page(findings_page([finding({"naive": 10.0}, rounds=1)]))
    at(page, "one trial")


def test_code_in_what_a_verdict_says_is_code():
    verdict = Verdict(headline="A.", because=("`b` is.",), next="Write `a = b < c`.")
    page = Page(findings_page([finding(verdict=verdict)]))
    assert {"a = b < c", "b"} <= set(page.words("code"))


@pytest.mark.parametrize(
    ("training", "command"),
    [
        ("train.py", "perfkit diagnose train.py --budget=120 --seed=3"),
        ("a.py:make", "perfkit diagnose a.py:make --budget=120 --seed=3"),
        ("make", "perfkit.diagnose(make, budget=120, seed=3)"),
    ],
)
def test_a_diagnosis_says_what_to_type_for_it(training, command):
    page = Page(findings_page([diagnosis(training=training, seed=3)]))
    assert command in page.words("code")


def test_what_was_switched_off_is_so_again():
    given = {"pinned": False, "both": True, "images": "", "side": 8}
    page = Page(findings_page([finding(parameters=given)]))
    at(page, "perfkit run data-pipeline --no-pinned --both --side=8 --budget=60")


def test_the_file_is_named_without_its_folder(tmp_path):
    path = store.save(finding(), tmp_path)
    html = findings_page([store.load(path)])
    assert path.name in html
    assert str(tmp_path) not in html


def test_a_page_of_a_long_run_stays_small():
    names = ["naive", *(f"variant {n}" for n in range(15))]
    rates = {name: 1000.0 + 37 * n for n, name in enumerate(names)}
    long = finding(rates, rounds=12)
    assert len(findings_page([long]).encode()) <= 200_000


HEAD = "<style>p {}\n</style>"


def mark(style, tag="path"):
    return f'<{tag} d="M 0 0" style="{style}"></{tag}>'


def test_a_style_that_is_used_often_is_said_once_the_most_used_first():
    html = compact(HEAD + 3 * mark("a:b") + 4 * mark("c:d") + mark("fill:blue"))
    assert html.count("a:b") == html.count("c:d") == 1
    assert ".d0 { c:d }\n.d1 { a:b }\n</style>" in html
    assert html.count('<path d="M 0 0" class="d1">') == 3
    assert mark("fill:blue") in html


@pytest.mark.parametrize(
    "body",
    [
        *(mark("fill:red", tag) for tag in ("p", "svg")),
        '<pre>&lt;path style="fill:red"&gt;</pre>',
        *map(mark, ("fill:red}", "a:url(&quot;b)", "\\3c")),
    ],
)
def test_only_plain_styles_of_drawings_are_touched(body):
    assert compact(HEAD + 3 * body) == HEAD + 3 * body
