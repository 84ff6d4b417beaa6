"""What can be said of precisions before a run: what to expect, and what is too slow."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.experiments.mixed_precision.eligibility import layers
from perfkit.experiments.shared import precision_hardware as hardware
from perfkit.experiments.shared import precision_work as work
from perfkit.experiments.shared.models import MODELS
from perfkit.experiments.shared.precision import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    PRECISIONS,
)
from perfkit.experiments.shared.precision_expectations import expected, unavailable
from perfkit.measure.tick import REFUSED, Note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perfkit.experiments.shared.precision import Precision
    from perfkit.experiments.shared.precision_hardware import Hardware
    from perfkit.measure.tick import Yielded

# A step that takes longer than this, and than so many of float32, is not timed: a few
# of them would be the whole run.
_LONGEST_STEP_S, _TIMES = 0.5, 10.0
_NOT_HERE = "not here"


def foreseen(model: str, batch: int, asked: Sequence[Precision]) -> Iterator[Yielded]:
    """Tell what is expected of each precision, and refuse those that take too long.

    Args:
        model: The network's name.
        batch: Examples in a batch.
        asked: The precisions, float32 among them.
    """
    notes = known(model, asked)
    yield from (Note(name, told) for name, told in notes.items())
    able = [one for one in asked if one.name not in notes[_NOT_HERE]]
    yield Note("forecast", _held(model, batch, able))
    yield Note("progress", _announced(notes["expected"]))
    taken = {} if notes["gpu"] else dict(_tried(model, batch, able, notes["expected"]))
    yield Note("step", taken)
    yield Note(REFUSED, notes[_NOT_HERE] | too_slow(taken))


def known(model: str, asked: Sequence[Precision]) -> dict[str, Any]:
    """What hardware and shapes say, without a step, as notes by name.

    Args:
        model: The network's name.
        asked: The precisions.
    """
    import tensorflow as tf

    seen = bool(tf.config.list_physical_devices("GPU"))
    # Preparing needs no GPU, and one that is taken here is missed by a trial.
    tf.config.set_visible_devices([], "GPU")
    here = computing(hardware.here(), seen=seen)
    missing = {one.name: why for one in asked if (why := unavailable(one, here))}
    able = [one for one in asked if one.name not in missing]
    return {
        "gpu": here.gpu,
        _NOT_HERE: missing,
        "expected": expectations(able, here),
        "layers": eligible(model),
    }


def computing(here: Hardware, *, seen: bool) -> Hardware:
    """The hardware that computes: a GPU only where TensorFlow sees it."""
    return here if seen else replace(here, gpu="", capability=None)


def expectations(
    asked: Sequence[Precision], here: Hardware
) -> dict[str, dict[str, str]]:
    """What is expected of each precision but float32, as a note has it."""
    return {
        one.name: asdict(expected(one, here)) for one in asked if one.name != FLOAT32
    }


def eligible(model: str) -> list[dict[str, Any]]:
    """The layers of a network in bfloat16, as a note has them."""
    PRECISIONS[BFLOAT16].choose()
    return [layer.described() for layer in layers(MODELS[model].build())]


def too_slow(taken: Mapping[str, float]) -> dict[str, str]:
    """Say of each precision whose steps would be the whole run why it is not timed.

    Args:
        taken: Seconds of a step, float32's among them; empty where none was tried.
    """
    usual = taken.get(FLOAT32, 0.0)
    return {
        name: (
            f"is not timed: one step took {units.seconds(seconds)}, where one of "
            f"{FLOAT32} took {units.seconds(usual)}, and a few of them would be the "
            "whole run"
        )
        for name, seconds in taken.items()
        if seconds > max(_LONGEST_STEP_S, _TIMES * usual)
    }


def _announced(expectations: Mapping[str, Mapping[str, str]]) -> str:
    said = (f"{name} {one['expect']}" for name, one in expectations.items())
    return f"Trying one step of what may be slow. Expected: {', '.join(said)}"


def _held(model: str, batch: int, able: Sequence[Precision]) -> dict[str, int]:
    return {
        one.name: work.bytes_of_step(model, one, batch)
        for one in able
        if one.kind == "precision"
    }


def _tried(
    model: str,
    batch: int,
    able: Sequence[Precision],
    expectations: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, float]]:
    for one in able:
        expect = expectations.get(one.name, {}).get("expect")
        doubtful = expect == "slower" and one.name in (BFLOAT16, FLOAT16)
        if one.name == FLOAT32 or doubtful:
            yield one.name, work.seconds_of_step(model, one, batch)
