"""Passports in a folder, so that panels about machines have something to read."""

import threading

from perfkit.passports.saving import save
from tests.comparing.pairs import passport

LONG_S = 30


def put(name, folder, **more):
    """Save a passport as ``NAME.json``; give its path."""
    return save(passport(label=name, **more), folder / f"{name}.json")


def settle(panel):
    """Return once the panel's thread has done what it was asked for."""
    done = threading.Event()
    panel._worker.ask(done.set)
    assert done.wait(LONG_S)


def state(panel):
    settle(panel)
    return panel.view.status.widget.state
