"""What a person reads of an account."""

import re
from dataclasses import replace

import pytest

from perfkit.findings.account_report import remarks, verdict
from perfkit.findings.report import in_text
from tests.findings.page.pages import POLICY, Page
from tests.training.account.accounts import GROWTH, HOT, account, line, whole


def test_the_best_tip_is_the_answer_and_no_gain_is_claimed():
    said = verdict(whole())
    assert said.headline == "Read each file once."
    assert said.much == "The model waits for files."
    assert (said.sure, said.interval) == ("profiled", "30 s")
    assert said.next.splitlines() == [
        "Try: `model(x)`.",
        "Then: Save less often (10 %).",
        "What that brings is not measured: `perfkit diagnose` does.",
    ]
    assert said.warnings[0] == "It returns a tensor."


def test_without_a_tip_the_hottest_line_is_named():
    said = verdict(account(line(7, computing=6.0), line(8, input=3.0)))
    assert said.headline == "60 % of the time is computed for train.py, line 7."
    assert said.much.startswith("No change that people usually make fits")
    assert said.sure == "profiled"
    assert said.edits == ()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("computing", "is computed for"),
        ("input", "the model waits for the input in"),
        ("python", "is Python in"),
        ("set_up", "is setting up and tracing in"),
        ("waiting", "is spent waiting in"),
    ],
)
def test_each_kind_of_time_has_its_words(kind, words):
    said = verdict(account(line(7, **{kind: 6.0})))
    assert said.headline == f"60 % of the time {words} train.py, line 7."


def test_where_nothing_was_seen_that_is_the_answer():
    said = verdict(account(elsewhere_s=0.0))
    assert said.headline == "No line of this script was seen at work."
    assert said.sure == "not known yet"
    assert said.next


def test_no_line_is_named_where_only_the_set_up_was_seen():
    said = verdict(account(line(7), elsewhere_s=0.0, once_s=26.0))
    assert said.headline == "Nothing but the set-up of this script was seen."
    assert said.much.startswith("26 s went into imports")
    assert said.sure == "not known yet"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"error": "ValueError: lost"}, "The script raised ValueError: lost; this is"),
        ({"updates": 0}, "No training was seen in this time"),
        ({"updates": 1}, "Only 1 step ran in this time"),
        ({"updates": 7}, "Only 7 steps ran in this time"),
        ({"untraced": "Another profiler runs."}, "Another profiler runs."),
        ({"uncontained": "It may write files."}, "It may write files."),
    ],
)
def test_what_a_reader_must_know_is_a_warning(fields, said):
    (warning,) = verdict(account(HOT, **fields)).warnings
    assert warning.startswith(said)
    assert verdict(account(HOT)).warnings == ()
    assert verdict(account(HOT, updates=7, ended=True)).warnings == ()


def test_the_places_are_told_in_words():
    assert line(7).where == "train.py, line 7"
    assert line(7, file="").where == "cell, line 7"
    assert line(2, file="lab.ipynb", cell=3).where == "lab.ipynb, code cell 3, line 2"


def test_what_was_seen_on_a_line_is_said_in_a_few_words():
    made = whole()
    assert [*remarks(made, HOT)] == [
        "300 calls of predict, 16.7 ms each",
        "the step of `predict` traced 9 times, 333 ms each",
        "8 in, 1 out",
    ]
    optimizer, hidden = made.lines[-2:]
    assert [*remarks(made, optimizer)] == [
        "900 operations a step, 67 % of it starting them",
        "updates up to 200,000 weights in each step",
    ]
    assert [*remarks(made, hidden)] == ["another 4 s of its work delayed no step"]
    single = line(python=5.0, calls=[("fit", 1, 5.0)])
    assert [*remarks(account(single), single)] == []


def test_lines_stand_in_the_order_of_the_source_with_those_around():
    rows = whole().report.listing.rows
    assert rows[0].heading == "train.py"
    numbers = [row.number for row in rows[1:]]
    assert numbers == sorted(numbers)
    assert numbers[:2] == [11, 12]
    context, hot = rows[1:3]
    assert (context.share, context.code, context.strong) == (None, "# Fit it.", False)
    assert hot.share == pytest.approx(sum(hot.kinds))
    assert hot.strong
    assert "300 calls of predict" in hot.remark


def test_what_takes_little_is_folded():
    made = account(line(7, python=9.8), line(8, python=0.05), line(9, python=0.05))
    assert made.report.listing.folded == "2 lines with less than 1 %, 1.0 % together"
    assert account(line(7, python=9.8)).report.listing.folded == ""


def test_a_cell_of_a_notebook_has_a_heading_of_its_own():
    first = line(2, file="lab.ipynb", cell=3, python=6.0, code="fit()")
    other = line(2, file="lab.ipynb", cell=1, python=3.0, code="data()")
    rows = account(first, other).report.listing.rows
    headings = [row.heading for row in rows if row.heading]
    assert headings == ["lab.ipynb, cell 3", "lab.ipynb, cell 1"]


def listed(text):
    """The rows of a listing in a text: share, kind, number, code."""
    return re.findall(r"^ *([\d.]+ %)  (\S+) +(\d+)  (.*?) *$", text, re.M)


def test_a_text_shows_the_eight_lines_that_take_most():
    made = whole()
    rows = listed(in_text(made.report))
    assert len(rows) == 8
    taking = sorted((one for one in made.lines), key=lambda one: -one.total_s)[:8]
    assert [int(number) for _, _, number, _ in rows] == sorted(o.line for o in taking)
    assert rows[0][1] == "set-up"
    # All of it where that is asked for.
    shown = [one for one in made.lines if made.share(one.total_s) >= 0.01]
    assert len(listed(in_text(made.report, in_full=True))) == len(shown)


def test_lines_of_the_same_share_are_not_more_than_eight_either():
    made = account(*(line(n, python=0.5, code=f"f{n}()") for n in range(1, 13)))
    assert len(listed(in_text(made.report))) == 8


def test_a_listing_is_a_table_that_a_screen_reader_can_read():
    page = Page(POLICY + whole()._repr_html_())
    of = [(tag, a) for tag, a in page.elements]
    headings = [a.get("scope") for tag, a in of if tag == "th"]
    assert headings[:4] == ["col"] * 4
    assert "rowgroup" in headings
    bars = [a for tag, a in of if "perfkit-bar" in (a.get("class") or "")]
    assert bars
    assert all(a["role"] == "img" and a["aria-label"] for a in bars)
    assert "set-up 40 %" in bars[0]["aria-label"]
    (group,) = [a for _, a in of if "perfkit-src" in (a.get("class") or "")]
    assert group["role"] == "group"
    assert group["tabindex"] == "0"
    assert group["aria-label"]


def test_the_folds_hold_every_line_every_tip_and_every_stage():
    made = whole()
    tables = {t.title: t for fold in made.report.filled for t in fold.tables}
    assert len(tables["Every line, in numbers"].rows) == len(made.lines) + 1
    assert len(tables["What people do about these lines"].rows) == 2
    assert tables["Elements in the traced seconds"].rows == (
        ("Filter", "train.py, line 12", "800", "100"),
        ("Range", "a library", "", "800"),
    )
    # Shares of the lines and of what none explains are all there is.
    shares = [
        float(row[1].rstrip(" %")) for row in tables["Every line, in numbers"].rows
    ]
    assert sum(shares) == pytest.approx(100, abs=1.5)


def test_a_report_says_what_was_done_once_and_how_to_repeat_it():
    report = whole().report
    once, epochs, _ = report.besides
    assert "4 s of imports" in once
    assert epochs == "3 epochs ended: the first took 9 s, later ones 3 s."
    assert report.repeat == "Repeat it: `perfkit lines train.py`."


@pytest.mark.parametrize(
    ("fields", "sentences"),
    [
        (
            {},
            "Memory grows by 5 MB (4.6 MB to 5.4 MB) with each epoch, 50 MB so far. "
            "Keep no tensors in a list, a callback or a global: keep `float(loss)`.",
        ),
        (
            {"unit": "fit", "kept": "models", "line": 0},
            "Memory grows by 5 MB (4.6 MB to 5.4 MB) with each `fit`, 50 MB so far. "
            "train.py, line 12 makes a model each time, and the one before stays. Make "
            "the model once and give it its first weights again (`set_weights`); "
            "`keras.backend.clear_session()` before the next gives back a part.",
        ),
        (
            {"unit": "train_on_batch", "low": 5.02e6, "high": 5.02e6},
            "Memory grows by 5 MB with every 100 calls of `train_on_batch`, 50 MB so "
            "far. Keep no tensors in a list, a callback or a global: keep "
            "`float(loss)`.",
        ),
    ],
)
def test_growing_memory_is_told_with_its_interval_and_what_to_do(fields, sentences):
    made = account(HOT, growth=replace(GROWTH, **fields))
    assert made.report.besides[-1] == sentences
    # It is not what slows the training.
    assert made.verdict == account(HOT).verdict
