"""How was it measured? In words that need no other page."""

from __future__ import annotations

import collections
import json
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.export.numbers import Table
from perfkit.findings.rungs import is_ladder
from perfkit.findings.text import plain
from perfkit.measure.measurement import TWIN
from perfkit.measure.statistics import WORTH_KNOWING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.record import Finding
    from perfkit.machine.gpu import Gpu

_NAME, _VALUE, _FACT = 80, 300, 600

# What each verdict of a comparison claims.
VERDICTS = (
    (
        "faster, slower",
        "the 95 % interval of the ratio leaves out 1, and the ratio lies beyond the "
        "noise floor",
    ),
    (
        "no difference shown",
        "neither is so, and the interval leaves no difference open that is larger than "
        f"{units.percent(WORTH_KNOWING - 1)}",
    ),
    (
        "too noisy to say",
        "the interval leaves open that there is such a difference; so does a single "
        "round, whatever it shows",
    ),
)


def method(finding: Finding) -> Iterator[tuple[str, str]]:
    """What was done, as terms with a few sentences each."""
    yield "Question", _asked(finding)
    yield "Variants", _variants(finding)
    yield "Trials", _trials(finding)
    yield (
        "Rates",
        f"{_counted(finding)} in the steady state. The first call (tracing, compiling, "
        "tuning) and the warm-up are told apart and do not count. A rate's 95 % "
        "interval comes from drawing anew, many times, among its trials and among the "
        "stretches of each of them; with few trials it borrows from the spread of the "
        "other variants.",
    )
    yield (
        "Ratios",
        "Two variants are compared within each round that ran both, side by side. The "
        "95 % interval of a ratio is over rounds; as a handful of rounds shows its own "
        "spread badly, each comparison borrows from that of the others.",
    )
    yield "Noise floor", _noise(finding)
    yield "Budget", _budget(finding)
    load = _load(finding)
    if load:
        yield "Load", load
    yield "Seed", f"{finding.seed}: the order and the random numbers start from it."


def failures(finding: Finding) -> tuple[str, ...]:
    """What was said when a trial did not complete; the same said once."""
    said = dict.fromkeys(
        f"{plain(t.variant, _NAME)}, round {t.round}, {t.outcome}: {plain(t.message)}"
        for t in finding.trials
        if t.outcome != "completed" and t.message
    )
    return tuple(said)


def facts(finding: Finding) -> Iterator[Table]:
    """What it was asked with and measured on, name by name."""
    tables = (
        ("Parameters", finding.parameters),
        ("Machine", _machine(finding)),
        ("Libraries", finding.machine.versions),
        ("Environment variables", finding.machine.environment),
        ("Noted during the run", finding.notes),
    )
    for caption, values in tables:
        rows = tuple(
            (plain(str(name), _NAME), plain(_text(value), _FACT) or "none")
            for name, value in values.items()
        )
        if rows:
            yield Table(caption, ("", ""), rows)


def _asked(finding: Finding) -> str:
    recorded = plain(finding.recorded[:16].replace("T", " "))
    experiment, version = plain(finding.experiment), plain(finding.perfkit, 20)
    if finding.experiment == "diagnosis":
        return (
            f"A diagnosis by perfkit {version}, begun {recorded}. Each variant is the "
            "training as given with one thing swapped."
        )
    return f"The experiment {experiment} of perfkit {version}, begun {recorded}."


def _counted(finding: Finding) -> str:
    ladder = is_ladder(finding)
    return "What each rung counts, per second," if ladder else "Examples per second"


def _variants(finding: Finding) -> str:
    ran = {trial.variant for trial in finding.trials if not trial.is_try} - {TWIN}
    said = [f"{len(ran)} variants, each a way of doing the same work."]
    if is_ladder(finding):
        said = [f"{len(ran)} rungs, each a piece of work of its own: none is compared."]
    if finding.baseline:
        said.append(f"The baseline is {plain(finding.baseline, _NAME)}.")
    for name, why in finding.unavailable.items():
        said.append(f"{plain(name, _NAME)} was not run: {plain(why, _VALUE)}.")
    return " ".join(said).replace("..", ".")


def _trials(finding: Finding) -> str:
    rounds = max((trial.round for trial in finding.trials), default=0)
    ended = collections.Counter(trial.outcome for trial in finding.trials)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in ended.items())
    tries = sum(trial.is_try for trial in finding.trials)
    besides = f" and {tries} besides" if tries else ""
    return (
        f"{len(finding.trials) - tries} trials in {rounds} round{'s' * (rounds != 1)}"
        f"{besides}: {outcomes or 'none'}. A trial is one variant, run once in a fresh "
        "process. A round holds every variant once, in random order; after the second "
        f"round only those whose answer is still open. {_turns(finding)}"
    )


def _turns(finding: Finding) -> str:
    turns = sum(len(trial.turns) for trial in finding.trials)
    if not turns:
        return "Within a round one trial ran after the other."
    return (
        "Within a round the trials were all set up, then worked by turns of a fraction "
        f"of a second, {turns:,} turns in all: a slow moment of the machine falls on "
        "all alike."
    )


def _noise(finding: Finding) -> str:
    if finding.noise_floor is None:
        return "Unknown: the run was too short to measure it."
    share = units.percent(abs(finding.noise_floor - 1))
    return (
        "Each round ran the baseline twice, as if it were two variants. The two "
        f"differed by {share}, the doubt in that included: no smaller difference is "
        "claimed."
    )


def _budget(finding: Finding) -> str:
    spent = max((t.started_s + t.wall_s for t in finding.trials), default=0.0)
    budget = units.seconds(finding.budget_s)
    stopped = f" {finding.ended_early}" if finding.ended_early else ""
    return (
        f"{budget} for measuring, {units.seconds(spent)} of them spent.{stopped} "
        "Preparing what the variants need is not part of it."
    )


def _load(finding: Finding) -> str:
    from perfkit.charts import load

    said = [plain(words, _VALUE) for words in load.in_words(finding)]
    inner = (words.replace("The ", "the ", 1) for words in said[1:])
    return f"{'; '.join([said[0][:1].upper() + said[0][1:], *inner])}." if said else ""


def _machine(finding: Finding) -> dict[str, str]:
    machine = finding.machine
    present = machine.memory_present
    of = f" of {units.size(present)}" if present and present != machine.memory else ""
    rows = {
        "processor": machine.cpu,
        "cores": f"{units.significant(machine.cores_granted)} of {machine.cores}",
        "memory": f"{units.size(machine.memory)}{of}",
        "system": machine.system,
        "Python": machine.python,
    }
    for number, gpu in enumerate(machine.gpus):
        rows[f"GPU {number}"] = _gpu(gpu)
    if not machine.gpus:
        rows["GPU"] = machine.no_gpu or "none"
    return rows


def _gpu(gpu: Gpu) -> str:
    memory = units.size(gpu.memory) if gpu.memory is not None else ""
    driver = f"driver {gpu.driver}" if gpu.driver else ""
    capability = gpu.compute_capability
    able = f"compute capability {capability}" if capability else ""
    return ", ".join(filter(None, (gpu.name, memory, driver, able)))


def _text(value: Any) -> str:
    """A parameter or a note as one line; most are plain words or numbers."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        told = {name: _text(inner) for name, inner in value.items()}
        return ", ".join(f"{name} {text}" for name, text in told.items() if text)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return json.dumps(value, ensure_ascii=False) if value or value == 0 else ""
