"""The widgets of a panel and how they lie on the page."""

import collections
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from html import escape
from typing import Any

import ipywidgets as widgets

from perfkit import units
from perfkit.engine.plan import Event, Prepared, TrialStarted, seconds_for
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.page.page import findings_page
from perfkit.findings.record import Finding
from perfkit.findings.report import how_sure, in_html
from perfkit.findings.shown import Shown
from perfkit.findings.store import Recorded, finding_of, to_json
from perfkit.machine.record import Machine
from perfkit.panel.controls import Controls, boxed
from perfkit.panel.live_chart import LiveChart, Points
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


def introduction(experiment: Experiment, budget: float | None) -> str:
    """What is asked, what that costs, and each variant with its code as a chip."""
    variants, code = experiment.make_variants(), experiment.code
    if budget is None:
        cost = f"At most {units.seconds(LONGEST_S)}"
    else:
        tries = seconds_for(budget) if experiment.has_tries else 0.0
        cost = f"About {units.seconds(budget + tries)}"
    about = f"{len(variants)} variants, in fresh processes. {cost}."
    chips = (_chip(v.name, v.changes, code.get(v.name, "")) for v in variants.values())
    return (
        f'<p class="perfkit-question">{escape(experiment.question)}</p>'
        f'<p class="perfkit-cost">{about}</p><div class="perfkit-chips" role="group" '
        f'aria-label="Variants">{"".join(chips)}</div>'
    )


def _chip(name: str, changes: str, code: str) -> str:
    block = f'<pre tabindex="0">{escape(code)}</pre>' if code else ""
    hover = escape("\n\n".join(filter(None, (changes, code))))
    return (
        f'<details><summary title="{hover}">{escape(name)}</summary>'
        f"<p>{escape(changes)}</p>{block}</details>"
    )


class Runs:
    """The last runs of a panel: what was changed, what came of it, and their files.

    Attributes:
        table: The runs, the newest first; of one run only its links.
    """

    def __init__(self) -> None:
        self.table = widgets.HTML()
        self.table.add_class("perfkit-runs")
        # The cells of each, and its links.
        self._rows = collections.deque[tuple[str, str]](maxlen=_KEPT)
        self._count = 0

    def add(self, document: Recorded, changes: Iterable[str]) -> None:
        """Show one more run, with what had been changed since the one before it."""
        self._count += 1
        verdict = document.verdict
        came = " ".join(filter(None, (verdict.headline, verdict.much)))
        changed = ", ".join(changes) or ("nothing" if self._rows else "first run")
        texts = (changed, came, how_sure(verdict))
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in texts)
        row = f'<th scope="row">{self._count}</th>{cells}'
        self._rows.appendleft((row, downloads(document, f"run {self._count}")))
        if len(self._rows) < 2:
            self.table.value = f"<p>{self._rows[0][1]}</p>"
            return
        heads = ("run", "change", "result", "how sure", "files")
        head = "".join(f'<th scope="col">{name}</th>' for name in heads)
        body = "".join(f"<tr>{row}<td>{links}</td></tr>" for row, links in self._rows)
        self.table.value = (
            '<div class="perfkit-scroll" role="group" aria-label="Runs" tabindex="0">'
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )


def downloads(document: Recorded, run: str) -> str:
    """Links to the page and to the finding that hold all of it."""
    stem = document.path.stem if document.path else "finding"
    page = download(f"{stem}.html", findings_page([document]), run=run)
    file = download(f"{stem}.json", to_json(document), "finding", run=run)
    return f"{page} \N{MIDDLE DOT} {file}"


def download(name: str, text: str, noun: str = "page", run: str = "") -> str:
    """A link that saves this text under this name: no server is asked."""
    kind = "text/html" if name.endswith(".html") else "application/json"
    label = f"Download {noun}{run and f' of {run}'}"
    return (
        f'<a download="{escape(name)}" aria-label="{escape(label)}" '
        f'href="data:{kind};base64,{b64encode(text.encode()).decode()}">'
        f"Download {noun}</a>"
    )


def static_html(question: str, verb: str, document: Shown | None) -> str:
    """What stands for a panel without a kernel: its report, or what to do."""
    if document is None:
        return (
            f"<p><b>{escape(question)}</b></p><p>No run yet. Run this notebook in "
            "JupyterLab, Jupyter Notebook or VS Code to use the panel; where it does "
            f"not appear, <code>{verb}(...)</code> does the same.</p>"
        )
    figure = ""
    if isinstance(document, Finding | Diagnosis):
        from perfkit.questions.gallery import chart

        figure = chart(document).in_page()
    return in_html(document.report, figure=figure)


class RunView:
    """What a reader sees and presses, with a sentence on what the panel does.

    Args:
        tooltip: What Run does.

    Attributes:
        chart: What the panel does, how far it is, and the live chart.
        box: All of it.
        run: Starts a run.
        stop: Ends it.
    """

    # What waits while the panel is at work.
    _waiting: tuple[Any, ...] = ()

    def __init__(self, tooltip: str) -> None:
        self.chart = LiveChart()
        self.box = widgets.VBox()
        self.box.add_class("perfkit-panel")
        self.run = button("Run", tooltip, "primary")
        self.stop = button("Stop", "End the run and keep its results")

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.chart.state = state
        self.box.remove_class(_ANSWERED)

    def enable(self, *, running: bool) -> None:
        """Let one of the two be pressed and stand out; the panel looks as it is.

        Run keeps its place, so that a second click on it does not hit Stop.
        """
        for widget in self._waiting:
            widget.disabled = running
        run, stop = self.run, self.stop
        run.disabled, stop.disabled = running, not running
        run.button_style = "" if running else "primary"
        stop.button_style = "primary" if running else ""
        stop.layout.display = "" if running else "none"
        (self.box.add_class if running else self.box.remove_class)("perfkit-at-work")
        answer_at_once(*self._waiting, run, stop)


READY = "Ready: press Run."
RUNNING = "Running: wait, or press Stop, which keeps the results so far."
NOTHING = "Stopped before a trial ended, so there is nothing to keep."


def watch(
    session: Watched[Recorded],
    chart: LiveChart,
    computer: Machine,
    variants: Callable[[], Sequence[str]],
    *,
    at_once: bool,
) -> None:
    """Run a session to its end, and draw it at most four times a second.

    Args:
        session: What runs.
        chart: Where it is drawn.
        computer: What it runs on.
        variants: Gives the names of its rows.
        at_once: Whether these and the budget are known before the first trial.

    Raises:
        RunError: Preparing failed, or no trial could be started.
    """
    board = Board()
    display = ChartDisplay(session, chart, computer, variants)
    if at_once:
        display.begin()
    with display, closing(session.events()) as events:
        for event in events:
            board.hear(event)
            display.hear(event, board)


class ChartDisplay(Display):
    """Draws a run on a live chart, once its variants and its budget are known.

    Args:
        session: What runs.
        chart: Where it is drawn.
        computer: What it runs on.
        variants: Gives the names of its rows.
    """

    def __init__(
        self,
        session: Watched[Recorded],
        chart: LiveChart,
        computer: Machine,
        variants: Callable[[], Sequence[str]],
    ) -> None:
        super().__init__()
        self._session, self._chart = session, chart
        self._computer, self._variants = computer, variants
        # A recorded run is told at once: nothing of it is drawn before it is over.
        self._is_replay = isinstance(session, Replay)
        self._prepared: Prepared | None = None
        self._points: Points | None = None
        self._ended = Board().doing

    def begin(self) -> None:
        """Draw its rows, still empty."""
        rows, budget = list(self._variants()), self._session.budget
        computer = self._computer
        self._points = Points(rows, budget, computer.cores, len(computer.gpus))
        if self._prepared:
            self._points.hear(self._prepared)
        self._chart.begin(self._points, rows, budget)

    def hear(self, event: Event, board: Board) -> None:
        """Take in what the run told, and draw it."""
        self._ended = board.doing
        if isinstance(event, Prepared):
            self._prepared = event
        if self._points is None and isinstance(event, TrialStarted):
            self.begin()
        if self._points is not None:
            self._points.hear(event)
        if self._points is not None and self._is_replay:
            self._points.take()
        else:
            self.show(board)

    def _draw(self, board: Board) -> None:
        if self._points is not None:
            self._chart.update(self._points, doing(board), self._finding)
        else:
            self._chart.doing = doing(board)

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


def doing(board: Board) -> dict[str, Any]:
    """What is being done, how far it is and what is left."""
    return {"said": board.doing, "left": board.time_left, "share": board.share}


class Answering(RunView):
    """What a reader sees and presses of runs that end in a report.

    Attributes:
        card: The report with its charts, as HTML.
        runs: The last runs.
    """

    def __init__(self, tooltip: str) -> None:
        super().__init__(tooltip)
        self.runs, self.card = Runs(), widgets.HTML()

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

    def enable(self, *, running: bool) -> None:
        """Let pressed be what has a meaning now."""
        super().enable(running=running)
        self.run.description = "Run again" if self.card.value else "Run"

    def clear(self) -> None:
        """Take away what an earlier run found; its row and its files stay."""
        self.card.value = ""
        self.chart.clear()

    def show(self, document: Recorded) -> None:
        """Show what was found: its report, with its charts."""
        self.card.value = in_html(document.report, figure=charts(document))


class View(Answering):
    """The panel of an experiment.

    Attributes:
        asked: The question, what it costs, and the variants, as HTML.
        settings: All that is set, in a line that unfolds the controls.
    """

    def __init__(self, controls: Controls) -> None:
        super().__init__("Measure with these settings")
        self._controls, self._waiting = controls, tuple(controls.by_name.values())
        self.settings = widgets.ToggleButton(
            tooltip="Show or hide the settings", layout=widgets.Layout(width="auto")
        )
        self.settings.add_class("perfkit-settings")
        self.asked = widgets.HTML()
        guess, folded = controls.by_name["guess"], controls.box()
        row = boxed("perfkit-buttons", self.run, self.stop, guess)
        self.settings.observe(lambda _: _unfold(self.settings, folded), "value")
        _unfold(self.settings, folded)
        above = (self.asked, row, self.settings, folded)
        below = (self.chart, self.card, self.runs.table)
        self.box.children = (*above, *below)
        self.enable(running=False)

    def ask(self, experiment: Experiment) -> None:
        """Show what is set, and what that asks."""
        self.asked.value = introduction(experiment, self._controls.budget)
        self.settings.description = f"Settings: {self._controls.summary()}"

    def enable(self, *, running: bool) -> None:
        """Let pressed and changed be what has a meaning now."""
        super().enable(running=running)
        answer_at_once(self.settings)


def _unfold(toggle: Any, folded: Any) -> None:
    """Show or hide what belongs to a toggle."""
    toggle.icon = "caret-down" if toggle.value else "caret-right"
    folded.layout.display = "" if toggle.value else "none"


def answer_at_once(*pressed: Any) -> None:
    """Let a press be heard while a cell runs.

    From 7.4 on ipykernel sends what comes from a widget to the shell that last changed
    it: that of the cell, behind which it waits. Without that note it goes to the shell
    that JupyterLab has for widgets.
    """
    for widget in pressed:
        if widget.comm is not None:
            vars(widget.comm).pop("_reply_subshell_id", None)


def button(label: str, tooltip: str, style: str = "") -> Any:
    """A button with a label, a tooltip and, if it is the first one, a style."""
    layout = widgets.Layout(width="7.5em")
    labels = {"description": label, "tooltip": tooltip}
    return widgets.Button(**labels, button_style=style, layout=layout)
