"""Which line made an object of Keras's, and how a reader knows that line."""

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from perfkit.account.places import Place, Places
from perfkit.diagnosis.maker import source_of
from perfkit.diagnosis.script import Script
from perfkit.diagnosis.source import UNREADABLE, cells_of, text_of

# Kept apart by what they are: a layer and a loss may have the same name.
MADE = {
    "layer": "keras.layers.Layer",
    "optimizer": "keras.optimizers.Optimizer",
    "loss": "keras.losses.Loss",
    "metric": "keras.metrics.Metric",
    "callback": "keras.callbacks.Callback",
}


def note_makers(
    places: Places, heard: Callable[[Any, str, Place | None], object]
) -> None:
    """Call ``heard`` for each object that is made from now on.

    It is given the object, its kind as ``MADE`` has it, and the line that made it, None
    where no line of the user's did.
    """

    def hear(kind: str, made: Any, frame: FrameType) -> None:
        heard(made, kind, places.place(frame, made))

    for kind, path in MADE.items():
        module, _, name = path.rpartition(".")
        owner = getattr(importlib.import_module(module), name)
        _after_init(owner, functools.partial(hear, kind))


def note_stages(places: Places, heard: Callable[[Any, Place], object]) -> None:
    """Call ``heard`` for each stage of ``tf.data`` that a line of the user's makes."""
    import tensorflow as tf

    def hear(dataset: Any, frame: FrameType) -> None:
        if place := places.place(frame):
            heard(dataset, place)

    _after_init(tf.data.Dataset, hear)


def _after_init(owner: Any, hear: Callable[[Any, FrameType], object]) -> None:
    original = owner.__init__

    # Keras reads the names of its parameters: the first one has to be this.
    @functools.wraps(original)
    def init(self: Any, *args: Any, **named: Any) -> None:
        original(self, *args, **named)
        hear(self, sys._getframe(1))

    init.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    owner.__init__ = init


class Names:
    """How files and lines are called, and what stands there.

    Args:
        made: What ``perfkit.diagnosis.maker.maker`` has made of what was given.
        with_text: Whether lines of the source may be read.

    Attributes:
        of_cell: What Python calls the cell that it stands in; "" for a file.
    """

    def __init__(self, made: Callable[[], Any], *, with_text: bool = True) -> None:
        self._made, self._with_text = made, with_text
        self._cells: dict[str, tuple[int, ...]] = {}
        self._texts: dict[str, list[str]] = {}
        path = getattr(made, "path", "")
        self._root = os.path.dirname(path) if path else os.getcwd()
        self.of_cell = ""
        if not isinstance(made, Script) and not path:
            code = getattr(made, "__code__", None)
            file = getattr(code, "co_filename", "")
            if file and not Path(file).is_file():
                self.of_cell = file

    def told(self, file: str, line: int) -> tuple[str, int, int]:
        """File, cell and line as a reader knows them."""
        if file == self.of_cell or "ipykernel" in file:
            return "", 0, line
        before = [start for start in self.cells_of(file) if start <= line]
        name = os.path.relpath(file, self._root) if self._root else file
        if name.startswith(".."):
            name = os.path.basename(file)
        if before:
            return name, len(before), line - before[-1] + 1
        return name, 0, line

    def cells_of(self, file: str) -> tuple[int, ...]:
        """Of a notebook: the lines in which its cells begin; none of any other file."""
        if file not in self._cells:
            try:
                self._cells[file] = cells_of(file)
            except UNREADABLE:
                self._cells[file] = ()
        return self._cells[file]

    def code(self, file: str, line: int) -> str:
        """What stands there; "" where that was left out, or cannot be read."""
        if not self._with_text:
            return ""
        if file not in self._texts:
            try:
                of_cell = self.of_cell and file == self.of_cell
                text = source_of(self._made).text if of_cell else text_of(file)
                self._texts[file] = text.splitlines()
            except UNREADABLE:
                self._texts[file] = []
        lines = self._texts[file]
        return lines[line - 1] if 0 < line <= len(lines) else ""
