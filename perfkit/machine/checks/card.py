"""Which GPU may TensorFlow use, how fast is it set to be, and who else uses it?"""

from collections.abc import Iterator
from dataclasses import replace

from perfkit import units
from perfkit.machine import gpu as machine_gpu
from perfkit.machine.checks import base
from perfkit.machine.checks.base import Check, Words, fine, say
from perfkit.machine.gpu import Gpu, Holder
from perfkit.machine.record import Machine

_MINIMUM = "TF_MIN_GPU_MULTIPROCESSOR_COUNT"
# TensorFlow's own default, or what its largest GPU has where that is less.
_MULTIPROCESSORS = 8
# The first version whose code for later cards is reported to be accepted by the driver.
_COMPILES = "2.21"
_OFF = ("", "0", "false")
# What an old card would add to a newer one.
_LEFT_OUT = 0.2


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
    if held is None:
        held = base.capabilities(version) if version else None
    if held is None or base.built_for(machine) is None:
        return
    cards = [
        (name, capability, base.kernels(held, capability))
        for _, name, gpu in base.seen(machine)
        if (capability := gpu.compute_capability)
    ]
    used = (base.numbers(capability) for _, capability, kind in cards if kind != "none")
    newest = max(used, default=())
    # Of those that may be hidden the newer one may not be there for TensorFlow.
    sure = machine_gpu.visible(machine.gpus, machine.environment) is not None
    sure = sure or "CUDA_VISIBLE_DEVICES" not in machine.environment
    for name, capability, kind in cards:
        evidence = (
            f"{name} has compute capability {capability}; TensorFlow "
            f"{version} holds {', '.join(held)}."
        )
        check = _kernels(machine, kind, name, capability, evidence)
        if sure and kind == "none" and base.numbers(capability) < newest:
            said = f"{evidence} TensorFlow leaves it out and uses what is newer."
            check = replace(
                check, status="warn", evidence=said, remedy="", cost=_LEFT_OUT
            )
        yield check


def _kernels(
    machine: Machine, kind: base.Kernels, name: str, capability: str, evidence: str
) -> Check:
    if kind == "native":
        return fine("kernels", "TensorFlow holds kernels for this GPU", evidence)
    if kind == "none":
        older = capability.startswith(("3.", "5."))
        key = "dropped-kernels" if older else "no-kernels"
        return say(machine, key, evidence, capability=capability, name=name)
    if refusal := _cannot_compile(machine):
        reason, remedy = refusal
        said = f"{evidence} {reason}"
        return say(machine, "uncompiled-kernels", said, remedy=remedy)
    if kind == "partly native":
        title = "Some kernels for this GPU are compiled when they are first used"
        return fine("kernels", title, f"{evidence} Later starts find them compiled.")
    newer = f'python -m pip install "tensorflow[and-cuda]>={_COMPILES}"; '
    if base.at_least(base.tensorflow(machine), _COMPILES):
        newer = ""
    return say(machine, "compiled-kernels", evidence, newer=newer, compiles=_COMPILES)


def _cannot_compile(machine: Machine) -> tuple[str, str] | None:
    """Why the driver would compile nothing, and what to do; None if it can."""
    variable = "CUDA_DISABLE_PTX_JIT"
    disabled = machine.environment.get(variable, "")
    if disabled.lower() not in _OFF:
        remedy = Words(machine, given={"variable": variable})["unset"]
        return f"{variable} is {disabled}.", remedy
    made = base.built_for(machine)
    cuda = machine.driver.cuda if machine.driver else None
    if made is None or cuda is None or base.at_least(cuda, base.minor(made)):
        return None
    reason = f"The driver compiles code up to CUDA {cuda}, this is of CUDA {made}."
    return reason, Words(machine)["newer_driver"]


def small(machine: Machine) -> Iterator[Check]:
    """TensorFlow leaves out GPUs with few multiprocessors."""
    counts = {name: gpu.multiprocessors for _, name, gpu in base.seen(machine)}
    known = {name: count for name, count in counts.items() if count is not None}
    if not known or len(known) < len(counts):
        return
    chosen = machine.environment.get(_MINIMUM, "")
    usual = min(_MULTIPROCESSORS, max(known.values()))
    minimum = int(chosen) if chosen.isdecimal() else usual
    left_out = {name: count for name, count in known.items() if count < minimum}
    if not left_out:
        return
    evidence = ", ".join(f"{name} has {n}" for name, n in left_out.items())
    evidence = f"{evidence} multiprocessors; TensorFlow takes GPUs from {minimum} on."
    if len(left_out) < len(known):
        title = "TensorFlow leaves a small GPU out and uses the larger"
        yield fine("small-gpu", title, evidence)
    else:
        yield say(machine, "small-gpu", evidence, value=min(left_out.values()))


CARD = (hidden, kernels, small)


# What every healthy card meets under full load: it was designed to.
_BY_DESIGN = ("power limit reached", "board limit", "voltage limit")
# A few watts below the default come from rounding.
_CLEARLY_BELOW = 0.97
# The firmware of a laptop sets the limit: its GPU refuses another.
_IN_LAPTOPS = ("Laptop", "Max-Q", "Mobile")


def throttled(machine: Machine) -> Iterator[Check]:
    """Heat or a weak power supply slows a GPU down."""
    for place, name, gpu in base.seen(machine):
        reasons, when, state = gpu.clocks.busy_throttle, "under load", ""
        if reasons is None:
            reasons, when, state = gpu.clocks.throttle, "now", _state(gpu)
        if reasons is None:
            continue
        # A newer driver may give a reason that has no words here.
        unknown = [reason for reason in reasons if reason.startswith("reason 0x")]
        bad = [one for one in reasons if one not in (*_BY_DESIGN, *unknown)]
        evidence = f"{name}, {when}: {'; '.join(reasons) or 'nothing'}{state}."
        if gpu.clocks.busy_throttle is None and not _works(gpu):
            yield say(machine, "unseen-throttle", evidence, name=name)
        elif bad:
            brake = any("brake" in reason for reason in bad)
            key = "weak-supply" if brake else "throttled"
            yield say(machine, key, evidence, reason=bad[0], place=place)
        elif unknown:
            yield say(machine, "unnamed-throttle", evidence)
        else:
            title = f"Nothing but its design slows the GPU {when}"
            yield fine("throttled", title, evidence)


def power(machine: Machine) -> Iterator[Check]:
    """A power limit below the card's own keeps its clocks low."""
    for place, name, gpu in base.seen(machine):
        limit, default = gpu.power.limit, gpu.power.limit_default
        if limit is None or not default or gpu.state.instance:
            continue
        evidence = f"{name}: limit {limit:.0f} W, its own {default:.0f} W."
        if limit >= _CLEARLY_BELOW * default:
            yield fine("power-limit", "The GPU may draw all its power", evidence)
        else:
            options = f"-i {place} -pl {default:.0f}"
            cost = 0.7 * (1 - limit / default)
            in_laptop = any(word in gpu.name for word in _IN_LAPTOPS)
            key = "power-limit-of-laptop" if in_laptop else "power-limit"
            yield say(machine, key, evidence, cost=cost, options=options)


def _works(gpu: Gpu) -> bool:
    """Whether it works at the moment of asking, so that what it says then counts."""
    return gpu.busy is not None and gpu.busy >= machine_gpu.BUSY


def _state(gpu: Gpu) -> str:
    """The temperature and the clock as it was asked, for a sentence's end."""
    facts = []
    if gpu.power.temperature is not None:
        facts.append(f"{gpu.power.temperature:.0f} °C")
    if gpu.clocks.sm is not None and gpu.clocks.sm_max is not None:
        clocks = (gpu.clocks.sm / 1e6, gpu.clocks.sm_max / 1e6)
        facts.append(" of ".join(units.significant(one, 4) for one in clocks) + " MHz")
    return f" ({', '.join(facts)})" if facts else ""


CLOCKS = (throttled, power)


def narrow(machine: Machine) -> Iterator[Check]:
    """Fewer lanes, or an older generation, than card and slot can use together."""
    for _, name, gpu in base.seen(machine):
        link, best = gpu.link, (gpu.link.generation_max, gpu.link.width_max)
        generation, width = link.busy_generation, link.busy_width
        looked = "while data were copied"
        if generation is width is None and _works(gpu):
            generation, width, looked = link.generation, link.width, "now"
        lanes = width or link.width
        fastest, widest = link.generation_max or 0, link.width_max
        if widest is None or lanes is None or gpu.state.instance:
            continue
        could = f"card and slot can do {_words(*best)}."
        # An idle link runs slowly, and on fewer lanes, to save power.
        if (generation or fastest) < fastest or (width or widest) < widest:
            evidence = f"{name}: {_words(generation, lanes)} {looked}; {could}"
            cost = 0.5 * (1 - _share((generation, lanes), best))
            yield say(machine, "slow-link", evidence, cost=cost)
        elif (generation or link.generation or 0) < fastest or lanes < widest:
            evidence = f"{name}: {_words(link.generation, lanes)} now; {could}"
            yield say(machine, "unseen-link", evidence, name=name)
        else:
            kept = ""
            if (link.generation_card or 0) > fastest:
                kept = f"; the card alone could do PCIe {link.generation_card}, "
                kept += "the slot cannot"
            title = "The link to the GPU is as fast as it can be"
            yield fine("link", title, f"{name}: {_words(*best)}{kept}.")


def _words(generation: int | None, width: int | None) -> str:
    known = "PCIe" if generation is None else f"PCIe {generation}"
    speed = machine_gpu.rate(generation, width)
    in_gigabytes = f" ({units.rate(speed / 1e9, 'GB')})" if speed else ""
    return f"{known} ×{width}{in_gigabytes}"


def _share(now: tuple[int | None, int], best: tuple[int | None, int | None]) -> float:
    here, there = machine_gpu.rate(*now), machine_gpu.rate(*best)
    return here / there if here and there else now[1] / (best[1] or now[1])


LINK = (narrow,)


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
        if _is_exclusive(gpu) and _computing(gpu):
            # That keeps others out altogether, and is said for itself.
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


def instance(machine: Machine) -> Iterator[Check]:
    """The card is divided into instances: each is a part of its speed."""
    for place, name, gpu in base.seen(machine):
        options = f"-i {place} -mig 0"
        if gpu.state.instance:
            memory = f" of {units.size(gpu.memory)}" if gpu.memory else ""
            evidence = f"{name} is an instance{memory}."
            yield say(machine, "mig-instance", evidence, options=options)
        elif gpu.state.mig:
            yield say(machine, "mig", f"{name}: MIG is on.", options=options)


def mode(machine: Machine) -> Iterator[Check]:
    """A card can be set to take one program at a time, or none."""
    for place, name, gpu in base.seen(machine):
        options = f"-i {place} -c DEFAULT"
        evidence = f"{name}: its compute mode is {gpu.state.compute_mode}."
        if gpu.state.compute_mode == "prohibited":
            yield say(machine, "no-computing", evidence, options=options)
        elif _is_exclusive(gpu) and (strangers := _computing(gpu)):
            evidence += f" {strangers[0].program} has it now."
            yield say(
                machine,
                "exclusive-gpu",
                evidence,
                status="fail",
                cost=0.97,
                options=options,
            )
        elif _is_exclusive(gpu):
            yield say(machine, "exclusive-gpu", evidence, options=options)


def _is_exclusive(gpu: Gpu) -> bool:
    return (gpu.state.compute_mode or "").startswith("exclusive")


def _computing(gpu: Gpu) -> list[Holder]:
    """The programs of others that compute on it."""
    return [one for one in gpu.holders or () if one.computes and one.own is False]


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


SHARING = (others, instance, mode)
