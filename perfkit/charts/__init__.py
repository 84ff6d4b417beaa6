"""Pictures of a finding, each drawn from the finding alone.

They stand above the findings and import them. So a finding has no method that draws
it: ``chart(finding)`` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.charts.figure import Figure
from perfkit.charts.plan import plan
from perfkit.charts.rates import rates
from perfkit.charts.ratios import ratios
from perfkit.charts.timeline import timeline
from perfkit.charts.waits import waits
from perfkit.errors import BadParameterError

if TYPE_CHECKING:
    from perfkit.findings.record import Finding

__all__ = ["Figure", "chart", "plan", "rates", "ratios", "timeline", "waits"]

_KINDS = {
    "rates": rates,
    "ratios": ratios,
    "timeline": timeline,
    "waits": waits,
    "plan": plan,
}


def chart(finding: Finding, kind: str = "rates") -> Figure:
    """Draw a finding.

    Args:
        finding: What to draw.
        kind: ``"rates"``: how fast each variant is. ``"ratios"``: what each change
            brings. ``"timeline"``: what happened when, with the machine's load.
            ``"waits"``: where the time of a step goes. ``"plan"``: what TensorFlow runs
            for the fastest pipeline.

    Raises:
        BadParameterError: There is no such kind of chart.
    """
    if kind not in _KINDS:
        raise BadParameterError(f"{kind!r} is no chart; there are {', '.join(_KINDS)}.")
    return _KINDS[kind](finding)
