"""The widgets of a panel, how they lie on the page, and a run drawn in them."""

import collections
import os
from base64 import b64encode
from html import escape
from typing import Any, Self

import ipywidgets as widgets

from perfkit import progress, units
from perfkit.engine.plan import Event, Prepared, TrialStarted, seconds_for
from perfkit.findings.page import findings_page
from perfkit.findings.record import Finding
from perfkit.findings.report import how_sure, in_html
from perfkit.findings.store import Recorded, finding_of, to_json
from perfkit.panel.browser import LiveChart, Points, page_data
from perfkit.panel.controls import Controls, boxed
from perfkit.progress import Board, Display
from perfkit.questions.base import Experiment
from perfkit.questions.replay import Replay
from perfkit.questions.runs import Watched
from perfkit.training.diagnose.rounds import LONGEST_S

# As many runs of a panel as are held in view.
_KEPT = 4
_ANSWERED = "perfkit-answered"


def charts(finding: Recorded) -> str:
    """The final charts: the first in sight, what explains it folded away below."""
    from perfkit.questions.gallery import chart, kinds

    first, *other_kinds = kinds(finding).items()
    folded = (
        f"<details><summary>{title}</summary>{chart(finding, kind).in_page()}</details>"
        for kind, title in other_kinds
    )
    return chart(finding, first[0]).in_page() + "".join(folded)


QUESTION = "What slows your training?"


def _introduction(experiment: Experiment | None, budget: float | None) -> str:
    """What is asked, what that costs, and each variant with its code as a chip.

    Without an experiment it is that of a diagnosis.
    """
    cost = f"At most {units.seconds(LONGEST_S)}."
    if budget is not None:
        tries = seconds_for(budget) if experiment and experiment.has_tries else 0.0
        cost = f"About {units.seconds(budget + tries)}."
    question, below = QUESTION, ""
    about = (
        "perfkit tries each change that may help, in fresh processes. Your code stays "
        "as it is."
    )
    if experiment is not None:
        question, variants = experiment.question, experiment.make_variants().values()
        about = f"{len(variants)} variants, in fresh processes."
        code = experiment.code
        chips = (_chip(v.name, v.changes, code.get(v.name, "")) for v in variants)
        group = '<div class="perfkit-chips" role="group" aria-label="Variants">'
        below = f"{group}{''.join(chips)}</div>"
    return (
        f'<p class="perfkit-question">{escape(question)}</p>'
        f'<p class="perfkit-cost">{escape(f"{about} {cost}")}</p>{below}'
    )


def _chip(name: str, changes: str, code: str) -> str:
    block = f'<pre tabindex="0">{escape(code)}</pre>' if code else ""
    hover = escape("\n\n".join(filter(None, (changes, code))))
    return (
        f'<details><summary title="{hover}">{escape(name)}</summary>'
        f"<p>{escape(changes)}</p>{block}</details>"
    )


class Runs:
    """The last runs of a panel: what was set, what came of it, and their files.

    Its ``table`` has the newest first; of one run only its links.
    """

    def __init__(self) -> None:
        self.table = widgets.HTML()
        self.table.add_class("perfkit-runs")
        # The cells of each, and its links.
        self._rows = collections.deque[tuple[str, str]](maxlen=_KEPT)
        self._count = 0

    def add(self, document: Recorded, settings: str) -> None:
        """Show one more run, with what was set."""
        self._count += 1
        verdict = document.verdict
        came = " ".join(filter(None, (verdict.headline, verdict.much)))
        texts = (settings, came, how_sure(verdict))
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in texts)
        row = f'<th scope="row">{self._count}</th>{cells}'
        self._rows.appendleft((row, downloads(document, f"run {self._count}")))
        if len(self._rows) < 2:
            self.table.value = f"<p>{self._rows[0][1]}</p>"
            return
        heads = ("run", "settings", "result", "how sure", "files")
        head = "".join(f'<th scope="col">{name}</th>' for name in heads)
        body = "".join(f"<tr>{row}<td>{links}</td></tr>" for row, links in self._rows)
        self.table.value = (
            '<div class="perfkit-scroll" role="group" aria-label="Runs" tabindex="0">'
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )


def downloads(document: Recorded, run: str) -> str:
    """Links to the page and to the finding that hold all of it: no server is asked."""
    stem = escape(document.path.stem if document.path else "finding")
    links = []
    for noun, end, kind, text in (
        ("page", "html", "text/html", findings_page([document])),
        ("finding", "json", "application/json", to_json(document)),
    ):
        links.append(
            f'<a download="{stem}.{end}" aria-label="Download {noun} of {run}" '
            f'href="data:{kind};base64,{b64encode(text.encode()).decode()}">'
            f"Download {noun}</a>"
        )
    return " \N{MIDDLE DOT} ".join(links)


def static_html(question: str, verb: str, document: Recorded | None) -> str:
    """What stands for a panel without a kernel: its report, or what to do."""
    if document is None:
        return (
            f"<p><b>{escape(question)}</b></p><p>No run yet. Run this notebook in "
            "JupyterLab, Jupyter Notebook or VS Code to use the panel; where it does "
            f"not appear, <code>{verb}(...)</code> does the same.</p>"
        )
    return document._repr_html_()


READY = "Ready: press Run."
RUNNING = "Running: wait, or press Stop, which keeps the results so far."
NOTHING = "Stopped before a trial ended, so there is nothing to keep."


class View:
    """What a reader sees and presses, with a sentence on what the panel does.

    ``asked`` is the question with its variants; ``settings`` says all that is set, and
    unfolds the controls; ``card`` is the report with its charts.
    """

    def __init__(self, controls: Controls) -> None:
        self._controls = controls
        self.asked, self.card = widgets.HTML(), widgets.HTML()
        self.chart, self.runs, self.box = LiveChart(), Runs(), widgets.VBox()
        self.box.add_class("perfkit-panel")
        self.run = _button("Run", "Measure with these settings")
        self.stop = _button("Stop", "End the run and keep its results")
        self.settings = widgets.ToggleButton(
            tooltip="Show or hide the settings", layout=widgets.Layout(width="auto")
        )
        self.settings.add_class("perfkit-settings")
        guess, folded = controls.by_name["guess"], controls.box()
        row = boxed("perfkit-buttons", self.run, self.stop, guess)
        self.settings.observe(lambda _: _unfold(self.settings, folded), "value")
        _unfold(self.settings, folded)
        above = (self.asked, row, self.settings, folded)
        self.box.children = (*above, self.chart, self.card, self.runs.table)
        self.enable(running=False)

    def ask(self, experiment: Experiment | None) -> None:
        """Show what is set, and what that asks."""
        self.asked.value = _introduction(experiment, self._controls.budget)
        self.settings.description = f"Settings: {self._controls.summary()}"

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.chart.state = state
        self.box.remove_class(_ANSWERED)

    def enable(self, *, running: bool) -> None:
        """Let one of the two be pressed and stand out; the panel looks as it is.

        Run keeps its place, so that a second click on it does not hit Stop.
        """
        settings = tuple(self._controls.by_name.values())
        for widget in settings:
            widget.disabled = running
        run, stop = self.run, self.stop
        run.disabled, stop.disabled = running, not running
        run.button_style = "" if running else "primary"
        stop.button_style = "primary" if running else ""
        stop.layout.display = "" if running else "none"
        run.description = "Run again" if self.card.value else "Run"
        (self.box.add_class if running else self.box.remove_class)("perfkit-at-work")
        _answer_at_once(*settings, run, stop, self.settings)

    def clear(self) -> None:
        """Take away what an earlier run found; its row and its files stay."""
        self.card.value = ""
        self.chart.clear()

    def show(self, document: Recorded) -> None:
        """Show what was found: its report, with its charts."""
        self.card.value = in_html(document.report, figure=charts(document))

    def conclude(self, document: Recorded, unsaved: str) -> str:
        """Say how a run ended, what came of it and why it is not saved; give that.

        The last sentence is left to the report that says it, and to screen readers.
        """
        ended = "Stopped." if document.stopped else "Finished."
        stamp = document.stamp or ended
        text = " ".join(filter(None, (stamp, document.verdict.headline, unsaved)))
        self.say(text)
        if not unsaved:
            self.box.add_class(_ANSWERED)
        return text


def _unfold(toggle: Any, folded: Any) -> None:
    """Show or hide what belongs to a toggle."""
    toggle.icon = "caret-down" if toggle.value else "caret-right"
    folded.layout.display = "" if toggle.value else "none"


def _answer_at_once(*pressed: Any) -> None:
    """Let a press be heard while a cell runs.

    From 7.4 on ipykernel sends what comes from a widget to the shell that last changed
    it: that of the cell, behind which it waits. Without that note it goes to the shell
    that JupyterLab has for widgets.
    """
    for widget in pressed:
        if widget.comm is not None:
            vars(widget.comm).pop("_reply_subshell_id", None)


def _button(label: str, tooltip: str) -> Any:
    layout = widgets.Layout(width="7.5em")
    return widgets.Button(description=label, tooltip=tooltip, layout=layout)


class ChartDisplay(Display):
    """Draws a run on a live chart, once its variants and its budget are known."""

    def __init__(self, session: Watched[Recorded], chart: LiveChart) -> None:
        super().__init__()
        self._session, self._chart = session, chart
        # A recorded run is told at once: nothing of it is drawn before it is over.
        self._is_replay = isinstance(session, Replay)
        self._prepared: Prepared | None = None
        self._points: Points | None = None
        self._ended = Board().doing

    def _begin(self) -> None:
        """Draw its rows, still empty."""
        session: Any = self._session
        if self._is_replay:
            cores, rows = session.machine.cores, [*session.experiment.make_variants()]
        else:
            cores, rows = os.cpu_count() or 1, session.variants
        self._points = Points(rows, cores)
        if self._prepared:
            self._points.hear(self._prepared)
        self._chart.begin(self._points, session.budget)

    def hear(self, event: Event, board: Board) -> None:
        """Take in what the run told, and draw it."""
        self._ended = board.doing
        if isinstance(event, Prepared):
            self._prepared = event
        if self._points is None and isinstance(event, TrialStarted):
            self._begin()
        if self._points is not None:
            self._points.hear(event)
        if self._points is None or not self._is_replay:
            self.show(board)

    def _draw(self, board: Board) -> None:
        doing = {"said": board.doing, "left": board.time_left, "share": board.share}
        if self._points is not None:
            self._chart.update(self._points, doing, self._finding)
        else:
            self._chart.doing = doing

    @property
    def _finding(self) -> Finding | None:
        document = self._session.finding
        return finding_of(document) if document else None

    def __exit__(self, *exception: object) -> None:
        """Leave the chart with its last points."""
        if self._points is not None:
            self._chart.finish(self._points, self._ended, self._finding)
        else:
            self._chart.doing = {}


_IN_CELL = (
    "Running: wait, or interrupt the kernel (\N{BLACK SQUARE}), which keeps the "
    "results so far."
)


class CellDisplay(ChartDisplay):
    """The live chart in the output of the running cell; it goes when the run ends."""

    _handle: Any = None

    def __init__(self, session: Watched[Recorded]) -> None:
        super().__init__(session, LiveChart(state=_IN_CELL))
        self._box = widgets.VBox((self._chart,))
        for name in ("perfkit-panel", "perfkit-at-work"):
            self._box.add_class(name)

    def __enter__(self) -> Self:
        """Show the chart below the cell."""
        from IPython.display import display

        # For a front end without widgets.
        waiting = Board(doing=_IN_CELL)
        texts = {
            "text/plain": progress.in_text(waiting),
            "text/html": progress.in_html(waiting),
        }
        data, metadata = page_data(self._box, self._chart)
        self._handle = display(  # type: ignore[no-untyped-call]
            data | texts, metadata=metadata, raw=True, display_id=True
        )
        return self

    def __exit__(self, *exception: object) -> None:
        """Take the chart away: what the cell gives back says all of it."""
        self._handle.update({}, raw=True)
        for widget in (self._box, self._chart):
            widget.layout.close()
            widget.close()
