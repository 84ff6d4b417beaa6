"""A script as it is: run up to its training call, which is taken over.

The script runs as ``__main__``, with its own arguments. Its call of ``fit`` hands over
the model and whatever it was given, and nothing behind it runs; a loop of its own has
its steps found by reading the code, as if ``perfkit.steps`` stood there. What the
script writes lands in a folder of the trial (``contained``).
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import json
import os
import re
import sys
import tokenize
import types
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import contained
from perfkit.diagnosis.training import KERAS_2
from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Whose call trains a model, and what stands in each step of a loop of one's own.
_FITS = frozenset({"fit", "fit_generator"})
_STEPS = frozenset({"GradientTape", "train_on_batch", "apply_gradients", "train_step"})
# What wraps the data of a loop without being them.
_WRAPPERS = frozenset({"enumerate", "tqdm"})
_LIBRARIES = frozenset({"keras", "tensorflow"})
# A command of IPython or of the shell.
_MAGIC = re.compile(r"^([ \t]*)[%!?].*", re.MULTILINE)
_MARK = "__perfkit_steps__"
# Set by whoever lets a script write where it wants.
UNCONTAINED = "PERFKIT_UNCONTAINED"
# More files than this are no script's own.
_MOST_FILES = 50


@dataclass(frozen=True)
class Script:
    """A script, run anew in each process.

    Attributes:
        path: Of the file, from the root.
        arguments: What stands behind its name on its own command line.
        fit: Which of its calls of ``fit`` to take, from 1; 0 for the longest.
        apart: Whether what it writes is kept apart from the user's files.
        folder: In which it runs, wherever the process was started that runs it.
    """

    path: str
    arguments: tuple[str, ...] = ()
    fit: int = 0
    apart: bool = True
    folder: str = "."

    def contain(self) -> None:
        """Go to its folder, and keep this process from writing there: ``contained``.

        Raises:
            BadParameterError: This system does not allow it.
        """
        os.chdir(self.folder)
        if not self.apart:
            return
        try:
            contained.contain([Path.cwd(), Path(self.path).parent], [Path.home()])
        except OSError as error:
            raise BadParameterError(
                f"What {Path(self.path).name} writes cannot be kept apart from your "
                f"files here ({error.strerror or error}). Diagnose a copy of its "
                f"folder, and set {UNCONTAINED}=1 to let it write there."
            ) from None

    def __call__(self) -> Any:
        """Run the script until it trains.

        Returns:
            Model, data and arguments of its ``fit``; None where a loop of its own ran.

        Raises:
            BadParameterError: It came to its end without training.
            Exception: What the script raised.
        """
        import keras

        from perfkit.diagnosis.steps import steps

        tree = parsed(self.path)
        calls = fit_calls(tree)
        line = self._chosen(calls)
        marked = None if calls else MarkSteps(tree)
        code = compile(tree, self.path, "exec")
        main = types.ModuleType("__main__")
        main.__dict__.update({"__file__": self.path, _MARK: steps})
        sys.modules["__main__"] = main
        sys.argv = [self.path, *self.arguments]
        sys.path.insert(0, str(Path(self.path).parent))
        real = keras.Model.fit
        keras.Model.fit = _taking(real, self.path, line)
        try:
            exec(code, main.__dict__)
        except _Taken as taken:
            return taken.handed_over
        except SystemExit as ended:
            raise BadParameterError(
                f"{Path(self.path).name} ended itself with {ended.code!r} before it "
                "trained; if it needs arguments, give them behind `--`."
            ) from None
        finally:
            keras.Model.fit = real
        if not (marked and marked.count):
            raise BadParameterError(
                f"{Path(self.path).name} came to its end without a call of fit."
            )
        return None

    def _chosen(self, calls: list[ast.Call]) -> int:
        """The line of the call to take; 0 for whichever comes first."""
        if self.fit > len(calls):
            raise BadParameterError(
                f"{Path(self.path).name} calls fit {len(calls)} times; there is no "
                f"number {self.fit}."
            )
        if self.fit:
            return calls[self.fit - 1].lineno
        if len(calls) < 2:
            return 0
        return max(calls, key=_epochs).lineno


def script(path: Path, arguments: tuple[str, ...] = (), fit: int = 0) -> Script:
    """Read a script and refuse what trains nothing, before anything of it runs.

    Raises:
        BadParameterError: It cannot be read, or nowhere calls what trains.
    """
    if not isinstance(fit, int) or fit < 0:
        raise BadParameterError(
            f"fit is {fit!r}; give the number of a call of fit, from 1."
        )
    try:
        names = set(_named(path, set()))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BadParameterError(
            f"{path.name} cannot be read as Python: {error}."
        ) from None
    if "tf_keras" in names and importlib.util.find_spec("tf_keras"):
        raise BadParameterError(f"{path.name} trains with {KERAS_2}")
    if not (names & _LIBRARIES and names & (_FITS | _STEPS)):
        raise BadParameterError(
            f"{path.name} trains nothing with TensorFlow: neither it nor a file beside "
            "it calls fit, train_on_batch or GradientTape. Nothing of it was run."
        )
    tree = parsed(str(path))
    calls = fit_calls(tree)
    if not names & _FITS and not MarkSteps(tree).count:
        raise BadParameterError(
            f"The loop that trains is not found in {path.name}: mark its steps, "
            "`for batch in perfkit.steps(data):`, or diagnose the file that it lies "
            "in. Nothing of it was run."
        )
    # Asked here: trials have the environment and the folder of their launcher.
    apart = not os.environ.get(UNCONTAINED)
    found = Script(str(path), arguments, fit, apart, os.getcwd())
    found._chosen(calls)
    return found


def source(path: str) -> str:
    """Read a script, or the code of a notebook without what only IPython understands.

    Raises:
        SyntaxError: The file has no encoding that it says, or that Python reads.
        ValueError: It is no notebook.
    """
    with tokenize.open(path) as file:
        text = file.read()
    if not path.endswith(".ipynb"):
        return text
    cells = json.loads(text).get("cells", [])
    code = ["".join(c["source"]) for c in cells if c.get("cell_type") == "code"]
    # A line stays a line, so that its number does not change.
    return _MAGIC.sub(r"\1pass", "\n".join(code))


def parsed(path: str) -> ast.Module:
    """Parse a file, in whatever encoding it says it has."""
    return ast.parse(source(path), path)


def fit_calls(tree: ast.AST) -> list[ast.Call]:
    """Every call of ``fit`` that stands there, in the order of its lines."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    found = (c for c in calls if _name(c) in _FITS and _is_training(c))
    return sorted(found, key=lambda call: call.lineno)


def _is_training(call: ast.Call) -> bool:
    """Whether it may be a model's: scalers and tokenizers are fitted to one thing."""
    return len(call.args) + len(call.keywords) > 1


def _named(path: Path, seen: set[Path]) -> Iterator[str]:
    """Every name that a file and those beside it that it imports speak of."""
    if path in seen or len(seen) >= _MOST_FILES:
        return
    seen.add(path)
    for node in ast.walk(parsed(str(path))):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0]
                yield from _beside(path, alias.name, seen)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
            yield from (alias.name for alias in node.names)
            yield from _beside(path, node.module or "", seen)
            for alias in node.names:
                yield from _beside(path, f"{node.module or ''}.{alias.name}", seen)


def _beside(path: Path, module: str, seen: set[Path]) -> Iterator[str]:
    place = path.parent.joinpath(*module.strip(".").split("."))
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if module.strip(".") and file.is_file():
            yield from _named(file, seen)


def _name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _epochs(call: ast.Call) -> int:
    """The epochs that are written in a call; 1 where none are."""
    given = [k.value for k in call.keywords if k.arg == "epochs"]
    value = given[0].value if given and isinstance(given[0], ast.Constant) else 1
    return value if isinstance(value, int) else 1


class _Taken(BaseException):
    """Ends the script at its training call; no ``except Exception`` stops it."""

    def __init__(self, handed_over: tuple[Any, Any, dict[str, Any]]) -> None:
        super().__init__()
        self.handed_over = handed_over


class _NotTrained:
    """Stands for the history of a training that was passed over."""

    def __init__(self) -> None:
        self.history: dict[str, list[float]] = defaultdict(lambda: [0.0])
        self.epoch: list[int] = []


def _taking(real: Any, path: str, line: int) -> Any:
    """What takes the place of ``fit``: it ends the script, or passes over an early one.

    Args:
        real: Keras's own.
        path: Of the script.
        line: Of the call to take; 0 for the first.
    """
    signature = inspect.signature(real)

    @functools.wraps(real)
    def taking(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        here = frame.f_code.co_filename == path
        if line and here and not _stands_at(frame.f_lineno, line, path):
            return _NotTrained()
        given = dict(signature.bind(*args, **kwargs).arguments)
        given |= given.pop("kwargs", {})
        model, x = given.pop("self"), given.pop("x", None)
        y, weight = given.pop("y", None), given.pop("sample_weight", None)
        parts = [x, y, weight] if weight is not None else [x, y]
        data = x if y is None and not hasattr(x, "shape") else tuple(parts)
        raise _Taken((model, _as_data(data, y), given))

    return taking


def _as_data(data: Any, y: Any) -> Any:
    """Arrays as a tuple: ``fit`` takes an array, a list or a dict of them as ``x``."""
    if y is None and isinstance(data, dict | list):
        return (data,)
    if isinstance(data, tuple):
        return tuple(part for part in data if part is not None)
    return data


def _stands_at(now: int, line: int, path: str) -> bool:
    """Whether a call that began in ``line`` is the one that runs ``now``."""
    call = next(c for c in fit_calls(parsed(path)) if c.lineno == line)
    return line <= now <= (call.end_lineno or line)


class MarkSteps(ast.NodeTransformer):
    """Marks the steps of the loops of a script, as ``perfkit.steps`` does by hand.

    A loop is marked where its body takes gradients, itself or through functions of the
    same file, and no loop within it does.

    Args:
        tree: The script; it is changed.

    Attributes:
        count: Loops that are marked, by their author or here.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        self._training, self._looping = set(_STEPS), set[str]()
        # Who calls what trains does so as well, however many calls lie between.
        for _ in self._functions:
            self._training.update(f.name for f in self._functions if self._trains(f))
        self._looping = {f.name for f in self._functions if any(self._loops_in(f))}
        self.count = sum(_is_mark(node) for node in ast.walk(tree))
        if not self.count:
            self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave alone what becomes a graph: its loops are no steps."""
        if any("function" in ast.unparse(by) for by in node.decorator_list):
            return node
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        """Mark the innermost loop that trains."""
        inner = any(self._loops_in(*node.body)) or _called(*node.body) & self._looping
        if inner or not self._trains(*node.body):
            return self.generic_visit(node)
        node.iter = self._marked(node.iter)
        return ast.fix_missing_locations(node)

    def _marked(self, data: ast.expr) -> ast.expr:
        if isinstance(data, ast.Call) and _name(data) in _WRAPPERS and data.args:
            data.args[0] = self._marked(data.args[0])
            return data
        self.count += 1
        return ast.copy_location(
            ast.Call(ast.Name(_MARK, ast.Load()), [data], []), data
        )

    def _loops_in(self, *nodes: ast.AST) -> Iterator[ast.For]:
        for part in nodes:
            for node in ast.walk(part):
                if isinstance(node, ast.For) and self._trains(*node.body):
                    yield node

    def _trains(self, *nodes: ast.AST) -> bool:
        return bool(_called(*nodes) & self._training)


def _called(*nodes: ast.AST) -> set[str]:
    inner = (node for part in nodes for node in ast.walk(part))
    return {_name(node) for node in inner if isinstance(node, ast.Call)}


def _is_mark(node: ast.AST) -> bool:
    """Whether this is ``perfkit.steps(...)``."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "perfkit.steps"
