"""Which way of executing a training step is fastest on this machine?

The suspect: Python starts every operation of every step one by one, so a small step is
nearly all overhead.
The test: make the same steps from the same weights in several modes and compare
examples per second. What a mode's first call costs, to trace or to compile, is kept
apart: it is expensive, and pays back after a number of steps, or never.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from perfkit.engine.measurement import OWN, Measurement, Variant
from perfkit.engine.trial import REFUSED, Note, Yielded
from perfkit.findings.record import Edit, Fact, Verdict
from perfkit.questions.base import Experiment
from perfkit.questions.execution_mode import variants as modes
from perfkit.questions.execution_mode.variants import CHOICES, GROUPS, VARIANTS, Method
from perfkit.questions.parameters import Choice, Range, select
from perfkit.questions.shared.benchmark import without_gpus
from perfkit.questions.shared.loops import NOTE, Job
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.verdicts import Race, failures, judge_costs


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

    name = "execution-mode"
    choices = CHOICES
    # Takes a model, its optimizer and its loss; returns a function of features and
    # labels that trains on one batch.
    function: ClassVar[modes.MakeStep | None] = None

    @property
    def baseline(self) -> str:
        """The first of the first group: each question has a baseline of its own."""
        word = self.variants.split(",")[0]
        groups = (names for group, names in GROUPS.items() if word in (group, *names))
        return next(groups)[0]

    def make_variants(self) -> Mapping[str, Variant]:
        """The variants that ``variants`` asks for, the baseline always first."""
        methods, first = self._methods, self.baseline
        return {
            name: Variant(
                *(name, functools.partial(self._run, name), method.does),
                method.against if method.against in methods else first,
                code=method.code,
            )
            for name, method in methods.items()
        }

    def prepare(self) -> Iterator[Yielded]:
        """Refuse variants that learn something else."""
        without_gpus()
        yield Note("progress", "Checking that all variants learn the same")
        job = Job(self.model, self.batch)
        methods, function = self._methods, type(self).function
        methods.pop(OWN, None)
        refused = modes.differences(methods.values(), job)
        if function and (reason := modes.why_not(function, job)):
            refused[OWN] = reason
        yield Note(REFUSED, refused)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which mode is fastest, by how much, when it pays back, what to change.

        Of a run whose baseline is a graph: what it costs to trace again.
        """
        facts = [*_facts(measured)]
        guilty = (method for method in VARIANTS.values() if method.do)
        compared = (measured.compare(method.name, method.against) for method in guilty)
        costs = list(filter(None, compared))
        if measured.baseline == modes.GRAPH and costs:
            worst, verdict = judge_costs(measured, costs, "this training")
            if worst:
                method = VARIANTS[worst.variant]
                edit = Edit(old=method.read(), new=method.fix())
                verdict = replace(verdict, headline=method.do, edits=(edit,))
            return replace(verdict, facts=tuple(facts), because=failures(measured))
        race = Race(measured, CHOICES, "examples")
        warnings, first_calls = race.first_calls(self.batch)
        return race.verdict(warnings=warnings, facts=(*facts, *first_calls))

    @property
    def _methods(self) -> dict[str, Method]:
        function = type(self).function
        mine = {OWN: modes.own_method(function)} if function else {}
        methods = select(self.variants, GROUPS, VARIANTS, self.baseline)
        return {self.baseline: methods[self.baseline], **mine, **methods}

    def _run(self, name: str) -> Iterator[Yielded]:
        # The trial has seeded NumPy, with the same number for all variants of a round.
        seed = int(np.random.randint(2**31))
        method = self._methods[name]
        job = Job(self.model, self.batch, seed, feed=method.feed)
        return method.run(job, job.network())


def _facts(measured: Measurement) -> Iterator[Fact]:
    defaults = [trial.notes.get(modes.BY_DEFAULT) for trial in measured.trials]
    if known := [default for default in defaults if default is not None]:
        uses = "compiles with XLA" if known[-1] else "uses no XLA"
        yield Fact(f"{modes.FIT}, without a setting for XLA", uses)
    for name in (m.name for m in VARIANTS.values() if m.kind == "retracing"):
        notes = [t.notes[NOTE] for t in measured.trials_of(name) if NOTE in t.notes]
        if notes:
            # Each trial is a process of its own, and traces anew.
            traces, steps = notes[-1]["traces"], notes[-1]["steps"]
            yield Fact(f"Traces of {name}", f"{traces:,} in {steps:,} steps")
