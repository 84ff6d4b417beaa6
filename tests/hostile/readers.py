"""Everything that reads what somebody else wrote, each by one function of bytes.

What they are given is a sound file, a spoiled one or no such file at all: each reads it
or raises an error of perfkit's own, whose message is one line. ``benchmarks/fuzz.py``
looks for bytes that do anything else.
"""

import contextlib
import dataclasses
import io
import os
from functools import cache
from pathlib import Path
from unittest import mock

from nbformat import v4
from PIL import Image

from perfkit import documents, lab
from perfkit.engine import spread
from perfkit.errors import PerfkitError
from perfkit.findings.page import export
from perfkit.findings.record import Shown
from perfkit.findings.store import to_json
from perfkit.machine import starting
from perfkit.questions.shared import images
from perfkit.training.diagnose.maker import assigned, digest, maker
from perfkit.training.profile import profile as profiling
from tests.findings import made
from tests.findings.page import books
from tests.hostile.kinds import KINDS
from tests.machine import trees
from tests.training.diagnose.diagnosed import cause, diagnosis
from tests.training.diagnose.typed import locate

_ROOT = Path(__file__).resolve().parents[2]


class Unprintable(Exception):
    """An error of perfkit's own whose message a terminal would obey."""


@dataclasses.dataclass(frozen=True)
class Reader:
    """What takes bytes and a folder of its own, and what it takes without complaint."""

    read: object
    sound: object

    def __call__(self, data, folder):
        """Read bytes; give what perfkit says of them, "" where it takes them."""
        try:
            # What is said of a file to its reader is no part of this.
            with contextlib.redirect_stdout(io.StringIO()):
                self.read(data, folder)
        except PerfkitError as error:
            if not str(error).isprintable():
                raise Unprintable(repr(str(error))) from error
            return str(error)
        return ""


def _file(data, folder, name):
    path = folder / name
    path.write_bytes(data)
    return path


def _document(data, folder):
    found = documents.parse(data, "x.json")
    repr(found)
    Shown._repr_html_(found)


def _image(data, folder):
    images.read_header(_file(data, folder, "x.jpg"), 16)


_CHANGES = ("graph", "XLA", "without validation", "without CSVLogger", "batch ×2")
_DIAGNOSED = diagnosis(
    causes=[cause("eager", change, 2.0) for change in _CHANGES],
    facts={"callbacks": ["CSVLogger"], "data": "arrays", "batch": 32},
)


def _code(name):
    def read(data, folder):
        made_of = maker(_file(data, folder, name))
        locate(_DIAGNOSED, made_of)
        digest(made_of)
        assigned(made_of)

    return read


def _notebook(data, folder):
    export(_file(data, folder, "x.ipynb"), folder / "x.html")


def _computer(data, folder):
    """What /proc and /sys say: the first byte tells in which file this stands."""
    names = sorted(_COMPUTER)
    at = names[data[0] % len(names)] if data else names[0]
    files = {name: text for name, text in _COMPUTER.items() if name != at}
    root = folder / "root"
    (root / at).parent.mkdir(parents=True, exist_ok=True)
    (root / at).write_bytes(data[1:])
    to_json(dataclasses.replace(made.finding(), machine=trees.described(root, files)))


_COMPUTER = trees.computer(2) | trees.scaling() | trees.quota(1, 2)
_COMPUTER |= trees.nvidia_card() | trees.container()


def _small_files(data, folder):
    """What perfkit wrote itself, where anybody may have changed it since."""
    kept = _file(data, folder, "spread.json")
    with mock.patch.object(spread, "_path", return_value=kept):
        spread.of_this_machine()
    _file(data, folder, lab._MADE_FROM)
    lab._read_versions(folder)
    lab._version(data)
    with mock.patch.dict(os.environ):
        os.environ.pop(lab.BUDGET_VARIABLE, None)
        lab._class_budget(_file(data, folder, lab.BUDGET_FILE))


def _tables(data, folder):
    for name in profiling.TABLES:
        with contextlib.suppress(PerfkitError):
            profiling.understand(name, data.decode(errors="replace"))


@cache
def _sound_images():
    found = []
    for form in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"):
        out = io.BytesIO()
        Image.new("RGB", (20, 20)).save(out, form)
        found.append(out.getvalue())
    return found


@cache
def _sound_code():
    scripts = sorted((_ROOT / "tests" / "guilty" / "scripts").glob("*.py"))
    return [path.read_bytes() for path in scripts]


@cache
def _sound_notebooks():
    cells = [
        books.code("model.fit(x, y, epochs=3)", books.printed("done"), count=1),
        v4.new_markdown_cell("# Why?\n\n$\\frac{1}{2}$ ![a](b.png)"),
        books.code("import keras", books.result(html="<p>a</p>", text="a")),
    ]
    return [v4.writes(books.book("# T", *cells)).encode()]


READERS = {
    "document": Reader(_document, lambda: [kind.sound for kind in KINDS.values()]),
    "image": Reader(_image, _sound_images),
    "script": Reader(_code("train.py"), _sound_code),
    "script in a notebook": Reader(_code("train.ipynb"), _sound_notebooks),
    "notebook": Reader(_notebook, _sound_notebooks),
    "computer": Reader(
        _computer,
        lambda: [
            bytes([n]) + _COMPUTER[name].encode()
            for n, name in enumerate(sorted(_COMPUTER))
        ],
    ),
    "log": Reader(
        lambda data, _: starting.explain_log(data.decode(errors="replace"), ("ada",)),
        lambda: [
            path.read_bytes()
            for path in (_ROOT / "tests/machine/starting").glob("*.log")
        ],
    ),
    "small files": Reader(
        _small_files, lambda: [b"[[[1.0, 3]]]", b'{"a.ipynb": "x"}', b"40"]
    ),
    "profiler": Reader(
        _tables, lambda: [b'[{"cols": [{"id": "stepnum"}], "rows": [{"c": []}]}]']
    ),
}
