"""Runs whose events are written down, so that a panel can be tried without waiting."""

import base64
import re
import threading

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.plan import (
    Finished,
    Preparing,
    Progress,
    Ticked,
    TrialEnded,
    TrialStarted,
)
from tests.findings import made

LONG_S = 30
_LINK = re.compile(r'download="([^"]+)"[^>]*href="data:[\w/]+;base64,([^"]+)"')
# A cell with a panel.
SHOWN = """\
import perfkit
from tests.questions.toy import Loops

panel = perfkit.panel(Loops(), budget={budget}{more})
panel"""
RATES = {"slow": 100.0, "fast": 400.0}


def measured(rates=RATES, rounds=2):
    """What is known after some rounds."""
    base, numbered = next(iter(rates)), range(1, rounds + 1)
    variants = tuple(Variant(name, iter, against=base) for name in rates)
    trials = tuple(made.trial(*one, n) for n in numbered for one in rates.items())
    return Measurement(variants=variants, trials=trials, baseline=base)


def events(rates=RATES, rounds=3):
    """A run that is over at once: the clock that it tells of goes on by itself."""
    yield Preparing("Preparing the data, once")
    now = 0.0
    for number in range(1, rounds + 1):
        for name, rate in rates.items():
            yield TrialStarted(name, number, now)
            ticks = [(now + 0.5, 0)]
            ticks += [(now + 0.5 + i / 10, int(rate / 10)) for i in range(9)]
            yield Ticked(name, tuple(ticks))
            now += 1.5
            yield Progress(now, 10.0)
        so_far = measured(rates, number)
        for ended in so_far.trials[-len(rates) :]:
            yield TrialEnded(ended, so_far)
    yield Finished(so_far, stopped=False)


class Session:
    """In place of a real one: gives the events it was made with.

    Args:
        finding: What it found, once it has begun.
        told: Makes its events.
        held: The events are held back until this is set, or it is stopped.
        fails: What it raises in the end.
    """

    unsaved = ""

    def __init__(self, experiment, finding, told=events, held=None, fails=None):
        self.experiment, self.machine = experiment, finding.machine
        self.finding, self.budget = None, 10.0
        self.variants = list(RATES)
        self._found, self._told, self._fails = finding, told, fails
        self._held = held or threading.Event()
        if held is None:
            self._held.set()
        self.stopped = threading.Event()

    def events(self):
        while not self._held.wait(0.01) and not self.stopped.is_set():
            yield Preparing("Held back by the test")
        if self.stopped.is_set():
            yield Finished(measured(rounds=0), stopped=True)
            return
        yield from self._told()
        if self._fails is not None:
            raise self._fails
        self.finding = self._found

    def stop(self):
        self.stopped.set()


def links(html):
    """What the links of a panel save: a file's name and its text each."""
    found = _LINK.findall(html)
    return [(name, base64.b64decode(held).decode()) for name, held in found]


def state(panel):
    settle(panel)
    return panel.view.chart.state


def finished(panel):
    """What a panel finds, once all of it is shown."""
    found = panel.result()
    settle(panel)
    return found


def settle(panel):
    """Return once the panel's thread has done what it was asked for."""
    done = threading.Event()
    panel._worker.ask(done.set)
    assert done.wait(LONG_S)
