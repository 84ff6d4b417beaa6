"""What a run tells while it goes: progress bar, live chart and notebook read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.trial import Trial


@dataclass(frozen=True)
class Preparing:
    """Something is made ready before the first trial; the budget has not begun."""

    message: str


@dataclass(frozen=True)
class Prepared:
    """All is ready; what preparing found out, as the finding's notes have it."""

    notes: dict[str, Any]


@dataclass(frozen=True)
class TrialStarted:
    """A trial begins, ``at`` seconds after the start of the run."""

    variant: str
    round: int
    at: float


@dataclass(frozen=True)
class Ticked:
    """New ticks of the running trial: ``(seconds since the run's start, examples)``.

    An entry of 0 examples ends set-up or a pause: no rate can be read from the time
    before it.
    """

    variant: str
    ticks: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Sampled:
    """One reading of the machine, by the names that ``Finding.samples`` has."""

    values: dict[str, float | None]


@dataclass(frozen=True)
class TrialEnded:
    """A trial is over; the measurement holds it."""

    trial: Trial
    measurement: Measurement


@dataclass(frozen=True)
class Progress:
    """Seconds of the budget spent and the seconds the run will take as it looks now."""

    spent: float
    expected: float


@dataclass(frozen=True)
class Finished:
    """The run is over, by its budget, by narrow intervals or by Stop."""

    measurement: Measurement
    stopped: bool


Event = (
    Preparing
    | Prepared
    | TrialStarted
    | Ticked
    | Sampled
    | TrialEnded
    | Progress
    | Finished
)
