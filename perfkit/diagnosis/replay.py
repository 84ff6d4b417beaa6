"""A recorded diagnosis, shown in place of one that measures.

It stands in for a training whose code is the same, word for word: what another one is
slowed by, or this one after a change, it does not know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.source import digest
from perfkit.diagnosis.maker import name_of
from perfkit.errors import MissingPartError, PerfkitError
from perfkit.experiments.replay import place_of, read_all
from perfkit.findings import store
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.text import plain
from perfkit.measure.plan import Event, Preparing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path
    from typing import Any


def recording(maker: Callable[[], Any], where: str | Path) -> Diagnosis:
    """Find the recording that answers for a training, the newest whole one.

    Args:
        maker: The function that makes the training.
        where: As ``perfkit.experiments.replay.recording`` takes it.

    Raises:
        BadFileError: A file was given, and it is neither a finding nor a diagnosis.
        MissingPartError: There is no such recording.
    """
    place, name, code = place_of(where), name_of(maker), digest(maker)
    diagnoses = (d for d in read_all(place, store.load) if isinstance(d, Diagnosis))
    # A file may hold several trainings.
    fitting = [d for d in diagnoses if code and (d.code, d.training) == (code, name)]
    if not fitting:
        raise MissingPartError(
            f"{plain(place.name, 80)} holds no recording of {plain(name, 80)} as it is "
            "written here: record one where it can be run, with `perfkit.diagnose(…, "
            "folder=FOLDER)`, or run it here without a replay."
        )
    return max(fitting, key=lambda one: (not one.finding.ended_early, one.recorded))


class Replay:
    """A recorded diagnosis; it is watched as a ``DiagnosisSession`` is.

    Args:
        recorded: What is shown.
        folder: Where the copy goes that says of itself that it is a recording; None
            for ``perfkit-findings`` here.
    """

    def __init__(self, recorded: Diagnosis, folder: Path | None = None) -> None:
        self.finding: Diagnosis | None = None
        self.unsaved = ""
        self.arms: list[str] = []
        self.budget = recorded.budget_s
        self._recorded, self._folder = recorded, folder

    def stop(self) -> None:
        """Do nothing: it is over at once."""

    def events(self) -> Generator[Event]:
        """Show the recording, and tell what it is."""
        self.finding = replace(self._recorded, replayed=True)
        try:
            store.save(self.finding, self._folder)
        except PerfkitError as error:
            self.unsaved = str(error)
        yield Preparing(self.finding.finding.stamp)
