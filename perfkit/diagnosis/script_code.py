"""The code of a script or a notebook, read and never run."""

from __future__ import annotations

import ast
import itertools
import json
import linecache
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.names import called, keyword, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

# Whose call trains a model.
FITS = frozenset({"fit", "fit_generator"})
# What only the training of a network is given.
_TRAINING_ONLY = frozenset(
    {
        *("epochs", "batch_size", "validation_data", "validation_split", "callbacks"),
        *("steps_per_epoch", "class_weight", "verbose"),
    }
)
# Where they stand in a call that names none.
_EPOCHS_AT = 3
# More files than this are no script's own.
_MOST_FILES = 50
# A cell that is only timed is code like any other.
_TIMED = ("%%time", "%%timeit", "%%capture")


def source(path: str) -> str:
    """Read a script, or the code of a notebook as Python.

    Raises:
        SyntaxError: The file has no encoding that it says, or that Python reads.
        ValueError: It is no notebook.
    """
    with tokenize.open(path) as file:
        text = file.read()
    return text if not path.endswith(".ipynb") else "\n".join(_code_cells(text))


def cells(path: str) -> tuple[int, ...]:
    """The lines in which a notebook's cells of code begin; none for all other files.

    Raises:
        ValueError: It is no notebook.
    """
    if not path.endswith(".ipynb"):
        return ()
    code = _code_cells(Path(path).read_text(encoding="utf-8"))
    counts = (cell.count("\n") + 1 for cell in code[:-1])
    return tuple(itertools.accumulate(counts, initial=1))


def parsed(path: str) -> ast.Module:
    """Parse a file, in whatever encoding it says it has."""
    return ast.parse(source(path), path)


def keep_for_autograph(path: str) -> None:
    """Let who asks for lines of a notebook get those of its code, not of the file.

    TensorFlow reads the source of what it makes a graph of.
    """
    if path.endswith(".ipynb"):
        text = source(path)
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)


def fit_calls(tree: ast.AST) -> list[ast.Call]:
    """Every call of ``fit`` that stands there, in the order of its lines.

    Scalers and tokenizers are fitted to one thing.
    """
    fits = (call for call in of_kind(ast.Call, tree) if called(call) in FITS)
    found = (call for call in fits if len(call.args) + len(call.keywords) > 1)
    return sorted(found, key=lambda call: call.lineno)


def trains_by_fit(tree: ast.AST) -> bool:
    """Whether it is sure that a call of ``fit`` here is one of Keras's own."""
    own = any(getattr(n, "name", "") in FITS for n in ast.walk(tree))
    given = (k.arg for call in fit_calls(tree) for k in call.keywords)
    return not own and any(name in _TRAINING_ONLY for name in given)


def longest(calls: list[ast.Call], tree: ast.AST) -> ast.Call:
    """The call of ``fit`` with most epochs, as far as they can be read."""
    numbers = {
        called(target): node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if called(target)
    }
    return max(calls, key=lambda call: _epochs(call, numbers))


def names_in(path: Path, seen: set[Path]) -> Iterator[str]:
    """Every name that a file and those beside it that it imports speak of."""
    if path in seen or len(seen) >= _MOST_FILES:
        return
    seen.add(path)
    for node in ast.walk(parsed(str(path))):
        if isinstance(node, ast.Attribute | ast.Name):
            yield called(node)
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0]
                yield from _beside(path, alias.name, seen)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield module.partition(".")[0]
            yield from _beside(path, module, seen)
            for alias in node.names:
                yield alias.name
                yield from _beside(path, f"{module}.{alias.name}", seen)


def _code_cells(text: str) -> list[str]:
    # Imported here: only notebooks need it.
    from IPython.core.inputtransformer2 import TransformerManager

    manager: Any = TransformerManager()  # type: ignore[no-untyped-call]
    found = []
    for cell in json.loads(text).get("cells", []):
        if cell.get("cell_type") != "code":
            continue
        code = "".join(cell["source"])
        first, end, rest = code.partition("\n")
        alone = f"pass{end}{rest}" if first.strip() in _TIMED else code
        lines = manager.transform_cell(alone).rstrip("\n")
        # A line stays where it is, so that its number does not change.
        missing = code.rstrip("\n").count("\n") - lines.count("\n")
        found.append(lines + "\n" * max(0, missing))
    return found


def _epochs(call: ast.Call, numbers: dict[str, int]) -> int:
    """The epochs that are written in a call, or behind a name; 1 where none are."""
    value = keyword(call, "epochs", _EPOCHS_AT)
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, int) else 1
    return numbers.get(called(value) if value else "", 1)


def _beside(path: Path, module: str, seen: set[Path]) -> Iterator[str]:
    place = path.parent.joinpath(*module.strip(".").split("."))
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if module.strip(".") and file.is_file():
            yield from names_in(file, seen)
