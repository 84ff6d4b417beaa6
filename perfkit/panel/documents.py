"""Which files can be picked: those that lie here, and the machines perfkit brings.

A file that says at its beginning what it is can be picked; whether it is sound shows
when it is. So a broken one is not passed over in silence.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import anywidget
import traitlets

from perfkit import units
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings import store
from perfkit.findings.text import minute, plain
from perfkit.machines.compare import parse
from perfkit.machines.comparison import Document
from perfkit.passports import passport as machines_passport
from perfkit.passports.passport import FOLDER, PASSPORT, Passport, recorded

Source: TypeAlias = Document | Path

# What a page sends in one message; more would cut its connection to the kernel.
LARGEST_UPLOAD = 8 * 10**6
# Longer lists cannot be searched by eye; the newest are wanted.
_MOST = 200
_HEAD = 512
_KIND = re.compile(rb'"kind"\s*:\s*"(passport|finding|diagnosis)"')
_LONGEST = 90


def offered(folder: str | Path | None = None) -> dict[str, Source]:
    """What can be held against each other, by a label that tells it from the others.

    Passports come first, the newest on top, then the recorded machines, then findings.

    Args:
        folder: Where findings are saved; None for ``perfkit-findings`` here.
    """
    here = list(_here(Path(os.path.expanduser(folder or store.FOLDER))))
    found = dict[str, Source]()
    for path in _newest(path for path, kind in here if kind == "passport"):
        add(found, path, _passport(path))
    for name, passport in recorded().items():
        if passport.path is not None:
            add(found, passport.path, f"recorded: {name}{_about(passport)}")
    for path in sorted(FOLDER.glob("*/*.json")):
        if path.name != PASSPORT:
            add(found, path, f"recorded: {path.parent.name}, {path.stem}")
    kinds = {path: kind for path, kind in here if kind != "passport"}
    for path in _newest(kinds):
        add(found, path, f"{kinds[path]} {plain(path.name, _LONGEST)}")
    return found


def is_recorded(source: Source) -> bool:
    """Whether it is the passport of a machine that perfkit brings along."""
    if not isinstance(source, Path) or source.name != PASSPORT:
        return False
    return source.is_relative_to(FOLDER)


def given(what: Document | str | Path) -> tuple[str, Source]:
    """Understand what a panel was given: its label and where it is, or itself.

    Raises:
        BadFileError: The file is none that can be compared.
        BadParameterError: It is neither a file nor a document.
    """
    if isinstance(what, str | Path):
        path = FOLDER / str(what) / PASSPORT
        if os.sep not in str(what) and path.is_file():
            return f"recorded: {what}{_about(machines_passport.load(path))}", path
        path = Path(os.path.expanduser(what))
        document = parse(store.whole_file(path), plain(path.name))
        return _label(document, plain(path.name, _LONGEST)), path
    if isinstance(what, Passport | store.Recorded):
        name = what.label if isinstance(what, Passport) else "as given"
        return _label(what, plain(name, _LONGEST)), what
    raise BadParameterError(
        f"{plain(repr(what), 60)} is nothing to compare; give a passport, a finding, "
        "its file, or the name of a recorded machine."
    )


def passport(what: Passport | str | Path) -> Passport:
    """Understand what was given for a machine of one's own.

    Raises:
        BadFileError: The file is no passport.
        BadParameterError: It is neither a passport nor a file.
    """
    if isinstance(what, Passport):
        return what
    if isinstance(what, str | Path):
        return machines_passport.load(what)
    raise BadParameterError(f"{plain(repr(what), 60)} is no passport, and no file.")


def uploaded(name: str, data: bytes) -> tuple[str, Document]:
    """Understand what a page sent: its label and the document.

    Raises:
        BadFileError: It is too large, or none that can be compared.
    """
    called = plain(name, _LONGEST) or "the file"
    if len(data) > LARGEST_UPLOAD:
        raise BadFileError(too_large(called, len(data)))
    document = parse(data, called)
    return f"uploaded: {_label(document, called)}", document


def too_large(name: str, size: float) -> str:
    """Say that a file is too large to be sent by a page, and what to do."""
    return (
        f"{plain(name, _LONGEST)} is {units.size(size)} large, and a page can send "
        f"{units.size(LARGEST_UPLOAD)} at most: put the file into the folder of this "
        "notebook and press Refresh."
    )


def _here(findings: Path) -> Iterator[tuple[Path, str]]:
    """The documents that lie in this folder and in that of findings."""
    for path in dict.fromkeys((*Path().glob("*.json"), *findings.glob("*.json"))):
        kind = _kind(path)
        if kind:
            yield path, kind


def _newest(paths: Iterable[Path]) -> list[Path]:
    dated = sorted(((_changed(path), path) for path in paths), reverse=True)
    return [path for _, path in dated[:_MOST]]


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _kind(path: Path) -> str:
    """What a file says that it is at its beginning; "" for anything else."""
    try:
        # To open a pipe is to wait for who writes into it.
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            said = _KIND.search(file.read(_HEAD))
    except OSError:
        return ""
    return said[1].decode() if said else ""


def _passport(path: Path) -> str:
    name = plain(path.name, _LONGEST)
    try:
        return f"{name}{_about(machines_passport.load(path))}"
    except BadFileError:
        return f"{name} (cannot be read)"


def _label(document: Document, name: str) -> str:
    """As a file of that name is called where it lies here."""
    if isinstance(document, Passport):
        return f"{name}{_about(document)}"
    return f"{document.kind} {name}"


def _about(passport: Passport) -> str:
    """What tells a machine's passport from others of the same name."""
    machine, day = passport.machine, minute(passport.recorded)
    return f" \N{MIDDLE DOT} {plain(machine.cpu, 40)}, {machine.cores} cores, {day}"


def add(found: dict[str, Source], source: Source, label: str) -> str:
    """Put a source under its label, numbered where another one has it; return that."""
    more, number = label, 1
    while more in found and not _is_same(found[more], source):
        number += 1
        more = f"{label} ({number})"
    found[more] = source
    return more


def _is_same(one: Source, other: Source) -> bool:
    if isinstance(one, Path) and isinstance(other, Path):
        return os.path.realpath(one) == os.path.realpath(other)
    return one is other


_HERE = Path(__file__).parent / "static"


class Upload(anywidget.AnyWidget):
    """A button that asks for a file and sends it.

    Args:
        heard: Called with the file's name, its size in bytes and its content; that is
            None where the page could not read the file or found it too large.
    """

    _esm = (_HERE / "upload.js").read_text(encoding="utf-8")

    description = traitlets.Unicode("Upload…").tag(sync=True)
    tooltip = traitlets.Unicode().tag(sync=True)
    disabled = traitlets.Bool(False).tag(sync=True)
    largest = traitlets.Int(LARGEST_UPLOAD).tag(sync=True)

    def __init__(
        self, heard: Callable[[str, float, bytes | None], None], **traits: Any
    ) -> None:
        super().__init__(**traits)
        self._told = heard
        self.on_msg(self._hear)

    def _hear(self, _: Any, content: Any, buffers: list[Any]) -> None:
        # A page is not trusted either: anything can be sent in its name.
        told = content if isinstance(content, dict) else {}
        name, size = told.get("name"), told.get("size")
        self._told(
            name if isinstance(name, str) else "",
            float(size) if isinstance(size, int | float) else 0.0,
            bytes(buffers[0]) if buffers else None,
        )
