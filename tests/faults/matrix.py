"""Write the page docs/faults.md: which test tries which fault on which part.

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
    "SIGKILL": "A user kills the process, or the system does so to free memory.",
    "SIGSEGV": "A library reads an invalid address, and the process crashes.",
    "SIGSTOP": "Everything stops and later goes on: a sleeping laptop, or Ctrl-Z.",
    "memory limit": "The process asks for more memory than its limit allows.",
    "full disk": "The disk has no space left for a write.",
    "read-only": "perfkit cannot write to a folder.",
    "clock jump": "Someone sets the time of day back or forward.",
    "fork failure": "The system refuses to start another process or thread.",
    "open files": "The system refuses to open another file.",
    "slow disk": "A write takes seconds.",
    "no /proc": "The system reports nothing about its processes.",
    "GPU lost": "The driver loses a card during a run.",
    "kernel killed": "Someone kills the kernel or the command that runs perfkit.",
    "browser closed": "You close the page or reload it.",
    "two at once": "Two runs or programs use the same folder at the same time.",
    "home": "perfkit cannot write to the user's home folder.",
    "locale": "The terminal shows only ASCII, or changes letters by Turkish rules.",
    "path": "A path is long, or contains spaces or letters outside ASCII.",
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

The tests break the parts of perfkit on purpose. In each case perfkit keeps the trials
that had finished, leaves no process running and shows no traceback. The tables say
what happens instead. `python -m tests.faults.matrix` writes them from the tests' marks.

{TRIED} means that a test tries the fault there. {OPEN} means that no test does yet.
{NO_MEANING} means that the fault does not apply to that part.
"""


@dataclass(frozen=True)
class Cell:
    """A part, a fault, what happens then, and the test that tries it."""

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
        lines += ["", f"## {part}", "", _row(["fault", "what happens", "test"])]
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
