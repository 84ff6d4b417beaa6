"""What panels share: one thing at a time, in a thread of its own, and Stop."""

import collections
import contextlib
import contextvars
import functools
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import ipywidgets as widgets

from perfkit.errors import PerfkitError, RunError
from perfkit.findings.shown import Shown
from perfkit.panel.view import NOTHING, RunView, static_html
from perfkit.questions.runs import BUDGET_VARIABLE, default_budget, interrupt_is_stop

_NO_THREAD = (
    "The system could not start it ({}): close other programs, then press again."
)


class Worker:
    """Does tasks in the order in which it is asked to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: collections.deque[Callable[[], object]] = collections.deque()
        self._lock = threading.Lock()
        self._at_work = False

    def ask(self, task: Callable[[], object]) -> None:
        """Let a task be done after those asked for before; returns at once.

        Raises:
            RunError: The system has no thread left for it; it is not done.
        """
        # In a context of its own a thread would not know which request of the page it
        # answers; some kernels send nothing then.
        context = contextvars.copy_context()
        with self._lock:
            self._tasks.append(functools.partial(context.run, task))
            if self._at_work:
                return
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._tasks.clear()
                raise RunError(_NO_THREAD.format(error)) from None
            self._at_work = True

    def _work(self) -> None:
        while task := self._next():
            try:
                task()
            # One task that fails must not take those after it along.
            except Exception:
                logging.getLogger(__name__).exception("A panel's task failed.")

    def _next(self) -> Callable[[], object] | None:
        with self._lock:
            self._at_work = bool(self._tasks)
            return self._tasks.popleft() if self._tasks else None


# By cell: the execution that made it, and the panel.
_panels: "dict[str, list[tuple[str, Measuring[Any]]]]" = {}


def take_over(panel: "Measuring[Any]", otherwise: str) -> None:
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


_SLICE_S = 0.1
# Stands below a panel, and is seen where a page was reloaded once the kernel was gone:
# there JupyterLab says that a model was not found, which tells nobody what to do. An
# exported page leaves it out: perfkit/findings/page/notebook.py.
_LOST = (Path(__file__).parent / "static" / "lost.html").read_text(encoding="utf-8")
Found = TypeVar("Found", bound=Shown)


class Stoppable(Protocol):
    """What takes long, and ends when it is told to."""

    def stop(self) -> None:
        """End it; callable from any thread."""


class Measuring(Generic[Found]):
    """A panel that measures in a thread of its own, until it is done or stopped.

    What it finds by that is ``Found``.

    Args:
        name: Of the panel.
        view: Its widgets.
        question: What it answers.

    Attributes:
        verb: The function that does the same without a panel.
    """

    verb = ""

    def __init__(self, name: str, view: RunView, question: str) -> None:
        self._stopped = threading.Event()
        self._measured: Stoppable | None = None
        if os.environ.get(BUDGET_VARIABLE):
            note = widgets.HTML(
                f'<p class="perfkit-cost">{BUDGET_VARIABLE} gives every panel here '
                f"{default_budget():g} s; you can change that for a run.</p>"
            )
            first, *controls = view.box.children
            view.box.children = (first, note, *controls)
        self._shown, self._question = view, question
        self._worker = Worker(f"perfkit-panel-{name}")
        self._starting = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._error: Exception | None = None
        self._message = ""
        self._display: Any = None
        take_over(self, name)
        view.run.on_click(lambda _: self.start())
        view.stop.on_click(lambda _: self.stop())

    def __repr__(self) -> str:
        result = self._latest()
        return repr(result) if result else f"<the panel of: {self._question}>"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        self._display = display(  # type: ignore[no-untyped-call]
            self._bundle(), raw=True, display_id=True
        )
        display({"text/html": _LOST, "text/plain": ""}, raw=True)  # type: ignore[no-untyped-call]
        self._shown.enable(running=self.running)

    @property
    def running(self) -> bool:
        """Whether it is at work."""
        return not self._idle.is_set()

    def start(self) -> None:
        """Do what its first button does; nothing happens while it is at work."""
        self._ask(self._run)

    def stop(self) -> None:
        """End the run, as Stop does; what was measured by then counts."""
        self._stopped.set()
        if self._measured is not None:
            self._measured.stop()

    def wait(self) -> None:
        """Return once it is not at work; an interrupt is Stop."""
        with interrupt_is_stop() as interrupted:
            while not self._idle.wait(_SLICE_S):
                if interrupted.is_set():
                    self.stop()

    def _ask(self, task: Callable[[], None]) -> None:
        """Let a task be done; nothing happens while another is."""
        with self._starting:
            if self.running:
                return
            # A Stop that was meant for what is over.
            self._stopped.clear()
            self._idle.clear()
        try:
            self._worker.ask(lambda: self._do(task))
        except RunError as error:
            self._error = error
            self._tell(str(error))
            self._idle.set()

    def _soon(self, task: Callable[[], None]) -> None:
        """Let a task be done that takes a moment, after what is being done."""
        try:
            self._worker.ask(lambda: self._try(task))
        except RunError as error:
            self._tell(str(error))

    def result(self) -> Found:
        """Give what was found.

        It waits for what is at work, and starts with what is set if nothing was found
        yet. Meanwhile a kernel interrupt is Stop, and so is the panel's own Stop, but
        before ipykernel 7 that one is heard only after the cell.

        Raises:
            PerfkitError: There is nothing to give; the sentence says why.
        """
        if self._latest() is None:
            self.start()
        self.wait()
        return self._require_result()

    def _require_result(self) -> Found:
        result = self._latest()
        if result is not None:
            return result
        error = self._error or PerfkitError(NOTHING)
        # Its sentence says it all; how the worker got there would bury it.
        is_sentence = isinstance(error, PerfkitError)
        raise error.with_traceback(None) if is_sentence else error

    def _latest(self) -> Found | None:
        """What was found; None if nothing was."""
        raise NotImplementedError

    # What the worker does; only here are widgets changed.

    def _run(self) -> None:
        """Do what the panel is there for."""
        raise NotImplementedError

    def _do(self, task: Callable[[], None]) -> None:
        try:
            self._error = None
            self._shown.enable(running=True)
            self._try(task)
            if self._display is not None:
                self._display.update(self._bundle(), raw=True)
        finally:
            try:
                # Not before: until it is idle a press of Run would not be heard.
                self._shown.enable(running=False)
            finally:
                self._idle.set()

    def _try(self, task: Callable[[], None]) -> None:
        try:
            task()
        # Files come from anywhere: whatever one of them does, the page stays usable.
        except Exception as error:
            self._error = error
            self._tell(self._sentence(error))

    def _tell(self, state: str) -> None:
        """Tell the reader one sentence, which stands until there is another."""
        self._message = state
        self._shown.say(state)

    def _bundle(self) -> dict[str, Any]:
        widget = self._shown.box._repr_mimebundle_()
        return {**widget, "text/html": self._static_html(), "text/plain": repr(self)}

    def _static_html(self) -> str:
        """What stands for the panel where there is no kernel, as HTML."""
        return static_html(self._question, self.verb, self._latest())

    def _sentence(self, error: Exception) -> str:
        if isinstance(error, PerfkitError):
            return str(error)
        return f"The run broke off: {type(error).__name__}: {error}."

    @contextlib.contextmanager
    def _stoppable(self, work: Stoppable) -> Iterator[None]:
        """Let Stop end this work, one that was pressed before it began, too."""
        self._measured = work
        if self._stopped.is_set():
            work.stop()
        try:
            yield
        finally:
            self._measured = None
