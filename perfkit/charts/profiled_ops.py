"""Which operations take most? A bar for each operation's own time in a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, rows, scales
from perfkit.charts.canvas import BLUE, GREEN
from perfkit.charts.svg import INK
from perfkit.findings.profile_card import short
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.findings.profile import Op, Profile

_MOST = 12
_NAME = 30
# No axis can be drawn for what is shorter than a picosecond.
_LEAST_S = 1e-12
_LOOKS = {"host": (BLUE, ""), "device": (GREEN, "....")}


def has_ops(profile: Profile) -> bool:
    """Whether the trace names any operation."""
    return any(op.self_s > _LEAST_S for op in profile.table[:_MOST])


def profiled_ops(profile: Profile) -> Figure:
    """Draw the operations with the most time of their own."""
    title = f"{plain(profile.training, 60)}: operations by their own time"
    if not has_ops(profile):
        return canvas.message(title, "The trace names no operation.")
    ops = [op for op in profile.table[:_MOST] if op.self_s > _LEAST_S]
    whole = {name: _whole(profile, name) for name in _LOOKS}
    said = [_numbers(op, whole[op.device]) for op in ops]
    lines = canvas.caption_lines(list(_caption(profile, ops)))
    inner, height = canvas.frame(len(ops), lines, axis=48)
    longest = max(op.self_s for op in ops)

    def draw(drawing: Drawing) -> None:
        names = [short(op.name, _NAME) for op in ops]
        axes = rows.axes(drawing, names, inner, right=rows.room(said))
        for row, op in enumerate(ops):
            colour, hatch = _LOOKS[op.device]
            axes.barh(
                row, op.self_s, 0.5, facecolor=colour, hatch=hatch, edgecolor=INK, lw=0
            )
            rows.beside(axes, row, *said[row])
        axes.set_xlim(0, longest)
        scales.put(axes, scales.even_ticks(0, longest), units.seconds)
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
