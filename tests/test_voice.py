"""The language of every text that a person reads: none of the phrases that stop one."""

import ast
import json
import re

import pytest

from tests.test_house import PACKAGE, ROOT

# What was said, and what a reader understands the first time.
RULED_OUT = {
    "depends on": r"\bhangs? on\b",
    "compared with, checked against": r"\bheld against\b",
    "above": r"\bfrom (?:(?!to\b)\w+ ){1,4}on (?=it|training|to\b|is\b|does\b)",
    "today's": r"\bof now\b",
    "at least": r"\bat the least\b",
    "sure of": r"\bfor certain of\b",
    "lies": r"\bcomes? to lie\b",
    "needs": r"\bwants\b",
    "twice as long": r"\bas long again\b",
    "fix": r"\bmend(?:s|ed|ing)?\b",
    "expensive": r"\bdear\b",
}
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "ARCHITECTURE")),
    *(ROOT / "CHANGELOG.md", PACKAGE / "skill.md"),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("notebooks/*.md")),
]


def texts():
    """Each text that a person reads, with the file that holds it."""
    for path in PAGES:
        yield path, path.read_text(encoding="utf-8")
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                yield path, "".join(cell["source"])
    for path in sorted(PACKAGE.rglob("*.py")):
        for text in sentences(path.read_text(encoding="utf-8")):
            yield path, text


def sentences(source):
    """The texts in a module, without its docstrings."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings and " " in node.value:
            yield node.value


def stops(text):
    """What stops a reader in a text: the phrase, and what to write."""
    plain = " ".join(text.split())
    return [
        f"{match[0]!r}: {better}"
        for better, pattern in RULED_OUT.items()
        for match in re.finditer(pattern, plain, re.IGNORECASE)
    ]


def test_no_text_holds_a_phrase_that_stops_its_reader():
    found = {
        (str(path.relative_to(ROOT)), stop)
        for path, text in texts()
        for stop in stops(text)
    }
    assert found == set()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The rate hangs on\nthe input.", 1),
        ("From which size on it pays is open.", 1),
        ("A core ran at 80 % at the least.", 1),
        ("It depends on the input, from the first to the last.", 0),
        ("Training from a notebook on the server.", 0),
    ],
)
def test_a_phrase_that_stops_a_reader_would_be_seen(text, count):
    assert len(stops(text)) == count
