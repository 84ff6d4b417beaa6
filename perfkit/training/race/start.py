"""The start that all sides of a race across backends share, and their first losses.

The baseline's first look writes its weights and a batch of its data into a file. Every
other side begins with those, so its first losses are the same but for rounding where it
does the same job.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.training.diagnose.failure import in_short
from perfkit.training.diagnose.training import Training, first_batch, leaves, map_leaves

Array = NDArray[Any]
# How many steps are made on the one batch.
STEPS = 3
# The same loss but for rounding, as a share of it: in single and in half precision.
# Steps of training make small differences larger.
_ROUNDING, _HALF_ROUNDING, _GROWTH = 1e-3, 2e-2, 10
_FILE, _WEIGHT, _PART = "start.npz", "weight", "part"
# Keras calls the layers that draw random numbers so, and what makes another draw some.
_RANDOM = re.compile("Dropout|Noise|Random")


def set_weights(training: Training, folder: str) -> None:
    """Give a model the weights of the shared start, where there are some that fit."""
    if not (path := Path(folder, _FILE)).is_file():
        return
    weights, _ = _read(path)
    _build(training)
    if _shapes(training.model.get_weights()) == _shapes(weights):
        training.model.set_weights(weights)


def first_losses(training: Training, folder: str) -> dict[str, Any]:
    """Train a few steps from the shared start; the first side to come makes it.

    The data may lose a batch.

    Returns:
        ``losses``: one before any step, then those of ``STEPS`` steps; ``random``:
        whether layers draw random numbers; ``half``: whether they compute in half
        precision. Or ``problem``: in words why there are no such losses.
    """
    try:
        return _train_from_start(training, Path(folder, _FILE))
    except Exception as error:
        # Model and data are the user's own, and may raise anything.
        return {"problem": f"from the same weights it raised {in_short(error)}"}


def _train_from_start(training: Training, path: Path) -> dict[str, Any]:
    model, batch = training.model, first_batch(training)
    _build(training, batch)
    parts = [_to_array(part) for part in leaves(batch) if part is not None]
    weights = model.get_weights()
    if path.is_file():
        shared_weights, shared_parts = _read(path)
        if difference := _difference(weights, shared_weights):
            return {"problem": f"of weights it has {difference}"}
        # A batch of another size is said elsewhere.
        examples = ([np.atleast_1d(a)[0] for a in p] for p in (parts, shared_parts))
        if difference := _difference(*examples):
            return {"problem": f"of an example it has {difference}"}
        model.set_weights(shared_weights)
        parts = shared_parts
    else:
        arrays = {f"{_WEIGHT}{at}": weight for at, weight in enumerate(weights)}
        arrays |= {f"{_PART}{at}": part for at, part in enumerate(parts)}
        np.savez(path, **arrays)
    remaining = iter(parts)
    batch = map_leaves(lambda leaf: leaf if leaf is None else next(remaining), batch)
    parts_of_step = (*(batch if isinstance(batch, tuple) else (batch,)), None, None)
    x, y, sample_weight, *_ = parts_of_step
    losses = []
    for run in (model.test_on_batch, *STEPS * (model.train_on_batch,)):
        model.reset_metrics()
        losses.append(float(run(x, y, sample_weight, return_dict=True)["loss"]))
    layers = list(model._flatten_layers())
    policies = [str(getattr(layer, "compute_dtype", "")) for layer in layers]
    return {
        "losses": losses,
        "random": any(map(_draws, layers)),
        "half": any(policy.endswith("float16") for policy in policies),
    }


def _build(training: Training, batch: Any = None) -> None:
    """Make the weights of a model that makes them when it is first called."""
    if training.model.built:
        return
    batch = first_batch(training) if batch is None else batch
    training.model(batch[0] if isinstance(batch, tuple) else batch)


def _draws(layer: Any) -> bool:
    """Whether a layer draws random numbers when it is trained."""
    rates = (getattr(layer, name, 0) for name in ("dropout", "recurrent_dropout"))
    return bool(_RANDOM.search(type(layer).__name__)) or any(
        isinstance(rate, int | float) and rate > 0 for rate in rates
    )


def _to_array(part: Any) -> Array:
    array = np.asarray(part)
    if array.dtype == object:
        raise TypeError("a batch holds more than numbers")
    return array


def _read(path: Path) -> tuple[list[Array], list[Array]]:
    """Return the weights and the parts of the batch."""
    with np.load(path) as arrays:
        names = arrays.files
        weights = [arrays[name] for name in names if name.startswith(_WEIGHT)]
        return weights, [arrays[name] for name in names if name.startswith(_PART)]


def _shapes(arrays: Sequence[Array]) -> list[tuple[int, ...]]:
    return [array.shape for array in arrays]


def _difference(mine: Sequence[Array], shared: Sequence[Array]) -> str:
    """Say how the shapes of these differ; "" where they do not."""
    if len(mine) != len(shared):
        return f"{len(mine)} arrays instead of {len(shared)}"
    pairs = zip(_shapes(mine), _shapes(shared), strict=True)
    different = next(((a, b) for a, b in pairs if a != b), None)
    return f"{different[0]} instead of {different[1]}" if different else ""


def compare(new: dict[str, Any], base: dict[str, Any]) -> str:
    """Say how a side's first losses differ from the baseline's beyond rounding.

    Or say why nothing could be compared; "" where they are the same.
    """
    if problem := new.get("problem"):
        return str(problem)
    if problem := base.get("problem"):
        return f"the baseline has no first losses to compare: {problem}"
    is_half, is_random = (new[name] or base[name] for name in ("half", "random"))
    first = _HALF_ROUNDING if is_half else _ROUNDING
    # Where layers draw random numbers, only the loss before any step is compared.
    tolerances = [first, *([] if is_random else STEPS * [first * _GROWTH])]
    pairs = zip(new["losses"], base["losses"], tolerances, strict=False)
    for step, (mine, theirs, tolerance) in enumerate(pairs):
        if not math.isclose(mine, theirs, rel_tol=tolerance, abs_tol=1e-9):
            when = f"in step {step}" if step else "before any step"
            losses = f"{_write(mine)} instead of {_write(theirs)}"
            return f"from the same weights its loss on one batch is {losses} {when}"
    return ""


def in_words(new: dict[str, Any], base: dict[str, Any]) -> str:
    """Say that the first losses are the same, and which were compared."""
    before, *losses = new["losses"]
    start = f"From the same weights, its loss on one batch is {_write(before)}"
    if new["random"] or base["random"]:
        return (
            f"{start} before training, as the baseline's. Its layers draw random "
            "numbers, so later losses were compared on average alone."
        )
    return (
        f"{start} before training and {_write(losses[-1])} in step {STEPS}, "
        "as the baseline's."
    )


def _write(loss: float) -> str:
    return units.significant(loss) if math.isfinite(loss) else "no number"
