"""What slows the GPU, the cores, the memory and the disk of this machine?"""

from collections.abc import Iterator

from perfkit import units
from perfkit.machine import record
from perfkit.machine.checks import base
from perfkit.machine.checks.base import Check, fine, judge, say
from perfkit.machine.record import BUSY, Gpu, Machine, chosen_gpus, link_rate


def hidden(machine: Machine) -> Iterator[Check]:
    """CUDA_VISIBLE_DEVICES can hide every GPU."""
    setting = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if machine.gpus and chosen_gpus(machine.gpus, machine.environment) == ():
        yield say(machine, "hidden-gpu", f'CUDA_VISIBLE_DEVICES is "{setting}".')


def kernels(machine: Machine) -> Iterator[Check]:
    """Machine code for this card, code that the driver must compile first, or none."""
    targets = machine.software.capabilities if machine.software else None
    if targets is None or base.built_for(machine) is None:
        return
    cards = [
        (name, capability, base.kernels(targets, capability))
        for _, name, gpu in base.seen_gpus(machine)
        if (capability := gpu.compute_capability)
    ]
    for name, capability, kind in cards:
        evidence = (
            f"{name} has compute capability {capability}; TensorFlow "
            f"{base.tensorflow(machine)} holds {', '.join(targets)}."
        )
        if kind == "native":
            title = "TensorFlow holds kernels for this GPU"
            yield fine("kernels", title, evidence)
        elif kind == "none":
            # Beside a card with kernels TensorFlow leaves this one out.
            alone = all(other_kind == "none" for _, _, other_kind in cards)
            yield say(
                machine,
                "no-kernels",
                evidence,
                status="fail" if alone else "warn",
                cost=1.0 if alone else 0.2,
                capability=capability,
                name=name,
            )
        elif kind == "partly native":
            title = "Some kernels for this GPU are compiled when they are first used"
            yield fine("kernels", title, evidence)
        else:
            yield say(machine, "compiled-kernels", evidence)


# What every healthy card meets under full load: it was designed to.
_BY_DESIGN = ("power limit reached", "board limit", "voltage limit")


def throttled(machine: Machine) -> Iterator[Check]:
    """Heat or a weak power supply slows a GPU down."""
    for place, name, gpu in base.seen_gpus(machine):
        reasons, when = gpu.clocks.busy_throttle, "under load"
        if reasons is None and _works(gpu):
            reasons, when = gpu.clocks.throttle, "now"
        if reasons is None:
            continue
        evidence = f"{name}, {when}: {'; '.join(reasons) or 'nothing'}."
        bad = [reason for reason in reasons if reason not in _BY_DESIGN]
        blanks = {"reason": ", ".join(bad[:1]), "place": place, "when": when}
        yield judge(machine, "throttled", evidence, bad, **blanks)


def narrow(machine: Machine) -> Iterator[Check]:
    """Fewer lanes, or an older generation, than card and slot can use together."""
    for _, name, gpu in base.seen_gpus(machine):
        link, best = gpu.link, (gpu.link.generation_max, gpu.link.width_max)
        current, when = (link.busy_generation, link.busy_width), "while it worked"
        if current == (None, None) and _works(gpu):
            current, when = (link.generation, link.width), "now"
        # An idle link runs slowly, and on fewer lanes, to save power.
        if not all(best) or current == (None, None) or gpu.divided:
            continue
        current = current[0] or best[0], current[1] or best[1]
        rate, best_rate = link_rate(*current) or 0.0, link_rate(*best) or 0.0
        lost = 1 - rate / best_rate if rate and best_rate else 0.0
        could = f"card and slot allow {_link_words(*best)}"
        evidence = f"{name}: {_link_words(*current)} {when}; {could}."
        yield judge(machine, "slow-link", evidence, lost > 0, cost=0.5 * lost)


def _works(gpu: Gpu) -> bool:
    """Whether it works at the moment of asking, so that what it says then counts."""
    return gpu.busy is not None and gpu.busy >= BUSY


def _link_words(generation: int | None, width: int | None) -> str:
    speed = link_rate(generation, width)
    in_gigabytes = f" ({units.rate(speed / 1e9, 'GB')})" if speed else ""
    return f"PCIe {generation} ×{width}{in_gigabytes}"


# A desktop and its browser hold a tenth of a small card and rarely work on it.
_MUCH_MEMORY = 0.2
# Where the driver does not say who holds the memory, a desktop may hold more.
_MUCH_UNKNOWN_MEMORY = 0.5
_ALL = 0.9


def other_programs(machine: Machine) -> Iterator[Check]:
    """Another program holds much of the GPU's memory."""
    for place, name, gpu in base.seen_gpus(machine):
        holders, used_bytes = gpu.holders or (), gpu.memory_used
        strangers = [holder for holder in holders if not holder.own]
        sizes = [holder.memory for holder in holders]
        # Programs that a container hides are in no list.
        unseen = 0 if None in sizes else (used_bytes or 0) - sum(filter(None, sizes))
        # Whether the driver tells what others hold; else what is in use is theirs.
        are_known = (
            gpu.holders is not None
            and unseen < _MUCH_UNKNOWN_MEMORY * (gpu.memory or 0)
            and not any(one.own is None or one.memory is None for one in strangers)
        )
        if are_known:
            used_bytes = sum(holder.memory or 0 for holder in strangers)
        if not gpu.memory or used_bytes is None:
            continue
        share = used_bytes / gpu.memory
        names = ", ".join(dict.fromkeys(holder.program for holder in strangers))
        by = f" by {names}" if names and are_known else ""
        full = are_known and share >= _ALL
        yield judge(
            machine,
            "shared-gpu" if are_known else "used-gpu",
            f"{name}: {units.percent(share)} of its memory is in use{by}.",
            share >= (_MUCH_MEMORY if are_known else _MUCH_UNKNOWN_MEMORY),
            status="fail" if full else "warn",
            # Where next to nothing is left, TensorFlow does not start on the GPU.
            cost=0.95 if full else min(0.6, share),
            place=place,
        )


GPU_SPEED = (other_programs, throttled, narrow)


# A quota this near to all cores costs less than can be measured.
_NEARLY_ALL = 0.95
# Other programs that leave nine cores of ten disturb little.
_MUCH_LOAD = 0.1


def granted(machine: Machine) -> Iterator[Check]:
    """A container, a scheduler or an affinity grants fewer cores than there are."""
    share = machine.cores_granted / machine.cores
    words = f"{units.significant(machine.cores_granted)} of {machine.cores} cores"
    yield judge(
        machine,
        "few-cores",
        f"This process may use {words} ({machine.cpu}).",
        share < _NEARLY_ALL,
        cost=0.6 * (1 - share),
        cores=words,
        all=machine.cores,
        last=machine.cores - 1,
    )


def busy(machine: Machine) -> Iterator[Check]:
    """Other programs keep cores busy that a training would use."""
    load = machine.load or record.Load()
    if load.others is None:
        return
    free = machine.cores - load.others
    lost = max(0.0, machine.cores_granted - free) / machine.cores_granted
    top = ", ".join(
        f"{program.program} {units.significant(program.cores, 2)}"
        for program in load.top[:3]
    )
    evidence = (
        f"Other programs kept {units.significant(load.others, 2)} of {machine.cores} "
        f"cores busy{f': {top}' if top else ''}."
    )
    cost = 0.6 * min(1.0, lost)
    yield judge(machine, "busy-cores", evidence, lost >= _MUCH_LOAD, cost=cost)


# There "powersave" follows the load; with every other driver it is the lowest speed.
_FOLLOWS_LOAD = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")


def saving(machine: Machine) -> Iterator[Check]:
    """A battery, or a setting, keeps the cores below their speed."""
    processor = machine.processor or record.Processor()
    governor, driver = processor.governor, processor.frequency_driver
    if machine.load and machine.load.on_battery:
        yield say(machine, "battery", "The charger is not connected.")
    elif processor.preference == "power":
        evidence = "Its energy performance preference is power."
        yield say(machine, "saving-power", evidence)
    elif governor == "powersave" and driver and driver not in _FOLLOWS_LOAD:
        evidence = f"The governor is {governor}, the driver is {driver}."
        yield say(machine, "saving-power", evidence)


# Importing TensorFlow took 0.6 GB; a model, its input and a notebook come on top.
_LITTLE = 4e9
_LITTLE_FREE = 1.5e9


def memory(machine: Machine) -> Iterator[Check]:
    """Little memory, or little of it left."""
    free = machine.load.memory_free if machine.load else None
    evidence = f"This process may use {units.size(machine.memory)} of RAM"
    if machine.memory_present and machine.memory_present > machine.memory:
        evidence += f" of {units.size(machine.memory_present)}"
    evidence += f"; {units.size(free)} is free." if free is not None else "."
    if machine.memory < _LITTLE:
        yield say(machine, "little-memory", evidence)
    else:
        is_short = free is not None and free < _LITTLE_FREE
        yield judge(machine, "little-memory-left", evidence, is_short)


def windows_drive(machine: Machine) -> Iterator[Check]:
    """A Windows drive seen from WSL is read through a server in between."""
    if machine.disk and machine.disk.windows:
        evidence = f"The folder is on {machine.disk.filesystem or 'a Windows drive'}."
        yield say(machine, "windows-drive", evidence)


PROCESSOR = (granted, busy, saving, memory, windows_drive)
