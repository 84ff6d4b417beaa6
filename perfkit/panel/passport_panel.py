"""The panel of a machine's passport: press Run, look through the file, save it."""

from dataclasses import replace
from html import escape
from pathlib import Path

import ipywidgets as widgets

from perfkit import units
from perfkit.engine.launcher import launcher
from perfkit.errors import RunError
from perfkit.findings.store import save, to_json
from perfkit.findings.text import with_code
from perfkit.machines.record import Passport
from perfkit.machines.recording import (
    LONGEST_LABEL,
    NAMELESS,
    Recorder,
    check_label,
    new_file,
    new_recorder,
    own_names,
)
from perfkit.machines.report import preview
from perfkit.panel.controls import boxed, budget_control, labelled, text_control
from perfkit.panel.live_chart import LiveChart
from perfkit.panel.view import (
    RUNNING,
    RunView,
    answer_at_once,
    button,
    doing,
    download,
)
from perfkit.panel.worker import Measuring
from perfkit.progress import Board, Display


class PassportView(RunView):
    """The panel of a machine's passport.

    Attributes:
        budget: The seconds of the whole passport.
        label: What the machine is called.
        names: Whether the host's and the user's name are in the file.
        file: Where it is saved.
        save: Writes the file.
        saved: A link to the file that was saved.
        preview: What is in the file, as HTML.
        card: What was measured, as HTML.
        can_save: Whether there is a passport to save.
    """

    def __init__(self, budget: float, label: str, file: str, *, names: bool) -> None:
        super().__init__("Measure this machine")
        title = labelled("label", "A name for this machine")
        where = labelled("file", "The file to save it in (a path)")
        in_file = labelled("host and user name", "Put both names into the file")
        self.budget, self.label = budget_control(budget), text_control(label, **title)
        self.file = text_control(file, **where)
        self.names = widgets.Checkbox(value=names, **in_file)
        self.save = button("Save", "Write the file that is described below")
        self.saved, self.preview, self.card = (widgets.HTML() for _ in range(3))
        self.preview.add_class("perfkit-found")
        self._waiting = (self.budget, self.label, self.file, self.names)
        controls = boxed("perfkit-controls", *self._waiting)
        row = boxed("perfkit-buttons", self.run, self.stop, self.save)
        below = (self.chart, self.saved, self.preview, self.card)
        self.box.children = (controls, row, *below)
        self.can_save = False
        self.enable(running=False)

    def enable(self, *, running: bool) -> None:
        """Let pressed and changed be what has a meaning now."""
        super().enable(running=running)
        self.save.disabled = running or not self.can_save
        answer_at_once(self.save)

    def show(self, passport: Passport | None) -> None:
        """Show what a passport says, and all that its file would hold."""
        self.saved.value = ""
        self.card.value = passport._repr_html_() if passport else ""
        self.preview.value = _preview(passport) if passport else ""


def _preview(passport: Passport) -> str:
    """What is in the file: in words, and folded away below, letter by letter."""
    text = to_json(passport)
    lines = preview(passport, len(text.encode()), "the box `host and user name`")
    words = "<br>".join(with_code(escape(line)) for line in lines.splitlines())
    return (
        f"<p>{words}</p><details><summary>The whole file</summary>"
        '<div tabindex="0" style="max-height:30em;overflow:auto">'
        f'<pre style="white-space:pre-wrap;overflow-wrap:anywhere">{escape(text)}</pre>'
        "</div></details>"
    )


class _Progress(Display):
    """How far a whole passport is, which several runs are made for."""

    def __init__(self, chart: LiveChart, recorder: Recorder) -> None:
        super().__init__()
        self._chart, self._recorder = chart, recorder

    def _draw(self, board: Board) -> None:
        spent, budget = self._recorder.spent, self._recorder.budget
        overall = Board(doing=board.doing, spent=spent, expected=budget)
        self._chart.doing = doing(overall)


_QUESTION = "What is this machine, and how fast is each part of it?"
_READY = "Ready: press Run. No passport is written before you press Save."
_WHOLE = "Measured. Check the contents of the file, then press Save."
_FEW = "No training was measured: give Run more seconds, such as 180, or save this."
_STOPPED = "Stopped: the passport holds the results so far. Save writes it."
_LABEL, _FILE = "this machine", "this-machine.json"


class PassportPanel(Measuring[Passport]):
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

    verb = "perfkit.passport"

    def __init__(
        self,
        *,
        out: str | Path | None = None,
        budget: float | None = None,
        label: str = "",
        with_names: bool = False,
    ) -> None:
        seconds = new_recorder(budget=budget, label=label).budget
        file = Path(out or _FILE)
        label = label or (file.stem if out else _LABEL)
        self.view = PassportView(seconds, label, str(file), names=with_names)
        self._recorded: Passport | None = None
        self._saved: Path | None = None
        self.view.say(_READY)
        super().__init__("passport", self.view, _QUESTION)
        self.view.save.on_click(lambda _: self._ask(self._save))
        for control in (self.view.label, self.view.names):
            control.observe(lambda _: self._soon(self._show_again), "value")

    def _ipython_display_(self) -> None:
        # What takes long to load is loaded while the reader reads.
        launcher().warm()
        super()._ipython_display_()

    @property
    def passport(self) -> Passport | None:
        """What was measured, with the label and the names as they are set."""
        if self._recorded is None:
            return None
        host, user = own_names() if self.view.names.value else NAMELESS
        # One that is too long is refused by Run and by Save.
        label = check_label(self.view.label.value[:LONGEST_LABEL]) or _LABEL
        return replace(self._recorded, label=label, host=host, user=user)

    def _latest(self) -> Passport | None:
        return self.passport

    # What the worker does; only here are widgets changed.

    def _run(self) -> None:
        budget, label = float(self.view.budget.value), self.view.label.value
        recorder = new_recorder(budget=budget, label=label)
        self._recorded, self._saved, self.view.can_save = None, None, False
        self.view.show(None)
        self.view.say(RUNNING)
        try:
            with self._stoppable(recorder):
                passport = recorder.record(_Progress(self.view.chart, recorder))
        finally:
            self.view.chart.doing = {}
        if not passport.has_rates:
            nothing = f"Nothing was measured in {units.seconds(passport.budget_s)}."
            # It has the parameters of what began.
            begun = passport.parameters and not passport.stopped
            advice = ["Give it a larger budget."] if begun else []
            raise RunError(" ".join([nothing, *advice, *passport.missed]))
        self._recorded, self.view.can_save = passport, True
        self.view.show(self.passport)
        has_no_steps = not any(training.seconds for training in passport.trainings)
        self.view.say(
            _STOPPED if passport.stopped else _FEW if has_no_steps else _WHOLE
        )

    def _show_again(self) -> None:
        """Show the file anew where the label or the names were changed."""
        if self._recorded is not None and not self.running:
            self.view.show(self.passport)
            self.view.say("The contents of the file changed: check them, then Save.")

    def _save(self) -> None:
        passport, path = self.passport, Path(self.view.file.value).expanduser()
        if passport is None:
            return
        check_label(self.view.label.value)
        self._saved = save(
            passport, path=path if path == self._saved else new_file(path)
        )
        self.view.say(f"Saved as {self._saved.resolve()}")
        link = download(f"{path.stem}.json", to_json(passport), "passport")
        self.view.saved.value = f"<p>{link}</p>"
