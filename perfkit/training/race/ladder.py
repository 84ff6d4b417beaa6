"""The ladder of the course: one training, raced against itself as found at each edit.

The course speeds up ``notebooks/photos.py``. Each rung is the finding of one race of an
edited copy against that file; the ladder reads them from the folder of findings.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from perfkit.charts import canvas, rows
from perfkit.charts.canvas import Figure
from perfkit.charts.layout import limits
from perfkit.charts.rows import draw_ratio, draw_ratio_axis
from perfkit.engine.measurement import CONTROL
from perfkit.engine.processes import in_process
from perfkit.engine.statistics import Comparison
from perfkit.engine.trial import Note
from perfkit.errors import BadParameterError, MissingPartError, RunError
from perfkit.findings.record import Finding
from perfkit.findings.standing import LEAST_ROUNDS, standings
from perfkit.findings.store import FOLDER
from perfkit.findings.text import plain
from perfkit.questions.replay import Replay, read_all
from perfkit.questions.runs import home_of, watch_here
from perfkit.training.diagnose import source
from perfkit.training.diagnose.maker import (
    InFile,
    Source,
    digest,
    maker,
    name_of,
    source_of,
)
from perfkit.training.diagnose.script import Script
from perfkit.training.diagnose.source import UNREADABLE
from perfkit.training.race.question import SAME_JOB, Race
from perfkit.training.race.race import open_race
from perfkit.training.race.sides import Side

AS_FOUND = "photos as found"
_FILE, _FUNCTION, _MAKE_PHOTOS = "photos.py", "photos", "make_photos"
_LONGEST_LABEL, _MOST_RUNGS = 34, 12
_LONGEST_S = 120.0
_TITLE = "photos: how many times as fast as the original"
_NO_RUNG = "No change was raced yet: edit photos, and call perfkit.ladder(photos)."


@dataclass(frozen=True, repr=False)
class Ladder:
    """How fast the course's training became, edit by edit.

    Attributes:
        rungs: Each edit against the training as found, in the order in which they were
            raced last; a variant is what was edited, in the reader's words.
        stamp: Of recordings: where the first is from.
        race: The finding of the race that this call ran; None where nothing ran.
    """

    rungs: tuple[Comparison, ...]
    stamp: str = ""
    race: Finding | None = None

    @property
    def chart(self) -> Figure:
        """Each rung as a multiple of the training as found, with its interval."""
        if not self.rungs:
            return canvas.message(_TITLE, _NO_RUNG)
        reach = limits(
            [1.0, *(c.ratio for c in self.rungs)],
            [end for c in self.rungs for end in (c.low, c.high)],
        )

        def draw(axes: Axes) -> None:
            draw_ratio_axis(axes, *reach, f"rate, as a multiple of {AS_FOUND}")
            axes.plot(1, 0, "s", color=canvas.GREY, ms=9)
            for row, c in enumerate(self.rungs, 1):
                draw_ratio(axes, row, c.verdict, c.ratio, (c.low, c.high))

        texts = [(c.variant, (c.interval, c.judgement)) for c in self.rungs]
        lines = ["bar: 95 % interval  ·  each row: one race against photos as found"]
        labels = [(AS_FOUND, ("1.00×", "")), *texts]
        figure = rows.picture(_TITLE, labels, lines, draw)
        return canvas.stamped(figure, self.stamp) if self.stamp else figure

    def __repr__(self) -> str:
        lines = [*map(str, self.rungs)] or [_NO_RUNG]
        return "\n".join([*lines, *([repr(self.race)] if self.race else [])])

    def _repr_html_(self) -> str:
        verdict = self.race.verdict._repr_html_() if self.race else ""
        return self.chart.in_page() + verdict


def ladder(
    training: Callable[[], Any] | str | Path | None = None,
    *,
    label: str = "",
    budget: float | str | None = None,
    folder: str | Path | None = None,
    replay: str | Path | None = None,
) -> Ladder:
    """Race your edited copy of the course's training against the original.

    Each race is a rung of the ladder, whose chart shows the newest race of each label.
    If you have edited nothing yet, nothing runs.

    Args:
        training: The edited ``photos``, as ``perfkit.race`` takes it; None only shows
            the ladder so far.
        label: Your edit, such as ``"cached input"``; "" for the function's name.
        budget: Seconds of the race, as ``perfkit.race`` takes them.
        folder: Where findings are; None for ``perfkit-findings`` here.
        replay: A recorded race of exactly this code to show instead of a run; see
            ``perfkit.run``.

    Raises:
        BadParameterError: It is not a function, or the label is not one.
        MissingPartError: The original training is not here, or there is no recording.
        RunError: A side cannot run; the sentence says which, and why.
    """
    home, original = home_of(folder), training_as_found()
    if training is None:
        return read_ladder(original, home)
    edited = maker(training)
    if isinstance(edited, Script):
        raise BadParameterError(
            f"perfkit.ladder takes a function, and {name_of(edited)} is a script: give "
            f'"{name_of(edited)}:photos".'
        )
    if is_unchanged(edited, original):
        print(
            f"Nothing runs yet, because {name_of(edited)} is still the training as "
            "found. Change one of its lines, then run both cells again."
        )
        return read_ladder(original, home)
    if not isinstance(label, str) or label in (AS_FOUND, CONTROL):
        raise BadParameterError(
            f"label is {label!r}; say what you edited, such as 'cached input'."
        )
    label = plain(label, _LONGEST_LABEL) or name_of(edited)
    # A batch of another size is an edit that the course asks for.
    rival = Side(name=label, maker=edited, retuned=True)
    typed = f"perfkit.ladder({name_of(edited)}, label={label!r})"
    sides = Side(name=AS_FOUND, maker=original), rival
    race = Race(sides=sides, typed=typed, rounds=LEAST_ROUNDS)
    session = open_race(race, budget, folder=home, replay=replay)
    if not isinstance(session, Replay):
        _make_photographs(original)
    finding = watch_here(session)
    return replace(read_ladder(original, home, finding), race=finding)


def _make_photographs(original: InFile) -> None:
    """Make the photographs where they stay: what a trial writes goes with it."""

    def make() -> Iterator[Note]:
        replace(original, name=_MAKE_PHOTOS)()
        yield Note(_MAKE_PHOTOS, True)

    made = in_process(make, _LONGEST_S)
    if made.outcome != "completed":
        raise RunError(
            f"{_FILE} could not make its photographs, because it "
            f"{made.message.rstrip('.')}: set PERFKIT_CACHE to a folder that you can "
            "write to."
        )


def training_as_found() -> InFile:
    """Return the training of the course as everybody gets it."""
    here = Path(__file__)
    # A wheel brings it along; in a checkout it lies among the notebooks.
    for path in (here.with_name(_FILE), here.parents[3] / "notebooks" / _FILE):
        if path.is_file():
            return InFile(str(path), _FUNCTION)
    raise MissingPartError(
        f"notebooks/{_FILE}, where the ladder starts, is missing: fetch perfkit again, "
        "with its notebooks."
    )


def read_ladder(original: InFile, folder: Path | None, *races: Finding) -> Ladder:
    """Read the races of the training as found from a folder of findings.

    ``races`` are findings that may be in no file.
    """
    code, rungs = digest(original), dict[str, tuple[Comparison, str]]()
    saved = read_all(folder or Path(FOLDER), Finding, AS_FOUND)
    for race in sorted([*races, *saved], key=lambda finding: finding.recorded):
        if rung := _rung_of(race, code):
            # The newest race of a label takes its place at the end.
            rungs.pop(rung.variant, None)
            rungs[rung.variant] = rung, race.stamp
    newest = [*rungs.values()][-_MOST_RUNGS:]
    stamp = next((stamp for _, stamp in newest if stamp), "")
    return Ladder(tuple(rung for rung, _ in newest), stamp)


def _rung_of(race: Finding, code: str) -> Comparison | None:
    """Return the rung that a finding shows; None where it is none of this ladder."""
    match race.parameters:
        case {"sides": [first, label], "code": [original, *_]}:
            is_rung = (first, original) == (AS_FOUND, code)
            if is_rung and race.result.get(SAME_JOB) is True:
                rungs = (s.comparison for s in standings(race) if s.variant == label)
                return next(rungs, None)
    return None


def is_unchanged(edited: Callable[[], Any], original: InFile) -> bool:
    """Whether neither the function nor the file that it stands in was edited."""
    try:
        code, before = source_of(edited), source_of(original)
        # A function of a cell takes the rest from the file beside its notebook.
        file = Path(code.path or _FILE)
        text = source.text_of(str(file)) if file.is_file() else before.text
        return text == before.text and _statements(code) == _statements(before)
    except UNREADABLE:
        return False


def _statements(code: Source) -> list[str]:
    """Return what a function does, its imports and its docstring left out."""
    functions = (
        node
        for node in ast.walk(ast.parse(code.text))
        if isinstance(node, ast.FunctionDef) and node.name == code.function
    )
    texts = map(ast.unparse, next((function.body for function in functions), []))
    return [t for t in texts if not t.startswith(("import ", "from ", "'", '"'))]
