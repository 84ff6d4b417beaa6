"""A script as it is: run up to its training call, which is taken over.

The script runs as ``__main__``, with its own arguments. Its call of ``fit`` hands over
the model and whatever it was given, and nothing behind it runs; a loop of its own has
its steps found by reading the code, as if ``perfkit.steps`` stood there: ``MarkSteps``.
What the script writes lands in a folder of the trial (``layers``, ``guard``).
"""

import ast
import contextlib
import functools
import importlib.util
import inspect
import itertools
import linecache
import os
import re
import sys
import traceback
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from greenlet import getcurrent, greenlet

from perfkit.errors import BadParameterError, RunError
from perfkit.findings.text import plain
from perfkit.machine.environment import is_legacy
from perfkit.training.diagnose import source
from perfkit.training.diagnose.guard import copied
from perfkit.training.diagnose.source import FITS, called_name, fit_calls, parse
from perfkit.training.diagnose.training import (
    KERAS_2,
    epochs_between,
    kind_of,
    list_callbacks,
    load_keras,
    metrics_of,
)

# One that nobody holds would be ended, and clean up behind it.
_greenlets: list[greenlet] = []


def run_until_held(work: Callable[[], None]) -> Any:
    """Run work until it hands over, and give that; None where it came to its end."""
    script = greenlet(work)
    _greenlets.append(script)
    return script.switch()


def hand_over(result: Any) -> None:
    """Hand over from within the work, which then stands still for ever."""
    above = getcurrent().parent
    assert above is not None
    above.switch(result)


# What stands in each step of a loop of one's own.
STEPS = frozenset({"GradientTape", "train_on_batch", "apply_gradients", "train_step"})
MARK = "__perfkit_steps__"
# What wraps the data of a loop without being them.
_WRAPPERS = frozenset({"enumerate", "tqdm"})
# A value for ever, for a loop that goes on for ever.
_FOR_EVER = "iter(int, 1)"
_Loop = ast.For | ast.While


class MarkSteps(ast.NodeTransformer):
    """Marks the loops of a script whose turns are steps of a training.

    A turn is a step where it takes gradients, itself or through functions of the same
    file, outside of further loops: a loop over epochs is around steps, and one that
    trains a critic several times is a part of a step.

    Args:
        tree: The script; it is changed.

    Attributes:
        count: Loops that are marked, by their author or here.
    """

    def __init__(self, tree: ast.Module) -> None:
        functions = source.of_kind(ast.FunctionDef, tree)
        calls = {ast.unparse(call.func) for call in source.of_kind(ast.Call, tree)}
        assigns = (n for n in _outside_of_loops([tree]) if isinstance(n, ast.Assign))
        # What is called, by its name: functions, and what a call makes of them.
        self._functions: list[tuple[str, ast.FunctionDef | ast.Call]] = [
            *((function.name, function) for function in functions),
            *(
                (called_name(target), assign.value)
                for assign in assigns
                for target in assign.targets
                if isinstance(assign.value, ast.Call) and ast.unparse(target) in calls
            ),
        ]
        classes = {node.name for node in source.of_kind(ast.ClassDef, tree)}
        # What holds an object of one of its own classes.
        self._instances = {"self"} | {
            ast.unparse(target)
            for node in source.of_kind(ast.Assign, tree)
            if isinstance(node.value, ast.Call) and called_name(node.value) in classes
            for target in node.targets
        }
        # Dicts, bars and environments have methods of these names, too.
        self._common = _COMMON
        self._turns = self._find_turns(tree)
        if not self._turns:
            # Where it is sure which loop that is.
            self._common = frozenset()
            turns = self._find_turns(tree)
            inner = [o for o in turns if not {*turns} & {*ast.walk(o)} - {o}]
            self._turns = inner if len(inner) == 1 else []
        # ``perfkit.steps``, by that or another of its names.
        marks = {"perfkit.steps"} | {
            alias.asname or alias.name
            for node in source.of_kind(ast.ImportFrom, tree)
            for alias in node.names
            if (node.module, alias.name) == ("perfkit", "steps")
        }
        self.count = sum(
            ast.unparse(call.func) in marks for call in source.of_kind(ast.Call, tree)
        )
        if not self.count:
            self.visit(tree)

    def _find_turns(self, tree: ast.Module) -> list[_Loop]:
        self._stepping = set(STEPS)
        # Who calls what makes a step makes one, however many calls lie between.
        for _ in self._functions:
            makes = (name for name, node in self._functions if self._makes_step(node))
            self._stepping.update(makes)
        return [loop for loop in _loops(tree) if self._is_turn(loop)]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave alone what becomes a graph, and what is a part of a step."""
        inside = {*ast.walk(node)}
        # A method may have the name of a function whose loop calls it.
        names = self._reached_from(turn for turn in self._turns if turn not in inside)
        if _is_graph(node) or node.name in names:
            return node
        return self.generic_visit(node)

    def visit_For(self, node: _Loop) -> ast.AST:
        """Mark the loop if each turn is a step."""
        if node not in self._turns:
            return self.generic_visit(node)
        if isinstance(node, ast.While):
            endless = ast.parse(_FOR_EVER, mode="eval").body
            loop = ast.For(ast.Name("_", ast.Store()), endless, node.body, [])
            node = ast.copy_location(loop, node)
        node.iter = self._marked(node.iter)
        return ast.fix_missing_locations(node)

    visit_While = visit_For

    def _marked(self, data: ast.expr) -> ast.expr:
        if isinstance(data, ast.Call) and called_name(data) in _WRAPPERS and data.args:
            data.args[0] = self._marked(data.args[0])
            return data
        self.count += 1
        call = ast.Call(ast.Name(MARK, ast.Load()), [data], [])
        return ast.copy_location(call, data)

    def _makes_step(self, node: ast.FunctionDef | ast.Call) -> bool:
        body = getattr(node, "body", [node])
        inside = _outside_of_loops(body, in_graph=_is_graph(node))
        return bool(self._called_names(inside) & self._stepping)

    def _is_turn(self, loop: _Loop) -> bool:
        # Where a loop ends by what it counts, no other data may be given to it.
        test = loop.test if isinstance(loop, ast.While) else ast.Constant(True)
        if not (isinstance(test, ast.Constant) and test.value):
            return False
        return bool(self._called_names(_outside_of_loops(loop.body)) & self._stepping)

    def _reached_from(self, loops: Iterable[_Loop]) -> set[str]:
        """Names of all functions that these loops call, and those call."""
        names, nodes = set[str](), list[ast.AST](loops)
        while new := self._called_names(itertools.chain(*map(ast.walk, nodes))) - names:
            names |= new
            nodes = [node for name, node in self._functions if name in new]
        return names

    def _called_names(self, nodes: Iterable[ast.AST]) -> set[str]:
        """What these call themselves, or hand over to be called."""
        names = set[str]()
        for call in nodes:
            if isinstance(call, ast.Call):
                names.update(a.id for a in call.args if isinstance(a, ast.Name))
                names.update(a.attr for a in call.args if isinstance(a, ast.Attribute))
                receiver = source.receiver(call)
                common = receiver if called_name(call) in self._common else None
                if common is None or ast.unparse(common) in self._instances:
                    names.add(called_name(call))
        return names


def _loops(node: ast.AST) -> Iterator[_Loop]:
    """Every loop that stands there, but for those in what becomes a graph."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and _is_graph(child):
            continue
        if isinstance(child, _Loop):
            yield child
        yield from _loops(child)


def _outside_of_loops(
    nodes: Iterable[ast.AST], *, in_graph: bool = False
) -> Iterator[ast.AST]:
    """All that stands there and in no loop; in a graph, loops over data alone count."""
    for node in nodes:
        data = getattr(node, "iter", None)
        is_range = isinstance(data, ast.Call) and called_name(data) == "range"
        if isinstance(node, _Loop) and not (in_graph and is_range):
            continue
        yield node
        yield from _outside_of_loops(ast.iter_child_nodes(node), in_graph=in_graph)


def _is_graph(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", ())
    return any("function" in ast.unparse(by) for by in decorators)


# Methods of dicts, bars and environments that steps may be called by as well.
_COMMON = frozenset({"update", "step", "add", "append", "get", "write"})
# Their search calls fit, somewhere within.
_TUNERS = frozenset({"keras_tuner", "kerastuner"})


@dataclass(frozen=True)
class Script:
    """A script, run anew in each process.

    Attributes:
        path: Of the file, from the root.
        arguments: What stands behind its name on its own command line.
        fit: Which of its calls of ``fit`` to take, from 1; 0 for the longest.
        folder: In which it runs, wherever the process was started that runs it.
        lent: The folder that links around the file lead to; "" for none.
    """

    path: str
    arguments: tuple[str, ...] = ()
    fit: int = 0
    folder: str = "."
    lent: str = ""

    def __call__(self) -> Any:
        """Run the script until it trains.

        Returns:
            Model, data and arguments of its ``fit``; None where a loop of its own ran.

        Raises:
            BadParameterError: It came to its end without training.
        """
        keras = load_keras()
        tree, looped = parse(self.path), parse(self.path)
        line, steps = self.line_of_fit(tree), MarkSteps(looped).count
        loops = not source.trains_by_fit(tree)
        code = compile(looped if loops else tree, self.path, "exec")
        main = self._main()
        real, training = keras.Model.fit, None
        passed, name = dict[int, Any](), Path(self.path).name
        keras.Model.fit = _taking(real, self, line, passed)
        finder = _NoKeras2()
        if not is_legacy(os.environ):
            sys.meta_path.insert(0, finder)
        try:
            training = run_until_held(lambda: exec(code, main.__dict__))
        except SystemExit as ended:
            if ended.code or not (passed or (loops and steps)):
                raise BadParameterError(
                    f"{name} exited with {ended.code!r} before it trained; if it needs "
                    "arguments, give them after `--`."
                ) from None
        except Exception as error:
            # What stands behind a training may need what that has learnt.
            if last := max(passed, default=0):
                error.add_note(
                    f"perfkit skipped the calls of fit up to number {last}, so their "
                    f"histories are zeros here: --fit {last} diagnoses that call."
                )
            raise
        finally:
            keras.Model.fit = real
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
        if training is None and not (loops and steps):
            # What a script has closed or compiled anew since then would not be its own.
            alive = [t for t, by in passed.values() if by and t[0].optimizer is by]
            if self.fit or not alive:
                raise BadParameterError(f"{name} ended without a call of fit.")
            training = max(alive, key=lambda training: training[2]["epochs"])
        return training

    def is_sure(self, tree: ast.Module, line: int) -> bool:
        """Whether the call of ``fit`` in this line is to train, and no other."""
        calls = (call for call in fit_calls(tree) if call.lineno == line)
        return self.fit > 0 or any(source.is_certain(tree, call) for call in calls)

    def line_of_fit(self, tree: ast.Module) -> int:
        """The line of the call to take; 0 for whichever comes first.

        A number that it has no call of is refused.
        """
        calls = fit_calls(tree)
        if self.fit > len(calls):
            raise BadParameterError(
                f"{Path(self.path).name} calls fit {len(calls)} times, so there is no "
                f"call {self.fit}."
            )
        if self.fit:
            return calls[self.fit - 1].lineno
        # One that is alone may be another library's, and Keras's in another file.
        is_keras = len(calls) > 1 or any(map(source.tells_epochs, calls))
        return source.longest(calls, tree).lineno if is_keras else 0

    def _main(self) -> types.ModuleType:
        """Be what runs a script: its module, its arguments, its folder, no windows."""
        from perfkit.training.diagnose import steps

        main = types.ModuleType("__main__")
        main.__dict__[MARK] = steps
        if self.path.endswith(".ipynb"):
            # TensorFlow reads the source of what it makes a graph of.
            text, path = source.text_of(self.path), self.path
            lines = text.splitlines(keepends=True)
            linecache.cache[path] = (len(text), None, lines, path)
            main.__dict__.update({"display": _nothing, "get_ipython": _Shell})
        else:
            # Of a module with a file TensorFlow reads the file, whatever its code is.
            main.__dict__["__file__"] = copied(self.path)
        sys.modules["__main__"] = main
        paths = (copied(a) if os.path.isabs(a) else a for a in self.arguments)
        sys.argv = [copied(self.path), *paths]
        sys.path.insert(0, str(Path(copied(self.path)).parent))
        # A window would wait for somebody to close it.
        os.environ["MPLBACKEND"] = "Agg"
        return main


def script(
    path: Path, arguments: tuple[str, ...] = (), fit: int = 0, *, keras_2: bool = False
) -> Script:
    """Read a script and refuse what trains nothing, before anything of it runs.

    It may train with ``tf_keras`` where ``keras_2`` says so.

    Raises:
        BadParameterError: It cannot be read, or nowhere calls what trains.
    """
    if not isinstance(fit, int) or fit < 0:
        raise BadParameterError(
            f"fit is {fit!r}; give the number of a call of fit, 1 or more."
        )
    try:
        files = set[Path]()
        names = set(source.words_in(path, files))
        scalers = source.fits_scalers(*(parse(str(file)) for file in files))
        tree = parse(str(path))
        marked = MarkSteps(parse(str(path))).count
    except source.UNREADABLE as error:
        raise unreadable(path, error) from None
    has_keras_2 = "tf_keras" in names and importlib.util.find_spec("tf_keras")
    if has_keras_2 and not keras_2:
        raise BadParameterError(f"{path.name} trains with {KERAS_2}")
    # Scalers may be all that is fitted where a loop trains.
    fits = bool(names & FITS) and not (scalers and names & STEPS)
    fits = fits or ("search" in names and bool(names & _TUNERS))
    if not (names & source.KERAS and (fits or names & STEPS)):
        raise BadParameterError(
            f"{path.name} trains nothing with TensorFlow: neither it nor a file beside "
            "it calls fit, train_on_batch or GradientTape. perfkit did not run it."
        )
    runner = Script(str(path), arguments, fit, folder_of(path))
    runner.line_of_fit(tree)
    if not fits and not marked:
        # An epoch within a function, say: there are no steps to be found in Python.
        return WholeScript(str(path), arguments, folder=runner.folder)
    return runner


def unreadable(path: Path, error: Exception) -> BadParameterError:
    """Say that a file is no Python, and why."""
    reason = plain(str(error) or type(error).__name__)
    return BadParameterError(f"{path.name} cannot be read as Python: {reason}.")


def folder_of(path: Path) -> str:
    """Where a script runs; Jupyter starts a notebook in the folder that it lies in."""
    # Asked here: trials have the folder of their launcher.
    return str(path.parent) if path.suffix == ".ipynb" else os.getcwd()


@dataclass(frozen=True)
class WholeScript(Script):
    """A script that is run to its end, whatever it does."""

    def __call__(self) -> None:
        """Run it as Python does; ``RunError`` if it ended itself, and not well."""
        code = compile(parse(self.path), self.path, "exec")
        main = self._main()
        try:
            exec(code, main.__dict__)
        except SystemExit as ended:
            if ended.code not in (None, 0):
                name = Path(self.path).name
                raise RunError(f"{name} exited with {ended.code!r}.") from None


def whole_script(path: Path, arguments: tuple[str, ...], _: int = 0) -> WholeScript:
    """Read a script that is to be run to its end; refuse what cannot be read."""
    try:
        parse(str(path))
    except source.UNREADABLE as error:
        raise unreadable(path, error) from None
    return WholeScript(str(path), arguments, folder=folder_of(path))


class _Shell:
    """Stands for IPython in the code of a notebook: most of its commands do nothing."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return (lambda command: []) if name == "getoutput" else _nothing

    def run_line_magic(self, name: str, line: str, *_: object) -> None:
        """Obey what a training may depend on: its variables and its folder."""
        if name in ("env", "set_env"):
            variable, value = [*re.split(r"[\s=]+", line.strip(), maxsplit=1), ""][:2]
            if variable and value:
                os.environ[variable] = value
        elif name == "cd":
            # IPython, too, stays where it is and goes on.
            with contextlib.suppress(OSError):
                os.chdir(Path(line.strip().strip("'\"")).expanduser())


def _nothing(*args: object, **kwargs: object) -> None:
    """Show nothing and do nothing."""


class _NoKeras2(MetaPathFinder):
    """Finds tf_keras as Python does, and lets it train nothing.

    Libraries bring it with them, and what it trains would run to its end unseen.
    """

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Find it; None for all else, which others find."""
        spec = PathFinder.find_spec(name, path) if name == "tf_keras" else None
        if spec and spec.loader:
            loads = spec.loader.exec_module

            def refuse(*args: object, **kwargs: object) -> None:
                raise BadParameterError(f"It trains with {KERAS_2}")

            def loaded(module: types.ModuleType) -> None:
                loads(module)
                module.Model.fit = refuse

            spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return spec


def not_trained(arguments: dict[str, Any]) -> Any:
    """What stands for the history of a training that was passed over."""
    names = ["loss", *metrics_of(arguments["self"])]
    if epochs_between(arguments):
        names += [f"val_{name}" for name in names]
    history: Any = load_keras().callbacks.History()
    history.set_model(arguments["self"])
    history.epoch = list(range(int(arguments.get("epochs") or 1)))
    history.set_params({"verbose": 0, "epochs": len(history.epoch), "steps": None})
    zeros = [0.0] * len(history.epoch)
    history.history = defaultdict(zeros.copy, {name: zeros.copy() for name in names})
    return history


def _taking(real: Any, script: Script, line: int, passed: dict[int, Any]) -> Any:
    """What takes the place of Keras's own ``fit``.

    It holds the script where that trains in ``line``, in any if that is 0, and passes
    over other calls. It adds these to ``passed`` by number, 0 in other files: what was
    to be trained, and its optimizer, or None where a ``with`` closes behind it.
    """
    signature = inspect.signature(real)
    calls = fit_calls(tree := parse(script.path))
    withs = source.of_kind(ast.With, tree)
    closing = {n for w in withs for n in range(w.lineno, (w.end_lineno or 0) + 1)}
    # If that never comes, another file holds the one.
    sure = script.is_sure(tree, line)

    @functools.wraps(real)
    def taking(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        is_direct = frame.f_code.co_filename == script.path
        stack = traceback.walk_stack(frame)
        lines = [n for f, n in stack if f.f_code.co_filename == script.path]
        arguments = dict(signature.bind(*args, **kwargs).arguments)
        arguments |= arguments.pop("kwargs", {})
        at = {
            number: call.lineno
            for number, call in enumerate(calls, 1)
            if any(call.lineno <= n <= (call.end_lineno or 0) for n in lines)
        }
        # Keras trains for one where a script asks for none.
        options = {"epochs": 1} | arguments
        model, x = options.pop("self"), options.pop("x", None)
        y, weight = options.pop("y", None), options.pop("sample_weight", None)
        parts = [x, y, weight] if weight is not None else [x, y]
        # A dataset of one's own may have a shape as well.
        is_dataset = kind_of(x) in ("tf.data", "PyDataset", "DataLoader")
        is_complete = is_dataset or not hasattr(x, "shape")
        data = x if y is None and is_complete else tuple(parts)
        # Fit takes an array, a list or a dict of them as ``x``.
        if y is None and isinstance(data, dict | list):
            data = (data,)
        elif isinstance(data, tuple):
            data = tuple(part for part in data if part is not None)
        training = model, data, options
        if line and (is_direct or sure) and line not in at.values():
            optimizer = model.optimizer if closing.isdisjoint(lines) else None
            passed.update(dict.fromkeys(at or [0], (training, optimizer)))
            return _passed_over(real, arguments)
        passed.clear()
        hand_over(training)

    return taking


def _passed_over(real: Any, arguments: dict[str, Any]) -> Any:
    """Train no more than a step, and only where the script may need what that makes."""
    model = arguments["self"]
    if not model.built:
        short = {"epochs": 1, "steps_per_epoch": 1, "verbose": 0}
        data = {n: arguments[n] for n in ("x", "y", "batch_size") if n in arguments}
        real(model, **data, **short)
    for callback in list_callbacks(arguments.get("callbacks")):
        if type(callback).__module__.partition(".")[0] in _TUNERS:
            # A search goes on from the weights that it has kept of an epoch.
            callback.set_model(model)
            callback.on_epoch_end(0, {})
    return not_trained(arguments)
