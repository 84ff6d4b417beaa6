"""The panel of a run: set, predict, press Run, watch, press Stop, read."""

import contextlib
import contextvars
import functools
import importlib
import logging
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfkit.engine.launcher import launcher
from perfkit.errors import BadParameterError, PerfkitError, RunError
from perfkit.findings.record import Finding
from perfkit.findings.store import Recorded
from perfkit.panel.browser import LOST, page_data
from perfkit.panel.controls import Controls
from perfkit.panel.view import (
    NOTHING,
    QUESTION,
    READY,
    RUNNING,
    ChartDisplay,
    View,
    static_html,
)
from perfkit.progress import Board
from perfkit.questions import find_class
from perfkit.questions.base import Experiment
from perfkit.questions.replay import replay_from
from perfkit.questions.runs import (
    Watched,
    default_budget,
    experiment_of,
    interrupt_is_stop,
    open_replay,
    open_session,
    seconds,
)
from perfkit.training.diagnose.diagnose import in_seconds, open_diagnosis
from perfkit.training.diagnose.maker import maker
from perfkit.training.race.race import asked_for, open_race, to_race
from perfkit.training.race.sides import entrants

_READY_TO_REPLAY = "Ready: Run shows a recording and measures nothing."
_SLICE_S = 0.1
_NO_THREAD = (
    "The system could not start it ({}): close other programs, then press again."
)


def panel(
    what: str | Experiment | Callable[[], Any],
    /,
    *others: Callable[[], Any],
    budget: float | None = None,
    guess: str = "",
    seed: int | None = None,
    folder: str | Path | None = None,
    replay: str | Path | None = None,
    **parameters: Any,
) -> "Panel":
    """Make a panel, which shows as the last line of a cell.

    Give it an experiment; or a function that makes your training, for a diagnosis; or
    two functions, or one and another thing that differs (``env="TF_A=1"``), for a race.

    Nothing runs before you press Run. ``panel.result()`` in a later cell returns the
    result, and runs with these settings if there is none yet.

    Args:
        what: The name of an experiment, an experiment, or the function of a training.
        budget: Seconds to start with: 60, or 180 with a GPU; a diagnosis and a race
            take as many as they need. PERFKIT_BUDGET overrides all of these.
        guess: The guess to start with.
        seed: Where random order and random numbers start; None draws one.
        folder: Where findings are saved; None for ``perfkit-findings`` here.
        replay: A recorded finding that Run shows instead of measuring: its file, its
            folder, or "1" for perfkit's own. None follows PERFKIT_REPLAY, "" always
            measures.
        *others: More functions, to race with the first.
        **parameters: The experiment's parameters to start with; for a race, the
            arguments of ``perfkit.race``.

    Raises:
        BadParameterError: A name or a value that the experiment does not accept.
    """
    if isinstance(what, str | Experiment):
        experiment = experiment_of(what, parameters)
        controls = Controls(
            experiment,
            default_budget() if budget is None else seconds("budget", budget),
            guess,
        )

        def open_run() -> Watched[Any]:
            current = controls.experiment()
            assert current is not None
            return open_replay(current, replay, controls.guess, folder) or open_session(
                current, controls.budget, controls.guess, seed, folder
            )

        return Panel(experiment, "perfkit.run", controls, open_run, replay)
    budget = in_seconds(budget)
    if others or parameters:
        request = asked_for((what, *others), **parameters)
        sides = entrants(request)
        sides.close()
        race = to_race(sides.sides, request)
        controls = Controls(race, budget, guess, auto=True)

        def open_sides() -> Watched[Any]:
            return open_race(
                request,
                controls.budget,
                guess=controls.guess,
                seed=seed,
                folder=folder,
                replay=replay,
            )

        return Panel(race, "perfkit.race", controls, open_sides, replay)
    if replay:
        raise BadParameterError(
            "A diagnosis takes only budget, guess, seed and folder."
        )
    # What is no training is refused before anything is shown.
    make, controls = maker(what), Controls(None, budget, guess, auto=True)

    def open_training() -> Watched[Any]:
        return open_diagnosis(make, controls.budget, seed, folder, guess=controls.guess)

    return Panel(None, "perfkit.diagnose", controls, open_training, replay)


class Worker:
    """Does tasks in the order in which it is asked to, in a thread of its own."""

    def __init__(self, name: str) -> None:
        self._name, self._lock, self._is_started = name, threading.Lock(), False
        self._tasks: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    def ask(self, task: Callable[[], object]) -> None:
        """Let a task be done after those asked for before; returns at once.

        Raises:
            RunError: The system has no thread left for it; it is not done.
        """
        with self._lock:
            if not self._is_started:
                work = threading.Thread(target=self._work, name=self._name, daemon=True)
                try:
                    work.start()
                except RuntimeError as error:
                    raise RunError(_NO_THREAD.format(error)) from None
                self._is_started = True
        # In a context of its own a task would not know which request of the page it
        # answers; some kernels send nothing then.
        self._tasks.put(functools.partial(contextvars.copy_context().run, task))

    def _work(self) -> None:
        while True:
            try:
                self._tasks.get()()
            # One task that fails must not take those after it along.
            except Exception:
                logging.getLogger(__name__).exception("A panel's task failed.")


class Panel:
    """Controls, Run, Stop, the live chart and the report of what is measured.

    It measures in a thread of its own, one thing at a time, until that is done or
    stopped. ``finding`` is what the last run found; None if it found nothing.

    There is no experiment for a diagnosis. The ``verb`` names the function that does
    the same without a panel; ``opening`` makes the run that is set, not yet begun.
    """

    def __init__(
        self,
        experiment: Experiment | None,
        verb: str,
        controls: Controls,
        opening: Callable[[], Watched[Any]],
        replay: str | Path | None,
    ) -> None:
        self.controls, self.view = controls, View(controls)
        self.finding: Recorded | None = None
        self._verb, self._open, self._replays = verb, opening, bool(replay_from(replay))
        self._ran_with = ""
        self._question = experiment.question if experiment else QUESTION
        name = experiment.name if experiment else "diagnosis"
        self._stopped = threading.Event()
        self._session: Watched[Any] | None = None
        self._worker = Worker(f"perfkit-panel-{name}")
        self._starting = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._error: Exception | None = None
        self._message = ""
        self._display: Any = None
        self.view.ask(experiment)
        take_over(self, name)
        self.view.run.on_click(lambda _: self.start())
        self.view.stop.on_click(lambda _: self.stop())
        self._tell(_READY_TO_REPLAY if self._replays else READY)
        self.controls.on_change(lambda: self._soon(self._changed))

    def __repr__(self) -> str:
        return repr(self.finding) if self.finding else f"<panel: {self._question}>"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        # What takes long to load is loaded while the reader reads.
        if not self._replays:
            launcher().warm()
        self._soon(lambda: importlib.import_module("perfkit.questions.gallery"))
        data, metadata = self._bundle()
        self._display = display(  # type: ignore[no-untyped-call]
            data, metadata=metadata, raw=True, display_id=True
        )
        display(LOST, raw=True)  # type: ignore[no-untyped-call]
        self.view.enable(running=self.running)

    @property
    def running(self) -> bool:
        """Whether it is at work."""
        return not self._idle.is_set()

    def start(self) -> None:
        """Do what Run does; nothing happens while it is at work."""
        with self._starting:
            if self.running:
                return
            # A Stop that was meant for what is over.
            self._stopped.clear()
            self._idle.clear()
        try:
            self._worker.ask(self._do)
        except RunError as error:
            self._error = error
            self._tell(str(error))
            self._idle.set()

    def stop(self) -> None:
        """End the run, as Stop does; what was measured by then counts."""
        self._stopped.set()
        if self._session is not None:
            self._session.stop()

    def wait(self) -> None:
        """Return once it is not at work; an interrupt is Stop."""
        with interrupt_is_stop() as interrupted:
            while not self._idle.wait(_SLICE_S):
                if interrupted.is_set():
                    self.stop()

    def result(self) -> Recorded:
        """Give what was found.

        It waits for what is at work, and starts with what is set if nothing was found
        yet. Meanwhile a kernel interrupt is Stop, and so is the panel's own Stop, but
        before ipykernel 7 that one is heard only after the cell.

        Raises:
            PerfkitError: There is nothing to give; the sentence says why.
        """
        if self.finding is None:
            self.start()
        self.wait()
        return self._require_result()

    def _require_result(self) -> Recorded:
        if self.finding is not None:
            return self.finding
        error = self._error or PerfkitError(NOTHING)
        # Its sentence says it all; how the worker got there would bury it.
        is_sentence = isinstance(error, PerfkitError)
        raise error.with_traceback(None) if is_sentence else error

    def reveal(self) -> str:
        """Say what its notebook let you decide first: a mystery's name, or claims.

        Raises:
            BadParameterError: There is no such thing in this run.
        """
        finding, answer = self.result(), ""
        if isinstance(finding, Finding):
            answer = find_class(finding.experiment).reveal(finding)
        if not answer:
            raise BadParameterError(
                "This run holds no mystery and no claims to answer."
            )
        return answer

    # What the worker does; only here are widgets changed.

    def _soon(self, task: Callable[[], object]) -> None:
        """Let a task be done that takes a moment, after what is being done."""
        try:
            self._worker.ask(lambda: self._try(task))
        except RunError as error:
            self._tell(str(error))

    def _do(self) -> None:
        try:
            self._error = None
            self.view.enable(running=True)
            self._try(self._run)
            if self._display is not None:
                data, metadata = self._bundle()
                self._display.update(data, metadata=metadata, raw=True)
        finally:
            try:
                # Not before: until it is idle a press of Run would not be heard.
                self.view.enable(running=False)
            finally:
                self._idle.set()

    def _try(self, task: Callable[[], object]) -> None:
        try:
            task()
        except PerfkitError as error:
            self._error = error
            # A training that raised has the traceback of its own code with it.
            lines = (str(error), *getattr(error, "__notes__", ()))
            self._tell("\n".join(lines).strip())
        # Files come from anywhere: whatever one of them does, the page stays usable.
        except Exception as error:
            self._error = error
            self._tell(f"The run broke off: {type(error).__name__}: {error}.")

    def _run(self) -> None:
        self.finding = None
        self.view.clear()
        self.view.say(RUNNING)
        session = self._session = self._open()
        # One that was pressed before it began counts, too.
        if self._stopped.is_set():
            session.stop()
        board, display = Board(), ChartDisplay(session, self.view.chart)
        try:
            with display, contextlib.closing(session.events()) as events:
                for event in events:
                    board.hear(event)
                    display.hear(event, board)
        finally:
            self._session = None
            if session.finding is not None:
                self.finding = session.finding
                self.view.show(self.finding)
        if self.finding is None:
            raise RunError(NOTHING)
        self._message = self.view.conclude(self.finding, session.unsaved)
        finding, settings = self.finding, self.controls.summary()
        self._ran_with = settings
        # Its page takes a moment, and nobody who waits for the result waits for it.
        self._soon(lambda: self.view.runs.add(finding, settings))

    def _changed(self) -> None:
        """Say what a changed setting means; it never starts a run."""
        if self.running:
            return
        try:
            experiment = self.controls.experiment()
            self.view.ask(experiment)
        except BadParameterError as error:
            self.view.say(str(error))
            return
        if experiment is not None:
            # Its variants are offered as guesses.
            self.controls.by_name["guess"].options = tuple(experiment.make_variants())
        changed = self._ran_with not in ("", self.controls.summary())
        text = "Changed since the last run: press Run again."
        self.view.say(text if changed else self._message)

    def _tell(self, state: str) -> None:
        """Tell the reader one sentence, which stands until there is another."""
        self._message = state
        self.view.say(state)

    def _bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What shows the panel on a page: data by type, and metadata."""
        data, metadata = page_data(self.view.box, self.view.chart)
        static = static_html(self._question, self._verb, self.finding)
        return data | {"text/html": static, "text/plain": repr(self)}, metadata


# By cell: the execution that made it, and the panel.
_panels: dict[str, list[tuple[str, Panel]]] = {}


def take_over(panel: Panel, otherwise: str) -> None:
    """Stop what earlier runs of this cell made, and remember what this one makes.

    ``otherwise`` stands for the cell where the front end does not tell it.
    """
    cell, execution = running_cell()
    entries = _panels.get(cell or otherwise, [])
    old = [earlier for by, earlier in entries if by != execution or not execution]
    for earlier in old:
        earlier.stop()
    for earlier in old:
        earlier.wait()
    remaining = [(by, earlier) for by, earlier in entries if earlier not in old]
    _panels[cell or otherwise] = [*remaining, (execution, panel)]


def running_cell() -> tuple[str, str]:
    """The id of the running cell and that of its execution; "" where unknown."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    request: dict[str, Any] = getattr(shell, "get_parent", dict)()
    cell = request.get("metadata", {}).get("cellId", "")
    return str(cell), str(request.get("header", {}).get("msg_id", ""))
