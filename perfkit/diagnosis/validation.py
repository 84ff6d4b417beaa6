"""How long the validations of a training are, and how often they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import rows

if TYPE_CHECKING:
    from perfkit.diagnosis.training import Training


_BATCH = 32


def epochs_between(arguments: dict[str, Any]) -> float:
    """Epochs from one validation to the next; 0 where the training has none."""
    held = arguments.get("validation_data") is not None
    if not held and not arguments.get("validation_split"):
        return 0.0
    frequency = arguments.get("validation_freq", 1)
    if isinstance(frequency, int):
        return float(frequency)
    chosen = list(frequency)
    return max(chosen) / len(chosen) if chosen else 0.0


def steps_of(arguments: dict[str, Any], data: Any) -> int | None:
    """Steps of a validation; None where nobody knows, and 0 where there is none.

    Args:
        arguments: Of ``fit``.
        data: That is trained on; a part of it may be held back.
    """
    if not epochs_between(arguments):
        return 0
    given = arguments.get("validation_steps")
    return int(given) if given else _batches(arguments, data)


def _batches(arguments: dict[str, Any], data: Any) -> int | None:
    import keras
    import tensorflow as tf

    held = arguments.get("validation_data")
    if isinstance(held, tf.data.Dataset):
        count = int(held.cardinality())
        return count if count > 0 else None
    if isinstance(held, keras.utils.PyDataset):
        return None if held.num_batches is None else int(held.num_batches)
    if held is None:
        share = float(arguments["validation_split"])
        examples = rows.count(data) - int(rows.count(data) * (1 - share))
    elif rows.are_arrays(held):
        examples = rows.count(held)
    else:
        return None
    size = arguments.get("validation_batch_size") or arguments.get("batch_size")
    return -(-examples // int(size or _BATCH))


def without_validation(training: Training) -> None:
    """Train on the same examples and validate on none."""
    arguments = training.arguments
    share = arguments.get("validation_split")
    if share and arguments.get("validation_data") is None:
        training.data, _ = rows.parted(training.data, float(share))
    for name in ("data", "split", "steps", "batch_size", "freq"):
        arguments.pop(f"validation_{name}", None)
    for callback in arguments["callbacks"]:
        followed = getattr(callback, "monitor", None)
        if isinstance(followed, str):
            callback.monitor = followed.removeprefix("val_")
