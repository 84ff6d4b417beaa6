"""The panel of a fleet: press Run, watch every machine, read what each found."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from perfkit.errors import BadParameterError
from perfkit.experiments import experiment
from perfkit.experiments.base import Experiment
from perfkit.fleet import run
from perfkit.fleet.members import Gathered, Member, rows_in_html, summary
from perfkit.panel.controls import Controls, boxed, budget_control
from perfkit.panel.view import RunView
from perfkit.panel.worker import Measuring

if TYPE_CHECKING:
    from distributed import Client


class FleetView(RunView):
    """The panel of a fleet.

    Attributes:
        controls: What can be set, each a widget; ``"budget"`` is one of them.
        rows: A row per machine while it runs, as HTML.
        found: The closing table and the findings, as HTML.
    """

    def __init__(self, controls: dict[str, Any]) -> None:
        kept = "End the run and keep what comes home"
        super().__init__("Ask every machine of the fleet", kept)
        self.controls, self._waiting = controls, tuple(controls.values())
        self.rows, self.found = widgets.HTML(), widgets.HTML()
        settings = boxed("perfkit-controls", *controls.values())
        row = boxed("perfkit-buttons", self.run, self.stop)
        said = (self.chart, self.rows, self.found)
        self.box.children = (settings, row, *said)
        self.enable(running=False)

    def draw(self, rows: Sequence[Member]) -> None:
        """Show how far each machine is."""
        self.rows.value = rows_in_html(rows)
        self.say(f"Running: {summary(rows)}.")

    def show(self, gathered: Gathered | None) -> None:
        """Show what came home, in place of the rows."""
        self.rows.value = ""
        self.found.value = gathered._repr_html_() if gathered else ""


_PASSPORT = "passport"
_ABOUT = "What is each machine of the fleet, and how fast is each part of it?"
_READY = "Ready: Run asks every machine of the fleet."


class FleetPanel(Measuring[Gathered]):
    """Controls, Run, Stop, a row per machine, and what each of them found.

    Args:
        what: The experiment, or its name, or ``"passport"``.
        where: A scheduler's address, or a client that is connected to one.
        budget: The seconds at first.
        seed: Where random order and random numbers start; None draws one.
        folder: Where what comes home is saved.
        unfit: Whether something was given that a fleet does not take.
        **parameters: What the experiment's parameters are set to at first.

    Attributes:
        view: The widgets.
        gathered: What came home from the last run; None before.

    Raises:
        BadParameterError: A name or a value that is not accepted.
    """

    nothing = "Nobody was asked."

    def __init__(
        self,
        what: Any,
        where: "str | Client",
        *,
        budget: float | None,
        seed: int | None,
        folder: str | Path | None,
        unfit: bool,
        **parameters: Any,
    ) -> None:
        given = parameters and (what == _PASSPORT or isinstance(what, Experiment))
        if unfit or given or not isinstance(what, str | Experiment):
            raise BadParameterError(
                "With where=, a panel takes an experiment and its parameters, or "
                '"passport"; and besides budget, seed and folder.'
            )
        self._where, self._seed, self._folder = where, seed, folder
        self._controls: Controls | None = None
        if what == _PASSPORT:
            task, about = run.make_task(None, budget), _ABOUT
            widgets = {"budget": budget_control(task.budget)}
        else:
            chosen = experiment(what, **parameters) if isinstance(what, str) else what
            task, about = run.make_task(chosen, budget, seed), chosen.question
            self._controls = Controls(chosen, task.budget, "")
            # A guess is the reader's about one machine.
            widgets = dict(self._controls.by_name)
            del widgets["guess"]
        self.view = FleetView(widgets)
        self.gathered: Gathered | None = None
        self.view.say(_READY)
        super().__init__("fleet", self.view, about)

    def _known(self) -> Gathered | None:
        return self.gathered

    # What the worker does; only here are widgets changed.

    def _run(self) -> None:
        self.gathered = None
        self.view.show(None)
        self.view.say("Connecting.")
        chosen = self._controls.experiment() if self._controls else None
        budget = float(self.view.controls["budget"].value)
        task = run.make_task(chosen, budget, self._seed)
        opened = run.open_run(task, self._where, folder=self._folder)
        try:
            with self._stoppable(opened), closing(opened.events()) as events:
                for rows in events:
                    self.view.draw(rows)
        finally:
            self.gathered = opened.gathered()
            self.view.show(self.gathered)
        self.view.say(" ".join(self.gathered.closing()))
