"""The charts that only findings of this question have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.charts.kind import Kind
from perfkit.experiments.mixed_precision.losses_chart import learnt, losses
from perfkit.experiments.mixed_precision.scale_chart import has_scale, loss_scale

if TYPE_CHECKING:
    from perfkit.findings.record import Finding

KINDS: dict[str, Kind[Finding]] = {
    "losses": Kind(losses, "Does each learn the same", lambda f: bool(learnt(f))),
    "loss scale": Kind(loss_scale, "How float16 scales its loss", has_scale),
}
