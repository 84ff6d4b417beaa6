"""Which way of executing a training step is fastest on this machine?

The suspect: Python starts every operation of every step one by one, so a small step is
nearly all overhead.
The test: make the same steps from the same weights in several modes and compare
examples per second. What a mode's first call costs, to trace or to compile, is kept
apart: it is expensive, and pays back after a number of steps, or never.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from perfkit.engine.measurement import OWN, Measurement, Variant
from perfkit.engine.tick import REFUSED, Note, Yielded
from perfkit.findings.record import Verdict
from perfkit.questions.base import Experiment
from perfkit.questions.execution_mode import variants as modes
from perfkit.questions.execution_mode import work
from perfkit.questions.execution_mode.variants import GROUPS, VARIANTS, Method
from perfkit.questions.execution_mode.verdict import CHOICES, judge
from perfkit.questions.execution_mode.work import MakeStep
from perfkit.questions.parameters import Choice, Range, select
from perfkit.questions.shared.benchmark import without_gpus
from perfkit.questions.shared.loops import Job
from perfkit.questions.shared.models import MODELS


@dataclass(frozen=True, kw_only=True)
class ExecutionMode(Experiment):
    """Which way of executing a training step is fastest on this machine?"""

    model: Annotated[
        str, Choice(tuple(MODELS), help="What is trained; the first is the smallest")
    ] = "tiny-dense"
    batch: Annotated[int, Range(8, 1024, unit="examples", help="In a batch")] = 32
    variants: Annotated[
        str, Choice((*GROUPS, *VARIANTS), many=True, help="Groups or single variants")
    ] = "modes"
    epoch: Annotated[
        int, Range(5, 1000, unit="steps", help="In an epoch that observers watch")
    ] = 50

    name = "execution-mode"
    choices = CHOICES
    # Takes a model, its optimizer and its loss; returns a function of features and
    # labels that trains on one batch.
    function: ClassVar[MakeStep | None] = None

    @property
    def baseline(self) -> str:
        """The first of the first group: each question has a baseline of its own."""
        word = self.variants.split(",")[0]
        groups = (names for group, names in GROUPS.items() if word in (group, *names))
        return next(groups)[0]

    def make_variants(self) -> Mapping[str, Variant]:
        """The variants that ``variants`` asks for, the baseline always first."""
        return {name: self._variant(method) for name, method in self._methods.items()}

    def prepare(self) -> Iterator[Yielded]:
        """Refuse variants that learn something else, or do what another does here."""
        without_gpus()
        yield Note("progress", "Checking that all variants learn the same")
        job = Job(self.model, self.batch, self.epoch)
        methods, function = self._methods, type(self).function
        refused = modes.alike(methods, xla=work.uses_xla(job.network()))
        methods.pop(OWN, None)
        if function and (reason := modes.why_not(function, job)):
            refused[OWN] = reason
        able = [method for name, method in methods.items() if name not in refused]
        able = [method for method in able if not method.missing()]
        yield Note(REFUSED, refused | modes.differences(able, job))

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which mode is fastest, by how much, when it pays back, what to change."""
        return judge(measured, batch=self.batch, epoch=self.epoch)

    @property
    def _methods(self) -> dict[str, Method]:
        function = type(self).function
        mine = {OWN: modes.own_method(function)} if function else {}
        methods = select(self.variants, GROUPS, VARIANTS, self.baseline)
        return {self.baseline: methods[self.baseline], **mine, **methods}

    def _variant(self, method: Method) -> Variant:
        against = method.against if method.against in self._methods else self.baseline
        return Variant(
            method.name,
            functools.partial(self._run, method.name),
            method.changes,
            against,
            method.missing(),
            code=method.code,
        )

    def _run(self, name: str) -> Iterator[Yielded]:
        # The trial has seeded NumPy, with the same number for all variants of a round.
        seed = int(np.random.randint(2**31))
        method = self._methods[name]
        job = Job(self.model, self.batch, self.epoch, seed, feed=method.feed)
        return method.run(job, job.network())
