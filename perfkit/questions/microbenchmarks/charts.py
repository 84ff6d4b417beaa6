"""The chart of how fast each part of the machine is."""

import functools
import itertools

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, INK, SMALL, Figure, Kind
from perfkit.findings.record import Finding
from perfkit.findings.standing import (
    Standing,
    guess,
    has_microbenchmarks,
    microbenchmarks,
    of_limit,
    rate,
    standings,
)
from perfkit.findings.text import one_line

# A microbenchmark is one line, so its row is lower than one that has a second.
_HEIGHT = 0.72
_LONGEST = 62


def each_part(finding: Finding) -> Figure:
    """Draw each microbenchmark's rate, as a share of its limit where there is one."""
    stood, entries = standings(finding), list[tuple[str, Standing | None]]()
    for group, members in itertools.groupby(stood, key=lambda standing: standing.group):
        entries += [(group, None)] if group else []
        entries += [(standing.variant, standing) for standing in members]
    title = f"{one_line(finding.experiment, 40)}: how fast each part is"
    benchmarks, caption = microbenchmarks(finding.notes), list[str]()
    if limited := any(s.timing and s.limit for s in stood):
        caption += ["bar: share of the limit in theory that is reached"]
        caption += ["upright line: that limit", "thin line: 95 % interval"]
    if any(s.timing and s.limit is None for s in stood):
        caption.append("without a bar: no limit is known, so the work is named")

    def draw(axes: Axes) -> None:
        # Limits rest on clocks that may be higher: what is beyond one is drawn at it.
        axes.set_xlim(0, 1)
        axes.xaxis.set_visible(limited)
        axes.spines["bottom"].set_visible(limited)
        if limited:
            curves.put(axes, [0.0, 0.25, 0.5, 0.75, 1.0], units.percent)
            axes.set_xlabel("share of what is possible in theory")
        for row, (name, standing) in enumerate(entries):
            if standing is None:
                axes.get_yticklabels()[row].set_fontweight("bold")
            else:
                benchmark = benchmarks.get(name)
                _draw_row(axes, row, standing, benchmark.what if benchmark else "")

    sources = (entry.limit_from for entry in benchmarks.values())
    sentences = [_sentence(standing) for standing in stood]
    sentences += [f"A limit: {text}" for text in dict.fromkeys(filter(None, sources))]
    return rows.picture(
        title,
        [(text, (_beside(standing), "")) for text, standing in entries],
        canvas.caption_lines([*caption, *guess(finding).caption]),
        draw,
        alt=f"{title}. {'. '.join(sentences)}.",
        height=_HEIGHT,
    )


def _draw_row(axes: Axes, row: int, standing: Standing, does: str) -> None:
    timing, limit = standing.timing, standing.limit
    if timing is None:
        rows.within(axes, row, one_line(standing.problem, _LONGEST))
    elif limit is None:
        wide = axes.get_position().width * canvas.WIDTH
        fitting = max(10, int(wide / canvas.text_width(["x"], SMALL)))
        words = one_line(does, fitting)
        canvas.note(axes, words, (0, row), (4, 0), in_row=True, fontsize=SMALL)
    else:
        ends = timing.rate, timing.low, timing.high
        share, low, high = (min(end / limit, 1.0) for end in ends)
        axes.barh(row, share, height=0.5, color=BLUE, alpha=0.75, lw=0)
        axes.hlines(row, low, high, colors=INK, lw=1.6)
        axes.vlines(1, row - 0.45, row + 0.45, colors=INK, lw=2)


def _beside(standing: Standing | None) -> str:
    timing = standing.timing if standing else None
    if standing is None or timing is None:
        return ""
    write = functools.partial(units.rate, unit=standing.unit)
    return units.spread(timing.rate, timing.low, timing.high, write)


def _sentence(standing: Standing) -> str:
    name = one_line(standing.variant, 60)
    if standing.timing is None:
        return f"{name} {standing.problem.rstrip('.')}"
    return ", ".join(filter(None, (f"{name} {rate(standing)}", of_limit(standing))))


KINDS: dict[str, Kind[Finding]] = {
    "microbenchmarks": Kind(
        each_part, "How fast each part is", has_microbenchmarks, leads=True
    ),
}
