"""Does the patch of a diagnosis help? A race of the patched copy says so, or not."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfkit.diagnosis.edits import Patch
from perfkit.diagnosis.maker import name_of
from perfkit.diagnosis.rounds import LONGEST_S, trial_s
from perfkit.diagnosis.session import LEAST_BUDGET_S
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.reading import note_as
from perfkit.findings.record import Finding
from perfkit.findings.standing import LEAST_ROUNDS, measurement
from perfkit.race import learning
from perfkit.race.commits import changed
from perfkit.race.question import Race, in_times
from perfkit.race.race import RaceSession
from perfkit.race.sides import Side
from perfkit.runs import default_budget, home_of

NAME = "the patched copy"
_USUAL_S = 60.0
# A round holds the training, its control and the patched copy. Some take longer.
_TRIALS, _ROUNDS = 3, LEAST_ROUNDS + 1


@dataclass(frozen=True)
class Proof:
    """What the race of a patch shows.

    Attributes:
        says: By how much the patch helps, or in a sentence that there is none, and why.
        helps: Whether the patched copy is shown to be faster at the same job.
    """

    says: str
    helps: bool = False


def open_proof(
    patch: Patch,
    found: Diagnosis,
    made: Callable[[], Any],
    seed: int | None = None,
    folder: str | Path | None = None,
) -> RaceSession:
    """Make the race of a script with a patch against the script as it is."""
    given: Any = made
    copy = changed(Path(given.path), patch.copy, NAME)
    try:
        path = copy.path_of(Path(given.path))
        there = replace(given, path=str(path), lent=str(copy.top))
        sides = (
            Side(name=name_of(made), maker=made),
            Side(name=NAME, maker=there, changes="The patch.", retuned=patch.retuned),
        )
        typed = shlex.join(["perfkit", "diagnose", "--diff", name_of(made)])
        return RaceSession(
            Race(of=sides, typed=typed),
            budget=_budget_of(found),
            seed=seed,
            folder=home_of(folder),
            explains=False,
            close=copy.close,
        )
    except BaseException:
        copy.close()
        raise


def _budget_of(found: Diagnosis) -> float:
    """Seconds of the race: 60, more where the rounds that it needs take longer."""
    ready_s, step_s = (
        note_as(float, found.facts.get(name)) or 0.0 for name in ("ready_s", "step_s")
    )
    needed = _ROUNDS * _TRIALS * trial_s(ready_s, step_s)
    usual = min(LONGEST_S, max(_USUAL_S, needed))
    return max(LEAST_BUDGET_S, default_budget(usual))


def proof_of(raced: Finding, patch: Patch) -> Proof:
    """Read what the race shows."""
    verdict, measured = raced.verdict, measurement(raced)
    interval = f" ({verdict.interval})" if verdict.interval else ""
    compared = measured.compare(NAME, raced.baseline)
    if verdict.winner != NAME or compared is None:
        reasons = () if compared else verdict.because
        why = next(iter(reasons), verdict.headline)
        is_open = bool(compared) and verdict.sure == "not known yet"
        why = f"{why[:1].lower()}{why[1:].rstrip('.')}{interval}"
        return unproved(why, is_open=is_open)
    if patch.retuned:
        learns = "and it learns otherwise"
    elif learning.alike(measured, NAME, raced.baseline):
        learns = "same first losses"
    elif all(learning.first_losses(measured, NAME, raced.baseline)):
        learns = "first losses not shown to differ"
    else:
        learns = "how it learns is not seen"
    much = f"{in_times(compared.ratio)} times as fast{interval}"
    if not interval:
        much = "faster, by how much is not known yet"
    return Proof(f"as patched: {much}, {learns}", helps=True)


def unproved(why: str, *, is_open: bool = False) -> Proof:
    """Say that there is no patch, why, and what to do about it."""
    again = "run it again while nothing else runs; " * is_open
    prints = "`--no-race` prints the patch without a race."
    return Proof(f"There is no patch: {why}; {again}{prints}")
