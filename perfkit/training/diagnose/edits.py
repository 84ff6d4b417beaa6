"""What to type for each cause: file and line, the old lines and the new ones.

The code is parsed anew, and a new line is shown only where one place is certain. All
such lines make a patch that ``git apply`` takes, as far as they are distinct.
"""

import ast
import difflib
import functools
import io
import itertools
import json
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfkit.findings.diagnosis import Cause, Diagnosis
from perfkit.findings.record import Edit
from perfkit.training.diagnose.changes.model import LEFT_OFF
from perfkit.training.diagnose.changes.observers import SELDOM
from perfkit.training.diagnose.code import (
    FIT_ARGUMENTS,
    Code,
    Splice,
    Unsure,
    line_of,
    only,
    place_of,
    require,
    value_at,
)
from perfkit.training.diagnose.maker import Source, source_of
from perfkit.training.diagnose.pipeline import is_serial
from perfkit.training.diagnose.source import (
    UNREADABLE,
    Function,
    called_name,
    dotted,
    hides,
    is_literal,
    keyword,
    methods_of,
    names_in,
)
from perfkit.training.diagnose.training import STEP_HOOKS

# What does not change while a diagnosis runs.
_FACTS = (
    *("batch", "callbacks", "data", "eager_calls", "pipeline", "retraced", "settings"),
    "steering",
)
# What to say of a change that does more than make the training faster.
_LESS = ("callback", "validation")
_UNREAD = "The code cannot be read any more, so there is no patch."
_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True)
class Patch:
    """What to write to standard output, and what to say of it.

    Attributes:
        text: The patch in the encoding of the file; of a notebook the lines in words;
            empty where nothing is to be changed.
        says: Sentences about it.
        copy: The whole file with these changes.
        retuned: Whether the training learns otherwise with them.
    """

    text: bytes
    says: tuple[str, ...]
    copy: bytes = b""
    retuned: bool = False


def locate(diagnosis: Diagnosis, maker: Callable[[], Any]) -> Diagnosis:
    """The same diagnosis, each cause with the lines to change, as far as is certain.

    And with what the change would break, where the code shows that.
    """
    code = _code_of(diagnosis, maker) if diagnosis.causes else None
    if code is None:
        return diagnosis
    causes = []
    for cause in diagnosis.causes:
        splices, breaks = _splices(code, cause.change)
        edits: tuple[Edit, ...] = ()
        if splices:
            edits = _edits_to(code, code.text.applied(splices))
        elif line := line_shown(code, cause):
            old = code.text.source.split("\n")[line - 1]
            edits = (_edit(code.source, line, old, None),)
        breaks = cause.caution or breaks
        causes.append(replace(cause, edits=edits, caution=breaks))
    return replace(diagnosis, causes=tuple(causes))


def patch(diagnosis: Diagnosis, maker: Callable[[], Any], folder: Path) -> Patch:
    """Write all changes that are a matter of typing into one patch for a folder.

    The file of the maker that was diagnosed must be as it was.
    """
    if not diagnosis.causes:
        return Patch(b"", ("There is no patch: no cause was found.",))
    code = _code_of(diagnosis, maker)
    if code is None:
        return Patch(b"", (_UNREAD,))
    new, causes, conflicts = _combine(diagnosis.causes, code)
    if not causes:
        note = "none of the changes is a line that is certain; see the report for what"
        return Patch(b"", (f"There is no patch: {note} to do.",))
    path, folder = Path(code.source.path).resolve(), folder.resolve()
    if code.source.cells:
        outside = "It is a notebook: change these lines of its cells by hand."
        text = "".join(f"{edit}\n" for edit in _edits_to(code, new)).encode()
        cell = {"cell_type": "code", "source": [new]}
        copy = json.dumps({"cells": [cell]}).encode()
    else:
        inside = path.is_relative_to(folder)
        name = path.relative_to(folder).as_posix() if inside else path.name
        outside = "" if inside else f"Apply it in the folder of {path.name}."
        try:
            text, copy = _patch(path, name, code.text.source, new)
        except UNREADABLE:
            return Patch(b"", (_UNREAD,))
    patched = {cause.cause for cause in causes}
    remaining = [c for c in diagnosis.best[:3] if c.change and c.cause not in patched]
    sentences = {
        "The patch makes {}.": causes,
        "{} changes the same lines: diagnose again once the patch is applied.": [
            cause for cause in remaining if cause in conflicts
        ],
        "{} is left to you: no lines for it are certain.": [
            cause for cause in remaining if cause not in conflicts
        ],
        "For {} the training reports or saves less.": [
            cause for cause in causes if cause.cause in _LESS
        ],
    }
    first, *details = (
        sentence.format(", ".join(f'"{cause.change}"' for cause in about))
        for sentence, about in sentences.items()
        if about
    )
    minds = (f'"{cause.change}": {cause.mind}' for cause in causes if cause.mind)
    says = (first, *([outside] if outside else []), *details, *minds)
    return Patch(text, says, copy, "small-batch" in patched)


def _combine(
    ranked: Iterable[Cause], code: Code
) -> tuple[str, list[Cause], list[Cause]]:
    """Make every change whose lines no better one changes.

    Returns:
        The new code, the causes that it is about, and those of the other changes.
    """
    changed, splices = set[int](), list[Splice]()
    causes, conflicts = list[Cause](), list[Cause]()
    line_at = functools.partial(code.text.source.count, "\n", 0)
    for cause in ranked:
        new_splices, _ = _splices(code, cause.change)
        lines = {
            line
            for start, end, _ in new_splices
            for line in range(line_at(start), line_at(max(start, end - 1)) + 1)
        }
        if not lines.isdisjoint(changed):
            conflicts.append(cause)
        elif lines:
            causes.append(cause)
            splices += new_splices
            changed |= lines
    return code.text.applied(splices), causes, conflicts


# Asked for again after each trial, while the machine is being measured.
@functools.lru_cache(maxsize=64)
def _splices(code: Code, change: str) -> tuple[tuple[Splice, ...], str]:
    """What a change does to the text, or why it would break something; else nothing."""
    matches = ((row, re.fullmatch(pattern, change)) for pattern, row in _TABLE)
    row, match = next((pair for pair in matches if pair[1]), (None, None))
    try:
        splices = tuple(row(code, match)) if row and match else ()
        new = code.text.applied(splices)
        ast.parse(new)
    except Unsure as unsure:
        return (), str(unsure)
    except (LookupError, *UNREADABLE):
        return (), ""
    return (splices if new != code.text.source else ()), ""


def _code_of(diagnosis: Diagnosis, maker: Callable[[], Any]) -> Code | None:
    """The code that was diagnosed, with the facts that say what to change in it."""
    facts = {name: diagnosis.facts.get(name) for name in _FACTS}
    try:
        return _code(source_of(maker), json.dumps(facts, default=str))
    except UNREADABLE:
        return None


@functools.lru_cache(maxsize=2)
def _code(source: Source, facts: str) -> Code:
    return Code(source, json.loads(facts))


def _edits_to(code: Code, new: str) -> tuple[Edit, ...]:
    """The lines in which another code differs from this one, place by place."""
    old_lines, new_lines = code.text.source.split("\n"), new.split("\n")
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    edits = []
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        if start == end:
            # What is added is shown with the line that it follows.
            start, first = start - 1, first - 1
        old, instead = old_lines[start:end], new_lines[first:last]
        edits.append(_edit(code.source, start + 1, "\n".join(old), "\n".join(instead)))
    return tuple(edits)


def _edit(source: Source, line: int, old: str, new: str | None) -> Edit:
    cell, line = source.place(line)
    return Edit(file=Path(source.path).name, cell=cell, line=line, old=old, new=new)


def _patch(path: Path, name: str, old: str, new: str) -> tuple[bytes, bytes]:
    """A patch of a file in its encoding and with its ends of lines, and the new file.

    Raises:
        ValueError: The file is not what was read before, or mixes its ends of lines.
    """
    data = path.read_bytes()
    with path.open("rb") as file:
        encoding = tokenize.detect_encoding(file.readline)[0].removesuffix("-sig")
    mark = "\ufeff" if data.startswith(b"\xef\xbb\xbf") else ""
    end = "\r\n" if b"\r\n" in data else "\n"
    before, after = ((mark + text).replace("\n", end) for text in (old, new))
    if data.decode(encoding) != before:
        raise ValueError("The file has changed.")
    # Python's own lines: others are broken by a form feed as well.
    old_lines = io.StringIO(before, newline="\n").readlines()
    new_lines = io.StringIO(after, newline="\n").readlines()
    # A name with a space ends where the tab is.
    tab = "\t" if " " in name else ""
    names = (f"a/{name}{tab}", f"b/{name}{tab}")
    diff = difflib.unified_diff(old_lines, new_lines, *names)
    text = "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in diff)
    return text.encode(encoding), after.encode(encoding)


# The table, with a function for each of its rows, which yields what it does to the
# text. Where it is not sure of the place it raises ``Unsure``, and the fix is shown
# without a new line.

Row = Callable[[Code, re.Match[str]], Iterator[Splice]]
_PARALLEL = {
    "map": ("map_func", "num_parallel_calls"),
    "interleave": ("map_func", "cycle_length", "block_length", "num_parallel_calls"),
}
# As many arguments of compile stand in front of those that are set here.
_COMPILED_BY_PLACE = 5
_TO_GPU = '.apply({}.data.experimental.prefetch_to_device("/GPU:0"))'
# The methods of a user's own that Keras calls in each step.
_STEPS = ("train_step", "test_step", "call", "compute_loss", "update_state")
# What may read the result of a validation.
_VALUES = re.compile(r"""["'{]val_|\.history\b""")
_FEWER_VALUES = (
    "Epochs without a validation then have no `val_...`: let what reads them know that "
    "first."
)
_READ_LATER = (
    "What `{}` writes may be read later: let it write less often, and keep it."
)
_STEERS_EACH = "`{}` may steer each step, and would then be called once in {}."
# What callbacks of Keras's write, and what may read that.
_WRITE = ("ModelCheckpoint", "CSVLogger", "BackupAndRestore")
_READ = (
    *("load_model", "load_weights", "latest_checkpoint", "restore", "read_csv"),
    *("genfromtxt", "loadtxt", "reader", "DictReader"),
)


def _graph(code: Code, _: re.Match[str]) -> Iterator[Splice]:
    """Take out what asks for eager steps, where these are Keras's own.

    What code of the user's draws, counts or reads in Python a graph would do once.
    """
    names = {*_STEPS, *names_in(*code.calls_of("compile"))}
    traced = any(dotted(node).endswith(".function") for node in code.nodes)
    overrides = (getattr(f, "name", "") in names for f in code.of_kind(Function))
    if traced or any(overrides):
        raise Unsure
    yield from _without_eager(code)


def _without_eager(code: Code) -> Iterator[Splice]:
    for call in code.calls:
        at = place_of(call, "run_eagerly")
        if at and called_name(call) == "compile" and _is_true(code, value_at(*at)):
            yield from code.text.remove(*at)
        elif at and is_literal(value_at(*at), True):
            # A function of the user's own may need the argument.
            yield from code.text.replace(*at, "run_eagerly=False")
        if called_name(call) == "run_functions_eagerly":
            value = keyword(call, "run_eagerly", 0)
            if value is not None and _is_true(code, value):
                yield from _deleted(code, call)
    for node, target in code.assignments:
        if called_name(target) == "run_eagerly" and _is_true(code, node.value):
            yield from _deleted(code, node)


def _compiled(code: Code, name: str, value: str) -> Iterator[Splice]:
    call = require(code.compile)
    if len(call.args) > _COMPILED_BY_PLACE:
        raise Unsure
    yield from _set(code, call, name, value)


def _many_steps(code: Code, match: re.Match[str]) -> Iterator[Splice]:
    """Let a call make several steps, where no callback steers each of them."""
    steering = code.facts.get("steering") or ()
    for definition in code.of_kind(ast.ClassDef):
        if definition.name in steering and methods_of(definition) & {*STEP_HOOKS}:
            raise Unsure(_STEERS_EACH.format(definition.name, match[1]))
    yield from _compiled(code, "steps_per_execution", match[1])


def _left_off(code: Code, match: re.Match[str]) -> Iterator[Splice]:
    """Delete the lines that set what slows it, as the first look has seen them."""
    cause = LEFT_OFF[match[0]]
    lines = [*(code.facts.get("settings") or {}).get(cause, ())]
    if cause == "threads" and code.pipeline.get("threads"):
        lines.append("private_threadpool_size")
    for line in require(lines):
        assigned = [node for node, target in code.assignments if _sets(target, line)]
        yield from _deleted(
            code, only([*assigned, *(call for call in code.calls if _sets(call, line))])
        )


def _sets(node: ast.expr, line: str) -> bool:
    """Whether code sets what a line sets, its value being written in whatever way."""
    assigned = ast.unparse(node).replace("'", '"') + " = "
    name = line.partition("(")[0].split(".")[-1]
    return called_name(node) == name or line.startswith(assigned)


def _validate_seldom(code: Code, _: re.Match[str]) -> Iterator[Splice]:
    """Validate a fifth as often as now, or after the last epoch."""
    freq, epochs_node = code.value("validation_freq"), code.value("epochs")
    before = code.number(freq) if freq is not None else 1
    # Without a word of them there is one.
    epochs = code.number(epochs_node) if epochs_node is not None else 1
    if before is None or epochs is None or epochs <= before:
        raise Unsure
    if _VALUES.search(code.text.source):
        raise Unsure(_FEWER_VALUES)
    value = f"{min(SELDOM * before, epochs):g}"
    yield from _fitted(code, "validation_freq", value)


def _without_callback(code: Code, match: re.Match[str]) -> Iterator[Splice]:
    """Take a callback out of what fit is given."""
    name, listed = match[1], [*(code.facts.get("callbacks") or ())]
    within, place = require(code.argument("callbacks"))
    value = value_at(within, place)
    items = code.resolve(value)
    # What steers the training is made cheaper, and stays.
    if name not in listed or name in (code.facts.get("steering") or ()):
        raise Unsure
    if isinstance(items, ast.List | ast.Tuple):
        elements = [code.resolve(item) for item in items.elts]
        kinds = [called_name(e) if isinstance(e, ast.Call) else "" for e in elements]
        if kinds.count(name) != listed.count(name):
            raise Unsure
        places = [at for at, kind in enumerate(kinds) if kind == name]
        within, place = items, places[int(match[2] or 1) - 1]
        value = items.elts[place]
    elif not isinstance(items, ast.Call) or called_name(items) != name:
        raise Unsure
    # One use gives it its name, one hands it over: any other may ask what it has seen.
    uses = [node for node in code.nodes if dotted(node) == dotted(value) != ""]
    if len(uses) > 2 or (name in _WRITE and code.calls_of(*_READ)):
        raise Unsure(_READ_LATER.format(name))
    yield from code.text.remove(within, place)


def _parallel_maps(code: Code, _: re.Match[str]) -> Iterator[Splice]:
    """Let every stage that works on one element at a time work on several."""
    serial = [(stage, call) for stage, call in code.stages() if is_serial(stage)]
    for stage, stage_call in serial:
        call = require(stage_call)
        value = f"{code.tensorflow(call)}.data.AUTOTUNE"
        by_place = _PARALLEL[stage["kind"]]
        yield from _set(code, call, "num_parallel_calls", value, by_place)


def _larger_batch(code: Code, match: re.Match[str]) -> Iterator[Splice]:
    """Several times as many examples in a batch."""
    batch, name = code.facts.get("batch"), "batch_size"
    if code.argument("steps_per_epoch"):
        raise Unsure
    call, value = None, code.value(name)
    if code.facts.get("data") != "arrays":
        batches = [node for stage, node in code.stages() if stage["kind"] == "batch"]
        call = require(batches[-1] if batches else None)
        value = require(keyword(call, name, 0))
    # Only the size that ran is changed, as it is written.
    if value is not None and code.number(value) != batch:
        raise Unsure
    size = f"{int(match[1]) * int(require(batch))}"
    if isinstance(value, ast.Name):
        size = f"{match[1]} * {value.id}"
    if call is None:
        yield from _fitted(code, name, size)
    else:
        yield from _set(code, call, name, size, (name,))


def _cache(code: Code, _: re.Match[str]) -> Iterator[Splice]:
    """Keep what a stage makes, where no other stage has to move for it."""
    point = require(code.pipeline.get("cache"))
    if point["moved"]:
        raise Unsure
    yield from code.text.call_on(code.result_of(point["after"]), ".cache()")


def _prefetch(code: Code, _: re.Match[str]) -> Iterator[Splice]:
    """Make batches ahead, behind the last stage that ran."""
    calls = [call for _, call in code.stages()]
    data = (calls[-1] if calls else None) or code.data
    method = f".prefetch({code.tensorflow(data)}.data.AUTOTUNE)"
    yield from code.text.call_on(data, method)


def _copied_ahead(code: Code, _: re.Match[str]) -> Iterator[Splice]:
    """Copy batches to the GPU ahead, as the very last stage."""
    method = _TO_GPU.format(code.tensorflow(code.data))
    yield from code.text.call_on(code.data, method)


_TABLE: tuple[tuple[str, Row], ...] = (
    ("graph", _graph),
    ("XLA", lambda code, _: _compiled(code, "jit_compile", "True")),
    (r"(\d+) steps at a time", _many_steps),
    ("without progress bar", lambda code, _: _fitted(code, "verbose", "2")),
    ("|".join(LEFT_OFF), _left_off),
    (r"without validation|validation every \d+ epochs", _validate_seldom),
    (r"without (\w+)(?: \((\d+)\))?", _without_callback),
    ("parallel maps", _parallel_maps),
    (r"batch ×(\d+)", _larger_batch),
    ("cache", _cache),
    ("prefetch", _prefetch),
    ("copied ahead", _copied_ahead),
)


def _fitted(code: Code, name: str, value: str) -> Iterator[Splice]:
    """Give fit an argument: in its call, or in the dict that a maker returns."""
    fit = require(code.fit)
    if fit.options is None:
        yield from code.text.add(fit.within, f'{{"{name}": {value}}}')
        return
    by_place = FIT_ARGUMENTS if fit.options is fit.within else ()
    yield from _set(code, fit.options, name, value, by_place)


def _set(
    code: Code,
    within: ast.expr,
    name: str,
    value: str,
    by_place: tuple[str, ...] = (),
) -> Iterator[Splice]:
    """Give an argument another value, or give it at all."""
    item = f'"{name}": {value}' if isinstance(within, ast.Dict) else f"{name}={value}"
    at = place_of(within, name, by_place)
    if at is not None:
        positional = isinstance(within, ast.Call) and at[1] < len(within.args)
        yield from code.text.replace(*at, value if positional else item)
        return
    # More may be given than is written there.
    if None in getattr(within, "keys", ()) or (
        isinstance(within, ast.Call) and hides(within)
    ):
        raise Unsure
    yield from code.text.add(within, item)


def _deleted(code: Code, node: ast.AST) -> Iterator[Splice]:
    """Take out the statement that a node is, or that has no other value."""
    nodes = [node, *code.names.above(node)]
    statement, holder = nodes[:2] if isinstance(node, ast.stmt) else nodes[1:3]
    alone = node in (statement, getattr(statement, "value", None))
    if not isinstance(statement, ast.stmt) or not alone:
        raise Unsure
    bodies = (getattr(holder, field, []) for field in ("body", "orelse", "finalbody"))
    body = only([body for body in bodies if statement in body])
    yield from require([*code.text.delete(statement, body)])


def _is_true(code: Code, node: ast.expr) -> bool:
    """Whether a value is true, by itself or by a name that stands for nothing else."""
    return is_literal(code.resolve(node), True)


# The line to show where no edit of one place does it.


def line_shown(code: Code, cause: Cause) -> int:
    """The line that a cause is about; 0 where it is not certain."""
    try:
        if cause.change == "graph":
            first = min(start for start, *_ in _without_eager(code))
            return code.text.source.count("\n", 0, first) + 1
        if cause.cause in ("xla", "step-overhead"):
            return line_of(require(code.compile))
        if cause.cause == "validation":
            return line_of(require(code.fit).within)
        if cause.cause in _STAGES:
            return _line_of_stage(code, cause.cause)
        places = {
            "callback": [cause.change.removeprefix("without ")],
            "eager": code.facts.get("eager_calls"),
            "retracing": code.facts.get("retraced"),
        }[cause.cause]
        # The last words of such as "__main__:Trainer.step".
        names = {re.split("[.:]", place)[-1] for place in places or ()}
        nodes = code.of_kind(ast.ClassDef | Function)
        return line_of(
            only([node for node in nodes if getattr(node, "name", "") in names])
        )
    except (Unsure, LookupError, ValueError):
        return 0


def _line_of_stage(code: Code, cause: str) -> int:
    """The line that made the stage that a cause is about, or else the last stage."""
    stages = code.pipeline.get("stages", [])
    if cause == "no-cache":
        return code.line_of(stages[require(code.pipeline.get("cache"))["after"]])
    if cause == "late-shuffle":
        stages = [*itertools.dropwhile(lambda stage: stage["kind"] != "map", stages)]
    about = [*filter(_STAGES[cause], stages)]
    return code.line_of((about or stages[-1:])[0])


_LAST = ("epoch-boundary", "input-bound", "no-cache", "no-prefetch")
_STAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    **dict.fromkeys(_LAST, lambda stage: False),
    "late-shuffle": lambda stage: stage["kind"] == "shuffle",
    "per-example-map": lambda stage: stage["kind"] == "batch",
    "python-input": lambda stage: stage["python"],
    "serial-map": is_serial,
    "slow-read": lambda stage: stage["records"],
}
