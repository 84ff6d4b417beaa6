"""Diagnose a training of one's own: the one verb that notebooks and scripts need."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfkit.errors import MissingPartError, PerfkitError
from perfkit.findings import store
from perfkit.findings.diagnosis import Diagnosis
from perfkit.questions.replay import replay_from
from perfkit.questions.runs import (
    check_seed,
    default_budget,
    home_of,
    seconds,
    watch_here,
)
from perfkit.training.diagnose.maker import maker
from perfkit.training.diagnose.session import (
    LEAST_BUDGET_S,
    DiagnosisSession,
    Replay,
    recording,
)

# Whoever gives no budget gives this one: what the training needs, at most ten minutes.
AUTO = "auto"


def diagnose(
    make_training: Callable[[], Any] | str | Path,
    /,
    *,
    budget: float | str | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    arguments: Sequence[str] = (),
    fit: int = 0,
    guess: str = "",
    source: bool = True,
    replay: str | Path | None = None,
) -> Diagnosis:
    """Change one thing at a time in your training, and rank how much each brings.

    ``make_training`` returns a compiled Keras model, its data and optionally a dict of
    arguments for ``fit``. Each trial calls it again in a fresh process; your code stays
    unchanged. A kernel interrupt or Ctrl-C is Stop: the diagnosis then holds the
    results so far.

    Args:
        make_training: The function, ``"FILE.py:make_training"``, or a script as it is,
            ``"train.py"``. A script runs up to its training call, which perfkit takes
            over. Its writes stay apart from your files, and it reaches no network.
        budget: Seconds in all, or ``"auto"``: as many as the training needs, at most
            ten minutes. Auto is the default unless PERFKIT_BUDGET says otherwise.
        seed: Where random order and random numbers start; None draws one.
        folder: Where it is saved; None for ``perfkit-findings`` here.
        arguments: The script's own, as on its command line.
        fit: Which call of ``fit`` to take in a script, from 1; 0 for the longest.
        guess: What you expect, such as ``"3x"``; the finding keeps it and the chart
            draws it.
        source: Whether the saved file holds your lines that take time.
        replay: A recorded diagnosis of exactly this code to show instead of a run; see
            ``perfkit.run``.

    Raises:
        BadParameterError: ``make_training`` is not a training, or the budget is too
            small.
        MissingPartError: There is no such recording, or no Keras 3 on TensorFlow.
        RunError: The training cannot be run; the sentence says why, and a note holds
            the traceback of your own code.
    """
    session = open_diagnosis(
        make_training,
        budget,
        seed,
        folder,
        arguments=arguments,
        fit=fit,
        replay=replay,
        source=source,
    )
    return with_guess(watch_here(session), guess)


def with_guess(diagnosis: Diagnosis, guess: str) -> Diagnosis:
    """The same with what its reader expected, if anything, in its file too."""
    if not guess:
        return diagnosis
    guessed = replace(diagnosis, guess=guess)
    if diagnosis.path:
        try:
            store.save(guessed, path=diagnosis.path)
        except PerfkitError as error:
            # What was found is in its file already, and is given back in any case.
            store.remember(guessed, diagnosis.path)
            warnings.warn(str(error), stacklevel=3)
    return guessed


def open_diagnosis(
    make_training: Callable[[], Any] | str | Path,
    budget: float | str | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    only: Sequence[str] = (),
    arguments: Sequence[str] = (),
    fit: int = 0,
    replay: str | Path | None = None,
    source: bool = True,
) -> DiagnosisSession | Replay:
    """Make a diagnosis, not yet begun, or its replay; refuse what cannot succeed.

    With ``only``, the names of changes, those are applied at once and measured again.
    """
    check_seed(seed)
    home = home_of(folder)
    training = maker(make_training, arguments, fit)
    if where := replay_from(replay):
        if only:
            raise MissingPartError(
                "A recording cannot be measured again: to apply changes, run without "
                "a replay."
            )
        return Replay(recording(training, where), home)
    return DiagnosisSession(
        training,
        budget=in_seconds(budget),
        seed=seed,
        folder=home,
        source=source,
        only=only,
    )


def in_seconds(budget: float | str | None) -> float | None:
    """Understand the budget of a run of one's own training; None for ``"auto"``.

    Who makes every run small still gets one that holds something.

    Raises:
        BadParameterError: It is no time.
    """
    if budget not in (None, AUTO):
        return seconds("budget", budget or 0)
    default = default_budget(0.0)
    return max(LEAST_BUDGET_S, default) if default else None
