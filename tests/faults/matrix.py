"""Which fault is tried on which part, as the page docs/faults.md.

    python -m tests.faults.matrix

A test is marked, as with ``@pytest.mark.fault("trial", "SIGKILL, SIGSEGV", sees="…")``.
The marks are read from the sources: nothing is imported, and no condition hides one.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
# What can go wrong, and how the tests bring it about.
FAULTS = {
    "SIGKILL": "the process is killed, by hand or for want of memory",
    "SIGSEGV": "a library reads where nothing is",
    "SIGSTOP": "all stands still, then goes on: a suspended laptop, Ctrl-Z",
    "memory limit": "more is allocated than may be",
    "full disk": "a write finds no space left",
    "read-only": "a folder cannot be written to",
    "clock jump": "the time of day is set back or forward",
    "fork failure": "the system starts no process or thread more",
    "open files": "no file more may be open",
    "slow disk": "a write takes seconds",
    "no /proc": "the system tells nothing of its processes",
    "GPU lost": "the driver loses a card during a run",
    "kernel killed": "the program that all belongs to is killed",
    "browser closed": "the page is closed, or loaded again",
    "two at once": "two use one folder at the same time",
    "home": "the user's home cannot be written to",
    "locale": "the terminal shows ASCII alone, or letters as Turkish has them",
    "path": "a path has spaces and letters beyond ASCII, or is long",
}
# The parts, and the faults that can befall each.
PARTS = {
    "launcher": "SIGKILL, SIGSTOP, memory limit, full disk, read-only, fork failure, "
    "open files, no /proc, kernel killed, two at once, path",
    "trial": "SIGKILL, SIGSEGV, SIGSTOP, memory limit, full disk, clock jump, "
    "no /proc, kernel killed",
    "monitor": "SIGKILL, fork failure, open files, no /proc, GPU lost",
    "panel": "full disk, fork failure, kernel killed, browser closed, two at once",
    "findings": "SIGKILL, full disk, read-only, clock jump, open files, slow disk, "
    "two at once, home, locale, path",
    "export": "SIGKILL, full disk, open files, locale, path",
    "class": "full disk, two at once, path",
    "fleet": "SIGKILL, SIGSTOP, full disk, kernel killed",
    "doctor": "SIGKILL, SIGSEGV, full disk, read-only, fork failure, open files, "
    "no /proc, GPU lost, kernel killed, home, locale",
    "start.py": "SIGKILL, full disk, read-only, fork failure, two at once, home, "
    "locale, path",
    "lab": "SIGKILL, read-only, kernel killed, two at once, home, path",
    "script": "SIGKILL, SIGSEGV, memory limit, full disk, read-only, path",
    "race": "SIGKILL, SIGSTOP, full disk, fork failure, open files, kernel killed, "
    "two at once, path",
}
MARK = "pytest.mark.fault"
TRIED, OPEN, NO_MEANING = "✓", "?", "\N{EN DASH}"
HEAD = f"""\
# What happens when something breaks

Which fault is tried on which part of perfkit, and by which test. In every cell a trial
that had finished stays in the finding, no process is left running and nobody sees a
traceback; what is seen instead stands below. This page is written from the marks of the
tests by `python -m tests.faults.matrix`.

{TRIED} is tried; {OPEN} may happen, and no test tries it; {NO_MEANING} has no meaning.
"""


@dataclass(frozen=True)
class Cell:
    """A part, a fault, what is seen then, and the test that tries it."""

    part: str
    fault: str
    sees: str
    test: str


def cells(folder=ROOT / "tests"):
    """Every cell that a test is marked with, in the order of the sources."""
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield from _cells_of(node, str(path.relative_to(folder)))


def _cells_of(test, file):
    for mark in test.decorator_list:
        for call in ast.walk(mark):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == MARK:
                part, faults = map(ast.literal_eval, call.args)
                (sees,) = (ast.literal_eval(each.value) for each in call.keywords)
                for fault in faults.split(", "):
                    yield Cell(part, fault, sees, f"{file}::{test.name}")


def page(found):
    """The page, from the cells."""
    lines = [HEAD, _row(["fault", *PARTS]), _row(["---"] * (len(PARTS) + 1))]
    known = {(cell.part, cell.fault) for cell in found}
    for fault in FAULTS:
        signs = (_sign(part, fault, known) for part in PARTS)
        lines.append(_row([fault, *signs]))
    lines += ["", *(f"- **{fault}**: {how}" for fault, how in FAULTS.items())]
    for part in PARTS:
        mine = [cell for cell in found if cell.part == part]
        mine.sort(key=lambda cell: list(FAULTS).index(cell.fault))
        lines += ["", f"## {part}", "", _row(["fault", "what is seen", "test"])]
        lines += [_row(["---"] * 3)]
        lines += [_row([c.fault, c.sees, f"`{c.test}`"]) for c in mine]
    return "\n".join(lines) + "\n"


def _sign(part, fault, known):
    if (part, fault) in known:
        return TRIED
    return OPEN if fault in PARTS[part].split(", ") else NO_MEANING


def _row(words):
    return f"| {' | '.join(words)} |"


if __name__ == "__main__":
    PAGE.write_text(page(list(cells())), encoding="utf-8")
