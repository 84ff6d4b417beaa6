"""The panel of a class: a folder of passports, and where each machine stands."""

import os
from pathlib import Path

import ipywidgets as widgets

from perfkit.machines.classroom import Classroom, classroom
from perfkit.machines.record import Passport, load
from perfkit.machines.report import page
from perfkit.panel.controls import boxed, labelled, text_control
from perfkit.panel.view import StatusView, button, download, file_stem
from perfkit.panel.worker import Working


class ClassView(StatusView):
    """The panel of a class.

    Attributes:
        folder: Where the passports lie.
        show: Reads the folder.
        card: The picture and the tables, as HTML.
        page: A link to its page.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        about = labelled("folder", "Where the passports lie (a path)", "8em", "40em")
        self.folder = text_control(folder, placeholder="a path", **about)
        self.show = button("Show", "Read the passports of the folder", "primary")
        self.card, self.page = widgets.HTML(), widgets.HTML()
        self.card.add_class("perfkit-found")
        self._waiting = (self.folder, self.show)
        row = boxed("perfkit-buttons", self.folder, self.show)
        self.box.children = (row, self.chart, self.card, self.page)
        self.enable(running=False)


class ClassPanel(Working[Classroom]):
    """A folder, Show, the picture with your machine marked, the tables, and its page.

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
        self._you = load(you) if isinstance(you, str | Path) else you
        self.view = ClassView(str(Path.cwd() if folder is None else folder))
        self.room: Classroom | None = None
        self.view.say("Ready: give the folder of the passports, then press Show.")
        super().__init__(
            "class", self.view, "Where does each machine of a class stand?"
        )
        self.view.show.on_click(lambda _: self.start())

    def _known(self) -> Classroom | None:
        return self.room

    # What the worker does; only here are widgets changed.

    def _run(self) -> None:
        self.view.say("Reading the passports.")
        self.room, self.view.card.value, self.view.page.value = None, "", ""
        folder = self.view.folder.value
        room = classroom(folder, self._you)
        self.view.card.value = room._repr_html_()
        self.room = room
        if room.passports:
            name = Path(os.path.expanduser(folder)).resolve().name
            link = download(f"{file_stem('class', name)}.html", page(room))
            self.view.page.value = f"<p>{link}</p>"
        count = len(room.passports)
        machines = f"A class of {count:,} machine{'' if count == 1 else 's'}."
        bad = len(room.problems)
        broken = f" {bad:,} of its files cannot be read: see the last table."
        self.view.say(f"{machines}{broken if bad else ''}")
