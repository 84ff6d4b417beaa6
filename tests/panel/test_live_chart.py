"""What a live chart is told of a run, and what of it travels to a page."""

import math
from dataclasses import replace

import numpy as np
import pytest

from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.engine.plan import (
    Prepared,
    Progress,
    Sampled,
    Ticked,
    TrialEnded,
    TrialStarted,
)
from perfkit.panel.live_chart import CAPACITY, KEYFRAME_S, LiveChart, Points
from tests.findings import made
from tests.panel import runs

DOING = {"said": "Round 1: slow", "left": "7 s left", "share": 0.3}


class Page:
    """A page that is told what the widget sends, as JupyterLab's would be."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        self.chart = LiveChart(clock=lambda: self.now)
        self.points = Points(["slow", "fast"], 10.0, 2.0)
        self.custom, self.states, self.found = [], [], None
        monkeypatch.setattr(self.chart, "_send", self.take)
        self.chart.begin(self.points, ["slow", "fast"], 10.0)

    def take(self, message, buffers=None):
        if message["method"] == "custom":
            self.custom.append((message["content"], buffers))
        else:
            binary = zip(message["buffer_paths"], buffers or (), strict=True)
            self.states.append(message["state"] | {path[0]: b for path, b in binary})

    def update(self, seconds):
        """Let so much of the run go by, and send what is new."""
        self.now += seconds
        self.points.hear(Progress(self.now - 100.0, 10.0))
        self.chart.update(self.points, DOING, self.found)


@pytest.fixture
def page(monkeypatch):
    return Page(monkeypatch)


def rows(data, width=6):
    return np.frombuffer(data, np.float32).reshape(-1, width)


def test_only_new_rows_travel_and_an_update_is_small_however_long_the_run(page):
    for _ in range(4):
        page.update(1.0)
    for number, (content, [data]) in enumerate(page.custom):
        assert (content["first"], content["doing"]) == (number, DOING)
        assert rows(data)[:, 0] == pytest.approx([number + 1])
    for _ in range(20):
        page.update(1.0)
    # The numbers of one row, and two hundred characters of what is being done.
    assert all(len(data) == 6 * 4 for _, [data] in page.custom)
    assert all(len(str(content)) < 200 for content, _ in page.custom)


def test_every_few_seconds_the_whole_chart_is_what_a_reloaded_page_is_given(page):
    page.states.clear()
    while not page.states:
        page.update(1.0)
    (state,) = page.states
    assert page.now - 100.0 == KEYFRAME_S
    assert rows(state["frame"])[:, 0] == pytest.approx([1, 2, 3, 4, 5])
    assert (state["total"], state["doing"]) == (5, DOING)
    for _ in range(3):
        page.update(1.0)
    state = page.chart.get_state()
    assert rows(state["frame"])[:, 0] == pytest.approx([1, 2, 3, 4, 5])
    # It then hears of row 8 on, and knows that it lacks some until the next keyframe.
    assert page.custom[-1][0]["first"] == 7 > state["total"]


def test_a_run_leaves_all_its_points_and_the_next_begins_with_none(page):
    for _ in range(3):
        page.update(1.0)
    page.chart.finish(page.points, "It is over", None)
    state = page.chart.get_state()
    assert len(rows(state["frame"])) == 3
    assert (state["doing"], state["span"]) == ({}, 0.0)
    page.states.clear()
    page.chart.begin(Points(["slow"], 5.0, 2.0), ["slow"], 5.0)
    (state,) = page.states
    assert (state["frame"], state["total"], state["variants"]) == (b"", 0, ["slow"])


VARIANTS = ("slow", "fast")


def points(**more):
    return Points(VARIANTS, **{"budget": 10, "cores": 2.0} | more)


def heard(*events, **more):
    told = points(**more)
    for event in events:
        told.hear(event)
    return told


BEGUN = TrialStarted("slow", 1, 0.0)
# 100 examples a second.
TICKED = Ticked("slow", ((1.0, 0), (1.1, 5), (1.2, 10)))


@pytest.mark.parametrize(
    ("events", "gpus", "row"),
    [
        # Ready at 1 s; the first tick compiles; then 30 examples in 0.5 s.
        ([BEGUN, Ticked("slow", ((1.0, 0), (1.4, 10), (1.6, 10), (1.9, 20)))], 0,
         {"at": 1.9, "slow": 30 / 0.5, "fast": math.nan}),
        # It stood still until 5 s, and the first entry of its turn says so.
        ([BEGUN, TICKED, Ticked("slow", ((5.0, 0), (5.2, 10)))], 0,
         {"slow": 20 / 0.3}),
        # Load is a share of the cores, and its mean since the last row.
        ([Sampled({"t": 0.2, "cpu_trial": 1.0, "cpu_other": 0.5}),
          Sampled({"t": 0.4, "cpu_trial": 2.0, "cpu_other": 0.5}), Progress(0.5, 10)],
         0, {"this training": 0.75, "other programs": 0.25,
             "the machine's speed": math.nan}),
        # GPUs have a line where there are some.
        ([Sampled({"t": 0.2, "gpu0_busy": 0.5, "gpu1_busy": 0.7}), Progress(0.5, 10)],
         2, {"GPU busy": 0.6}),
    ],
    ids=["ticks", "turns", "load", "GPUs"],
)  # fmt: skip
def test_a_row_holds_rates_between_ticks_and_the_mean_load(events, gpus, row):
    told = heard(*events, gpus=gpus)
    (values,) = told.take()
    found = dict(zip(("at", *VARIANTS, *told.load), values, strict=True))
    assert {name: found[name] for name in row} == pytest.approx(row, nan_ok=True)
    assert ("GPU busy" in found) == bool(gpus)


def test_each_row_holds_what_happened_since_the_row_before():
    told = heard(TrialStarted("fast", 1, 0.0), Ticked("fast", ((1.0, 0), (1.1, 1))))
    told.hear(Ticked("fast", ((1.3, 20),)))
    told.take()
    told.hear(Ticked("fast", ((1.8, 100),)))
    assert told.take()[0][2] == pytest.approx(200)
    # The machine's speed is a share of the best seen.
    told = points()
    for at, core_speed in ((0.3, 100.0), (0.6, 200.0), (0.9, 50.0)):
        told.hear(Sampled({"t": at, "core_speed": core_speed}))
        told.hear(Progress(at, 10))
        told.take()
    assert told.all()[:, 5] == pytest.approx([0.5, 1.0, 0.25])


def test_a_run_of_an_hour_makes_a_few_hundred_rows():
    told = points(budget=3600)
    for second in range(3600):
        told.hear(Progress(second, 3600))
        told.take()
    assert 150 <= told.total == len(told.all()) <= CAPACITY


def test_before_the_first_interval_the_ticks_say_where_a_variant_stands():
    told = heard(BEGUN, TICKED)
    told.take()
    told.hear(Ticked("slow", ((1.4, 20),)))
    slow, fast = told.picture(None)["rows"]
    assert (slow["words"][0], slow["known"]) == ("100", False)
    assert (fast["at"], fast["said"]) == (None, "fast is to come")
    # What was found so far is the picture.
    found = replace(made.finding(runs.RATES, against="slow"), unfinished=True)
    picture = heard().picture(found)
    assert [row["mark"] for row in picture["rows"]] == ["fastest", "baseline"]
    assert picture["said"] == "So far fast leads, 3.9 times as fast as slow."
    # What has still to come keeps its row.
    found = made.finding({"slow": 100.0}, against="slow")
    assert [row["name"] for row in heard().picture(found)["rows"]] == ["slow", "fast"]


def test_the_control_of_the_baseline_has_no_line():
    ended = Measurement(variants=(Variant("slow", iter),))
    told = heard(
        TrialStarted(CONTROL, 1, 0.0),
        Ticked(CONTROL, ((1.0, 0), (1.1, 5), (1.2, 5))),
        TrialEnded(made.trial(CONTROL, 100.0), ended),
    )
    assert all(math.isnan(value) for value in told.take()[0][1:3])
    assert [row["name"] for row in told.picture(None)["rows"]] == ["slow", "fast"]


def test_a_microbenchmark_is_told_as_a_share_of_its_own_rate():
    notes = {"microbenchmarks": {name: {"unit": "B"} for name in VARIANTS}}
    told = heard(Prepared(notes), BEGUN, TICKED)
    # Its first rate stands for its own until there is an interval.
    assert told.take()[0][1] == pytest.approx(1.0)
    told.hear(Ticked("slow", ((1.7, 25),)))
    assert told.take()[0][1] == pytest.approx(0.5)
    measured = runs.measured()
    told.hear(TrialEnded(measured.trials[0], measured))
    timing = measured.timing("slow")
    rates = [row[1] for row in told.all()]
    assert rates == pytest.approx([100 / timing.rate, 50 / timing.rate])
    assert told.picture(None)["rows"][0]["words"][0] == "58.3 B/s"
