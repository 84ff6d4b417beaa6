"""The charts that only findings of this question have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.charts.kind import Kind
from perfkit.experiments.microbenchmarks.ladder_chart import ladder
from perfkit.findings.rungs import is_ladder

if TYPE_CHECKING:
    from perfkit.findings.record import Finding

KINDS: dict[str, Kind[Finding]] = {
    "ladder": Kind(
        ladder, "How fast each part of the machine is", is_ladder, leads=True
    ),
}
