"""Code that is read and never run: its tree, what binds its names, and calls of fit."""

import ast
import itertools
import json
import linecache
import re
import tokenize
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Import = ast.Import | ast.ImportFrom
_REBINDS = (ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension)
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def dotted(node: ast.AST) -> str:
    """``"tf.data.Dataset"`` for a name or its attributes; "" for all else."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([node.id, *words[::-1]]) if isinstance(node, ast.Name) else ""


def called(node: ast.AST) -> str:
    """The last word of what is called: ``"map"`` for ``data.map(f)``."""
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def keyword(call: ast.Call, name: str, position: int = -1) -> ast.expr | None:
    """What a call gives for an argument; None where it gives nothing."""
    found = (one.value for one in call.keywords if one.arg == name)
    given = call.args[position : position + 1] if position >= 0 else []
    return next(found, given[0] if given else None)


def hides(call: ast.Call) -> bool:
    """Whether a call gives what cannot be seen, as ``**options`` does."""
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    return starred or any(one.arg is None for one in call.keywords)


def receiver(node: ast.AST) -> ast.expr | None:
    """What a method is called on; None where nothing is, or nothing is called."""
    function = node.func if isinstance(node, ast.Call) else node
    return function.value if isinstance(function, ast.Attribute) else None


def of_kind(kind: type[Node], *within: ast.AST) -> Iterator[Node]:
    """Every node of a kind that stands in others, or is one of them."""
    nodes = (node for one in within for node in ast.walk(one))
    return (node for node in nodes if isinstance(node, kind))


def calls_in(*within: ast.AST) -> set[str]:
    """The last words of all that is called there."""
    return {called(call) for call in of_kind(ast.Call, *within)}


def names_in(*within: ast.AST) -> set[str]:
    """Every name that stands there, by itself or before a dot."""
    return {one.id for one in of_kind(ast.Name, *within)}


def stored_in(*within: ast.AST) -> set[str]:
    """Every name that is given a value there."""
    names = of_kind(ast.Name, *within)
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def is_literal(node: ast.AST | None, value: object) -> bool:
    """Whether a node is that very constant, such as ``True``."""
    return isinstance(node, ast.Constant) and node.value is value


def own(scope: ast.AST) -> Iterator[ast.AST]:
    """What stands in a scope itself, not in the functions and classes inside it."""
    waiting = deque(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.popleft()
        yield node
        if not isinstance(node, (*_SCOPES, ast.ClassDef)):
            waiting.extendleft([*ast.iter_child_nodes(node)][::-1])


class Names:
    """The scopes of a tree, and what binds each name in them.

    A name is bound by an expression, a definition, a parameter (``ast.arg``), or by a
    statement that hides its value, such as a loop.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._parents = {
            child: node
            for node in ast.walk(tree)
            for child in ast.iter_child_nodes(node)
        }
        self._bound: dict[ast.AST, dict[str, list[ast.AST]]] = {}

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, from the inside out."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def function_of(self, node: ast.AST) -> Function | None:
        """The function that a node stands in; None outside of all."""
        return next((f for f in self.above(node) if isinstance(f, Function)), None)

    def lookup(self, name: ast.Name) -> list[ast.AST]:
        """All that binds a name in the innermost scope that knows it."""
        for scope in self.above(name):
            if isinstance(scope, _SCOPES) and name.id in self.bound(scope):
                return self.bound(scope)[name.id]
        return []

    def bound(self, scope: ast.AST) -> dict[str, list[ast.AST]]:
        """Every name that a scope binds, with what binds it."""
        if scope not in self._bound:
            found: dict[str, list[ast.AST]] = defaultdict(list)
            for name, node in _bindings(scope):
                found[name].append(node)
            self._bound[scope] = dict(found)
        return self._bound[scope]


def _bindings(scope: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(scope, Function):
        yield from ((one.arg, one) for one in of_kind(ast.arg, scope.args))
    for node in own(scope):
        if isinstance(node, Definition):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _paired(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
            yield from _paired(node.target, node.value)
        elif isinstance(node, _REBINDS):
            yield from _hidden(node.target, node)
        elif isinstance(node, ast.withitem) and node.optional_vars:
            yield from _hidden(node.optional_vars, node)
        elif isinstance(node, Import):
            for alias in node.names:
                yield (alias.asname or alias.name.split(".")[0]), node


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    """Names with their values, as far as a tuple stands on both sides."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif not isinstance(target, ast.Tuple | ast.List):
        return
    elif isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        for one, its in zip(target.elts, value.elts, strict=True):
            yield from _paired(one, its)
    else:
        yield from _hidden(target, target)


def _hidden(target: ast.AST, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    return ((name, node) for name in stored_in(target))


# Of a script or a notebook.

# What reading and parsing code that cannot be read ends in.
UNREADABLE = (
    *(OSError, TypeError, SyntaxError, ValueError),
    *(RecursionError, MemoryError),
)
# A notebook holds its pictures; no code takes a tenth of it.
_LARGEST_BYTES = 64 * 10**6
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
_TIMED_LINE = re.compile(r"^([ \t]*)%time[ \t]+(?=\S)", re.MULTILINE)


def text_of(path: str) -> str:
    """Read a script, or the code of a notebook as Python.

    Raises:
        OSError: The file cannot be read, or is larger than any script.
        SyntaxError: The file has no encoding that it says, or that Python reads.
        ValueError: It is no notebook, or no text in the encoding that it says.
    """
    if Path(path).stat().st_size > _LARGEST_BYTES:
        raise OSError("it is too large to be one")
    try:
        with tokenize.open(path) as file:
            text = file.read()
    except LookupError as error:
        # An encoding of Python's that is none of texts.
        raise ValueError(str(error)) from None
    return text if not path.endswith(".ipynb") else "\n".join(_code_cells(text))


def cells_of(path: str) -> tuple[int, ...]:
    """The lines in which a notebook's cells of code begin; none for all other files.

    Raises:
        ValueError: It is no notebook.
    """
    if not path.endswith(".ipynb"):
        return ()
    code = _code_cells(Path(path).read_text(encoding="utf-8"))
    counts = (cell.count("\n") + 1 for cell in code[:-1])
    return tuple(itertools.accumulate(counts, initial=1))


def parse(path: str) -> ast.Module:
    """Parse a file, in whatever encoding it says it has."""
    return ast.parse(text_of(path), path)


def keep_for_autograph(path: str) -> None:
    """Let who asks for lines of a notebook get those of its code, not of the file.

    TensorFlow reads the source of what it makes a graph of.
    """
    if path.endswith(".ipynb"):
        text = text_of(path)
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)


def fit_calls(tree: ast.AST) -> list[ast.Call]:
    """Every call of ``fit`` that stands there, in the order of its lines.

    Scalers and tokenizers are fitted to one thing.
    """
    fits = (call for call in of_kind(ast.Call, tree) if called(call) in FITS)
    found = (call for call in fits if len(call.args) + len(call.keywords) > 1)
    return sorted(found, key=lambda call: call.lineno)


def fits_scalers(*trees: ast.Module) -> bool:
    """Whether all that is fitted there is given one thing, and no model is.

    A model with a step of its own may have any name.
    """
    calls = [one for one in of_kind(ast.Call, *trees) if called(one) in FITS]
    trains = any(
        "model" in ast.unparse(receiver(one) or one).lower()
        or hides(one)
        or len(one.args) + len(one.keywords) > 1
        for one in calls
    )
    steps = (
        getattr(part, "name", "") == "train_step"
        for one in of_kind(ast.ClassDef, *trees)
        if one.bases
        for part in one.body
    )
    return bool(calls) and not trains and not any(steps)


def tells_epochs(call: ast.Call) -> bool:
    """Whether a call of ``fit`` says for how many epochs it trains."""
    return keyword(call, "epochs", _EPOCHS_AT) is not None


def is_certain(tree: ast.Module, call: ast.Call) -> bool:
    """Whether a call is made whatever a script is asked: behind no condition."""
    names = {called(one) for one in of_kind(ast.Call, tree)}
    doubtful = [
        one
        for one in ast.walk(tree)
        if (isinstance(one, ast.If) and "__name__" not in ast.unparse(one.test))
        or (isinstance(one, ast.FunctionDef) and one.name not in names)
    ]
    return all(call not in of_kind(ast.Call, one) for one in doubtful)


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

    def sooner(call: ast.Call) -> tuple[bool, bool, int]:
        # Models of other libraries are fitted as well, without a word of epochs, and
        # of other things with less.
        trains = any(k.arg in _TRAINING_ONLY for k in call.keywords)
        return tells_epochs(call), trains, _epochs(call, numbers)

    return max(calls, key=sooner)


def spoken_in(path: Path, seen: set[Path], script: Path | None = None) -> Iterator[str]:
    """Every name that a file and those beside it that it imports speak of.

    Args:
        path: Of the file.
        seen: The files that were read; it is added to.
        script: The one that runs, beside which Python looks; None for this file.
    """
    if path in seen or len(seen) >= _MOST_FILES:
        return
    seen.add(path)
    script = script or path
    beside = [script.parent, path.parent]
    for node in ast.walk(parse(str(path))):
        if isinstance(node, ast.Attribute | ast.Name):
            yield called(node)
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0]
                yield from _in_any(beside, alias.name, seen, script)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield module.partition(".")[0]
            # Each dot in front of a name leads one folder up.
            up = [*path.parents][node.level - 1 : node.level]
            folders = up if node.level else beside
            yield from _in_any(folders, module, seen, script)
            for alias in node.names:
                yield alias.name
                yield from _in_any(folders, f"{module}.{alias.name}", seen, script)


def in_one_cell(code: str) -> bytes:
    """A notebook with nothing but this code in it."""
    cell = {"cell_type": "code", "source": [code]}
    return json.dumps({"cells": [cell]}).encode()


def _code_cells(text: str) -> list[str]:
    """The code of a notebook's cells as Python, none of their lines moved.

    Raises:
        ValueError: It is no notebook.
    """
    # Imported here: only notebooks need it.
    from IPython.core.inputtransformer2 import TransformerManager

    manager: Any = TransformerManager()  # type: ignore[no-untyped-call]
    found = []
    try:
        cells = json.loads(text).get("cells", [])
        every = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    except (AttributeError, LookupError, TypeError):
        raise ValueError("it is no notebook") from None
    for code in every:
        first, end, rest = code.partition("\n")
        timed = first.split()[:1] and first.split()[0] in _TIMED
        alone = f"pass{end}{rest}" if timed else code
        # A statement that is timed is code like any other.
        alone = _TIMED_LINE.sub(r"\1", alone)
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


def _in_any(
    folders: list[Path], module: str, seen: set[Path], script: Path
) -> Iterator[str]:
    """The names that a module in any of these folders speaks of."""
    names = [name for name in module.split(".") if name]
    for place in (one.joinpath(*names) for one in folders if names):
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                yield from spoken_in(file, seen, script)
