"""Which charts there are for a finding, and one of them drawn from it alone.

Those that any finding has come first, then those of its question, which lie in its
room. They stand above the findings, so a finding has no method that draws it.
"""

from typing import Any

from perfkit.charts.canvas import Figure, Kind, stamped
from perfkit.charts.curves import has_losses, learning_time
from perfkit.charts.parts import (
    has_plan,
    has_steps,
    plan,
    profiled_steps,
    waits,
    waterfall,
)
from perfkit.charts.rates import rates, ratios
from perfkit.charts.timeline import timeline
from perfkit.errors import BadParameterError
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.profile import Profile
from perfkit.findings.record import Finding
from perfkit.findings.standing import has_microbenchmarks
from perfkit.findings.store import Recorded
from perfkit.questions import charts_of

__all__ = ["COMMON", "Figure", "chart", "kinds"]


# The charts of any finding, in the order in which a report shows them.
COMMON: dict[str, Kind[Finding]] = {
    "rates": Kind(
        rates, "How fast each variant is", lambda f: not has_microbenchmarks(f)
    ),
    "ratios": Kind(ratios, "What each change brings", lambda f: bool(f.comparisons)),
    "waits": Kind(
        waits,
        "Where the time of a step goes",
        lambda f: any(trial.parts for trial in f.trials),
    ),
    "timeline": Kind(
        timeline, "What happened when", lambda f: any(t.ticks for t in f.trials)
    ),
    "learning_time": Kind(learning_time, "How soon it learns", has_losses),
    "plan": Kind(plan, "What TensorFlow runs for the fastest", has_plan),
}

# What only a diagnosis holds; its trials are drawn as a finding's are.
_OF_DIAGNOSES: dict[str, Kind[Diagnosis]] = {
    "waterfall": Kind(
        waterfall,
        "What each change takes off a step",
        lambda diagnosis: diagnosis.step is not None,
    ),
}

_OF_PROFILES: dict[str, Kind[Profile]] = {
    "steps": Kind(profiled_steps, "Where the time of each step goes", has_steps),
}


def chart(finding: Recorded | Profile, kind: str = "") -> Figure:
    """Draw a finding, a diagnosis or a profile.

    Args:
        finding: What to draw.
        kind: One of ``kinds(finding)``, which says what each of them shows; "" for the
            first of them.

    Raises:
        BadParameterError: There is no such kind of chart.
    """
    available = _kinds_of(finding)
    kind = kind or next(iter(kinds(finding)), next(iter(available)))
    if kind not in available:
        raise BadParameterError(
            f"{kind!r} is not a chart of this; choose from {', '.join(available)}."
        )
    figure = available[kind].draw(finding)
    return stamped(figure, finding.stamp) if finding.replayed else figure


def kinds(finding: Recorded | Profile) -> dict[str, str]:
    """The charts that there is something to draw in, the first first: name to title."""
    available = _kinds_of(finding)
    return {name: kind.title for name, kind in available.items() if kind.fits(finding)}


def _kinds_of(document: Recorded | Profile) -> dict[str, Kind[Any]]:
    """The kinds of chart that there are for findings of this kind, in their order."""
    if isinstance(document, Profile):
        return dict(_OF_PROFILES)
    if isinstance(document, Diagnosis):
        return {**_OF_DIAGNOSES, **{n: _of_trials(k) for n, k in COMMON.items()}}
    specific = charts_of(document.experiment)
    first = {name: kind for name, kind in specific.items() if kind.leads}
    return {**first, **COMMON, **specific}


def _of_trials(kind: Kind[Finding]) -> Kind[Diagnosis]:
    """A chart of a finding, drawn of what a diagnosis has run."""
    return Kind(
        lambda diagnosis: kind.draw(diagnosis.finding),
        kind.title,
        lambda diagnosis: kind.fits(diagnosis.finding),
    )
