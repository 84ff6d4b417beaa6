"""The panel of a training of one's own: Run, watch, read, apply, measure again."""

import functools
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from perfkit import units
from perfkit.errors import PerfkitError, RunError
from perfkit.findings.diagnosis import Cause, Diagnosis
from perfkit.findings.report import Report, in_html
from perfkit.findings.store import Recorded
from perfkit.findings.text import one_line
from perfkit.machine.collect import machine
from perfkit.panel import view
from perfkit.panel.controls import auto_budget_control, boxed, guess_control
from perfkit.panel.view import NOTHING, Answering, answer_at_once, button, no_run
from perfkit.panel.worker import Measuring
from perfkit.training.diagnose.diagnose import open_diagnosis, with_guess
from perfkit.training.diagnose.maker import maker
from perfkit.training.diagnose.rounds import LONGEST_S

_QUESTION = "What slows your training?"
_ASKED = (
    f'<p class="perfkit-question">{_QUESTION}</p><p class="perfkit-cost">Each change '
    "that may speed it up is measured, in fresh processes; your code stays as it is. "
    f"With the budget auto at most {units.seconds(LONGEST_S)}.</p>"
)
_APPLY = "Apply the marked changes to copies of your training, and measure both again"


class DiagnosisView(Answering):
    """The panel of a training of one's own.

    Attributes:
        budget: The seconds of a run; None for as many as it needs.
        guess: What the reader expects.
        choices: A box to mark per cause that can be applied, by the change's name.
        apply: Measures what is marked against the training as given.
        applied: What that brought, as HTML.
    """

    def __init__(self, budget: float | None, guess: str = "") -> None:
        super().__init__("Diagnose the training")
        self.guess = guess_control(guess, "such as 2x")
        self.budget, self.applied = auto_budget_control(budget), widgets.HTML()
        self.choices: dict[str, Any] = {}
        self.apply = button("Apply and measure again", _APPLY)
        self.apply.layout.width = "15em"
        self._marks = widgets.VBox()
        pressed = (self.run, self.stop, self.guess, self.budget)
        row = boxed("perfkit-buttons", *pressed)
        parts = (widgets.HTML(_ASKED), row, self.chart, self.card)
        below = (self._marks, self.applied, self.runs.widget)
        self.box.children = (*parts, *below)
        self.enable(running=False)

    @property
    def marked(self) -> tuple[str, ...]:
        """The changes that are marked."""
        return tuple(name for name, box in self.choices.items() if box.value)

    def enable(self, *, running: bool) -> None:
        """Let pressed and changed be what has a meaning now."""
        self._waiting = (self.guess, self.budget, *self.choices.values())
        super().enable(running=running)
        self.apply.disabled = running or not self.choices
        answer_at_once(self.apply)

    def clear(self) -> None:
        """Take away what an earlier diagnosis found."""
        super().clear()
        self.applied.value = ""
        self.choices, self._marks.children = {}, ()

    def show(self, document: Recorded) -> None:
        """Show the report, its charts, and what of it can be applied."""
        super().show(document)
        assert isinstance(document, Diagnosis)
        offered = [cause for cause in document.causes if _can_be_applied(cause)]
        self.choices = {cause.change: _choice(cause) for cause in offered}
        codes = (escape(cause.to_type) for cause in offered)
        lines = (widgets.HTML(f"<pre>{code}</pre>") for code in codes)
        pairs = zip(self.choices.values(), lines, strict=True)
        rows = [widgets.VBox(pair) for pair in pairs]
        self._marks.children = (*rows, self.apply) if rows else ()

    def show_applied(self, diagnosis: Diagnosis) -> None:
        """Show what the marked changes brought when they were measured again."""
        # The verdict alone: its report stands above.
        answer = Report(verdict=replace(diagnosis.verdict, because=(), next=""))
        again = f"<p><b>Measured again</b></p>{in_html(answer)}"
        self.applied.value = again + view.charts(diagnosis)


def _can_be_applied(cause: Cause) -> bool:
    """Whether a change takes it away, and one that a training can keep."""
    return bool(cause.change) and cause.cause != "input-bound"


def _choice(cause: Cause) -> Any:
    gain = cause.speedup
    ratio = units.ratio(gain.estimate) if gain.is_known else units.UNKNOWN
    label = f"{one_line(cause.do, 100)} ({ratio})"
    layout = widgets.Layout(width="100%")
    wide = {"description_width": "0"}
    defect = cause.kind == "defect"
    return widgets.Checkbox(defect, description=label, style=wide, layout=layout)


class DiagnosisPanel(Measuring[Diagnosis]):
    """Run, Stop, a live chart, the report, and a button that applies what it says.

    What is applied is applied in the trials only: your code is never changed.

    Attributes:
        view: The widgets.
        diagnosis: What the last diagnosis found; None if it found nothing.
        applied: What was found when marked changes were measured again; None before.
    """

    subject = "The run"
    nothing = NOTHING

    def __init__(
        self,
        training: Any,
        *,
        budget: float | None,
        guess: str = "",
        seed: int | None = None,
        folder: str | Path | None = None,
    ) -> None:
        self.view = DiagnosisView(budget, guess)
        self.diagnosis: Diagnosis | None = None
        self.applied: Diagnosis | None = None
        # What is no training is refused before anything is shown.
        self._open = functools.partial(open_diagnosis, maker(training))
        self._seed, self._folder = seed, folder
        self.view.say(view.READY)
        super().__init__("diagnosis", self.view, _QUESTION)
        self.view.apply.on_click(lambda _: self.apply())
        self._sign(self.view.runs)

    def apply(self) -> None:
        """Measure the marked changes at once against the training as given."""
        if changes := self.view.marked:
            self._ask(lambda: self._run(changes))
        else:
            self._soon(lambda: self.view.say("Mark at least one change to apply."))

    def _latest(self) -> Diagnosis | None:
        return self.diagnosis

    # What the worker does; only here are widgets changed.

    def _run(self, changes: tuple[str, ...] = ()) -> None:
        self.view.say(view.RUNNING)
        self.applied, self.view.applied.value = None, ""
        if not changes:
            self.diagnosis = None
            self.view.clear()
        budget = str(self.view.budget.value).strip()
        session = self._open(budget, self._seed, self._folder, changes)
        try:
            with self._stoppable(session):
                view.watch(
                    session,
                    self.view.chart,
                    machine(),
                    lambda: session.variants,
                    at_once=False,
                )
        finally:
            self._keep(session.finding, applied=bool(changes))
        if session.finding is None:
            raise RunError(NOTHING)
        self.view.conclude(session.finding, session.unsaved)
        diagnosis = (self.applied if changes else self.diagnosis) or session.finding
        self._soon(lambda: self.view.runs.add(diagnosis, changes))

    def _keep(self, diagnosis: Diagnosis | None, *, applied: bool) -> None:
        if applied:
            self.applied = diagnosis
            if diagnosis:
                self.view.show_applied(diagnosis)
        else:
            guess = self.view.guess.value.strip()
            self.diagnosis = diagnosis and with_guess(diagnosis, guess)
            if self.diagnosis:
                self.view.show(self.diagnosis)

    def _static_html(self) -> str:
        question = f"<p><b>{_QUESTION}</b></p><p>{no_run('perfkit.diagnose')}</p>"
        return self.diagnosis._repr_html_() if self.diagnosis else question

    def _sentence(self, error: Exception) -> str:
        text = super()._sentence(error)
        if not isinstance(error, PerfkitError):
            return text
        # A training that raised has the traceback of its own code with it.
        return "\n".join((text, *getattr(error, "__notes__", ()))).strip()
