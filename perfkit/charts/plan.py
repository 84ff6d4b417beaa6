"""What does TensorFlow really run? The stages of a variant's pipeline, a bar for each.

A variant whose input is a ``tf.data`` pipeline leaves the note ``"plan"`` in its trial:
an object with ``"stages"``, or with ``"missing"``, a sentence that says why there are
none. ``perfkit.experiments.shared.anatomy`` makes it.
"""

from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, GREEN
from perfkit.charts.figure import Figure
from perfkit.errors import BadParameterError
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.reading import Stage, stages
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings
from perfkit.findings.text import plain


def plan(finding: Finding, variant: str = "") -> Figure:
    """Draw the stages of a variant's pipeline, from the source on top to the model.

    Args:
        finding: What to draw from.
        variant: Whose pipeline; "" for the fastest one that has a plan.

    Raises:
        BadParameterError: The finding holds no variant of that name.
    """
    variant = variant or _fastest_with_plan(finding)
    ran = dict.fromkeys(trial.variant for trial in finding.trials)
    if variant and variant not in ran:
        names = ", ".join(plain(name, 60) for name in ran)
        raise BadParameterError(f"{variant!r} is no variant of this finding: {names}.")
    title = f"{plain(variant, 60)}: what TensorFlow runs"
    note = _note(finding, variant)
    return _drawn(title if variant else "What TensorFlow runs", note)


def anatomy(found: Diagnosis) -> Figure:
    """Draw the stages of a training's own pipeline, as it was given."""
    title = f"{plain(found.training, 60)}: what TensorFlow runs for its data"
    return _drawn(title, found.anatomy)


def has_anatomy(found: Diagnosis) -> bool:
    """Whether the plan of its pipeline was seen."""
    return bool(stages(found.anatomy))


def _drawn(title: str, note: Any) -> Figure:
    shown = stages(note)
    if not shown:
        missing = note.get("missing") if isinstance(note, dict) else None
        words = plain(str(missing or "No variant left a plan of its pipeline."), 110)
        return canvas.message(title, words)

    def draw(axes: Axes) -> None:
        for row, stage in enumerate(shown):
            colour, hatch = (GREEN, "////") if stage.tuned else (BLUE, "")
            axes.barh(row, _share(stage), 0.5, facecolor=colour, hatch=hatch, lw=0)
        axes.set_xlim(0, 1)
        curves.put(axes, [0, 0.25, 0.5, 0.75, 1], units.percent)
        axes.set_xlabel("share of the pipeline's work, over all threads")

    said = "; ".join(map(_in_words, shown))
    return rows.picture(
        title,
        [(stage.name, _beside(stage)) for stage in shown],
        canvas.caption_lines(list(_caption(shown))),
        draw,
        alt=f"{title}, from source to model: {said}.",
        right=200,
    )


def has_plan(finding: Finding) -> bool:
    """Whether any trial told what TensorFlow ran for its pipeline."""
    plans = (trial.notes.get("plan") for trial in finding.trials)
    return any(isinstance(note, dict) and note.get("stages") for note in plans)


def _note(finding: Finding, variant: str) -> Any:
    """The latest plan that a trial of the variant left."""
    plans = [
        trial.notes["plan"]
        for trial in finding.trials
        if trial.variant == variant and "plan" in trial.notes
    ]
    return plans[-1] if plans else None


def _fastest_with_plan(finding: Finding) -> str:
    names = (standing.variant for standing in standings(finding))
    return next((name for name in names if stages(_note(finding, name))), "")


def _share(stage: Stage) -> float:
    return min(max(stage.share or 0.0, 0.0), 1.0)


def _beside(stage: Stage) -> tuple[str, str]:
    words = units.percent(_share(stage))
    if stage.each_s is not None:
        words += f", {units.seconds(stage.each_s)} each"
    return words, _settings(stage)


def _settings(stage: Stage) -> str:
    words = []
    if stage.parallelism is not None:
        words.append(f"{stage.parallelism:g} at a time")
    if stage.buffer is not None:
        words.append(f"buffer of {stage.buffer:g}")
    return ", ".join(words)


def _caption(shown: list[Stage]) -> Iterator[str]:
    yield "the data pass from top to bottom"
    yield "each: an element, a whole batch after the stage that batches"
    if any(stage.tuned for stage in shown):
        yield "hatched: AUTOTUNE chooses its calls at a time or its buffer"


def _in_words(stage: Stage) -> str:
    chosen = "chosen by AUTOTUNE" if stage.tuned else ""
    words = [plain(stage.name, 60), units.percent(_share(stage))]
    return ", ".join(filter(None, [*words, _settings(stage), chosen]))
