"""Diagnose a training of one's own: the one verb that notebooks and scripts need."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.session import LEAST_BUDGET_S, DiagnosisSession
from perfkit.displays import display_here
from perfkit.running import check_seed, default_budget, seconds, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perfkit.findings.diagnosis import Diagnosis

# Seconds that tell a dozen swaps apart on two cores.
BUDGET_S = 120.0


def diagnose(
    make_training: Callable[[], Any] | str | Path,
    /,
    *,
    budget: float | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
) -> Diagnosis:
    """Swap one thing at a time in a training of yours, and rank what each brings.

    ``make_training`` returns a compiled Keras model and its data, and if you like a
    dict of arguments for ``fit``. It is called anew in each trial, in a fresh process;
    nothing of yours is changed. A kernel interrupt or Ctrl-C is Stop: the diagnosis
    then holds what was measured by then.

    Args:
        make_training: The function, or ``"FILE.py:make_training"``.
        budget: Seconds for all of it; 120 unless PERFKIT_BUDGET says otherwise.
        seed: Where random order and random numbers start; None draws one.
        folder: Where it is saved; None for ``perfkit-findings`` here.

    Raises:
        BadParameterError: What was given is no training, or the budget holds none.
        RunError: The training cannot be run; the sentence says why, and a note holds
            the traceback of your own code.
    """
    session = open_diagnosis(make_training, budget, seed, folder)
    found = watch(session, display_here())
    if session.unsaved:
        warnings.warn(session.unsaved, stacklevel=2)
    return found


def open_diagnosis(
    make_training: Callable[[], Any] | str | Path,
    budget: float | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    only: Sequence[str] = (),
) -> DiagnosisSession:
    """Make a diagnosis, not yet begun; refuse what cannot succeed.

    With ``only``, the names of swaps, it applies those at once and measures them again.
    """
    check_seed(seed)
    return DiagnosisSession(
        make_training,
        budget=usual_budget() if budget is None else seconds("budget", budget),
        seed=seed,
        folder=Path(os.path.expanduser(folder)) if folder is not None else None,
        only=only,
    )


def usual_budget() -> float:
    """Give the seconds of a diagnosis whose budget nobody gave.

    Who makes every run small still gets one that holds a round.
    """
    return max(LEAST_BUDGET_S, default_budget(BUDGET_S))
