"""Whether a class without fast machines can read along, offline."""

import datetime
import socket
from functools import cache

import pytest

import perfkit
from benchmarks.record import Asked, questions
from perfkit.errors import MissingPartError
from perfkit.findings.page import export
from perfkit.questions.gallery import kinds
from perfkit.questions.replay import BROUGHT
from tests.findings.page.pages import assert_stamped, problems
from tests.findings.test_report import words_in_sight
from tests.questions.races import slips

ASKED = questions()
MOST_WORDS, LARGEST_PAGE = 60, 120_000


@cache
def recorded(name):
    return perfkit.load(BROUGHT / f"{name}.json")


def ask(what, folder):
    if isinstance(what, Asked):
        shown = what.run(folder=folder)
        return getattr(shown, "race", shown)
    run = perfkit.run if isinstance(what, perfkit.Experiment) else perfkit.diagnose
    return run(what, folder=folder)


@pytest.mark.parametrize("name", ASKED)
def test_what_a_notebook_asks_has_a_recording_that_says_so(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PERFKIT_REPLAY", "1")
    monkeypatch.setattr(socket, "socket", None)
    is_profile = name.startswith("profile-")
    shown = ASKED[name].run() if is_profile else ask(ASKED[name], folder=tmp_path)
    assert shown.replayed
    assert shown.recorded == recorded(name).recorded
    assert datetime.datetime.fromisoformat(shown.recorded).tzinfo
    known = getattr(shown, "finding", shown)
    assert known.stamp in repr(shown)
    assert known.stamp in shown._repr_html_()
    if is_profile:
        assert shown.table
        assert len(shown.input_stages())
        # Who wants a run all the same gets one of the code as it is now.
        other = Asked("profile", (lambda: None,))
        with pytest.raises(MissingPartError, match="holds no profile of"):
            other.run(replay="1")
        return
    assert known.machine.cpu in known.stamp == shown.verdict.stamp
    if name.startswith("lines-"):
        assert shown.lines
        return
    assert not known.ended_early
    assert known.timings
    page = export(shown, tmp_path / "x.html").read_text(encoding="utf-8")
    assert_stamped(page, known.stamp, charts=len(kinds(shown).keys() - {"ratios"}))
    assert problems(page) == []
    assert len(page.encode()) <= LARGEST_PAGE
    assert len(words_in_sight(shown.report)) <= MOST_WORDS
    assert slips(known, shown.verdict) == []


def test_nothing_is_brought_along_that_no_notebook_asks_and_it_is_not_much():
    files = list(BROUGHT.glob("*"))
    assert {path.stem for path in files} == set(ASKED)
    assert sum(path.stat().st_size for path in files) < 3e6
