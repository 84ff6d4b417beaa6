"""What a check is, and what the rules ask of a machine again and again."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from perfkit.machine.record import Gpu, Machine, Platform, visible_gpus

Status = Literal["ok", "warn", "fail", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One statement about a machine.

    Attributes:
        id: Of the rule, such as ``"cpu-only-build"``.
        status: ``"fail"``: TensorFlow cannot use what is there, or computes wrongly;
            ``"warn"``: it costs speed; ``"unknown"``: this machine does not say.
        title: What is so, in a few words.
        evidence: The values it rests on, in a sentence.
        why: What that means for the speed of a training.
        remedy: The exact command or setting for this system; "" where nothing is
            wrong.
        cost: How much it may cost, for sorting: 1 is everything (no GPU at all), 0
            nothing. A guess at the worst case, not a measurement: it is not shown.
    """

    id: str
    status: Status
    title: str
    evidence: str
    why: str = ""
    remedy: str = ""
    cost: float = 0.0


def fine(id: str, title: str, evidence: str) -> Check:
    """Say that nothing is wrong, and on which values that rests."""
    return Check(id=id, status="ok", title=title, evidence=evidence)


def say(
    machine: Machine,
    key: str,
    evidence: str,
    *,
    status: Status | None = None,
    cost: float | None = None,
    **blanks: object,
) -> Check:
    """Say what is wrong, in the words that ``statements.toml`` has for it.

    The evidence holds the values it rests on. ``status`` and ``cost`` take the place of
    the entry's, and ``blanks`` fill what its words leave open.
    """
    entry = statements()[key]
    words = Words(machine, entry, blanks)
    return Check(
        id=key,
        status=status or entry.get("status", "warn"),
        title=words["title"],
        evidence=evidence,
        why=words["why"],
        remedy=words["remedy"],
        cost=entry.get("cost", 0.0) if cost is None else cost,
    )


def judge(
    machine: Machine, key: str, evidence: str, wrong: object, **more: Any
) -> Check:
    """Say what is wrong, as ``say`` does, or else that it is not."""
    if wrong:
        return say(machine, key, evidence, **more)
    id, title = statements()[key]["ok"]
    return fine(id, Words(machine, {"title": title}, more)["title"], evidence)


class Words:
    """Words by name, for one kind of system; each may hold others by their names.

    The entry's own words go before what all statements share, and the blanks before
    both. What fills a blank is no template: braces in it stay.
    """

    def __init__(
        self,
        machine: Machine,
        entry: Mapping[str, Any] | None = None,
        blanks: Mapping[str, object] | None = None,
    ) -> None:
        self._platform = platform(machine)
        self._blanks = {"install": install(machine)} | dict(blanks or {})
        shared: dict[str, Any] = {"why": "", "remedy": ""} | statements()["words"]
        self._words = shared | dict(entry or {})

    def __getitem__(self, name: str) -> str:
        if name in self._blanks:
            return str(self._blanks[name])
        words = self._words[name]
        if isinstance(words, dict):
            words = words.get(self._platform, words["else"])
        return str(words).format_map(self)


@cache
def statements() -> dict[str, Any]:
    """All that the rules say in words; where one is like another, with its fields."""
    text = files(__package__).joinpath("statements.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    for entry in table.values():
        if "like" in entry:
            entry |= {n: v for n, v in table[entry["like"]].items() if n not in entry}
    return table


Kernels = Literal["native", "partly native", "compiled", "none"]


def kernels(targets: tuple[str, ...], card: str) -> Kernels:
    """How a card of a compute capability gets its kernels from a build.

    Of its targets ``"sm_80"`` is machine code for 8.0 and later cards of that
    generation, ``"compute_90"`` code that the driver compiles for 9.0 and all later.
    """
    capability = numbers(card)
    of_kind: dict[str, set[tuple[int, int]]] = {"sm": set(), "compute": set()}
    for name in targets:
        kind, _, digits = name.partition("_")
        digits = "".join(re.findall(r"\d", digits))
        of_kind[kind].add((int(digits[:-1]), int(digits[-1])))
    if any(has[0] == capability[0] and has <= capability for has in of_kind["sm"]):
        return "native"
    if capability in of_kind["compute"]:
        # In the 2.21 wheel a fifth of the bundles hold machine code for 9.0 as well.
        return "partly native"
    return "compiled" if any(has < capability for has in of_kind["compute"]) else "none"


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing: ``"12.5.1"`` is (12, 5, 1)."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def platform(machine: Machine) -> Platform:
    """What kind of system this is."""
    return machine.software.platform if machine.software else "other"


def tensorflow(machine: Machine) -> str | None:
    """The version of TensorFlow that is installed."""
    return machine.versions.get(distribution(machine))


def distribution(machine: Machine) -> str:
    """The package that it came in, such as ``"tensorflow-cpu"``; "" if not known."""
    packages = machine.software.packages if machine.software else ()
    names = (*packages, "tensorflow", "tensorflow-cpu")
    return next((name for name in names if name in machine.versions), "")


def built_for(machine: Machine) -> str | None:
    """The version of CUDA that TensorFlow was built with; None without one."""
    software = machine.software
    return software.cuda if software and software.build == "cuda" else None


def without_gpu(machine: Machine) -> str:
    """What TensorFlow trains on where no NVIDIA GPU answers."""
    build = machine.software.build if machine.software else ""
    trains = "TensorFlow trains on the processor"
    if maker := {"rocm": "AMD", "metal": "Apple"}.get(build):
        trains = f"TensorFlow is built for {maker} GPUs, which perfkit does not check"
    # Some systems keep their bus to themselves: a card may be there all the same.
    if machine.nvidia_cards == 0:
        return f"{trains}: there is no NVIDIA GPU here"
    return f"{trains}: no NVIDIA GPU is visible here"


def cuda_libraries(machine: Machine) -> str | None:
    """The version of the CUDA libraries that pip installed: somebody wants a GPU."""
    return nvidia_package(machine, "cuda-runtime")


def nvidia_package(machine: Machine, library: str) -> str | None:
    """The version of one of NVIDIA's libraries that pip installed."""
    name = f"nvidia-{library}"
    return next((v for n, v in machine.versions.items() if n.startswith(name)), None)


def visible(machine: Machine) -> tuple[int, ...]:
    """The indices of the GPUs that programs see; all where it is not known which."""
    indices = visible_gpus(machine.gpus, machine.environment)
    return tuple(range(len(machine.gpus))) if indices is None else indices


def seen_gpus(machine: Machine) -> Iterator[tuple[str, str, Gpu]]:
    """Every GPU that programs see: its number for a command, its name, and itself."""
    several = len(machine.gpus) > 1
    for index in visible(machine):
        gpu = machine.gpus[index]
        yield str(index), f"GPU {index} ({gpu.name})" if several else gpu.name, gpu


def install(machine: Machine) -> str:
    """The command that installs TensorFlow as this machine can use it."""
    version = tensorflow(machine) or ""
    with_gpu = machine.gpus and platform(machine) in ("linux", "container", "wsl2")
    instructions = machine.processor.instructions if machine.processor else None
    # Of Arm, in 64 bits.
    if with_gpu and "asimd" in (instructions or ()):
        return str(statements()["words"]["nvidia_container"])
    # A version of another maker, or of one night, is not among pip's.
    pin = f"=={version}" if re.fullmatch(r"\d+\.\d+\.\d+", version) else ""
    name = "tensorflow[and-cuda]" if with_gpu else "tensorflow"
    return f'python -m pip install "{name}{pin}"'
