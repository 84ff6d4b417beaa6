"""What a loop of one's own does at each of its steps."""

import ast
from collections.abc import Iterator, Sequence

from perfkit.diagnosis.hints.code import Code, Hinted, is_tf_function
from perfkit.diagnosis.hints.options import is_per_batch
from perfkit.diagnosis.source import (
    LOOPS,
    Function,
    called,
    calls_in,
    dotted,
    is_literal,
    keyword,
    names_in,
    of_kind,
    parameters,
    receiver,
    stored_in,
    values_of,
)

_SAYS = {
    "tape": "This tape runs its operations one by one from Python at each step; put "
    "the step into a function under @tf.function.",
    "print": "This prints a line at each step; print every hundredth.",
    "numpy": "No tensor of a graph has .numpy(), so with this in train_step every step "
    "has to run eagerly; keep the tensor, or track a keras.metrics.Mean of it.",
    "number": "A number of Python that changes makes this tf.function trace anew at "
    "each value; hand over tf.constant(...) of it.",
    "read": "This waits for the device at each step; keep the tensor, and read it "
    "every hundredth step or after the loop.",
    "traced": "A tf.function that is made in a loop is traced anew in each round; make "
    "it once, before the loop.",
    "predict": "predict sets up a loop and its callbacks at each call; model(x) is "
    "made for small inputs, or predict all at once.",
    "fit": "fit sets up a loop and its callbacks at each call, and no rate here holds "
    "that; where a round is one batch, call train_on_batch.",
    "one model": "The same model is trained on in each round, and only the first "
    "starts anew and is traced; make the model in the loop.",
    "piled up": "Keras keeps a record of every model that a loop makes, and takes more "
    "memory each round; call keras.utils.clear_session() before.",
    "clock": "On a GPU a call returns before its work is done, so this clock may miss "
    "it; read a result, or call tf.test.experimental.sync_devices(), before it.",
}
_PRINTS = ("tf.print", "tensorflow.print")
_STEP = "train_step"
_READS = {"numpy", "item"}
# What is said of data that are more than a batch.
_IN_BATCHES = {"batch_size", "steps_per_epoch", "validation_data", "validation_split"}


def steps(code: Code) -> Iterator[Hinted]:
    """Steps that run eagerly, are traced anew, or are waited for one by one."""
    for node in code.nodes:
        if isinstance(node, ast.With) and _is_eager(code, node):
            yield node, _SAYS["tape"]
    for call in code.calls:
        guarded = code.guarded(call)
        if not guarded:
            yield from _in_step(code, call)
        if code.in_graph(call):
            continue
        if _is_given_numbers(code, call):
            yield call, _SAYS["number"]
        if not guarded and _waits(code, call):
            yield call, _SAYS["read"]


def _in_step(code: Code, call: ast.Call) -> Iterator[Hinted]:
    """What a graph's step prints each time, or what no graph can do."""
    function = code.names.function_of(call)
    is_own = getattr(function, "name", "") == _STEP and _in_class(code, call)
    if dotted(call.func) in _PRINTS:
        looped = function and any(map(code.loop_of, code.calls_of(function)))
        if is_own or (looped and code.in_graph(call)):
            yield call, _SAYS["print"]
    if is_own and called(call) == "numpy" and not call.args:
        yield call, _SAYS["numpy"]


def _in_class(code: Code, node: ast.AST) -> bool:
    return code.names.nearest(node, ast.ClassDef) is not None


def _is_eager(code: Code, tape: ast.With) -> bool:
    """Whether a tape's step is run by a loop, with no graph around it."""
    tapes = (called(item.context_expr) == "GradientTape" for item in tape.items)
    # Keras makes a graph of the methods that it knows.
    if not any(tapes) or _in_class(code, tape) or _in_graph(code, tape):
        return False
    function = code.names.function_of(tape)
    calls = code.calls_of(function) if function else []
    looped = bool(calls) and all(map(code.loop_of, calls))
    return code.loop_of(tape) is not None or looped


def _in_graph(code: Code, node: ast.AST) -> bool:
    """Whether a node may run in a graph, or in a function that is handed on."""
    waiting, seen = [node], set[ast.AST]()
    while waiting:
        one = waiting.pop()
        function = code.names.function_of(one)
        if code.in_graph(one) or (function and code.is_handed_on(function)):
            return True
        if function and function not in seen:
            seen.add(function)
            waiting += code.calls_of(function)
    return False


def _is_given_numbers(code: Code, call: ast.Call) -> bool:
    """Whether a graph is handed another number of Python at each step."""
    wrapper = code.traced(call.func)
    often = code.loop_of(call) or is_per_batch(code, call)
    if wrapper is None or not often or isinstance(call.func, ast.Call):
        return False
    # What is told the types beforehand makes tensors of numbers.
    options = getattr(wrapper, "keywords", [])
    signed = any(one.arg == "input_signature" for one in options)
    return not signed and any(_changes(code, one) for one in values_of(call))


def _waits(code: Code, call: ast.Call) -> bool:
    """Whether a loop brings what a step of it returned to Python, each time."""
    loop = code.loop_of(call)
    if not isinstance(loop, ast.For) or _loops_in(loop):
        return False
    results = set[str]()
    for node in of_kind(ast.Assign, *loop.body):
        if isinstance(node.value, ast.Call) and code.traced(node.value.func):
            results |= stored_in(node)
    of = receiver(call)
    if called(call) in _READS and of is not None:
        return dotted(of) in results
    read = call.args if dotted(call.func) in ("float", "print") else []
    # What another call works on there is not read itself.
    return bool(results & names_in(*(one for one in read if not calls_in(one))))


def _loops_in(loop: ast.AST) -> list[ast.AST]:
    return [o for o in ast.walk(loop) if isinstance(o, LOOPS) and o is not loop]


_DEEPEST = 6
_COUNTS = {"range", "count", "itertools.count"}
_PURE = {"float", "int", "round", "min", "max", "abs", "pow"}
_HOOKS = ("on_train_batch_", "on_batch_")
_Given = dict[ast.arg, ast.expr]


def _changes(
    code: Code, node: ast.AST | None, given: _Given | None = None, deep: int = 0
) -> bool:
    """Whether an expression is certain to be a number that changes."""
    given, deeper = given or {}, deep + 1
    if deep > _DEEPEST:
        return False
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        moving = [_changes(code, one, given, deeper) for one in sides]
        fixed = [code.number(one) is not None for one in sides]
        return any(moving) and all(m or f for m, f in zip(moving, fixed, strict=True))
    if isinstance(node, ast.Attribute):
        return _is_counted(code, node)
    if isinstance(node, ast.Name):
        return _name_changes(code, node, given, deeper)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name) and node.func.id in _PURE:
        return any(_changes(code, one, given, deeper) for one in node.args)
    function = code.resolve(node.func)
    if not isinstance(function, Function) or node.keywords:
        return False
    inside = dict(zip(parameters(function), node.args, strict=False))
    if isinstance(function, ast.Lambda):
        return _changes(code, function.body, inside, deeper)
    last = function.body[-1]
    body = last.value if isinstance(last, ast.Return) else None
    return _changes(code, body, inside, deeper)


def _name_changes(code: Code, name: ast.Name, given: _Given, deep: int) -> bool:
    bound = code.names.lookup(name)
    only = bound[0] if len(bound) == 1 else None
    if isinstance(only, ast.arg):
        if only in given:
            return _changes(code, given[only], {}, deep)
        # The number that Keras gives a callback at each batch.
        function = code.names.function_of(only)
        hook = getattr(function, "name", "").startswith(_HOOKS)
        return function is not None and hook and only in parameters(function)[1:2]
    if isinstance(only, ast.For):
        return _counts(only, name.id)
    added = [one.value for one in bound if isinstance(one, ast.AugAssign)]
    others = [one for one in bound if not isinstance(one, ast.AugAssign)]
    return bool(added) and all(
        code.number(one) is not None for one in (*others, *added)
    )


def _counts(loop: ast.For, name: str) -> bool:
    """Whether a loop's name counts its rounds."""
    target = loop.target
    if called(loop.iter) == "enumerate" and isinstance(target, ast.Tuple):
        return dotted(target.elts[0]) == name
    counts = dotted(getattr(loop.iter, "func", loop.iter)) in _COUNTS
    return counts and dotted(target) == name


def _is_counted(code: Code, node: ast.Attribute) -> bool:
    """Whether an attribute of self starts at a number and is only added to."""
    one = code.names.nearest(node, ast.ClassDef)
    if dotted(node.value) != "self" or one is None:
        return False
    whole = dotted(node)
    assigned = (o for o in of_kind(ast.Assign, one) if whole in map(dotted, o.targets))
    added = [o.value for o in of_kind(ast.AugAssign, one) if dotted(o.target) == whole]
    values = [*(part.value for part in assigned), *added[-1:]]
    return bool(added) and all(code.number(value) is not None for value in values)


def loops(code: Code) -> Iterator[Hinted]:
    """Graphs that are made in a loop, and predictions that are called in one."""
    for node in code.nodes:
        if not isinstance(node, ast.FunctionDef | ast.Call):
            continue
        loop = code.loop_of(node)
        if not loop or code.in_graph(node):
            continue
        if isinstance(node, ast.FunctionDef):
            traced = any(map(is_tf_function, node.decorator_list))
            if traced and not _runs_often(node.name, loop):
                yield node, _SAYS["traced"]
        elif _is_made_for(code, node, loop):
            yield node, _SAYS["traced"]
        elif _predicts(code, node, loop):
            yield node, _SAYS["predict"]
        elif _fits_round(node, loop):
            yield node, _SAYS["fit"]


def _is_made_for(code: Code, call: ast.Call, loop: ast.AST) -> bool:
    """Whether a call wraps a function for one round of a loop."""
    above = next(code.names.above(call))
    if not is_tf_function(call) or called(call) == "partial":
        return False
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        return not _runs_often(above.targets[0].id, loop)
    # Called at once; all else may be kept and called later.
    return isinstance(above, ast.Call) and above.func is call


def _runs_often(name: str, loop: ast.AST) -> bool:
    """Whether a round of a loop has a loop of its own that calls a function."""
    return name in names_in(*_loops_in(loop))


def _predicts(code: Code, call: ast.Call, loop: ast.AST) -> bool:
    """Whether a model, the same in each round, predicts what a round is about."""
    model = receiver(call)
    if called(call) != "predict" or not isinstance(loop, ast.For) or not model:
        return False
    new = names_in(loop.target) | stored_in(loop)
    about = names_in(*call.args, *call.keywords) & new
    same = code.is_model(model) and not names_in(model) & new
    # ``fit`` itself may be given to another, and not called here.
    trains = any(called(one) == "fit" for one in ast.walk(loop))
    return same and bool(about) and not trains


def _fits_round(call: ast.Call, loop: ast.AST) -> bool:
    """Whether a model is fitted for an epoch to what a round is about."""
    model, once = receiver(call), is_literal(keyword(call, "epochs", 3), 1)
    if called(call) != "fit" or not isinstance(loop, ast.For) or not (model and once):
        return False
    about = names_in(*call.args[:1]) & names_in(loop.target)
    batches = any(one.arg in _IN_BATCHES for one in call.keywords)
    return bool(about) and dotted(model).endswith("model") and not batches


_SETTINGS = {"batch_size", "learning_rate", "steps_per_execution", "jit_compile"}


def sweeps(code: Code) -> Iterator[Hinted]:
    """A model that is trained on through a sweep, and models that pile up."""
    for loop in (one for one in code.nodes if isinstance(one, ast.For)):
        calls = [*of_kind(ast.Call, loop)]
        names = {called(call) for call in calls}
        # What a round resets by weights starts anew as well.
        reset = bool({"set_weights", "load_weights"} & names)
        for fit in (one for one in calls if called(one) == "fit"):
            if not reset and _is_reused(code, loop, receiver(fit), calls):
                yield fit, _SAYS["one model"]
        if "fit" not in names or "clear_session" in names:
            continue
        for call in (one for one in calls if code.loop_of(one) is loop):
            kept = isinstance(next(code.names.above(call)), ast.Assign)
            if kept and code.makes_model(call) and not _clears(code, call):
                yield call, _SAYS["piled up"]


def _is_reused(
    code: Code, loop: ast.For, model: ast.expr | None, calls: list[ast.Call]
) -> bool:
    """Whether rounds share a model, and differ in a setting, not in what is learnt."""
    if not isinstance(model, ast.Name) or model.id in stored_in(loop):
        return False
    values: list[ast.expr] = []
    for call in calls:
        values += [one.value for one in call.keywords if one.arg in _SETTINGS]
        if called(call) == "batch" and receiver(call):
            values += call.args
        if dotted(call.func) == f"{model.id}.compile":
            values += values_of(call)
    return code.is_model(model) and bool(names_in(*values) & names_in(loop.target))


def _clears(code: Code, call: ast.Call) -> bool:
    function = code.resolve(call.func)
    if not isinstance(function, ast.FunctionDef):
        return False
    return "clear_session" in calls_in(function)


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
    for node in (code.tree, *code.nodes):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                yield from _timed(code, body)


def _timed(code: Code, body: Sequence[ast.stmt]) -> Iterator[Hinted]:
    read: dict[str, int] = {}
    for place, statement in enumerate(body):
        for end, start in _differences(statement):
            stop = read.get(end, place) if end else place
            if start in read and _is_unread(code, body[read.pop(start) + 1 : stop]):
                yield body[stop], _SAYS["clock"]
        if isinstance(statement, ast.Assign) and _is_clock(statement.value):
            read[dotted(statement.targets[0])] = place


def _is_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) in _CLOCKS and not node.args


def _differences(statement: ast.stmt) -> set[tuple[str, str]]:
    """The times that a statement takes from each other; "" for the time it reads."""
    return {
        ("" if _is_clock(node.left) else dotted(node.left), dotted(node.right))
        for node in of_kind(ast.BinOp, statement)
        if isinstance(node.op, ast.Sub) and dotted(node.right)
        if _is_clock(node.left) or dotted(node.left)
    }


def _is_unread(code: Code, between: Sequence[ast.stmt]) -> bool:
    calls = [*of_kind(ast.Call, *between)]
    # What another function does is not seen, and may wait.
    return any(_works(code, one) for one in calls) and not any(
        called(one) in _WAITS or _is_own(code, one) for one in calls
    )


def _works(code: Code, call: ast.Call) -> bool:
    whole, function = dotted(call.func), call.func
    if code.traced(function) or whole in _WORKS or whole.startswith(_WORK):
        return True
    return isinstance(function, ast.Name) and code.is_model(function)


def _is_own(code: Code, call: ast.Call) -> bool:
    """Whether it calls a function of the same file, but for a traced one."""
    function = code.resolve(call.func)
    own = isinstance(function, ast.FunctionDef | ast.Lambda)
    return own and code.traced(call.func) is None
