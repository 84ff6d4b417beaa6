"""The pictures of an explanation, in the order in which a reader wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.comparing.from_a_to_b import from_a_to_b
from perfkit.comparing.rung_ratios import rung_ratios
from perfkit.comparing.usage import usage

if TYPE_CHECKING:
    from perfkit.charts.figure import Figure
    from perfkit.comparing.record import Explanation


def pictures(found: Explanation) -> dict[str, Figure]:
    """Each that there is something to draw in, by name."""
    told = {
        "waterfall": any(work.changes for work in found.works),
        "rungs": any(rung.speed for rung in found.rungs),
        "usage": bool(found.a.samples.get("t") or found.b.samples.get("t")),
    }
    draw = {"waterfall": from_a_to_b, "rungs": rung_ratios, "usage": usage}
    return {name: draw[name](found) for name, there in told.items() if there}
