"""One run, drawn into a live chart while it goes."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from perfkit.displays import PERIOD_S
from perfkit.experiments.replay import Replay
from perfkit.findings.standing import standings
from perfkit.panel.points import Points
from perfkit.progress import Board, with_interval

if TYPE_CHECKING:
    from perfkit.experiments.session import Session
    from perfkit.panel.live_chart import LiveChart

NOTHING = "Stopped before any trial ended: there is nothing to keep."


def watch(session: Session | Replay, chart: LiveChart, budget: float) -> None:
    """Run a session to its end, and draw it at most four times a second.

    Raises:
        RunError: Preparing failed, or no trial could be started.
    """
    here, chosen = session.machine, session.experiment
    # A recorded run is told at once: nothing of it is drawn before it is over.
    told = isinstance(session, Replay)
    budget = session.budget if isinstance(session, Replay) else budget
    variants = [arm.name for arm in chosen.variants().values()]
    points = Points(variants, budget, here.cores_granted, len(here.gpus))
    board, drawn = Board(), 0.0
    chart.begin(points, variants, chosen.baseline, budget)
    try:
        with closing(session.events()) as events:
            for event in events:
                board.hear(event)
                points.hear(event)
                if told:
                    points.take()
                elif time.monotonic() - drawn >= PERIOD_S:
                    drawn = time.monotonic()
                    chart.update(points, _doing(board), lambda: _in_words(board))
                    _mark_guess(session, chart)
    finally:
        chart.finish(points, _end_in_words(board, session))


def _mark_guess(session: Session | Replay, chart: LiveChart) -> None:
    """Draw the guess once it can be told what it means."""
    if session.finding is None or chart.guess:
        return
    from perfkit.charts.guess import guess

    found = guess(session.finding)
    chart.guess = {"variant": found.variant, "ratio": found.ratio}


def _doing(board: Board) -> dict[str, Any]:
    return {"said": board.doing, "left": board.left, "share": board.share}


def _in_words(board: Board) -> str:
    doing = ", ".join(part for part in (board.doing, board.left) if part)
    return _words(doing, [f"{name}: {rate}" for name, rate in board.rates])


def _end_in_words(board: Board, session: Session | Replay) -> str:
    if session.finding is None:
        return _words(board.doing, [])
    counted = {s.variant: s.unit for s in standings(session.finding)}
    known = (
        f"{t.variant}: {with_interval(t, counted[t.variant])}"
        for t in session.finding.timings
    )
    return _words(board.doing, list(known))


def _words(doing: str, rates: list[str]) -> str:
    return f"Live chart. {'; '.join([doing, *rates])}."
