"""The charts that only findings of this question have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.charts.kind import Kind
from perfkit.experiments.batch_size.learning_chart import learning, trainings
from perfkit.experiments.batch_size.memory_chart import measured, memory
from perfkit.experiments.batch_size.rates_chart import batch_sizes, has_sizes
from perfkit.experiments.batch_size.steps_chart import step_costs

if TYPE_CHECKING:
    from perfkit.findings.record import Finding

KINDS: dict[str, Kind[Finding]] = {
    "batches": Kind(batch_sizes, "Which batch is large enough", has_sizes, leads=True),
    "steps": Kind(step_costs, "What a step costs", has_sizes),
    "memory": Kind(memory, "The memory of a batch", lambda f: bool(measured(f))),
    "learning": Kind(learning, "Speed is not learning", lambda f: bool(trainings(f))),
}
