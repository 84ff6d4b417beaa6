"""The widgets of a panel and how they lie on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from perfkit.panel import page
from perfkit.panel.live_chart import LiveChart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perfkit.findings.record import Finding
    from perfkit.panel.controls import Controls


class View:
    """What a reader sees and presses.

    Attributes:
        run: Starts a run.
        stop: Ends it.
        save: Writes the finding's file again.
        export: Makes a page of the finding.
        chart: The live chart, with the state of the panel on top.
        card: The verdict, as HTML.
        charts: The final charts, as HTML.
        box: All of it.
    """

    def __init__(self, controls: Controls) -> None:
        self._controls = controls
        self._display: Any = None
        self.run = button("Run", "Measure with what is set", "primary")
        self.stop = button("Stop", "End the run and keep what was measured")
        self.save = button("Save", "Write the finding to its file again")
        self.export = button("Export", "Make a page of the finding that can be sent")
        self.chart = LiveChart()
        self.card, self.charts = widgets.HTML(), widgets.HTML()
        self._buttons = (self.run, self.stop, self.save, self.export)
        row = widgets.Box(self._buttons)
        row.add_class("perfkit-buttons")
        parts = (controls.box(), row, self.chart, self.card, self.charts)
        self.box = widgets.VBox(parts)
        self.box.add_class("perfkit-panel")
        self.enable(running=False, found=False)

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.chart.state = state

    def enable(self, *, running: bool, found: bool) -> None:
        """Let pressed and changed be what has a meaning now."""
        self._controls.enable(enabled=not running)
        self.run.disabled = running
        self.stop.disabled = not running
        self.save.disabled = self.export.disabled = running or not found
        self._answer_at_once()

    def clear(self) -> None:
        """Take away what an earlier run found."""
        self.card.value = self.charts.value = ""

    def show(self, finding: Finding) -> None:
        """Show what was found: the verdict at once, then its charts."""
        self.card.value = finding._repr_html_()
        self.charts.value = page.charts(finding)

    def display(self, static: str, text: str) -> None:
        """Show the panel as output of the running cell.

        Args:
            static: HTML for where there are no widgets.
            text: The same for where there is no HTML.
        """
        from IPython.display import display

        bundle = self._bundle(static, text)
        self._display = display(  # type: ignore[no-untyped-call]
            bundle, raw=True, display_id=True
        )
        self._answer_at_once()

    def replace_static(self, static: str, text: str) -> None:
        """Give the output that is shown already another HTML and text."""
        if self._display is not None:
            self._display.update(self._bundle(static, text), raw=True)

    def _bundle(self, static: str, text: str) -> dict[str, Any]:
        widget = self.box._repr_mimebundle_()
        return {**widget, "text/html": static, "text/plain": text}

    def _answer_at_once(self) -> None:
        answer_at_once((*self._buttons, *self._controls.by_name.values()))


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
