"""The widgets of a panel and how they lie on the page."""

from __future__ import annotations

import time
from contextlib import closing
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from perfkit import units
from perfkit.displays import PERIOD_S, Display
from perfkit.experiments.replay import Replay
from perfkit.findings.report import in_html
from perfkit.panel.live_chart import LiveChart, Points
from perfkit.progress import Board

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from perfkit.experiments.session import Session
    from perfkit.findings.record import Finding
    from perfkit.findings.store import Recorded
    from perfkit.panel.controls import Controls


def charts(finding: Recorded) -> str:
    """The final charts: the first in sight, what explains it folded away below."""
    from perfkit.gallery import chart, kinds

    first, *others = kinds(finding).items()
    folded = (
        f"<details><summary>{title}</summary>{chart(finding, kind).in_page()}</details>"
        for kind, title in others
    )
    return chart(finding, first[0]).in_page() + "".join(folded)


def answered(finding: Recorded) -> str:
    """What a panel shows of a finding: its report, with its charts."""
    return in_html(finding.report, figure=charts(finding))


def twin(
    question: str, settings: Iterable[tuple[str, str]], finding: Finding | None
) -> str:
    """What stands for a panel without a kernel: its finding, or its settings."""
    if finding is not None:
        from perfkit.gallery import chart

        return in_html(finding.report, figure=chart(finding).in_page())
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th><td>{escape(text)}</td></tr>'
        for label, text in settings
    )
    return (
        f"<p><b>{escape(question)}</b></p><p>{no_run('perfkit.run')} "
        f"The panel is set to:</p><table>{rows}</table>"
    )


def no_run(verb: str) -> str:
    """What to do where no panel is seen: on a page, or on a server without widgets.

    Args:
        verb: What does the same without a panel, such as ``"perfkit.run"``.
    """
    return (
        "No run yet. Run this notebook in JupyterLab, Jupyter Notebook or VS Code to "
        f"use the panel; where it does not appear, <code>{verb}(...)</code> does the "
        "same."
    )


class Status(Display):
    """A sentence and, while something is measured, how far it is.

    Attributes:
        widget: What is shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self.widget = LiveChart()
        self._spent: Callable[[], float] = float
        self._budget = 0.0

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.widget.state = state

    def begin(self, budget: float, spent: Callable[[], float]) -> None:
        """Count seconds from now on; ``spent`` says how many of the budget are gone."""
        self._budget, self._spent = budget, spent

    def end(self) -> None:
        """Take the bar away."""
        self.widget.doing = {}

    def _draw(self, board: Board) -> None:
        spent = self._spent()
        left = units.seconds(float(max(0, round(self._budget - spent))))
        self.widget.doing = {
            "said": board.doing,
            "left": f"{left} left",
            "share": min(1.0, spent / self._budget),
        }


NOTHING = "Stopped before any trial ended: there is nothing to keep."


def watch(session: Session | Replay, chart: LiveChart, budget: float) -> None:
    """Run a session to its end, and draw it at most four times a second.

    Raises:
        RunError: Preparing failed, or no trial could be started.
    """
    here, chosen = session.machine, session.experiment
    # A recorded run is told at once: nothing of it is drawn before it is over.
    told = isinstance(session, Replay)
    budget = session.budget if isinstance(session, Replay) else budget
    variants = [arm.name for arm in chosen.variants().values()]
    points = Points(variants, budget, here.cores_granted, len(here.gpus))
    board, drawn = Board(), 0.0
    chart.begin(points, variants, budget)
    try:
        with closing(session.events()) as events:
            for event in events:
                board.hear(event)
                points.hear(event)
                if told:
                    points.take()
                elif time.monotonic() - drawn >= PERIOD_S:
                    drawn = time.monotonic()
                    chart.update(points, doing(board), session.finding)
    finally:
        chart.finish(points, board.doing, session.finding)


def doing(board: Board) -> dict[str, Any]:
    """What is being done, how far it is and what is left."""
    return {"said": board.doing, "left": board.left, "share": board.share}


class View:
    """What a reader sees and presses.

    Attributes:
        run: Starts a run.
        stop: Ends it.
        save: Writes the finding's file again.
        export: Makes a page of the finding.
        chart: The live chart, with the state of the panel on top.
        card: The report with its charts, as HTML.
        box: All of it.
    """

    def __init__(self, controls: Controls) -> None:
        self._controls = controls
        self.run = button("Run", "Measure with what is set", "primary")
        self.stop = button("Stop", "End the run and keep what was measured")
        self.save = button("Save", "Write the finding to its file again")
        self.export = button("Export", "Make a page of the finding that can be sent")
        self.chart = LiveChart()
        self.card = widgets.HTML()
        self._buttons = (self.run, self.stop, self.save, self.export)
        row = widgets.Box(self._buttons)
        row.add_class("perfkit-buttons")
        parts = (controls.box(), row, self.chart, self.card)
        self.box = widgets.VBox(parts)
        self.box.add_class("perfkit-panel")
        self.enable(running=False)

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.chart.state = state

    def enable(self, *, running: bool) -> None:
        """Let pressed and changed be what has a meaning now."""
        self._controls.enable(enabled=not running)
        self.run.disabled = running
        self.stop.disabled = not running
        self.save.disabled = self.export.disabled = running or not self.card.value
        answer_at_once((*self._buttons, *self._controls.by_name.values()))

    def clear(self) -> None:
        """Take away what an earlier run found."""
        self.card.value = ""

    def show(self, finding: Finding) -> None:
        """Show what was found."""
        self.card.value = answered(finding)


def answer_at_once(pressed: Iterable[Any]) -> None:
    """Let a press be heard while a cell runs.

    From 7.4 on ipykernel sends what comes from a widget to the shell that last changed
    it: that of the cell, behind which it waits. Without that note it goes to the shell
    that JupyterLab has for widgets.
    """
    for widget in pressed:
        if widget.comm is not None:
            vars(widget.comm).pop("_reply_subshell_id", None)


def button(label: str, tooltip: str, style: str = "") -> Any:
    """A button with a label, a tooltip and, if it is the first one, a style."""
    layout = widgets.Layout(width="7.5em")
    told = {"description": label, "tooltip": tooltip}
    return widgets.Button(**told, button_style=style, layout=layout)
