"""Where a training comes from: a function, one in a file, or a script as it is.

And its code, read and never run.
"""

import ast
import contextlib
import hashlib
import importlib.util
import inspect
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfkit.errors import BadParameterError
from perfkit.training.diagnose import guard, layers, source
from perfkit.training.diagnose.script import Script, script
from perfkit.training.diagnose.source import UNREADABLE

# Set to let a training write anywhere.
UNCONTAINED = "PERFKIT_UNCONTAINED"
_MODULE = "perfkit_training"
_FUNCTION = "make_training"
_CONTRACT = "def make_training(): return model, dataset"


@dataclass(frozen=True)
class InFile:
    """A function in a file, found there anew in each process.

    Attributes:
        path: Of the file, from the root.
        name: Of the function.
        lent: The folder that links around the file lead to; "" for none.
    """

    path: str
    name: str
    lent: str = ""

    def __call__(self) -> Any:
        """Run the file, as ``import`` would, and call its function."""
        path = guard.copied(self.path)
        folder = str(Path(path).parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        spec = importlib.util.spec_from_file_location(_MODULE, path)
        if spec is None or spec.loader is None:
            raise BadParameterError(f"{Path(self.path).name} is not a Python file.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[_MODULE] = module
        spec.loader.exec_module(module)
        if not hasattr(module, self.name):
            raise BadParameterError(
                f"{Path(self.path).name} has no function {self.name}; "
                f"it needs one such as `{_CONTRACT}`."
            )
        return getattr(module, self.name)()


def maker(
    training: Any,
    arguments: Sequence[str] = (),
    fit: int = 0,
    read: Callable[[Path, tuple[str, ...], int], Script] = script,
) -> Callable[[], Any]:
    """Understand what ``diagnose`` was given.

    Of ``"FILE.py"`` the function ``make_training`` is taken if it has one; else it is a
    script as it is, which ``read`` reads. What trains nothing is refused.
    """
    if isinstance(training, str | Path):
        file, name = _place_in(str(training))
        return InFile(str(file), name) if name else read(file, tuple(arguments), fit)
    if isinstance(training, type) or not callable(training):
        raise BadParameterError(
            f"diagnose() takes a function, such as `{_CONTRACT}`, or a script, such as "
            f'"train.py", not {type(training).__name__}.'
        )
    function: Callable[[], Any] = training
    return function


def contain(maker: Callable[[], Any], *keep: str) -> str:
    """Keep this process from the user's files, but for these folders, and the network.

    It goes to the folder of a script, and has no other thread yet. The process is
    sealed, its writes lie in layers over the user's folders; where the system does not
    allow that it is guarded, and works on a copy of its folder.

    Returns:
        Who refuses what of a process that is guarded, in sentences; "" of a sealed one.
    """
    if isinstance(maker, Script):
        os.chdir(maker.folder)
    if os.environ.get(UNCONTAINED):
        return ""
    folders, lent = [Path.cwd()], ""
    if isinstance(maker, Script | InFile):
        folders, lent = [*folders, Path(maker.path).parent], maker.lent
    covered = [*folders, Path(lent)] if lent else folders
    online = bool(os.environ.get(layers.ONLINE))
    reason = f"{guard.FORCED} is set"
    if not os.environ.get(guard.FORCED):
        refusal = layers.refusal(covered, keep, online=online)
        if not refusal:
            try:
                layers.contain(covered, keep, online=online)
                return ""
            except OSError as error:
                refusal = error.strerror or str(error)
        reason = f"this system allows no layers over folders: {refusal}"
    return guard.guard(folders, keep, reason=reason, lent=lent)


def name_of(maker: Callable[[], Any]) -> str:
    """What a reader knows it by; no path, which would name users and hosts."""
    if isinstance(maker, InFile):
        return f"{Path(maker.path).name}:{maker.name}"
    if isinstance(maker, Script):
        return Path(maker.path).name
    return str(getattr(maker, "__name__", "a function"))


def _place_in(text: str) -> tuple[Path, str]:
    """The file that is given, and the function in it; "" for a script."""
    path, _, name = text.rpartition(":")
    if not path or not name.isidentifier():
        path, name = text, ""
    file = Path(path).expanduser()
    if not file.is_file():
        raise BadParameterError(
            f"There is no file {file.name}; give a script, or FILE.py:make_training."
        )
    file = file.resolve()
    return file, name or (_FUNCTION if _has(file, _FUNCTION) else "")


def _has(file: Path, name: str) -> bool:
    """Whether a file makes a name of its own, as far as can be read."""
    with contextlib.suppress(*UNREADABLE):
        for node in source.parse(str(file)).body:
            names = {getattr(to, "id", "") for to in getattr(node, "targets", ())}
            if name in names | {getattr(node, "name", "")}:
                return True
    return False


# Beyond this, some 2,000 lines, a file is no training that somebody wrote.
_LONGEST = 80_000


@dataclass(frozen=True)
class Source:
    """The code of a training, and where it stands.

    Attributes:
        text: All of the file or the cell.
        path: Of the file; "" for a cell that was run.
        function: That makes the training; "" for a script.
        line: Where the function begins; 0 for the one outside of all others.
        fit: The line of a script's call of ``fit`` that is taken; 0 for the only one.
        cells: Of a notebook: the lines in which its cells of code begin.
    """

    text: str
    path: str = ""
    function: str = ""
    line: int = 0
    fit: int = 0
    cells: tuple[int, ...] = ()


def source_of(maker: Callable[[], Any]) -> Source:
    """Read the code of a training.

    Raises:
        OSError: There is no source, or more of it than anybody wrote.
        TypeError: It is no function of Python.
        SyntaxError: The file is no Python, or has an encoding that Python cannot read.
        ValueError: It is no notebook, or has no such call of ``fit``.
    """
    if isinstance(maker, InFile):
        return Source(_short(source.text_of(maker.path)), maker.path, maker.name)
    if isinstance(maker, Script):
        # A notebook holds its pictures besides its code.
        text = _short(source.text_of(maker.path))
        line = maker.line_of_fit(tree := ast.parse(text))
        # Another call trains where that one never comes.
        fit = line if maker.is_sure(tree, line) else 0
        return Source(text, maker.path, fit=fit, cells=source.cells_of(maker.path))
    function = inspect.unwrap(maker)
    code = getattr(function, "__code__", None)
    if code is None:
        raise TypeError("It has no code of Python.")
    text = _short("".join(inspect.findsource(function)[0]))
    file = inspect.getsourcefile(function) or ""
    path = file if Path(file).is_file() else ""
    return Source(text, path, function.__name__, code.co_firstlineno)


def assigned(maker: Callable[[], Any]) -> dict[str, str]:
    """The variables that its code sets to plain text before it imports TensorFlow.

    Trials come from a process that has imported it before any of them sets one. So what
    stands plainly in the code is set before that, and what is set later is told.
    """
    # Imported here: a script is refused before what measures is loaded.
    from perfkit.engine.launcher import read_early

    try:
        code = source_of(maker)
        body = ast.parse(code.text).body
    except UNREADABLE:
        return {}
    functions = (node for node in body if isinstance(node, ast.FunctionDef))
    inside = next((f.body for f in functions if f.name == code.function), [])
    # The rest of a notebook's cell has been run already, in the kernel.
    nodes = [*body, *inside] if isinstance(maker, InFile | Script) else inside
    return read_early(dict(_before_import(nodes)))


def _before_import(nodes: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        match node:
            case ast.Import() | ast.ImportFrom():
                modules = [getattr(node, "module", a.name) or "" for a in node.names]
                # Its import reads variables of the environment.
                if any(name.partition(".")[0] in source.KERAS for name in modules):
                    return
            case ast.Assign(
                targets=[ast.Subscript(value=where, slice=ast.Constant(str(name)))],
                value=ast.Constant(str(value)),
            ) if ast.unparse(where) in ("os.environ", "environ"):
                yield name, value
            case ast.Expr(
                ast.Call(func=way, args=[ast.Constant(str(name)), ast.Constant(str(v))])
            ):
                function = ast.unparse(way).removeprefix("os.")
                default = function == "environ.setdefault" and name not in os.environ
                if default or function == "putenv":
                    yield name, v


def digest(maker: Callable[[], Any]) -> str:
    """Tell the code around a function from any other; "" where it cannot be read.

    Comments and the layout of lines are no part of it; what a script is given is.
    """
    try:
        code = ast.unparse(ast.parse(source_of(maker).text))
    except UNREADABLE:
        return ""
    if isinstance(maker, Script):
        code += repr((maker.arguments, maker.fit))
    return hashlib.sha256(code.encode()).hexdigest()


def tell_edits(maker: Callable[[], Any], code: str) -> Iterator[str]:
    """Say that a training is no longer what ``digest`` gave as its run began."""
    if digest(maker) != code:
        name = name_of(maker)
        yield f"{name} changed during this run, so it mixes two versions: run it again."


def _text_of(file: str) -> str:
    # A kernel knows the text of its cells, which lie in no file.
    lines = linecache.getlines(file) if "ipykernel" in file else []
    return "".join(lines) or source.text_of(file)


def _short(text: str) -> str:
    if len(text) > _LONGEST:
        raise OSError("It is too long to be read.")
    return text


# A cell of the same kernel: Python numbers them in a way that no reader sees.
OTHER_CELL = "another cell"


class LineNames:
    """How files and lines are called, and what stands there, if that may be read.

    ``of_cell`` is what Python calls the cell that the training stands in; "" for a
    file.
    """

    def __init__(self, maker: Callable[[], Any], *, with_text: bool = True) -> None:
        self._maker, self._with_text = maker, with_text
        self._cells: dict[str, tuple[int, ...]] = {}
        self._texts: dict[str, list[str]] = {}
        self._outside: dict[str, str] = {}
        path = getattr(maker, "path", "")
        self._root = os.path.dirname(path) if path else guard.original(os.getcwd())
        file = getattr(getattr(maker, "__code__", None), "co_filename", "")
        self.of_cell = "" if Path(file).is_file() else file

    def locate(self, file: str, line: int) -> tuple[str, int, int]:
        """File, cell and line as a reader knows them."""
        if file == self.of_cell:
            return "", 0, line
        if "ipykernel" in file:
            return OTHER_CELL, 0, line
        name = os.path.relpath(file, self._root) if self._root else file
        if name.startswith(".."):
            name = os.path.basename(file)
            # Their folder is told only where it is needed.
            if self._outside.setdefault(name, file) != file:
                name = "/".join(Path(file).parts[-2:])
        return name, *source.in_cell(self.cells_of(file), line)

    def cells_of(self, file: str) -> tuple[int, ...]:
        """Of a notebook: the lines in which its cells begin; none of any other file."""
        if file not in self._cells:
            try:
                self._cells[file] = source.cells_of(file)
            except UNREADABLE:
                self._cells[file] = ()
        return self._cells[file]

    def code(self, file: str, line: int) -> str:
        """What stands there; "" where that was left out, or cannot be read."""
        if not self._with_text:
            return ""
        if file not in self._texts:
            try:
                of_cell = self.of_cell and file == self.of_cell
                text = source_of(self._maker).text if of_cell else _text_of(file)
                self._texts[file] = text.splitlines()
            except UNREADABLE:
                self._texts[file] = []
        lines = self._texts[file]
        return lines[line - 1] if 0 < line <= len(lines) else ""
