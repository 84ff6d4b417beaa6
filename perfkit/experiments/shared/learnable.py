"""Examples from which a network can learn something in seconds, but not everything.

Each lies around a pattern of its class, and some labels are wrong. So the loss falls
and then stays above a floor, where two trainings can be told apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfkit.experiments.shared.models import Batch, Model

_WRONG = 0.2
_STRENGTH = 24.0
_COARSE = 4


def learnable(model: Model, count: int, seed: int) -> Batch:
    """``count`` examples and their labels, the same for the same seed.

    The patterns are always the same: another seed gives other examples of one task.
    """
    import numpy as np

    noise, labels = model.batch(count, seed)
    seen = (noise + _patterns(model)[labels]).astype(np.float32)
    random = np.random.default_rng([seed, 1])
    wrong = random.random(count) < _WRONG
    labels[wrong] = random.integers(model.classes, size=int(wrong.sum()))
    return seen, labels


def _patterns(model: Model) -> NDArray[Any]:
    import numpy as np

    side, *rest = model.shape
    # Coarse patterns: what is pooled or strided over still shows them.
    coarse = (_COARSE, _COARSE, *rest[1:]) if rest else (side,)
    random = np.random.default_rng(1)
    found = random.standard_normal((model.classes, *coarse))
    for axis, of in enumerate(model.shape[:2] if rest else (), start=1):
        found = np.repeat(found, of // _COARSE, axis=axis)
    strong: NDArray[Any] = found * (_STRENGTH / np.sqrt(np.prod(model.shape)))
    return strong
