"""The panel of a class: a folder of passports, and where each machine stands."""

import os
from collections.abc import Iterable
from dataclasses import replace
from html import escape
from pathlib import Path

import ipywidgets as widgets

from perfkit.machines.classroom import Classroom, classroom
from perfkit.panel import documents
from perfkit.panel.controls import boxed, labelled, text_control
from perfkit.panel.view import StatusView, button, download, file_stem
from perfkit.panel.worker import Working
from perfkit.passports.passport import Passport

# Of a label, and of all of its widget.
_WIDTHS = ("8em", "40em")


class ClassView(StatusView):
    """The panel of a class.

    Attributes:
        folder: Where the passports lie.
        you: Which machine is the reader's own.
        show: Reads the folder.
        found: The picture and the tables, as HTML.
        told: Who cannot run which notebook, as HTML.
        page: A link to its page.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        what = "The folder that the passports lie in (a path)"
        where = labelled("folder", what, *_WIDTHS)
        self.folder = text_control(folder, placeholder="a path", **where)
        marked = "The machine that the picture marks"
        self.you = widgets.Dropdown(**labelled("you are here", marked, *_WIDTHS))
        self.show = button("Show", "Read the passports of the folder", "primary")
        self.told, self.found, self.page = (widgets.HTML() for _ in range(3))
        row = boxed("perfkit-buttons", self.show)
        said = (self.chart, self.found, self.told, self.page)
        for told in (self.told, self.found):
            told.add_class("perfkit-found")
        self._waiting = (self.folder, self.you, self.show)
        self.box.children = (self.folder, self.you, row, *said)
        self.enable(running=False)

    def offer(self, labels: Iterable[str], marked: str) -> None:
        """Offer machines to be marked."""
        self.you.options = tuple(labels)
        self.you.value = marked


_QUESTION = "Where does each machine of a class stand?"
_READY = "Ready: give the folder of the passports, then press Show."
_CHANGED = "Another folder is set: press Show."
_NOBODY = "nobody"


class ClassPanel(Working[Classroom]):
    """A folder, "you are here", the picture, who cannot run what, and its page.

    Args:
        folder: Where the passports lie, at first; None for the current one.
        you: Your own machine's passport, or its file; None if unknown.

    Attributes:
        view: The widgets.
        room: The class that is shown; None if there is none.

    Raises:
        BadFileError: ``you`` is no passport.
    """

    nothing = "No folder was read."

    def __init__(
        self,
        *,
        folder: str | Path | None = None,
        you: Passport | str | Path | None = None,
    ) -> None:
        self.view = ClassView(str(Path.cwd() if folder is None else folder))
        self.room: Classroom | None = None
        self._you = documents.passport(you) if you is not None else None
        self._marks: dict[str, int | None] = {}
        self._read: str | None = None
        self.view.offer([_NOBODY], _NOBODY)
        self.view.say(_READY)
        super().__init__("class", self.view, _QUESTION)
        self.view.show.on_click(lambda _: self.start())
        self.view.you.observe(lambda _: self._soon(self._mark), "value")
        self.view.folder.observe(lambda _: self._soon(self._changed), "value")

    def _known(self) -> Classroom | None:
        return self.room

    # What the worker does; only here are widgets changed.

    def _run(self) -> None:
        self.view.say("Reading the passports.")
        self._forget()
        folder = self.view.folder.value
        room = classroom(folder, self._you)
        names = _told_apart(room)
        self._marks = {_NOBODY: None, **{name: n for n, name in enumerate(names)}}
        self.room, self._read = room, folder
        self.view.offer(self._marks, _NOBODY if room.you is None else names[room.you])
        self._draw()

    def _mark(self) -> None:
        """Mark another machine; nothing is read again."""
        place = self._marks.get(self.view.you.value)
        if self.room is not None and place != self.room.you:
            self.room = replace(self.room, you=place)
            self._draw()

    def _changed(self) -> None:
        if self.room is not None:
            as_read = self.view.folder.value == self._read
            self.view.say(_summary(self.room) if as_read else _CHANGED)

    def _draw(self) -> None:
        from perfkit.machines.class_page import page

        if self.room is None:
            return
        self.view.told.value = who_cannot(self.room)
        self.view.found.value = self.room._repr_html_()
        self.view.say(_summary(self.room))
        anyone = self.room.passports or self.room.answers
        if anyone and self._read is not None:
            folder = Path(os.path.expanduser(self._read)).resolve().name
            name = f"{file_stem('class', folder)}.html"
            self.view.page.value = f"<p>{download(name, page(self.room))}</p>"

    def _forget(self) -> None:
        self.room = None
        self.view.told.value = self.view.found.value = self.view.page.value = ""

    def _static_html(self) -> str:
        cannot = who_cannot(self.room) if self.room else ""
        return f"{super()._static_html()}{cannot}"


def who_cannot(room: Classroom) -> str:
    """Which machines cannot run which notebooks and why, as HTML."""
    if not room.cannot:
        return "<p>Every machine can run every notebook.</p>" if room.machines else ""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in room.cannot)
    return f"<p><b>Who cannot run which notebook</b></p><ul>{items}</ul>"


def _summary(room: Classroom) -> str:
    """How many machines there are, and how many files are none."""
    machines, files = len(room.machines), len(room.problems)
    unread = f" {_counted(files, 'file')} cannot be read: see the last table."
    none = " Give a folder that passports lie in." * (not machines)
    return f"A class of {_counted(machines, 'machine')}.{unread * bool(files)}{none}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _told_apart(room: Classroom) -> list[str]:
    """A name for each machine that no other has."""
    names = list[str]()
    for place in range(len(room.passports)):
        name = room.name(place)
        taken = name in names or name == _NOBODY
        names.append(f"{name} ({place + 1})" if taken else name)
    return names
