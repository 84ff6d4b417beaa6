"""How often are functions traced while a training runs, and what changed each time?

TensorFlow has no public count of it. The one place where it traces a function is
wrapped here; where a version has no such place, nothing is counted, nothing is said.
"""

import contextlib
import functools
import importlib
import inspect
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from perfkit.engine.trial import READY, Note, Tick
from perfkit.questions.shared.loops import described
from perfkit.training.account.places import outwards
from perfkit.training.diagnose.loop import LIBRARIES, package_of

NOTE = "tracing"
_PLACE = "tensorflow.python.eager.polymorphic_function.tracing_compilation"
_NAME = "_create_concrete_function"
# A function is traced anew where it was so often after the first step: once may be a
# smaller last batch, or the validation.
_OFTEN = 2
# So many functions, and causes of each, are told; the next ones say the same.
_MAX_NOTED = 4
_LONGEST = 120


@dataclass(frozen=True)
class Traced:
    """One trace of a function that nothing else was being traced for.

    Attributes:
        name: Of the function.
        source: What stands for its source.
        definition: The file and line where its source begins; None where it has none.
        function: What stands for the function itself: one made anew has another.
        arguments: In words, by name.
        seconds: Of this thread at work, tracing it.
        library: What it is, in words, where it is none of the user's; "" where it is.
    """

    name: str
    source: tuple[str, int]
    function: int
    arguments: dict[str, str]
    seconds: float
    library: str = ""
    definition: tuple[str, int] | None = None


@dataclass
class Tracing:
    """The traces in this process since it was told to look.

    Attributes:
        traces: Every trace, in order.
        ready: How many of them came before the training was ready.
    """

    traces: list[Traced] = field(default_factory=list)
    ready: int = 0
    _codes: list[Any] = field(default_factory=list)
    _numbers: Any = field(default_factory=weakref.WeakKeyDictionary)

    def look(self) -> None:
        """Note every trace from now on, if this TensorFlow shows them."""
        try:
            place = importlib.import_module(_PLACE)
            original = getattr(place, _NAME)
        except (ImportError, AttributeError):
            return
        setattr(place, _NAME, self._noting(original))

    def begin(self) -> None:
        """Say that the training is ready: what is traced from now on is traced anew."""
        self.ready = len(self.traces)

    @property
    def since(self) -> list[Traced]:
        """What was traced since the training was ready."""
        return self.traces[self.ready :]

    @property
    def undecided(self) -> bool:
        """Whether something was traced anew, and too seldom to say that it goes on."""
        since = [trace.source for trace in self.since]
        return bool(since) and max(map(since.count, since)) < _OFTEN

    def anew(self) -> dict[str, dict[str, Any]]:
        """Functions that are traced again and again, by name.

        Returns:
            Of each ``traces``, ``seconds``, ``changed`` (what of each argument: its
            ``"value"``, ``"shape"`` or ``"dtype"``), ``made_anew``, ``because`` and
            ``library``: what it is in words, "" for a function of the user's.
        """
        alike: dict[tuple[str, int], list[Traced]] = {}
        for trace in self.traces:
            alike.setdefault(trace.source, []).append(trace)
        since = [trace.source for trace in self.since]
        rows = [_summarize(alike[key]) for key in alike if since.count(key) >= _OFTEN]
        rows.sort(key=lambda row: -float(row["seconds"]))
        return {str(row.pop("name")): row for row in rows[:_MAX_NOTED]}

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        within = threading.local()

        @functools.wraps(original)
        def traced(*arguments: Any) -> Any:
            if getattr(within, "tracing", False):
                return original(*arguments)
            kind, _, _, options, *_ = arguments
            within.tracing, began = True, time.thread_time()
            try:
                return original(*arguments)
            finally:
                within.tracing = False
                self._add(kind, options, time.thread_time() - began)

        return traced

    def _add(self, kind: Any, options: Any, seconds: float) -> None:
        # AutoGraph and TensorFlow's decorators wrap all functions in the same one.
        wrapped: Any = getattr(options, "python_function", None)
        function = inspect.unwrap(wrapped)
        code = getattr(function, "__code__", None)
        # Kept, so that no other code gets its number. A function is not: it may hold a
        # model, whose memory then would not come back.
        self._codes.append(code)
        try:
            number = self._numbers.setdefault(function, len(self._codes))
        except TypeError:
            # What is unhashable, or cannot be referred to weakly, has but its address.
            number = id(function)
        name = str(getattr(options, "name", "a function"))
        parameters = getattr(kind, "parameters", {}).items()
        where = None
        if isinstance(code, CodeType):
            where = code.co_filename, code.co_firstlineno
        self.traces.append(
            Traced(
                name=name,
                source=(name, id(code) if code else number),
                function=number,
                arguments={
                    n: _in_words(p.type_constraint)[:_LONGEST] for n, p in parameters
                },
                seconds=seconds,
                library=_of_library(function),
                definition=where,
            )
        )


def _of_library(function: Any) -> str:
    """What a function is for that Keras or TensorFlow has; "" for one of the user's."""
    if package_of(function) not in LIBRARIES:
        return ""
    mapped = _mapped_function(function)
    if mapped and package_of(mapped) not in LIBRARIES:
        return ""
    method = ""
    for frame in outwards(sys._getframe(1)):
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] in LIBRARIES:
            # They wrap what they offer, to make tracebacks shorter.
            if not module.endswith("traceback_utils"):
                method = frame.f_code.co_name
        elif method:
            break
    if not method or method.startswith("_"):
        return "what Keras computes"
    return f"the {'input' if mapped else 'step'} of `{method}`"


def _mapped_function(function: Any) -> Any:
    """What tf.data was given to call, where this is its function around that."""
    for cell in getattr(function, "__closure__", None) or ():
        # A cell may be empty still.
        with contextlib.suppress(ValueError):
            if mapped := getattr(cell.cell_contents, "_func", None):
                return mapped
    return None


def _in_words(kind: Any) -> str:
    if hasattr(kind, "value"):
        return described(kind.value)
    rank = getattr(getattr(kind, "shape", None), "rank", None)
    return str(kind) if rank is None else described(kind)


def _summarize(traces: Sequence[Traced]) -> dict[str, Any]:
    pairs = list(itertools.pairwise(traces))
    changed: dict[str, str] = {}
    because: list[str] = []
    for before, after in pairs:
        for name, words in after.arguments.items():
            was = before.arguments.get(name, words)
            if was != words:
                changed[name] = _what_changed(was, words)
                because.append(f"{name}: {was}, then {words}")
    remade = [b.arguments == a.arguments and b.function != a.function for b, a in pairs]
    return {
        "name": traces[0].name,
        "traces": len(traces),
        "seconds": sum(trace.seconds for trace in traces[1:]),
        "changed": changed,
        "made_anew": sum(remade) > len(remade) / 2,
        "because": list(dict.fromkeys(because))[:_MAX_NOTED],
        "library": traces[0].library,
    }


def _what_changed(before: str, after: str) -> str:
    dtypes = [text.partition("[")[0] for text in (before, after) if text.endswith("]")]
    if len(dtypes) < 2:
        return "value"
    return "shape" if dtypes[0] == dtypes[1] else "dtype"


STEADY = "steady"


def add_notes(ticks: Iterable[Any], traces: Tracing, batch: int) -> Iterator[Any]:
    """Pass ticks on, and tell what came with the first, second, fourth, ..."""
    passed, due, examples = 0, 1, 0
    for tick in ticks:
        yield tick
        if tick == READY:
            traces.begin()
            examples = 0
        if not isinstance(tick, Tick):
            continue
        passed, examples = passed + 1, examples + tick.examples
        if passed >= due:
            seconds = sum(trace.seconds for trace in traces.since)
            note = {"traces": len(traces.since), "seconds": seconds}
            yield Note(STEADY, {"steps": examples / batch, NOTE: note})
            due *= 2


def fix(retraced: Mapping[str, Mapping[str, Any]]) -> None:
    """Fix the signatures of functions that ``Tracing.anew`` tells of, in advance."""
    import tensorflow as tf

    of_function: Any = type(tf.function(lambda: None))
    numbers = {
        name: {a for a, kind in entry["changed"].items() if kind == "value"}
        for name, entry in retraced.items()
    }
    make, run = of_function.__init__, of_function.__call__

    @functools.wraps(make)
    def with_open_shapes(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        if getattr(self, "_name", "") in retraced:
            self._reduce_retracing = True

    @functools.wraps(run)
    def with_tensors(self: Any, *args: Any, **kwargs: Any) -> Any:
        if scalars := numbers.get(getattr(self, "_name", "")):
            names = (*_parameters(self.python_function), *("" for _ in args))
            pairs = zip(args, names, strict=False)
            args = tuple(_tensor(v) if name in scalars else v for v, name in pairs)
            kwargs = {n: _tensor(v) if n in scalars else v for n, v in kwargs.items()}
        return run(self, *args, **kwargs)

    of_function.__init__, of_function.__call__ = with_open_shapes, with_tensors
    if any(entry["made_anew"] for entry in retraced.values()):
        tf.function = _made_once(tf.function)


@functools.lru_cache(maxsize=64)
def _parameters(function: Any) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def _tensor(value: Any) -> Any:
    import tensorflow as tf

    if isinstance(value, int | float) and not isinstance(value, bool):
        return tf.constant(value)
    return value


def _made_once(original: Callable[..., Any]) -> Callable[..., Any]:
    cache: dict[Any, tuple[Any, Any]] = {}

    @functools.wraps(original)
    def function(func: Any = None, *args: Any, **kwargs: Any) -> Any:
        if func is None:
            return functools.partial(function, **kwargs)
        key = _key(func, kwargs)
        if key is None or args:
            return original(func, *args, **kwargs)
        if key not in cache:
            # With the function, so that nothing else gets the numbers in its key.
            cache[key] = original(func, **kwargs), func
        return cache[key][0]

    return function


def _key(func: Any, kwargs: dict[str, Any]) -> Any:
    """What stands for a function and all that it refers to; None where unknown."""
    code = getattr(func, "__code__", None)
    cells = getattr(func, "__closure__", None) or ()
    try:
        around = tuple(id(cell.cell_contents) for cell in cells)
    except ValueError:
        return None
    bound = (id(getattr(func, "__self__", None)), repr(func.__defaults__))
    return code and (code, around, bound, repr(sorted(kwargs.items())))
