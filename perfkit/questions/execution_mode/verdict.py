"""What a run of execution modes means."""

from collections.abc import Iterator
from dataclasses import replace

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement, PayBack, pay_back
from perfkit.engine.statistics import Comparison
from perfkit.findings.record import Edit, Fact, Verdict
from perfkit.questions.execution_mode.variants import FIT, VARIANTS, Kind, Method
from perfkit.questions.execution_mode.work import BY_DEFAULT
from perfkit.questions.shared.loops import NOTE
from perfkit.questions.shared.race import Choice, Race
from perfkit.questions.shared.words import (
    failures,
    listed,
    longer,
    quoted,
    rates_behind,
    sure_of_all,
    tied_with,
)

CHOICES = {
    method.name: Choice(method.do, method.read)
    for method in VARIANTS.values()
    if method.kind == "mode"
}
CHOICES[OWN] = Choice("Use your own step.", "step = yours(model, optimizer, loss_of)")
# Headlines where nothing of a kind is shown to cost anything, and what to do then.
_FREE: dict[Kind, tuple[str, str]] = {
    "retracing": (
        "No cost of retracing is shown in the steady state here.",
        "Look at the number of traces, and at the first call of each.",
    ),
    "observer": (
        "Keep the observers that you read: each costs less than 10 %, if anything.",
        "",
    ),
}


def judge(measured: Measurement, *, batch: int, epoch: int) -> Verdict:
    """Say what a run shows: of its modes, or else of retracing, or else of observers.

    A step had ``batch`` examples, an epoch that observers watch ``epoch`` steps.
    """
    facts, modes = [*_facts(measured, epoch)], _timed_methods(measured, "mode")
    kinds = [kind for kind in _FREE if len(modes) < 2 and _costs(measured, kind)]
    if kinds:
        # What is to be changed comes first; the other answer is not left out.
        verdicts = [_of_costs(measured, kind) for kind in kinds]
        first, *later = sorted(verdicts, key=lambda verdict: not verdict.edits)
        remarks = (" ".join(filter(None, (v.headline, v.much))) for v in later)
        because = (*remarks, *failures(measured))
        return replace(first, facts=tuple(facts), because=because)
    # Where observers come first, their baseline is no mode.
    against = "" if measured.baseline in CHOICES or not modes else modes[0].name
    race = Race(measured, CHOICES, "examples", against=against)
    paid = pay_back(measured, race.winner, race.baseline) if race.won else None
    warnings: tuple[str, ...] = ()
    # What one round cannot show is no reason to think twice.
    if paid and paid.paying != "one round":
        warnings = (f"It {paying(paid, batch)}.",)
    # Most people call ``fit`` already.
    rival = measured.compare(race.winner, FIT) if race.won else None
    if rival and FIT not in (race.winner, race.baseline):
        facts += [Fact(f"{race.winner} against {FIT}", rival.judgement, rival.ends)]
    return replace(race.verdict(warnings=warnings), facts=tuple(facts))


def paying(paid: PayBack, batch: float) -> str:
    """When a mode has paid back, after "it"."""
    if paid.paying == "pays back":
        return f"compiles first: it is ahead after {paid.steps(batch)}"
    if paid.paying == "not shown" and paid.high is not None:
        return f"is ahead after at most {units.significant(paid.high / batch, 2)} steps"
    return {
        "at once": "is ahead from its first call",
        "never": "never pays back, because its steps are slower",
        "not shown": "is not shown to pay back",
        "one round": "needs a second round to show when it is ahead",
    }[paid.paying]


def _of_costs(measured: Measurement, kind: Kind) -> Verdict:
    """The verdict on what was switched on one by one: what costs most, if anything."""
    costs = _costs(measured, kind)
    if slower := [cost for cost in costs if cost.verdict == "slower"]:
        return _of_worst(measured, slower)
    if noisy := [c.variant for c in costs if c.verdict == "too noisy to say"]:
        headline = f"This run does not show whether {listed(noisy)} costs anything."
        return Verdict(headline=headline, sure="not known yet")
    headline, advice = _FREE[kind]
    return Verdict(headline=headline, sure=sure_of_all(costs), next=advice)


def _of_worst(measured: Measurement, slower: list[Comparison]) -> Verdict:
    worst = min(slower, key=lambda cost: cost.ratio)
    tied, (times, ends) = tied_with(worst, slower, measured), longer(worst)
    duration = f"{times} times as long" if times else "longer"
    method = VARIANTS[worst.variant]
    untimed = "Only leaving it out was timed, so this change gains less."
    return Verdict(
        headline=method.do,
        much=f"With {quoted(method.name)} this training takes {duration}"
        f"{rates_behind(measured, worst)}.",
        sure=worst.sure,
        interval=ends,
        edits=(_edit(method.read(), method.fix()),),
        warnings=(untimed,) if method.untimed else (),
        next=f"{listed(tied)} may cost as much." if tied else "",
    )


def _edit(old: str, new: str) -> Edit:
    """The lines that go and come, without those that stand behind them either way."""
    gone, come = old.split("\n"), new.split("\n")
    while min(len(gone), len(come)) > 1 and gone[-1] == come[-1]:
        del gone[-1], come[-1]
    return Edit(old="\n".join(gone), new="\n".join(come))


def _timed_methods(measured: Measurement, kind: Kind) -> list[Method]:
    """The methods of a kind that were timed, in their usual order."""
    names = {timing.variant for timing in measured.timings}
    return [m for m in VARIANTS.values() if m.kind == kind and m.name in names]


def _costs(measured: Measurement, kind: Kind) -> list[Comparison]:
    """What could cost time, against what it is without, as far as both were timed."""
    guilty = (method for method in _timed_methods(measured, kind) if method.do)
    compared = (measured.compare(method.name, method.against) for method in guilty)
    return list(filter(None, compared))


def _facts(measured: Measurement, epoch: int) -> Iterator[Fact]:
    defaults = [t.notes[BY_DEFAULT] for t in measured.trials if BY_DEFAULT in t.notes]
    if defaults:
        uses = "compiles with XLA" if defaults[-1] else "uses no XLA"
        yield Fact(f"{FIT}, without a setting for XLA", uses)
    for name in (method.name for method in _timed_methods(measured, "retracing")):
        notes = [t.notes[NOTE] for t in measured.trials_of(name) if NOTE in t.notes]
        traces, steps = (sum(n[key] for n in notes) for key in ("traces", "steps"))
        cause = next((f" ({n['because'][0]})" for n in notes if n["because"]), "")
        if notes:
            yield Fact(f"Traces of {name}", f"{traces:,} in {steps:,} steps{cause}")
    if any(method.do for method in _timed_methods(measured, "observer")):
        yield Fact("Steps in an observed epoch", f"{epoch:,}")
