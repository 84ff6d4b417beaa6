"""Parts of a whole: the time of a step, the stages of a pipeline.

A variant whose input is a ``tf.data`` pipeline leaves the note ``"plan"`` in its trial:
an object with ``"stages"``, empty where there are none.
``perfkit.questions.data_pipeline.work`` makes it.
"""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure
from perfkit.findings.reading import note_as
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings, time_shares
from perfkit.findings.text import one_line

# With a hatch each, so that no meaning hangs on the colour alone.
_COLOURS = ((RED, "////"), (BLUE, ""), (GREEN, "----"), (GREY, "xxxx"))


def waits(finding: Finding) -> Figure:
    """Draw for each variant the shares of its time that it reported, part by part."""
    title = f"{finding.experiment}: where the time of a step goes"
    shares = dict[str, dict[str, float]]()
    for name in (standing.variant for standing in standings(finding)):
        if by_part := time_shares(t for t in finding.trials if t.variant == name):
            shares[name] = by_part
    if not shares:
        return canvas.message(title, "No variant reported where its time goes.")
    parts = list(dict.fromkeys(part for by_part in shares.values() for part in by_part))
    parts = parts[: len(_COLOURS)]

    def draw(axes: Axes) -> None:
        for row, by_part in enumerate(shares.values()):
            axes.barh(row, 1, 0.5, facecolor=INK, alpha=0.12)
            left = 0.0
            for part, (colour, hatch) in zip(parts, _COLOURS, strict=False):
                share = max(0.0, min(by_part.get(part, 0.0), 1 - left))
                style: Any = {"facecolor": colour, "hatch": hatch, "edgecolor": INK}
                axes.barh(row, share, 0.5, left, lw=0, **style)
                left += share
        axes.set_xlim(0, 1)
        curves.put(axes, [0, 0.25, 0.5, 0.75, 1], units.percent)
        axes.set_xlabel("share of the measured time")

    labels = []
    for name, by_part in shares.items():
        words = [f"{_part(p)} {units.percent(by_part.get(p, 0.0))}" for p in parts]
        labels.append((name, (words[0], one_line(", ".join(words[1:]), 30))))
    lines = canvas.caption_lines(["light: the rest of the step"])
    return rows.picture(title, labels, lines, draw, right=205)


def _part(part: str) -> str:
    return "waiting for input" if part == "input" else one_line(part, 24)


# No chart has room for more stages.
_MOST_STAGES, _FEW_ELEMENTS = 40, 30


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """A stage of a pipeline; see ``perfkit.questions.data_pipeline.work``."""

    name: str
    share: float | None = None
    elements: float | None = None
    ns_per_element: float | None = None
    parallelism: float | None = None
    buffer: float | None = None
    tuned: bool = False


def _stages(plan: object) -> list[_Stage]:
    """The stages of a noted plan, without those that make no sense."""
    entries = (note_as(dict[str, Any], plan) or {}).get("stages")
    listed = (note_as(list[Any], entries) or [])[:_MOST_STAGES]
    return [stage for entry in listed if (stage := note_as(_Stage, entry))]


def plan(finding: Finding) -> Figure:
    """Draw the stages of the fastest pipeline, from the source on top to the model."""
    noted = ((trial.variant, trial.notes.get("plan")) for trial in finding.trials)
    latest = {name: note for name, note in noted if note}
    names = [standing.variant for standing in standings(finding)]
    plans = [(name, latest[name]) for name in names if name in latest]
    usable = (pair for pair in plans if _stages(pair[1]))
    name, note = next(usable, ("A pipeline", None))
    title, pipeline = f"{name}: what TensorFlow runs", _stages(note)
    if not pipeline:
        return canvas.message(title, "No variant left a plan of its pipeline.")

    def draw(axes: Axes) -> None:
        for row, stage in enumerate(pipeline):
            colour, hatch = (GREEN, "////") if stage.tuned else (BLUE, "")
            share = _share(stage)
            axes.barh(row, share, 0.5, facecolor=colour, hatch=hatch, lw=0)
        axes.set_xlim(0, 1)
        curves.put(axes, [0, 0.25, 0.5, 0.75, 1], units.percent)
        axes.set_xlabel("share of the pipeline's work, over all threads")

    caption = [
        "the data pass from top to bottom",
        "each: one element, or one batch once batched",
    ]
    if any(stage.tuned for stage in pipeline):
        caption.append("hatched: AUTOTUNE chooses the stage's parallel calls or buffer")
    labels = [(stage.name, _beside(stage)) for stage in pipeline]
    return rows.picture(title, labels, canvas.caption_lines(caption), draw, right=200)


def has_plan(finding: Finding) -> bool:
    """Whether any trial told what TensorFlow ran for its pipeline."""
    return any(_stages(trial.notes.get("plan")) for trial in finding.trials)


def _share(stage: _Stage) -> float:
    return min(max(stage.share or 0.0, 0.0), 1.0)


def _beside(stage: _Stage) -> tuple[str, str]:
    """A stage's share and time, and below them how it is set."""
    words, settings = units.percent(_share(stage)), []
    # Work for elements under way counts, and few that are done do not outweigh it.
    has_few = stage.elements is not None and stage.elements < _FEW_ELEMENTS
    if stage.ns_per_element is not None and not has_few:
        words += f", {units.seconds(stage.ns_per_element / 1e9)} each"
    if stage.parallelism is not None:
        settings.append(f"{stage.parallelism:g} at a time")
    if stage.buffer is not None:
        settings.append(f"buffer of {stage.buffer:g}")
    if stage.tuned:
        settings.append("AUTOTUNE")
    return words, ", ".join(settings)
