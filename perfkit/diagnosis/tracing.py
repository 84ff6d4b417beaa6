"""How often are functions traced while a training runs, and what changed each time?

TensorFlow has no public count of it. The one place where it traces a function is
wrapped here; where a version has no such place, nothing is counted, nothing is said.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfkit.experiments.shared.loops import described

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    """

    name: str
    source: tuple[str, int]
    made: int
    arguments: dict[str, str]
    seconds: float


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
        return {
            "traces": len(names),
            "seconds": sum(one.seconds for one in self.since),
            "functions": {
                n: names.count(n) for n in list(dict.fromkeys(names))[:_TOLD]
            },
        }

    def anew(self) -> dict[str, dict[str, Any]]:
        """Functions that are traced again and again, by name.

        Returns:
            Of each ``traces``, ``seconds``, ``changed`` (what of each argument: its
            ``"value"``, ``"shape"`` or ``"dtype"``), ``made_anew`` and ``because``.
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
        def traced(
            kind: Any, context: Any, graph: Any, options: Any, *rest: Any
        ) -> Any:
            if getattr(within, "tracing", False):
                return original(kind, context, graph, options, *rest)
            within.tracing, began = True, time.thread_time()
            try:
                return original(kind, context, graph, options, *rest)
            finally:
                within.tracing = False
                self._add(kind, options, time.thread_time() - began)

        return traced

    def _add(self, kind: Any, options: Any, seconds: float) -> None:
        # AutoGraph and TensorFlow's decorators wrap all functions in the same one.
        function = inspect.unwrap(getattr(options, "python_function", _nothing))
        code = getattr(function, "__code__", function)
        # Kept, so that no other function gets its number.
        self._kept.append((function, code))
        name = str(getattr(options, "name", "a function"))
        arguments = _arguments(kind)
        source = (name, id(code))
        self.seen.append(Traced(name, source, id(function), arguments, seconds))


def _nothing() -> None:
    """Stand for a function that is not told."""


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
    }


def _what_changed(was: str, now: str) -> str:
    dtypes = [one.partition("[")[0] for one in (was, now) if one.endswith("]")]
    if len(dtypes) < 2:
        return "value"
    return "shape" if dtypes[0] == dtypes[1] else "dtype"
