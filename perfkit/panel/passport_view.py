"""The widgets with which a machine's passport is made, looked through and saved."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from perfkit.findings.text import with_code
from perfkit.panel.controls import budget_control
from perfkit.panel.status import Status
from perfkit.panel.view import answer_at_once, button
from perfkit.passports import words
from perfkit.passports.saving import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.passports.record import Passport

_BOX = "`host and user name`"
_LABEL = {"description_width": "11em"}
_WIDTH = "27em"


class PassportView:
    """What a reader sees and presses.

    Attributes:
        budget: The seconds of the whole passport.
        label: What the machine is called.
        names: Whether the host's and the user's name are in the file.
        file: Where it is saved.
        run: Measures.
        stop: Ends what is running.
        save: Writes the file.
        status: What the panel does, and how far it is.
        preview: What is in the file, as HTML.
        card: What was measured, as HTML.
        box: All of it.
    """

    def __init__(self, budget: float, label: str, file: str, *, names: bool) -> None:
        self.budget = budget_control(budget)
        self.label = _text(label, "label", "What to call this machine")
        self.names = widgets.Checkbox(
            value=names,
            **_labelled("host and user name", "Whether these are in the file"),
        )
        self.file = _text(file, "file", "Where it is saved (a path)")
        self.run = button("Run", "Measure this machine", "primary")
        self.stop = button("Stop", "End the run and keep what was measured")
        self.save = button("Save", "Write the file that is described below")
        self.status = Status()
        self.preview, self.card = widgets.HTML(), widgets.HTML()
        self._set = (self.budget, self.label, self.file, self.names)
        controls = widgets.Box(self._set)
        controls.add_class("perfkit-controls")
        row = widgets.Box((self.run, self.stop, self.save))
        row.add_class("perfkit-buttons")
        parts = (controls, row, self.status.widget, self.preview, self.card)
        self.preview.add_class("perfkit-found")
        self.box = widgets.VBox(parts)
        self.box.add_class("perfkit-panel")
        self.can_save = False
        self.enable(running=False)

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.status.say(state)

    def enable(self, *, running: bool) -> None:
        """Let pressed and changed be what has a meaning now."""
        for widget in (*self._set, self.run):
            widget.disabled = running
        self.stop.disabled = not running
        self.save.disabled = running or not self.can_save
        answer_at_once((*self._set, self.run, self.stop, self.save))

    def show(self, passport: Passport | None) -> None:
        """Show what a passport says, and all that its file would hold."""
        self.card.value = passport._repr_html_() if passport else ""
        self.preview.value = previewed(passport) if passport else ""


def previewed(passport: Passport) -> str:
    """What is in the file: in words, and folded away below, letter by letter."""
    text = to_json(passport)
    said = words.preview(passport, len(text.encode()), f"the box {_BOX}")
    whole = "\n".join(_lines(json.loads(text)))
    return (
        f"{''.join(map(_line, said.splitlines())).removeprefix('</ul>')}</ul>"
        "<details><summary>Every letter of the file</summary>"
        '<div tabindex="0" style="max-height:30em;overflow:auto">'
        f"<pre>{escape(whole)}</pre></div></details>"
    )


def _line(line: str) -> str:
    """A line of the preview: a heading that begins a list, or an item of it."""
    item = line.removeprefix("  - ")
    told = with_code(escape(item))
    return f"</ul><p><b>{told}</b></p><ul>" if item == line else f"<li>{told}</li>"


def _lines(document: dict[str, Any]) -> Iterator[str]:
    """A field per line; those that hold others, a line for each of these."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield f"{name}:"
            yield from (f"  {key}: {_short(inner)}" for key, inner in value.items())
        elif isinstance(value, list):
            yield f"{name}:"
            yield from (f"  {_short(inner)}" for inner in value)
        else:
            yield f"{name}: {_short(value)}"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(value: str, label: str, tooltip: str) -> Any:
    return widgets.Text(
        value=value, continuous_update=False, **_labelled(label, tooltip)
    )


def _labelled(label: str, tooltip: str) -> dict[str, Any]:
    layout = widgets.Layout(width=_WIDTH, max_width="100%")
    told = {"description": label, "tooltip": tooltip}
    return {**told, "style": _LABEL, "layout": layout}
