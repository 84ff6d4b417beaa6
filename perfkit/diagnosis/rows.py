"""Arrays as ``fit`` takes them: any structure whose leaves have a row per example."""

from __future__ import annotations

from typing import Any


def are_arrays(data: Any) -> bool:
    """Whether these are arrays: a tuple or list of them, or of structures of them."""
    import tensorflow as tf

    if not isinstance(data, tuple | list):
        return False
    # Sample weights that are None are none.
    leaves = [leaf for leaf in tf.nest.flatten(data) if leaf is not None]
    return bool(leaves) and all(hasattr(leaf, "shape") for leaf in leaves)


def count(data: Any) -> int:
    """How many examples they hold."""
    import tensorflow as tf

    return len(tf.nest.flatten(data)[0])


def first(data: Any, examples: int) -> Any:
    """The first examples; lists become tuples, as ``tf.data`` wants them."""
    return _part(data, slice(examples))


def as_batches(data: Any) -> Any:
    """The same as ``fit`` hands it to a step: what is alone is in no tuple."""
    alone = isinstance(data, tuple) and len(data) == 1
    return data[0] if alone and not isinstance(data[0], tuple | list) else data


def parted(data: Any, share: float) -> tuple[Any, Any]:
    """What is trained on and what is held back, as ``validation_split`` parts them."""
    trained = int(count(data) * (1 - share))
    return first(data, trained), _part(data, slice(trained, None))


def _part(data: Any, which: slice) -> Any:
    if isinstance(data, tuple | list):
        return tuple(_part(part, which) for part in data)
    if isinstance(data, dict):
        return {name: _part(part, which) for name, part in data.items()}
    return data if data is None else data[which]
