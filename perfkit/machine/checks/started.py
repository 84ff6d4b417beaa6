"""What did TensorFlow do when it was started: did it compute, where, and right?"""

import re
from collections.abc import Iterable, Iterator

from perfkit import units
from perfkit.machine.checks import base, software
from perfkit.machine.checks.base import Check, Words, fine, say
from perfkit.machine.record import Machine, Proof, Said, Start
from perfkit.machine.starting import LATE
from perfkit.machine.starting.child import COMPILING

UNSEEN = "unseen-gpu"
# A consolation that a machine with a GPU is not to be given.
_WITHOUT_GPU = " Without an NVIDIA GPU that is as it should be."


def meaning(machine: Machine, said: Said) -> str:
    """What a line of the log means on this machine."""
    if machine.gpus or software.wanted(machine):
        return said.meaning.replace(_WITHOUT_GPU, "")
    return said.meaning


def broken(machine: Machine) -> Iterator[Check]:
    """TensorFlow cannot be started at all."""
    start = machine.start or Start()
    problem, flags = start.problem, machine.environment.get("XLA_FLAGS")
    if problem.startswith(LATE):
        yield say(machine, "late-start", problem)
    elif COMPILING in problem and flags:
        yield say(machine, "flagged-xla", f"{problem} XLA_FLAGS is {flags}.")
    elif COMPILING in problem:
        yield say(machine, "no-xla", problem)
    elif "SIGKILL" in problem:
        remedy = Words(machine)["make_room"]
        yield say(machine, "no-start", problem, remedy=remedy)
    elif problem:
        yield say(machine, "no-start", problem, remedy=_fix(machine, start.said))


def unseen(machine: Machine) -> Iterator[Check]:
    """The driver reports a GPU, TensorFlow finds none."""
    start = machine.start or Start()
    if _gpu_left_out(machine, start):
        evidence = (
            f"The driver reports {machine.gpus[0].name}; TensorFlow's devices: "
            f"{', '.join(start.devices)}."
        )
        yield say(machine, UNSEEN, evidence, remedy=_fix(machine, start.said))


def computed(machine: Machine) -> Iterator[Check]:
    """Every device computes, and the result is held against the processor's."""
    start, right = machine.start or Start(), list[str]()
    for proof in start.proofs:
        wrong = _wrong(machine, start, proof)
        if wrong:
            yield wrong
        else:
            right.append(f"{proof.computation} on {proof.device}")
    if right:
        evidence = f"Right within rounding: {', '.join(right)}."
        yield fine("computes", "TensorFlow computes right", evidence)


def _wrong(machine: Machine, start: Start, proof: Proof) -> Check | None:
    """What is wrong with one computation, if anything is."""
    asked, device = f"The {proof.computation} on {proof.device}", proof.device
    if proof.problem:
        key, evidence = "no-result", f"{asked}: {proof.problem}"
    elif proof.error is not None and not proof.error <= proof.allowed:
        key = "wrong-on-gpu" if device.startswith("GPU") else "wrong-result"
        error, allowed = map(units.significant, (proof.error, proof.allowed))
        evidence = f"{asked} is off by {error} of its largest value; rounding explains "
        return say(machine, key, f"{evidence}{allowed}.", device=device)
    elif proof.ran_on and proof.ran_on != device:
        key, evidence = "passed-on", f"{asked} ran on {proof.ran_on}."
    else:
        return None
    remedy = _fix(machine, start.said)
    return say(machine, key, evidence, device=device, remedy=remedy)


def log(machine: Machine) -> Iterator[Check]:
    """Lines of the start-up log that tell of a lost GPU or of lost speed."""
    start = machine.start or Start()
    harmed = _gpu_left_out(machine, start) or any(
        proof.device.startswith("GPU") and proof.problem for proof in start.proofs
    )
    for line in {line.meaning: line for line in reversed(start.said)}.values():
        # Without a card, that no driver was found is as it should be.
        if line.weight == "matters" or (line.weight == "fatal" and harmed):
            yield say(
                machine,
                "fatal-start-log" if line.weight == "fatal" else "start-log",
                f'It said: "{line.line}"',
                meaning=meaning(machine, line),
                remedy=_fix(machine, (line,)),
            )


def _gpu_left_out(machine: Machine, start: Start) -> bool:
    """Whether programs may use a GPU, TensorFlow was started, and it found none."""
    if not start.devices or not base.visible(machine):
        return False
    return not any(device.startswith("GPU") for device in start.devices)


def _fix(machine: Machine, lines: Iterable[Said]) -> str:
    """What fixes the first of these lines that has a remedy of its own."""
    for said in lines:
        if "dlopen" in said.line and base.cuda_libraries(machine):
            return Words(machine)["name_libraries"]
        for line, fix in base.statements()["fixes"].items():
            if re.search(line, said.line):
                return Words(machine, fix)["remedy"]
    return base.install(machine)


RULES = (broken, unseen, computed, log)
