import numpy as np
import pytest

from perfkit.measure.plan import Progress
from perfkit.panel.live_chart import KEYFRAME_S, LiveChart, Points
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


def test_only_new_rows_travel(page):
    page.update(1.0)
    page.update(1.0)
    (first, [one]), (second, [other]) = page.custom
    assert (first["first"], second["first"]) == (0, 1)
    assert rows(one)[:, 0] == pytest.approx([1.0])
    assert rows(other)[:, 0] == pytest.approx([2.0])
    assert second["doing"] == DOING


def test_an_update_is_small_however_long_the_run(page):
    for _ in range(15):
        page.update(0.3)
    # The numbers of one row, and two hundred characters of what is being done.
    assert all(len(data) == 6 * 4 for _, [data] in page.custom)
    assert all(len(str(content)) < 200 for content, _ in page.custom)


def test_every_few_seconds_the_whole_chart_is_the_state(page):
    page.states.clear()
    while not page.states:
        page.update(1.0)
    (state,) = page.states
    assert page.now - 100.0 == KEYFRAME_S
    assert rows(state["frame"])[:, 0] == pytest.approx([1, 2, 3, 4, 5])
    assert (state["total"], state["doing"]) == (5, DOING)
    assert state["words"].startswith("Live chart. Round 1: slow, 7 s left. ")


def test_what_a_reloaded_page_is_given_holds_all_but_the_last_seconds(page):
    for _ in range(8):
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


def test_a_new_run_begins_with_an_empty_chart(page):
    for _ in range(6):
        page.update(1.0)
    page.chart.finish(page.points, "done", None)
    page.states.clear()
    page.chart.begin(Points(["slow"], 5.0, 2.0), ["slow"], 5.0)
    (state,) = page.states
    assert (state["frame"], state["total"], state["variants"]) == (b"", 0, ["slow"])


def test_a_run_that_is_over_leaves_all_its_points_and_nothing_being_done(page):
    for _ in range(3):
        page.update(1.0)
    page.chart.finish(page.points, "It is over", None)
    state = page.chart.get_state()
    assert len(rows(state["frame"])) == 3
    assert (state["doing"], state["span"]) == ({}, 0.0)
    # Nothing was found, so nothing is shown.
    assert (state["picture"], state["words"]) == ({}, "Live chart. It is over.")


def test_the_module_that_a_page_is_given_needs_no_network():
    module, style = LiveChart._esm, LiveChart._css
    assert "uPlot" in module
    assert "import " not in module.split("*/")[-1]
    assert "fetch(" not in module
    assert "url(" not in style
    assert "@import" not in style
