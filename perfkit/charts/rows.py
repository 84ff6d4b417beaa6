"""Charts that give each variant a row: its name, a place to draw, its numbers.

How fast is each variant? Every rate, and every ratio, with its interval.
"""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.markers import CARETLEFTBASE, CARETRIGHTBASE

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, SMALL, TEXT, Figure
from perfkit.charts.layout import (
    Layout,
    Row,
    describe_others,
    even_ticks,
    layout,
    limits,
    log_ticks,
    row_in_words,
)
from perfkit.findings import load
from perfkit.findings.record import Finding
from perfkit.findings.standing import guess, standings
from perfkit.findings.text import one_line, plain

_LONGEST_NAME = 34
_GAP = 12
# The axes begin at least so far from the left: below them stand numbers and a word.
_LEAST_NAME = "the machine"


def picture(
    title: str,
    labels: Sequence[tuple[str, tuple[str, str]]],
    lines: list[str],
    draw: Callable[[Axes], None],
    *,
    alt: str = "",
    height: float = 1.0,
    bold: Iterable[str] = (),
) -> Figure:
    """A picture with a row per name, above the lines of its caption.

    A label is a name, and the words to the right of the row and below these, which
    stand out if they are ``bold``. A row is ``height`` times as high as usual. ``alt``
    is for who cannot see the picture; "" for each row's name and words.
    """
    if not labels:
        return canvas.message(title, "Nothing was measured that this chart shows.")
    inner = max(1.0, len(labels) * height) * canvas.ROW

    def put(drawing: Drawing) -> None:
        names = [name(variant) for variant, _ in labels]
        panel = axes(drawing, names, inner, _room([words for _, words in labels]))
        for row, (variant, words) in enumerate(labels):
            beside(panel, row, *words, bold=variant in bold)
        draw(panel)

    alt = alt or in_words(title, [row_in_words(row, *words) for row, words in labels])
    return canvas.paint(title, lines, canvas.height(inner, lines), alt, put)


def in_words(title: str, rows: Iterable[str]) -> str:
    """A picture for who cannot see it: its title, and a clause for each row."""
    return f"{title}. {'; '.join(rows)}."


def name(variant: str) -> str:
    """A variant's name as it fits beside its row."""
    return plain(variant, _LONGEST_NAME)


def margin(names: Sequence[str]) -> float:
    """Pixels before the axes."""
    return 12 + canvas.text_width([*names, _LEAST_NAME]) + _GAP


def axes(drawing: Drawing, names: Sequence[str], height: float, right: float) -> Axes:
    """Axes with a row per name, the first on top, and ``right`` pixels for numbers."""
    before = margin(names)
    wide = canvas.WIDTH - before - right
    panel = canvas.place(drawing, before, canvas.TOP, wide, height)
    panel.set_ylim(max(1, len(names)) - 0.5, -0.5)
    panel.set_yticks(range(len(names)), names)
    panel.tick_params(axis="y", pad=_GAP)
    return panel


def _room(labels: Sequence[tuple[str, str]]) -> float:
    """Pixels that the numbers beside the rows need, each with its second line."""
    words = canvas.text_width([words for words, _ in labels], TEXT)
    details = canvas.text_width([details for _, details in labels], SMALL)
    return max(words, details, 60) + 2 * _GAP


def beside(
    axes: Axes, row: float, words: str, detail: str = "", *, bold: bool = False
) -> None:
    """Numbers to the right of a row, with a second line in small."""
    weight, up = "bold" if bold else "normal", 7 if detail else 0
    for text, size, shift in ((words, TEXT, up), (detail, SMALL, up - 14)):
        style: Any = {"fontsize": size, "fontweight": weight}
        canvas.note(axes, text, (1, row), (_GAP, shift), in_row=True, **style)


def within(axes: Axes, row: float, words: str) -> None:
    """A sentence in place of what cannot be drawn, with a cross before it."""
    canvas.note(axes, "\u2715", (0, row), (4, 0), in_row=True, color=canvas.RED)
    room = canvas.WIDTH * (1 - axes.get_position().x0) - 30
    lines = textwrap.wrap(words, int(room / canvas.text_width(["n"], canvas.SMALL)))
    canvas.note(axes, "\n".join(lines), (0, row), (20, 0), in_row=True)


# How a dot looks: what stands out is told by its shape as well.
_DOTS = {"fastest": ("D", GREEN), "baseline": ("s", GREY), "": ("o", BLUE)}


def rates(finding: Finding) -> Figure:
    """Draw the rate of every variant on one axis, each with its 95 % interval."""
    title = f"{finding.experiment}: how fast each variant is"
    laid = layout(standings(finding), guess(finding), finding.noise_floor)
    rivals = describe_others([n for _, n in load.readings_of(finding, "cpu_other")])

    def draw(axes: Axes) -> None:
        if laid.ticks:
            axes.set(xscale="log" if laid.is_log else "linear", xlim=laid.ends)
            curves.put(axes, list(laid.ticks), units.significant)
            axes.set_xlabel(laid.label)
        else:
            axes.xaxis.set_visible(False)
            axes.spines["bottom"].set_visible(False)
        _draw_bands(axes, laid)
        for place, row in enumerate(laid.rows):
            _draw_row(axes, place, row)

    words = [" · ".join(filter(None, (row.words, row.ratio))) for row in laid.rows]
    # Why a row has no rate stands within its axes, and not beside them.
    spoken = [row.in_words for row in laid.rows]
    return picture(
        title,
        [(row.name, (w, row.remarks)) for row, w in zip(laid.rows, words, strict=True)],
        canvas.caption_lines([*_rates_caption(finding, laid), rivals]),
        draw,
        alt=in_words(f"{title} (axis: {laid.unit})", spoken),
        bold={row.name for row in laid.rows if row.mark == "fastest"},
    )


def _draw_bands(axes: Axes, laid: Layout) -> None:
    """The noise around a baseline, what is possible, and what the reader expects."""
    for band in laid.bands:
        top, bottom = band.rows[0] - 0.45, band.rows[1] + 0.45
        line, _ = band.ends
        if band.kind == "noise":
            axes.fill_betweenx([top, bottom], *band.ends, color=GREY, alpha=0.3, lw=0)
        elif band.kind == "limit":
            axes.vlines(line, top, bottom, colors=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
        else:
            axes.vlines(line, top, bottom, colors=BLUE, lw=2, ls=":")


def _draw_row(axes: Axes, place: int, row: Row) -> None:
    if row.rate is None or row.ends is None:
        within(axes, place, row.problem)
        return
    mark, colour = _DOTS.get(row.mark, ("", GREY))
    _draw_bar(axes, place, row.ends, colour)
    if mark:
        _draw_dot(axes, row.rate, place, mark, colour, filled=row.is_known)


def _draw_bar(axes: Axes, row: int, ends: tuple[float, float], colour: str) -> None:
    """A 95 % interval, with an arrow where it goes on beyond the axis."""
    low, high = axes.get_xlim()
    inside = max(ends[0], low), min(ends[1], high)
    axes.hlines(row, *inside, colors=colour, lw=7, alpha=0.45)
    if ends[0] < low:
        axes.plot(low, row, marker=CARETLEFTBASE, color=colour, ms=6, clip_on=False)
    if ends[1] > high:
        axes.plot(high, row, marker=CARETRIGHTBASE, color=colour, ms=6, clip_on=False)


def _draw_dot(
    axes: Axes, at: float, row: int, mark: str, colour: str, *, filled: bool
) -> None:
    look: Any = {"color": colour, "mfc": colour if filled else "none"}
    axes.plot(at, row, mark, ms=9, mew=1.6, clip_on=False, **look)


def _rates_caption(finding: Finding, laid: Layout) -> Iterator[str]:
    marks, bands = {row.mark for row in laid.rows}, {band.kind for band in laid.bands}
    known = [row.is_known for row in laid.rows if row.ends]
    floor = units.percent(abs((finding.noise_floor or 1.0) - 1))
    guessed = bool(finding.guess) and not guess(finding).variant
    meanings = {
        "◆ fastest": "fastest" in marks,
        "■ baseline": "baseline" in marks,
        "bar: 95 % interval": bool(known),
        "×: compared within rounds": "baseline" in marks and len(laid.rows) > 1,
        "dashed: a limit": "limit" in marks,
        "hollow: its rate is not known yet": not all(known),
        f"grey band: the noise, ± {floor}": "noise" in bands,
        "dotted: your guess": "guess" in bands,
        f"your guess: {guess(finding).words}": guessed and "guess" not in bands,
    }
    return (words for words, holds in meanings.items() if holds)


def ratios(finding: Finding) -> Figure:
    """Draw each variant's ratio to its baseline, 1 being neither faster nor slower."""
    compared = [s.comparison for s in standings(finding) if s.comparison]
    title = f"{finding.experiment}: what each change brings"
    baselines = {comparison.baseline for comparison in compared}
    several = len(baselines) != 1
    ends = [end for c in compared for end in (c.low, c.high)]
    low, high = limits([1.0, *(comparison.ratio for comparison in compared)], ends)
    against = "its baseline" if several else name(*baselines)

    def draw(axes: Axes) -> None:
        draw_ratio_axis(axes, low, high, f"rate, as a multiple of {against}")
        if finding.noise_floor:
            noise = sorted((1 / finding.noise_floor, finding.noise_floor))
            axes.axvspan(*noise, color=GREY, alpha=0.3, lw=0)
        for row, comparison in enumerate(compared):
            interval = comparison.low, comparison.high
            draw_ratio(axes, row, comparison.verdict, comparison.ratio, interval)

    labels = list[tuple[str, tuple[str, str]]]()
    for c in compared:
        words = f"{c.judgement}, against {c.baseline}" if several else c.judgement
        labels.append((c.variant, (c.interval, one_line(words, 38))))
    caption = ["bar: 95 % interval"]
    if finding.noise_floor:
        floor = units.percent(abs(finding.noise_floor - 1))
        words = f"grey band: the noise, ± {floor}; no smaller difference is claimed"
        caption.append(words)
    return picture(title, labels, canvas.caption_lines(caption), draw)


def draw_ratio_axis(axes: Axes, low: float, high: float, label: str) -> None:
    """Let ratios stand on a logarithmic axis; a dashed line marks 1."""
    axes.set_xscale("log")
    low, high = low / 1.04, high * 1.04
    axes.set_xlim(low, high)
    numbers = even_ticks(low, high)
    if high / low > 2:
        ticks = log_ticks if high / low > 8 else even_ticks
        # 1 is where nothing changes: it stands on the axis, with room around it.
        numbers = [1.0, *(tick for tick in ticks(low, high) if not 0.9 < tick < 1.1)]
    curves.put(axes, sorted(numbers), lambda tick: f"{units.significant(tick)}×")
    axes.set_xlabel(f"{label} (logarithmic)")
    axes.axvline(1, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.7)


def draw_ratio(
    axes: Axes, row: int, verdict: str, ratio: float, ends: tuple[float, float]
) -> None:
    """A ratio with its interval, marked by its verdict; what is far off at the edge."""
    mark, filled, colour = canvas.MARKS[verdict]
    _draw_bar(axes, row, ends, colour)
    low, high = axes.get_xlim()
    _draw_dot(axes, min(max(ratio, low), high), row, mark, colour, filled=filled)
