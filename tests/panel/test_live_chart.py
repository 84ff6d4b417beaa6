"""What a live chart is told of a run, and what of it travels to a page."""

from dataclasses import replace

import pytest

from perfkit.charts.layout import OWN
from perfkit.engine.measurement import CONTROL
from perfkit.engine.plan import Prepared, Sampled, Ticked, TrialStarted
from perfkit.panel.browser import PICTURE_S, WORDS_S, LiveChart, Points
from tests.findings import made
from tests.panel import runs

DOING = {"said": "Round 1: slow", "left": "7 s left", "share": 0.3}
VARIANTS = ("slow", "fast")
LOAD = {"cpu_trial": 1.0, "cpu_other": 0.5}


class Page:
    """A page that is told what the widget sends, as JupyterLab's would be."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        self.chart = LiveChart(clock=lambda: self.now)
        self.points = Points(VARIANTS, 2.0)
        self.states, self.found = [], None
        monkeypatch.setattr(self.chart, "_send", self.take)
        self.chart.begin(self.points, 10.0)

    def take(self, message, buffers=None):
        self.states.append(message["state"])

    def update(self, seconds):
        """Let so much of the run go by, and send what is new."""
        self.now += seconds
        self.points.hear(Sampled({"t": self.now - 100.0} | LOAD))
        self.chart.update(self.points, DOING, self.found)


@pytest.fixture
def page(monkeypatch):
    return Page(monkeypatch)


def test_what_is_done_goes_out_each_time_and_the_picture_once_a_second(page):
    assert page.states[-1].keys() == {"doing", "picture", "words"}
    page.states.clear()
    for _ in range(8):
        page.chart.doing = {}
        page.update(PICTURE_S / 4)
    assert len([state for state in page.states if state.get("doing") == DOING]) == 8
    assert sum("picture" in state for state in page.states) == 2
    assert not any("words" in state for state in page.states)
    # What was found is drawn at once.
    page.found = made.finding(runs.RATES, against="slow")
    page.states.clear()
    page.update(PICTURE_S / 10)
    assert "picture" in page.states[-1]


def test_every_few_seconds_all_that_is_shown_is_said(page):
    page.states.clear()
    while not any("words" in state for state in page.states):
        page.update(1.0)
    assert page.now - 100.0 == WORDS_S
    assert page.chart.words.startswith("Live chart. Round 1: slow, 7 s left.")
    # A page that is loaded again asks for the state, and is given all of it.
    state = page.chart.get_state()
    assert state["doing"] == DOING
    assert [row["name"] for row in state["picture"]["rows"]] == [*VARIANTS]
    assert state["picture"]["total"] == WORDS_S


def test_a_run_leaves_its_picture_and_the_next_begins_without_one(page):
    page.update(1.0)
    page.found = made.finding(runs.RATES, against="slow")
    page.chart.finish(page.points, "It is over", page.found)
    state = page.chart.get_state()
    assert (state["doing"], len(state["picture"]["rows"])) == ({}, 2)
    assert "It is over." in state["words"]
    page.chart.finish(page.points, "It is over", None)
    assert page.chart.picture == {}
    page.chart.begin(Points(["slow"], 2.0), 5.0)
    assert [row["name"] for row in page.chart.picture["rows"]] == ["slow"]
    assert page.chart.picture["total"] == 0


def heard(*events):
    points = Points(VARIANTS, 2.0)
    for event in events:
        points.hear(event)
    return points


BEGUN = TrialStarted("slow", 1, 0.0)
# 100 examples a second.
TICKED = Ticked("slow", ((1.0, 0), (1.1, 5), (1.2, 10)))


def test_the_strip_is_the_share_of_all_cores_that_the_run_and_others_had():
    busy = ({"cpu_trial": 1.0, "cpu_other": 0.5}, {"cpu_trial": 2.0, "cpu_other": 0.5})
    unknown = {"cpu_trial": None}
    samples = [
        Sampled({"t": float(at)} | cores)
        for at, cores in enumerate((*busy, unknown), start=1)
    ]
    points = heard(*samples)
    assert points.picture(None, 4.0)["strip"] == [(0.25, 0.5, 0.75), (0.5, 1.0, 1.0)]
    # Once it is over the clock ends with it.
    assert points.picture(None)["strip"][-1][0] == 1.0
    assert points.total == 3
    assert heard(*samples[:1]).picture(None)["strip"] == []


def test_the_picture_of_a_run_of_an_hour_is_small():
    points = heard()
    for number in range(5 * 3600):
        points.hear(Sampled({"t": number / 5} | LOAD))
    strip = points.picture(None, 3600.0)["strip"]
    assert 100 <= len(strip) <= 150
    assert strip[0][0] < 0.02
    assert strip[-1][0] > 0.97
    assert points.total == 5 * 3600


def test_before_the_first_interval_the_ticks_say_where_a_variant_stands():
    told = heard(BEGUN, TICKED, Ticked("slow", ((1.4, 20),)))
    slow, fast = told.picture(None)["rows"]
    assert (slow["words"][0], slow["known"]) == ("100", False)
    # What lies before a tick of no example is a pause, and no work.
    paused = heard(BEGUN, TICKED, Ticked("slow", ((9.0, 0), (9.1, 10))))
    assert paused.picture(None)["rows"][0]["words"][0] == "100"
    assert (fast["at"], fast["said"]) == (None, "fast: to come")
    # What was found so far is the picture.
    found = replace(made.finding(runs.RATES, against="slow"), unfinished=True)
    picture = heard().picture(found)
    assert [row["mark"] for row in picture["rows"]] == ["fastest", "baseline"]
    assert picture["said"] == "So far fast leads, 3.9 times as fast as slow."
    # What has still to come keeps its row.
    found = made.finding({"slow": 100.0}, against="slow")
    assert [row["name"] for row in heard().picture(found)["rows"]] == ["slow", "fast"]


def test_the_control_of_the_baseline_has_no_row():
    told = heard(
        TrialStarted(CONTROL, 1, 0.0), Ticked(CONTROL, ((1.0, 0), (1.1, 5), (1.2, 5)))
    )
    assert [row["name"] for row in told.picture(None)["rows"]] == ["slow", "fast"]


def test_a_microbenchmark_is_told_as_a_share_of_its_own_rate():
    notes = {"microbenchmarks": {name: {"unit": "B"} for name in VARIANTS}}
    picture = heard(Prepared(notes), BEGUN, TICKED).picture(None)
    assert picture["unit"] == OWN
    assert picture["rows"][0]["words"][0] == "100 B/s"
