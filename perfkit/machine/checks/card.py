"""Which GPU may TensorFlow use, how fast is it set to be, and who else uses it?"""

from collections.abc import Iterator

from perfkit import units
from perfkit.machine import gpu as machine_gpu
from perfkit.machine.checks import base
from perfkit.machine.checks.base import Check, Words, fine, say
from perfkit.machine.gpu import Gpu, Holder
from perfkit.machine.record import Machine

_OFF = ("", "0", "false")
# Cards that TensorFlow had kernels for until 2.16.
_OLD = ("3.", "5.")


def hidden(machine: Machine) -> Iterator[Check]:
    """CUDA_VISIBLE_DEVICES can hide every GPU."""
    chosen = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None or not machine.gpus:
        return
    numbers = machine_gpu.chosen(machine.gpus, machine.environment)
    count = len(machine.gpus)
    # Those that are named otherwise are taken to be there.
    left = min(count, len(chosen.split(","))) if numbers is None else len(numbers)
    evidence = (
        f'CUDA_VISIBLE_DEVICES is "{chosen}": {left} of {count} GPUs can be seen.'
    )
    if left:
        yield fine("visible-gpus", "CUDA_VISIBLE_DEVICES leaves a GPU", evidence)
    else:
        yield say(machine, "hidden-gpu", evidence)


def kernels(machine: Machine) -> Iterator[Check]:
    """Machine code for this card, code that the driver must compile first, or none."""
    version = base.tensorflow(machine)
    held = machine.software.capabilities if machine.software else None
    if held is None or base.built_for(machine) is None:
        return
    cards = [
        (name, capability, base.kernels(held, capability))
        for _, name, gpu in base.seen(machine)
        if (capability := gpu.compute_capability)
    ]
    for name, capability, kind in cards:
        evidence = (
            f"{name} has compute capability {capability}; TensorFlow "
            f"{version} holds {', '.join(held)}."
        )
        if kind == "native":
            title = "TensorFlow holds kernels for this GPU"
            yield fine("kernels", title, evidence)
        elif kind == "none":
            # Beside a card with kernels TensorFlow leaves this one out.
            alone = all(other == "none" for _, _, other in cards)
            yield say(
                machine,
                "dropped-kernels" if capability.startswith(_OLD) else "no-kernels",
                evidence,
                status="fail" if alone else "warn",
                cost=1.0 if alone else 0.2,
                capability=capability,
                name=name,
            )
        elif refusal := _cannot_compile(machine):
            evidence, remedy = f"{evidence} {refusal[0]}", refusal[1]
            yield say(machine, "uncompiled-kernels", evidence, remedy=remedy)
        elif kind == "partly native":
            title = "Some kernels for this GPU are compiled when they are first used"
            yield fine("kernels", title, evidence)
        else:
            yield say(machine, "compiled-kernels", evidence)


def _cannot_compile(machine: Machine) -> tuple[str, str] | None:
    """Why the driver would compile nothing, and what to do; None if it can."""
    variable = "CUDA_DISABLE_PTX_JIT"
    disabled = machine.environment.get(variable, "")
    if disabled.lower() not in _OFF:
        remedy = Words(machine, blanks={"variable": variable})["unset"]
        return f"{variable} is {disabled}.", remedy
    made = base.built_for(machine)
    cuda = machine.driver.cuda if machine.driver else None
    if made is None or cuda is None or base.at_least(cuda, base.minor(made)):
        return None
    reason = f"The driver compiles code up to CUDA {cuda}, this is of CUDA {made}."
    return reason, Words(machine)["newer_driver"]


CARD = (hidden, kernels)


# What every healthy card meets under full load: it was designed to.
_BY_DESIGN = ("power limit reached", "board limit", "voltage limit")


def throttled(machine: Machine) -> Iterator[Check]:
    """Heat or a weak power supply slows a GPU down."""
    for place, name, gpu in base.seen(machine):
        reasons, when = gpu.clocks.busy_throttle, "under load"
        if reasons is None and _works(gpu):
            reasons, when = gpu.clocks.throttle, "now"
        if reasons is None:
            continue
        evidence = f"{name}, {when}: {'; '.join(reasons) or 'nothing'}."
        # A newer driver may give a reason that has no words here.
        unnamed = [reason for reason in reasons if reason.startswith("reason 0x")]
        bad = [reason for reason in reasons if reason not in (*_BY_DESIGN, *unnamed)]
        if bad:
            key = "weak-supply" if "brake" in bad[0] else "throttled"
            yield say(machine, key, evidence, reason=bad[0], place=place)
        elif not unnamed:
            title = f"Nothing but its design slows the GPU {when}"
            yield fine("throttled", title, evidence)


def narrow(machine: Machine) -> Iterator[Check]:
    """Fewer lanes, or an older generation, than card and slot can use together."""
    for _, name, gpu in base.seen(machine):
        link, best = gpu.link, (gpu.link.generation_max, gpu.link.width_max)
        now, when = (link.busy_generation, link.busy_width), "while it worked"
        if now == (None, None) and _works(gpu):
            now, when = (link.generation, link.width), "now"
        # An idle link runs slowly, and on fewer lanes, to save power.
        if not all(best) or now == (None, None) or gpu.divided:
            continue
        now = now[0] or best[0], now[1] or best[1]
        here, there = machine_gpu.rate(*now), machine_gpu.rate(*best)
        could = f"card and slot can do {_words(*best)}"
        if here and there and here < there:
            evidence = f"{name}: {_words(*now)} {when}; {could}."
            yield say(machine, "slow-link", evidence, cost=0.5 * (1 - here / there))
        else:
            title = "The link to the GPU is as fast as it can be"
            yield fine("link", title, f"{name}: {_words(*now)} {when}.")


def unwatched(machine: Machine) -> Iterator[Check]:
    """Only work shows what holds a GPU and its link back."""
    for _, name, gpu in base.seen(machine):
        seen = gpu.clocks.busy_throttle, gpu.link.busy_generation, gpu.link.busy_width
        if all(reading is None for reading in seen) and not _works(gpu):
            yield say(machine, "unseen-load", f"{name} had nothing to do.", name=name)


def _works(gpu: Gpu) -> bool:
    """Whether it works at the moment of asking, so that what it says then counts."""
    return gpu.busy is not None and gpu.busy >= machine_gpu.BUSY


def _words(generation: int | None, width: int | None) -> str:
    speed = machine_gpu.rate(generation, width)
    in_gigabytes = f" ({units.rate(speed / 1e9, 'GB')})" if speed else ""
    return f"PCIe {generation} ×{width}{in_gigabytes}"


# A desktop and its browser hold a tenth of a small card and rarely work on it.
_MUCH = 0.2
# Where the driver does not say who holds the memory, a desktop may hold more.
_MUCH_OF_UNKNOWN = 0.5
_ALL = 0.9


def others(machine: Machine) -> Iterator[Check]:
    """Another program computes on the GPU, or holds its memory."""
    for place, name, gpu in base.seen(machine):
        known = _are_known(gpu)
        taken, who = _taken(gpu)
        own = any(holder.own for holder in gpu.holders or ())
        worked_on = gpu.busy is not None and gpu.busy >= _MUCH and not own
        if taken is None and not worked_on:
            continue
        facts = []
        if taken is not None:
            facts.append(f"{units.percent(taken)} of its memory is taken{who}")
        if gpu.busy is not None:
            facts.append(f"it is busy {units.percent(gpu.busy)} of the time")
        evidence = f"{name}: {' and '.join(facts)}."
        limit = _MUCH if known else _MUCH_OF_UNKNOWN
        if (taken or 0) < limit and not worked_on:
            yield fine("shared-gpu", "No other program takes much of the GPU", evidence)
            continue
        full = known and (taken or 0) >= _ALL
        yield say(
            machine,
            "shared-gpu" if known else "used-gpu",
            evidence,
            status="fail" if full else "warn",
            # Where next to nothing is left, TensorFlow does not start on the GPU.
            cost=0.95 if full else min(0.6, max(taken or 0, gpu.busy or 0)),
            place=place,
        )


def _strangers(gpu: Gpu) -> list[Holder]:
    """The programs that are not known to be our own."""
    return [holder for holder in gpu.holders or () if not holder.own]


def _are_known(gpu: Gpu) -> bool:
    """Whether the driver tells what others hold."""
    return gpu.holders is not None and not any(
        holder.own is None or holder.memory is None for holder in _strangers(gpu)
    )


def _taken(gpu: Gpu) -> tuple[float | None, str]:
    """The share of memory that others hold, and by whom; None if not known.

    Where the driver does not tell them apart, the share that is in use.
    """
    if not gpu.memory:
        return None, ""
    if not _are_known(gpu):
        return gpu.memory_used and gpu.memory_used / gpu.memory, ""
    strangers = _strangers(gpu)
    names = ", ".join(dict.fromkeys(holder.program for holder in strangers))
    held = sum(holder.memory or 0 for holder in strangers)
    return held / gpu.memory, f" by {names}" if names else ""


USE = (others, throttled, narrow, unwatched)
