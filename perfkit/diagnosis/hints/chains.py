"""The pipelines that a code makes, by following it from top to bottom."""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.diagnosis.source import (
    Definition,
    Function,
    called,
    dotted,
    keyword,
    parameters,
    receiver,
)

if TYPE_CHECKING:
    from perfkit.diagnosis.hints.code import Code

SOURCES = {
    *("from_tensor_slices", "from_tensors", "from_generator", "list_files"),
    *("TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset", "CsvDataset"),
    "image_dataset_from_directory",
}
_STAGES = {
    *("map", "batch", "padded_batch", "ragged_batch", "shuffle", "repeat", "cache"),
    *("prefetch", "take", "skip", "filter", "interleave", "flat_map", "with_options"),
    *("apply", "shard", "unbatch", "concatenate", "window", "rebatch", "snapshot"),
    *("bucket_by_sequence_length", "ignore_errors", "enumerate"),
}
# What has a map or a batch too gives it other arguments.
_ARGUMENTS = {
    *("map_func", "num_parallel_calls", "deterministic", "name", "synchronous", None),
    *("use_unbounded_threadpool", "batch_size", "drop_remainder", "padded_shapes"),
    *("padding_values", "buffer_size", "seed", "reshuffle_each_iteration", "count"),
    *("filename", "predicate", "cycle_length", "block_length", "options", "index"),
    *("transformation_func", "num_shards", "row_splits_dtype", "size", "shift", "path"),
    *("stride", "element_length_func", "bucket_boundaries", "bucket_batch_sizes"),
    *("start", "dataset", "log_warning", "pad_to_bucket_boundary", "no_padding"),
}
_FOREIGN = ("np.", "os.", "itertools.")
# What has a map too, and what that maps over.
_POOLS = ("pool", "executor")
_LISTS = (ast.List, ast.ListComp, ast.GeneratorExp, ast.Slice)
# A pipeline is handed through these.
_THROUGH = {"steps", "enumerate", "iter", "zip", "as_numpy_iterator", "list", "tqdm"}
_DEEPEST, _MOST, _LONGEST = 6, 3000, 60


@dataclass(frozen=True, eq=False)
class Stage:
    """A call that makes a stage; ``"?"`` without one for what cannot be seen."""

    name: str
    call: ast.Call | None = None


Chain = tuple[Stage, ...]
# What an expression gives: a pipeline, several things at once, or neither.
Value = Chain | list["Value"] | None
Known = dict[str, "Value"]
UNSEEN = Stage("?")


class Chains:
    """The pipelines that a code makes.

    Attributes:
        made: Each of them as far as it gets; none is the beginning of another.
        trained: Those that ``fit`` is given, a loop goes through, or the function asked
            for returns.
        fitted: The pipeline that each call of ``fit`` is given, as far as that is the
            same whenever it runs.
        returned: What the function asked for returns.
        listed: Calls of ``list`` with the pipeline that each is given.
    """

    def __init__(self, code: "Code") -> None:
        self._code, self._deep, self._left = code, 0, _MOST
        self._seen: dict[Chain, None] = {}
        self._used: dict[Chain, None] = {}
        self._run: set[ast.AST] = set()
        self._begun: set[Chain] = set()
        self._stages: dict[ast.Call, Stage] = {}
        self.fitted: dict[ast.Call, Value] = {}
        self.returned: Value = None
        self.listed: dict[ast.Call, Chain] = {}
        known: Known = {}
        self._block(code.tree.body, known)
        if isinstance(code.asked, Function):
            self.returned = self._called(code.asked, None, known)
            self._use(self.returned)
        for function in code.functions:
            if function not in self._run:
                self._called(function, None, known)
        self.made = tuple(one for one in self._seen if one not in self._begun)
        self.trained = tuple(self._used)

    @property
    def learnt(self) -> tuple[Chain, ...]:
        """Those that ``fit`` is given; all that are trained on where there is none.

        What is looked at besides, by a preview, says nothing of those.
        """
        fitted = (one for one in self.fitted.values() if isinstance(one, tuple))
        return tuple(fitted) or self.trained

    def _use(self, value: Value) -> None:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, tuple):
                self._used[one] = None

    def _block(self, body: Sequence[ast.stmt], known: Known) -> Value:
        """Follow statements; what they return."""
        returned: Value = None
        for statement in body:
            if not isinstance(statement, Definition):
                returned = _one_of(returned, self._statement(statement, known))
        return returned

    def _statement(self, statement: ast.stmt, known: Known) -> Value:
        if isinstance(statement, ast.Return):
            return self._value(statement.value, known)
        if isinstance(statement, ast.Assign):
            value = self._value(statement.value, known)
            for target in statement.targets:
                _bind(target, value, known)
            return None
        if isinstance(statement, ast.If):
            return self._branches(statement, known)
        if isinstance(statement, ast.For):
            self._use(self._value(statement.iter, known))
        return self._inside(statement, known)

    def _inside(self, statement: ast.stmt, known: Known) -> Value:
        """Follow a loop's or a block's body; what it binds may also not be bound."""
        before, returned = dict(known), None
        for field in ("body", "handlers", "orelse", "finalbody"):
            for part in getattr(statement, field, []):
                body = part.body if isinstance(part, ast.ExceptHandler) else [part]
                returned = _one_of(returned, self._block(body, known))
        if isinstance(statement, ast.For | ast.While):
            known.update(_either(before, known))
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self._value(child, known)
        return returned

    def _branches(self, statement: ast.If, known: Known) -> Value:
        always = self._truth(statement.test)
        if always is not None:
            return self._block(statement.body if always else statement.orelse, known)
        other = dict(known)
        first = self._block(statement.body, known)
        second = self._block(statement.orelse, other)
        known.update(_either(other, known))
        return _one_of(first, second)

    def _truth(self, test: ast.expr) -> bool | None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._truth(test.operand)
            return None if inner is None else not inner
        found = self._code.constant(test) if isinstance(test, ast.Name) else None
        return bool(found.value) if found else None

    def _value(self, node: ast.AST | None, known: Known) -> Value:
        if isinstance(node, ast.Name):
            return known.get(node.id)
        if isinstance(node, ast.Call):
            return self._call(node, known)
        if isinstance(node, ast.Tuple):
            return [self._value(one, known) for one in node.elts]
        if isinstance(node, ast.IfExp):
            always = self._truth(node.test)
            then, otherwise = (self._value(o, known) for o in (node.body, node.orelse))
            if always is None:
                return _common(then, otherwise)
            return then if always else otherwise
        for child in ast.iter_child_nodes(node) if node else ():
            # A lambda does not run where it stands.
            if isinstance(child, ast.expr | ast.comprehension) and not isinstance(
                child, ast.Lambda
            ):
                self._value(child, known)
        return None

    def _call(self, node: ast.Call, known: Known) -> Value:
        name, of = called(node), receiver(node)
        given = [self._value(one, known) for one in node.args]
        named = {one.arg: self._value(one.value, known) for one in node.keywords}
        if name in SOURCES and _is_source(node.func):
            return self._made((), name, node)
        if of is not None:
            before = self._value(of, known)
            if name in _STAGES and _is_stage(node):
                start = before if isinstance(before, tuple) else (UNSEEN,)
                return self._made(start, name, node)
            if name == "as_numpy_iterator":
                return before
        if name == "fit" and (given or "x" in named):
            data = given[0] if given else named["x"]
            self._use(data)
            self.fitted[node] = _common(self.fitted.get(node, data), data)
        if name in _THROUGH and given:
            if name == "list" and isinstance(given[0], tuple):
                self.listed[node] = given[0]
            return given[0]
        defined = self._code.resolve(node.func)
        if isinstance(defined, ast.FunctionDef):
            return self._called(defined, node, known)
        return None

    def _made(self, start: Chain, name: str, call: ast.Call) -> Chain:
        """A pipeline with one more stage, the same whenever it is met."""
        stage = self._stages.setdefault(call, Stage(name, call))
        self._begun.add(start)
        if len(start) > _LONGEST:
            start = (UNSEEN, *start[-_LONGEST // 2 :])
        self._seen[(*start, stage)] = None
        return (*start, stage)

    def _called(self, function: Function, call: ast.Call | None, known: Known) -> Value:
        """Follow a function; what it returns."""
        self._left -= 1
        if self._deep > _DEEPEST or self._left < 0:
            return None
        self._run.add(function)
        inside = dict(known)
        for place, one in enumerate(parameters(function)):
            given = keyword(call, one.arg, place) if call else None
            inside[one.arg] = self._value(given, known)
        self._deep += 1
        if isinstance(function, ast.Lambda):
            returned = self._value(function.body, inside)
        else:
            returned = self._block(function.body, inside)
        self._deep -= 1
        return returned


def _is_source(function: ast.expr) -> bool:
    """Whether the name of a source is one of TensorFlow's classes or of its methods."""
    of = dotted(receiver(function) or function)
    return (
        called(function)[0].isupper() or "Dataset" in of or "." not in dotted(function)
    )


def _is_stage(call: ast.Call) -> bool:
    if dotted(call.func).startswith(_FOREIGN) or _is_of_pool(call):
        return False
    return all(one.arg in _ARGUMENTS for one in call.keywords)


def _is_of_pool(call: ast.Call) -> bool:
    """Whether it maps over a list, in other threads or processes."""
    second = (getattr(one, "slice", one) for one in call.args[1:2])
    listed = any(isinstance(one, _LISTS) for one in second)
    pool = called(receiver(call) or call).lower().endswith(_POOLS)
    return called(call) == "map" and (pool or listed)


def _bind(target: ast.expr, value: Value, known: Known) -> None:
    """Give names their values, a tuple of names one each."""
    if isinstance(target, ast.Name):
        known[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        values: Iterable[Value] = value if isinstance(value, list) else ()
        padded = [*values, *[None] * len(target.elts)]
        for one, its in zip(target.elts, padded, strict=False):
            _bind(one, its, known)


def _either(one: Known, other: Known) -> Known:
    """What is known after either of two ways."""
    return {name: _common(one.get(name), other.get(name)) for name in one | other}


def _one_of(one: Value, other: Value) -> Value:
    """What is sure of two values where either may be returned."""
    return _common(one, other) if one and other else one or other


def _common(one: Value, other: Value) -> Value:
    """The stages that two pipelines share, and then what cannot be seen."""
    if one == other:
        return one
    if not isinstance(one, tuple) or not isinstance(other, tuple):
        return None
    same = 0
    while one[same : same + 1] == other[same : same + 1] != ():
        same += 1
    return (*one[:same], UNSEEN)
