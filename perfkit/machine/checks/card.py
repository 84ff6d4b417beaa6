"""Which GPU may TensorFlow use, and does this build hold kernels for it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.machine.check import Check, fine
from perfkit.machine.checks import asking, compatibility, remedies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.record import Machine

_MINIMUM = "TF_MIN_GPU_MULTIPROCESSOR_COUNT"
# TensorFlow's own default, or what its largest GPU has where that is less.
_MULTIPROCESSORS = 8
# The driver keeps 1 GiB of compiled kernels unless it is told otherwise.
_CACHE = str(4 * 2**30)
# The first version whose code for later cards is reported to be accepted by the driver.
_COMPILES = "2.21"
_OFF = ("", "0", "false")


def hidden(machine: Machine) -> Iterator[Check]:
    """CUDA_VISIBLE_DEVICES can hide every GPU."""
    chosen = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None or not machine.gpus:
        return
    left, count = len(asking.visible(machine)), len(machine.gpus)
    evidence = (
        f'CUDA_VISIBLE_DEVICES is "{chosen}": {left} of {count} GPUs can be seen.'
    )
    if left:
        yield fine("visible-gpus", "CUDA_VISIBLE_DEVICES leaves a GPU", evidence)
        return
    yield Check(
        id="hidden-gpu",
        status="fail",
        title="CUDA_VISIBLE_DEVICES hides every GPU",
        evidence=evidence,
        why="TensorFlow trains on the processor alone.",
        remedy=remedies.without(machine, "CUDA_VISIBLE_DEVICES"),
        cost=1.0,
    )


def kernels(machine: Machine) -> Iterator[Check]:
    """Machine code for this card, code that the driver must compile first, or none."""
    held = _held(machine)
    if held is None or asking.built_for(machine) is None:
        return
    for _, name, gpu in asking.seen(machine):
        if gpu.compute_capability is not None:
            yield _kernels(machine, held, name, gpu.compute_capability)


def small(machine: Machine) -> Iterator[Check]:
    """TensorFlow leaves out GPUs with few multiprocessors."""
    counts = {name: gpu.multiprocessors for _, name, gpu in asking.seen(machine)}
    known = {name: count for name, count in counts.items() if count is not None}
    if not known or len(known) < len(counts):
        return
    minimum = _minimum(machine, max(known.values()))
    left_out = {name: count for name, count in known.items() if count < minimum}
    if not left_out:
        return
    evidence = ", ".join(f"{name} has {n}" for name, n in left_out.items())
    evidence = f"{evidence} multiprocessors; TensorFlow takes GPUs from {minimum} on."
    if len(left_out) < len(known):
        title = "TensorFlow leaves a small GPU out and uses the larger"
        yield fine("small-gpu", title, evidence)
        return
    yield Check(
        id="small-gpu",
        status="fail",
        title="TensorFlow leaves this GPU out: it is too small",
        evidence=evidence,
        why="TensorFlow trains on the processor alone.",
        remedy=remedies.with_value(machine, _MINIMUM, str(min(left_out.values()))),
        cost=1.0,
    )


def _kernels(
    machine: Machine, held: tuple[str, ...], name: str, capability: str
) -> Check:
    kind = compatibility.kernels(held, capability)
    evidence = (
        f"{name} has compute capability {capability}; TensorFlow "
        f"{asking.tensorflow(machine)} holds {', '.join(held)}."
    )
    if kind == "native":
        return fine("kernels", "TensorFlow holds kernels for this GPU", evidence)
    if kind == "none":
        return _no_kernels(name, capability, evidence)
    refusal = _cannot_compile(machine)
    if refusal:
        return _stuck(machine, *refusal, evidence=evidence)
    if kind == "partly native":
        title = "Some kernels for this GPU are compiled when they are first used"
        return fine("kernels", title, f"{evidence} Later starts find them compiled.")
    return _compiled(machine, evidence)


def _compiled(machine: Machine, evidence: str) -> Check:
    remedy = remedies.with_value(machine, "CUDA_CACHE_MAXSIZE", _CACHE)
    if not asking.at_least(asking.tensorflow(machine), _COMPILES):
        remedy = f'python -m pip install "tensorflow[and-cuda]>={_COMPILES}"; {remedy}'
    return Check(
        id="compiled-kernels",
        status="warn",
        title="The driver compiles every kernel for this GPU at the first start",
        evidence=evidence,
        why="TensorFlow warns of 30 minutes or longer for that. What was compiled is "
        "kept, as far as the cache has room; a steady training is not slowed. Users "
        f"report that versions before {_COMPILES} fail (CUDA_ERROR_INVALID_PTX).",
        remedy=remedy,
        cost=0.35,
    )


def _no_kernels(name: str, capability: str, evidence: str) -> Check:
    older = capability.startswith(("3.", "5."))
    remedy = 'python -m pip install "tensorflow[and-cuda]<2.17"' if older else ""
    return Check(
        id="no-kernels",
        status="fail",
        title="This TensorFlow holds no kernels for this GPU",
        evidence=evidence,
        why="TensorFlow cannot compute on it.",
        remedy=remedy or f"Take a TensorFlow that was built for {capability} ({name}).",
        cost=1.0,
    )


def _cannot_compile(machine: Machine) -> tuple[str, str] | None:
    """Why the driver would compile nothing, and what to do; None if it can."""
    disabled = machine.environment.get("CUDA_DISABLE_PTX_JIT", "")
    if disabled.lower() not in _OFF:
        remedy = remedies.without(machine, "CUDA_DISABLE_PTX_JIT")
        return f"CUDA_DISABLE_PTX_JIT is {disabled}.", remedy
    made, driver = asking.built_for(machine), machine.driver
    if made is None or driver is None or driver.cuda is None:
        return None
    if asking.at_least(driver.cuda, compatibility.minor(made)):
        return None
    return (
        f"The driver compiles code up to CUDA {driver.cuda}, this is of CUDA {made}.",
        remedies.newer_driver(machine),
    )


def _stuck(machine: Machine, reason: str, remedy: str, *, evidence: str) -> Check:
    return Check(
        id="uncompiled-kernels",
        status="fail",
        title="Kernels for this GPU must be compiled, and the driver cannot",
        evidence=f"{evidence} {reason}",
        why="TensorFlow fails on this GPU when it first needs such a kernel.",
        remedy=remedy,
        cost=0.95,
    )


def _held(machine: Machine) -> tuple[str, ...] | None:
    version = asking.tensorflow(machine)
    if machine.software and machine.software.capabilities is not None:
        return machine.software.capabilities
    return compatibility.capabilities(version) if version else None


def _minimum(machine: Machine, largest: int) -> int:
    chosen = machine.environment.get(_MINIMUM, "")
    return int(chosen) if chosen.isdecimal() else min(_MULTIPROCESSORS, largest)


RULES = (hidden, kernels, small)
