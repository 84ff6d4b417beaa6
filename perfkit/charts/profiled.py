"""The charts of a profile."""

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.figure import Figure
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
    whole = {
        device: sum(op.self_s for op in profile.table if op.device == device)
        for device in _PROFILED_OPS_LOOKS
    }
    said = [_numbers(op, whole[op.device]) for op in ops]
    longest = max(op.self_s for op in ops)

    def draw(axes: Axes) -> None:
        for row, op in enumerate(ops):
            rows.bar(axes, row, op.self_s, _PROFILED_OPS_LOOKS[op.device])
        what = f"seconds in all {len(profile.traced_s)} traced steps"
        curves.along(axes, longest, units.seconds, what)

    words = "; ".join(
        f"{plain(op.name, 80)} {', '.join(told)}"
        for op, told in zip(ops, said, strict=True)
    )
    return rows.picture(
        title,
        [(short(op.name, _NAME), told) for op, told in zip(ops, said, strict=True)],
        canvas.caption_lines(_caption(profile, ops)),
        draw,
        alt=f"{title}. {words}.",
        axis=48,
    )


def _numbers(op: Op, whole: float) -> tuple[str, str]:
    share = units.percent(op.self_s / whole)
    return (
        f"{units.seconds(op.self_s)}, {share} of the {op.device}'s",
        f"{plain(op.type, 24)}, {op.count:,} times",
    )


def _caption(profile: Profile, ops: list[Op]) -> list[str]:
    said = ["plain: on the host"]
    if any(op.type == "Dataset" for op in ops):
        said.append("Dataset: a stage of the input, with its waits for others")
    if any(op.device == "device" for op in ops):
        said.append("hatched: on the device")
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
    looks = _PROFILED_STEPS_LOOKS
    parts = [part for part in looks if any(step.parts.get(part) for step in steps)]
    longest = max(step.seconds for step in steps)

    def draw(axes: Axes) -> None:
        for row, step in enumerate(steps):
            told = ((step.parts.get(part, 0.0), looks[part]) for part in parts)
            rows.stack(axes, row, step.seconds, told)
        what = "time of the step, while it was traced"
        curves.along(axes, longest, units.seconds, what)
        rows.name_parts(axes, [(_WORDS.get(part, part), looks[part]) for part in parts])

    words = "; ".join(map(_in_words, steps))
    return rows.picture(
        title,
        [(step.name, (units.seconds(step.seconds), "")) for step in steps],
        canvas.caption_lines(["light: the rest of the step", _slower(profile)]),
        draw,
        alt=f"{title}. {words}. {_slower(profile)}.",
        axis=62,
    )


def _slower(profile: Profile) -> str:
    if not profile.shows_cost:
        return "the tracer's own cost does not show"
    return f"tracing makes a step {units.ratio(profile.cost)} as long"


def _in_words(step: ProfiledStep) -> str:
    parts = ", ".join(
        f"{_WORDS.get(name, plain(name, 40))} {units.seconds(spent)}"
        for name, spent in step.parts.items()
        if spent > 0
    )
    return f"{plain(step.name, 40)} {units.seconds(step.seconds)}: {parts}"
