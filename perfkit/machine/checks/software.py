"""Is the software for a GPU here, and which of its settings cost speed?"""

import re
from collections.abc import Callable, Iterator

from perfkit.machine.checks import base
from perfkit.machine.checks.base import Check, fine, numbers, say, statements
from perfkit.machine.gpu import Problem
from perfkit.machine.record import Library, Machine, Processor, Start

# The statement for each thing that keeps the driver from answering.
_SILENCES: dict[Problem, str] = {
    "mismatch": "driver-mismatch",
    "not loaded": "driver-not-loaded",
    "no permission": "driver-refused",
    "no driver": "no-driver",
    "no reader": "no-reader",
    "no answer": "driver-silent",
    "": "reports-none",
}


def no_card(machine: Machine) -> Iterator[Check]:
    """No NVIDIA GPU, and none that is left unused: plainly said, and nothing wrong."""
    if machine.gpus or wanted(machine):
        return
    evidence = machine.no_gpu or "No GPU is reported."
    if base.platform(machine) == "wsl2" and machine.nvidia_cards is None:
        yield say(machine, "driver-in-windows", evidence)
        return
    title = base.without_gpu(machine)
    if machine.nvidia_cards == 0:
        evidence = "No NVIDIA card is on the bus."
        title += ", and nothing for its driver to load" if machine.driver else ""
    yield fine("no-gpu", title, evidence)


def silent(machine: Machine) -> Iterator[Check]:
    """A card is there, or was meant to be, and its driver reports none."""
    if machine.gpus or not wanted(machine) or base.platform(machine) == "wsl1":
        return
    known = machine.nvidia_cards
    cards = f" NVIDIA cards on the bus: {known}." if known else ""
    evidence = (machine.no_gpu or "No GPU is reported.") + cards
    yield say(machine, _SILENCES[_problem(machine)], evidence)


def wsl1(machine: Machine) -> Iterator[Check]:
    """The first WSL knows no GPU, and is slow at reading files."""
    if base.platform(machine) == "wsl1":
        evidence = f"The system is {machine.system}."
        if base.cuda_libraries(machine):
            yield say(machine, "wsl-1", evidence, status="fail", cost=0.95)
        else:
            yield say(machine, "wsl-1", evidence)


def too_old(machine: Machine) -> Iterator[Check]:
    """Programs made for a CUDA version need a driver that is new enough."""
    cuda = base.built_for(machine)
    own = machine.driver.version if machine.driver else None
    version = own or next((gpu.driver for gpu in machine.gpus if gpu.driver), None)
    system = "wsl2" if base.platform(machine) == "wsl2" else "linux"
    lowest = base.lowest_driver(cuda, system) if cuda else None
    if not machine.gpus or lowest is None or version is None:
        return
    evidence = f"The driver is {version}; CUDA {cuda} needs {lowest} or newer."
    if base.at_least(version, lowest):
        yield fine("driver", "The driver is new enough for TensorFlow", evidence)
    else:
        yield say(machine, "driver-too-old", evidence)


def lost(machine: Machine) -> Iterator[Check]:
    """A card that is listed and gives no access: often it fell off the bus."""
    for _, name, gpu in base.seen(machine):
        if "card" in gpu.refused:
            yield say(machine, "lost-card", f"{name}: {gpu.refused['card']}.")


def wanted(machine: Machine) -> bool:
    """Whether a GPU that is not reported is a fault."""
    # One that runs, or ran, has a card, which the bus of a container may hide. Images
    # of clouds bring one that is never loaded.
    if machine.driver is not None and machine.driver.problem != "not loaded":
        return True
    if machine.nvidia_cards is not None:
        return machine.nvidia_cards > 0
    return machine.driver is not None or bool(base.cuda_libraries(machine))


def _problem(machine: Machine) -> Problem:
    if machine.driver is not None:
        return machine.driver.problem
    return "no reader" if "nvidia-ml-py" in machine.no_gpu else "no driver"


DRIVER = (silent, lost, wsl1, too_old, no_card)


def missing(machine: Machine) -> Iterator[Check]:
    """Without TensorFlow there is nothing to train with."""
    if machine.software and machine.software.build == "none":
        evidence = f"Python {machine.python} finds no module tensorflow."
        yield say(machine, "no-tensorflow", evidence)


def cpu_only(machine: Machine) -> Iterator[Check]:
    """A build without CUDA leaves the GPU alone."""
    software = machine.software
    if software is None or not machine.gpus:
        return
    version = base.tensorflow(machine)
    if software.build == "cuda":
        evidence = f"TensorFlow {version} was built for CUDA {software.cuda}."
        yield fine("build", "TensorFlow is built for GPUs", evidence)
    elif software.build in ("cpu", "rocm") and len(software.packages) < 2:
        packages = software.packages or ("tensorflow-cpu",)
        yield say(
            machine,
            "cpu-only-on-arm" if base.is_aarch64(machine) else "cpu-only-build",
            f"{' and '.join(packages)} {version} has no CUDA, beside "
            f"{machine.gpus[0].name}.",
            what="AMD's GPUs, not for NVIDIA's"
            if software.build == "rocm"
            else "the processor only",
            packages=" ".join(packages),
        )


def duplicated(machine: Machine) -> Iterator[Check]:
    """Two distributions write the same files: what runs is a mixture."""
    packages = machine.software.packages if machine.software else ()
    if len(packages) > 1:
        named = (f"{one} {machine.versions.get(one, '')}".strip() for one in packages)
        yield say(
            machine,
            "two-tensorflows",
            f"{' and '.join(named)} are installed.",
            status="fail" if machine.gpus else "warn",
            cost=0.96 if machine.gpus else 0.2,
            packages=" ".join(packages),
        )


def tested(machine: Machine) -> Iterator[Check]:
    """Whether somebody tested this TensorFlow with this Python."""
    version = base.tensorflow(machine)
    if version is None:
        return
    build = base.build(version)
    if build is None:
        evidence = (
            f"TensorFlow {version} is not in the table of tested builds, "
            f"which ends with {base.newest()}."
        )
        yield say(machine, "tested-build", evidence)
        return
    first, last = build.python
    # On the processor CUDA is not used, whichever the wheel was built for.
    made = base.built_for(machine) if machine.gpus else None
    evidence = (
        f"TensorFlow {base.minor(version)} was tested with Python {first} to "
        f"{last} (this is {machine.python})"
        + (f" and CUDA {build.cuda} (this build: {made})." if made else ".")
    )
    python = numbers(machine.python)[:2]
    in_range = numbers(first) <= python <= numbers(last)
    if in_range and (made is None or base.minor(made) == build.cuda):
        yield fine("tested-build", "This combination of versions was tested", evidence)
    else:
        yield say(machine, "tested-build", evidence)


def backend(machine: Machine) -> Iterator[Check]:
    """Keras can train without TensorFlow."""
    chosen = machine.software.keras_backend if machine.software else None
    if chosen not in (None, "tensorflow"):
        evidence = f"Keras chooses the backend {chosen}."
        yield say(machine, "keras-backend", evidence, backend=chosen)


def elsewhere(machine: Machine) -> Iterator[Check]:
    """The Python that runs is not the one that was set up."""
    if machine.software and machine.software.elsewhere:
        yield say(machine, "other-environment", machine.software.elsewhere)


TENSORFLOW = (missing, cpu_only, duplicated, tested, backend, elsewhere)


_DRIVER = "libcuda.so"
# Images made for GPUs put the driver's libraries into LD_LIBRARY_PATH.
_OF_DRIVER = (_DRIVER, "libnvidia-")
# Without these the GPU is used all the same: profiles, several GPUs, TensorRT.
_ELSEWHERE = (_DRIVER, "libcupti", "libnccl", "libnvinfer")


def no_driver(machine: Machine) -> Iterator[Check]:
    """The driver answers questions, and its library for programs is not there."""
    found = machine.software.libraries if machine.software and machine.gpus else ()
    for library in found:
        if library.name.startswith(_DRIVER) and library.problem:
            evidence = (
                f"The driver reports {machine.gpus[0].name}; {library.name} does not "
                f"load ({library.problem.rstrip('.')})."
            )
            yield say(machine, "no-libcuda", evidence, library=library.name)


def absent(machine: Machine) -> Iterator[Check]:
    """One library that cannot be loaded, and TensorFlow uses no GPU at all."""
    needed = _needed(machine)
    lacking = [library for library in needed if library.problem]
    if needed and not lacking:
        evidence = f"All {len(needed)} libraries can be loaded."
        yield fine("libraries", "The CUDA libraries are there", evidence)
    if not lacking:
        return
    names = ", ".join(library.name for library in lacking)
    # The loader begins with the name, which makes one cause look like several.
    said = (one.problem.removeprefix(f"{one.name}: ") for one in lacking)
    words = "; ".join(dict.fromkeys(said)).rstrip(".")
    # Those that are installed need only be named.
    installed = all(library.origin == "package" for library in lacking)
    yield say(
        machine,
        "unnamed-libraries" if installed else "missing-library",
        f"Of {len(needed)} libraries {len(lacking)} cannot be loaded: {names} "
        f"({words}).",
        library=lacking[0].name,
        more=f" and {len(lacking) - 1} more" if len(lacking) > 1 else "",
    )


def old_cudnn(machine: Machine) -> Iterator[Check]:
    """A cuDNN older than the one TensorFlow was built with is refused by it."""
    version, cuda = base.tensorflow(machine), base.built_for(machine)
    build = base.build(version) if version else None
    name = f"nvidia-cudnn-cu{(cuda or '').split('.')[0]}"
    if not machine.gpus or not build or name not in machine.versions:
        return
    found, wanted = machine.versions[name], numbers(build.cudnn)
    has = numbers(found)
    if has[0] != wanted[0] or has < wanted:
        evidence = (
            f"{name} is {found}; TensorFlow {version} was built with {build.cudnn} and "
            f"takes that or a newer {wanted[0]}.x."
        )
        yield say(machine, "wrong-cudnn", evidence)


def shadowed(machine: Machine) -> Iterator[Check]:
    """LD_LIBRARY_PATH puts other libraries before those that pip installed."""
    found = (*_loaded(machine), *_needed(machine))
    foreign = dict.fromkeys(one.name for one in found if one.origin == "search path")
    if foreign and base.cuda_libraries(machine):
        names = ", ".join(foreign)
        evidence = f"LD_LIBRARY_PATH leads to {names}, which pip installed too."
        yield say(machine, "shadowed-libraries", evidence)


def twice(machine: Machine) -> Iterator[Check]:
    """One process that holds two copies of a library mixes them."""
    origins = dict[str, set[str]]()
    for library in _loaded(machine):
        copy = " ".join(filter(None, (library.version, f"({library.origin})")))
        origins.setdefault(library.name.split(".so")[0], set()).add(copy)
    double = {name: copies for name, copies in origins.items() if len(copies) > 1}
    if double:
        told = "; ".join(
            f"{name}: {', '.join(sorted(double[name]))}" for name in sorted(double)
        )
        key = "loaded-twice" if "(search path)" in told else "loaded-twice-elsewhere"
        yield say(machine, key, f"{told}.", library=min(double))


def _loaded(machine: Machine) -> tuple[Library, ...]:
    """What TensorFlow was seen to load, without what belongs to the driver."""
    loaded = (machine.start or Start()).loaded
    return tuple(one for one in loaded if not one.name.startswith(_OF_DRIVER))


def _needed(machine: Machine) -> tuple[Library, ...]:
    """What must be installed beside TensorFlow: nothing where there is no GPU."""
    if not machine.gpus or base.built_for(machine) is None or not machine.software:
        return ()
    found = machine.software.libraries
    return tuple(one for one in found if not one.name.startswith(_ELSEWHERE))


LIBRARIES = (no_driver, absent, old_cudnn, shadowed, twice)


_AMPERE = (8, 0)
# What a value is when it is set so; other words are looked for as they are.
_WHEN = {
    "on": r"(?i)^(1|true|yes|on)$",
    "off": r"(?i)^(0|false|no|off)$",
    "quiet": r"^0*([2-9]|[1-9]\d+)$",
}


def _tf32(machine: Machine) -> bool:
    known = (gpu.compute_capability for gpu in machine.gpus)
    return any(numbers(capability) >= _AMPERE for capability in known if capability)


def _onednn(machine: Machine) -> bool:
    return (machine.processor or Processor()).uses_onednn


_WHERE: dict[str, Callable[[Machine], bool]] = {
    "everywhere": lambda machine: True,
    "gpu": lambda machine: bool(machine.gpus),
    "tf32": _tf32,
    "processor": lambda machine: not machine.gpus and _onednn(machine),
    "beside a gpu": lambda machine: bool(machine.gpus) and _onednn(machine),
}


def costly(machine: Machine) -> Iterator[Check]:
    """Settings that are meant for debugging, or that turn something fast off."""
    for key in statements()["settings"]:
        setting = statements()[key]
        value = machine.environment.get(setting["variable"])
        when = _WHEN.get(setting["when"], setting["when"])
        if value is None or not re.search(when, value.strip()):
            continue
        if _WHERE[setting["where"]](machine):
            yield say(machine, key, f"{setting['variable']} is {value}.")


def threads(machine: Machine) -> Iterator[Check]:
    """Fewer threads than cores."""
    # Two threads on one core are a matter of taste.
    physical = (machine.processor or Processor()).physical_cores
    useful = int(min(machine.cores_granted, physical or machine.cores))
    for variable, said in statements()["threads"].items():
        value = machine.environment.get(variable, "").strip()
        enough = min(useful, said.get("enough", machine.cores))
        if not value.isdecimal() or not 0 < int(value) < enough:
            continue
        yield say(
            machine,
            "few-threads",
            f"{variable} is {value}; this process may use "
            f"{machine.cores_granted:g} cores.",
            cost=said["cost"] * (1 - int(value) / enough),
            variable=variable,
            why=said["why"],
        )


def late(machine: Machine) -> Iterator[Check]:
    """A variable that is set after TensorFlow was loaded does nothing."""
    names = machine.software.set_late if machine.software else ()
    if names:
        evidence = f"Set too late: {', '.join(names)}."
        yield say(machine, "set-too-late", evidence, name=names[0])


SETTINGS = (costly, threads, late)
