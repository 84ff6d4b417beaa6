"""Work with a known cost: the oracle of the tests that run an experiment."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from perfkit.engine.trial import READY, Note
from perfkit.findings.record import Verdict
from perfkit.questions.base import Choice, Experiment, Folder, Range, variant


@dataclass(frozen=True, kw_only=True)
class Napping(Experiment):
    """Does a nap between two batches cost anything?"""

    nap_ms: Annotated[float, Range(0, 100, unit="ms", help="Length of the nap")] = 5.0
    batch: Annotated[int, Range(1, 64, help="Examples per batch")] = 8
    kind: Annotated[str, Choice(("short", "deep"), help="Of nap")] = "short"
    bed: Annotated[str, Folder(help="Where to lie")] = ""
    dreams: bool = False

    name = "napping"
    baseline = "awake"
    needs = ()

    def prepare(self):
        yield Note("bed", "made")
        while self.dreams:
            (Path(self.bed) / "asleep").touch()
            yield Note("progress", "Dreaming")
            time.sleep(0.05)

    @variant
    def awake(self):
        """Batches of 10 ms each, one after another."""
        yield READY
        while True:
            time.sleep(0.010)
            yield self.batch

    @variant
    def napping(self):
        """The same with a nap after each batch."""
        yield READY
        while True:
            time.sleep(0.010 + self.nap_ms / 1000)
            yield self.batch

    def verdict(self, measured):
        """Say what the nap costs."""
        if not measured.comparisons:
            return Verdict(headline="Nothing was measured.")
        nap = measured.comparisons[0]
        return Verdict(
            headline=f"Napping is {nap.verdict}: {nap.ratio:.2f} of awake.",
            because=(f"Each batch waits {self.nap_ms:g} ms.",),
            next="Set nap_ms=0.",
            winner="awake",
        )
