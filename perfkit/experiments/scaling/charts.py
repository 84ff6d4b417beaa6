"""The charts that only findings of this question have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.charts.kind import Kind
from perfkit.experiments.scaling.devices_chart import has_scaling, scaling
from perfkit.experiments.scaling.sums_chart import has_sums, sums

if TYPE_CHECKING:
    from perfkit.findings.record import Finding

KINDS: dict[str, Kind[Finding]] = {
    "scaling": Kind(scaling, "What several devices bring", has_scaling, leads=True),
    "sums": Kind(sums, "What summing gradients takes", has_sums, leads=True),
}
