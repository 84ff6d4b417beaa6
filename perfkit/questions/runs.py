"""Run an experiment and watch it: the one verb that notebooks and scripts need."""

import importlib
import importlib.util
import os
import signal
import threading
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from perfkit.engine.plan import Event
from perfkit.errors import BadParameterError, RunError
from perfkit.findings.record import Finding
from perfkit.machine.nvml import gpus_here
from perfkit.progress import Board, Display, display_here, in_notebook
from perfkit.questions import experiment
from perfkit.questions.base import Experiment

if TYPE_CHECKING:
    from perfkit.questions.replay import Replay
    from perfkit.questions.session import Session

Found = TypeVar("Found", covariant=True)

# Seconds that separate a handful of variants on two cores. With a GPU
# each trial sets up alone: on an H200 one round of most questions took a minute.
USUAL_S, _WITH_GPU_S = 60.0, 180.0
# The live chart belongs to panels, and those stand above questions.
_CELL = "perfkit.panel.view"
# Tests and classrooms set it to run every notebook in small; a budget that is given in
# the call wins over it.
BUDGET_VARIABLE = "PERFKIT_BUDGET"


class Watched(Protocol[Found]):
    """A run that can be watched and stopped."""

    @property
    def finding(self) -> Found | None:
        """What was found so far."""

    @property
    def unsaved(self) -> str:
        """Why it could not be saved, in a sentence; "" if it was."""

    @property
    def budget(self) -> float:
        """Seconds: where nobody gave any, known once it has begun to measure."""

    def stop(self) -> None:
        """End it; what was measured by then is kept."""

    def events(self) -> Generator[Event]:
        """Run, and tell what happens."""


def experiment_of(
    question: str | Experiment, parameters: Mapping[str, Any]
) -> Experiment:
    """An experiment by its name and parameters, or one that was made already."""
    if isinstance(question, str):
        return experiment(question, **parameters)
    if parameters:
        raise BadParameterError(
            "Parameters go with a name; this experiment already has its own."
        )
    return question


def run(
    question: str | Experiment,
    /,
    *,
    budget: float | None = None,
    guess: str = "",
    seed: int | None = None,
    folder: str | Path | None = None,
    replay: str | Path | None = None,
    **parameters: Any,
) -> Finding:
    """Ask this machine a question and return the finding.

    A kernel interrupt or Ctrl-C is Stop: the finding then holds the results so far.
    The run saves the finding as it goes; ``finding.path`` says where.

    Args:
        question: The name of an experiment, or an experiment.
        budget: Seconds to spend on measuring. None for at most 60, or 180 with a GPU,
            or the value of PERFKIT_BUDGET: the run then ends as soon as its answer is
            sure, if the experiment can tell.
        guess: What you expect; the finding keeps it and the chart draws it.
        seed: Where random order and random numbers start; None draws one.
        folder: Where findings are saved; None for ``perfkit-findings`` here.
        replay: A recorded finding to show instead of a run: its file, its folder, or
            "1" for perfkit's own. None follows PERFKIT_REPLAY, "" always runs.
        **parameters: The experiment's parameters, each of which has a default, and
            ``mine``; see ``perfkit.experiment``.

    Raises:
        BadParameterError: A name or a value that the experiment does not accept.
        MissingPartError: A library that every variant needs is missing, or there is no
            such recording.
        RunError: No trial could be started.
    """
    experiment = experiment_of(question, parameters)
    session = open_replay(experiment, replay, guess, folder) or open_session(
        experiment, budget, guess, seed, folder
    )
    return watch_here(session)


def open_replay(
    experiment: Experiment,
    replay: str | Path | None = None,
    guess: str = "",
    folder: str | Path | None = None,
) -> "Replay | None":
    """Make the replay that stands in for a run; None where none is asked for."""
    from perfkit.questions.replay import Replay, recording, replay_from

    where = replay_from(replay)
    if not where:
        return None
    return Replay(experiment, recording(experiment, where), guess, home_of(folder))


def open_session(
    experiment: Experiment,
    budget: float | None = None,
    guess: str = "",
    seed: int | None = None,
    folder: str | Path | None = None,
) -> "Session":
    """Make the run of an experiment, not yet begun; refuse what cannot succeed."""
    from perfkit.questions.session import Session

    early = budget is None
    budget = default_budget() if budget is None else seconds("budget", budget)
    check_seed(seed)
    return Session(
        experiment,
        budget=budget,
        guess=guess,
        seed=seed,
        folder=home_of(folder),
        early=early,
    )


def home_of(folder: str | Path | None) -> Path | None:
    """Where findings are to go; None for where they usually go."""
    return Path(os.path.expanduser(folder)) if folder is not None else None


def watch_here(session: Watched[Found]) -> Found:
    """Watch it where the code runs; warn whoever called the verb of what is unsaved.

    What measures in a notebook has the live chart of a panel, if anywidget is there.
    """
    from perfkit.questions.session import Measurer

    has_widgets = in_notebook() and importlib.util.find_spec("anywidget") is not None
    if has_widgets and isinstance(session, Measurer):
        display: Display = importlib.import_module(_CELL).CellDisplay(session)
    else:
        display = display_here()
    finding = watch(session, display)
    if session.unsaved:
        warnings.warn(session.unsaved, stacklevel=3)
    return finding


def watch(session: Watched[Found], display: Display) -> Found:
    """Run a session to its end, drawing its progress; an interrupt is Stop.

    Raises:
        KeyboardInterrupt: It was interrupted before there was anything to keep.
        RunError: No trial could be started.
    """
    board = Board()
    with interrupt_is_stop() as interrupt, display, closing(session.events()) as events:
        try:
            for event in events:
                if interrupt.is_set():
                    session.stop()
                board.hear(event)
                display.hear(event, board)
        except RunError as error:
            if path := getattr(session.finding, "path", None):
                error.add_note(f"The measurements until then are in {path}.")
            raise
        display.show(board, at_once=True)
    if session.finding is not None:
        return session.finding
    if interrupt.is_set():
        raise KeyboardInterrupt("stopped before a trial ended, so nothing was kept.")
    raise RunError("The run ended before a trial did, so nothing was measured.")


def default_budget(usual: float | None = None) -> float:
    """Give the seconds of a run whose budget nobody gave: at first ``usual``."""
    if text := os.environ.get(BUDGET_VARIABLE, ""):
        return seconds(BUDGET_VARIABLE, text)
    if usual is not None:
        return usual
    return _WITH_GPU_S if gpus_here()[0] else USUAL_S


def check_seed(seed: int | None) -> None:
    """Raise ``BadParameterError`` for what NumPy and Keras take for no seed."""
    if seed is not None and (not isinstance(seed, int) or not 0 <= seed < 2**32):
        raise BadParameterError(
            f"seed is {seed!r}; give a whole number from 0 to {2**32 - 1}."
        )


def seconds(name: str, value: float | str) -> float:
    """Read what was given for a budget; ``BadParameterError`` if that is no time."""
    try:
        # True is a number to Python, and no time to anybody.
        seconds = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise BadParameterError(
            f"{name} is {value!r}; give the seconds to spend, such as 60."
        )
    return seconds


@contextmanager
def interrupt_is_stop() -> Iterator[threading.Event]:
    """Set an event at the first interrupt; a second one interrupts as usual."""
    interrupt = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    # Only the main thread may handle signals, and who ignores them wants to go on.
    if not main or before in (signal.SIG_IGN, None):
        yield interrupt
        return

    def stop(*_: object) -> None:
        interrupt.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
