"""Does NVIDIA's driver answer, and is it new enough for this TensorFlow?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from perfkit.machine.checks import asking
from perfkit.machine.checks.asking import Check, fine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.machine.gpu import Problem
    from perfkit.machine.record import Machine

_WITHOUT = "TensorFlow trains on the processor alone."


class _Silence(NamedTuple):
    """What it comes to that no GPU is reported, and what to do about it."""

    id: str
    title: str
    remedy: Callable[[Machine], str]


def no_card(machine: Machine) -> Iterator[Check]:
    """No NVIDIA GPU, and none that is left unused: plainly said, and nothing wrong."""
    if machine.gpus or wanted(machine):
        return
    platform = asking.platform(machine)
    if platform == "wsl2" and machine.nvidia_cards is None:
        yield Check(
            id="no-driver",
            status="unknown",
            title="WSL does not say whether this PC has an NVIDIA card",
            evidence=machine.no_gpu or "No GPU is reported.",
            why="With one, trainings could run on it; without one, nothing is missing.",
            remedy="If it has one: " + asking.newer_driver(machine),
        )
        return
    title, evidence = asking.without_gpu(machine), machine.no_gpu
    if machine.nvidia_cards == 0:
        evidence = "No NVIDIA card is on the bus."
        title += ", and nothing for its driver to load" if machine.driver else ""
    yield fine("no-gpu", title, evidence or "No GPU is reported.")


def silent(machine: Machine) -> Iterator[Check]:
    """A card is there, or was meant to be, and its driver reports none."""
    if machine.gpus or not wanted(machine) or asking.platform(machine) == "wsl1":
        return
    kind = _SILENCES[_problem(machine)]
    known = machine.nvidia_cards
    cards = f" NVIDIA cards on the bus: {known}." if known else ""
    yield Check(
        id=kind.id,
        status="fail",
        title=kind.title,
        evidence=(machine.no_gpu or "No GPU is reported.") + cards,
        why=_WITHOUT,
        remedy=kind.remedy(machine),
        cost=1.0,
    )


def wsl1(machine: Machine) -> Iterator[Check]:
    """The first WSL knows no GPU, and is slow at reading files."""
    if asking.platform(machine) == "wsl1":
        yield Check(
            id="wsl-1",
            status="fail" if asking.cuda_libraries(machine) else "warn",
            title="This is WSL 1, which has no GPU",
            evidence=f"The system is {machine.system}.",
            why=_WITHOUT,
            remedy="In PowerShell: wsl --list; wsl --set-version NAME 2, with the name "
            "from the list",
            cost=0.95 if asking.cuda_libraries(machine) else 0.3,
        )


def too_old(machine: Machine) -> Iterator[Check]:
    """Programs made for a CUDA version need a driver that is new enough."""
    cuda, version = asking.built_for(machine), asking.driver_version(machine)
    if not machine.gpus or cuda is None:
        return
    platform = asking.platform(machine)
    system = platform if platform in ("windows", "wsl2") else "linux"
    lowest = asking.lowest_driver(cuda, system)
    if lowest is None or version is None:
        return
    evidence = f"The driver is {version}; CUDA {cuda} needs {lowest} or newer."
    if asking.at_least(version, lowest):
        yield fine("driver", "The driver is new enough for TensorFlow", evidence)
        return
    yield Check(
        id="driver-too-old",
        status="fail",
        title="The driver is too old for this TensorFlow",
        evidence=evidence,
        why=f"TensorFlow cannot start the GPU. {_WITHOUT}",
        remedy=asking.newer_driver(machine),
        cost=1.0,
    )


def lost(machine: Machine) -> Iterator[Check]:
    """A card that is listed and gives no access: often it fell off the bus."""
    for _, name, gpu in asking.seen(machine):
        if "card" in gpu.refused:
            yield Check(
                id="lost-card",
                status="fail",
                title="The driver lists a GPU and has no access to it",
                evidence=f"{name}: {gpu.refused['card']}.",
                why="TensorFlow cannot use it, and may not start on the others.",
                remedy=f"{asking.restart(machine)}; if it comes back: seat the card "
                "anew and look at its power cables",
                cost=1.0,
            )


def wanted(machine: Machine) -> bool:
    """Whether a GPU that is not reported is a fault."""
    # One that runs, or ran, has a card, which the bus of a container may hide. Images
    # of clouds bring one that is never loaded.
    if machine.driver is not None and _problem(machine) != "not loaded":
        return True
    if machine.nvidia_cards is not None:
        return machine.nvidia_cards > 0
    return machine.driver is not None or bool(asking.cuda_libraries(machine))


def _problem(machine: Machine) -> Problem:
    if machine.driver is not None:
        return machine.driver.problem
    return "no reader" if "nvidia-ml-py" in machine.no_gpu else "no driver"


def _load(machine: Machine) -> str:
    if asking.platform(machine) in ("wsl2", "windows"):
        return asking.restart(machine)
    on_host = "On the host: " if asking.platform(machine) == "container" else ""
    return f"{on_host}sudo modprobe nvidia; if that fails: sudo reboot"


def _allow(machine: Machine) -> str:
    if asking.platform(machine) == "container":
        return asking.driver(machine)
    return (
        "ls -l /dev/nvidia* shows which group may use them: sudo usermod -aG GROUP "
        "$USER; then log in anew"
    )


def _reader(machine: Machine) -> str:
    return "python -m pip install nvidia-ml-py"


def _look(machine: Machine) -> str:
    return f"nvidia-smi; if it shows no GPU either: {asking.restart(machine)}"


_SILENCES: dict[Problem, _Silence] = {
    "mismatch": _Silence(
        "driver-mismatch",
        "The driver was updated and no longer fits its library",
        asking.restart,
    ),
    "not loaded": _Silence(
        "driver-not-loaded", "The driver is installed, and not loaded", _load
    ),
    "no permission": _Silence("driver-refused", "The driver refuses this user", _allow),
    "no driver": _Silence("no-driver", "There is no NVIDIA driver", asking.driver),
    "no reader": _Silence("no-reader", "The GPUs cannot be asked", _reader),
    "no answer": _Silence("driver-silent", "The driver does not answer", _look),
    "": _Silence("driver-silent", "The driver reports no GPU", _look),
}
RULES = (silent, lost, wsl1, too_old, no_card)
