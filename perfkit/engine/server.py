"""A launcher in a process of its own: ``python -m perfkit.engine.server NUMBER LENT``.

It starts trials for a run elsewhere, with the interpreter, the variables and the cores
that it has itself. What it is asked comes over the connection of that number, and what
trials tell goes back over it. When that is closed it ends with all it started, and with
the folder that it was lent, if any.
"""

import os
import shutil
import sys
from dataclasses import replace
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

from perfkit.engine.launcher import Running, launcher
from perfkit.errors import RunError

_SLICE_S = 0.05
_FOR_EVER = float("inf")


def serve(asking: Connection) -> None:
    """Start trials and pass on what they tell, until nobody asks any more."""
    running: dict[int, Running] = {}
    try:
        _warm(asking)
        while True:
            heard_on = [pipe for trial in running.values() for pipe in trial.heard_on]
            connection.wait([asking, *heard_on])
            _tell(asking, running)
            while asking.poll():
                _do(asking, running, asking.recv())
    except (EOFError, ConnectionError):
        # Whoever asked is gone, in whatever way.
        pass
    finally:
        for trial in running.values():
            trial.kill("stopped", "nobody listens any more")


def _warm(asking: Connection) -> None:
    try:
        while not launcher().wait(_SLICE_S):
            if asking.poll():
                asking.recv()
    except RunError as error:
        asking.send(("ready", str(error)))
        raise EOFError from None
    asking.send(("ready", ""))


def _do(asking: Connection, running: dict[int, Running], task: tuple[Any, ...]) -> None:
    kind, number, *fields = task
    if kind == "start":
        payload, seed, limits = fields
        # Whoever asked knows when a trial stands still, and so what is silence.
        limits = replace(limits, silence=_FOR_EVER)
        try:
            trial = running[number] = launcher().start_pickled(payload, seed, limits)
        except RunError as error:
            asking.send(("ended", number, "crashed", str(error), ""))
            return
        asking.send(("started", number, trial.pid, trial.started_ns))
    elif number in running:
        running[number].kill(*fields)
        _tell(asking, running)


def _tell(asking: Connection, running: dict[int, Running]) -> None:
    for number, trial in list(running.items()):
        if messages := trial.poll(0):
            asking.send(("told", number, messages))
        if trial.outcome is not None:
            asking.send(("ended", number, trial.outcome, trial.message, trial.tail))
            del running[number]


if __name__ == "__main__":
    serve(connection.Connection(int(sys.argv[1])))
    # What it was lent goes with it, even where whoever lent it was killed.
    for folder in sys.argv[2:]:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
