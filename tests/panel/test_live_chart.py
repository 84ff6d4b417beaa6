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
    page.update(1.0)
    page.update(1.0)
    (first, [one]), (second, [other]) = page.custom
    assert (first["first"], second["first"]) == (0, 1)
    assert rows(one)[:, 0] == pytest.approx([1.0])
    assert rows(other)[:, 0] == pytest.approx([2.0])
    assert second["doing"] == DOING
    for _ in range(13):
        page.update(0.3)
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
    assert state["words"].startswith("Live chart. Round 1: slow, 7 s left. ")
    for _ in range(3):
        page.update(1.0)
    state = page.chart.get_state()
    assert rows(state["frame"])[:, 0] == pytest.approx([1, 2, 3, 4, 5])
    assert state["variants"] == ["slow", "fast"]
    # It then hears of row 8 on, and knows that it lacks some until the next keyframe.
    assert page.custom[-1][0]["first"] == 7 > state["total"]


def test_the_picture_travels_when_it_has_changed(page):
    page.update(1.0)
    page.states.clear()
    page.found = made.finding(runs.RATES, against="slow")
    page.update(1.0)
    page.update(1.0)
    (state,) = page.states
    rows = state["picture"]["rows"]
    assert [row["name"] for row in rows] == ["fast", "slow"]
    # It is the state of a page that is opened later, and all of it in words.
    page.update(KEYFRAME_S)
    assert page.chart.get_state()["picture"]["rows"] == rows
    assert "fast: 393 examples/s (380 to 407)" in page.states[-1]["words"]


def test_a_run_leaves_all_its_points_and_the_next_begins_with_none(page):
    for _ in range(3):
        page.update(1.0)
    page.chart.finish(page.points, "It is over", None)
    state = page.chart.get_state()
    assert len(rows(state["frame"])) == 3
    assert (state["doing"], state["span"]) == ({}, 0.0)
    # Nothing was found, so nothing is shown.
    assert (state["picture"], state["words"]) == ({}, "Live chart. It is over.")
    page.states.clear()
    page.chart.begin(Points(["slow"], 5.0, 2.0), ["slow"], 5.0)
    (state,) = page.states
    assert (state["frame"], state["total"], state["variants"]) == (b"", 0, ["slow"])


def test_the_module_that_a_page_is_given_needs_no_network():
    module, style = LiveChart._esm, LiveChart._css
    assert "uPlot" in module
    assert "import " not in module.split("*/")[-1]
    assert "fetch(" not in module
    assert "url(" not in style
    assert "@import" not in style


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
    assert told.total == 2
    # The machine's speed is a share of the best seen.
    told = points()
    speeds = []
    for at, core_speed in ((0.3, 100.0), (0.6, 200.0), (0.9, 50.0)):
        told.hear(Sampled({"t": at, "core_speed": core_speed}))
        told.hear(Progress(at, 10))
        speeds.append(told.take()[0][5])
    assert speeds == pytest.approx([1.0, 1.0, 0.25])
    assert told.all()[:, 5] == pytest.approx([0.5, 1.0, 0.25])


def test_no_row_is_made_before_its_time_but_of_what_is_left_at_the_end():
    told, made = points(), []
    for at in (0.3, 0.4, 0.6):
        told.hear(Progress(at, 10))
        made.append(len(told.take()))
    assert made == [1, 0, 1]
    told.hear(Sampled({"t": 0.65, "cpu_trial": 1.0}))
    told.hear(Progress(0.65, 10))
    assert len(told.take()) == 0
    assert [len(told.take(partial=True)) for _ in "ab"] == [1, 0]


@pytest.mark.parametrize("budget", [60, 3600])
def test_a_run_of_any_length_makes_a_few_hundred_rows(budget):
    told = points(budget=budget)
    rows = 0
    for tenth in range(budget * 10):
        told.hear(Progress(tenth / 10, budget))
        rows += len(told.take())
    assert 150 <= rows <= CAPACITY
    assert rows == told.total == len(told.all())


def test_before_the_first_interval_the_ticks_say_where_a_variant_stands():
    told = heard(BEGUN, TICKED)
    told.take()
    told.hear(Ticked("slow", ((1.4, 20),)))
    picture = told.picture(None)
    slow, fast = picture["rows"]
    assert (slow["words"][0], slow["known"]) == ("100", False)
    assert (fast["at"], fast["said"]) == (None, "fast is to come")
    assert "Hollow dots" in picture["said"]
    # What was found so far is the picture.
    found = replace(made.finding(runs.RATES, against="slow"), unfinished=True)
    picture = heard().picture(found)
    assert [row["name"] for row in picture["rows"]] == ["fast", "slow"]
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
    row = told.take()[0]
    assert len(row) == told.width == 1 + 2 + 3
    assert all(math.isnan(value) for value in row[1:3])
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
    picture = told.picture(None)
    assert picture["unit"] == "of its own rate"
    assert picture["rows"][0]["words"][0] == "58.3 B/s"
    # Examples are told as they are.
    told = heard(Prepared({"images": {}})).picture(None)
    assert told["unit"] == "examples per second"
