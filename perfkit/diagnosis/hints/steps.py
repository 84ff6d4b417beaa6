"""What a loop of one's own does at each of its steps."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.code import LOOPS, is_tf_function, within_own
from perfkit.diagnosis.hints.names import (
    Function,
    called,
    dotted,
    is_model,
    makes_model,
    parameters,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.diagnosis.hints.code import Code, Hinted


_DEEPEST = 6
_COUNTS = {"range", "count", "itertools.count"}
_PURE = {"float", "int", "round", "min", "max", "abs", "pow"}
_HOOKS = ("on_train_batch_", "on_batch_")
Given = dict[ast.arg, ast.expr]


def changes(
    code: Code, node: ast.AST | None, given: Given | None = None, deep: int = 0
) -> bool:
    """Whether an expression is certain to be such a number."""
    given, deeper = given or {}, deep + 1
    if deep > _DEEPEST:
        return False
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        moving = [changes(code, one, given, deeper) for one in sides]
        fixed = [code.number(one) is not None for one in sides]
        return any(moving) and all(m or f for m, f in zip(moving, fixed, strict=True))
    if isinstance(node, ast.Attribute):
        return _counted(code, node)
    if isinstance(node, ast.Name):
        return _name(code, node, given, deeper)
    if isinstance(node, ast.Call):
        return _call(code, node, given, deeper)
    return False


def _name(code: Code, name: ast.Name, given: Given, deep: int) -> bool:
    bound = code.names.lookup(name)
    if len(bound) == 1 and isinstance(bound[0], ast.arg):
        if bound[0] in given:
            return changes(code, given[bound[0]], {}, deep)
        return _is_batch(code, bound[0])
    if len(bound) == 1 and isinstance(bound[0], ast.For):
        return _is_count(bound[0], name.id)
    added = [one for one in bound if isinstance(one, ast.AugAssign)]
    others = [one for one in bound if one not in added]
    steps = [*others, *(one.value for one in added)]
    return bool(added) and all(code.number(one) is not None for one in steps)


def _is_count(loop: ast.For, name: str) -> bool:
    """Whether a loop's name counts its rounds."""
    target = loop.target
    if called(loop.iter) == "enumerate" and isinstance(target, ast.Tuple):
        return dotted(target.elts[0]) == name
    counts = dotted(getattr(loop.iter, "func", loop.iter)) in _COUNTS
    return counts and dotted(target) == name


def _is_batch(code: Code, parameter: ast.arg) -> bool:
    """Whether it is the number that Keras gives a callback at each batch."""
    function = code.names.function_of(parameter)
    name = getattr(function, "name", "")
    if not name.startswith(_HOOKS) or not isinstance(function, Function):
        return False
    return parameter in parameters(function)[1:2]


def _counted(code: Code, node: ast.Attribute) -> bool:
    """Whether an attribute of self starts at a number and is only added to."""
    one = code.names.class_of(node)
    if dotted(node.value) != "self" or one is None:
        return False
    whole = dotted(node)
    added, start = False, True
    for part in ast.walk(one):
        if isinstance(part, ast.AugAssign) and dotted(part.target) == whole:
            added = code.number(part.value) is not None
        elif isinstance(part, ast.Assign) and whole in map(dotted, part.targets):
            start = start and code.number(part.value) is not None
    return added and start


def _call(code: Code, call: ast.Call, given: Given, deep: int) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id in _PURE:
        return any(changes(code, one, given, deep) for one in call.args)
    function = code.resolve(call.func)
    if not isinstance(function, Function) or call.keywords:
        return False
    inside = dict(zip(parameters(function), call.args, strict=False))
    body: ast.AST | None = function.body if isinstance(function, ast.Lambda) else None
    if not isinstance(function, ast.Lambda):
        last = function.body[-1]
        body = last.value if isinstance(last, ast.Return) else None
    return changes(code, body, inside, deep)


_STEP = "train_step"
_READS = {"numpy", "item"}


def steps(code: Code) -> Iterator[Hinted]:
    """Steps that run eagerly, are traced anew, or are waited for one by one."""
    for node in code.nodes:
        if isinstance(node, ast.With) and _is_eager(code, node):
            says = (
                "This tape runs its operations one by one from Python at each step; "
                "put the step into a function under @tf.function."
            )
            yield node, says
        elif isinstance(node, ast.Call) and not code.guarded(node):
            yield from _in_step(code, node)
        if isinstance(node, ast.Call) and not code.in_graph(node):
            yield from _number(code, node)
            yield from _read(code, node)


def _in_step(code: Code, call: ast.Call) -> Iterator[Hinted]:
    """What a graph's step prints each time, or what no graph can do."""
    function = code.names.function_of(call)
    own = getattr(function, "name", "") == _STEP and code.names.class_of(call)
    if dotted(call.func) in ("tf.print", "tensorflow.print"):
        looped = function is not None and any(
            map(code.loop_of, code.calls_of(function))
        )
        if own or (looped and code.in_graph(call)):
            yield call, "This prints a line at each step; print every hundredth."
    if own and called(call) == "numpy" and not call.args:
        says = (
            "No tensor of a graph has .numpy(), so with this in train_step every step "
            "has to run eagerly; keep the tensor, or track a keras.metrics.Mean of it."
        )
        yield call, says


def _is_eager(code: Code, tape: ast.With) -> bool:
    """Whether a tape's step is run by a loop, with no graph around it."""
    tapes = (called(item.context_expr) == "GradientTape" for item in tape.items)
    # Keras makes a graph of the methods that it knows.
    if not any(tapes) or code.in_graph(tape) or code.names.class_of(tape):
        return False
    function = code.names.function_of(tape)
    if function is None or code.loop_of(tape):
        return bool(code.loop_of(tape)) and not _in_graph(code, tape)
    calls = code.calls_of(function)
    looped = bool(calls) and all(map(code.loop_of, calls))
    return looped and not _in_graph(code, tape)


def _in_graph(code: Code, node: ast.AST) -> bool:
    """Whether a node may run in a graph, or in a function that is handed on."""
    waiting, seen = [node], set[ast.AST]()
    while waiting:
        one = waiting.pop()
        function = code.names.function_of(one)
        if code.in_graph(one) or (function and _is_handed_on(code, function)):
            return True
        if function and function not in seen:
            seen.add(function)
            waiting += code.calls_of(function)
    return False


def _is_handed_on(code: Code, function: ast.AST) -> bool:
    """Whether a function is more than called: decorated, or given to another."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return True
    return code.uses_of.get(function, 0) > len(code.calls_of(function))


def _number(code: Code, call: ast.Call) -> Iterator[Hinted]:
    """A graph that is handed another number of Python at each step."""
    wrapper = code.traced(call.func)
    often = code.loop_of(call) or code.is_per_batch(call)
    if wrapper is None or not often or isinstance(call.func, ast.Call):
        return
    # What is told the types beforehand makes tensors of numbers.
    if any(one.arg == "input_signature" for one in getattr(wrapper, "keywords", [])):
        return
    given = [*call.args, *(one.value for one in call.keywords)]
    if any(changes(code, one) for one in given):
        says = (
            "A number of Python that changes makes this tf.function trace anew at each "
            "value; hand over tf.constant(...) of it."
        )
        yield call, says


def _read(code: Code, call: ast.Call) -> Iterator[Hinted]:
    """A result that is read at each step, without a condition."""
    loop = code.loop_of(call)
    if not isinstance(loop, ast.For) or code.guarded(call):
        return
    if any(isinstance(one, LOOPS) for one in ast.walk(loop) if one is not loop):
        return
    results = _results(code, loop)
    if results and results & _names_read(call):
        says = (
            "This waits for the device at each step; keep the tensor, and read it "
            "every hundredth step or after the loop."
        )
        yield call, says


def _results(code: Code, loop: ast.For) -> set[str]:
    """The names of what the steps of a loop return."""
    found: set[str] = set()
    for node in (one for part in loop.body for one in ast.walk(part)):
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(value, ast.Call) and code.traced(value.func):
            stored = (one for one in ast.walk(node) if isinstance(one, ast.Name))
            found |= {one.id for one in stored if isinstance(one.ctx, ast.Store)}
    return found


def _names_read(call: ast.Call) -> set[str]:
    """The names whose values a call brings to Python."""
    if called(call) in _READS and isinstance(call.func, ast.Attribute):
        return {dotted(call.func.value)}
    if dotted(call.func) in ("float", "print"):
        parts = [call.args] if call.args else []
        return {one.id for part in parts for a in part for one in _plain(a)}
    return set()


def _plain(node: ast.AST) -> Iterator[ast.Name]:
    """The names in an argument that are not worked on by another call there."""
    if not any(True for _ in within_own(node)):
        yield from (one for one in ast.walk(node) if isinstance(one, ast.Name))


_TRACED = (
    "A tf.function that is made in a loop is traced anew in each round; make it once, "
    "before the loop."
)


def loops(code: Code) -> Iterator[Hinted]:
    """Graphs that are made in a loop, and predictions that are called in one."""
    for node in code.nodes:
        loop = code.loop_of(node)
        if not loop or code.in_graph(node):
            continue
        if isinstance(node, ast.FunctionDef) and any(
            map(is_tf_function, node.decorator_list)
        ):
            if not _runs_often(code, node.name, loop):
                yield node, _TRACED
        elif isinstance(node, ast.Call) and _makes(code, node, loop):
            yield node, _TRACED
        elif isinstance(node, ast.Call) and _predicts(code, node, loop):
            says = (
                "predict sets up a loop and its callbacks at each call; model(x) is "
                "made for small inputs, or predict all at once."
            )
            yield node, says


def _makes(code: Code, call: ast.Call, loop: ast.AST) -> bool:
    """Whether a call wraps a function for one round of a loop."""
    above = next(code.names.above(call))
    if not is_tf_function(call) or called(call) == "partial":
        return False
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        return not _runs_often(code, above.targets[0].id, loop)
    # Called at once; all else may be kept and called later.
    return isinstance(above, ast.Call) and above.func is call


def _runs_often(code: Code, name: str, loop: ast.AST) -> bool:
    """Whether a round of a loop has a loop of its own that calls a function."""
    inner = (
        one for one in ast.walk(loop) if isinstance(one, LOOPS) and one is not loop
    )
    return any(
        isinstance(node, ast.Name) and node.id == name
        for one in inner
        for node in ast.walk(one)
    )


def _predicts(code: Code, call: ast.Call, loop: ast.AST) -> bool:
    """Whether a model, the same in each round, predicts what a round is about."""
    function = call.func
    if called(call) != "predict" or not isinstance(function, ast.Attribute):
        return False
    if not isinstance(loop, ast.For) or not is_model(code, function.value):
        return False
    new = _names_in(loop.target) | _loops_stored(loop)
    whose, what = _names_in(function.value), [*call.args, *call.keywords]
    about = set().union(*map(_names_in, what)) if what else set()
    trains = any(called(one) == "fit" for one in ast.walk(loop))
    return bool(about & new) and not whose & new and not trains


def _loops_stored(loop: ast.AST) -> set[str]:
    names = (one for one in ast.walk(loop) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


_SETTINGS = {"batch_size", "learning_rate", "steps_per_execution", "jit_compile"}


def sweeps(code: Code) -> Iterator[Hinted]:
    """A model that is trained on through a sweep, and models that pile up."""
    for loop in (one for one in code.nodes if isinstance(one, ast.For)):
        calls = [one for one in ast.walk(loop) if isinstance(one, ast.Call)]
        for fit in (one for one in calls if called(one) == "fit"):
            yield from _reused(code, loop, fit, calls)
        yield from _piled_up(code, loop, calls)


def _reused(
    code: Code, loop: ast.For, fit: ast.Call, calls: list[ast.Call]
) -> Iterator[Hinted]:
    model = fit.func.value if isinstance(fit.func, ast.Attribute) else None
    if not isinstance(model, ast.Name) or model.id in _sweeps_stored(loop):
        return
    # What a round resets by weights starts anew as well.
    reset = {"set_weights", "load_weights"} & {called(one) for one in calls}
    if is_model(code, model) and not reset and _sweeps(loop, model.id, calls):
        says = (
            "The same model is trained on in each round, and only the first starts "
            "anew and is traced; make the model in the loop."
        )
        yield fit, says


def _sweeps(loop: ast.For, model: str, calls: list[ast.Call]) -> bool:
    """Whether the rounds differ in a setting, not in what is learnt from."""
    new = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    for call in calls:
        given = [one.value for one in call.keywords if one.arg in _SETTINGS]
        if called(call) == "batch" and isinstance(call.func, ast.Attribute):
            given += call.args
        if dotted(call.func) == f"{model}.compile":
            given += [*call.args, *(one.value for one in call.keywords)]
        names = {
            n.id for one in given for n in ast.walk(one) if isinstance(n, ast.Name)
        }
        if names & new:
            return True
    return False


def _piled_up(code: Code, loop: ast.For, calls: list[ast.Call]) -> Iterator[Hinted]:
    """Models that are made and trained in a loop, all of which Keras keeps."""
    names = {called(call) for call in calls}
    if "fit" not in names or "clear_session" in names:
        return
    for call in (one for one in calls if code.loop_of(one) is loop):
        kept = isinstance(next(code.names.above(call)), ast.Assign)
        clears = "clear_session" in _inside(code, call)
        if kept and makes_model(code, call) and not clears:
            says = (
                "Keras keeps a record of every model that a loop makes, and takes more "
                "memory each round; call keras.utils.clear_session() before."
            )
            yield call, says


def _inside(code: Code, call: ast.Call) -> set[str]:
    function = code.resolve(call.func)
    if not isinstance(function, ast.FunctionDef):
        return set()
    return {called(one) for one in ast.walk(function) if isinstance(one, ast.Call)}


def _sweeps_stored(loop: ast.For) -> set[str]:
    names = (one for one in ast.walk(loop) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


_CLOCKS = {
    *("time.time", "time.perf_counter", "time.monotonic", "time.perf_counter_ns"),
    *("time.time_ns", "time.monotonic_ns", "perf_counter", "perf_counter_ns", "time"),
    *("monotonic", "default_timer", "timeit.default_timer"),
}
# What waits for the device, or brings what it computed to Python.
_WAITS = {
    *("numpy", "item", "sync_devices", "async_wait", "block_until_ready", "tolist"),
    *("fit", "evaluate", "predict", "train_on_batch", "test_on_batch"),
    *("predict_on_batch", "float", "int", "bool", "print", "array", "asarray", "list"),
    *("convert_to_numpy", "device_get", "save", "get_weights", "result"),
}
_WORK = ("tf.linalg.", "tf.nn.", "tf.math.", "tf.signal.")
_WORKS = {"tf.matmul", "tf.einsum", "tf.tensordot", "tf.reduce_sum", "tf.matvec"}


def timing(code: Code) -> Iterator[Hinted]:
    """Each second reading of a clock, where nothing between waits for the work."""
    for node in code.nodes:
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                yield from _timed(code, body)
    if code.nodes and code.tree not in code.nodes:
        yield from _timed(code, code.tree.body)


def _timed(code: Code, body: Sequence[ast.stmt]) -> Iterator[Hinted]:
    read: dict[str, int] = {}
    for place, statement in enumerate(body):
        for end, start in _differences(statement):
            stop = read.get(end, place) if end else place
            if start in read and _unread(code, body[read.pop(start) + 1 : stop]):
                says = (
                    "On a GPU a call returns before its work is done, so this clock "
                    "may miss it; read a result, or call "
                    "tf.test.experimental.sync_devices(), before it."
                )
                yield body[stop], says
        name = _clock(statement)
        if name:
            read[name] = place


def _clock(statement: ast.stmt) -> str:
    """The name that a statement gives the time."""
    if not isinstance(statement, ast.Assign) or not _is_clock(statement.value):
        return ""
    return dotted(statement.targets[0])


def _is_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) in _CLOCKS and not node.args


def _differences(statement: ast.stmt) -> set[tuple[str, str]]:
    """The times that a statement takes from each other; "" for the time it reads."""
    taken = (
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    )
    return {
        ("" if _is_clock(node.left) else dotted(node.left), dotted(node.right))
        for node in taken
        if _is_clock(node.left) or dotted(node.left)
    }


def _unread(code: Code, between: Sequence[ast.stmt]) -> bool:
    calls = [o for part in between for o in ast.walk(part) if isinstance(o, ast.Call)]
    # What another function does is not seen, and may wait.
    return any(_works(code, one) for one in calls) and not any(
        called(one) in _WAITS or _is_own(code, one) for one in calls
    )


def _works(code: Code, call: ast.Call) -> bool:
    whole = dotted(call.func)
    if code.traced(call.func) or whole in _WORKS or whole.startswith(_WORK):
        return True
    return isinstance(call.func, ast.Name) and is_model(code, call.func)


def _is_own(code: Code, call: ast.Call) -> bool:
    """Whether it calls a function of the same file, but for a traced one."""
    function = code.resolve(call.func)
    own = isinstance(function, ast.FunctionDef | ast.Lambda)
    return own and code.traced(call.func) is None
