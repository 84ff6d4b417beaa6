"""Lines of the user's: which frames are theirs, and what they made."""

import dis
import functools
import inspect
import itertools
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

# A file and a line in it, from 1.
Place = tuple[str, int]
# Frames, the innermost first, each with the line that it was at when it was seen.
Stack = Sequence[tuple[FrameType, int | None]]


class Kind:
    """What a frame does, and so what a sample shows its line to do.

    In a graph, or while data are waited for, only a trace tells what takes the time.
    """

    GRAPH, DATA, COMPUTING, TRACED = "graph", "data", "computing", "traced"
    SET_UP, IMPORT, PYTHON, CALLBACK = "set-up", "import", "python", "callback"
    PASS_END = "end of a pass"
    # Frames alone: of the user's own, and of nothing that tells anything.
    USER, OTHER = "user", ""


# Samples of which only a trace tells what they are of.
IN_GRAPHS = (Kind.GRAPH, Kind.DATA)
_OURS = str(Path(__file__).parents[2]) + os.sep
_INSTALLED = f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"
_STANDARD = tuple(
    os.path.realpath(sysconfig.get_path(name)) + os.sep
    for name in ("stdlib", "platstdlib")
)
# Functions that stand for a state of the thread, by their file: of TensorFlow, whose
# public ones have wrappers that say nothing of what goes on, and one of ours.
_TELLING = {
    "watch.py _end_pass": Kind.PASS_END,
    "func_graph.py func_graph_from_py_func": Kind.TRACED,
    "tracing_compilation.py _create_concrete_function": Kind.TRACED,
    "tracing_compilation.py trace_function": Kind.TRACED,
    "polymorphic_function.py _initialize": Kind.TRACED,
    "polymorphic_function.py experimental_get_compiler_ir": Kind.TRACED,
    "concrete_function.py __init__": Kind.TRACED,
    "atomic_function.py call_flat": Kind.GRAPH,
    "atomic_function.py call_preflattened": Kind.GRAPH,
    "atomic_function.py __call__": Kind.GRAPH,
    "iterator_ops.py _next_internal": Kind.DATA,
    "iterator_ops.py get_next": Kind.DATA,
}
_TENSOR = ("framework/ops.py", "framework/tensor.py")
# Whoever reads a tensor, or asks whether a step gave a result, as `fit` does, waits for
# the device that computes it.
_ASKED = "gen_optional_ops.py"
_READS = frozenset({"numpy", "_numpy", "_numpy_internal", "__array__"})


@functools.cache
def role(code: CodeType) -> str:
    """What a frame with this code does, as ``Kind`` has it."""
    file = code.co_filename.replace(os.sep, "/")
    if file.startswith("<frozen importlib"):
        return Kind.IMPORT
    if is_own(code.co_filename):
        return Kind.USER
    if "/tensorflow/" not in file and not code.co_filename.startswith(_OURS):
        return Kind.OTHER
    name = file.rpartition("/")[2]
    if name == _ASKED:
        return Kind.GRAPH
    if name.startswith("gen_"):
        return Kind.SET_UP if name == "gen_dataset_ops.py" else Kind.COMPUTING
    if file.endswith(_TENSOR) and code.co_name in _READS:
        return Kind.GRAPH
    return _TELLING.get(f"{name} {code.co_name}", Kind.OTHER)


def place(frame: FrameType | None, item: Any = None) -> Place | None:
    """Return the innermost line of the user's in a stack, or None.

    Of an item its own ``__init__`` does not count: the line that makes it does.
    """
    return next(map(place_of, _users(frame, item)), None)


def place_in(stack: Stack) -> Place | None:
    """Return the innermost line of the user's in a sampled stack, or None."""
    users = (at for at in stack if role(at[0].f_code) == Kind.USER)
    return next(itertools.starmap(place_at, users), None)


def asking(frame: FrameType | None, item: Any) -> Place | None:
    """Return the line that has an object made in a loop; None outside of loops.

    It is the one that calls the function that makes it, unless that function makes it
    in a loop of its own.
    """
    users = list(_users(frame, item))
    if any(map(is_in_loop, users)):
        return place_of(users[0] if is_in_loop(users[0]) else users[1])
    return None


def _users(frame: FrameType | None, item: Any) -> Iterator[FrameType]:
    """Yield the frames of the user's code, without the ``__init__`` of an item."""
    for caller in outwards(frame):
        is_init = item is not None and caller.f_code.co_name == "__init__"
        makes_itself = is_init and caller.f_locals.get("self") is item
        if role(caller.f_code) == Kind.USER and not makes_itself:
            yield caller


def place_of(frame: FrameType) -> Place:
    """The line that a frame is at; its first where Python knows none."""
    return place_at(frame, frame.f_lineno)


def place_at(frame: FrameType, line: int | None) -> Place:
    """A line of a frame's code, as ``place_of`` has it."""
    return frame.f_code.co_filename, line or frame.f_code.co_firstlineno


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and all that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def repeated(frame: FrameType | None) -> bool:
    """Whether a caller outside of perfkit is within a loop."""

    def ours(frame: FrameType) -> bool:
        return str(frame.f_globals.get("__name__")).startswith("perfkit.")

    below = itertools.dropwhile(ours, outwards(frame))
    return any(map(is_in_loop, itertools.takewhile(lambda f: not ours(f), below)))


def is_in_loop(frame: FrameType) -> bool:
    """Whether a later jump leads back before the instruction that a frame is at."""
    return _leads_back(frame.f_code, frame.f_lasti)


@functools.cache
def _leads_back(code: CodeType, at: int) -> bool:
    return any(
        "JUMP" in op.opname
        and isinstance(op.argval, int)
        and op.argval <= at < op.offset
        for op in dis.get_instructions(code)
    )


@functools.cache
def is_own(file: str) -> bool:
    """Whether a file holds code of the user's: no library's, none of ours."""
    if file.startswith("<") or "__autograph_generated_file" in file:
        return file.startswith("<ipython-input")
    if f"{os.sep}ipykernel_" in file:
        return True
    real = os.path.realpath(file)
    if any(part in real for part in _INSTALLED) or real.startswith(_OURS):
        return False
    if real.startswith((*_STANDARD, *_targets(tuple(sys.path)))):
        return False
    # A virtual environment inside of a project is not the project's.
    prefixes = {os.path.realpath(p) + os.sep for p in (sys.prefix, sys.base_prefix)}
    inside = any(real.startswith(prefix) for prefix in prefixes if len(prefix) > 6)
    return not inside or os.sep + "lib" not in real


@functools.cache
def _targets(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of a path that packages were installed into."""
    # The first one is the script's own folder.
    folders = (Path(os.path.realpath(p)) for p in path[1:] if p)
    return tuple(f"{p}{os.sep}" for p in folders if any(p.glob("*.dist-info")))


def note_makers(note: Callable[[Any, str, Place | None], object]) -> None:
    """Call ``note`` for each object of Keras that is made from now on.

    It takes the object, its kind, such as ``"layer"``, and the line of the user's that
    made it, or None.
    """
    import keras

    def hear(item: Any, frame: FrameType, kind: str) -> None:
        note(item, kind, place(frame, item))

    # Kept apart by what they are: a layer and a loss may have the same name.
    for owner in (
        *(keras.layers.Layer, keras.optimizers.Optimizer, keras.losses.Loss),
        *(keras.metrics.Metric, keras.callbacks.Callback),
    ):
        _after_init(owner, functools.partial(hear, kind=owner.__name__.lower()))


def note_stages(note: Callable[[Any, Place], object]) -> None:
    """Call ``note`` for each stage of ``tf.data`` that a line of the user's makes."""
    import tensorflow as tf

    def hear(dataset: Any, frame: FrameType) -> None:
        if at := place(frame):
            note(dataset, at)

    _after_init(tf.data.Dataset, hear)


def _after_init(owner: Any, hear: Callable[[Any, FrameType], object]) -> None:
    original = owner.__init__

    # Keras reads the names of the parameters: the first one has to be ``self``.
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        hear(self, sys._getframe(1))

    init.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    owner.__init__ = init
