"""The panel of an experiment: set, predict, press Run, watch, press Stop, read."""

import functools
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from perfkit import units
from perfkit.engine.launcher import launcher
from perfkit.errors import BadParameterError, PerfkitError, RunError
from perfkit.findings.diagnosis import Cause, Diagnosis
from perfkit.findings.record import Finding
from perfkit.findings.report import Report, in_html
from perfkit.findings.store import Recorded
from perfkit.findings.text import one_line
from perfkit.machine.collect import machine
from perfkit.panel import view
from perfkit.panel.controls import Controls, auto_budget_control, boxed, guess_control
from perfkit.panel.passport_panel import PassportPanel
from perfkit.panel.view import (
    NOTHING,
    READY,
    RUNNING,
    Answering,
    View,
    answer_at_once,
    button,
    watch,
)
from perfkit.panel.worker import Measuring
from perfkit.questions import find_class
from perfkit.questions.base import Experiment
from perfkit.questions.replay import Replay, replay_from
from perfkit.questions.runs import (
    default_budget,
    experiment_of,
    open_replay,
    open_session,
    seconds,
)
from perfkit.questions.session import Session
from perfkit.training.diagnose.diagnose import in_seconds, open_diagnosis, with_guess
from perfkit.training.diagnose.maker import maker
from perfkit.training.diagnose.rounds import LONGEST_S
from perfkit.training.race.race import asked_for, open_race, to_race
from perfkit.training.race.sides import Asked, entrants

PASSPORT = "passport"
_PASSPORT_TAKES = ("out", "budget", "label", "with_names")
_READY_TO_REPLAY = "Ready: Run shows a recording and measures nothing."


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
) -> "Panel | DiagnosisPanel | PassportPanel":
    """Make a panel, which shows as the last line of a cell.

    Give it an experiment; or a function that makes your training, for a diagnosis with
    a button that applies its changes; or two functions, or one and another thing that
    differs (``env="TF_A=1"``), for a race. ``"passport"`` records this machine, and
    takes the arguments of ``perfkit.passport``.

    Nothing runs before you press Run. ``panel.result()`` in a later cell returns the
    result, and runs with these settings if there is none yet.

    Args:
        what: The name of an experiment, an experiment, the function of a training, or
            ``"passport"``.
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
    options: dict[str, Any] = {"guess": guess, "seed": seed, "folder": folder}
    if what == PASSPORT:
        settings = {"budget": budget, "replay": replay, **options, **parameters}
        settings = {
            n: value for n, value in settings.items() if value not in (None, "")
        }
        if unknown := ", ".join(sorted(settings.keys() - {*_PASSPORT_TAKES})):
            raise BadParameterError(
                f'The panel "{PASSPORT}" takes {", ".join(_PASSPORT_TAKES)}, but not '
                f"{unknown}."
            )
        return PassportPanel(**settings)
    if isinstance(what, str | Experiment):
        experiment = experiment_of(what, parameters)
        budget = default_budget() if budget is None else seconds("budget", budget)
        return Panel(experiment, budget=budget, replay=replay, **options)
    options["budget"] = in_seconds(budget)
    if others or parameters:
        request = asked_for((what, *others), **parameters)
        return RacePanel(request, replay=replay, **options)
    if replay:
        raise BadParameterError(
            "A diagnosis takes only budget, guess, seed and folder."
        )
    return DiagnosisPanel(what, **options)


class Panel(Measuring[Finding]):
    """One experiment's controls, Run, Stop, live chart and report.

    Attributes:
        controls: What can be set.
        view: The widgets.
        finding: What the last run found; None if it found nothing.
    """

    verb = "perfkit.run"
    # Whether the budget may be left to what is measured.
    is_auto = False

    def __init__(
        self,
        experiment: Experiment,
        *,
        budget: float | None,
        guess: str = "",
        seed: int | None = None,
        folder: str | Path | None = None,
        replay: str | Path | None = None,
    ) -> None:
        self.controls = Controls(experiment, budget, guess, auto=self.is_auto)
        self.view = View(self.controls)
        self.finding: Finding | None = None
        self._seed, self._folder, self._replay = seed, folder, replay
        self._ran_with: dict[str, str] | None = None
        self.view.ask(experiment)
        super().__init__(experiment.name, self.view, experiment.question)
        self._tell(_READY_TO_REPLAY if replay_from(replay) else READY)
        self.controls.on_change(lambda: self._soon(self._changed))

    def _ipython_display_(self) -> None:
        # What takes long to load is loaded while the reader reads.
        if not replay_from(self._replay):
            launcher().warm()
        self._soon(_load_charts)
        super()._ipython_display_()

    def reveal(self) -> str:
        """Say what its notebook let you decide first: a mystery's name, or claims.

        Raises:
            BadParameterError: There is no such thing in this run.
        """
        finding = self.result()
        answer = find_class(finding.experiment).reveal(finding)
        if not answer:
            raise BadParameterError(
                "This run holds no mystery and no claims to answer."
            )
        return answer

    def _latest(self) -> Finding | None:
        return self.finding

    # What the worker does; only here are widgets changed.

    def _run(self) -> None:
        self.finding = None
        self.view.clear()
        self.view.say(RUNNING)
        session = self._open()
        try:
            with self._stoppable(session):
                variants = session.experiment.make_variants
                watch(
                    session,
                    self.view.chart,
                    session.machine,
                    lambda: [variant.name for variant in variants().values()],
                    at_once=not self.is_auto,
                )
        finally:
            self.finding = session.finding
            if self.finding:
                self.view.show(self.finding)
        if self.finding is None:
            raise RunError(NOTHING)
        self._message = self.view.conclude(self.finding, session.unsaved)
        changes, self._ran_with = self._changes(), self.controls.described()
        self._changes()
        # Its page takes a moment, and nobody who waits for the result waits for it.
        finding = self.finding
        self._soon(lambda: self.view.runs.add(finding, changes))

    def _open(self) -> Session | Replay:
        experiment, guess = self.controls.experiment(), self.controls.guess
        return open_replay(
            experiment, self._replay, guess, self._folder
        ) or open_session(
            experiment, self.controls.budget, guess, self._seed, self._folder
        )

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
        # Its variants are offered as guesses.
        self.controls.by_name["guess"].options = tuple(experiment.make_variants())
        changes = ", ".join(self._changes())
        text = f"Changed since the last run: {changes}. Press Run again."
        self.view.say(text if changes else self._message)

    def _changes(self) -> tuple[str, ...]:
        """What was changed since the last run; it is marked, and nothing else is."""
        since = self._ran_with or self.controls.described()
        return self.controls.mark_changes(since)


class RacePanel(Panel):
    """The panel of a race: its sides are what was given, and the budget is set."""

    verb, is_auto = "perfkit.race", True

    def __init__(self, request: Asked, **options: Any) -> None:
        self._request = request
        sides = entrants(request)
        sides.close()
        super().__init__(to_race(sides.sides, request), **options)

    def _open(self) -> Session | Replay:
        return open_race(
            self._request,
            self.controls.budget,
            guess=self.controls.guess,
            seed=self._seed,
            folder=self._folder,
            replay=self._replay,
        )


def _load_charts() -> None:
    import perfkit.questions.gallery  # noqa: F401


_QUESTION = "What slows your training?"
_ASKED = (
    f'<p class="perfkit-question">{_QUESTION}</p><p class="perfkit-cost">perfkit tries '
    "each change that may help, in fresh processes. Your code stays as it is. With the "
    f"budget auto it takes at most {units.seconds(LONGEST_S)}.</p>"
)
_APPLY = "Apply the marked changes to a copy of your training, and measure both again"


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
        below = (self._marks, self.applied, self.runs.table)
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

    verb = "perfkit.diagnose"

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

    def _sentence(self, error: Exception) -> str:
        text = super()._sentence(error)
        if not isinstance(error, PerfkitError):
            return text
        # A training that raised has the traceback of its own code with it.
        return "\n".join((text, *getattr(error, "__notes__", ()))).strip()
