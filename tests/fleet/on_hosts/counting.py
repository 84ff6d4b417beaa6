"""Work without TensorFlow whose answer is known, for the hosts of a fleet in tests."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Annotated

import psutil

from perfkit.experiments.base import Experiment, variant
from perfkit.experiments.parameters import Choice
from perfkit.findings.record import Verdict
from perfkit.measure.tick import READY


@dataclass(frozen=True, kw_only=True)
class Counting(Experiment):
    """Does counting to a higher number take longer?"""

    fault: Annotated[str, Choice(("none", "hangs", "dies"), help="Of it")] = "none"

    name = "counting"
    baseline = "far"
    needs = ()

    def prepare(self):
        """Hang or die, if it is to."""
        if self.fault == "hangs":
            while True:
                time.sleep(60)
        if self.fault == "dies":
            # Of what forks the trials, the parent.
            os.kill(psutil.Process(os.getppid()).ppid(), 9)
        yield from ()

    @variant
    def far(self):
        """To ten."""
        yield from _naps(0.010)

    @variant
    def near(self):
        """To five."""
        yield from _naps(0.005)

    def verdict(self, measured):
        """Say what the comparison says."""
        found = measured.comparisons[0] if measured.comparisons else "too little"
        return Verdict(headline=str(found))


def _naps(seconds):
    yield READY
    while True:
        time.sleep(seconds)
        yield 1
