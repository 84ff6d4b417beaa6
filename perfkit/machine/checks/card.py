"""Which GPU may TensorFlow use, and does this build hold kernels for it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine import gpu as machine_gpu
from perfkit.machine.checks import asking
from perfkit.machine.checks.asking import Check, fine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.gpu import Gpu, Link
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
        remedy=asking.without(machine, "CUDA_VISIBLE_DEVICES"),
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
        remedy=asking.with_value(machine, _MINIMUM, str(min(left_out.values()))),
        cost=1.0,
    )


def _kernels(
    machine: Machine, held: tuple[str, ...], name: str, capability: str
) -> Check:
    kind = asking.kernels(held, capability)
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
    remedy = asking.with_value(machine, "CUDA_CACHE_MAXSIZE", _CACHE)
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
        remedy = asking.without(machine, "CUDA_DISABLE_PTX_JIT")
        return f"CUDA_DISABLE_PTX_JIT is {disabled}.", remedy
    made, driver = asking.built_for(machine), machine.driver
    if made is None or driver is None or driver.cuda is None:
        return None
    if asking.at_least(driver.cuda, asking.minor(made)):
        return None
    return (
        f"The driver compiles code up to CUDA {driver.cuda}, this is of CUDA {made}.",
        asking.newer_driver(machine),
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
    return asking.capabilities(version) if version else None


def _minimum(machine: Machine, largest: int) -> int:
    chosen = machine.environment.get(_MINIMUM, "")
    return int(chosen) if chosen.isdecimal() else min(_MULTIPROCESSORS, largest)


CARD = (hidden, kernels, small)


# What every healthy card meets under full load: it was designed to.
_BY_DESIGN = ("power limit reached", "board limit", "voltage limit")
# A few watts below the default come from rounding.
_CLEARLY_BELOW = 0.97


def throttled(machine: Machine) -> Iterator[Check]:
    """Heat or a weak power supply slows a GPU down."""
    for place, name, gpu in asking.seen(machine):
        reasons, when = gpu.clocks.busy_throttle, "under load"
        if reasons is None:
            reasons, when = gpu.clocks.throttle, "now"
        if reasons is None:
            continue
        bad = [r for r in reasons if r not in _BY_DESIGN and not _unknown(r)]
        evidence = f"{name}, {when}: {'; '.join(reasons) or 'nothing'}{_state(gpu)}."
        if not bad and any(map(_unknown, reasons)):
            title = "The driver slows the GPU for a reason that has no name here"
            yield Check(
                id="throttled", status="unknown", title=title, evidence=evidence
            )
            continue
        if not bad:
            title = f"Nothing but its design slows the GPU {when}"
            yield fine("throttled", title, evidence)
            continue
        yield Check(
            id="throttled",
            status="warn",
            title=f"The GPU is slowed down: {bad[0]}",
            evidence=evidence,
            why="Every kernel takes longer for as long as that lasts, and a long "
            "training gets slower as it goes.",
            remedy=_cool(bad, place),
            cost=0.6,
        )


def power(machine: Machine) -> Iterator[Check]:
    """A power limit below the card's own keeps its clocks low."""
    for place, name, gpu in asking.seen(machine):
        limit, default = gpu.power.limit, gpu.power.limit_default
        if limit is None or not default or gpu.state.instance:
            continue
        evidence = f"{name}: limit {limit:.0f} W, its own {default:.0f} W."
        if limit >= _CLEARLY_BELOW * default:
            yield fine("power-limit", "The GPU may draw all its power", evidence)
            continue
        yield Check(
            id="power-limit",
            status="warn",
            title="The GPU's power limit was lowered",
            evidence=evidence,
            why="Under load the clocks fall until the card keeps the limit.",
            remedy=asking.nvidia_smi(machine, f"-i {place} -pl {default:.0f}"),
            cost=0.7 * (1 - limit / default),
        )


def _unknown(reason: str) -> bool:
    """Whether a newer driver gave a reason that has no words here."""
    return reason.startswith("reason 0x")


def _state(gpu: Gpu) -> str:
    """The temperature and the clock, where they are known, for a sentence's end."""
    facts = []
    if gpu.power.temperature is not None:
        facts.append(f"{gpu.power.temperature:.0f} °C")
    if gpu.clocks.sm is not None and gpu.clocks.sm_max is not None:
        clocks = (
            units.significant(hz / 1e6, 4) for hz in (gpu.clocks.sm, gpu.clocks.sm_max)
        )
        facts.append(" of ".join(clocks) + " MHz")
    return f" ({', '.join(facts)})" if facts else ""


def _cool(reasons: list[str], place: str) -> str:
    look = f"watch with: nvidia-smi -i {place} -q -d PERFORMANCE,TEMPERATURE,POWER"
    if any("brake" in reason for reason in reasons):
        return f"Check the power cables and the power supply of the card; {look}"
    return f"Free its fans and vents from dust, give it cooler air; {look}"


CLOCKS = (throttled, power)


def narrow(machine: Machine) -> Iterator[Check]:
    """Fewer lanes, or an older generation, than card and slot can use together."""
    for _, name, gpu in asking.seen(machine):
        link, best = gpu.link, gpu.link.width_max
        width = link.busy_width or link.width
        if best is None or width is None or gpu.state.instance:
            continue
        lacks_lanes = width < best
        lacks_speed = (link.busy_generation or 0) < (link.generation_max or 0)
        if lacks_lanes or (link.busy_generation is not None and lacks_speed):
            yield _slow(name, link, width)
        elif lacks_speed and (link.generation or 0) < (link.generation_max or 0):
            yield _unseen(name, link, width)
        else:
            words = _words(link.generation_max, best)
            yield fine(
                "link",
                "The link to the GPU is as fast as it can be",
                f"{name}: {words}{_card(link)}.",
            )


def _slow(name: str, link: Link, width: int) -> Check:
    best = (link.generation_max, link.width_max)
    # Where nobody looked under load, the generation counts as the best.
    now = (link.busy_generation or link.generation_max, width)
    looked = "while data were copied" if link.busy_generation else "now"
    return Check(
        id="slow-link",
        status="warn",
        title="The link to the GPU is slower than card and slot can make it",
        evidence=f"{name}: {_words(*now)} {looked}; card and slot can do "
        f"{_words(*best)}.",
        why="Every batch that is copied to the GPU takes longer; a training waits for "
        "it where batches are large and steps short.",
        remedy="Switch off, seat the card anew, in the slot nearest to the processor "
        "and without a riser; in the BIOS set the slot's link speed to Auto and give "
        "the slot all its lanes",
        cost=0.5 * (1 - _share(now, best)),
    )


def _unseen(name: str, link: Link, width: int) -> Check:
    return Check(
        id="link",
        status="unknown",
        title=f"The speed of the link to {name} under load was not looked at",
        evidence=f"{name}: {_words(link.generation, width)} now; card and slot can do "
        f"{_words(link.generation_max, link.width_max)}.",
        why="An idle link slows down to save power; only a copy shows its speed.",
        remedy="perfkit doctor --probe",
    )


def _words(generation: int | None, width: int | None) -> str:
    known = "PCIe" if generation is None else f"PCIe {generation}"
    speed = machine_gpu.rate(generation, width)
    return f"{known} ×{width}" + (
        f" ({units.rate(speed / 1e9, 'GB')})" if speed else ""
    )


def _card(link: Link) -> str:
    """What the slot keeps from the card, for a sentence's end."""
    if (link.generation_card or 0) <= (link.generation_max or 0):
        return ""
    return f"; the card alone could do PCIe {link.generation_card}, the slot cannot"


def _share(now: tuple[int | None, int], best: tuple[int | None, int | None]) -> float:
    here, there = machine_gpu.rate(*now), machine_gpu.rate(*best)
    return here / there if here and there else now[1] / (best[1] or now[1])


LINK = (narrow,)
