"""Pictures of a finding, each drawn from the finding alone.

They stand above the findings and import them. So a finding has no method that draws
it: ``chart(finding)`` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from perfkit.charts.batch_sizes import batch_sizes, has_sizes
from perfkit.charts.break_even import break_even, has_break_even
from perfkit.charts.channels import channels, has_channels
from perfkit.charts.crossover import crossover, has_crossover
from perfkit.charts.crossover_plane import crossover_plane, has_plane
from perfkit.charts.figure import Figure
from perfkit.charts.ladder import ladder
from perfkit.charts.learning import learning, trainings
from perfkit.charts.loss_scale import has_scale, loss_scale
from perfkit.charts.losses import learnt, losses
from perfkit.charts.memory import measured, memory
from perfkit.charts.plan import anatomy, has_anatomy, has_plan, plan
from perfkit.charts.profiled_ops import has_ops, profiled_ops
from perfkit.charts.profiled_steps import has_steps, profiled_steps
from perfkit.charts.rates import rates
from perfkit.charts.ratios import ratios
from perfkit.charts.roofline import has_roofline, roofline
from perfkit.charts.scaling import has_scaling, scaling
from perfkit.charts.signs import has_signs, signs
from perfkit.charts.split import has_split, split
from perfkit.charts.stamp import stamped
from perfkit.charts.step_costs import step_costs
from perfkit.charts.sums import has_sums, sums
from perfkit.charts.timeline import timeline
from perfkit.charts.waits import waits
from perfkit.charts.waterfall import waterfall
from perfkit.errors import BadParameterError
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.profile import Profile
from perfkit.findings.rungs import is_ladder

if TYPE_CHECKING:
    from collections.abc import Callable

    from perfkit.findings.record import Finding
    from perfkit.findings.store import Recorded

__all__ = [
    "Figure",
    "anatomy",
    "batch_sizes",
    "break_even",
    "channels",
    "chart",
    "crossover",
    "crossover_plane",
    "kinds",
    "ladder",
    "learning",
    "loss_scale",
    "losses",
    "memory",
    "plan",
    "profiled_ops",
    "profiled_steps",
    "rates",
    "ratios",
    "roofline",
    "scaling",
    "signs",
    "split",
    "step_costs",
    "sums",
    "timeline",
    "waits",
    "waterfall",
]


Drawn = TypeVar("Drawn")


@dataclass(frozen=True)
class Kind(Generic[Drawn]):
    """One kind of picture.

    Attributes:
        draw: Draws it.
        title: What it shows, for the line that it folds out from.
        fits: Whether a finding holds what it draws.
    """

    draw: Callable[[Drawn], Figure]
    title: str
    fits: Callable[[Drawn], bool]


# In the order in which a reader wants them.
_KINDS: dict[str, Kind[Finding]] = {
    "ladder": Kind(ladder, "How fast each part of the machine is", is_ladder),
    "batches": Kind(batch_sizes, "Which batch is large enough", has_sizes),
    "crossover": Kind(
        crossover, "From which size on the second device pays", has_crossover
    ),
    "scaling": Kind(scaling, "What several devices bring", has_scaling),
    "sums": Kind(sums, "What summing gradients takes", has_sums),
    "signs": Kind(signs, "What the counters and the steps show", has_signs),
    "rates": Kind(rates, "How fast each variant is", lambda f: not is_ladder(f)),
    "ratios": Kind(ratios, "What each change brings", lambda f: bool(f.comparisons)),
    "waits": Kind(
        waits,
        "Where the time of a step goes",
        lambda f: any(trial.parts for trial in f.trials),
    ),
    "timeline": Kind(
        timeline, "What happened when", lambda f: any(t.ticks for t in f.trials)
    ),
    "roofline": Kind(roofline, "How near to the machine's limits", has_roofline),
    "channels": Kind(channels, "What each channel count reaches", has_channels),
    "steps": Kind(step_costs, "What a step costs", has_sizes),
    "memory": Kind(memory, "The memory of a batch", lambda f: bool(measured(f))),
    "losses": Kind(losses, "Does each learn the same", lambda f: bool(learnt(f))),
    "loss scale": Kind(loss_scale, "How float16 scales its loss", has_scale),
    "learning": Kind(learning, "Speed is not learning", lambda f: bool(trainings(f))),
    "break even": Kind(
        break_even, "When a dear first call has paid back", has_break_even
    ),
    "plane": Kind(
        crossover_plane, "At which widths and batch sizes it pays", has_plane
    ),
    "plan": Kind(plan, "What TensorFlow runs for the fastest", has_plan),
}

# What only a diagnosis holds; its trials are drawn as a finding's are.
_OF_DIAGNOSES: dict[str, Kind[Diagnosis]] = {
    "waterfall": Kind(
        waterfall,
        "What each change takes off a step",
        lambda found: found.step is not None,
    ),
    "split": Kind(split, "Where the time of a step goes", has_split),
    "anatomy": Kind(anatomy, "What TensorFlow runs for its data", has_anatomy),
}

_OF_PROFILES: dict[str, Kind[Profile]] = {
    "steps": Kind(profiled_steps, "Where the time of each step goes", has_steps),
    "ops": Kind(profiled_ops, "Which operations take most", has_ops),
}


def chart(finding: Recorded | Profile, kind: str = "") -> Figure:
    """Draw a finding, a diagnosis or a profile.

    Args:
        finding: What to draw.
        kind: One of ``kinds(finding)``; "" for the first of them. ``"batches"``,
            ``"steps"``, ``"memory"`` and ``"learning"`` show what batch sizes do.
            ``"signs"`` is what the counters show beside a load. ``"ladder"`` is
            how fast each part of the machine is, ``"rates"`` how
            fast each variant is, ``"crossover"`` from which size on a second device
            pays and ``"plane"`` at which widths and batch sizes, ``"scaling"`` what
            several devices bring and ``"sums"`` what summing their gradients takes,
            ``"ratios"`` what each change brings, ``"timeline"`` what happened when,
            with the machine's load, ``"waits"`` where the time of a step goes,
            ``"roofline"`` how near each variant comes to the machine's
            limits, ``"channels"`` what each channel count reaches, ``"break even"``
            when a dear first call has paid back, ``"losses"`` whether each precision
            learns the same and ``"loss scale"`` how float16 scales its loss,
            ``"plan"`` what TensorFlow runs for the fastest pipeline. Of a diagnosis
            ``"waterfall"`` is what each change takes off a step, and ``"split"`` where
            the time of a step goes, and ``"anatomy"`` what TensorFlow runs for its
            data. Of a profile ``"steps"`` is where the time of each step goes, and
            ``"ops"`` which operations take most.

    Raises:
        BadParameterError: There is no such kind of chart.
    """
    if isinstance(finding, Profile):
        return _of_profile(finding, kind)
    kind = kind or next(iter(kinds(finding)))
    known = finding.finding if isinstance(finding, Diagnosis) else finding
    if isinstance(finding, Diagnosis) and kind in _OF_DIAGNOSES:
        figure = _OF_DIAGNOSES[kind].draw(finding)
    elif kind in _KINDS:
        figure = _KINDS[kind].draw(known)
    else:
        raise BadParameterError(f"{kind!r} is no chart; there are {', '.join(_KINDS)}.")
    return stamped(figure, known.stamp) if known.replayed else figure


def _of_profile(profile: Profile, kind: str) -> Figure:
    kind = kind or next(iter(_OF_PROFILES))
    if kind not in _OF_PROFILES:
        known = ", ".join(_OF_PROFILES)
        raise BadParameterError(
            f"{kind!r} is no chart of a profile; there are {known}."
        )
    return _OF_PROFILES[kind].draw(profile)


def kinds(finding: Recorded | Profile) -> dict[str, str]:
    """The charts that there is something to draw in, the first first: name to title."""
    if isinstance(finding, Profile):
        return _fitting(_OF_PROFILES, finding)
    if isinstance(finding, Diagnosis):
        return _fitting(_OF_DIAGNOSES, finding) | kinds(finding.finding)
    return _fitting(_KINDS, finding)


def _fitting(known: dict[str, Kind[Drawn]], found: Drawn) -> dict[str, str]:
    return {name: kind.title for name, kind in known.items() if kind.fits(found)}
