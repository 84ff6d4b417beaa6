"""What is trained on however many devices: the same weights, the same examples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit.experiments.shared.models import MODELS

if TYPE_CHECKING:
    import keras
    from numpy.typing import NDArray

    from perfkit.experiments.scaling.devices import Kind
    from perfkit.experiments.shared.models import Model

_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training on some devices that has not begun.

    Attributes:
        model: A name of ``perfkit.experiments.shared.models``.
        kind: Of the devices.
        count: How many devices there are.
        batch: Examples of a step, on all devices together.
    """

    model: str
    kind: Kind
    count: int
    batch: int

    @property
    def share(self) -> int:
        """Examples of a step on one device."""
        return self.batch // self.count

    @property
    def what(self) -> Model:
        """The network and the examples it takes."""
        return MODELS[self.model]

    def network(self) -> keras.Model:
        """Make the network; its fresh weights are the same every time."""
        import keras

        keras.utils.set_random_seed(_SEED)
        return self.what.build()

    def examples(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The examples of one step, for all devices together."""
        return self.what.batch(self.batch, _SEED)


def weights(model: str) -> int:
    """How many numbers the gradient of a model has."""
    variables = MODELS[model].build().trainable_variables
    return sum(math.prod(variable.shape) for variable in variables)


def batch_of(count: int, batch: int, *, strong: bool) -> int:
    """Examples of a step on so many devices together.

    Args:
        count: How many devices.
        batch: Of a device; of all together where ``strong``.
        strong: Whether all devices share one batch, instead of one each.
    """
    return batch if strong else count * batch


def counts(most: int) -> tuple[int, ...]:
    """How many devices to try: 1, 2, 4, 8 and so on, and ``most``."""
    doubled = [1 << power for power in range(most.bit_length())]
    return tuple(sorted({*doubled, most}))
