"""The charts that only findings of this question have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.charts.kind import Kind
from perfkit.experiments.execution_mode.break_even_chart import (
    break_even,
    has_break_even,
)

if TYPE_CHECKING:
    from perfkit.findings.record import Finding

KINDS: dict[str, Kind[Finding]] = {
    "break even": Kind(
        break_even, "When a dear first call has paid back", has_break_even
    ),
}
