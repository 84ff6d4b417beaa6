"""Where does each traced step's time go? A row per step, its parts side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, rows, scales
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.svg import INK
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.findings.profile import Profile, ProfiledStep

_LOOKS = {
    "input": (RED, "////"),
    "host compute": (BLUE, ""),
    "device compute": (GREEN, "...."),
    "kernel launch": (GREY, "xxxx"),
}
_WORDS = {"input": "waiting for input"}
_MOST = 20
# No axis can be drawn for what is shorter than a picosecond.
_LEAST_S = 1e-12


def has_steps(profile: Profile) -> bool:
    """Whether xprof has taken any step apart."""
    return any(step.seconds > _LEAST_S for step in profile.steps[:_MOST])


def profiled_steps(profile: Profile) -> Figure:
    """Draw each step with the parts that xprof finds in it."""
    title = f"{plain(profile.training, 60)}: where the time of each step goes"
    if not has_steps(profile):
        return canvas.message(title, "The trace holds no whole step.")
    steps = profile.steps[:_MOST]
    parts = [name for name in _LOOKS if any(step.parts.get(name) for step in steps)]
    lines = canvas.caption_lines(["light: the rest of the step", _slower(profile)])
    inner, height = canvas.frame(len(steps), lines, axis=62)
    longest = max(step.seconds for step in steps)
    said = [units.seconds(step.seconds) for step in steps]

    def draw(drawing: Drawing) -> None:
        names = [rows.name(step.name) for step in steps]
        room = rows.room([(words, "") for words in said])
        axes = rows.axes(drawing, names, inner, right=room)
        for row, step in enumerate(steps):
            _draw(axes, row, step, parts)
            rows.beside(axes, row, said[row])
        axes.set_xlim(0, longest)
        scales.put(axes, scales.even_ticks(0, longest), units.seconds)
        axes.set_xlabel("time of the step, while it was traced")
        _name_parts(axes, parts)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = "; ".join(map(_in_words, steps))
    return canvas.drawn(height, f"{title}. {words}. {_slower(profile)}.", draw)


def _slower(profile: Profile) -> str:
    if not profile.shows_cost:
        return "the tracer's own cost does not show"
    return f"tracing makes a step {units.ratio(profile.cost)} as long"


def _draw(axes: Axes, row: int, step: ProfiledStep, parts: list[str]) -> None:
    axes.barh(row, step.seconds, 0.5, facecolor=INK, alpha=0.12)
    left = 0.0
    for part in parts:
        colour, hatch = _LOOKS[part]
        spent = max(0.0, min(step.parts.get(part, 0.0), step.seconds - left))
        axes.barh(
            row, spent, 0.5, left, facecolor=colour, hatch=hatch, edgecolor=INK, lw=0
        )
        left += spent


def _name_parts(axes: Axes, parts: list[str]) -> None:
    """A patch and a name for each part, under the axis."""
    left = 0.0
    for part in parts:
        colour, hatch = _LOOKS[part]
        words = _WORDS.get(part, part) + (" (hatched)" if hatch else "")
        canvas.note(axes, "■", (0, 0), (left, -48), color=colour)
        canvas.note(axes, words, (0, 0), (left + 15, -48))
        left += 40 + canvas.text_width([words], canvas.SMALL)


def _in_words(step: ProfiledStep) -> str:
    parts = ", ".join(
        f"{_WORDS.get(name, plain(name, 40))} {units.seconds(spent)}"
        for name, spent in step.parts.items()
        if spent > 0
    )
    return f"{plain(step.name, 40)} {units.seconds(step.seconds)}: {parts}"
