"""How much memory will a training step take? From shapes alone, before it runs.

Weights, their gradients and what the optimizer keeps for each of them are there once.
The activations, which the backward pass needs, are there for every example of a batch.
What TensorFlow itself and the temporaries of its kernels take is in no shape.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import keras

# Their output is their input, seen in another shape.
_VIEWS = ("InputLayer", "Flatten", "Reshape")


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a training step will hold, in bytes.

    Attributes:
        weights: The network's variables.
        gradients: One for each trainable variable.
        slots: What the optimizer keeps.
        activations: Of one example: its own numbers and every layer's output.
    """

    weights: int
    gradients: int
    slots: int
    activations: int

    @property
    def fixed(self) -> int:
        """What does not depend on the batch."""
        return self.weights + self.gradients + self.slots

    def of(self, batch: int) -> int:
        """All of it for a batch of so many examples."""
        return self.fixed + batch * self.activations

    def described(self) -> dict[str, int]:
        """The same as a note that a finding can keep."""
        return asdict(self)


def forecast(network: keras.Model, optimizer: keras.Optimizer) -> Forecast:
    """Add up a built network and an optimizer that was built for it."""
    return Forecast(
        weights=_bytes(network.variables),
        gradients=_bytes(network.trainable_variables),
        slots=_bytes(optimizer.variables),
        activations=_of_example(network.input_shape, "float32")
        + sum(
            _of_example(layer.output.shape, layer.compute_dtype)
            for layer in network.layers
            if type(layer).__name__ not in _VIEWS
        ),
    )


def _bytes(variables: Iterable[Any]) -> int:
    return sum(math.prod(v.shape) * _width(v.dtype) for v in variables)


def _of_example(shape: Iterable[int | None], dtype: str) -> int:
    _, *rest = shape
    return math.prod(side or 1 for side in rest) * _width(dtype)


def _width(dtype: str) -> int:
    """Bytes of one number, such as 2 for ``"bfloat16"``."""
    bits = "".join(filter(str.isdigit, str(dtype).rpartition("float")[2]))
    return max(1, int(bits or 32) // 8)
