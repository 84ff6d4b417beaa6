"""One run of an experiment, from preparing its data to the saved finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from perfkit.experiments.base import Experiment
    from perfkit.findings.record import Finding
    from perfkit.measure.events import Event


class Session:
    """A run that can be watched and stopped, and that saves what it has at every trial.

    Args:
        experiment: What to run.
        budget: Seconds to spend on trials; preparing data comes on top.
        guess: What the reader expects, kept in the finding.
        seed: Where random order and random numbers start; None draws one.
        folder: Where the finding is saved; None for ``perfkit-findings`` here.

    Attributes:
        finding: What has been found so far; None before the first trial has ended.
    """

    finding: Finding | None

    def __init__(
        self,
        experiment: Experiment,
        *,
        budget: float = 60.0,
        guess: str = "",
        seed: int | None = None,
        folder: Path | None = None,
    ) -> None:
        raise NotImplementedError

    def events(self) -> Iterator[Event]:
        """Run, and tell what happens; at least one event every 0.25 s."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the running trial and the run; callable from any thread."""
        raise NotImplementedError

    def run(self) -> Finding:
        """Run to the end without watching; a kernel interrupt is Stop."""
        raise NotImplementedError
