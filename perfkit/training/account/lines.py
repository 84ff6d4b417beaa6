"""Where the seconds of a script go: ``perfkit.lines("train.py")``."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfkit.findings.account import Account
from perfkit.questions.replay import recordings_of, replay_from
from perfkit.questions.runs import home_of, seconds, watch_here
from perfkit.training.account.collect import USUAL_S
from perfkit.training.account.session import AccountSession
from perfkit.training.diagnose.maker import digest, maker, name_of
from perfkit.training.diagnose.script import whole_script

_LEAST_S = 5.0


def lines(
    training: Callable[[], Any] | str | Path,
    /,
    *,
    budget: float | None = None,
    folder: str | Path | None = None,
    arguments: tuple[str, ...] = (),
    source: bool = True,
    replay: str | Path | None = None,
) -> Account:
    """Show where the time of a script goes, line by line, without an A/B test.

    The script runs unchanged to its end or for the budget; its writes stay apart from
    your files. A kernel interrupt or Ctrl-C is Stop: the account then holds the results
    so far.

    Args:
        training: A script, ``"train.py"``, a notebook, or a function that makes a
            training, as ``perfkit.diagnose`` takes it.
        budget: Seconds to watch it, 30 by default; up to four times as long if it has
            hardly trained by then.
        folder: Where the account is saved; None for ``perfkit-findings`` here.
        arguments: The script's own, as on its command line.
        source: Whether lines of your code go into the account.
        replay: A recorded account of exactly this code to show instead of a run.

    Raises:
        BadParameterError: ``training`` is not a training, or the budget is not a time.
        MissingPartError: There is no Keras 3 on TensorFlow, or no such recording.
        RunError: It cannot be run; the sentence says why.
    """
    session = open_lines(training, budget, folder, arguments, source, replay)
    if isinstance(session, Account):
        return session
    return watch_here(session)


def open_lines(
    training: Any,
    budget: float | None = None,
    folder: str | Path | None = None,
    arguments: tuple[str, ...] = (),
    source: bool = True,
    replay: str | Path | None = None,
) -> AccountSession | Account:
    """Make an account's session, not yet begun, or find the recording in its place."""
    make = maker(training, arguments, read=whole_script)
    if where := replay_from(replay):
        accounts = recordings_of(name_of(make), digest(make), where, Account)
        return replace(max(accounts, key=lambda a: a.recorded), replayed=True)
    spent = USUAL_S if budget is None else max(_LEAST_S, seconds("budget", budget))
    return AccountSession(make, budget=spent, folder=home_of(folder), source=source)
