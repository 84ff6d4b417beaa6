"""The places in source code that a fix is about: what fits, what compiles, which stage.

Whatever is not certain is not found: a wrong line costs a reader more than none.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from perfkit.diagnosis.edits.text import Text, nodes_in
from perfkit.diagnosis.hints.chains import UNSEEN, Chain
from perfkit.diagnosis.hints.code import Code
from perfkit.diagnosis.maker import Source
from perfkit.diagnosis.source import (
    Function,
    Import,
    called,
    dotted,
    fit_calls,
    keyword,
    of_kind,
    own,
    receiver,
)

T = TypeVar("T")
# Of Keras 3, in the order in which fit takes them without their names.
FIT_ARGUMENTS = (
    *("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split"),
    *("validation_data", "shuffle", "class_weight", "sample_weight", "initial_epoch"),
    *("steps_per_epoch", "validation_steps", "validation_batch_size"),
    "validation_freq",
)
# What the kinds of stages are called in code; see ``diagnosis.pipeline``.
_KINDS = {
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
_CHANGES = ("update", "pop", "setdefault")
_DEEPEST = 3


class Unsure(Exception):
    """The place is not found, or another one may be meant as well.

    With a sentence the place is certain, and the change as it is measured would break
    what that says.
    """


def sure(found: T | None) -> T:
    """What was found; ``Unsure`` is raised where nothing was."""
    if found is None or found in ("", []):
        raise Unsure
    return found


def only(found: Sequence[T]) -> T:
    """The one thing that was found; ``Unsure`` is raised where these are more."""
    if len(found) != 1:
        raise Unsure
    return found[0]


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

    Attributes:
        pipeline: The facts of its pipeline; nothing where there is none.
        ran: Those of the stages of that.
        kinds: What these are.

    Raises:
        SyntaxError: It is no Python.
    """

    def __init__(self, source: Source, facts: Mapping[str, Any]) -> None:
        self.facts = facts
        self.text = Text(source.text)
        self.code = Code(source.text, source.function, source.line)
        self.pipeline: dict[str, Any] = facts.get("pipeline") or {}
        self.ran: list[dict[str, Any]] = self.pipeline.get("stages", [])
        self.kinds = [one["kind"] for one in self.ran]
        self._taken = source.fit

    @cached_property
    def fit(self) -> Fit | None:
        """Where ``fit`` is called, or what a maker returns in its place."""
        if isinstance(self.code.asked, Function):
            return self._returned(self.code.asked)
        fits = [(call, receiver(call)) for call in self.code.named("fit")]
        # Those that are given one thing alone count where they have a model.
        alone = [call for call, of in fits if of and self.code.is_model(of)]
        calls = fit_calls(self.code.tree) or alone
        found = calls if self._taken < 0 else calls[self._taken : self._taken + 1]
        model = receiver(found[0]) if len(found) == 1 else None
        kind = self._class_of(model) if model else None
        # A class of the script's own that fits may take other arguments.
        body = kind.body if kind else ()
        if model is None or any(getattr(one, "name", "") == "fit" for one in body):
            return None
        return Fit(found[0], model, keyword(found[0], "x", 0), found[0])

    def _class_of(self, model: ast.expr) -> ast.ClassDef | None:
        """The class that a model is made from, if it stands in the file."""
        made = self.code.resolve(model)
        kind = self.code.resolve(made.func) if isinstance(made, ast.Call) else None
        return kind if isinstance(kind, ast.ClassDef) else None

    @property
    def data(self) -> ast.expr | None:
        """What the training is given."""
        return self.fit.data if self.fit else None

    @cached_property
    def compile(self) -> ast.Call | None:
        """The call that compiles the model which is trained, in the end Keras's own."""
        fit, names = self.fit, self.code.names
        if fit is None:
            return None
        defined = self._own_compile(fit.model)
        if defined is not None:
            inside = of_kind(ast.Call, defined)
            inner = [c for c in inside if ast.unparse(c.func) == "super().compile"]
            return inner[0] if len(inner) == 1 else None
        pairs = [(c, dotted(receiver(c) or c)) for c in self.code.named("compile")]
        pairs = [(call, of) for call, of in pairs if of not in ("", "re")]
        here = names.function_of(fit.within)
        same = [
            call
            for call, of in pairs
            if of == dotted(fit.model) and names.function_of(call) is here
        ]
        if same:
            # Of several in one row of statements the last one before fit counts.
            return same[0] if len(same) == 1 else self._last_before(same, fit.within)
        elsewhere = len(pairs) == 1 and names.function_of(pairs[0][0]) != here
        return pairs[0][0] if elsewhere and not self._is_imported(fit.model) else None

    @cached_property
    def stages(self) -> dict[int, ast.Call]:
        """Which call made each stage of the pipeline that was looked at, by its place.

        As many of the last stages as are sure; none where code and pipeline differ.
        """
        found: dict[int, ast.Call] = {}
        places = range(len(self.kinds) - 1, -1, -1)
        for place, stage in zip(places, self.chain[::-1], strict=False):
            if stage is UNSEEN or stage.call is None or stage.name == "apply":
                break
            if _KINDS.get(stage.name, stage.name) != self.kinds[place]:
                # A source may be made of several stages.
                return found if stage is self.chain[0] else {}
            found[place] = stage.call
        return found

    @cached_property
    def chain(self) -> Chain:
        """The stages that are written for the data; none where they are not seen."""
        chains = self.code.chains
        if self.fit is None:
            return chains.trained[0] if len(chains.trained) == 1 else ()
        if isinstance(self.fit.within, ast.Call):
            value = chains.fitted.get(self.fit.within)
        else:
            given = chains.returned
            value = given[1] if isinstance(given, list) and len(given) > 1 else None
        return value if isinstance(value, tuple) else ()

    @property
    def last(self) -> ast.expr:
        """What gives the pipeline that ran, or else the data of ``fit``."""
        last = self.chain[-1] if self.chain else UNSEEN
        ran = self.kinds[-1:] == [_KINDS.get(last.name, last.name)]
        return sure((last.call if ran else None) or self.data)

    def made_by(self, stage: int) -> ast.expr:
        """The expression that gives what a stage of the pipeline makes."""
        after = self.stages.get(stage + 1)
        behind = receiver(after) if after else None
        found = self.stages.get(stage) or behind
        if found is None and stage != len(self.ran) - 1:
            raise Unsure
        return sure(found or self.data)

    def argument(self, name: str) -> tuple[ast.expr, int] | None:
        """What holds an argument of ``fit``, and its place in there; None without."""
        options = self.fit.options if self.fit else None
        return place_of(options, name, FIT_ARGUMENTS) if options else None

    def value(self, name: str) -> ast.expr | None:
        """What ``fit`` is given for an argument."""
        found = self.argument(name)
        return value_at(*found) if found else None

    def tensorflow(self, node: ast.AST) -> str:
        """What TensorFlow is called where a node stands."""
        return sure(next((name for name, _ in self.imports(node, "tensorflow")), None))

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

    def _returned(self, function: ast.AST, deep: int = 0) -> Fit | None:
        """What a maker returns, itself or through another of the same file."""
        returns = [one for one in own(function) if isinstance(one, ast.Return)]
        if len(returns) != 1 or deep > _DEEPEST:
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
        return Fit(value, model, data, found if isinstance(found, ast.expr) else None)

    def _is_dict(self, given: ast.expr, found: ast.AST | None) -> bool:
        """Whether a dict is written out, and nobody puts more into it."""
        name, changing = dotted(given), [f"{dotted(given)}.{c}" for c in _CHANGES]
        changed = name and any(
            (isinstance(node, ast.Call) and dotted(node.func) in changing)
            or (
                isinstance(node, ast.Subscript)
                and isinstance(node.ctx, ast.Store)
                and dotted(node.value) == name
            )
            for node in self.code.nodes
        )
        made = isinstance(found, ast.Call) and dotted(found.func) == "dict"
        return not changed and (made or isinstance(found, ast.Dict))

    def _own_compile(self, model: ast.expr) -> ast.FunctionDef | None:
        """What the class of a model, if it stands in the file, has for ``compile``."""
        kind = self._class_of(model)
        if kind is None:
            return None
        defined = {
            one.name: part
            for one in self.code.classes
            for part in one.body
            if isinstance(part, ast.FunctionDef) and part.name == "compile"
        }
        names = (kind.name, *map(called, kind.bases))
        return next((defined[name] for name in names if name in defined), None)

    def _last_before(self, calls: list[ast.Call], fit: ast.expr) -> ast.Call | None:
        bodies = [(self.statement(one) or (None, None))[1] for one in (fit, *calls)]
        if bodies[0] is None or any(body is not bodies[0] for body in bodies):
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
        modules = filter(None, (_imported(one, function.id) for one in bound))
        return any(one.split(".")[0] not in _KERAS for one in modules)


def place_of(
    within: ast.expr, name: str, positions: tuple[str, ...] = ()
) -> tuple[ast.expr, int] | None:
    """Where an argument stands in a call or in a dict of arguments."""
    if isinstance(within, ast.Dict):
        keys = [getattr(key, "value", None) for key in within.keys]
        return (within, keys.index(name)) if name in keys else None
    if not isinstance(within, ast.Call):
        return None
    for place, one in enumerate(nodes_in(within)):
        if isinstance(one, ast.Starred):
            positions = ()
        named = (one.arg,) if isinstance(one, ast.keyword) else positions[place:][:1]
        if named == (name,):
            return within, place
    return None


def value_at(within: ast.expr, place: int) -> ast.expr:
    """What stands at a place of a call or a dict: the value, without its name."""
    one = nodes_in(within)[place]
    return one.value if isinstance(one, ast.keyword) else one


def _imported(node: ast.AST, name: str) -> str:
    """The module that a name stands for by an import; "" for all else."""
    for one in node.names if isinstance(node, Import) else ():
        if (one.asname or one.name.split(".")[0]) == name:
            if isinstance(node, ast.ImportFrom):
                return f"{node.module}.{one.name}"
            return one.name if one.asname else name
    return ""
