"""The charts that only findings of this question have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.charts.kind import Kind
from perfkit.experiments.cpu_or_gpu.crossover_chart import crossover, has_crossover
from perfkit.experiments.cpu_or_gpu.plane_chart import crossover_plane, has_plane

if TYPE_CHECKING:
    from perfkit.findings.record import Finding

KINDS: dict[str, Kind[Finding]] = {
    "crossover": Kind(
        crossover,
        "From which size on the second device pays",
        has_crossover,
        leads=True,
    ),
    "plane": Kind(
        crossover_plane, "At which widths and batch sizes it pays", has_plane
    ),
}
