"""Passports in a folder, so that panels about machines have something to read."""

from perfkit.passports.passport import save
from tests.machines.pairs import passport
from tests.panel.runs import settle


def put(name, folder, **more):
    """Save a passport as ``NAME.json``; give its path."""
    return save(passport(label=name, **more), folder / f"{name}.json")


def state(panel):
    settle(panel)
    return panel.view.status.widget.state
