"""What did TensorFlow do when it was started: did it compute, where, and right?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine.checks import asking, cores, driver
from perfkit.machine.checks.asking import Check, fine
from perfkit.machine.start import LATE
from perfkit.machine.starting.child import COMPILING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from perfkit.machine.record import Machine, Proof, Said


UNSEEN = "unseen-gpu"
# A consolation that a machine with a GPU is not to be given.
_WITHOUT_GPU = " Without an NVIDIA GPU that is as it should be."


def meaning(machine: Machine, said: Said) -> str:
    """What a line of the log means on this machine."""
    if machine.gpus or driver.wanted(machine):
        return said.meaning.replace(_WITHOUT_GPU, "")
    return said.meaning


def broken(machine: Machine) -> Iterator[Check]:
    """TensorFlow cannot be started at all."""
    problem = machine.start.problem if machine.start else ""
    if machine.start and problem.startswith(LATE):
        yield Check(
            id="late-start",
            status="unknown",
            title="TensorFlow did not get through its start in time",
            evidence=problem,
        )
    elif COMPILING in problem:
        yield _uncompiled(machine, problem)
    elif machine.start and problem:
        yield Check(
            id="no-start",
            status="fail",
            title="TensorFlow does not get through its start",
            evidence=problem,
            why="What it was doing then is what a training does first.",
            remedy=cores.make_room(machine)
            if "SIGKILL" in problem
            else _mended(machine, machine.start.said),
            cost=0.94,
        )


def _uncompiled(machine: Machine, problem: str) -> Check:
    flags = machine.environment.get("XLA_FLAGS")
    remedy = asking.without(machine, "XLA_FLAGS")
    return Check(
        id="no-xla",
        status="fail",
        title="XLA, TensorFlow's compiler, does not compile here",
        evidence=problem + (f" XLA_FLAGS is {flags}." if flags else ""),
        why="A training that uses it ends there: Keras does so by itself on a GPU.",
        remedy=remedy if flags else _mended(machine, ()),
        cost=0.8,
    )


def unseen(machine: Machine) -> Iterator[Check]:
    """The driver reports a GPU, TensorFlow finds none."""
    start = machine.start
    if not _gpu_left_out(machine) or start is None:
        return
    devices = ", ".join(start.devices) or "none"
    yield Check(
        id=UNSEEN,
        status="fail",
        title="TensorFlow finds no GPU, though the driver reports one",
        evidence=f"The driver reports {machine.gpus[0].name}; TensorFlow's devices: "
        f"{devices}.",
        why="TensorFlow trains on the processor alone.",
        remedy=_mended(machine, start.said),
        cost=0.9,
    )


def computed(machine: Machine) -> Iterator[Check]:
    """Every device computes, and the result is held against the processor's."""
    proofs = _proofs(machine)
    for proof in proofs:
        yield from _wrong(machine, proof)
    right = [proof for proof in proofs if not any(_wrong(machine, proof))]
    if right:
        done = (f"{proof.computation} on {proof.device}" for proof in right)
        evidence = f"Right within rounding: {', '.join(done)}."
        yield fine("computes", "TensorFlow computes right", evidence)


def log(machine: Machine) -> Iterator[Check]:
    """Lines of the start-up log that tell of a lost GPU or of lost speed."""
    said = machine.start.said if machine.start else ()
    harmed = _gpu_left_out(machine) or any(map(_gpu_failed, _proofs(machine)))
    for line in {line.meaning: line for line in reversed(said)}.values():
        # Without a card, that no driver was found is as it should be.
        if line.weight == "matters" or (line.weight == "fatal" and harmed):
            yield _line(machine, line)


def _line(machine: Machine, said: Said) -> Check:
    fatal = said.weight == "fatal"
    return Check(
        id="start-log",
        status="fail" if fatal else "warn",
        title="TensorFlow said at its start what is wrong with the GPU"
        if fatal
        else "TensorFlow warned at its start",
        evidence=f'It said: "{said.line}"',
        why=meaning(machine, said),
        remedy=_mended(machine, (said,)),
        cost=0.92 if fatal else 0.15,
    )


def _wrong(machine: Machine, proof: Proof) -> Iterator[Check]:
    """What is wrong with one computation, if anything is."""
    asked = f"The {proof.computation} on {proof.device}"
    if proof.problem:
        evidence = f"{asked}: {proof.problem}"
        yield _fault(machine, f"{proof.device} does not compute", evidence)
    elif proof.error is not None and not proof.error <= proof.allowed:
        yield _wrong_result(machine, proof, asked)
    elif proof.ran_on and proof.ran_on != proof.device:
        title = f"{proof.device} leaves its work to another device"
        yield _fault(machine, title, f"{asked} ran on {proof.ran_on}.")


def _fault(machine: Machine, title: str, evidence: str) -> Check:
    return Check(
        id="no-result",
        status="fail",
        title=title,
        evidence=evidence,
        why="A training fails, or runs elsewhere than you think and at its speed.",
        remedy=_mended(machine, machine.start.said if machine.start else ()),
        cost=0.9,
    )


def _wrong_result(machine: Machine, proof: Proof, asked: str) -> Check:
    on_gpu = "Undo any overclocking; nvidia-smi -q -d ECC,PAGE_RETIREMENT shows worn "
    on_gpu += f"memory; then: {asking.newer_driver(machine)}"
    return Check(
        id="wrong-result",
        status="fail",
        title=f"{proof.device} computes wrongly",
        evidence=f"{asked} is off by {units.significant(proof.error or 0.0)} of its "
        f"largest value; rounding explains {units.significant(proof.allowed)}.",
        why="A speed means nothing where the result is wrong.",
        remedy=on_gpu if proof.device.startswith("GPU") else asking.install(machine),
        cost=1.0,
    )


def _proofs(machine: Machine) -> tuple[Proof, ...]:
    return machine.start.proofs if machine.start else ()


def _gpu_failed(proof: Proof) -> bool:
    return proof.device.startswith("GPU") and bool(proof.problem)


def _gpu_left_out(machine: Machine) -> bool:
    """Whether programs may use a GPU, TensorFlow was started, and it found none."""
    start = machine.start
    if start is None or not start.devices or not asking.visible(machine):
        return False
    return not any(device.startswith("GPU") for device in start.devices)


def _mended(machine: Machine, lines: Iterable[Said]) -> str:
    """What mends the first of these lines that has a remedy of its own."""
    for said in lines:
        for words, mend in _MENDS.items():
            if re.search(words, said.line):
                return mend(machine)
    return asking.install(machine)


def _small_too(machine: Machine) -> str:
    return asking.with_value(machine, "TF_MIN_GPU_MULTIPROCESSOR_COUNT", "1")


def _cached(machine: Machine) -> str:
    return asking.with_value(machine, "CUDA_CACHE_MAXSIZE", str(4 * 2**30))


def _shared(machine: Machine) -> str:
    return asking.nvidia_smi(machine, "-c DEFAULT")


def _full(machine: Machine) -> str:
    return "nvidia-smi shows who holds the memory: end it, or take a smaller batch"


# What a line contains, and what mends it.
_MENDS: dict[str, Callable[[Machine], str]] = {
    r"ERROR \((303|34)\)|SHARED_OBJECT|STUB|NO_DEVICE": asking.driver,
    "TF_MIN_GPU_MULTIPROCESSOR_COUNT": _small_too,
    "cuda drivers|DRIVER_VERSION|INSUFFICIENT_DRIVER|insufficient": (
        asking.newer_driver
    ),
    "DRIVER_MISMATCH|match DSO|not appear to be running|ECC|UNKNOWN": asking.restart,
    "DEVICE_UNAVAILABLE|devices are busy": _shared,
    "out of memory|OUT_OF_MEMORY|RESOURCE_EXHAUSTED": _full,
    "not built with CUDA kernel binaries": _cached,
}
RULES = (broken, unseen, computed, log)
