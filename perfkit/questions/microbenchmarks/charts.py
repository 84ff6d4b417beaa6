"""The chart of how fast each part of the machine is."""

import functools
import itertools
from collections.abc import Iterator

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
from perfkit.findings.text import plain

# A microbenchmark is one line, so its row is lower than one that has a second.
_HEIGHT = 0.72
_LONGEST = 62


def each_part(finding: Finding) -> Figure:
    """Draw each microbenchmark's rate, as a share of its limit where there is one."""
    stood = standings(finding)
    title = f"{plain(finding.experiment, 40)}: how fast each part is"
    entries = list(_rows(stood))

    def draw(axes: Axes) -> None:
        _set_scale(axes, stood)
        for row, (_, standing) in enumerate(entries):
            if standing is None:
                axes.get_yticklabels()[row].set_fontweight("bold")
            else:
                _draw_row(axes, row, standing, finding)

    return rows.picture(
        title,
        [(text, (_beside(standing), "")) for text, standing in entries],
        canvas.caption_lines([*_caption(stood), *guess(finding).caption]),
        draw,
        alt=f"{title}. {_in_words(finding, stood)}",
        height=_HEIGHT,
    )


def _rows(stood: tuple[Standing, ...]) -> Iterator[tuple[str, Standing | None]]:
    """The name of each group, then its microbenchmarks."""
    for group, members in itertools.groupby(stood, key=lambda s: s.group):
        if group:
            yield group, None
        yield from ((standing.variant, standing) for standing in members)


def _set_scale(axes: Axes, stood: tuple[Standing, ...]) -> None:
    # Limits rest on clocks that may be higher: what is beyond one is drawn at it.
    axes.set_xlim(0, 1)
    if not any(s.timing and s.limit for s in stood):
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        return
    curves.put(axes, [0.0, 0.25, 0.5, 0.75, 1.0], units.percent)
    axes.set_xlabel("share of what is possible in theory")


def _draw_row(axes: Axes, row: int, standing: Standing, finding: Finding) -> None:
    timing, limit = standing.timing, standing.limit
    if timing is None:
        rows.within(axes, row, plain(standing.problem, _LONGEST))
        return
    if limit is None:
        benchmark = microbenchmarks(finding.notes).get(standing.variant)
        words = plain(benchmark.what if benchmark else "", _fitting(axes))
        canvas.note(axes, words, (0, row), (4, 0), in_row=True, fontsize=SMALL)
        return
    share, low, high = (
        min(value / limit, 1.0) for value in (timing.rate, timing.low, timing.high)
    )
    axes.barh(row, share, height=0.5, color=BLUE, alpha=0.75, lw=0)
    axes.hlines(row, low, high, colors=INK, lw=1.6)
    axes.vlines(1, row - 0.45, row + 0.45, colors=INK, lw=2)


def _fitting(axes: Axes) -> int:
    """How many characters fit into a row."""
    share = axes.get_position().width
    return max(10, int(share * canvas.WIDTH / canvas.text_width(["x"], SMALL)))


def _beside(standing: Standing | None) -> str:
    timing = standing.timing if standing else None
    if standing is None or timing is None:
        return ""
    write = functools.partial(units.rate, unit=standing.unit)
    return units.spread(timing.rate, timing.low, timing.high, write)


def _caption(stood: tuple[Standing, ...]) -> Iterator[str]:
    if any(s.timing and s.limit for s in stood):
        yield "bar: share of the limit in theory that is reached"
        yield "upright line: that limit"
        yield "thin line: 95 % interval"
    if any(s.timing and s.limit is None for s in stood):
        yield "without a bar: no limit is known, and what is done is said"


def _in_words(finding: Finding, stood: tuple[Standing, ...]) -> str:
    sentences = [_sentence(standing) for standing in stood]
    limits = [entry.limit_from for entry in microbenchmarks(finding.notes).values()]
    sentences += [f"A limit: {words}" for words in dict.fromkeys(filter(None, limits))]
    return ". ".join(sentences) + "."


def _sentence(standing: Standing) -> str:
    name = plain(standing.variant, 60)
    if standing.timing is None:
        return f"{name} {standing.problem.rstrip('.')}"
    return ", ".join(filter(None, (f"{name} {rate(standing)}", of_limit(standing))))


KINDS: dict[str, Kind[Finding]] = {
    "microbenchmarks": Kind(
        each_part, "How fast each part is", has_microbenchmarks, leads=True
    ),
}
