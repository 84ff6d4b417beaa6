"""Can the CUDA libraries be loaded that TensorFlow asks for, and are they the right?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.machine.check import Check, fine
from perfkit.machine.checks import asking, compatibility, remedies

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
            remedy=remedies.driver(machine),
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
    build = compatibility.build(version) if version else None
    name = f"nvidia-cudnn-cu{(cuda or '').split('.')[0]}"
    if not machine.gpus or not build or name not in machine.versions:
        return
    found, wanted = machine.versions[name], compatibility.numbers(build.cudnn)
    has = compatibility.numbers(found)
    if has[0] == wanted[0] and has >= wanted:
        return
    yield Check(
        id="wrong-cudnn",
        status="fail",
        title="This cuDNN does not fit this TensorFlow",
        evidence=f"{name} is {found}; TensorFlow {version} was built with "
        f"{build.cudnn} and takes that or a newer {wanted[0]}.x.",
        why="Convolutions fail, or TensorFlow uses no GPU.",
        remedy=remedies.install(machine),
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
            remedy=remedies.without(machine, "LD_LIBRARY_PATH"),
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
            remedy=remedies.without(machine, "LD_LIBRARY_PATH"),
            cost=0.25,
        )


def _loaded(machine: Machine) -> tuple[Library, ...]:
    """What TensorFlow was seen to load, without what belongs to the driver."""
    loaded = machine.start.loaded if machine.start else ()
    return tuple(one for one in loaded if not one.name.startswith(_OF_DRIVER))


def _found(machine: Machine, lacking: list[Library]) -> str:
    """How the libraries are found: those that are installed need only be named."""
    if any(library.origin != "package" for library in lacking):
        return remedies.install(machine)
    return remedies.with_value(machine, "LD_LIBRARY_PATH", _FOLDERS)


def _needed(machine: Machine) -> tuple[Library, ...]:
    """What must be installed beside TensorFlow: nothing where there is no GPU."""
    if not machine.gpus or asking.built_for(machine) is None or not machine.software:
        return ()
    found = machine.software.libraries
    return tuple(one for one in found if not one.name.startswith(_ELSEWHERE))


RULES = (no_driver, absent, old_cudnn, shadowed, twice)
