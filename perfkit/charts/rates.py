"""How fast is each variant? Every rate with its interval and the trials behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.markers import CARETLEFTBASE, CARETRIGHTBASE

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.figure import INK
from perfkit.findings.standing import standings
from perfkit.findings.text import plain
from perfkit.measure.steady import steady

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.findings.record import Finding
    from perfkit.findings.standing import Standing
    from perfkit.measure.statistics import Comparison, Timing


_RATIO = re.compile(
    r"(?:about|around|~)?\s*(\d{1,6}(?:[.,]\d{1,6})?)\s*"
    r"(?:x|\N{MULTIPLICATION SIGN}|times)(?!\w).*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Guess:
    """A prediction.

    Attributes:
        words: As the reader wrote it.
        variant: The variant it names; "" if none.
        ratio: The ratio to the baseline that it names; None if none.
    """

    words: str = ""
    variant: str = ""
    ratio: float | None = None


def guess(finding: Finding) -> Guess:
    """Read the guess of a finding: a variant's name, or a ratio such as ``"3x"``."""
    words = plain(finding.guess, 80)
    variants = [t.variant for t in finding.timings] + [
        t.variant for t in finding.trials
    ]
    names = {variant.casefold(): variant for variant in variants}
    if words.casefold() in names:
        return Guess(words, variant=names[words.casefold()])
    found = _RATIO.fullmatch(words)
    ratio = float(found[1].replace(",", ".")) if found else 0.0
    return Guess(words, ratio=ratio or None)


_PLACES = {"fastest": "the fastest", "tied": "among the fastest", "": ""}
_PROBLEM = 95


def rates(finding: Finding) -> Figure:
    """Draw the rate of every variant on one axis, each with its 95 % interval."""
    stood = standings(finding)
    title = f"{plain(finding.experiment, 40)}: how fast each variant is"
    if not stood:
        return canvas.message(title, "No variant has been tried.")
    lines = canvas.caption_lines(list(_rates_caption(finding, stood)))
    inner, height = canvas.frame(len(stood), lines)

    def draw(drawing: Drawing) -> None:
        names = [rows.name(standing.variant) for standing in stood]
        said = [_beside(standing, guess(finding)) for standing in stood]
        axes = rows.axes(drawing, names, inner, right=rows.room(said))
        _rates_set_scale(axes, finding, stood)
        _mark_baselines(axes, finding, stood)
        for row, standing in enumerate(stood):
            _rates_draw_row(axes, row, standing)
            words, more = said[row]
            rows.beside(axes, row, words, more, bold=standing.place == "fastest")
        _dot_trials(axes, finding, stood)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    return canvas.drawn(height, f"{title}. {_rates_in_words(finding, stood)}", draw)


def _rates_set_scale(axes: Axes, finding: Finding, stood: tuple[Standing, ...]) -> None:
    timings = [s.timing for s in stood if s.timing]
    if not timings:
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        return
    values = [t.rate for t in timings]
    ends = [end for t in timings for end in (t.low, t.high)]
    low, high = curves.limits(values, ends)
    expected = guess(finding).ratio
    for base in (s.timing.rate for s in stood if s.timing and s.is_baseline):
        # A guess far beyond what was measured would squeeze everything else.
        high = max(high, min(base * (expected or 0), 3 * high))
    label = "examples per second"
    if curves.is_wide(values):
        axes.set_xscale("log")
        axes.set_xlim(low / 1.15, high * 1.15)
        curves.put(axes, curves.log_ticks(low, high), units.significant)
        label += " (logarithmic)"
    else:
        axes.set_xlim(0, high * 1.06)
        curves.put(axes, curves.even_ticks(0, high * 1.06), units.significant)
    axes.set_xlabel(label)


def _mark_baselines(axes: Axes, finding: Finding, stood: tuple[Standing, ...]) -> None:
    """A line through each group at its baseline, in a band as wide as the noise."""
    for base in (s for s in stood if s.is_baseline and s.timing):
        group = [row for row, s in enumerate(stood) if s.group == base.group]
        top, bottom = min(group) - 0.45, max(group) + 0.45
        rate = base.timing.rate if base.timing else 0.0
        axes.vlines(
            rate, top, bottom, colors=INK, lw=1, linestyles=(0, (4, 3)), alpha=0.7
        )
        if finding.noise_floor:
            ends = (rate / finding.noise_floor, rate * finding.noise_floor)
            axes.fill_betweenx([top, bottom], *ends, color=GREY, alpha=0.3, lw=0)
        expected = guess(finding).ratio
        if expected:
            axes.vlines(rate * expected, top, bottom, colors=BLUE, lw=2, linestyles=":")


def _rates_draw_row(axes: Axes, row: int, standing: Standing) -> None:
    timing = standing.timing
    if timing is None:
        rows.within(axes, row, plain(standing.problem, _PROBLEM))
        return
    first = standing.place == "fastest"
    colour = GREEN if standing.place else BLUE
    low, high = axes.get_xlim()
    axes.hlines(
        row, max(timing.low, low), min(timing.high, high), colors=colour, lw=2.4
    )
    for end, beyond, mark in (
        (low, timing.low < low, "<"),
        (high, timing.high > high, ">"),
    ):
        if beyond:
            axes.plot(end, row, mark, color=colour, ms=6, clip_on=False)
    axes.plot(
        timing.rate,
        row,
        _mark(standing),
        ms=10 if first else 8,
        color=colour,
        mfc="none" if standing.place == "tied" else colour,
        mew=1.8,
        clip_on=False,
    )


def _beside(standing: Standing, expected: Guess) -> tuple[str, str]:
    """The rate of a row, and what else there is to say of it."""
    if standing.timing is None:
        return "", ""
    words = ["your guess" * (expected.variant == standing.variant)]
    words += [_PLACES[standing.place], "baseline" * standing.is_baseline]
    more = plain(", ".join(filter(None, [*words, standing.problem])), 44)
    return _rate(standing.timing), more


def _mark(standing: Standing) -> str:
    if standing.is_baseline:
        return "s"
    return "D" if standing.place else "o"


def _dot_trials(axes: Axes, finding: Finding, stood: tuple[Standing, ...]) -> None:
    """Every trial as a small dot under the interval that it belongs to."""
    row = {standing.variant: number for number, standing in enumerate(stood)}
    low, high = axes.get_xlim()
    rates = [
        (found.with_pauses(found.pauses_s).rate, row[trial.variant] + 0.3)
        for trial in finding.trials
        if trial.outcome == "completed" and trial.variant in row
        if (found := steady(trial)) is not None
    ]
    dots = [(rate, place) for rate, place in rates if low <= rate <= high]
    if dots:
        x, y = zip(*dots, strict=True)
        axes.scatter(x, y, s=13, color=INK, alpha=0.55, lw=0)


def _rate(timing: Timing) -> str:
    return units.spread(timing.rate, timing.low, timing.high, units.significant)


def _rates_caption(finding: Finding, stood: tuple[Standing, ...]) -> Iterator[str]:
    places = {standing.place for standing in stood}
    if any(s.is_baseline for s in stood):
        yield "■ baseline"
    if any(s.place == "fastest" and not s.is_baseline for s in stood):
        yield "◆ the fastest"
    if "tied" in places:
        yield "hollow: not shown to be slower than the fastest"
    if any(s.timing for s in stood):
        yield "bar: 95 % interval"
        paused = any(trial.recurring for trial in finding.trials)
        own = ", with the pauses that it met itself" if paused else ""
        yield f"small dot: one trial{own}"
    if finding.noise_floor and any(s.is_baseline for s in stood):
        floor = units.percent(abs(finding.noise_floor - 1))
        yield f"grey band: the noise, ± {floor}"
    if guess(finding).ratio:
        yield "dotted line: your guess"
    elif finding.guess and not guess(finding).variant:
        yield f"your guess: {guess(finding).words}"


def _rates_in_words(finding: Finding, stood: tuple[Standing, ...]) -> str:
    said = []
    for standing in stood:
        name, timing = plain(standing.variant, 60), standing.timing
        if timing is None:
            said.append(f"{name} {standing.problem}")
            continue
        rate = units.rate_between(timing.rate, timing.low, timing.high)
        words = [f"{name} {rate}", _PLACES[standing.place]]
        words += ["the baseline" * standing.is_baseline, standing.problem]
        said.append(", ".join(filter(None, words)))
    if finding.noise_floor:
        said.append(f"Noise floor {units.percent(abs(finding.noise_floor - 1))}")
    if finding.guess:
        said.append(f"Guessed before: {guess(finding).words}")
    return ". ".join(said) + "."


# Marker, filled, colour: a verdict is told apart by its shape as well.
_MARKS = {
    "faster": (">", True, GREEN),
    "slower": ("<", True, RED),
    "no difference shown": ("o", True, GREY),
    "too noisy to say": ("o", False, GREY),
}


def ratios(finding: Finding) -> Figure:
    """Draw each variant's ratio to its baseline, 1 being neither faster nor slower."""
    compared = [s.comparison for s in standings(finding) if s.comparison]
    title = f"{plain(finding.experiment, 40)}: what each change brings"
    if not compared:
        return canvas.message(title, "No two variants could be compared.")
    lines = canvas.caption_lines(list(_ratios_caption(finding)))
    inner, height = canvas.frame(len(compared), lines)

    def draw(drawing: Drawing) -> None:
        names = [rows.name(comparison.variant) for comparison in compared]
        several = len({comparison.baseline for comparison in compared}) > 1
        axes = rows.axes(drawing, names, inner, right=232 if several else 190)
        _ratios_set_scale(axes, finding, compared)
        if finding.noise_floor:
            noise = sorted((1 / finding.noise_floor, finding.noise_floor))
            axes.axvspan(*noise, color=GREY, alpha=0.3, lw=0)
        axes.axvline(1, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.7)
        if expected := guess(finding).ratio:
            axes.axvline(expected, color=BLUE, lw=2, ls=":")
        for row, comparison in enumerate(compared):
            _ratios_draw_row(axes, row, comparison)
            more = _says(comparison, finding, several=several)
            rows.beside(axes, row, comparison.interval, more)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    said = "; ".join(_ratios_in_words(comparison) for comparison in compared)
    return canvas.drawn(height, f"{title}. {said}.", draw)


def _ratios_set_scale(axes: Axes, finding: Finding, compared: list[Comparison]) -> None:
    values = [1.0, *(comparison.ratio for comparison in compared)]
    ends = [end for c in compared for end in (c.low, c.high)]
    low, high = curves.limits(values, ends)
    high = max(high, min(guess(finding).ratio or 1.0, 3 * high))
    axes.set_xscale("log")
    low, high = low / 1.04, high * 1.04
    axes.set_xlim(low, high)
    numbers = curves.even_ticks(low, high)
    if high / low > 2:
        ticks = curves.log_ticks if high / low > 8 else curves.even_ticks
        # 1 is where nothing changes: it stands on the axis, with room around it.
        numbers = [1.0, *(tick for tick in ticks(low, high) if not 0.9 < tick < 1.1)]
    curves.put(
        axes, sorted(numbers), lambda value: f"{value:.3g}\N{MULTIPLICATION SIGN}"
    )
    names = {plain(comparison.baseline, 40) for comparison in compared}
    against = names.pop() if len(names) == 1 else "its baseline"
    axes.set_xlabel(f"rate, as a multiple of {against} (logarithmic)")


def _ratios_draw_row(axes: Axes, row: int, comparison: Comparison) -> None:
    mark, filled, colour = _MARKS[comparison.verdict]
    low, high = axes.get_xlim()
    axes.hlines(
        row, max(comparison.low, low), min(comparison.high, high), colors=colour, lw=2.4
    )
    for end, outside, cut in (
        (low, comparison.low < low, CARETLEFTBASE),
        (high, comparison.high > high, CARETRIGHTBASE),
    ):
        if outside:
            axes.plot(end, row, marker=cut, color=colour, ms=6, clip_on=False)
    axes.plot(
        comparison.ratio,
        row,
        mark,
        ms=9,
        color=colour,
        mfc=colour if filled else "none",
        mew=1.8,
        clip_on=False,
    )


def _says(comparison: Comparison, finding: Finding, *, several: bool) -> str:
    words = [comparison.judgement]
    if several:
        words.append(f"against {comparison.baseline}")
    if guess(finding).variant == comparison.variant:
        words.append("your guess")
    return plain(", ".join(words), 38)


def _ratios_caption(finding: Finding) -> Iterator[str]:
    yield "bar: 95 % interval"
    if finding.noise_floor:
        floor = units.percent(abs(finding.noise_floor - 1))
        yield f"grey band: the noise, ± {floor}; no smaller difference is claimed"
    if guess(finding).ratio:
        yield "dotted line: your guess"


def _ratios_in_words(comparison: Comparison) -> str:
    return (
        f"{plain(comparison.variant, 60)} against {plain(comparison.baseline, 60)}: "
        f"{comparison.interval}, {comparison.judgement}"
    )
