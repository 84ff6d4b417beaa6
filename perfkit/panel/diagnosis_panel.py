"""The panel of a training of one's own: Run, watch, read, apply, measure again."""

from __future__ import annotations

import functools
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from perfkit.diagnosing import open_diagnosis
from perfkit.diagnosis.choosing import AS_GIVEN
from perfkit.diagnosis.maker import maker
from perfkit.displays import PERIOD_S
from perfkit.errors import PerfkitError, RunError
from perfkit.machine.collect import machine
from perfkit.measure.events import TrialStarted
from perfkit.panel.diagnosis_view import DiagnosisView
from perfkit.panel.page import no_run
from perfkit.panel.points import Points
from perfkit.panel.watching import NOTHING
from perfkit.panel.working import Measuring
from perfkit.progress import Board, in_text

if TYPE_CHECKING:
    from pathlib import Path

    from perfkit.diagnosis.replay import Replay
    from perfkit.diagnosis.session import DiagnosisSession
    from perfkit.findings.diagnosis import Diagnosis
    from perfkit.panel.live_chart import LiveChart

_QUESTION = "What slows your training?"
_READY = "Ready: press Run."


class DiagnosisPanel(Measuring):
    """Run, Stop, a live chart, the report, and a button that applies what it says.

    What is applied is applied in the trials only: your code is never changed.

    Attributes:
        view: The widgets.
        diagnosis: What the last diagnosis found; None if it found nothing.
        applied: What was found when marked swaps were measured again; None before.
    """

    what = "The run"

    def __init__(
        self,
        training: Any,
        *,
        budget: float | None,
        seed: int | None = None,
        folder: str | Path | None = None,
    ) -> None:
        self.view = DiagnosisView(budget)
        self.diagnosis: Diagnosis | None = None
        self.applied: Diagnosis | None = None
        # What is no training is refused before anything is shown.
        self._open = functools.partial(open_diagnosis, maker(training))
        self._seed, self._folder = seed, folder
        self.view.say(_READY)
        super().__init__("diagnosis", self.view, _QUESTION)
        self.view.run.on_click(lambda _: self.start())
        self.view.stop.on_click(lambda _: self.stop())
        self.view.apply.on_click(lambda _: self.apply())

    def __repr__(self) -> str:
        return repr(self.diagnosis) if self.diagnosis else "<the panel of a diagnosis>"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        static = self.diagnosis._repr_html_() if self.diagnosis else _STATIC
        bundle = {
            **self.view.box._repr_mimebundle_(),
            "text/html": static,
            "text/plain": repr(self),
        }
        display(bundle, raw=True)  # type: ignore[no-untyped-call]

    def start(self) -> None:
        """Diagnose, as Run does; nothing happens while something is measured."""
        self._ask(self._run)

    def apply(self) -> None:
        """Measure the marked swaps at once against the training as given."""
        if swaps := self.view.marked:
            self._ask(lambda: self._run(swaps))
        else:
            self._soon(lambda: self.view.say("Mark at least one swap to apply."))

    def result(self) -> Diagnosis:
        """Give what was found; it diagnoses first if nothing was found yet.

        Raises:
            PerfkitError: There is nothing to give; the sentence says why.
        """
        return self._got(lambda: self.diagnosis, NOTHING)

    # What the worker does; only here are widgets changed.

    def _run(self, swaps: tuple[str, ...] = ()) -> None:
        self.view.say("Running.")
        if not swaps:
            self.diagnosis = None
            self.view.clear()
        budget = str(self.view.budget.value).strip()
        session = self._open(budget, self._seed, self._folder, swaps)
        try:
            with self._stoppable(session):
                _watch(session, self.view.chart)
        finally:
            self._keep(session.finding, applied=bool(swaps))
        if session.finding is None:
            raise RunError(NOTHING)
        ended = "Stopped." if session.finding.stopped else "Finished."
        how = session.finding.finding.stamp or ended
        said = [how, session.finding.verdict, session.unsaved]
        self.view.say(" ".join(filter(None, said)))

    def _keep(self, found: Diagnosis | None, *, applied: bool) -> None:
        if applied:
            self.applied = found
            if found:
                self.view.show_applied(found)
        else:
            self.diagnosis = found
            if found:
                self.view.show(found)

    def _sentence(self, error: Exception) -> str:
        told = super()._sentence(error)
        if not isinstance(error, PerfkitError):
            return told
        # A training that raised has the traceback of its own code with it.
        return "\n".join((told, *getattr(error, "__notes__", ()))).strip()


_STATIC = f"<p><b>{_QUESTION}</b></p><p>{no_run('perfkit.diagnose')}</p>"


def _watch(session: DiagnosisSession | Replay, chart: LiveChart) -> None:
    """Run a diagnosis to its end; its arms are known once the training was looked at.

    Raises:
        RunError: The training cannot be run.
    """
    here, points = machine(), None
    board, drawn = Board(), 0.0
    try:
        with closing(session.events()) as events:
            for event in events:
                board.hear(event)
                if points is None and isinstance(event, TrialStarted):
                    names, gpus = session.arms, len(here.gpus)
                    budget = session.budget
                    points = Points(names, budget, here.cores_granted, gpus)
                    chart.begin(points, names, AS_GIVEN, budget)
                if points is None:
                    chart.state = board.doing
                    continue
                points.hear(event)
                if time.monotonic() - drawn >= PERIOD_S:
                    drawn = time.monotonic()
                    chart.update(points, _doing(board), lambda: in_text(board))
    finally:
        if points is not None:
            chart.finish(points, f"Live chart. {in_text(board)}.")


def _doing(board: Board) -> dict[str, Any]:
    return {"said": board.doing, "left": board.left, "share": board.share}
