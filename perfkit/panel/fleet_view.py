"""The widgets of a fleet's panel: what is asked, a row per machine, what came home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from perfkit.fleet import showing, telling
from perfkit.panel.status import Status
from perfkit.panel.view import answer_at_once, button

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfkit.fleet.outcome import Gathered
    from perfkit.fleet.row import Row


class FleetView:
    """What a reader sees and presses.

    Attributes:
        controls: What can be set, each a widget; ``"budget"`` is one of them.
        run: Asks the fleet.
        stop: Ends the run.
        status: What the panel does.
        rows: A row per machine while it runs, as HTML.
        found: The closing table and the findings, as HTML.
        box: All of it.
    """

    def __init__(self, controls: dict[str, Any]) -> None:
        self.controls = controls
        self.run = button("Run", "Ask every machine of the fleet", "primary")
        self.stop = button("Stop", "End the run and keep what comes home")
        self.status = Status()
        self.rows, self.found = widgets.HTML(), widgets.HTML()
        settings = widgets.Box(tuple(controls.values()))
        settings.add_class("perfkit-controls")
        row = widgets.Box((self.run, self.stop))
        row.add_class("perfkit-buttons")
        parts = (settings, row, self.status.widget, self.rows, self.found)
        self.box = widgets.VBox(parts)
        self.box.add_class("perfkit-panel")
        self.enable(running=False)

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.status.say(state)

    def enable(self, *, running: bool) -> None:
        """Let pressed and changed be what has a meaning now."""
        for widget in (*self.controls.values(), self.run):
            widget.disabled = running
        self.stop.disabled = not running
        answer_at_once((*self.controls.values(), self.run, self.stop))

    def draw(self, rows: Sequence[Row]) -> None:
        """Show how far each machine is."""
        self.rows.value = showing.rows_in_html(rows) if rows else ""
        if rows:
            self.say(f"Running: {telling.summary(rows)}.")

    def show(self, gathered: Gathered | None) -> None:
        """Show what came home, in place of the rows."""
        self.rows.value = ""
        self.found.value = showing.in_html(gathered) if gathered else ""
