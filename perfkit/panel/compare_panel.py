"""The panel of two machines: pick two files, press Compare, read, download."""

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from perfkit.errors import BadFileError, BadParameterError
from perfkit.machines.compare import compare
from perfkit.machines.comparison import Document, Explanation
from perfkit.machines.comparison_report import page
from perfkit.panel import documents
from perfkit.panel.controls import boxed, guess_control, labelled
from perfkit.panel.documents import Source, Upload
from perfkit.panel.view import StatusView, button, download, file_stem
from perfkit.panel.worker import Working

_SIDES = ("A", "B")


class CompareView(StatusView):
    """The panel of two machines.

    Attributes:
        pickers: The list of machines for ``"A"`` and that for ``"B"``.
        uploads: The button beside each that takes a file from elsewhere.
        compare: Holds the two against each other.
        guess: What the reader expects.
        refresh: Looks again which files there are.
        found: The comparison, as HTML.
        page: A link to its page.
    """

    def __init__(
        self, heard: Callable[[str, str, float, bytes | None], None], guess: str
    ) -> None:
        super().__init__()
        self.pickers = {side: _picker(side) for side in _SIDES}
        self.uploads = {side: _upload(side, heard) for side in _SIDES}
        self.compare = button("Compare", "Hold A and B against each other", "primary")
        self.refresh = button("Refresh", "Look again which files lie here")
        self.guess = guess_control(guess, "such as B, 2x, most of it compute")
        self.found, self.page = widgets.HTML(), widgets.HTML()
        picked = [(self.pickers[side], self.uploads[side]) for side in _SIDES]
        rows = (*picked, (self.compare, self.refresh, self.guess))
        self._waiting = tuple(itertools.chain(*rows))
        said = (self.chart, self.found, self.page)
        self.found.add_class("perfkit-found")
        self.box.children = (*(boxed("perfkit-buttons", *row) for row in rows), *said)
        self.enable(running=False)

    def offer(self, labels: Iterable[str]) -> None:
        """Offer these to be picked; what is picked stays."""
        options = tuple(labels)
        for picker in self.pickers.values():
            kept = picker.value
            picker.options = options
            picker.value = kept if kept in options else None


def _picker(side: str) -> Any:
    what = f"The passport or finding of machine {side}"
    told = labelled(f"machine {side}", what, "6em", "40em")
    return widgets.Dropdown(options=(), **told)


def _upload(side: str, heard: Callable[[str, str, float, bytes | None], None]) -> Any:
    return Upload(
        lambda name, size, data: heard(side, name, size, data),
        description=f"Upload {side}…",
        tooltip=f"Take a file from elsewhere for machine {side}",
    )


_QUESTION = "Why does the same training run differently on two machines?"
_READY = "Ready: pick two machines, then press Compare."
_ALONE = (
    'No passport lies here yet: make one with perfkit.panel("passport"), or upload one.'
)
_DONE = "Compared: read it below; the page to send is at its end."
_GONE = "A file that was picked is gone: pick another."
_CHANGED = "Another pair is picked: press Compare."


class ComparePanel(Working[Explanation]):
    """Two lists of machines, uploads, Compare, the explanation, and its page.

    Args:
        a: Machine A at first: a passport, a finding, its file, or the name of a
            machine that perfkit brings along; None for the newest passport here.
        b: The same for machine B; None for the first recorded machine.
        folder: Where findings are looked for; None for ``perfkit-findings`` here.
        guess: The guess that is set at first.

    Attributes:
        view: The widgets.
        found: The last comparison; None if there is none.

    Raises:
        BadFileError: A file is none that can be compared.
        BadParameterError: ``a`` or ``b`` is nothing to compare.
    """

    nothing = "Nothing was compared."

    def __init__(
        self,
        *,
        a: Document | str | Path | None = None,
        b: Document | str | Path | None = None,
        folder: str | Path | None = None,
        guess: str = "",
    ) -> None:
        self.view = CompareView(self._heard, guess)
        self.found: Explanation | None = None
        self._folder = folder
        self._added: dict[str, Source] = {}
        self._sources: dict[str, Source] = {}
        self._compared: tuple[str | None, ...] = ()
        self._seen: tuple[str | None, ...] = ()
        self._pick(a, b)
        super().__init__("compare", self.view, _QUESTION)
        self.view.compare.on_click(lambda _: self.start())
        self.view.refresh.on_click(lambda _: self._soon(self._refresh))
        for picker in self.view.pickers.values():
            picker.observe(lambda _: self._soon(self._changed), "value")

    def _known(self) -> Explanation | None:
        return self.found

    @property
    def picked(self) -> tuple[str | None, ...]:
        """The labels of A and B."""
        return tuple(picker.value for picker in self.view.pickers.values())

    def _pick(
        self, a: Document | str | Path | None, b: Document | str | Path | None
    ) -> None:
        """Set what is picked at first."""
        first, second = (
            "" if what is None else self._add(*documents.given(what)) for what in (a, b)
        )
        self._look()
        offered = [label for label in self._sources if label not in self._added]
        recorded = [
            label for label, of in self._sources.items() if documents.is_recorded(of)
        ]
        one = first or next(iter(offered or self._sources))
        other = next((label for label in recorded if label != one), one)
        both = (one, second or other)
        for picker, label in zip(self.view.pickers.values(), both, strict=True):
            picker.value = label
        self._seen = self.picked
        self.view.say(_ALONE if not first and one in recorded else _READY)

    def _add(self, label: str, source: Source) -> str:
        return documents.add(self._added, source, label)

    # What the worker does; only here are widgets changed.

    def _look(self) -> None:
        self._sources = dict(self._added)
        for label, source in documents.offered(self._folder).items():
            documents.add(self._sources, source, label)
        self.view.offer(self._sources)

    def _refresh(self) -> None:
        self._look()
        self._seen = self.picked
        gone = None in self.picked
        self.view.say(_GONE if gone else f"{len(self._sources)} files can be picked.")

    def _heard(self, side: str, name: str, size: float, data: bytes | None) -> None:
        self._soon(lambda: self._take(side, name, size, data))

    def _take(self, side: str, name: str, size: float, data: bytes | None) -> None:
        """Add a file that the page sent, and pick it."""
        if data is None:
            raise BadFileError(documents.too_large(name, size))
        label = self._add(*documents.uploaded(name, data))
        self._look()
        self.view.pickers[side].value = label

    def _changed(self) -> None:
        # A list that is filled anew comes back to what was picked.
        if self.running or self.picked == self._seen:
            return
        self._seen = self.picked
        again = _DONE if self.picked == self._compared else _CHANGED
        self.view.say(again if self.found else _READY)

    def _run(self) -> None:
        picked = self.picked
        if None in picked:
            raise BadParameterError("Pick a machine A and a machine B first.")
        self.view.say("Comparing.")
        a, b = (self._sources[str(label)] for label in picked)
        self._forget()
        guess = self.view.guess.value.strip()
        found = compare(a, b, guess=guess)
        self.view.found.value = found._repr_html_()
        self.found, self._compared = found, picked
        self.view.say(_DONE)
        labels = " and ".join(filter(None, (found.a.label, found.b.label)))
        name = f"{file_stem('compare', labels)}.html"
        self.view.page.value = f"<p>{download(name, page(found))}</p>"

    def _forget(self) -> None:
        self.found, self.view.found.value, self.view.page.value = None, "", ""
