"""Where does the time of a step go? Its parts, one after another, to the whole."""

from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows, scale
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.figure import INK, Figure
from perfkit.findings.diagnosis import Diagnosis, Gain, Part
from perfkit.findings.record import Finding
from perfkit.findings.reports import grade_of, part_in_words
from perfkit.findings.standing import guess, standings
from perfkit.findings.text import plain

_COLOURS = ((RED, "////"), (BLUE, ""), (GREEN, "----"), (GREY, "xxxx"))
_WAITS_WORDS = {"input": "waiting for input"}


def waits(finding: Finding) -> Figure:
    """Draw for each variant the shares of its time that it reported, part by part."""
    title = f"{plain(finding.experiment, 40)}: where the time of a step goes"
    known = ((s.variant, _shares(finding, s.variant)) for s in standings(finding))
    shares = {one: found for one, found in known if found}
    if not shares:
        return canvas.message(title, "No variant reported where its time goes.")
    parts = list(dict.fromkeys(part for found in shares.values() for part in found))
    parts = parts[: len(_COLOURS)]
    looks = list(zip(parts, _COLOURS, strict=False))

    def draw(axes: Axes) -> None:
        for row, found in enumerate(shares.values()):
            told = ((found.get(part, 0.0), look) for part, look in looks)
            rows.stack(axes, row, 1, told)
        rows.name_parts(axes, [(_part(part), look) for part, look in looks])
        axes.set_xlim(0, 1)
        curves.put(axes, [0, 0.25, 0.5, 0.75, 1], units.percent)
        axes.set_xlabel("share of the time between two ticks")

    said = "; ".join(_waits_in_words(one, found) for one, found in shares.items())
    return rows.picture(
        title,
        [(one, _waits_beside(found, parts)) for one, found in shares.items()],
        canvas.caption_lines(["light: the rest of the step"]),
        draw,
        alt=f"{title}. {said}.",
        axis=62,
        right=205,
    )


def _shares(finding: Finding, variant: str) -> dict[str, float]:
    """The share of each part over all completed trials, their first ticks left out."""
    spent, parts = 0.0, dict[str, float]()
    for trial in finding.trials:
        if trial.variant != variant or trial.outcome != "completed":
            continue
        spent += sum(ended - began for began, ended, _ in trial.worked[1:])
        for part, seconds in trial.parts.items():
            parts[part] = parts.get(part, 0.0) + sum(seconds[1:])
    return {part: min(1.0, s / spent) for part, s in parts.items()} if spent > 0 else {}


def _waits_beside(found: dict[str, float], parts: list[str]) -> tuple[str, str]:
    words = [f"{_part(part)} {units.percent(found.get(part, 0.0))}" for part in parts]
    return words[0], plain(", ".join(words[1:]), 30)


def _part(part: str) -> str:
    return _WAITS_WORDS.get(part, plain(part, 24))


def _waits_in_words(variant: str, found: dict[str, float]) -> str:
    parts = ", ".join(
        f"{_part(p)} {units.percent(share)}" for p, share in found.items()
    )
    return f"{plain(variant, 60)}: {parts}"


_MOST = 20
_REST = "unexplained"


def has_split(found: Diagnosis) -> bool:
    """Whether the step was measured and taken apart, and some part is known."""
    known = (part.seconds or part.high for part in found.split.values())
    return found.step is not None and any(known)


def split(found: Diagnosis) -> Figure:
    """Draw the parts of a step as steps of a stair; hatched is what is but bounded."""
    title = f"{plain(found.training, 60)}: where the time of a step goes"
    if found.step is None or not has_split(found):
        return canvas.message(title, "The step was not taken apart.")
    parts = list(found.split.items())[:_MOST]
    parts.sort(key=lambda part: part[0] == _REST)
    whole = found.step.median_s
    said = [(name, (_split_in_words(of, whole), grade_of(of))) for name, of in parts]
    words = "; ".join(f"{plain(name, 60)} {', '.join(told)}" for name, told in said)
    return rows.picture(
        title,
        said,
        canvas.caption_lines(
            ["dashed: the step as given", "hatched: at most", "?: not known"]
        ),
        lambda axes: _draw_stair(axes, [part for _, part in parts], whole),
        alt=f"{title}. A step: {units.seconds(whole)}. {words}.",
        axis=48,
    )


def _split_in_words(part: Part, whole: float) -> str:
    return ", ".join(filter(None, part_in_words(part, whole)))


def _draw_stair(axes: Axes, parts: list[Part], whole: float) -> None:
    at, high = 0.0, whole
    for row, part in enumerate(parts):
        if _split_in_words(part, whole) == "?":
            continue
        sure = part.low or 0.0 if part.seconds is None else part.seconds
        axes.barh(row, sure, 0.5, at, facecolor=BLUE, lw=0, alpha=0.75)
        at += sure
        high = max(high, at)
        if part.seconds is None and part.high is not None:
            rows.bar(axes, row, part.high - sure, (GREY, "xxxx"), at, alpha=0.75)
            high = max(high, at + part.high - sure)
    axes.axvline(whole, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.7)
    curves.along(axes, 1.06 * high, units.seconds, "time of each step")


# Colour and hatch, so that no meaning hangs on the colour alone.
_LOOKS = {
    "defect": (RED, "////"),
    "opportunity": (BLUE, "----"),
    "together": (GREEN, "\\\\\\\\"),
    "ceiling": (GREY, "xxxx"),
}
_WATERFALL_WORDS = {
    "defect": "a defect",
    "opportunity": "an opportunity",
    "together": "together",
    "ceiling": "the ceiling",
}
_NOTHING = Gain(estimate=1.0, low=1.0, high=1.0)


@dataclass(frozen=True)
class _Bar:
    """One row: the step with something changed.

    Attributes:
        name: What was changed.
        kind: One of ``_LOOKS``; "" for the step as given.
        gain: What that brought.
    """

    name: str
    kind: str = ""
    gain: Gain = _NOTHING


def waterfall(found: Diagnosis) -> Figure:
    """Draw the step as given, what each claimed change takes off it, and the limits."""
    title = f"{plain(found.training, 60)}: what each change takes off a step"
    step = found.step
    if step is None:
        return canvas.message(title, "The training as given could not be measured.")
    bars = list(_bars(found))
    guessed, high = guess(found.finding), _longest(bars, step.median_s, step.high)
    left = step.median_s / guessed.ratio if guessed.ratio else None
    expected = scale.near(left, 0.0, high)
    dotted = ("dotted line: your guess",) if expected else guessed.caption

    def draw(axes: Axes) -> None:
        what = "time for the examples of a step as given"
        curves.along(axes, 1.06 * max(high, expected or 0.0), _seconds, what)
        for row, bar in enumerate(bars):
            _waterfall_draw_row(axes, row, bar, step.median_s)
        _whisker(axes, 0, step.low, step.high)
        if expected:
            axes.axvline(expected, color=BLUE, lw=2, ls=":")

    said = [_waterfall_in_words(bar, step.median_s) for bar in bars]
    words = "; ".join([*said, *guessed.caption])
    return rows.picture(
        title,
        [(bar.name, _beside(bar, step.median_s)) for bar in bars],
        canvas.caption_lines([*_caption(bars), *dotted]),
        draw,
        alt=f"{title}. {words}.",
        axis=48,
        bold={bar.name for bar in bars if bar.kind == "together"},
    )


def _bars(found: Diagnosis) -> Iterator[_Bar]:
    yield _Bar("as given")
    for cause in found.causes[:_MOST]:
        yield _Bar(cause.change or cause.cause, cause.kind, cause.speedup)
    if found.together:
        yield _Bar("the best together", "together", found.together.speedup)
    if found.ceiling and not any(one.cause == "input-bound" for one in found.causes):
        yield _Bar("without input", "ceiling", found.ceiling)


def _longest(bars: list[_Bar], step: float, step_high: float) -> float:
    # A change may turn out slower with its whole interval; most of that is shown.
    ends = [step / bar.gain.low for bar in bars]
    return min(max(step_high, step, *ends), 2 * step)


def _seconds(value: float) -> str:
    return units.seconds(value) if value else "0"


def _waterfall_draw_row(axes: Axes, row: int, bar: _Bar, step: float) -> None:
    left = step / bar.gain.estimate
    axes.barh(row, min(left, axes.get_xlim()[1]), 0.5, facecolor=INK, alpha=0.25)
    if bar.kind and left < step:
        rows.bar(axes, row, step - left, _LOOKS[bar.kind], left, alpha=0.75)
    if bar.kind:
        _whisker(axes, row, step / bar.gain.high, step / bar.gain.low)


def _whisker(axes: Axes, row: int, low: float, high: float) -> None:
    most = axes.get_xlim()[1]
    axes.hlines(row, low, min(high, most), colors=INK, lw=1.8)
    # One that goes on beyond the axis does not end there.
    ends = [end for end in (low, high) if end <= most]
    axes.plot(ends, [row] * len(ends), "|", color=INK, ms=9, mew=1.8)


def _beside(bar: _Bar, step: float) -> tuple[str, str]:
    left = units.seconds(step / bar.gain.estimate)
    if not bar.kind:
        return left, ""
    gain, what = bar.gain.interval, _WATERFALL_WORDS[bar.kind]
    return (left, f"{gain}, {what}") if bar.gain.is_known else (gain, what)


def _caption(bars: list[_Bar]) -> Iterator[str]:
    kinds = {bar.kind for bar in bars}
    yield "plain: the time that is left"
    if kinds & {"defect", "opportunity", "together"}:
        yield "hatched: what the change takes off"
        yield "each was measured against the step as given: gains do not add up"
    else:
        yield "no change is claimed to bring anything"
    yield "bar with ends: 95 % interval"


def _waterfall_in_words(bar: _Bar, step: float) -> str:
    left, more = _beside(bar, step)
    name = plain(bar.name, 80)
    return f"{name} {left}" + (f", {more}" if more else "")
