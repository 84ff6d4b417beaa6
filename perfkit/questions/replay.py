"""A recorded run told again, in place of one that measures.

It tells at once what the run told over its minute: there is nothing to wait for where
nothing is measured. The live chart then shows the whole of the recorded run, and the
finding says of itself that it was recorded, wherever it is shown and in its file.
"""

import contextlib
import os
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from perfkit.engine.measurement import OWN
from perfkit.engine.plan import (
    Event,
    Finished,
    Prepared,
    Preparing,
    Sampled,
    Ticked,
    TrialStarted,
)
from perfkit.errors import BadFileError, MissingPartError
from perfkit.findings.record import Finding
from perfkit.findings.standing import measurement
from perfkit.findings.store import read, whole_file
from perfkit.findings.text import plain
from perfkit.questions.base import Experiment, parameters_of
from perfkit.questions.session import Keeper, shareable

# What perfkit brings along: a recording for every panel of its notebooks.
BROUGHT = Path(__file__).parents[1] / "replays"
# A class without fast machines sets it: every run shows a recording in its place then.
REPLAY_VARIABLE = "PERFKIT_REPLAY"
# What to do where there is no recording.
MEASURE = (
    f'to measure it, give `replay=""`, or run `%env {REPLAY_VARIABLE}=` in a cell and '
    "then this again."
)
_NOT_RUN = "this is a recording, made without your code"
_Document = TypeVar("_Document")


def recording(experiment: Experiment, where: str | Path) -> Finding:
    """Find the recording that answers an experiment as it is set.

    It is looked for in a file, a folder of files, or ``"1"`` for what perfkit brings
    along. Of several that fit the newest counts, a whole run before one that was broken
    off.

    Raises:
        BadFileError: A file was given, and it is no finding.
        MissingPartError: There is no such recording; the sentence says what to do.
    """
    place, name = place_of(where), experiment.name
    fitting = [
        finding
        for finding in read_all(place, Finding, name)
        if finding.experiment == name and not differences(experiment, finding)
    ]
    if not fitting:
        raise MissingPartError(
            f"{holder(place)} holds no recording of {name} with these settings or this "
            f"code of yours: {MEASURE}"
        )
    return max(fitting, key=lambda finding: (not finding.ended_early, finding.recorded))


def differences(experiment: Experiment, finding: Finding) -> set[str]:
    """The parameters that are set otherwise than in a recording."""
    usual = {p.name: p.default for p in parameters_of(type(experiment))}
    recorded = usual | finding.parameters
    values = shareable(experiment).items()
    return {name for name, value in values if recorded.get(name) != value}


def replay_from(replay: str | Path | None) -> str | Path:
    """Where recordings come from that are shown in place of runs; "" for runs."""
    return os.environ.get(REPLAY_VARIABLE, "") if replay is None else replay


def place_of(where: str | Path) -> Path:
    """The file or folder of recordings; ``MissingPartError`` if there is none."""
    place = BROUGHT if where == "1" else Path(os.path.expanduser(where))
    if not (place.is_dir() or place.is_file()):
        raise MissingPartError(
            f"There is no recording {plain(str(where), 80)}: give a finding's file, a "
            "folder of them, or 1 for perfkit's own recordings."
        )
    return place


def holder(place: Path) -> str:
    """What has the recordings of a place: perfkit, or a folder or file by its name."""
    return "perfkit" if place == BROUGHT else plain(place.name, 80)


def read_all(place: Path, kind: type[_Document], word: str) -> Iterator[_Document]:
    """Read a file, or those of a folder that hold this word and can be read.

    Only these are parsed, because a folder may hold many.
    """
    if place.is_file():
        yield read(place, kind)
        return
    for path in sorted(place.glob("*.json")):
        with contextlib.suppress(BadFileError):
            if f'"{word}"'.encode() in whole_file(path):
                yield read(path, kind)


def recordings_of(
    name: str, code: str, where: str | Path, kind: type[_Document]
) -> list[_Document]:
    """The recordings of the training ``name``, made by code of that digest.

    That is "" where the code cannot be read. ``where`` is as of ``recording``.
    """
    word = str(vars(kind)["kind"])
    place = place_of(where)
    documents: Iterator[Any] = read_all(place, kind, word)
    fitting = [d for d in documents if code and (d.code, d.training) == (code, name)]
    if not fitting:
        raise MissingPartError(
            f"{holder(place)} holds no {word} of this version of {plain(name, 80)}: "
            f"record one on a machine that can run it, or {MEASURE}"
        )
    return fitting


class Replay(Keeper[Finding]):
    """A recorded run; it is watched as a ``Session`` is.

    The ``guess`` is the reader's, because the recorded one was somebody else's. A copy
    that says of itself that it is a recording goes to ``folder``.
    """

    def __init__(
        self,
        experiment: Experiment,
        recorded: Finding,
        guess: str = "",
        folder: Path | None = None,
    ) -> None:
        super().__init__(folder)
        self.experiment = experiment
        self.budget = recorded.budget_s
        self.machine = recorded.machine
        self._shown = replace(recorded.as_recording(), guess=guess)
        if getattr(experiment, "function", None) is not None:
            missing = self._shown.unavailable | {OWN: _NOT_RUN}
            self._shown = replace(self._shown, unavailable=missing)

    def events(self) -> Generator[Event]:
        """Tell of each recorded trial, then what the machine did meanwhile."""
        self._save(self._shown)
        yield Prepared(self._shown.notes)
        for trial in self._shown.trials:
            began = trial.started_s
            yield TrialStarted(trial.variant, trial.round, began)
            ticks = tuple((began + at, examples) for at, examples in trial.ticks)
            yield Ticked(trial.variant, ticks)
        samples = self._shown.samples
        for row in zip(*samples.values(), strict=True):
            yield Sampled(dict(zip(samples, row, strict=True)))
        yield Finished(measurement(self._shown), self._shown.stopped)
        # What is said last stays: nobody is to take it for a run of this machine.
        yield Preparing(self._shown.stamp)
