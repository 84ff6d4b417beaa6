"""Which charts there are for a finding, and one of them drawn from it alone.

Those that any finding has come first, then those of its question, which lie in its
room. They stand above the findings, so a finding has no method that draws it.
"""

from perfkit.charts.canvas import Figure, Kind, stamped
from perfkit.charts.curves import has_losses, learning_time
from perfkit.charts.parts import waits
from perfkit.charts.rows import rates, ratios
from perfkit.charts.timeline import timeline
from perfkit.errors import BadParameterError
from perfkit.findings.standing import has_microbenchmarks
from perfkit.findings.store import RECORDED, Recorded, finding_of
from perfkit.questions import charts_of

__all__ = ["COMMON", "Figure", "chart", "kinds"]


# The charts of any finding, in the order in which a report shows them.
COMMON: dict[str, Kind] = {
    "rates": Kind(
        rates, "How fast each variant is", lambda f: not has_microbenchmarks(f)
    ),
    "ratios": Kind(ratios, "What each change brings", lambda f: bool(f.comparisons)),
    "waits": Kind(
        waits,
        "Where the time of a step goes",
        lambda f: any("input" in trial.parts for trial in f.trials),
    ),
    "timeline": Kind(
        timeline, "What happened when", lambda f: any(t.ticks for t in f.trials)
    ),
    "learning_time": Kind(learning_time, "How soon it learns", has_losses),
}


def chart(finding: Recorded, kind: str = "") -> Figure:
    """Draw a finding, or of a diagnosis what it has run.

    Args:
        finding: What to draw.
        kind: One of ``kinds(finding)``, which says what each of them shows; "" for the
            first of them.

    Raises:
        BadParameterError: There is no such kind of chart, or none of such a document.
    """
    if not isinstance(finding, RECORDED):
        noun = getattr(finding, "kind", type(finding).__name__)
        raise BadParameterError(
            f"There is no chart of this {noun}: its report says all."
        )
    available = _kinds_of(finding)
    kind = kind or next(iter(kinds(finding)), next(iter(available)))
    if kind not in available:
        raise BadParameterError(
            f"{kind!r} is not a chart of this; choose from {', '.join(available)}."
        )
    figure = available[kind].draw(finding_of(finding))
    return stamped(figure, finding.stamp) if finding.replayed else figure


def kinds(finding: Recorded) -> dict[str, str]:
    """The charts that there is something to draw in, the first first: name to title."""
    measured = finding_of(finding)
    available = _kinds_of(finding)
    return {name: kind.title for name, kind in available.items() if kind.fits(measured)}


def _kinds_of(document: Recorded) -> dict[str, Kind]:
    """The kinds of chart that there are for findings of this kind, in their order."""
    specific = charts_of(finding_of(document).experiment)
    first = {name: kind for name, kind in specific.items() if kind.leads}
    return {**first, **COMMON, **specific}
