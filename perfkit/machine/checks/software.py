"""Is the software for a GPU here, was it set in time, and does TensorFlow compute?"""

import re
from collections.abc import Iterable, Iterator

from perfkit import units
from perfkit.machine.checks import base
from perfkit.machine.checks.base import Check, Words, fine, judge, numbers, say
from perfkit.machine.record import Machine, Problem, Proof, Said, Start
from perfkit.machine.starting import LATE
from perfkit.machine.starting.child import COMPILING

# The statement for each thing that keeps the driver from answering.
SILENCES: dict[Problem, str] = {
    "mismatch": "driver-mismatch",
    "not loaded": "driver-not-loaded",
    "no permission": "driver-refused",
    "no driver": "no-driver",
    "no answer": "driver-silent",
    "": "reports-none",
}


def unanswered(machine: Machine) -> Iterator[Check]:
    """No NVIDIA GPU answers: a fault where one is there, or was meant to be."""
    if machine.gpus:
        return
    cards, evidence = machine.nvidia_cards, machine.no_gpu or "No GPU is reported."
    if expects_gpu(machine):
        count = f" NVIDIA cards on the bus: {cards}." if cards else ""
        problem = machine.driver.problem if machine.driver else "no driver"
        yield say(machine, SILENCES[problem], f"{evidence}{count}")
    elif base.platform(machine) == "wsl2" and cards is None:
        yield say(machine, "driver-in-windows", evidence)
    else:
        title = base.without_gpu(machine)
        if cards == 0:
            evidence = "No NVIDIA card is on the bus."
            title += ", so its driver has nothing to load" if machine.driver else ""
        yield fine("no-gpu", title, evidence)


# The oldest driver that runs programs of a CUDA version, by system.
_DRIVERS = {
    "11": {"linux": "450.80.02"},
    "12": {"linux": "525.60.13", "wsl2": "528.33"},
    "13": {"linux": "580"},
}


def too_old(machine: Machine) -> Iterator[Check]:
    """Programs made for a CUDA version need a driver that is new enough."""
    cuda = base.built_for(machine)
    loaded = machine.driver.version if machine.driver else None
    version = loaded or next((gpu.driver for gpu in machine.gpus if gpu.driver), None)
    system = "wsl2" if base.platform(machine) == "wsl2" else "linux"
    lowest = _DRIVERS.get((cuda or "").split(".")[0], {}).get(system)
    if not machine.gpus or lowest is None or version is None:
        return
    evidence = f"The driver is {version}; CUDA {cuda} needs {lowest} or newer."
    is_old = numbers(version) < numbers(lowest)
    yield judge(machine, "driver-too-old", evidence, is_old)


def lost(machine: Machine) -> Iterator[Check]:
    """A card that is listed and gives no access: often it fell off the bus."""
    for _, name, gpu in base.seen_gpus(machine):
        if gpu.lost:
            yield say(machine, "lost-card", f"{name}: {gpu.lost}.")


def expects_gpu(machine: Machine) -> bool:
    """Whether a GPU that is not reported is a fault."""
    # One that runs, or ran, has a card, which the bus of a container may hide. Images
    # of clouds bring one that is never loaded.
    if machine.driver is not None and machine.driver.problem != "not loaded":
        return True
    if machine.nvidia_cards is not None:
        return machine.nvidia_cards > 0
    return machine.driver is not None or bool(base.cuda_libraries(machine))


DRIVER = (unanswered, lost, too_old)


def build(machine: Machine) -> Iterator[Check]:
    """Without TensorFlow nothing trains; a build without CUDA leaves a GPU alone."""
    software, version = machine.software, base.tensorflow(machine)
    if software and software.build == "none":
        evidence = f"Python {machine.python} finds no module tensorflow."
        yield say(machine, "no-tensorflow", evidence)
    elif software and machine.gpus and software.build == "cuda":
        evidence = f"TensorFlow {version} was built for CUDA {software.cuda}."
        yield fine("build", "TensorFlow is built for GPUs", evidence)
    elif software and machine.gpus and software.build in ("cpu", "rocm"):
        packages = software.packages or ("tensorflow-cpu",)
        evidence = f"{' and '.join(packages)} {version} has no CUDA, beside "
        evidence += f"{machine.gpus[0].name}."
        blank = " ".join(packages)
        yield say(machine, "cpu-only-build", evidence, packages=blank)


def unseen_libraries(machine: Machine) -> Iterator[Check]:
    """Where pip brought no CUDA, only a start tells if TensorFlow finds one."""
    if not machine.gpus or base.built_for(machine) is None or machine.start:
        return
    cuda = base.cuda_libraries(machine)
    evidence = "No package of this environment brings CUDA."
    if cuda:
        evidence = f"pip installed CUDA {cuda}."
    yield judge(machine, "unseen-libraries", evidence, not cuda)


# The cuDNN that TensorFlow was built with, by the first two numbers of its version.
_CUDNN: dict[tuple[int, ...], str] = {(2, 16): "8.9", (2, 17): "8.9"}
_CUDNN |= {(2, number): "9.3" for number in (18, 19, 20, 21)}


def old_cudnn(machine: Machine) -> Iterator[Check]:
    """A cuDNN older than the one TensorFlow was built with is refused by it."""
    version, cuda = base.tensorflow(machine), base.built_for(machine)
    built_with = _CUDNN.get(numbers(version or "")[:2])
    name = f"nvidia-cudnn-cu{(cuda or '').split('.')[0]}"
    if not machine.gpus or not built_with or name not in machine.versions:
        return
    version_here, lowest = numbers(machine.versions[name]), numbers(built_with)
    if version_here[0] != lowest[0] or version_here < lowest:
        evidence = (
            f"{name} is {machine.versions[name]}; TensorFlow {version} was built with "
            f"{built_with} and needs that or a newer {lowest[0]}.x."
        )
        yield say(machine, "wrong-cudnn", evidence)


def late(machine: Machine) -> Iterator[Check]:
    """A variable that is set after TensorFlow was loaded does nothing."""
    names = machine.software.set_late if machine.software else ()
    if names:
        evidence = f"Set too late: {', '.join(names)}."
        yield say(machine, "set-too-late", evidence, name=names[0])


UNSEEN = "unseen-gpu"


def broken(machine: Machine) -> Iterator[Check]:
    """TensorFlow cannot be started at all."""
    start = machine.start or Start()
    problem = start.problem
    if problem.startswith(LATE):
        yield say(machine, "late-start", problem)
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
        evidence = f"Correct within rounding: {', '.join(right)}."
        yield fine("computes", "TensorFlow computes correctly", evidence)


def _wrong(machine: Machine, start: Start, proof: Proof) -> Check | None:
    """What is wrong with one computation, if anything is."""
    about, device = f"The {proof.computation} on {proof.device}", proof.device
    if proof.problem:
        key, evidence = "no-result", f"{about}: {proof.problem}"
    elif proof.error is not None and not proof.error <= proof.allowed:
        key = "wrong-on-gpu" if device.startswith("GPU") else "wrong-result"
        error, allowed = map(units.significant, (proof.error, proof.allowed))
        evidence = f"{about} is off by {error} of its largest value; rounding explains "
        return say(machine, key, f"{evidence}{allowed}.", device=device)
    elif proof.ran_on and proof.ran_on != device:
        key, evidence = "passed-on", f"{about} ran on {proof.ran_on}."
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
                meaning=line.meaning,
                remedy=_fix(machine, (line,)),
            )


def _gpu_left_out(machine: Machine, start: Start) -> bool:
    """Whether programs may use a GPU, TensorFlow was started, and it found none."""
    if not start.devices or not base.visible(machine):
        return False
    return not any(device.startswith("GPU") for device in start.devices)


def _fix(machine: Machine, lines: Iterable[Said]) -> str:
    """What fixes the first of these lines that has a remedy of its own."""
    for entry in lines:
        if "dlopen" in entry.line and base.cuda_libraries(machine):
            return Words(machine)["name_libraries"]
        for line, fix in base.statements()["fixes"].items():
            if re.search(line, entry.line):
                return Words(machine, fix)["remedy"]
    return base.install(machine)


START = (broken, unseen, computed, log)
