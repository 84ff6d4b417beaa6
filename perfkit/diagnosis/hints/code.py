"""Source code as a training runs it: what of it can run, and what stands where."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.names import (
    UNSEEN,
    Definition,
    Function,
    Names,
    Stage,
    asked,
    bind,
    called,
    common,
    dotted,
    either,
    keyword,
    one_of,
    own,
    parameters,
    reached,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.diagnosis.hints.names import Chain, Known, Value


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
_ARGUMENTS = {
    *("map_func", "num_parallel_calls", "deterministic", "name", "synchronous", None),
    *("use_unbounded_threadpool", "batch_size", "drop_remainder", "padded_shapes"),
    *("padding_values", "buffer_size", "seed", "reshuffle_each_iteration", "count"),
    *("filename", "predicate", "cycle_length", "block_length", "options", "index"),
    *("transformation_func", "num_shards", "row_splits_dtype", "size", "shift", "path"),
    *("stride", "element_length_func", "bucket_boundaries", "bucket_batch_sizes"),
    *("start", "dataset", "log_warning", "pad_to_bucket_boundary", "no_padding"),
}
# A pipeline is handed through these.
_THROUGH = {"steps", "enumerate", "iter", "zip", "as_numpy_iterator", "list", "tqdm"}
_CHAINS_DEEPEST, _MOST, _LONGEST = 6, 3000, 60


class Chains:
    """The pipelines that a code makes, by following it from top to bottom.

    Attributes:
        made: Each of them as far as it gets; none is the beginning of another.
        trained: Those that ``fit`` is given, a loop goes through, or the function asked
            for returns.
        fitted: The pipeline that each call of ``fit`` is given, as far as that is the
            same whenever it runs.
        returned: What the function asked for returns.
        listed: Calls of ``list`` with the pipeline that each is given.
    """

    def __init__(self, code: Code) -> None:
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

    def _use(self, value: Value) -> None:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, tuple):
                self._used[one] = None

    def _block(self, body: Sequence[ast.stmt], known: Known) -> Value:
        """Follow statements; what they return."""
        returned: Value = None
        for statement in body:
            if isinstance(statement, Definition):
                continue
            returned = one_of(returned, self._statement(statement, known))
        return returned

    def _statement(self, statement: ast.stmt, known: Known) -> Value:
        if isinstance(statement, ast.Return):
            return self._value(statement.value, known)
        if isinstance(statement, ast.Assign):
            value = self._value(statement.value, known)
            for target in statement.targets:
                bind(target, value, known)
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
                returned = one_of(returned, self._block(body, known))
        if isinstance(statement, ast.For | ast.While):
            known.update(either(before, known))
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
        known.update(either(other, known))
        return one_of(first, second)

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
            return self._choice(node, known)
        for child in ast.iter_child_nodes(node) if node else ():
            if isinstance(child, ast.expr | ast.comprehension) and not _later(child):
                self._value(child, known)
        return None

    def _choice(self, node: ast.IfExp, known: Known) -> Value:
        always = self._truth(node.test)
        both = [self._value(one, known) for one in (node.body, node.orelse)]
        if always is not None:
            return both[0] if always else both[1]
        return common(*both)

    def _call(self, node: ast.Call, known: Known) -> Value:
        name, function = called(node), node.func
        given = [self._value(one, known) for one in node.args]
        named = {one.arg: self._value(one.value, known) for one in node.keywords}
        if name in SOURCES and _is_source(function):
            return self._made((), name, node)
        if isinstance(function, ast.Attribute):
            before = self._value(function.value, known)
            if name in _STAGES and _is_stage(node):
                start = before if isinstance(before, tuple) else (UNSEEN,)
                return self._made(start, name, node)
            if name == "as_numpy_iterator":
                return before
        if name == "fit" and (given or "x" in named):
            data = given[0] if given else named["x"]
            self._use(data)
            self.fitted[node] = common(self.fitted.get(node, data), data)
        if name in _THROUGH and given:
            if name == "list" and isinstance(given[0], tuple):
                self.listed[node] = given[0]
            return given[0]
        defined = self._code.resolve(function)
        return self._called(defined, node, known) if is_named(defined) else None

    def _made(self, start: Chain, name: str, call: ast.Call) -> Chain:
        """A pipeline with one more stage, the same whenever it is met."""
        stage = self._stages.setdefault(call, Stage(name, call))
        self._begun.add(start)
        if len(start) > _LONGEST:
            start = (UNSEEN, *start[-_LONGEST // 2 :])
        self._seen[(*start, stage)] = None
        return (*start, stage)

    def _called(
        self, function: ast.AST | None, call: ast.Call | None, known: Known
    ) -> Value:
        """Follow a function; what it returns."""
        self._left -= 1
        if (
            not isinstance(function, Function)
            or self._deep > _CHAINS_DEEPEST
            or self._left < 0
        ):
            return None
        self._run.add(function)
        inside = dict(known)
        for place, one in enumerate(parameters(function)):
            given = keyword(call, one.arg, place) if call else None
            inside[one.arg] = self._value(given, known)
        self._deep += 1
        body = function.body
        returned = (
            self._value(body, inside)
            if isinstance(body, ast.expr)
            else self._block(body, inside)
        )
        self._deep -= 1
        return returned


def is_named(node: ast.AST | None) -> bool:
    """Whether it is a function with a name."""
    return isinstance(node, ast.FunctionDef)


def _is_source(function: ast.expr) -> bool:
    """Whether the name of a source is one of TensorFlow's classes or of its methods."""
    of = dotted(getattr(function, "value", function))
    return (
        called(function)[0].isupper() or "Dataset" in of or "." not in dotted(function)
    )


def _is_stage(call: ast.Call) -> bool:
    """Whether a method has a stage's arguments; others have a map or a batch too."""
    foreign = dotted(call.func).startswith(("np.", "os.", "itertools."))
    return not foreign and all(one.arg in _ARGUMENTS for one in call.keywords)


def _later(node: ast.AST) -> bool:
    """Whether it does not run where it stands."""
    return isinstance(node, ast.Lambda)


Hinted = tuple[ast.AST, str]
LOOPS = (ast.For, ast.While, ast.AsyncFor)
_CODE_DEEPEST = 8
_TF_FUNCTION = ("tf.function", "tensorflow.function")
_PER_BATCH = {
    *("on_batch_begin", "on_batch_end"),
    *("on_train_batch_begin", "on_train_batch_end"),
}


class Code:
    """A file or a cell, of which one function is asked for.

    Attributes:
        tree: All of it.
        names: What binds each of its names.
        nodes: What can run: what stands outside of functions, the one asked for, and
            all that these name. Without one asked for, everything.
    """

    def __init__(self, source: str, function: str = "", line: int = 0) -> None:
        self.tree = ast.parse(source)
        self.names = Names(self.tree)
        self.asked = asked(self.tree, function, line)
        self.nodes = tuple(
            reached(self.tree, self.names, self.asked)
            if function
            else ast.walk(self.tree)
        )

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """Every call that can run."""
        return tuple(node for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
    def _calls_of(self) -> dict[ast.AST, list[ast.Call]]:
        found: dict[ast.AST, list[ast.Call]] = defaultdict(list)
        for call in self.calls:
            for one in self.bound(call.func):
                found[one].append(call)
        return dict(found)

    @cached_property
    def uses_of(self) -> dict[ast.AST, int]:
        """How often each definition is named where it can run."""
        found: dict[ast.AST, int] = defaultdict(int)
        for node in self.nodes:
            for one in self.bound(node):
                found[one] += 1
        return dict(found)

    def bound(self, node: ast.AST) -> list[ast.AST]:
        """What binds a name that is read; nothing for all else."""
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            return []
        return self.names.lookup(node)

    @cached_property
    def _keywords(self) -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = defaultdict(list)
        for call in self.calls:
            for one in call.keywords:
                found[one.arg or ""].append(one.value)
        return found

    @cached_property
    def chains(self) -> Chains:
        """The pipelines that it makes."""
        return Chains(self)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every function that can run."""
        return tuple(node for node in self.nodes if isinstance(node, Function))

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        """Every class that is used."""
        return tuple(node for node in self.nodes if isinstance(node, ast.ClassDef))

    def resolve(self, node: ast.AST | None, deep: int = 0) -> ast.AST | None:
        """What a name stands for, where that is one thing only; all else is itself.

        A parameter stands for what the one call of its function gives.
        """
        if not isinstance(node, ast.Name) or deep > _CODE_DEEPEST:
            return node
        bound = self.names.lookup(node)
        if len(bound) != 1:
            return None
        (only,) = bound
        value = self._given(only) if isinstance(only, ast.arg) else only
        return self.resolve(value, deep + 1) if _is_value(value) else None

    def constant(self, node: ast.AST | None) -> ast.Constant | None:
        """The constant that a node stands for."""
        found = self.resolve(node)
        return found if isinstance(found, ast.Constant) else None

    def number(self, node: ast.AST | None) -> float | None:
        """The number that a node stands for."""
        found = self.constant(node)
        value = found.value if found else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value

    def calls_of(self, function: ast.AST) -> list[ast.Call]:
        """The calls that can run of a function that has a name."""
        return self._calls_of.get(function, [])

    def loop_of(self, node: ast.AST) -> ast.For | ast.While | ast.AsyncFor | None:
        """The innermost loop whose body a node stands in, within its function."""
        inner = node
        for above in self.names.above(node):
            if isinstance(above, Function):
                return None
            if isinstance(above, LOOPS) and inner in above.body:
                return above
            inner = above
        return None

    def is_per_batch(self, node: ast.AST) -> bool:
        """Whether a node stands in what a callback does at each batch."""
        function = self.names.function_of(node)
        return getattr(function, "name", "") in _PER_BATCH

    def guarded(self, node: ast.AST) -> bool:
        """Whether a condition stands between a node and its loop or function."""
        for above in self.names.above(node):
            if isinstance(above, (*LOOPS, ast.FunctionDef, ast.Lambda)):
                return False
            if isinstance(above, ast.If | ast.IfExp) and not self._always(above.test):
                return True
        return False

    def traced(self, function: ast.AST | None) -> ast.expr | None:
        """What makes a graph of a function: its decorator or the call around it."""
        found = self.resolve(function)
        if isinstance(found, ast.FunctionDef):
            return next((d for d in found.decorator_list if is_tf_function(d)), None)
        if isinstance(found, ast.Call) and is_tf_function(found):
            return found
        return None

    def in_graph(self, node: ast.AST) -> bool:
        """Whether a node stands in a function that a graph is made of."""
        return any(self.traced(above) for above in self.names.above(node))

    def _always(self, test: ast.expr) -> bool:
        """Whether a condition on every n-th batch holds for each, n being 1."""
        if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.BinOp):
            return False
        period = test.left.right
        given = self._keywords.get(called(period), [period])
        every = [self.number(one) for one in given]
        return isinstance(test.left.op, ast.Mod) and every == [1]

    def _given(self, parameter: ast.arg) -> ast.AST | None:
        """What the only call gives for a parameter; its default where none does."""
        function = self.names.function_of(parameter)
        if not isinstance(function, Function):
            return None
        calls = self.calls_of(function)
        if len(calls) > 1 or any(_hides(call) for call in calls):
            return None
        # Without a call nobody knows who calls it, and with what.
        if not calls and function is not self.asked:
            return None
        named = parameters(function)
        if parameter not in named:
            return None
        place = named.index(parameter)
        for call in calls:
            found = keyword(call, parameter.arg, place)
            if found is not None:
                return found
        return _default(function, parameter)


def is_tf_function(node: ast.expr) -> bool:
    """Whether it is ``tf.function``, or a call of it or of its partial."""
    if isinstance(node, ast.Call):
        of = node.args[0] if called(node) == "partial" and node.args else node.func
        return dotted(of) in _TF_FUNCTION
    return dotted(node) in _TF_FUNCTION


def within_own(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in a node that run when it does."""
    return (one for one in (node, *own(node)) if isinstance(one, ast.Call))


def _hides(call: ast.Call) -> bool:
    """Whether a call gives what cannot be seen, as ``**options`` does."""
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    return starred or any(one.arg is None for one in call.keywords)


def _default(function: Function, parameter: ast.arg) -> ast.expr | None:
    arguments = function.args
    placed = [*arguments.posonlyargs, *arguments.args]
    if parameter in placed:
        back = placed.index(parameter) - len(placed)
        given = arguments.defaults
        return given[back] if -back <= len(given) else None
    return arguments.kw_defaults[arguments.kwonlyargs.index(parameter)]


def _is_value(node: ast.AST | None) -> bool:
    """Whether what binds a name is its value, not a statement that hides it."""
    hidden = isinstance(getattr(node, "ctx", None), ast.Store)
    return isinstance(node, ast.expr | Definition) and not hidden
