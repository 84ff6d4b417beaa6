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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfkit.account.places import outwards
from perfkit.diagnosis.loop import LIBRARIES, package_of
from perfkit.experiments.shared.loops import described
from perfkit.measure.tick import READY, Note, Tick

WAITED = "waiting"
_NANO = 1e-9


def read(root: Path = Path("/")) -> tuple[float, float] | None:
    """Seconds that all threads of this process ran, and stood ready without a core.

    None where the system, whose ``proc`` lies in a folder, does not tell.
    """
    ran = waited = 0.0
    for path in (root / "proc/self/task").glob("*/schedstat"):
        try:
            numbers = path.read_text().split()
            ran, waited = ran + float(numbers[0]), waited + float(numbers[1])
        except (OSError, ValueError, IndexError):
            # A thread may end while it is read.
            continue
    return (ran * _NANO, waited * _NANO) if ran else None


NOTE = "tracing"
_PLACE = "tensorflow.python.eager.polymorphic_function.tracing_compilation"
_NAME = "_create_concrete_function"
# A function is traced anew where it was so often after the first step: once may be a
# smaller last batch, or the validation.
_OFTEN = 2
# So many functions, and causes of each, are told; the next ones say the same.
_TOLD = 4
_LONGEST = 120


@dataclass(frozen=True)
class Traced:
    """One trace of a function that nothing else was being traced for.

    Attributes:
        name: Of the function.
        source: What stands for its source.
        made: What stands for the function itself: one made anew has another.
        arguments: In words, by name.
        seconds: Of this thread at work, tracing it.
        library: What it is, in words, where it is none of the user's; "" where it is.
    """

    name: str
    source: tuple[str, int]
    made: int
    arguments: dict[str, str]
    seconds: float
    library: str = ""


@dataclass
class Tracing:
    """The traces in this process since it was told to look.

    Attributes:
        seen: Every trace, in order.
        ready: How many of them came before the training was ready.
    """

    seen: list[Traced] = field(default_factory=list)
    ready: int = 0
    _kept: list[Any] = field(default_factory=list)

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
        self.ready = len(self.seen)

    @property
    def since(self) -> list[Traced]:
        """What was traced since the training was ready."""
        return self.seen[self.ready :]

    @property
    def undecided(self) -> bool:
        """Whether something was traced anew, and too seldom to say that it goes on."""
        since = [one.source for one in self.since]
        return bool(since) and max(map(since.count, since)) < _OFTEN

    def note(self) -> dict[str, Any]:
        """What a trial keeps: traces since it was ready, their seconds, by function."""
        names = [one.name for one in self.since]
        told = list(dict.fromkeys(names))[:_TOLD]
        return {
            "traces": len(names),
            "seconds": sum(one.seconds for one in self.since),
            "functions": {name: names.count(name) for name in told},
        }

    def anew(self) -> dict[str, dict[str, Any]]:
        """Functions that are traced again and again, by name.

        Returns:
            Of each ``traces``, ``seconds``, ``changed`` (what of each argument: its
            ``"value"``, ``"shape"`` or ``"dtype"``), ``made_anew``, ``because`` and
            ``library``: what it is in words, "" for a function of the user's.
        """
        alike: dict[tuple[str, int], list[Traced]] = {}
        for one in self.seen:
            alike.setdefault(one.source, []).append(one)
        since = [one.source for one in self.since]
        found = [_told(alike[one]) for one in alike if since.count(one) >= _OFTEN]
        found.sort(key=lambda one: -float(one["seconds"]))
        return {str(one.pop("name")): one for one in found[:_TOLD]}

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        within = threading.local()

        @functools.wraps(original)
        def traced(*given: Any) -> Any:
            if getattr(within, "tracing", False):
                return original(*given)
            kind, _, _, options, *_ = given
            within.tracing, began = True, time.thread_time()
            try:
                return original(*given)
            finally:
                within.tracing = False
                self._add(kind, options, time.thread_time() - began)

        return traced

    def _add(self, kind: Any, options: Any, seconds: float) -> None:
        # AutoGraph and TensorFlow's decorators wrap all functions in the same one.
        given: Any = getattr(options, "python_function", None)
        function = inspect.unwrap(given)
        code = getattr(function, "__code__", function)
        # Kept, so that no other function gets its number.
        self._kept.append((function, code))
        name = str(getattr(options, "name", "a function"))
        arguments = _arguments(kind)
        source = (name, id(code))
        library = _of_library(function)
        made = id(function)
        self.seen.append(Traced(name, source, made, arguments, seconds, library))


def named(name: str, known: Mapping[str, Any]) -> str:
    """What a reader knows of a function as: by what it is for where it is none of his.

    Args:
        name: As ``Tracing.anew`` has it.
        known: What that tells of it.
    """
    return str(known.get("library") or f"`{name}`")


def _of_library(function: Any) -> str:
    """What a function is for that Keras or TensorFlow has; "" for one of the user's."""
    if package_of(function) not in LIBRARIES:
        return ""
    given = _given(function)
    if given and package_of(given) not in LIBRARIES:
        return ""
    called = ""
    for frame in outwards(sys._getframe(1)):
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] in LIBRARIES:
            # They wrap what they offer, to make tracebacks shorter.
            if not module.endswith("traceback_utils"):
                called = frame.f_code.co_name
        elif called:
            break
    if not called or called.startswith("_"):
        return "what Keras computes"
    return f"the {'input' if given else 'step'} of `{called}`"


def _given(function: Any) -> Any:
    """What tf.data was given to call, where this is its function around that."""
    for cell in getattr(function, "__closure__", None) or ():
        # A cell may be empty still.
        with contextlib.suppress(ValueError):
            if given := getattr(cell.cell_contents, "_func", None):
                return given
    return None


def _arguments(kind: Any) -> dict[str, str]:
    found = getattr(kind, "parameters", {})
    return {n: _in_words(one.type_constraint)[:_LONGEST] for n, one in found.items()}


def _in_words(kind: Any) -> str:
    if hasattr(kind, "value"):
        return described(kind.value)
    rank = getattr(getattr(kind, "shape", None), "rank", None)
    return str(kind) if rank is None else described(kind)


def _told(traces: Sequence[Traced]) -> dict[str, Any]:
    pairs = list(itertools.pairwise(traces))
    changed: dict[str, str] = {}
    because: list[str] = []
    for before, after in pairs:
        for name, words in after.arguments.items():
            was = before.arguments.get(name, words)
            if was != words:
                changed[name] = _what_changed(was, words)
                because.append(f"{name}: {was}, then {words}")
    same = [b.arguments == a.arguments and b.made != a.made for b, a in pairs]
    return {
        "name": traces[0].name,
        "traces": len(traces),
        "seconds": sum(one.seconds for one in traces[1:]),
        "changed": changed,
        "made_anew": sum(same) > len(same) / 2,
        "because": list(dict.fromkeys(because))[:_TOLD],
        "library": traces[0].library,
    }


def _what_changed(was: str, now: str) -> str:
    dtypes = [one.partition("[")[0] for one in (was, now) if one.endswith("]")]
    if len(dtypes) < 2:
        return "value"
    return "shape" if dtypes[0] == dtypes[1] else "dtype"


STEADY = "steady"


def noted(ticks: Iterable[Any], traces: Tracing, batch: int) -> Iterator[Any]:
    """Pass ticks on, and tell what came with the first, second, fourth, ..."""
    passed, due, examples = 0, 1, 0
    before = read()
    for tick in ticks:
        yield tick
        if tick == READY:
            traces.begin()
            before, examples = read(), 0
        if not isinstance(tick, Tick):
            continue
        passed, examples = passed + 1, examples + tick.examples
        if passed >= due:
            told = {"steps": examples / batch, NOTE: traces.note()}
            if before and (now := read()):
                ran_s, waited_s = now[0] - before[0], now[1] - before[1]
                told[WAITED] = {"ran_s": ran_s, "waited_s": waited_s}
            yield Note(STEADY, told)
            due *= 2


def fix(retraced: Mapping[str, Mapping[str, Any]]) -> None:
    """Fix the signatures of functions that ``Tracing.anew`` tells of, in advance."""
    import tensorflow as tf

    of_function: Any = type(tf.function(lambda: None))
    numbers = {
        name: {a for a, what in known["changed"].items() if what == "value"}
        for name, known in retraced.items()
    }
    make, run = of_function.__init__, of_function.__call__

    @functools.wraps(make)
    def with_open_shapes(self: Any, *args: Any, **named: Any) -> None:
        make(self, *args, **named)
        if getattr(self, "_name", "") in retraced:
            self._reduce_retracing = True

    @functools.wraps(run)
    def with_tensors(self: Any, *args: Any, **named: Any) -> Any:
        if wanted := numbers.get(getattr(self, "_name", "")):
            names = (*_parameters(self.python_function), *("" for _ in args))
            pairs = zip(args, names, strict=False)
            args = tuple(_tensor(one) if name in wanted else one for one, name in pairs)
            named = {n: _tensor(v) if n in wanted else v for n, v in named.items()}
        return run(self, *args, **named)

    of_function.__init__, of_function.__call__ = with_open_shapes, with_tensors
    if any(known["made_anew"] for known in retraced.values()):
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
    made: dict[Any, tuple[Any, Any]] = {}

    @functools.wraps(original)
    def function(func: Any = None, *args: Any, **named: Any) -> Any:
        if func is None:
            return functools.partial(function, **named)
        key = _key(func, named)
        if key is None or args:
            return original(func, *args, **named)
        if key not in made:
            # With the function, so that nothing else gets the numbers in its key.
            made[key] = original(func, **named), func
        return made[key][0]

    return function


def _key(func: Any, named: dict[str, Any]) -> Any:
    """What stands for a function and all that it refers to; None where unknown."""
    code = getattr(func, "__code__", None)
    cells = getattr(func, "__closure__", None) or ()
    try:
        around = tuple(id(cell.cell_contents) for cell in cells)
    except ValueError:
        return None
    bound = (id(getattr(func, "__self__", None)), repr(func.__defaults__))
    return code and (code, around, bound, repr(sorted(named.items())))
