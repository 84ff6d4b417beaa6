"""Does the GPU run as fast as it can, or does something hold its clocks back?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine.check import Check, fine
from perfkit.machine.checks import asking, remedies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.gpu import Gpu
    from perfkit.machine.record import Machine

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
            remedy=remedies.nvidia_smi(machine, f"-i {place} -pl {default:.0f}"),
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


RULES = (throttled, power)
