"""The panel of two machines: pick two passports, press Compare, read, download."""

import os
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from perfkit.findings.text import plain
from perfkit.machines.compare import TwoMachines, compare
from perfkit.machines.record import Passport, recorded
from perfkit.machines.report import page
from perfkit.machines.sides import Document
from perfkit.panel.controls import boxed, guess_control, labelled
from perfkit.panel.view import StatusView, button, download, file_stem
from perfkit.panel.worker import Working

Source = Document | str | Path
# A passport says that it is one at its beginning; longer lists are searched by nobody.
_HEAD, _MOST = 512, 200


def offered() -> dict[str, Source]:
    """What can be compared, by label: passports here, the newest first, then recorded.

    Whether a file is sound shows when it is read, so a broken one is not passed over.
    """
    files = [path for path in Path().glob("*.json") if _says_passport(path)]
    files.sort(key=os.path.getmtime, reverse=True)
    found: dict[str, Source] = {plain(path.name, 90): path for path in files[:_MOST]}
    return found | {f"recorded: {name}": one for name, one in recorded().items()}


def _says_passport(path: Path) -> bool:
    try:
        # To open a pipe is to wait for who writes into it.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return b'"passport"' in file.read(_HEAD)
    except OSError:
        return False


class CompareView(StatusView):
    """The panel of two machines.

    Attributes:
        pickers: The list of machines for ``"A"`` and that for ``"B"``.
        compare: Compares the two.
        guess: What the reader expects.
        card: The comparison, as HTML.
        page: A link to its page.
    """

    def __init__(self, labels: dict[str, str], options: list[str], guess: str) -> None:
        super().__init__()
        self.pickers = {}
        for side, label in labels.items():
            about = labelled(
                f"machine {side}", f"The passport of machine {side}", "6em", "40em"
            )
            picker: Any = widgets.Dropdown(options=options, value=label, **about)
            self.pickers[side] = picker
        self.compare = button("Compare", "Compare A with B", "primary")
        self.guess = guess_control(guess, "such as B, 2x, most of it compute")
        self.card, self.page = widgets.HTML(), widgets.HTML()
        self.card.add_class("perfkit-found")
        row = boxed("perfkit-buttons", self.compare, self.guess)
        self._waiting = (*self.pickers.values(), self.compare, self.guess)
        shown = (self.chart, self.card, self.page)
        self.box.children = (*self.pickers.values(), row, *shown)
        self.enable(running=False)


class ComparePanel(Working[TwoMachines]):
    """Two lists of machines, Compare, the table, and its page.

    Args:
        a: Machine A at first: a passport, its file, or the name of a machine that
            perfkit brings along; None for the newest passport here.
        b: The same for machine B; None for another one.
        guess: The guess that is set at first.

    Attributes:
        view: The widgets.
        compared: The last comparison; None if there is none.
    """

    nothing = "Nothing was compared."

    def __init__(
        self,
        *,
        a: Source | None = None,
        b: Source | None = None,
        guess: str = "",
    ) -> None:
        self.compared: TwoMachines | None = None
        self._sources = offered()
        one = self._label(a) or next(iter(self._sources))
        known = [f"recorded: {name}" for name in recorded()]
        other = next(label for label in known if label != one)
        labels = {"A": one, "B": self._label(b) or other}
        self.view = CompareView(labels, list(self._sources), guess)
        self.view.say("Ready: pick two machines, then press Compare.")
        question = "How does the same training differ on two machines?"
        super().__init__("compare", self.view, question)
        self.view.compare.on_click(lambda _: self.start())

    def _label(self, source: Source | None) -> str:
        """Offer what was given; "" where nothing was."""
        if source is None:
            return ""
        label = f"recorded: {source}"
        if isinstance(source, str) and label in self._sources:
            return label
        if isinstance(source, Passport):
            label = f"as given: {plain(source.label, 90)}"
        elif isinstance(source, str | Path):
            label = plain(str(source), 90)
        else:
            label = f"as given: {plain(getattr(source, 'training', ''), 90)}"
        self._sources[label] = source
        return label

    def _known(self) -> TwoMachines | None:
        return self.compared

    # What the worker does; only here are widgets changed.

    def _run(self) -> None:
        self.view.say("Comparing.")
        self.compared, self.view.card.value, self.view.page.value = None, "", ""
        a, b = (self._sources[picker.value] for picker in self.view.pickers.values())
        two = compare(a, b, guess=self.view.guess.value.strip())
        self.view.card.value = two._repr_html_()
        self.compared = two
        labels = " and ".join(filter(None, (two.a.label, two.b.label)))
        link = download(f"{file_stem('compare', labels)}.html", page(two))
        self.view.page.value = f"<p>{link}</p>"
        self.view.say("Compared: read it below; the page to send is at its end.")
