"""The panel of a machine's passport: press Run, look through the file, save it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.errors import RunError
from perfkit.measure.launcher import launcher
from perfkit.panel.passport_view import PassportView
from perfkit.panel.working import Measuring
from perfkit.passports import saving
from perfkit.recording.passport import ready

if TYPE_CHECKING:
    from perfkit.passports.record import Passport

_QUESTION = "What is this machine, and how fast is each part of it?"
_READY = "Ready: press Run. No passport is written before you press Save."
_WHOLE = "Measured. Look through what is in the file, then press Save."
_FEW = "No training was measured: give Run more seconds, such as 180, or save this."
_STOPPED = "Stopped: the passport holds what was measured by then. Save writes it."
_LABEL, _FILE = "this machine", "this-machine.json"


class PassportPanel(Measuring):
    """Run, Stop, progress, a preview of the whole file, and Save.

    Args:
        out: The file to save it as, at first; None for one in this folder.
        budget: The seconds at first; 180 unless PERFKIT_BUDGET says otherwise.
        label: What to call the machine, at first.
        with_names: Whether the host's and the user's name are in it, at first.

    Attributes:
        view: The widgets.

    Raises:
        BadParameterError: A value that is not accepted.
    """

    def __init__(
        self,
        *,
        out: str | Path | None = None,
        budget: float | None = None,
        label: str = "",
        with_names: bool = False,
    ) -> None:
        seconds = ready(None, budget=budget, label=label).budget
        file = Path(out) if out else Path(_FILE)
        called = label or (file.stem if out else _LABEL)
        self.view = PassportView(seconds, called, str(file), names=with_names)
        self._made: Passport | None = None
        self._saved: Path | None = None
        self.view.say(_READY)
        super().__init__("passport", self.view, _QUESTION)
        self.view.run.on_click(lambda _: self.start())
        self.view.stop.on_click(lambda _: self.stop())
        self.view.save.on_click(lambda _: self._ask(self._save))
        for told in (self.view.label, self.view.names):
            told.observe(lambda _: self._soon(self._told_again), "value")

    def __repr__(self) -> str:
        return repr(self.passport) if self.passport else super().__repr__()

    def _ipython_display_(self) -> None:
        # What takes long to load is loaded while the reader reads.
        launcher().warm()
        super()._ipython_display_()

    @property
    def passport(self) -> Passport | None:
        """What was measured, with the label and the names as they are set."""
        if self._made is None:
            return None
        host, user = self._names()
        label = ready(None, label=self.view.label.value).label
        return replace(self._made, label=label, host=host, user=user)

    def start(self) -> None:
        """Measure with what is set, as Run does; nothing happens during a run."""
        self._ask(self._run)

    def result(self) -> Passport:
        """Give the passport; it measures first if nothing was measured yet.

        Raises:
            PerfkitError: There is nothing to give; the sentence says why.
        """
        nothing = "Stopped before anything was measured."
        return self._got(lambda: self.passport, nothing)

    def _names(self) -> tuple[str, str]:
        return ready(None, with_names=self.view.names.value).names

    # What the worker does; only here are widgets changed.

    def _run(self) -> None:
        label = self.view.label.value
        making = ready(None, budget=float(self.view.budget.value), label=label)
        self._made, self._saved, self.view.can_save = None, None, False
        self.view.show(None)
        self.view.say("Running.")
        try:
            with self._stoppable(making):
                self.view.status.begin(making.budget, lambda: making.spent)
                making.make(self.view.status)
        finally:
            self.view.status.end()
        made = making.passport()
        if not (made.rungs or made.trainings):
            raise RunError(" ".join(("Nothing was measured.", *made.missed)))
        self._made, self.view.can_save = made, True
        self.view.show(self.passport)
        few = not any(one.seconds for one in made.trainings)
        self.view.say(_STOPPED if made.stopped else _FEW if few else _WHOLE)

    def _told_again(self) -> None:
        """Show the file anew where the label or the names were changed."""
        if self._made is not None and not self.running:
            self.view.show(self.passport)
            self.view.say("What is in the file changed: look through it, then Save.")

    def _save(self) -> None:
        passport, path = self.passport, Path(self.view.file.value).expanduser()
        if passport is None:
            return
        if path != self._saved:
            ready(path)
        self._saved = saving.save(passport, path)
        self.view.say(f"Saved as {self._saved.resolve()}")

    def _twin(self) -> str:
        return self.passport._repr_html_() if self.passport else super()._twin()
