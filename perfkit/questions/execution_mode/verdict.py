"""What a run of execution modes means."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement, PayBack, pay_back
from perfkit.engine.statistics import Comparison
from perfkit.findings.record import Edit, Verdict
from perfkit.questions.execution_mode.variants import (
    FIT,
    UNWATCHED,
    VARIANTS,
    Kind,
)
from perfkit.questions.execution_mode.work import BY_DEFAULT, VALIDATION_SHARE
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
# What is said where nothing of a kind is shown to cost anything, and what to do then.
_FREE: dict[Kind, tuple[str, str]] = {
    "retracing": (
        "Retracing is not shown to cost anything in the steady state here.",
        "Look at how often each was traced, and at its first call.",
    ),
    "observer": (
        "Keep the observers that you read: none is shown to cost a tenth here.",
        "",
    ),
}


def judge(measured: Measurement, *, batch: int, epoch: int) -> Verdict:
    """Say what a run shows: of its modes, or else of retracing, or else of observers.

    A step had ``batch`` examples, an epoch that observers watch ``epoch`` steps.
    """
    modes = _of_kind(measured, "mode")
    because = (
        *_by_default(measured),
        *_retraced(measured),
        *_epochs(measured, epoch),
    )
    facts = (*because, *failures(measured))
    costs = {kind: _costs(measured, kind) for kind in _FREE if len(modes) < 2}
    verdicts = [_of_costs(measured, k, c, facts) for k, c in costs.items() if c]
    if verdicts:
        # What is to be changed comes first; the other answer is not left out.
        first, *later = sorted(verdicts, key=lambda verdict: not verdict.edits)
        remarks = (" ".join(filter(None, (v.headline, v.much))) for v in later)
        return replace(first, because=(*remarks, *first.because))
    # Where observers come first, their baseline is no mode.
    against = "" if measured.baseline in CHOICES else next(iter(modes), "")
    race = Race(measured, CHOICES, "examples", against=against)
    if not race.won:
        return race.verdict(because=because)
    paid = pay_back(measured, race.winner, race.baseline)
    warnings: tuple[str, ...] = ()
    # What one round cannot show is no reason to think twice.
    if paid and paid.paying != "one round":
        warnings = (f"It {paying(paid, batch)}.",)
    return race.verdict(
        warnings=warnings,
        because=because,
        next=_against_fit(measured, race),
    )


def paying(paid: PayBack, batch: float) -> str:
    """When a mode has paid back, after "it"."""
    if paid.paying == "pays back":
        return f"compiles first: it is ahead after {paid.steps(batch)}"
    if paid.paying == "not shown" and paid.high is not None:
        return f"is ahead after {units.significant(paid.high / batch, 2)} steps at most"
    return {
        "at once": "is ahead from its first call on",
        "never": "never pays back, because its steps are slower",
        "not shown": "is not shown to pay back",
        "one round": "needs a second round to show when it is ahead",
    }[paid.paying]


def _against_fit(measured: Measurement, race: Race) -> str:
    """What is left to gain for who calls ``fit`` already, as most do."""
    compared = measured.compare(race.winner, FIT)
    if compared is None or FIT in (race.winner, race.baseline):
        return ""
    if compared.sure == "not known yet":
        return f"Whether it is faster than {quoted(FIT)} is not known yet."
    runs = f"it runs {units.times(compared.ratio)} times as fast"
    if compared.is_noise:
        runs = "no difference is shown"
    return f"Against {quoted(FIT)} {runs} ({compared.ends})."


def _of_costs(
    measured: Measurement,
    kind: Kind,
    costs: Sequence[Comparison],
    because: tuple[str, ...],
) -> Verdict:
    """The verdict on what was switched on one by one: what costs most, if anything."""
    slower = [cost for cost in costs if cost.verdict == "slower"]
    if slower:
        return _of_worst(measured, slower, because)
    noisy = [cost.variant for cost in costs if cost.verdict == "too noisy to say"]
    if noisy:
        return Verdict(
            headline=f"Whether {listed(noisy)} costs anything is not known yet.",
            sure="not known yet",
            because=because,
        )
    headline, next_ = _FREE[kind]
    return Verdict(
        headline=headline, sure=sure_of_all(costs), because=because, next=next_
    )


def _of_worst(
    measured: Measurement, slower: list[Comparison], because: tuple[str, ...]
) -> Verdict:
    worst = min(slower, key=lambda cost: cost.ratio)
    tied, (times, ends) = tied_with(worst, slower, measured), longer(worst)
    duration = f"{times} times as long" if times else "longer, nobody knows how long"
    method = VARIANTS[worst.variant]
    untimed = "Only leaving it out was timed, so this gains less."
    return Verdict(
        headline=method.do,
        much=f"With {quoted(method.name)} this training takes {duration}"
        f"{rates_behind(measured, worst)}.",
        sure=worst.sure,
        interval=ends,
        edits=(_edit(method.read(), method.fix()),),
        warnings=(untimed,) if method.untimed else (),
        because=because,
        next=f"{listed(tied)} may cost as much." if tied else "",
    )


def _edit(old: str, new: str) -> Edit:
    """The lines that go and come, without those that stand behind them either way."""
    gone, come = old.split("\n"), new.split("\n")
    while min(len(gone), len(come)) > 1 and gone[-1] == come[-1]:
        del gone[-1], come[-1]
    return Edit(old="\n".join(gone), new="\n".join(come))


def _of_kind(measured: Measurement, kind: Kind) -> tuple[str, ...]:
    """The timed variants of a kind, in their usual order."""
    names = {timing.variant for timing in measured.timings}
    return tuple(
        w.name for w in VARIANTS.values() if w.kind == kind and w.name in names
    )


def _costs(measured: Measurement, kind: Kind) -> tuple[Comparison, ...]:
    """What could cost time, against what it is without, as far as both were timed."""
    guilty = (VARIANTS[name] for name in _of_kind(measured, kind) if VARIANTS[name].do)
    compared = (measured.compare(method.name, method.against) for method in guilty)
    return tuple(filter(None, compared))


def _by_default(measured: Measurement) -> Iterator[str]:
    notes = [t.notes[BY_DEFAULT] for t in measured.trials if BY_DEFAULT in t.notes]
    if notes:
        uses = "compiles with XLA" if notes[-1] else "uses no XLA"
        yield (
            f'{quoted(FIT)} is what `compile` gives by default, `jit_compile="auto"`: '
            f"here Keras {uses} then. It uses XLA where TensorFlow has another device "
            "than the processor and every layer of the model can be compiled."
        )


def _retraced(measured: Measurement) -> Iterator[str]:
    for name in _of_kind(measured, "retracing"):
        notes = [t.notes[NOTE] for t in measured.trials_of(name) if NOTE in t.notes]
        if not notes:
            continue
        traces = sum(n["traces"] for n in notes)
        steps = sum(n["steps"] for n in notes)
        cause = next((f" ({n['because'][0]})" for n in notes if n["because"]), "")
        yield f"{quoted(name)}: {traces:,} traces in {steps:,} steps{cause}."


def _epochs(measured: Measurement, epoch: int) -> Iterator[str]:
    if set(_of_kind(measured, "observer")) - {UNWATCHED}:
        yield (
            f"An epoch had {epoch} steps here; what works at its end costs less the "
            f"longer it is. Validation looked at {max(1, epoch // VALIDATION_SHARE)} "
            "batches."
        )
