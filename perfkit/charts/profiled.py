"""The charts of a profile."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas, curves, rows, scale
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.figure import INK, Figure
from perfkit.findings.profile import Op, Profile, ProfiledStep, short
from perfkit.findings.text import plain

_PROFILED_OPS_MOST = 12
_NAME = 30
# No axis can be drawn for what is shorter than a picosecond.
_LEAST_S = 1e-12
_PROFILED_OPS_LOOKS = {"host": (BLUE, ""), "device": (GREEN, "----")}


def has_ops(profile: Profile) -> bool:
    """Whether the trace names any operation."""
    return any(op.self_s > _LEAST_S for op in profile.table[:_PROFILED_OPS_MOST])


def profiled_ops(profile: Profile) -> Figure:
    """Draw the operations with the most time of their own."""
    title = f"{plain(profile.training, 60)}: operations by their own time"
    if not has_ops(profile):
        return canvas.message(title, "The trace names no operation.")
    ops = [op for op in profile.table[:_PROFILED_OPS_MOST] if op.self_s > _LEAST_S]
    whole = {name: _whole(profile, name) for name in _PROFILED_OPS_LOOKS}
    said = [_numbers(op, whole[op.device]) for op in ops]
    lines = canvas.caption_lines(list(_caption(profile, ops)))
    inner, height = canvas.frame(len(ops), lines, axis=48)
    longest = max(op.self_s for op in ops)

    def draw(drawing: Drawing) -> None:
        names = [short(op.name, _NAME) for op in ops]
        axes = rows.axes(drawing, names, inner, right=rows.room(said))
        for row, op in enumerate(ops):
            colour, hatch = _PROFILED_OPS_LOOKS[op.device]
            axes.barh(
                row, op.self_s, 0.5, facecolor=colour, hatch=hatch, edgecolor=INK, lw=0
            )
            rows.beside(axes, row, *said[row])
        axes.set_xlim(0, longest)
        curves.put(axes, scale.even_ticks(0, longest), units.seconds)
        axes.set_xlabel(f"seconds in all {len(profile.traced_s)} traced steps")
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = "; ".join(
        f"{plain(op.name, 80)} {', '.join(told)}"
        for op, told in zip(ops, said, strict=True)
    )
    return canvas.drawn(height, f"{title}. {words}.", draw)


def _numbers(op: Op, whole: float) -> tuple[str, str]:
    share = units.percent(op.self_s / whole)
    return (
        f"{units.seconds(op.self_s)}, {share} of the {op.device}'s",
        f"{plain(op.type, 24)}, {op.count:,} times",
    )


def _whole(profile: Profile, device: str) -> float:
    return sum(op.self_s for op in profile.table if op.device == device)


def _caption(profile: Profile, ops: list[Op]) -> list[str]:
    said = ["plain: on the host"]
    if any(op.type == "Dataset" for op in ops):
        said.append("Dataset: a stage of the input, with its waits for others")
    if any(op.device == "device" for op in ops):
        said.append("dotted: on the device")
    more = len(profile.table) + profile.more_ops - len(ops)
    return [*said, f"{more:,} more are not shown"] if more > 0 else said


_PROFILED_STEPS_LOOKS = {
    "input": (RED, "////"),
    "host compute": (BLUE, ""),
    "device compute": (GREEN, "----"),
    "kernel launch": (GREY, "xxxx"),
}
_WORDS = {"input": "waiting for input"}
_PROFILED_STEPS_MOST = 20


def has_steps(profile: Profile) -> bool:
    """Whether xprof has taken any step apart."""
    return any(step.seconds > _LEAST_S for step in profile.steps[:_PROFILED_STEPS_MOST])


def profiled_steps(profile: Profile) -> Figure:
    """Draw each step with the parts that xprof finds in it."""
    title = f"{plain(profile.training, 60)}: where the time of each step goes"
    if not has_steps(profile):
        return canvas.message(title, "The trace holds no whole step.")
    steps = profile.steps[:_PROFILED_STEPS_MOST]
    parts = [
        name
        for name in _PROFILED_STEPS_LOOKS
        if any(step.parts.get(name) for step in steps)
    ]
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
        curves.put(axes, scale.even_ticks(0, longest), units.seconds)
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
        colour, hatch = _PROFILED_STEPS_LOOKS[part]
        spent = max(0.0, min(step.parts.get(part, 0.0), step.seconds - left))
        axes.barh(
            row, spent, 0.5, left, facecolor=colour, hatch=hatch, edgecolor=INK, lw=0
        )
        left += spent


def _name_parts(axes: Axes, parts: list[str]) -> None:
    """A patch and a name for each part, under the axis."""
    left = 0.0
    for part in parts:
        colour, hatch = _PROFILED_STEPS_LOOKS[part]
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
