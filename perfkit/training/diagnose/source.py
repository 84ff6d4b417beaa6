"""Code that is read and never run: its tree, and its calls of fit."""

import ast
import itertools
import json
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def dotted(node: ast.AST) -> str:
    """``"tf.data.Dataset"`` for a name or its attributes; "" for all else."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([node.id, *words[::-1]]) if isinstance(node, ast.Name) else ""


def called_name(node: ast.AST) -> str:
    """The last word of what is called: ``"map"`` for ``data.map(f)``."""
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def keyword(call: ast.Call, name: str, position: int = -1) -> ast.expr | None:
    """What a call gives for an argument; None where it gives nothing."""
    values = (argument.value for argument in call.keywords if argument.arg == name)
    positional = call.args[position : position + 1] if position >= 0 else []
    return next(values, positional[0] if positional else None)


def hides(call: ast.Call) -> bool:
    """Whether a call gives what cannot be seen, as ``**options`` does."""
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return starred or any(argument.arg is None for argument in call.keywords)


def receiver(node: ast.AST) -> ast.expr | None:
    """What a method is called on; None where nothing is, or nothing is called."""
    function = node.func if isinstance(node, ast.Call) else node
    return function.value if isinstance(function, ast.Attribute) else None


def of_kind(kind: type[Node], *within: ast.AST) -> Iterator[Node]:
    """Every node of a kind that stands in others, or is one of them."""
    nodes = (node for root in within for node in ast.walk(root))
    return (node for node in nodes if isinstance(node, kind))


def methods_of(*classes: ast.ClassDef) -> set[str]:
    """The names of all that classes define themselves."""
    return {getattr(part, "name", "") for node in classes for part in node.body}


def is_literal(node: ast.AST | None, value: object) -> bool:
    """Whether a node is that very constant, such as ``True``."""
    return isinstance(node, ast.Constant) and node.value is value


# Of a script or a notebook.

# What reading and parsing code that cannot be read ends in.
UNREADABLE = (
    *(OSError, TypeError, SyntaxError, ValueError),
    *(RecursionError, MemoryError, LookupError),
)
# A notebook holds its pictures; no code takes a tenth of it.
_LARGEST_BYTES = 64 * 10**6
# What trains networks, by the names that code imports it by.
KERAS = frozenset({"keras", "tensorflow", "tf_keras"})
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
# What is only timed is code like any other.
_TIMED_CELL = re.compile(r"\A[ \t]*%%(time|timeit|capture)(?!\S).*")
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
    with tokenize.open(path) as file:
        text = file.read()
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


def in_cell(starts: Sequence[int], line: int) -> tuple[int, int]:
    """Which cell a line stands in, from 1, and which line it is there.

    The cells begin where ``cells_of`` says; without any it is 0 and the line itself.
    """
    before = [start for start in starts if start <= line]
    return len(before), line - before[-1] + 1 if before else line


def parse(path: str) -> ast.Module:
    """Parse a file, in whatever encoding it says it has."""
    return ast.parse(text_of(path), path)


def fit_calls(tree: ast.AST) -> list[ast.Call]:
    """Every call of ``fit`` that stands there, in the order of its lines.

    Scalers and tokenizers are fitted to one thing.
    """
    fits = (call for call in of_kind(ast.Call, tree) if called_name(call) in FITS)
    model_fits = (call for call in fits if len(call.args) + len(call.keywords) > 1)
    return sorted(model_fits, key=lambda call: call.lineno)


def fits_scalers(*trees: ast.Module) -> bool:
    """Whether all that is fitted there is given one thing, and no model is.

    A model with a step of its own may have any name.
    """
    calls = [call for call in of_kind(ast.Call, *trees) if called_name(call) in FITS]
    trains = any(
        "model" in ast.unparse(receiver(call) or call).lower()
        or hides(call)
        or len(call.args) + len(call.keywords) > 1
        for call in calls
    )
    models = (node for node in of_kind(ast.ClassDef, *trees) if node.bases)
    return bool(calls) and not trains and "train_step" not in methods_of(*models)


def tells_epochs(call: ast.Call) -> bool:
    """Whether a call of ``fit`` says for how many epochs it trains."""
    return keyword(call, "epochs", _EPOCHS_AT) is not None


def is_certain(tree: ast.Module, call: ast.Call) -> bool:
    """Whether a call tells epochs and is made, whatever a script is asked."""
    names = {called_name(node) for node in of_kind(ast.Call, tree)}
    doubtful = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test))
        or (isinstance(node, ast.FunctionDef) and node.name not in names)
    ]
    is_reached = all(call not in of_kind(ast.Call, node) for node in doubtful)
    return is_reached and tells_epochs(call)


def trains_by_fit(tree: ast.AST) -> bool:
    """Whether it is sure that a call of ``fit`` here is one of Keras's own."""
    is_defined = any(getattr(n, "name", "") in FITS for n in ast.walk(tree))
    names = (k.arg for call in fit_calls(tree) for k in call.keywords)
    return not is_defined and any(name in _TRAINING_ONLY for name in names)


def longest(calls: list[ast.Call], tree: ast.AST) -> ast.Call:
    """The call of ``fit`` with most epochs, as far as they can be read."""
    numbers = {
        called_name(target): node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if called_name(target)
    }

    def sooner(call: ast.Call) -> tuple[bool, bool, int]:
        # Models of other libraries are fitted as well, without a word of epochs, and
        # of other things with less.
        trains = any(k.arg in _TRAINING_ONLY for k in call.keywords)
        return tells_epochs(call), trains, _epochs(call, numbers)

    return max(calls, key=sooner)


def words_in(path: Path, files: set[Path], folder: Path | None = None) -> Iterator[str]:
    """Every name that a file and those beside it that it imports speak of.

    It adds what it reads to ``files``. Python looks in the folder of the script that
    runs, which is that of this file where none is given.
    """
    if path in files or len(files) >= _MOST_FILES:
        return
    files.add(path)
    folder = folder or path.parent
    for node in ast.walk(parse(str(path))):
        if isinstance(node, ast.Attribute | ast.Name):
            yield called_name(node)
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names, folders = [alias.name for alias in node.names], [folder, path.parent]
            if isinstance(node, ast.ImportFrom):
                yield from names
                module = node.module or ""
                names = [module, *(f"{module}.{name}" for name in names)]
                # Each dot in front of a name leads one folder up.
                if node.level:
                    folders = [*path.parents][node.level - 1 : node.level]
            yield from (name.partition(".")[0] for name in names)
            for file in _files_of(names, folders):
                yield from words_in(file, files, folder)


def _files_of(modules: list[str], folders: list[Path]) -> Iterator[Path]:
    """The files of modules, as far as these folders hold them."""
    for parts in (list(filter(None, module.split("."))) for module in modules):
        for place in (folder.joinpath(*parts) for folder in folders if parts):
            files = place.with_suffix(".py"), place / "__init__.py"
            yield from (file for file in files if file.is_file())


def _code_cells(text: str) -> list[str]:
    """The code of a notebook's cells as Python, none of their lines moved."""
    # Imported here: only notebooks need it.
    from IPython.core.inputtransformer2 import TransformerManager

    manager: Any = TransformerManager()  # type: ignore[no-untyped-call]
    texts = []
    try:
        cells = json.loads(text).get("cells", [])
        sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    except (AttributeError, LookupError, TypeError):
        raise ValueError("it is not a notebook") from None
    for code in sources:
        untimed = _TIMED_LINE.sub(r"\1", _TIMED_CELL.sub("pass", code))
        lines = manager.transform_cell(untimed).rstrip("\n")
        # A line stays where it is, so that its number does not change.
        missing = code.rstrip("\n").count("\n") - lines.count("\n")
        texts.append(lines + "\n" * max(0, missing))
    return texts


def _epochs(call: ast.Call, numbers: dict[str, int]) -> int:
    """The epochs that are written in a call, or behind a name; 1 where none are."""
    value = keyword(call, "epochs", _EPOCHS_AT)
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, int) else 1
    return numbers.get(called_name(value) if value else "", 1)
