"""Is the way to the GPU as wide and as fast as card and slot can make it?

A link that idles falls back to a slow generation to save power, which is no fault: the
generation is judged only by what was seen while data were copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine import pcie
from perfkit.machine.check import Check, fine
from perfkit.machine.checks import asking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.gpu import Link
    from perfkit.machine.record import Machine


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
    speed = pcie.rate(generation, width)
    return f"{known} ×{width}" + (
        f" ({units.rate(speed / 1e9, 'GB')})" if speed else ""
    )


def _card(link: Link) -> str:
    """What the slot keeps from the card, for a sentence's end."""
    if (link.generation_card or 0) <= (link.generation_max or 0):
        return ""
    return f"; the card alone could do PCIe {link.generation_card}, the slot cannot"


def _share(now: tuple[int | None, int], best: tuple[int | None, int | None]) -> float:
    here, there = pcie.rate(*now), pcie.rate(*best)
    return here / there if here and there else now[1] / (best[1] or now[1])


RULES = (narrow,)
