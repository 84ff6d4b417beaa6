"""The widgets with which two machines are held against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from perfkit.panel.status import Status
from perfkit.panel.upload import Upload
from perfkit.panel.view import answer_at_once, button

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SIDES = ("A", "B")


class CompareView:
    """What a reader sees and presses.

    Attributes:
        pickers: The list of machines for ``"A"`` and that for ``"B"``.
        uploads: The button beside each that takes a file from elsewhere.
        compare: Holds the two against each other.
        refresh: Looks again which files there are.
        export: Makes a page of what is shown.
        status: What the panel does.
        found: The comparison, as HTML.
        box: All of it.
    """

    def __init__(self, heard: Callable[[str, str, float, bytes | None], None]) -> None:
        self.pickers = {side: _picker(side) for side in _SIDES}
        self.uploads = {side: _upload(side, heard) for side in _SIDES}
        self.compare = button("Compare", "Hold A and B against each other", "primary")
        self.refresh = button("Refresh", "Look again which files lie here")
        self.export = button("Export", "Make a page of the comparison that can be sent")
        self.status = Status()
        self.found = widgets.HTML()
        rows = [_row((self.pickers[side], self.uploads[side])) for side in _SIDES]
        self._buttons = (self.compare, self.refresh, self.export)
        parts = (*rows, _row(self._buttons), self.status.widget, self.found)
        self.found.add_class("perfkit-found")
        self.box = widgets.VBox(parts)
        self.box.add_class("perfkit-panel")
        self.can_export = False
        self.enable(running=False)

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.status.say(state)

    def offer(self, labels: Iterable[str]) -> None:
        """Offer these to be picked; what is picked stays."""
        options = tuple(labels)
        for picker in self.pickers.values():
            kept = picker.value
            picker.options = options
            picker.value = kept if kept in options else None

    def enable(self, *, running: bool) -> None:
        """Let pressed and changed be what has a meaning now."""
        pressed = (*self.pickers.values(), *self.uploads.values(), *self._buttons)
        for widget in pressed:
            widget.disabled = running
        self.export.disabled = running or not self.can_export
        answer_at_once(pressed)


def _picker(side: str) -> Any:
    return widgets.Dropdown(
        options=(),
        description=f"machine {side}",
        tooltip=f"The passport or finding of machine {side}",
        style={"description_width": "6em"},
        layout=widgets.Layout(width="40em", max_width="100%"),
    )


def _upload(side: str, heard: Callable[[str, str, float, bytes | None], None]) -> Any:
    return Upload(
        lambda name, size, data: heard(side, name, size, data),
        description=f"Upload {side}…",
        tooltip=f"Take a file from elsewhere for machine {side}",
    )


def _row(parts: Iterable[Any]) -> Any:
    row = widgets.Box(tuple(parts))
    row.add_class("perfkit-buttons")
    return row
