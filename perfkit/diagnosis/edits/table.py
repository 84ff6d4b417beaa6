"""What to type for each swap: the table, and a function for each of its rows.

A function yields what it does to the text. Where it is not sure of the place it raises
``Unsure``, and the fix is told without a line.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard, TypeVar

from perfkit.diagnosis.edits.places import (
    FIT_ARGUMENTS,
    KINDS,
    Places,
    is_hidden,
    is_import,
    place_of,
    value_at,
)
from perfkit.diagnosis.edits.text import Splice
from perfkit.diagnosis.hints.names import UNSEEN, called, dotted, keyword

T = TypeVar("T")
Row = Callable[[Places, re.Match[str]], Iterator[Splice]]
_SELDOM = 5
_MAP = ("map_func", "num_parallel_calls")
_SERIAL = {
    "map": _MAP,
    "interleave": ("map_func", "cycle_length", "block_length", "num_parallel_calls"),
}
# As many arguments of compile stand in front of those that are set here.
_COMPILED_BY_PLACE = 5
# The causes of the settings that are left off, by the names of the swaps.
_SETTINGS = {
    "without debugging": "debugging",
    "default threads": "threads",
    "without determinism": "determinism",
    "float32": "float64",
}
_DATASETS = ("PyDataset", "Sequence")
# Where Keras has its policies, by the module that was imported.
_POLICIES = {
    "keras": "config",
    "tensorflow.keras": "config",
    "tensorflow": "keras.config",
}


class Unsure(Exception):
    """The place is not found, or another one may be meant as well."""


def row(swap: str) -> tuple[int, Row, re.Match[str]] | None:
    """The row of a swap by its name: its place in the table, and what to call."""
    for place, (pattern, function) in enumerate(_TABLE):
        found = re.fullmatch(pattern, swap)
        if found:
            return place, function, found
    return None


def graph(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Take out what asks for eager steps, wherever that stands."""
    found: list[Splice] = []
    for call in places.code.calls:
        at = place_of(call, "run_eagerly")
        if at and called(call) == "compile" and _is_on(places, value_at(*at)):
            found += places.text.remove(*at)
        elif at and _is_true(value_at(*at)):
            # A function of the user's own may need to be told.
            found += places.text.replace(*at, "run_eagerly=False")
        if called(call) == "run_functions_eagerly":
            given = keyword(call, "run_eagerly", 0)
            if given is not None and _is_on(places, given):
                found += _deleted(places, call)
    for node in places.code.nodes:
        if not isinstance(node, ast.Assign) or not _is_on(places, node.value):
            continue
        if any(called(target) == "run_eagerly" for target in node.targets):
            found += _deleted(places, node)
    yield from found


def as_graphs(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Put ``@tf.function`` above each function that the steps of a loop call."""
    for one in _some(list(places.facts.get("eager_calls") or ())):
        body = places.code.tree.body
        *outer, name = one.partition(":")[2].split(".")
        for part in outer:
            inside = [n for n in body if isinstance(n, ast.ClassDef) and n.name == part]
            body = only(inside)[0].body
        functions = [n for n in body if isinstance(n, ast.FunctionDef)]
        (function,) = only([n for n in functions if n.name == name])
        tensorflow = sure(places.tensorflow(function))
        yield from places.text.above(function, f"@{tensorflow}.function")


def xla(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Compile the model with XLA."""
    yield from _compiled(places, "jit_compile", "True")


def many_steps(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Make several steps before going back to Python."""
    yield from _compiled(places, "steps_per_execution", match[1])


def quiet(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """A line for each epoch in place of the progress bar."""
    yield from _fitted(places, "verbose", "2")


def left_off(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Delete the lines that set what slows it, as the first look has seen them."""
    cause = _SETTINGS[match[0]]
    listed = list((places.facts.get("settings") or {}).get(cause) or ())
    if cause == "threads" and pipeline_of(places).get("threads"):
        listed.append("private_threadpool_size")
    for line in _some(listed):
        (one,) = only([n for n in places.code.nodes if _sets(n, line)])
        yield from _deleted(places, one)


def rolled(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Leave ``unroll=True`` out of the layers that have it."""
    given = [place_of(call, "unroll") for call in places.code.calls]
    for at in _some([at for at in given if at and _is_on(places, value_at(*at))]):
        yield from places.text.remove(*at)


def validate_seldom(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Validate after every fifth epoch, or after the last one."""
    often = places.value("validation_freq")
    before = places.code.number(often) if often is not None else 1
    given = places.value("epochs")
    epochs = places.code.number(given) if given is not None else None
    unknown = given is not None and epochs is None
    if unknown or before is None or (epochs is not None and epochs <= before):
        raise Unsure
    freq = min(_SELDOM * before, epochs or _SELDOM * before)
    yield from _fitted(places, "validation_freq", f"{freq:g}")


def without_callback(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Take a callback out of the list that holds it."""
    name, listed = match[1], list(places.facts.get("callbacks") or ())
    given = places.value("callbacks")
    found = places.code.resolve(given)
    if name not in listed or given is None:
        raise Unsure
    if isinstance(found, ast.Call) and called(found) == name:
        within, place = sure(places.argument("callbacks"))
        yield from places.text.remove(within, place)
        return
    if not isinstance(found, ast.List | ast.Tuple):
        raise Unsure
    kinds = [_made(places, one) for one in found.elts]
    nth = [at for at, one in enumerate(listed) if one == name][int(match[2] or 1) - 1]
    if listed.count(name) == kinds.count(name) == 1:
        yield from places.text.remove(found, kinds.index(name))
    elif len(kinds) == len(listed) and "*" not in kinds:
        yield from places.text.remove(found, nth)
    else:
        yield from _unappended(places, given, name, kinds)


def parallel_maps(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Let every stage that works on one element at a time work on several."""
    for place, stage in enumerate(stages_of(places)):
        if not is_serial(stage):
            continue
        call = sure(places.stages.get(place))
        autotune = f"{sure(places.tensorflow(call))}.data.AUTOTUNE"
        by_place = _SERIAL[stage["kind"]]
        yield from _set(places, call, "num_parallel_calls", autotune, by_place)


def larger_batch(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Several times as many examples in a batch."""
    times = int(match[1])
    if places.argument("steps_per_epoch"):
        raise Unsure
    if places.facts.get("data") == "arrays":
        given = places.value("batch_size")
        size = f"{times * int(places.facts['batch'])}"
        if given is not None:
            size = _times(places, given, times)
        yield from _fitted(places, "batch_size", size)
        return
    kinds = [one["kind"] for one in stages_of(places)]
    at = [place for place, kind in enumerate(kinds) if kind == "batch"]
    call = sure(places.stages.get(at[-1] if at else -1))
    given = sure(keyword(call, "batch_size", 0))
    size = _times(places, given, times)
    yield from _set(places, call, "batch_size", size, ("batch_size",))


def more_workers(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Tell a PyDataset how many threads make its batches."""
    (one,) = only(datasets(places))
    own = [f for f in one.body if getattr(f, "name", "") == "__init__"]
    calls = [c for c in places.code.calls if called(c) == one.name]
    if own:
        inner = (c for c in ast.walk(own[0]) if isinstance(c, ast.Call))
        calls = [c for c in inner if ast.unparse(c.func) == "super().__init__"]
    (call,) = only(calls)
    yield from _set(places, call, "workers", match[1])


def cache(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Keep what a stage makes; a shuffle in front of it goes behind."""
    point = sure(pipeline_of(places).get("cache"))
    methods = [".cache()"]
    for place in point["moved"]:
        call = sure(places.stages.get(place))
        method, splices = _taken_out(places, call)
        methods.append(method)
        yield from splices
    yield from places.text.call_on(made_by(places, point["after"]), *methods)


def batch_first(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Put the batch in front of the maps that do the same to a batch."""
    maps = len(_some(pipeline_of(places).get("for batches") or []))
    batch = [one["kind"] for one in stages_of(places)].index("batch")
    yield from _moved(places, batch, maps)


def shuffle_first(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Put the first shuffle behind maps in front of them."""
    kinds = [one["kind"] for one in stages_of(places)]
    shuffle = kinds.index("shuffle", kinds.index("map"))
    maps = len(list(itertools.takewhile("map".__eq__, kinds[:shuffle][::-1])))
    yield from _moved(places, shuffle, maps)


def prefetch(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Make batches ahead, as the last stage."""
    last = places.chain[-1] if places.chain else UNSEEN
    ran = [one["kind"] for one in stages_of(places)][-1:]
    same = ran == [KINDS.get(last.name, last.name)] and last.call
    data = sure(same or (places.fit.data if places.fit else None))
    autotune = f"{sure(places.tensorflow(data))}.data.AUTOTUNE"
    yield from places.text.call_on(data, f".prefetch({autotune})")


def copied_ahead(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Copy batches to the GPU ahead, as the very last stage."""
    data = sure(places.fit.data if places.fit else None)
    tf = sure(places.tensorflow(data))
    ahead = f'{tf}.data.experimental.prefetch_to_device("/GPU:0")'
    yield from places.text.call_on(data, f".apply({ahead})")


def endless(places: Places, _: re.Match[str]) -> Iterator[Splice]:
    """Give data without an end, and say how many steps an epoch has."""
    data = sure(places.fit.data if places.fit else None)
    steps = sure(places.facts.get("steps"))
    yield from places.text.call_on(data, ".repeat()")
    yield from _fitted(places, "steps_per_epoch", f"{steps}")


def policy(places: Places, match: re.Match[str]) -> Iterator[Splice]:
    """Choose a dtype policy below the imports, before the model is made."""
    model = _model(places)
    for module, where in _POLICIES.items():
        for name, statement in places.imports(model, module):
            _, body = sure(places.statement(statement))
            later = body[body.index(statement) :]
            run = [at for at, one in enumerate(later) if not is_import(one)]
            last = later[run[0] - 1 if run else -1]
            if isinstance(last, ast.stmt) and last.lineno < getattr(model, "lineno", 0):
                line = f'{name}.{where}.set_dtype_policy("{match[0]}")'
                yield from places.text.below(last, line)
                return
    raise Unsure


# A row for each swap that is a change of a line or two, by the pattern of its name.
# Those that add or move stages come behind those that need to find them.
_TABLE: tuple[tuple[str, Row], ...] = (
    ("graph", graph),
    (r"tf\.function", as_graphs),
    ("XLA", xla),
    (r"(\d+) steps at a time", many_steps),
    ("without progress bar", quiet),
    ("without debugging|default threads|without determinism|float32", left_off),
    ("not unrolled", rolled),
    (r"without validation|validation every \d+ epochs", validate_seldom),
    (r"without (\w+)(?: \((\d+)\))?", without_callback),
    ("parallel maps", parallel_maps),
    (r"batch ×(\d+)", larger_batch),
    (r"(\d+) workers", more_workers),
    ("shuffle before map", shuffle_first),
    ("batch before map", batch_first),
    ("cache", cache),
    ("prefetch", prefetch),
    ("one endless iterator", endless),
    ("copied ahead", copied_ahead),
    (r"mixed_\w+", policy),
)


def _compiled(places: Places, name: str, value: str) -> Iterator[Splice]:
    call = sure(places.compile)
    if len(call.args) > _COMPILED_BY_PLACE:
        raise Unsure
    yield from _set(places, call, name, value)


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
    if at is None:
        if is_hidden(within):
            raise Unsure
        yield from places.text.add(within, named)
        return
    positional = isinstance(within, ast.Call) and at[1] < len(within.args)
    yield from places.text.replace(*at, value if positional else named)


def _deleted(places: Places, node: ast.Call | ast.Assign) -> Iterator[Splice]:
    statement, body = sure(places.statement(node))
    if statement is not node and getattr(statement, "value", None) is not node:
        raise Unsure
    splices = list(places.text.delete(statement, body))
    if not splices:
        raise Unsure
    yield from splices


def is_serial(stage: dict[str, Any]) -> bool:
    """Whether a stage that may work on several elements works on one at a time."""
    return stage["kind"] in _SERIAL and not stage["parallel"]


def _sets(node: ast.AST, line: str) -> TypeGuard[ast.Call | ast.Assign]:
    """Whether code sets what a line sets, its value being written in whatever way."""
    name = line.partition("(")[0].split(".")[-1]
    if isinstance(node, ast.Assign):
        target = ast.unparse(node.targets[0]).replace("'", '"')
        return called(node.targets[0]) == name or line.startswith(f"{target} = ")
    return isinstance(node, ast.Call) and called(node) == name


def _unappended(
    places: Places, given: ast.expr, name: str, kinds: list[str]
) -> Iterator[Splice]:
    """Take out the line that appends the one callback of a class."""
    appends = [
        call
        for call in places.code.calls
        if dotted(call.func) == f"{dotted(given)}.append" and call.args
        if _made(places, call.args[0]) == name
    ]
    if len(appends) != 1 or name in kinds:
        raise Unsure
    yield from _deleted(places, appends[0])


def _made(places: Places, item: ast.expr) -> str:
    """The class of what a list holds, where that can be read; "*" for several."""
    if isinstance(item, ast.Starred):
        return "*"
    found = places.code.resolve(item)
    return called(found) if isinstance(found, ast.Call) else ""


def _times(places: Places, given: ast.expr, times: int) -> str:
    """So many times a batch size, as it is written; only if it is the one that ran."""
    if places.code.number(given) != places.facts.get("batch"):
        raise Unsure
    if isinstance(given, ast.Constant):
        return f"{times * int(places.facts['batch'])}"
    written = ast.unparse(given)
    return f"{times} * {written}" if dotted(given) else f"{times} * ({written})"


def made_by(places: Places, stage: int) -> ast.expr:
    """The expression that gives what a stage of the pipeline makes."""
    if stage in places.stages:
        return places.stages[stage]
    after = places.stages.get(stage + 1)
    if after is not None and isinstance(after.func, ast.Attribute):
        return after.func.value
    if stage != len(stages_of(places)) - 1 or places.fit is None:
        raise Unsure
    return sure(places.fit.data)


def _taken_out(places: Places, call: ast.Call) -> tuple[str, list[Splice]]:
    """A method as it is written, and what takes it out of its place."""
    text = places.text
    before = getattr(call.func, "value", None)
    if not isinstance(before, ast.expr):
        raise Unsure
    start, end = text.end(before), text.end(call)
    method = text.source[start:end].strip()
    if not method.startswith("."):
        raise Unsure
    statement, _ = sure(places.statement(call))
    targets = getattr(statement, "targets", [])
    whole = isinstance(statement, ast.Assign) and statement.value is call
    name = dotted(before)
    if whole and name and [dotted(one) for one in targets] == [name]:
        return method, list(_deleted(places, call))
    return method, [(start, end, "")]


def _moved(places: Places, stage: int, over: int) -> Iterator[Splice]:
    """Put a stage in front of so many stages."""
    if not 0 < over < stage:
        raise Unsure
    method, splices = _taken_out(places, sure(places.stages.get(stage)))
    yield from splices
    yield from places.text.call_on(made_by(places, stage - over - 1), method)


def datasets(places: Places) -> list[ast.ClassDef]:
    """The classes of PyDatasets that the code defines."""
    return [
        one
        for one in places.code.classes
        if any(called(base) in _DATASETS for base in one.bases)
    ]


def pipeline_of(places: Places) -> dict[str, Any]:
    """What is known of the pipeline; nothing where there is none."""
    return places.facts.get("pipeline") or {}


def stages_of(places: Places) -> list[dict[str, Any]]:
    """The stages of the pipeline that was looked at, as facts."""
    found: list[dict[str, Any]] = pipeline_of(places).get("stages", [])
    return found


def _model(places: Places) -> ast.AST:
    """What makes the model that is trained; of several that give its name the first."""
    given = sure(places.fit).model
    bound = places.code.bound(given)
    if len(bound) < 2:
        return sure(places.code.resolve(given))
    if any(isinstance(one, ast.arg) for one in bound):
        raise Unsure
    return min(bound, key=lambda one: getattr(one, "lineno", 0))


def _is_true(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_on(places: Places, node: ast.expr) -> bool:
    """Whether a value is true, by itself or by a name that stands for nothing else."""
    if isinstance(node, ast.Name):
        bound = places.code.bound(node)
        return len(bound) == 1 and _is_true(bound[0])
    return _is_true(node)


def sure(found: T | None) -> T:
    """What was found; ``Unsure`` is raised where nothing was."""
    if found is None or found == "":
        raise Unsure
    return found


def _some(found: list[T]) -> list[T]:
    if not found:
        raise Unsure
    return found


def only(found: list[T]) -> list[T]:
    """A list of one; ``Unsure`` is raised for all others."""
    if len(found) != 1:
        raise Unsure
    return found
