"""Which line of the user's an operation belongs to, by its name in a trace."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from perfkit.training.account.places import Place
from perfkit.training.account.trace import Operation
from perfkit.training.account.watch import GRADIENT, JACOBIAN, Origin

# Of functions that were put in the place of their call, and of loops and branches.
_CALLS = re.compile(r"^(?:(?:Stateful)?PartitionedCall(?:_\d+)?/)+")
_BODIES = re.compile(r"^.*/(?:body|cond|then|else)/_\d+/")
# Types of operations that Grappler makes of a product and what follows, and of those
# that add gradients up.
_OF_SOURCE = re.compile(
    r"_\w*Fused\w*(?:MatMul|Conv)|(?:_Mkl\w*)?(?:AddN|ConcatV2|UnsortedSegmentSum)$"
)
# What Grappler puts before or behind a name.
_REWRITTEN = re.compile(
    r"(?:ArithmeticOptimizer|ConstantFolding|LayoutOptimizer|Func)/(?:\w+?_)?|"
    r"-\d+-\w*LayoutOptimizer$|/(?:input|output)/_\d+$|_switch/_\d+$|/_\d+$"
)
_NUMBERED = re.compile(r"_\d+$")
# Scopes of Keras around what ``compile`` was given.
_COMPILED = {"compile_loss": "loss", "compile_metrics": "metric"}


@dataclass(frozen=True)
class Charged:
    """Whose an operation is: a line's, and of what there.

    Attributes:
        part: ``"layer"``, ``"loss"``, ``"metric"``, ``"optimizer"``, ``"jacobian"``, or
            ``"line"``.
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
        operations: By function and name, each as ``watch.Origin`` has it.
        makers: Lines that made an object, by kind and name.
        trains: Functions that take gradients.
    """

    operations: dict[str, dict[str, Origin]]
    makers: dict[tuple[str, str], Place]
    trains: frozenset[str]
    # Lines that call a model from a step of the user's own, by the line of a layer.
    callers: dict[Place, Counter[Place]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    _charges: dict[Operation, Charged] = field(default_factory=dict)
    _scopes: dict[str, dict[str, Place]] = field(default_factory=dict)

    def charge(self, operation: Operation) -> Charged:
        """Return the owner of an operation in a trace."""
        if operation not in self._charges:
            name, kind, function, of_input = operation
            plain = _plain(name)
            if _OF_SOURCE.match(kind):
                origin = self._find(plain, function, of_input=of_input)
                plain = (origin and origin[5]) or plain
            charged = self._charge(plain, function, of_input=of_input)
            self._charges[operation] = charged
        return self._charges[operation]

    def elements(self, operation: Operation) -> int:
        """Return the elements of an operation's result; 0 if unknown."""
        plain = _plain(operation.name)
        origin = self._find(plain, operation.function, of_input=False)
        return int(origin[3]) if origin else 0

    def _charge(self, plain: str, function: str, *, of_input: bool) -> Charged:
        operation = self._find(plain, function, of_input=of_input)
        if operation and operation[4] == JACOBIAN:
            return Charged(operation[0], JACOBIAN)
        if GRADIENT in plain:
            return self._gradient(plain, function)
        if operation:
            return self._charge_operation(plain, operation)
        # TensorFlow takes a loop apart into operations with its name before theirs.
        for name, loop in self._around(plain, function, of_input=of_input):
            if loop[0] and not loop[2]:
                return self._charge_operation(name, loop)
        return self._by_scope(plain, function, of_input=of_input) or _NOBODYS

    def _find(self, plain: str, function: str, *, of_input: bool) -> Origin | None:
        """The operation of a name, in the likeliest function that has one."""

        def unlikely(name: str) -> tuple[bool, ...]:
            of_other = name.startswith(_INPUT) != of_input
            return name != function, of_other, name not in self.trains

        for name in (plain, _REWRITTEN.sub("", plain)):
            functions = [f for f, parts in self.operations.items() if name in parts]
            if functions:
                return self.operations[min(functions, key=unlikely)][name]
        return None

    def _around(
        self, plain: str, function: str, *, of_input: bool
    ) -> Iterator[tuple[str, Origin]]:
        """The operations of a name and those that it lies in, the innermost first."""
        for name in (plain, *above(plain, "/")):
            if operation := self._find(name, function, of_input=of_input):
                yield name, operation

    def _charge_operation(self, plain: str, operation: Origin) -> Charged:
        place, layers, in_fit, _, part, _ = operation
        owner = self._by_name(plain)
        if in_fit or place is None:
            # Of several calls of ``fit`` the one that waits is at work.
            return owner or self._of_kind(part, place)
        if layers > 1:
            # A line calls a model: its layers were made by lines of their own.
            layer = self._layer(plain.split("/"))
            if layer and layer.place:
                self.callers[layer.place][place] += 1
            return layer or Charged(place)
        return replace(owner or _NOBODYS, place=place)

    def _of_kind(self, part: str, place: Place | None) -> Charged:
        """Charge a part's operation to its maker if a single one was made."""
        if not part:
            return _NOBODYS
        owners = {
            where: Charged(where, part, name)
            for (kind, name), where in self.makers.items()
            if kind == part and name not in _KERAS_OWN and where != place
        }
        if len(owners) == 1:
            return next(iter(owners.values()))
        return Charged(self.makers.get(("compile", ""), place), part)

    def _by_name(self, plain: str) -> Charged | None:
        """Return the owner of an operation by the scopes in its name."""
        parts = plain.split("/")
        for scope, kind in _COMPILED.items():
            if scope in parts:
                return self._compiled(kind, parts[parts.index(scope) + 1 :])
        for part in parts:
            if place := self._maker("optimizer", part):
                return Charged(place, "optimizer", part)
        return self._layer(parts)

    def _layer(self, parts: list[str]) -> Charged | None:
        """The innermost layer in a path of scopes.

        Keras may enter every scope of a model twice, and then all of them end in a
        number that is no part of the layers' names.
        """
        layer, entered_twice = None, False
        for part in parts:
            names = [part, _NUMBERED.sub("", part)]
            if entered_twice:
                names.reverse()
            for name in names:
                if place := self.makers.get(("layer", name)):
                    entered_twice = name != part
                    layer = Charged(place, "layer", name)
                    break
        return layer

    def _compiled(self, kind: str, parts: list[str]) -> Charged:
        if parts and (place := self._maker(kind, parts[0])):
            return Charged(place, kind, parts[0])
        name = parts[0] if len(parts) > 1 else ""
        return Charged(self.makers.get(("compile", "")), kind, name)

    def _maker(self, kind: str, part: str) -> Place | None:
        numberless = self.makers.get((kind, _NUMBERED.sub("", part)))
        return self.makers.get((kind, part), numberless)

    def _gradient(self, plain: str, function: str) -> Charged:
        """Whose forward operation a gradient belongs to."""
        forward = plain.rpartition(GRADIENT)[2].replace("/gradients/", "/")
        parts = [re.sub(r"_grad(?:_\d+)?$", "", part) for part in forward.split("/")]
        forward = "/".join(parts)
        for name, operation in self._around(forward, function, of_input=False):
            return replace(self._charge_operation(name, operation), backward=True)
        owner = self._by_scope(forward, function)
        return replace(owner, backward=True) if owner else _NOBODYS

    def _by_scope(
        self, plain: str, function: str, *, of_input: bool = False
    ) -> Charged | None:
        """Return the owner of most operations in the same scope."""
        if not of_input and (owner := self._by_name(plain)):
            return owner
        scopes = self._scopes_of(_INPUT if of_input else function)
        around = above(plain, "/")
        return next((Charged(scopes[o]) for o in around if o in scopes), None)

    def _scopes_of(self, function: str) -> dict[str, Place]:
        if function not in self._scopes:
            names = [function] if function in self.operations else [*self.operations]
            if function == _INPUT:
                names = [name for name in names if name.startswith(_INPUT)]
            counts: dict[str, Counter[Place]] = defaultdict(Counter)
            for name in names:
                for plain, (place, _, in_fit, *_) in self.operations[name].items():
                    if place and not in_fit:
                        for scope in above(plain, "/"):
                            counts[scope][place] += 1
            self._scopes[function] = {
                scope: count.most_common(1)[0][0] for scope, count in counts.items()
            }
        return self._scopes[function]


def above(path: str, separator: str) -> Iterator[str]:
    """The paths that a path lies in, the innermost first."""
    while separator in path:
        path = path.rpartition(separator)[0]
        yield path


def _plain(name: str) -> str:
    """A name as it stands in the graph of its function."""
    return _CALLS.sub("", _BODIES.sub("", _CALLS.sub("", name)))
