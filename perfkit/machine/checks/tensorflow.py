"""Is TensorFlow here, can it use a GPU, and was this combination tested?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.machine.check import Check, fine
from perfkit.machine.checks import asking, compatibility, remedies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.record import Machine

# The first version whose Windows build has no GPU.
_NO_WINDOWS = "2.11"
# On Windows older versions bring their code in a second distribution.
_ONE_OF_TWO = "tensorflow-intel"


def missing(machine: Machine) -> Iterator[Check]:
    """Without TensorFlow there is nothing to train with."""
    if machine.software and machine.software.build == "none":
        yield Check(
            id="no-tensorflow",
            status="fail",
            title="TensorFlow is not installed",
            evidence=f"Python {machine.python} finds no module tensorflow.",
            why="Nothing can be trained.",
            remedy=remedies.install(machine),
            cost=1.0,
        )


def windows(machine: Machine) -> Iterator[Check]:
    """Since 2.11 the builds for Windows know no GPU."""
    version = asking.tensorflow(machine)
    if asking.platform(machine) != "windows" or not machine.gpus:
        return
    if asking.at_least(version, _NO_WINDOWS):
        yield Check(
            id="native-windows",
            status="fail",
            title="TensorFlow on Windows itself uses no GPU",
            evidence=f"TensorFlow {version} runs on {machine.system}, beside "
            f"{machine.gpus[0].name}; the last version with a GPU there was 2.10.",
            why="TensorFlow trains on the processor alone.",
            remedy="In a PowerShell as administrator: wsl --install; then, inside "
            f"Ubuntu: {_in_wsl(version)}",
            cost=1.0,
        )


def cpu_only(machine: Machine) -> Iterator[Check]:
    """A build without CUDA leaves the GPU alone."""
    software = machine.software
    if software is None or not machine.gpus or asking.platform(machine) == "windows":
        return
    version = asking.tensorflow(machine)
    if software.build == "cuda":
        evidence = f"TensorFlow {version} was built for CUDA {software.cuda}."
        yield fine("build", "TensorFlow is built for GPUs", evidence)
    elif software.build in ("cpu", "rocm") and len(_distributions(machine)) < 2:
        packages = software.packages or ("tensorflow-cpu",)
        yield Check(
            id="cpu-only-build",
            status="fail",
            title="This TensorFlow is built for AMD's GPUs, not for NVIDIA's"
            if software.build == "rocm"
            else "This TensorFlow is built for the processor only",
            evidence=f"{' and '.join(packages)} {version} has no CUDA, beside "
            f"{machine.gpus[0].name}.",
            why="TensorFlow leaves this GPU alone.",
            remedy=remedies.install_one(machine, packages),
            cost=1.0,
        )


def duplicated(machine: Machine) -> Iterator[Check]:
    """Two distributions write the same files: what runs is a mixture."""
    packages = _distributions(machine)
    if len(packages) > 1:
        yield Check(
            id="two-tensorflows",
            status="fail" if machine.gpus else "warn",
            title="Several TensorFlows lie on top of each other",
            evidence=f"{' and '.join(_with_version(machine, packages))} are installed.",
            why="They share one folder: the one installed last decides, and it may be "
            "the one without a GPU.",
            remedy=remedies.install_one(machine, packages),
            cost=0.96 if machine.gpus else 0.2,
        )


def tested(machine: Machine) -> Iterator[Check]:
    """Whether somebody tested this TensorFlow with this Python."""
    version = asking.tensorflow(machine)
    if version is None:
        return
    build = compatibility.build(version)
    if build is None:
        newest = compatibility.newest()
        yield _untested(
            f"TensorFlow {version} is not in the table of tested builds, "
            f"which ends with {newest}."
        )
        return
    first, last = build.python
    # On the processor CUDA is not used, whichever the wheel was built for.
    made = asking.built_for(machine) if machine.gpus else None
    evidence = (
        f"TensorFlow {compatibility.minor(version)} was tested with Python {first} to "
        f"{last} (this is {machine.python})"
        + (f" and CUDA {build.cuda} (this build: {made})." if made else ".")
    )
    python = compatibility.numbers(machine.python)[:2]
    in_range = compatibility.numbers(first) <= python <= compatibility.numbers(last)
    as_made = made is None or compatibility.minor(made) == build.cuda
    if in_range and as_made:
        yield fine("tested-build", "This combination of versions was tested", evidence)
    else:
        yield _untested(evidence)


def backend(machine: Machine) -> Iterator[Check]:
    """Keras can train without TensorFlow."""
    chosen = machine.software.keras_backend if machine.software else None
    if chosen not in (None, "tensorflow"):
        yield Check(
            id="keras-backend",
            status="warn",
            title=f"Keras trains with {chosen}, not with TensorFlow",
            evidence=f"Keras chooses the backend {chosen}.",
            why="What TensorFlow can do here says nothing about such a training.",
            remedy=remedies.with_value(machine, "KERAS_BACKEND", "tensorflow"),
            cost=0.4,
        )


def elsewhere(machine: Machine) -> Iterator[Check]:
    """The Python that runs is not the one that was set up."""
    if machine.software and machine.software.elsewhere:
        yield Check(
            id="other-environment",
            status="warn",
            title="This Python belongs to another environment",
            evidence=machine.software.elsewhere,
            why="What you installed for speed may not be what runs.",
            remedy="Start the Python of the active one: python -m perfkit doctor; for "
            "notebooks: python -m pip install ipykernel; python -m ipykernel install "
            "--user --name this-one; then choose the kernel this-one",
            cost=0.5,
        )


def _distributions(machine: Machine) -> tuple[str, ...]:
    packages = machine.software.packages if machine.software else ()
    return tuple(name for name in packages if name != _ONE_OF_TWO)


def _untested(evidence: str) -> Check:
    return Check(
        id="tested-build",
        status="unknown",
        title="This combination of versions is untested, which is not wrong",
        evidence=evidence,
        why="If the GPU is not found or a training fails, this is a place to look.",
    )


def _with_version(machine: Machine, packages: tuple[str, ...]) -> Iterator[str]:
    for name in packages:
        yield f"{name} {machine.versions.get(name, '')}".strip()


def _in_wsl(version: str | None) -> str:
    return f'python3 -m pip install "tensorflow[and-cuda]=={version}"'


RULES = (missing, windows, cpu_only, duplicated, tested, backend, elsewhere)
