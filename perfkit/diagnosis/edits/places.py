"""The places in source code that a fix is about: what fits, what compiles, which stage.

Whatever is not certain is not found: a wrong line costs a reader more than none.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.edits.text import Text, nodes_in
from perfkit.diagnosis.hints.code import Code
from perfkit.diagnosis.hints.names import (
    UNSEEN,
    Function,
    called,
    dotted,
    is_model,
    own,
)
from perfkit.diagnosis.script_code import fit_calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perfkit.diagnosis.hints.names import Chain

# Of Keras 3, in the order in which fit takes them without their names.
FIT_ARGUMENTS = (
    *("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split"),
    *("validation_data", "shuffle", "class_weight", "sample_weight", "initial_epoch"),
    *("steps_per_epoch", "validation_steps", "validation_batch_size"),
    "validation_freq",
)
# What the kinds of stages are called in code; see ``pipeline.chain``.
KINDS = {
    "padded_batch": "padded batch",
    "flat_map": "flat map",
    "with_options": "options",
    "from_tensor_slices": "slices in memory",
    "from_tensors": "one value",
    "from_generator": "Python generator",
    "TFRecordDataset": "TFRecord files",
    "TextLineDataset": "lines of text files",
    "FixedLengthRecordDataset": "records of fixed length",
}
_KERAS = ("keras", "tensorflow", "tf_keras")


@dataclass(frozen=True)
class Fit:
    """What gives a training its data and its arguments.

    Attributes:
        within: The call of ``fit``, or the tuple that a maker returns.
        model: What is trained.
        data: What it is trained on; None where that is not seen.
        options: What holds the arguments: the call itself, or a maker's dict; None
            where a maker returns none.
    """

    within: ast.Call | ast.Tuple
    model: ast.expr
    data: ast.expr | None
    options: ast.expr | None


class Places:
    """The source of a training, and the places in it that fixes are about.

    Args:
        source: All of the file or the cell.
        facts: What is known of the training; see ``perfkit.diagnosis.facts``.
        function: That makes it; "" for a script.
        line: Where the function begins; 0 for the one outside of all others.
        fit: Which of a script's calls of ``fit`` is taken, from 0; -1 for the only one.

    Raises:
        SyntaxError: It is no Python.
    """

    def __init__(
        self,
        source: str,
        facts: Mapping[str, Any],
        *,
        function: str = "",
        line: int = 0,
        fit: int = -1,
    ) -> None:
        self.facts = facts
        self.text = Text(source)
        self.code = Code(source, function, line)
        self._fit = fit

    @cached_property
    def fit(self) -> Fit | None:
        """Where ``fit`` is called, or what a maker returns in its place."""
        if isinstance(self.code.asked, Function):
            return self._returned(self.code.asked)
        calls = fit_calls(self.code.tree) or self._fits
        found = calls if self._fit < 0 else calls[self._fit : self._fit + 1]
        call = found[0] if len(found) == 1 else None
        if call is None or not isinstance(call.func, ast.Attribute):
            return None
        named = next((k.value for k in call.keywords if k.arg == "x"), None)
        data = call.args[0] if call.args else named
        return Fit(call, call.func.value, data, call)

    @cached_property
    def compile(self) -> ast.Call | None:
        """The call that compiles the model which is trained, in the end Keras's own."""
        fit = self.fit
        if fit is None:
            return None
        own = self._own_compile(fit.model)
        if own is not None:
            inside = [c for c in ast.walk(own) if isinstance(c, ast.Call)]
            inner = [c for c in inside if ast.unparse(c.func) == "super().compile"]
            return inner[0] if len(inner) == 1 else None
        calls = [
            one
            for one in self.code.calls
            if called(one) == "compile" and isinstance(one.func, ast.Attribute)
            if dotted(one.func.value) not in ("", "re")
        ]
        same = [one for one in calls if self._is_of(one, fit)]
        if same:
            # Of several in one row of statements the last one before fit counts.
            return same[0] if len(same) == 1 else self._last_before(same, fit.within)
        here = self.code.names.function_of(fit.within)
        elsewhere = len(calls) == 1 and self.code.names.function_of(calls[0]) != here
        return calls[0] if elsewhere and not self._is_imported(fit.model) else None

    @cached_property
    def stages(self) -> dict[int, ast.Call]:
        """Which call made each stage of the pipeline that was looked at, by its place.

        As many of the last stages as are sure; none where code and pipeline differ.
        """
        kinds = [
            one["kind"] for one in (self.facts.get("pipeline") or {}).get("stages", ())
        ]
        found: dict[int, ast.Call] = {}
        for place, stage in zip(
            range(len(kinds) - 1, -1, -1), self.chain[::-1], strict=False
        ):
            if stage is UNSEEN or stage.call is None or stage.name == "apply":
                break
            if KINDS.get(stage.name, stage.name) != kinds[place]:
                # A source may be made of several stages.
                return found if stage is self.chain[0] else {}
            found[place] = stage.call
        return found

    @cached_property
    def chain(self) -> Chain:
        """The stages that are written for the data; none where they are not seen."""
        chains = self.code.chains
        if self.fit is None:
            trained = chains.trained
            return trained[0] if len(trained) == 1 else ()
        if isinstance(self.fit.within, ast.Call):
            value = chains.fitted.get(self.fit.within)
        else:
            given = chains.returned
            value = given[1] if isinstance(given, list) and len(given) > 1 else None
        return value if isinstance(value, tuple) else ()

    def argument(self, name: str) -> tuple[ast.expr, int] | None:
        """What holds an argument of ``fit``, and its place in there; None without."""
        options = self.fit.options if self.fit else None
        return place_of(options, name, FIT_ARGUMENTS) if options else None

    def value(self, name: str) -> ast.expr | None:
        """What ``fit`` is given for an argument."""
        found = self.argument(name)
        return value_at(*found) if found else None

    def tensorflow(self, node: ast.AST) -> str:
        """What TensorFlow is called where a node stands; "" where it has no name."""
        return self.module(node, "tensorflow")

    def module(self, node: ast.AST, module: str) -> str:
        """The name by which a module was imported, where a node stands."""
        return next((name for name, _ in self.imports(node, module)), "")

    def imports(self, node: ast.AST, module: str) -> Iterator[tuple[str, ast.stmt]]:
        """The names of a module that a node sees, and the statements that give them."""
        names = self.code.names
        inside = names.function_of(node)
        for scope in (*names.above(node), self.code.tree):
            if not isinstance(scope, ast.Module | ast.FunctionDef):
                continue
            for name, bound in names.bound(scope).items():
                for one in bound:
                    if not isinstance(one, ast.stmt) or one not in scope.body:
                        continue
                    # A function runs when its module has been read.
                    later = isinstance(scope, ast.Module) and inside is not None
                    early = later or one.lineno < getattr(node, "lineno", 0)
                    if early and _imported(one, name) == module:
                        yield name, one

    def statement(self, node: ast.AST) -> tuple[ast.stmt, list[ast.stmt]] | None:
        """The statement that a node is a part of, and the body that it stands in."""
        inner = node
        for above in (node, *self.code.names.above(node)):
            for field in ("body", "orelse", "finalbody"):
                body = getattr(above, field, None)
                if isinstance(body, list) and inner in body:
                    return (inner, body) if isinstance(inner, ast.stmt) else None
            inner = above
        return None

    @property
    def _fits(self) -> list[ast.Call]:
        """The calls of ``fit`` that are given one thing alone, and have a model."""
        fits = [one for one in self.code.calls if called(one) == "fit"]
        return [
            one
            for one in fits
            if isinstance(one.func, ast.Attribute)
            and is_model(self.code, one.func.value)
        ]

    def _returned(self, function: ast.AST, deep: int = 0) -> Fit | None:
        """What a maker returns, itself or through another of the same file."""
        returns = [one for one in own(function) if isinstance(one, ast.Return)]
        if len(returns) != 1 or deep > 3:
            return None
        value = self.code.resolve(returns[0].value)
        if isinstance(value, ast.Call):
            made = self.code.resolve(value.func)
            return (
                self._returned(made, deep + 1) if isinstance(made, Function) else None
            )
        if not isinstance(value, ast.Tuple) or len(value.elts) not in (2, 3):
            return None
        model, data, *rest = value.elts
        found = self.code.resolve(rest[0]) if rest else None
        if rest and not self._is_dict(rest[0], found):
            return None
        options = found if isinstance(found, ast.expr) else None
        return Fit(value, model, data, options)

    def _is_dict(self, given: ast.expr, found: ast.AST | None) -> bool:
        """Whether a dict is written out, and nobody puts more into it."""
        written = isinstance(found, ast.Dict) or (
            isinstance(found, ast.Call) and dotted(found.func) == "dict"
        )
        return written and not (isinstance(given, ast.Name) and self._changes(given.id))

    def _changes(self, name: str) -> bool:
        stored = (n for n in self.code.nodes if isinstance(n, ast.Subscript))
        items = any(
            dotted(one.value) == name and isinstance(one.ctx, ast.Store)
            for one in stored
        )
        return items or any(
            dotted(call.func) in (f"{name}.update", f"{name}.pop", f"{name}.setdefault")
            for call in self.code.calls
        )

    def _is_of(self, call: ast.Call, fit: Fit) -> bool:
        names = self.code.names
        of, model = getattr(call.func, "value", call), dotted(fit.model)
        same = names.function_of(call) is names.function_of(fit.within)
        return bool(model) and dotted(of) == model and same

    def _own_compile(self, model: ast.expr) -> ast.FunctionDef | None:
        """What the class of a model, if it stands in the file, has for ``compile``."""
        made = self.code.resolve(model)
        kind = self.code.resolve(made.func) if isinstance(made, ast.Call) else None
        defined = {
            one.name: part
            for one in self.code.classes
            for part in one.body
            if isinstance(part, ast.FunctionDef) and part.name == "compile"
        }
        names = [kind.name] if isinstance(kind, ast.ClassDef) else []
        names += map(called, kind.bases) if isinstance(kind, ast.ClassDef) else []
        return next((defined[name] for name in names if name in defined), None)

    def _last_before(self, calls: list[ast.Call], fit: ast.expr) -> ast.Call | None:
        found = self.statement(fit)
        body = found[1] if found else []
        placed = [(call, self.statement(call)) for call in calls]
        if any(at is None or at[1] is not body for _, at in placed):
            return None
        before = [call for call in calls if call.lineno < fit.lineno]
        return max(before, key=lambda one: one.lineno, default=None)

    def _is_imported(self, model: ast.expr) -> bool:
        """Whether a model comes from a file of the user's own that is not read here."""
        made = self.code.resolve(model)
        function = made.func if isinstance(made, ast.Call) else made
        while isinstance(function, ast.Attribute):
            function = function.value
        if not isinstance(function, ast.Name):
            return False
        bound = self.code.names.lookup(function)
        modules = [_imported(one, function.id) for one in bound if is_import(one)]
        return any(one.split(".")[0] not in _KERAS for one in modules)


def place_of(
    within: ast.expr, name: str, positions: tuple[str, ...] = ()
) -> tuple[ast.expr, int] | None:
    """Where an argument stands in a call or in a dict of arguments."""
    if isinstance(within, ast.Dict):
        for place, key in enumerate(within.keys):
            if isinstance(key, ast.Constant) and key.value == name:
                return within, place
        return None
    if not isinstance(within, ast.Call):
        return None
    for place, one in enumerate(nodes_in(within)):
        if isinstance(one, ast.keyword) and one.arg == name:
            return within, place
        if isinstance(one, ast.Starred):
            positions = ()
        if not isinstance(one, ast.keyword) and positions[place : place + 1] == (name,):
            return within, place
    return None


def value_at(within: ast.expr, place: int) -> ast.expr:
    """What stands at a place of a call or a dict: the value, without its name."""
    one = nodes_in(within)[place]
    return one.value if isinstance(one, ast.keyword) else one


def is_hidden(within: ast.expr) -> bool:
    """Whether a call or a dict is given more than is written there."""
    if isinstance(within, ast.Dict):
        return None in within.keys
    return isinstance(within, ast.Call) and (
        any(one.arg is None for one in within.keywords)
        or any(isinstance(one, ast.Starred) for one in within.args)
    )


def is_import(node: ast.AST) -> bool:
    """Whether a statement imports something."""
    return isinstance(node, ast.Import | ast.ImportFrom)


def _imported(node: ast.AST, name: str) -> str:
    """The module that a name stands for by an import; "" for all else."""
    if isinstance(node, ast.Import):
        for one in node.names:
            if one.asname == name:
                return one.name
            if not one.asname and one.name.split(".")[0] == name:
                return name
    if isinstance(node, ast.ImportFrom):
        for one in node.names:
            if (one.asname or one.name) == name:
                return f"{node.module}.{one.name}"
    return ""
