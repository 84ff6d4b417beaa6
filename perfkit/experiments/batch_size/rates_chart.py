"""Which batch size is large enough? The rate at each, and what the usual loop says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY
from perfkit.charts.svg import INK
from perfkit.experiments.batch_size import numbers, told
from perfkit.experiments.batch_size import usual_loop as usual
from perfkit.findings.standing import measurement
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.experiments.batch_size.numbers import Knee
    from perfkit.findings.record import Finding
    from perfkit.measure.statistics import Timing

_LOOPS = (
    (usual.UPWARDS, "x", "upwards"),
    (usual.DOWNWARDS, "+", "backwards"),
)


def batch_sizes(finding: Finding) -> Figure:
    """Draw the rate of every batch size, with the knee and the usual loop's answer."""
    title = f"{plain(finding.experiment, 40)}: which batch is large enough"
    known = timed(finding)
    knee = numbers.knee(measurement(finding)) if known else None
    if knee is None:
        return canvas.message(title, "No batch size has a rate.")
    loops = _loops(finding)
    lines = canvas.caption_lines(list(_caption(knee, loops)))

    def draw(drawing: Drawing) -> None:
        axes = curves.axes(drawing, "examples per second (logarithmic)")
        rates = [rate for of in loops.values() for rate in of.values()]
        ends = [end for t in known.values() for end in (t.low, t.high)]
        everything = [*rates, *(t.rate for t in known.values())]
        curves.sizes(axes, [*known, *(s for of in loops.values() for s in of)])
        curves.measure(axes, everything, ends, units.significant)
        _draw_loops(axes, loops)
        _draw_sizes(axes, known, knee)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = _in_words(known, knee, loops)
    return canvas.drawn(curves.height(lines), f"{title}. {words}", draw)


def timed(finding: Finding) -> dict[int, Timing]:
    """The batch sizes that have a rate above 0, in order."""
    found = numbers.sized(finding.timings)
    return {size: timing for size, timing in found.items() if timing.rate > 0}


def has_sizes(finding: Finding) -> bool:
    """Whether a finding is about batch sizes."""
    return bool(timed(finding))


def _loops(finding: Finding) -> dict[str, dict[int, float]]:
    found = {name: told.usual_loop(finding.trials, name) for name, *_ in _LOOPS}
    return {name: dict(sorted(of.items())) for name, of in found.items() if of}


def _draw_loops(axes: Axes, loops: dict[str, dict[int, float]]) -> None:
    for name, mark, how in _LOOPS:
        if rates := loops.get(name):
            x, y = list(rates), list(rates.values())
            axes.plot(x, y, mark, ls=":", lw=1.4, color=GREY, ms=8, mew=1.8)
            curves.label(axes, f"usual loop, {how}", x[-1], y[-1])


def _draw_sizes(axes: Axes, known: dict[int, Timing], knee: Knee) -> None:
    sizes = list(known)
    axes.plot(sizes, [t.rate for t in known.values()], color=BLUE, lw=1.2, alpha=0.5)
    for size, timing in known.items():
        chosen = size == knee.size and knee.firm
        colour, mark = (GREEN, "D") if chosen else (BLUE, "o")
        curves.between(axes, size, timing.low, timing.high, colour)
        axes.plot(size, timing.rate, mark, color=colour, ms=9 if chosen else 7)
    if knee.firm:
        axes.axvline(knee.size, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
        where = (knee.size, axes.get_ylim()[0] * 1.2)
        curves.label(axes, _place(knee), *where)


def _place(knee: Knee) -> str:
    rising = knee.size == knee.sizes[-1] != knee.sizes[0]
    return f"{'still rising' if rising else 'enough'}: {knee.size:,}"


def _caption(knee: Knee, loops: dict[str, dict[int, float]]) -> Iterator[str]:
    yield "bar: 95 % interval"
    if knee.firm:
        yield "◆ the smallest size that is not shown to be slower than the fastest"
    else:
        yield "too noisy to say which size is large enough"
    if loops:
        yield "dotted: the loop in circulation, one network through all sizes"


def _in_words(
    known: dict[int, Timing], knee: Knee, loops: dict[str, dict[int, float]]
) -> str:
    said = [
        f"{size:,} examples a batch: {units.rate_between(t.rate, t.low, t.high)}"
        for size, t in known.items()
    ]
    if knee.firm:
        words = _place(knee)
        said.append(f"{words[:1].upper()}{words[1:]}")
    else:
        said.append("Too noisy to say which size is large enough")
    for name, rates in loops.items():
        listed = ", ".join(f"{s:,} {units.significant(r)}" for s, r in rates.items())
        said.append(f"{name[:1].upper()}{name[1:]} says: {listed}")
    return ". ".join(said) + "."
