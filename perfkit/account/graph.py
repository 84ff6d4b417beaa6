"""Which line of the user's an operation belongs to, by its name in a trace."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from perfkit.account.places import Place

# Of functions that were put in the place of their call, and of loops and branches.
_CALLS = re.compile(r"^(?:(?:Stateful)?PartitionedCall(?:_\d+)?/)+")
_BODIES = re.compile(r"^.*/(?:body|cond|then|else)/_\d+/")
_GRADIENT = "gradient_tape/"
# What Grappler puts before or behind a name.
_REWRITTEN = re.compile(
    r"(?:ArithmeticOptimizer|ConstantFolding|LayoutOptimizer|Func)/(?:\w+?_)?|"
    r"-\d+-\w*LayoutOptimizer$|/(?:input|output)/_\d+$|_switch/_\d+$|/_\d+$"
)
_NUMBERED = re.compile(r"_\d+$")
# Scopes of Keras around what ``compile`` was given.
_LOSSES, _METRICS = "compile_loss", "compile_metrics"


@dataclass(frozen=True)
class Charged:
    """Whose an operation is.

    Attributes:
        place: The line; None where nobody knows.
        part: ``"layer"``, ``"loss"``, ``"metric"``, ``"optimizer"``, or ``"line"``.
        name: Of the layer, the loss, ...; "" for a line.
        backward: Whether it is part of the backward pass.
    """

    place: Place | None
    part: str = "line"
    name: str = ""
    backward: bool = False


_NOBODYS = Charged(None)
# Metrics and losses that ``compile`` makes of what it is given.
_KERAS_OWN = frozenset({"loss", "compile_metrics", "compile_loss"})
# How the names of all functions begin that stages of the input call.
_INPUT = "Dataset_"


@dataclass
class Graphs:
    """The operations of all graphs that were traced.

    Args:
        operations: By function and name: place, layers, in_fit, elements.
        made: Lines that made an object, by kind and name.
        trains: Functions that take gradients.
    """

    operations: dict[str, dict[str, list[Any]]]
    made: dict[tuple[str, str], Place]
    trains: frozenset[str]
    _known: dict[tuple[str, str, bool], Charged] = field(default_factory=dict)
    _scopes: dict[str, dict[str, Place]] = field(default_factory=dict)

    def charge(self, name: str, function: str, *, of_input: bool) -> Charged:
        """Whose an operation is.

        Args:
            name: In the trace.
            function: That it was run by, as far as that is known.
            of_input: Whether the input ran it.
        """
        key = name, function, of_input
        if key not in self._known:
            self._known[key] = self._charged(name, function, of_input=of_input)
        return self._known[key]

    def elements(self, name: str, function: str) -> int:
        """Of the result of an operation; 0 where it is not known."""
        for _, operation in self._found(_plain(name), function, of_input=False):
            return int(operation[3])
        return 0

    def _charged(self, name: str, function: str, *, of_input: bool) -> Charged:
        plain = _plain(name)
        backward = _GRADIENT in plain
        if backward:
            return self._gradient(plain, function)
        for _, operation in self._found(plain, function, of_input=of_input):
            return self._of(plain, operation)
        return self._by_scope(plain, function, of_input=of_input) or _NOBODYS

    def _found(
        self, plain: str, function: str, *, of_input: bool
    ) -> Iterator[tuple[str, list[Any]]]:
        """Operations of a name, in the likeliest function first."""
        names = sorted(
            self.operations, key=lambda n: self._order(n, function, of_input)
        )
        for tried in (plain, _REWRITTEN.sub("", plain)):
            for one in names:
                if tried in self.operations[one]:
                    yield one, self.operations[one][tried]

    def _order(self, name: str, function: str, of_input: bool) -> tuple[bool, ...]:
        return (
            name != function,
            name.startswith(_INPUT) != of_input,
            name not in self.trains,
        )

    def _of(self, plain: str, operation: list[Any]) -> Charged:
        place, layers, in_fit, _, part = operation
        place = tuple(place) if place else None
        if in_fit or place is None:
            # Of several calls of ``fit`` the one that waits is at work.
            return self._named(plain) or self._of_kind(part, place)
        if layers > 1:
            # A line calls a model: its layers were made by lines of their own.
            return self._named(plain, layers_only=True) or Charged(place)
        if named := self._named(plain):
            return Charged(place, named.part, named.name)
        return Charged(place)

    def _of_kind(self, part: str, place: Place | None) -> Charged:
        """An operation of a metric, a loss or an optimizer, of which one was made."""
        if not part:
            return _NOBODYS
        made = {
            where: name
            for (kind, name), where in self.made.items()
            if kind == part and name not in _KERAS_OWN and where != place
        }
        if len(made) == 1:
            ((where, name),) = made.items()
            return Charged(where, part, name)
        return Charged(self.made.get(("compile", ""), place), part)

    def _named(self, plain: str, *, layers_only: bool = False) -> Charged | None:
        """Whose it is by the scopes in its name."""
        parts = plain.split("/")
        if not layers_only:
            if _LOSSES in parts:
                return self._compiled("loss", parts[parts.index(_LOSSES) + 1 :])
            if _METRICS in parts:
                return self._compiled("metric", parts[parts.index(_METRICS) + 1 :])
            for part in parts:
                if place := self._made("optimizer", part):
                    return Charged(place, "optimizer", part)
        return self._layer(parts)

    def _layer(self, parts: list[str]) -> Charged | None:
        """The innermost layer in a path of scopes.

        Keras may enter every scope of a model twice, and then all of them end in a
        number that is no part of the layers' names.
        """
        found, entered_twice = None, False
        for part in parts:
            names = [part, _NUMBERED.sub("", part)]
            if entered_twice:
                names.reverse()
            for name in names:
                if place := self.made.get(("layer", name)):
                    entered_twice = name != part
                    found = Charged(place, "layer", name)
                    break
        return found

    def _compiled(self, kind: str, parts: list[str]) -> Charged:
        for part in parts[:1]:
            if place := self._made(kind, part):
                return Charged(place, kind, part)
        name = parts[0] if len(parts) > 1 else ""
        return Charged(self.made.get(("compile", "")), kind, name)

    def _made(self, kind: str, part: str) -> Place | None:
        for name in (part, _NUMBERED.sub("", part)):
            if (kind, name) in self.made:
                return self.made[kind, name]
        return None

    def _gradient(self, plain: str, function: str) -> Charged:
        """Whose forward operation a gradient belongs to."""
        forward = plain.rpartition(_GRADIENT)[2]
        parts = forward.replace("/gradients/", "/").split("/")
        parts = [re.sub(r"_grad(?:_\d+)?$", "", part) for part in parts]
        for length in range(len(parts), 0, -1):
            tried = "/".join(parts[:length])
            for _, operation in self._found(tried, function, of_input=False):
                charged = self._of(tried, operation)
                return Charged(charged.place, charged.part, charged.name, True)
        found = self._named("/".join(parts)) or self._by_scope(
            "/".join(parts), function
        )
        if found is None:
            return _NOBODYS
        return Charged(found.place, found.part, found.name, True)

    def _by_scope(
        self, plain: str, function: str, *, of_input: bool = False
    ) -> Charged | None:
        """Whose most of the operations of its scope are."""
        if not of_input and (named := self._named(plain)):
            return named
        scopes = self._scopes_of(_INPUT if of_input else function)
        parts = plain.split("/")
        for length in range(len(parts) - 1, 0, -1):
            if place := scopes.get("/".join(parts[:length])):
                return Charged(place)
        return None

    def _scopes_of(self, function: str) -> dict[str, Place]:
        if function not in self._scopes:
            known = [function] if function in self.operations else [*self.operations]
            if function == _INPUT:
                known = [one for one in self.operations if one.startswith(_INPUT)]
            counts: dict[str, Counter[Place]] = defaultdict(Counter)
            for name in known:
                for plain, (place, _, in_fit, *_) in self.operations[name].items():
                    if place and not in_fit:
                        for scope in _above(plain):
                            counts[scope][tuple(place)] += 1
            self._scopes[function] = {
                scope: count.most_common(1)[0][0] for scope, count in counts.items()
            }
        return self._scopes[function]


def _above(name: str) -> Iterable[str]:
    parts = name.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts)))


def _plain(name: str) -> str:
    """A name as it stands in the graph of its function."""
    return _CALLS.sub("", _BODIES.sub("", _CALLS.sub("", name)))
