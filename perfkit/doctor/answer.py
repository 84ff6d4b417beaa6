"""The question that everybody has first: can TensorFlow use a GPU here?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.machine.checks import asking
from perfkit.machine.starting.proof import is_right

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfkit.machine.check import Check
    from perfkit.machine.record import Machine

_PROCESSOR = "TensorFlow trains on the processor"
_AS_IT_IS = "see the first FAIL"


def answer(machine: Machine, checks: Sequence[Check]) -> str:
    """Say in a sentence whether TensorFlow can use a GPU, and how that is known."""
    fails = [check for check in checks if check.status == "fail"]
    if any(check.id == "no-tensorflow" for check in fails):
        return "TensorFlow is not installed here: nothing can be trained."
    if machine.start and machine.start.devices:
        return _seen(machine)
    if machine.start and machine.start.problem:
        return "TensorFlow did not get through its start here."
    if not machine.gpus:
        return _without(machine, fails)
    if fails:
        return f"TensorFlow cannot use {_named(machine)} as things are: {_AS_IT_IS}."
    return (
        f"TensorFlow can use {_named(machine)}, as far as can be told without trying; "
        "`perfkit doctor --probe` lets it compute."
    )


def _seen(machine: Machine) -> str:
    """What TensorFlow itself showed as it was started."""
    assert machine.start
    on_gpu = [p for p in machine.start.proofs if p.device.startswith("GPU")]
    if on_gpu and all(map(is_right, on_gpu)):
        return f"TensorFlow can use {_named(machine)}: it computed right there."
    if any(device.startswith("GPU") for device in machine.start.devices):
        return f"TensorFlow finds {_named(machine)} and was not seen to compute right."
    if machine.gpus:
        return f"{_PROCESSOR}: it does not find {_named(machine)}."
    return f"{_PROCESSOR}: it finds no GPU here."


def _without(machine: Machine, fails: Sequence[Check]) -> str:
    if any("driver" in check.id or check.id == "no-reader" for check in fails):
        return f"{_PROCESSOR}: no GPU answers here; {_AS_IT_IS}."
    return f"{asking.without_gpu(machine)}."


def _named(machine: Machine) -> str:
    names = [gpu.name for _, _, gpu in asking.seen(machine)] or [
        gpu.name for gpu in machine.gpus
    ]
    if len(names) == 1:
        return names[0]
    return f"{len(names)} x {names[0]}" if len(set(names)) == 1 else "a GPU here"
