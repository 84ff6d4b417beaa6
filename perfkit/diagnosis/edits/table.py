"""What to type for each change: the table, and a function for each of its rows.

A function yields what it does to the text. Where it is not sure of the place it raises
``Unsure``, and the fix is told without a line. Below is where to look for each cause
whose fix is more than a line.
"""

import ast
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeGuard

from perfkit.diagnosis.changes.settings import LEFT_OFF
from perfkit.diagnosis.edits.places import (
    FIT_ARGUMENTS,
    Places,
    Unsure,
    only,
    place_of,
    sure,
    value_at,
)
from perfkit.diagnosis.edits.text import Splice
from perfkit.diagnosis.edits.traced import methods, refuse_frozen
from perfkit.diagnosis.hints.code import Code
from perfkit.diagnosis.own_callbacks import STEP_HOOKS
from perfkit.diagnosis.pipeline import is_serial
from perfkit.diagnosis.source import (
    Import,
    called,
    calls_in,
    dotted,
    hides,
    is_dataset,
    is_literal,
    keyword,
    of_kind,
    receiver,
    values_of,
)
from perfkit.findings.diagnosis import Cause

Row = Callable[[Places, re.Match[str]], Iterator[Splice]]
Shown = Callable[[Places, Cause], ast.AST | None]
_SELDOM = 5
_SERIAL = {
    "map": ("map_func", "num_parallel_calls"),
    "interleave": ("map_func", "cycle_length", "block_length", "num_parallel_calls"),
}
# As many arguments of compile stand in front of those that are set here.
_COMPILED_BY_PLACE = 5
_TO_GPU = '{}.data.experimental.prefetch_to_device("/GPU:0")'
# Where Keras has its policies, by the module that was imported.
_POLICIES = {
    "keras": "config",
    "tensorflow.keras": "config",
    "tensorflow": "keras.config",
}


def row(change: str) -> tuple[int, Row, re.Match[str]] | None:
    """The row of a change by its name: its place in the table, and what to call."""
    for place, (pattern, function) in enumerate(_TABLE):
        found = re.fullmatch(pattern, change)
        if found:
            return place, function, found
    return None


def _graph(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Take out what asks for eager steps, wherever that stands."""
    code = places.code
    refuse_frozen(code, [*methods(code), *filter(code.traced, code.functions)])
    for call in code.calls:
        at = place_of(call, "run_eagerly")
        if at and called(call) == "compile" and _is_on(places, value_at(*at)):
            yield from places.text.remove(*at)
        elif at and is_literal(value_at(*at), True):
            # A function of the user's own may need to be told.
            yield from places.text.replace(*at, "run_eagerly=False")
        if called(call) == "run_functions_eagerly":
            given = keyword(call, "run_eagerly", 0)
            if given is not None and _is_on(places, given):
                yield from _deleted(places, call)
    for node, target in code.assigned:
        if called(target) == "run_eagerly" and _is_on(places, node.value):
            yield from _deleted(places, node)


def _as_graphs(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Put ``@tf.function`` above each function that the steps of a loop call."""
    functions = [*_eager_functions(places)]
    refuse_frozen(places.code, [*functions, *methods(places.code)])
    for function in functions:
        tensorflow = places.tensorflow(function)
        yield from places.text.above(function, f"@{tensorflow}.function")


def _eager_functions(places: Places) -> Iterator[ast.FunctionDef]:
    """The functions that were heard to compute eagerly, by their names."""
    for one in sure(places.facts.get("eager_calls")):
        body = places.code.tree.body
        *outer, name = one.partition(":")[2].split(".")
        for part in outer:
            kinds = [node for node in body if isinstance(node, ast.ClassDef)]
            body = only([node for node in kinds if node.name == part]).body
        functions = [node for node in body if isinstance(node, ast.FunctionDef)]
        yield only([node for node in functions if node.name == name])


def _compiled(name: str, value: str) -> Row:
    """Give compile an argument; its value may name groups of the change's pattern."""

    def compiled(places: Places, match: re.Match[str]) -> Iterator[Splice]:
        call = sure(places.compile)
        if len(call.args) > _COMPILED_BY_PLACE:
            raise Unsure
        yield from _set(places, call, name, match.expand(value))

    return compiled


def _many_steps(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Let a call make several steps, where no callback steers each of them."""
    steering = places.facts.get("steering") or ()
    for one in places.code.classes:
        hooks = {getattr(f, "name", "") for f in one.body} & {*STEP_HOOKS}
        if one.name in steering and hooks:
            raise Unsure(_STEERS_EACH.format(one.name, match[1]))
    yield from _compiled("steps_per_execution", r"\1")(places, match)


_FEWER_VALUES = (
    "Epochs without a validation then have no `val_...`: let what reads them know that "
    "first."
)
# What fit tells of its epochs, by its usual names.
_TOLD = {"history", "hist", "logs"}
_READ_LATER = (
    "What `{}` writes may be read later: let it write less often, and keep it."
)
# What a callback of Keras's writes to, by the name of its argument.
_WRITES = {"ModelCheckpoint": "filepath", "CSVLogger": "filename"}
# What readies a folder, writes there or tells of it reads nothing of what is there.
_READIES = {
    *("makedirs", "mkdir", "exists", "isdir", "rmtree", "print", "info", "debug"),
    *("save", "save_weights", "savefig", "export", "TensorBoard", "CSVLogger"),
}
_STEERS_EACH = "`{}` may steer each step, and would then be called once in {}."
_UNSCALED = (
    "With float16 the `train_step` has to train on `optimizer.scale_loss(loss)`: its "
    "gradients are divided by that scale."
)


def _appended(place: str, method: str) -> Row:
    """Call one more method of a dataset; ``{}`` in it is what TensorFlow is called."""

    def appended(places: Places, _: re.Match[str]) -> Iterator[Splice]:
        data = sure(getattr(places, place))
        yield from places.text.call_on(data, method.format(places.tensorflow(data)))

    return appended


def _left_off(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Delete the lines that set what slows it, as the first look has seen them."""
    cause = LEFT_OFF[match[0]]
    listed = list((places.facts.get("settings") or {}).get(cause) or ())
    if cause == "threads" and places.pipeline.get("threads"):
        listed.append("private_threadpool_size")
    for line in sure(listed):
        nodes = places.code.nodes
        yield from _deleted(places, only([n for n in nodes if _sets(n, line)]))


def _rolled(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Leave ``unroll=True`` out of the layers that have it."""
    given = [place_of(call, "unroll") for call in places.code.calls]
    for at in sure([at for at in given if at and _is_on(places, value_at(*at))]):
        yield from places.text.remove(*at)


def _validate_seldom(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Validate a fifth as often as now, or after the last epoch."""
    often, given = places.value("validation_freq"), places.value("epochs")
    before = places.code.number(often) if often is not None else 1
    # Without a word of them there is one.
    epochs = places.code.number(given) if given is not None else 1
    if before is None or epochs is None or epochs <= before:
        raise Unsure
    if _reads_validations(places.code):
        raise Unsure(_FEWER_VALUES)
    freq = min(_SELDOM * before, epochs)
    yield from _fitted(places, "validation_freq", f"{freq:g}")


def _reads_validations(code: Code) -> bool:
    """Whether it reads what fit tells of validations, or all that it tells."""

    def told(node: ast.AST | None) -> bool:
        names = {called(one) for one in (node, code.resolve(node)) if one}
        return not names.isdisjoint(_TOLD)

    for node in code.nodes:
        if isinstance(node, ast.Constant) and "{val_" in str(node.value):
            return True
        of, key = getattr(node, "value", None), getattr(node, "slice", None)
        if isinstance(node, ast.Call) and called(node) == "get":
            of, key = receiver(node), next(iter(node.args), None)
        spoken = of_kind(ast.Constant, *[key] if key else ())
        if any(str(one.value).startswith("val_") for one in spoken) and told(of):
            return True
    frames = code.named("DataFrame", "from_dict")
    return any(told(one) for call in frames for one in values_of(call))


def _without_callback(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Take a callback out of the list that holds it."""
    name, listed = match[1], list(places.facts.get("callbacks") or ())
    within, place = sure(places.argument("callbacks"))
    given = value_at(within, place)
    found = places.code.resolve(given)
    # What steers the training is made cheaper, and stays.
    if name not in listed or name in (places.facts.get("steering") or ()):
        raise Unsure
    if name in _WRITES and _is_read(places.code, name):
        raise Unsure(_READ_LATER.format(name))
    if isinstance(found, ast.Call) and called(found) == name:
        _refuse_read(places.code, given, name)
        yield from places.text.remove(within, place)
        return
    if not isinstance(found, ast.List | ast.Tuple):
        raise Unsure
    kinds = [_made(places, one) for one in found.elts]
    nth = [at for at, one in enumerate(listed) if one == name][int(match[2] or 1) - 1]
    if listed.count(name) == kinds.count(name) == 1:
        nth = kinds.index(name)
    elif len(kinds) != len(listed) or "*" in kinds:
        if name in kinds:
            raise Unsure
        # It is the one that a line of its own appends.
        appends = [
            call
            for call in places.code.named("append")
            if dotted(call.func) == f"{dotted(given)}.append" and call.args
            if _made(places, call.args[0]) == name
        ]
        _refuse_read(places.code, only(appends).args[0], name)
        yield from _deleted(places, only(appends))
        return
    _refuse_read(places.code, found.elts[nth], name)
    yield from places.text.remove(found, nth)


def _refuse_read(code: Code, item: ast.expr, name: str) -> None:
    """Refuse to take out a callback that is asked for what it has seen, by its name."""
    known = dotted(item), code.bound(item)
    same = (
        one
        for one in code.nodes
        if isinstance(getattr(one, "ctx", None), ast.Load) and one is not item
        if (dotted(one), code.bound(one)) == known
        # Another fit may have it as well.
        if getattr(code.names.nearest(one, ast.keyword), "arg", "") != "callbacks"
    )
    if known[0] and any(same):
        raise Unsure(_READ_LATER.format(name))


def _is_read(code: Code, name: str) -> bool:
    """Whether what a callback of Keras's writes is spoken of elsewhere."""
    for call in code.named(name):
        given = keyword(call, _WRITES[name], 0)
        if given is None:
            continue
        found = code.resolve(given)
        path = found if isinstance(found, ast.expr) else given
        inside, parts = {*of_kind(ast.AST, call, path)}, _parts(code, given, path)
        # A folder that it writes to is looked through as well.
        place = os.path.dirname(str(getattr(path, "value", "")))
        said = {ast.dump(path), *([ast.dump(ast.Constant(place))] if place else [])}
        if any(
            _is_used(code, n) if dotted(n) in parts else ast.dump(n) in said
            for n in code.nodes
            if n not in inside
            if dotted(n) in parts or isinstance(n, type(path))
        ):
            return True
    return False


def _parts(code: Code, *within: ast.expr) -> set[str]:
    """The names that a path is made of, but for those of what is called."""
    pairs = ((one, next(code.names.above(one))) for one in of_kind(ast.expr, *within))
    return {
        dotted(one)
        for one, above in pairs
        if not isinstance(above, ast.Attribute) and getattr(above, "func", None) != one
    } - {""}


def _is_used(code: Code, node: ast.AST) -> bool:
    """Whether a name of a path is read, and for more than to make its folder."""
    calls = (one for one in code.names.above(node) if isinstance(one, ast.Call))
    loaded = isinstance(getattr(node, "ctx", None), ast.Load)
    return loaded and _READIES.isdisjoint(map(called, calls))


def _parallel_maps(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Let every stage that works on one element at a time work on several."""
    for place, stage in enumerate(places.ran):
        if is_serial(stage):
            call, name = places.stages[place], "num_parallel_calls"
            autotune = f"{places.tensorflow(call)}.data.AUTOTUNE"
            yield from _set(places, call, name, autotune, _SERIAL[stage["kind"]])


def _larger_batch(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Several times as many examples in a batch."""
    times, batch, name = int(match[1]), places.facts.get("batch"), "batch_size"
    if places.argument("steps_per_epoch"):
        raise Unsure
    call, arrays = None, places.facts.get("data") == "arrays"
    if arrays:
        given = places.value(name)
    else:
        kinds = places.kinds
        call = places.stages[max(at for at, one in enumerate(kinds) if one == "batch")]
        given = sure(keyword(call, name, 0))
    # Only the size that ran is changed, as it is written.
    if given is not None and places.code.number(given) != batch:
        raise Unsure
    size = f"{times * int(sure(batch))}"
    if given is not None and not isinstance(given, ast.Constant):
        written = ast.unparse(given)
        size = f"{times} * {written}" if dotted(given) else f"{times} * ({written})"
    if call is None:
        yield from _fitted(places, name, size)
    else:
        yield from _set(places, call, name, size, (name,))


def _more_workers(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Tell a PyDataset how many threads make its batches."""
    if places.pipeline.get("keras"):
        name = sure(dotted(data := sure(places.data)))
        made, _ = sure(places.statement(sure(places.code.resolve(data))))
        if not isinstance(made, ast.Assign) or name != dotted(only(made.targets)):
            raise Unsure
        yield from places.text.below(made, f"{name}.workers = {match[1]}")
        return
    one = only([one for one in places.code.classes if is_dataset(one)])
    own = [f for f in one.body if getattr(f, "name", "") == "__init__"]
    inside = of_kind(ast.Call, *own[:1])
    inner = [c for c in inside if ast.unparse(c.func) == "super().__init__"]
    call = only(inner if own else [*places.code.named(one.name)])
    yield from _set(places, call, "workers", match[1])


def _cache(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Keep what a stage makes; a shuffle in front of it goes behind."""
    point = sure(places.pipeline.get("cache"))
    yield from _behind(places, point["after"], point["moved"], ".cache()")


def _batch_first(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Put the maps that do the same to a batch behind it, and leave all else."""
    batch = places.kinds.index("batch")
    maps = [at for at in range(1, batch) if places.kinds[at] == "map"]
    moved = maps[-len(sure(places.pipeline.get("for batches"))) :]
    taken = {places.stages[at] for at in moved}
    for made in places.code.chains.made:
        calls = {stage.call for stage in made}
        # Other data, such as those to validate on, would go without the maps.
        if taken & calls and places.stages[batch] not in calls:
            raise Unsure
    yield from _behind(places, batch, moved)


def _shuffle_first(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Put the first shuffle behind maps in front of them."""
    kinds = places.kinds
    shuffle = kinds.index("shuffle", kinds.index("map"))
    maps = len(list(itertools.takewhile("map".__eq__, kinds[:shuffle][::-1])))
    yield from _moved(places, shuffle, maps)


def _endless(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Give data without an end, and say how many steps an epoch has."""
    # Of other data that number may be another one.
    if places.code.runs_again(sure(places.fit).within):
        raise Unsure
    yield from places.text.call_on(sure(places.data), ".repeat()")
    yield from _fitted(places, "steps_per_epoch", f"{sure(places.facts.get('steps'))}")


def _policy(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Choose a dtype policy below the imports, before the model is made."""
    if match[0] == "mixed_float16":
        for function in places.code.functions:
            calls = calls_in(function)
            own = getattr(function, "name", "") == "train_step"
            updates = {"apply", "apply_gradients"} & {*calls}
            if own and updates and "scale_loss" not in calls:
                raise Unsure(_UNSCALED)
    model = _model(places)
    for module, where in _POLICIES.items():
        for name, statement in places.imports(model, module):
            _, body = sure(places.statement(statement))
            later = body[body.index(statement) :]
            imports = itertools.takewhile(lambda one: isinstance(one, Import), later)
            *_, last = imports
            if last.lineno < getattr(model, "lineno", 0):
                line = f'{name}.{where}.set_dtype_policy("{match[0]}")'
                yield from places.text.below(last, line)
                return
    raise Unsure


# A row for each change that is one of a line or two, by the pattern of its name.
# Those that add or move stages come behind those that need to find them.
_TABLE: tuple[tuple[str, Row], ...] = (
    ("graph", _graph),
    (r"tf\.function", _as_graphs),
    ("XLA", _compiled("jit_compile", "True")),
    (r"(\d+) steps at a time", _many_steps),
    ("without progress bar", lambda places, _: _fitted(places, "verbose", "2")),
    ("|".join(LEFT_OFF), _left_off),
    ("not unrolled", _rolled),
    (r"without validation|validation every \d+ epochs", _validate_seldom),
    (r"without (\w+)(?: \((\d+)\))?", _without_callback),
    ("parallel maps", _parallel_maps),
    (r"batch ×(\d+)", _larger_batch),
    (r"(\d+) workers", _more_workers),
    ("shuffle before map", _shuffle_first),
    ("batch before map", _batch_first),
    ("cache", _cache),
    ("prefetch", _appended("last", ".prefetch({}.data.AUTOTUNE)")),
    ("one endless iterator", _endless),
    ("copied ahead", _appended("data", f".apply({_TO_GPU})")),
    (r"mixed_\w+", _policy),
)


def _fitted(places: Places, name: str, value: str) -> Iterator[Splice]:
    """Give fit an argument: in its call, or in the dict that a maker returns."""
    fit = sure(places.fit)
    if fit.options is None:
        yield from places.text.add(fit.within, f'{{"{name}": {value}}}')
        return
    by_place = FIT_ARGUMENTS if fit.options is fit.within else ()
    yield from _set(places, fit.options, name, value, by_place)


def _set(
    places: Places,
    within: ast.expr,
    name: str,
    value: str,
    by_place: tuple[str, ...] = (),
) -> Iterator[Splice]:
    """Give an argument another value, or give it at all."""
    named = f'"{name}": {value}' if isinstance(within, ast.Dict) else f"{name}={value}"
    at = place_of(within, name, by_place)
    if at is not None:
        positional = isinstance(within, ast.Call) and at[1] < len(within.args)
        yield from places.text.replace(*at, value if positional else named)
        return
    # More may be given than is written there.
    if None in getattr(within, "keys", ()) or (
        isinstance(within, ast.Call) and hides(within)
    ):
        raise Unsure
    yield from places.text.add(within, named)


def _deleted(places: Places, node: ast.Call | ast.Assign) -> Iterator[Splice]:
    statement, body = sure(places.statement(node))
    if statement is not node and getattr(statement, "value", None) is not node:
        raise Unsure
    yield from sure([*places.text.delete(statement, body)])


def _sets(node: ast.AST, line: str) -> TypeGuard[ast.Call | ast.Assign]:
    """Whether code sets what a line sets, its value being written in whatever way."""
    name = line.partition("(")[0].split(".")[-1]
    if isinstance(node, ast.Assign):
        target = ast.unparse(node.targets[0]).replace("'", '"')
        return called(node.targets[0]) == name or line.startswith(f"{target} = ")
    return isinstance(node, ast.Call) and called(node) == name


def _made(places: Places, item: ast.expr) -> str:
    """The class of what a list holds, where that can be read; "*" for several."""
    if isinstance(item, ast.Starred):
        return "*"
    found = places.code.resolve(item)
    return called(found) if isinstance(found, ast.Call) else ""


def _taken_out(places: Places, call: ast.Call) -> tuple[str, list[Splice]]:
    """A method as it is written, and what takes it out of its place."""
    text, before = places.text, sure(receiver(call))
    start, end = text.end(before), text.end(call)
    method = text.source[start:end].strip()
    if not method.startswith("."):
        raise Unsure
    assigned, _ = sure(places.statement(call))
    name, again = dotted(before), list[str]()
    if isinstance(assigned, ast.Assign) and assigned.value is call:
        again = [dotted(one) for one in assigned.targets]
    alone = bool(name) and again == [name]
    return method, [*_deleted(places, call)] if alone else [(start, end, "")]


def _behind(
    places: Places, after: int, moved: Sequence[int], *methods: str
) -> Iterator[Splice]:
    """Call methods on what a stage makes, then the stages that are moved there."""
    for place in moved:
        method, splices = _taken_out(places, places.stages[place])
        methods = (*methods, method)
        yield from splices
    yield from places.text.call_on(places.made_by(after), *methods)


def _moved(places: Places, stage: int, over: int) -> Iterator[Splice]:
    """Put a stage in front of so many stages."""
    if not 0 < over < stage:
        raise Unsure
    method, splices = _taken_out(places, places.stages[stage])
    yield from splices
    yield from places.text.call_on(places.made_by(stage - over - 1), method)


def _model(places: Places) -> ast.AST:
    """What makes the model that is trained; of several that give its name the first."""
    given = sure(places.fit).model
    bound = places.code.bound(given)
    if len(bound) < 2:
        return sure(places.code.resolve(given))
    if any(isinstance(one, ast.arg) for one in bound):
        raise Unsure
    return min(bound, key=lambda one: getattr(one, "lineno", 0))


def _is_on(places: Places, node: ast.expr) -> bool:
    """Whether a value is true, by itself or by a name that stands for nothing else."""
    bound = places.code.bound(node)
    return is_literal(bound[0] if len(bound) == 1 else node, True)


def shown(places: Places, cause: Cause) -> ast.AST | None:
    """The one place that a cause is about; None where it is not certain."""
    try:
        return _SHOWN[cause.cause](places, cause)
    except (Unsure, LookupError, ValueError):
        return None


def _python(places: Places, _: Cause) -> ast.AST:
    """What runs Python for each element."""
    ways = places.pipeline.get("python", ())
    own = filter(is_dataset, places.code.classes if "PyDataset" in ways else ())
    return only([*places.code.named(*ways), *own])


def _retraced(places: Places, _: Cause) -> ast.AST:
    """The function that is traced anew."""
    names = {name.split(".")[-1] for name in places.facts.get("retraced") or ()}
    return only([f for f in places.code.functions if getattr(f, "name", "") in names])


def _callback(places: Places, cause: Cause) -> ast.AST:
    """The class of a callback."""
    return only([c for c in places.code.classes if cause.change == f"without {c.name}"])


def _first(is_it: Callable[[dict[str, Any]], bool]) -> Shown:
    """The call that made the first stage of a kind."""
    return lambda places, _: places.stages[[*map(is_it, places.ran)].index(True)]


def _kept(places: Places, _: Cause) -> ast.AST:
    """What makes that which could be kept."""
    return places.made_by(sure(places.pipeline.get("cache"))["after"])


_SHOWN: dict[str, Shown] = {
    "callback": _callback,
    "epoch-boundary": lambda places, _: places.data,
    "input-bound": lambda places, _: places.data,
    "no-cache": _kept,
    "no-prefetch": lambda places, _: places.data,
    "python-input": _python,
    "retracing": _retraced,
    "serial-map": _first(is_serial),
    "slow-read": _first(itemgetter("records")),
    "step-overhead": lambda places, _: places.compile,
    "validation": lambda places, _: places.fit.within if places.fit else None,
    "xla": lambda places, _: places.compile,
}
