"""Which findings does a notebook show? Read back from the files that it names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING

from perfkit.errors import BadFileError
from perfkit.export.code import printable
from perfkit.findings.store import FOLDER, load
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbformat import NotebookNode

    from perfkit.findings.store import Recorded

# As a finding's card ends: where it is saved, what it was measured on.
_SAVED = re.compile(r"Saved as ((?:[^\s/<>\"]{1,80}/)?[a-z0-9-]{1,90}\.json)")
_MEASURED = re.compile(r"Measured on ([^<>\n]{1,600}?), (\d{4}-\d\d-\d\d \d\d:\d\d)\.")
_MOST = 20
# File systems keep times no better than this.
_SAME_S = 2.0


@dataclass(frozen=True)
class Cited:
    """What a notebook's outputs say of the findings behind them.

    Attributes:
        findings: Those whose files lie beside it.
        missing: The names of the others.
        measured: What its outputs say they were measured on, and when.
    """

    findings: tuple[Recorded, ...] = ()
    missing: tuple[str, ...] = ()
    measured: tuple[tuple[str, str], ...] = ()


def cited(notebook: NotebookNode, folder: Path) -> Cited:
    """Find the findings that a notebook shows.

    Args:
        notebook: With its outputs.
        folder: The notebook's; findings are looked for in and below it only.
    """
    texts = [printable(unescape(text)) for text in _texts(notebook)]
    names = dict.fromkeys(name for text in texts for name in _SAVED.findall(text))
    findings: list[Recorded] = []
    missing: list[str] = []
    for name in list(names)[:_MOST]:
        found = _read(folder, name)
        if found:
            findings.append(found)
        else:
            missing.append(plain(name))
    said = (found for text in texts for found in _MEASURED.findall(text))
    measured = dict.fromkeys((plain(on, 600), when) for on, when in said)
    return Cited(tuple(findings), tuple(missing), tuple(measured)[:_MOST])


def newer(folder: Path, saved: float) -> int:
    """How many findings beside a notebook were saved after it was."""
    try:
        times = [path.stat().st_mtime for path in (folder / FOLDER).glob("*.json")]
    except OSError:
        return 0
    return sum(time > saved + _SAME_S for time in times)


def _texts(notebook: NotebookNode) -> Iterator[str]:
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                yield output.text
            data = output.get("data", {})
            yield from (
                data[form]
                for form in ("text/html", "text/plain")
                if isinstance(data.get(form), str)
            )


def _read(folder: Path, name: str) -> Recorded | None:
    """A finding by the last two parts of its path; None where it is not there."""
    for path in (folder / name, folder / FOLDER / name.rpartition("/")[2]):
        if not path.resolve().is_relative_to(folder.resolve()):
            continue
        try:
            return load(path)
        except BadFileError:
            continue
    return None
