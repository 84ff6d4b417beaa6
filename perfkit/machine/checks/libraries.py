"""Can the CUDA libraries be loaded that TensorFlow asks for, and are they the right?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.machine.checks import asking
from perfkit.machine.checks.asking import Check, fine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.record import Library, Machine


_DRIVER = "libcuda.so"
# Images made for GPUs put the driver's libraries into LD_LIBRARY_PATH.
_OF_DRIVER = (_DRIVER, "libnvidia-")
# Without these the GPU is used all the same: profiles, several GPUs, TensorRT.
_OPTIONAL = ("libcupti", "libnccl", "libnvinfer")
_ELSEWHERE = (_DRIVER, *_OPTIONAL)
# Prints the folders of the libraries that pip installed.
_FOLDERS = (
    '$(python -c "import glob, sysconfig as s; '
    "print(*glob.glob(s.get_path('purelib') + '/nvidia/*/lib'), sep=':')\")"
)


def no_driver(machine: Machine) -> Iterator[Check]:
    """The driver answers questions, and its library for programs is not there."""
    found = machine.software.libraries if machine.software else ()
    lacking = (one for one in found if one.name.startswith(_DRIVER) and one.problem)
    for library in lacking if machine.gpus else ():
        yield Check(
            id="no-libcuda",
            status="fail",
            title=f"The driver's own library {library.name} is missing",
            evidence=f"The driver reports {machine.gpus[0].name}; {library.name} does "
            f"not load ({library.problem.rstrip('.')}).",
            why="TensorFlow trains on the processor alone.",
            remedy=asking.driver(machine),
            cost=1.0,
        )


def absent(machine: Machine) -> Iterator[Check]:
    """One library that cannot be loaded, and TensorFlow uses no GPU at all."""
    needed = _needed(machine)
    lacking = [library for library in needed if library.problem]
    if not needed:
        return
    if not lacking:
        evidence = f"All {len(needed)} libraries can be loaded."
        yield fine("libraries", "The CUDA libraries are there", evidence)
        return
    names = ", ".join(library.name for library in lacking)
    # The loader begins with the name, which makes one cause look like several.
    said = (one.problem.removeprefix(f"{one.name}: ") for one in lacking)
    words = "; ".join(dict.fromkeys(said))
    yield Check(
        id="missing-library",
        status="fail",
        title=f"TensorFlow cannot load {lacking[0].name}"
        + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""),
        evidence=f"Of {len(needed)} libraries {len(lacking)} cannot be loaded: {names} "
        f"({words.rstrip('.')}).",
        why="TensorFlow loads all of them or uses no GPU: it trains on the processor.",
        remedy=_found(machine, lacking),
        cost=1.0,
    )


def old_cudnn(machine: Machine) -> Iterator[Check]:
    """A cuDNN older than the one TensorFlow was built with is refused by it."""
    version, cuda = asking.tensorflow(machine), asking.built_for(machine)
    build = asking.build(version) if version else None
    name = f"nvidia-cudnn-cu{(cuda or '').split('.')[0]}"
    if not machine.gpus or not build or name not in machine.versions:
        return
    found, wanted = machine.versions[name], asking.numbers(build.cudnn)
    has = asking.numbers(found)
    if has[0] == wanted[0] and has >= wanted:
        return
    yield Check(
        id="wrong-cudnn",
        status="fail",
        title="This cuDNN does not fit this TensorFlow",
        evidence=f"{name} is {found}; TensorFlow {version} was built with "
        f"{build.cudnn} and takes that or a newer {wanted[0]}.x.",
        why="Convolutions fail, or TensorFlow uses no GPU.",
        remedy=asking.install(machine),
        cost=0.95,
    )


def shadowed(machine: Machine) -> Iterator[Check]:
    """LD_LIBRARY_PATH puts other libraries before those that pip installed."""
    foreign = [
        library.name
        for library in (*_loaded(machine), *_needed(machine))
        if library.origin == "search path"
    ]
    if foreign and asking.cuda_libraries(machine):
        names = ", ".join(dict.fromkeys(foreign))
        yield Check(
            id="shadowed-libraries",
            status="warn",
            title="Other CUDA libraries come before those of this environment",
            evidence=f"LD_LIBRARY_PATH leads to {names}, which pip installed too.",
            why="TensorFlow was tested with those that pip installed; others may be "
            "older, slower or refused.",
            remedy=asking.without(machine, "LD_LIBRARY_PATH"),
            cost=0.3,
        )


def twice(machine: Machine) -> Iterator[Check]:
    """One process that holds two copies of a library mixes them."""
    origins = dict[str, set[str]]()
    for library in _loaded(machine):
        copy = " ".join(filter(None, (library.version, f"({library.origin})")))
        origins.setdefault(library.name.split(".so")[0], set()).add(copy)
    double = {name: copies for name, copies in origins.items() if len(copies) > 1}
    if double:
        told = (f"{name}: {', '.join(sorted(double[name]))}" for name in sorted(double))
        yield Check(
            id="loaded-twice",
            status="warn",
            title="TensorFlow loaded two copies of a library",
            evidence=f"{'; '.join(told)}.",
            why="Which of them computes is chance, and each takes memory of the GPU.",
            remedy=asking.without(machine, "LD_LIBRARY_PATH"),
            cost=0.25,
        )


def _loaded(machine: Machine) -> tuple[Library, ...]:
    """What TensorFlow was seen to load, without what belongs to the driver."""
    loaded = machine.start.loaded if machine.start else ()
    return tuple(one for one in loaded if not one.name.startswith(_OF_DRIVER))


def _found(machine: Machine, lacking: list[Library]) -> str:
    """How the libraries are found: those that are installed need only be named."""
    if any(library.origin != "package" for library in lacking):
        return asking.install(machine)
    return asking.with_value(machine, "LD_LIBRARY_PATH", _FOLDERS)


def _needed(machine: Machine) -> tuple[Library, ...]:
    """What must be installed beside TensorFlow: nothing where there is no GPU."""
    if not machine.gpus or asking.built_for(machine) is None or not machine.software:
        return ()
    found = machine.software.libraries
    return tuple(one for one in found if not one.name.startswith(_ELSEWHERE))


LIBRARIES = (no_driver, absent, old_cudnn, shadowed, twice)


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
            remedy=asking.install(machine),
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
            remedy=asking.install_one(machine, packages),
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
            remedy=asking.install_one(machine, packages),
            cost=0.96 if machine.gpus else 0.2,
        )


def tested(machine: Machine) -> Iterator[Check]:
    """Whether somebody tested this TensorFlow with this Python."""
    version = asking.tensorflow(machine)
    if version is None:
        return
    build = asking.build(version)
    if build is None:
        newest = asking.newest()
        yield _untested(
            f"TensorFlow {version} is not in the table of tested builds, "
            f"which ends with {newest}."
        )
        return
    first, last = build.python
    # On the processor CUDA is not used, whichever the wheel was built for.
    made = asking.built_for(machine) if machine.gpus else None
    evidence = (
        f"TensorFlow {asking.minor(version)} was tested with Python {first} to "
        f"{last} (this is {machine.python})"
        + (f" and CUDA {build.cuda} (this build: {made})." if made else ".")
    )
    python = asking.numbers(machine.python)[:2]
    in_range = asking.numbers(first) <= python <= asking.numbers(last)
    as_made = made is None or asking.minor(made) == build.cuda
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
            remedy=asking.with_value(machine, "KERAS_BACKEND", "tensorflow"),
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


TENSORFLOW = (missing, windows, cpu_only, duplicated, tested, backend, elsewhere)
