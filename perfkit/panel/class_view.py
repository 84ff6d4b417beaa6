"""The widgets with which a folder of passports is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from perfkit.panel.status import Status
from perfkit.panel.view import answer_at_once, button

if TYPE_CHECKING:
    from collections.abc import Iterable

_LABEL = {"description_width": "8em"}
_WIDTH = "40em"


class ClassView:
    """What a reader sees and presses.

    Attributes:
        folder: Where the passports lie.
        you: Which machine is the reader's own.
        show: Reads the folder.
        export: Makes a page of what is shown.
        status: What the panel does.
        told: Who cannot run which notebook, as HTML.
        found: The picture and the tables, as HTML.
        box: All of it.
    """

    def __init__(self, folder: str) -> None:
        self.folder = widgets.Text(
            value=folder,
            placeholder="a path",
            continuous_update=False,
            **_labelled("folder", "The folder that the passports lie in (a path)"),
        )
        self.you = widgets.Dropdown(
            **_labelled("you are here", "The machine that the picture marks")
        )
        self.show = button("Show", "Read the passports of the folder", "primary")
        self.export = button("Export", "Make a page of the class that can be sent")
        self.status = Status()
        self.told, self.found = widgets.HTML(), widgets.HTML()
        row = widgets.Box((self.show, self.export))
        row.add_class("perfkit-buttons")
        parts = (self.folder, self.you, row, self.status.widget, self.told, self.found)
        for told in (self.told, self.found):
            told.add_class("perfkit-found")
        self.box = widgets.VBox(parts)
        self.box.add_class("perfkit-panel")
        self.can_export = False
        self.enable(running=False)

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.status.say(state)

    def offer(self, labels: Iterable[str], marked: str) -> None:
        """Offer machines to be marked."""
        self.you.options = tuple(labels)
        self.you.value = marked

    def enable(self, *, running: bool) -> None:
        """Let pressed and changed be what has a meaning now."""
        pressed = (self.folder, self.you, self.show, self.export)
        for widget in pressed:
            widget.disabled = running
        self.export.disabled = running or not self.can_export
        answer_at_once(pressed)


def _labelled(label: str, tooltip: str) -> dict[str, Any]:
    layout = widgets.Layout(width=_WIDTH, max_width="100%")
    told = {"description": label, "tooltip": tooltip}
    return {**told, "style": _LABEL, "layout": layout}
