"""Parts of a whole: the time of a step, the stages of a pipeline.

A variant whose input is a ``tf.data`` pipeline leaves the note ``"plan"`` in its trial:
an object with ``"stages"``, or with ``"missing"``, a sentence that says why there are
none. ``perfkit.questions.shared.anatomy`` makes it.
"""

from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED, Figure
from perfkit.findings.reading import Stage, stages
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings
from perfkit.findings.text import one_line

_COLOURS = ((RED, "////"), (BLUE, ""), (GREEN, "----"), (GREY, "xxxx"))
_WAITS_WORDS = {"input": "waiting for input"}


def waits(finding: Finding) -> Figure:
    """Draw for each variant the shares of its time that it reported, part by part."""
    title = f"{finding.experiment}: where the time of a step goes"
    pairs = ((s.variant, _shares(finding, s.variant)) for s in standings(finding))
    shares = {name: by_part for name, by_part in pairs if by_part}
    if not shares:
        return canvas.message(title, "No variant reported where its time goes.")
    parts = list(dict.fromkeys(part for by_part in shares.values() for part in by_part))
    parts = parts[: len(_COLOURS)]
    looks = list(zip(parts, _COLOURS, strict=False))

    def draw(axes: Axes) -> None:
        for row, by_part in enumerate(shares.values()):
            bars = ((by_part.get(part, 0.0), look) for part, look in looks)
            rows.stack(axes, row, 1, bars)
        rows.name_parts(axes, [(_part(part), look) for part, look in looks])
        axes.set_xlim(0, 1)
        curves.put(axes, [0, 0.25, 0.5, 0.75, 1], units.percent)
        axes.set_xlabel("share of the measured time")

    return rows.picture(
        title,
        [(name, _waits_beside(by_part, parts)) for name, by_part in shares.items()],
        canvas.caption_lines(["light: the rest of the step"]),
        draw,
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


def _waits_beside(by_part: dict[str, float], parts: list[str]) -> tuple[str, str]:
    words = [f"{_part(part)} {units.percent(by_part.get(part, 0.0))}" for part in parts]
    return words[0], one_line(", ".join(words[1:]), 30)


def _part(part: str) -> str:
    return _WAITS_WORDS.get(part, one_line(part, 24))


def plan(finding: Finding) -> Figure:
    """Draw the stages of the fastest pipeline, from the source on top to the model."""
    trials = [trial for trial in finding.trials if "plan" in trial.notes]
    latest = {trial.variant: trial.notes["plan"] for trial in trials}
    names = [standing.variant for standing in standings(finding)]
    plans = [(name, latest[name]) for name in names if latest.get(name)]
    if not plans:
        return _draw_stages("What TensorFlow runs", None)
    # Where none has stages, one may say why.
    name, note = next((pair for pair in plans if stages(pair[1])), plans[0])
    return _draw_stages(f"{name}: what TensorFlow runs", note)


def _draw_stages(title: str, note: Any) -> Figure:
    pipeline = stages(note)
    if not pipeline:
        missing = note.get("missing") if isinstance(note, dict) else None
        words = str(missing or "No variant left a plan of its pipeline.")
        return canvas.message(title, words)

    def draw(axes: Axes) -> None:
        for row, stage in enumerate(pipeline):
            colour, hatch = (GREEN, "////") if stage.tuned else (BLUE, "")
            share = _stages_share(stage)
            axes.barh(row, share, 0.5, facecolor=colour, hatch=hatch, lw=0)
        axes.set_xlim(0, 1)
        curves.put(axes, [0, 0.25, 0.5, 0.75, 1], units.percent)
        axes.set_xlabel("share of the pipeline's work, over all threads")

    return rows.picture(
        title,
        [(stage.name, _stages_beside(stage)) for stage in pipeline],
        canvas.caption_lines(list(_stages_caption(pipeline))),
        draw,
        right=200,
    )


def has_plan(finding: Finding) -> bool:
    """Whether any trial told what TensorFlow ran for its pipeline."""
    return any(stages(trial.notes.get("plan")) for trial in finding.trials)


def _stages_share(stage: Stage) -> float:
    return min(max(stage.share or 0.0, 0.0), 1.0)


def _stages_beside(stage: Stage) -> tuple[str, str]:
    words = units.percent(_stages_share(stage))
    if stage.each_s is not None:
        words += f", {units.seconds(stage.each_s)} each"
    return words, _stages_settings(stage)


def _stages_settings(stage: Stage) -> str:
    words = []
    if stage.parallelism is not None:
        words.append(f"{stage.parallelism:g} at a time")
    if stage.buffer is not None:
        words.append(f"buffer of {stage.buffer:g}")
    if stage.tuned:
        words.append("AUTOTUNE")
    return ", ".join(words)


def _stages_caption(pipeline: list[Stage]) -> Iterator[str]:
    yield "the data pass from top to bottom"
    yield "each: one element, or one batch once batched"
    if any(stage.tuned for stage in pipeline):
        yield "hatched: AUTOTUNE chooses the stage's parallel calls or buffer"
