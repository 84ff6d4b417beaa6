"""Which layers of a network can gain from fewer bits? From their shapes, before a run.

Hardware for 16 bits multiplies in blocks. A layer fills them where it computes in
16 bits and its sides are multiples of 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import keras

BLOCK = 8
_HALVES = ("float16", "bfloat16")
_MOST = 1000


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer that multiplies.

    Attributes:
        name: In its network.
        computes: In which dtype.
        inputs: Numbers, or channels, that come in.
        outputs: Numbers, or channels, that go out.
        products: Multiplications for one example, forward.
    """

    name: str
    computes: str
    inputs: int
    outputs: int
    products: int

    @property
    def hindrance(self) -> str:
        """What keeps it from gaining, as a clause; "" for nothing."""
        if self.computes not in _HALVES:
            return f"computes in {self.computes}"
        sides = {"inputs": self.inputs, "outputs": self.outputs}
        odd = [f"{count:,} {side}" for side, count in sides.items() if count % BLOCK]
        return f"has {' and '.join(odd)}, no multiple of {BLOCK}" if odd else ""

    def described(self) -> dict[str, Any]:
        """The same as a note that a finding can keep."""
        return dict(vars(self))


def layers(network: keras.Model) -> Iterator[Layer]:
    """Look at the layers of a built network that have a kernel."""
    for layer in network.layers:
        if (kernel := getattr(layer, "kernel", None)) is None:
            continue
        *_, inputs, outputs = map(int, kernel.shape)
        places = math.prod(side or 1 for side in layer.output.shape[1:-1])
        yield Layer(
            name=layer.name,
            computes=layer.compute_dtype,
            inputs=inputs,
            outputs=outputs,
            products=places * math.prod(map(int, kernel.shape)),
        )


def told(notes: Mapping[str, Any]) -> tuple[Layer, ...]:
    """The layers as a note has them, which may come from a file."""
    listed = notes.get("layers")
    if not isinstance(listed, list | tuple):
        return ()
    found = (_layer(one) for one in listed[:_MOST])
    return tuple(layer for layer in found if layer is not None)


def _layer(note: Any) -> Layer | None:
    counts = ("inputs", "outputs", "products")
    if not isinstance(note, dict) or any(
        not isinstance(note.get(name), str) for name in ("name", "computes")
    ):
        return None
    numbers: dict[str, Any] = {name: note.get(name) for name in counts}
    if any(type(number) is not int or number < 0 for number in numbers.values()):
        return None
    return Layer(name=note["name"], computes=note["computes"], **numbers)


def share(found: tuple[Layer, ...]) -> float | None:
    """The share of all multiplications that can gain; None where there are none."""
    whole = sum(layer.products for layer in found)
    able = sum(layer.products for layer in found if not layer.hindrance)
    return able / whole if whole else None
