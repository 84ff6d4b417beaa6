"""Profile a few steps of a training: ``perfkit.profile(make_training)``."""

import datetime
import functools
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfkit.engine.alone import Alone
from perfkit.engine.launcher import launcher
from perfkit.engine.processes import Ended, in_process
from perfkit.errors import BadParameterError
from perfkit.findings.profile import Profile
from perfkit.machine.collect import machine
from perfkit.machine.software import check_trains
from perfkit.questions.replay import recordings_of, replay_from
from perfkit.training.diagnose import failure
from perfkit.training.diagnose.maker import digest, maker, name_of
from perfkit.training.profile import traces
from perfkit.training.profile.course import STEPPED, stepped
from perfkit.training.profile.traces import gathered

MOST_STEPS, LONGEST_S = 10, 300.0
_PREFIX = "perfkit-profile-"


def profile(
    make_training: Callable[[], Any] | str | Path,
    /,
    *,
    steps: int = MOST_STEPS,
    timeout: float = LONGEST_S,
    replay: str | Path | None = None,
) -> Profile:
    """Trace a few steps of a training of yours, and read the trace into tables.

    The training is made and run in a fresh process, until it is warm. Then so many
    steps are timed without the tracer, then with it, then without it again, so that its
    own cost is known. Nothing of yours is changed, and the trace is not kept.

    Args:
        make_training: The function as ``diagnose`` takes it, or
            ``"FILE.py:make_training"``.
        steps: To trace, 1 to 10; more make a trace large, and tell nothing new.
        timeout: Seconds after which the training counts as hung.
        replay: A recorded profile of this very code to show in place of a run; see
            ``perfkit.run``.

    Raises:
        BadParameterError: What was given is no training, or a value is not accepted.
        MissingPartError: xprof, which reads the trace, is not installed, there is no
            Keras 3 on TensorFlow, or there is no such recording.
        RunError: The training cannot be run; the sentence says why, and a note holds
            the traceback of your own code.
        BadFileError: The file of a recording that is no profile.
    """
    _check(steps, timeout)
    make = maker(make_training)
    if where := replay_from(replay):
        profiles = recordings_of(name_of(make), digest(make), where, Profile)
        return replace(max(profiles, key=lambda p: p.recorded), replayed=True)
    xprof = traces.version()
    check_trains()
    launcher().warm()
    recorded = datetime.datetime.now().astimezone().isoformat("T", "seconds")
    # One after the other: two measurements at once would measure each other.
    alone = Alone("a profile")
    try:
        for _ in alone.wait(threading.Event()):
            continue
        with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
            work = functools.partial(stepped, make, steps, folder)
            notes = notes_of(in_process(work, timeout))
            tables, failed = traces.read(folder)
    finally:
        alone.let_go()
    profile = gathered(
        notes,
        tables,
        failed,
        machine=machine(),
        training=name_of(make),
        recorded=recorded,
        xprof=xprof,
    )
    return replace(profile, code=digest(make))


def notes_of(ended: Ended) -> dict[str, Any]:
    """The notes of a training that was stepped through.

    Raises:
        RunError: It could not be.
    """
    if STEPPED in ended.notes:
        notes: dict[str, Any] = ended.notes[STEPPED]
        return notes
    remedy = "trace fewer steps, or give a longer timeout"
    raise failure.run_error(ended.notes, ended.outcome, ended.message, remedy)


def _check(steps: int, timeout: float) -> None:
    is_whole = isinstance(steps, int) and not isinstance(steps, bool)
    if not is_whole or not 1 <= steps <= MOST_STEPS:
        raise BadParameterError(
            f"steps is {steps!r}; give a whole number from 1 to {MOST_STEPS}."
        )
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 1 <= timeout <= 86_400:
        raise BadParameterError(f"timeout is {timeout!r}; give seconds from 1.")
