"""A diagnosis in words: what to change first, how much that brings, how sure it is."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfkit import units
from perfkit.engine.live import NO_TURNS
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import Comparison, Sure
from perfkit.findings import account_report, load
from perfkit.findings.account import COMPUTING, SET_UP, Account, Tip
from perfkit.findings.diagnosis import (
    WITHOUT_INPUT,
    WITHOUT_OBSERVERS,
    Cause,
    Diagnosis,
    Gain,
    without_line,
)
from perfkit.findings.record import Fact, Verdict
from perfkit.findings.text import as_budget, as_sentence, listed, lower
from perfkit.training.diagnose import settings
from perfkit.training.diagnose.facts import LONG_BETWEEN_S
from perfkit.training.diagnose.rounds import AS_GIVEN, CLAIMED

_MOST_NAMES = 4
# No more is told of what to do; the rest stands in the table.
_MOST_FIXES = 3
# Code of a line that is told in a sentence is no longer.
_LONGEST = 60
# A training whose time is computing by more than this is compute-bound.
_COMPUTE_BOUND = 0.5
_LESS_WORK = (
    "Most of its time goes into computing, so only less computing makes it faster."
)
# Others that kept as many cores busy may have changed what was measured.
_BUSY_CORES = 0.5
# What is known where a ceiling brings much, and no change of what it leaves out.
_HELD_UP = {
    WITHOUT_INPUT: "Its input slows this training",
    WITHOUT_OBSERVERS: "Callbacks, metrics or validation slow this training",
}
_ANY_INPUT = "Without any input it"
_NO_REMEDY = "which change helps is not known yet"
_NOT_KNOWN = "This run does not show whether anything slows this training."
_REMEDIES = {
    "out-of-memory": "Make the batch smaller, or free memory; then diagnose again.",
    "timed-out": "Run it without perfkit for a minute: does its first batch arrive, "
    "and does its first step end?",
    "crashed": "Run it without perfkit, and fix the error that you see.",
    "stopped": "Diagnose again, and let it run until the first round is over.",
}


def verdict_of(diagnosis: Diagnosis) -> Verdict:
    """Say in words what a diagnosis says in numbers; its own words are not read."""
    step = diagnosis.step
    if step is None:
        return with_account(diagnosis, _not_measured(diagnosis))
    verdict = _to_do(diagnosis) or _nothing_to_do(diagnosis)
    if units.is_known(step.low, step.high):
        median, low, high = map(units.seconds, (step.median_s, step.low, step.high))
        # No other table has it.
        fact = Fact("A step, unchanged", median, f"{low} to {high}")
        verdict = replace(verdict, facts=(fact,))
    verdict = replace(verdict, because=tuple(because(diagnosis)))
    return with_account(diagnosis, verdict)


def outcome(measured: Measurement) -> str:
    """How the training as given ended, at best."""
    ended = [trial.outcome for trial in measured.trials_of(AS_GIVEN)]
    return "completed" if "completed" in ended or not ended else ended[-1]


def _not_measured(diagnosis: Diagnosis) -> Verdict:
    """What is known where nothing was changed: how long a step took at first sight."""
    ended = [
        trial.message or trial.outcome
        for trial in diagnosis.trials
        if trial.variant == AS_GIVEN and trial.has_failed
    ]
    runs = not ended and diagnosis.outcome in ("completed", "stopped")
    step_s = float(diagnosis.facts.get("step_s") or 0)
    ending = "" if runs else (ended or [diagnosis.outcome])[-1].rstrip(".")
    text = "The training made too few steps within the budget."
    if ending:
        text = f"It {'then ' if step_s else ''}{ending}."
    elif diagnosis.stopped:
        text = "The run was stopped before the training had made enough steps."
    if step_s:
        text = f"A step takes about {_short(step_s)}. {text}"
    advice = _REMEDIES.get(diagnosis.outcome, "")
    if not advice or (runs and not diagnosis.stopped):
        # Trials that the budget's end has cut off were stopped, too.
        advice = _again(diagnosis)
    headline = _NOT_KNOWN
    if ending and not step_s:
        headline = "This training could not be run."
    elif ending.startswith("raised "):
        # What the first look has seen at work can be run, and its own code ends it.
        headline = "This training ends with an error after its first steps."
    return Verdict(
        headline=headline,
        much=text,
        sure="not known yet" if headline == _NOT_KNOWN else "",
        because=tuple(because(diagnosis)),
        next=advice,
    )


def _to_do(diagnosis: Diagnosis) -> Verdict | None:
    """What brings most; a little of the input that may be spared is nothing to do."""
    causes = [
        c
        for c in diagnosis.best
        if not c.ceiling or c.kind == "defect" or c.speedup.is_much
    ]
    if not causes:
        return None
    cause, *other_causes = causes
    headline = f"{_to_delete(cause) or cause.do}."
    if cause.ceiling and not diagnosis.explained(cause.change):
        headline = f"{_HELD_UP[cause.change]}; {_NO_REMEDY}."
    elif diagnosis.healthy and not (diagnosis.left_open or diagnosis.unmeasured):
        headline = f"For more speed, {lower(headline)}"
        gains = (diagnosis.ceiling, *(cause.speedup for cause in diagnosis.causes))
        if not any(gain and gain.is_much for gain in gains):
            headline = f"Nothing is wrong with {_subject(diagnosis)}. {headline}"
    return Verdict(
        headline=headline,
        much=_effect(diagnosis, cause.speedup, cause.subject, cause),
        sure=diagnosis.how_sure(cause),
        interval=cause.speedup.ends,
        edits=cause.edits,
        warnings=tuple(_warnings(diagnosis, cause))[:2],
        next="\n".join(_next(cause, other_causes[: _MOST_FIXES - 1])),
    )


def _nothing_to_do(diagnosis: Diagnosis) -> Verdict:
    open_yet = (*diagnosis.left_open, *diagnosis.unmeasured)
    step, measured = "The time of a step is not known yet", diagnosis.step
    if measured and units.is_known(measured.low, measured.high):
        ends = measured.low, measured.high
        step = f"A step takes {units.roughly(measured.median_s, *ends, _short)}"
    warnings = (*_between(diagnosis), *_disturbance(diagnosis))
    if open_yet or not diagnosis.healthy:
        text = (
            f"{step}; {_quoted(open_yet)} may bring more." if open_yet else f"{step}."
        )
        advice = _again(diagnosis)
        if not diagnosis.comparisons and not open_yet:
            text = f"{step}; perfkit can change nothing in it from outside."
            advice = "`perfkit lines` shows which lines take the time."
        if reason := diagnosis.untested.get("eager"):
            advice = as_sentence(reason)
        return Verdict(
            headline=_NOT_KNOWN,
            much=text,
            sure="not known yet",
            warnings=warnings,
            next=advice,
        )
    text = f"{step}; no change is shown to bring {units.percent(CLAIMED - 1)} or more."
    if little := next((c for c in diagnosis.causes if c.ceiling), None):
        text = _effect(diagnosis, little.speedup, little.subject)
    headline = f"Nothing is wrong with {_subject(diagnosis)}."
    if (limit := diagnosis.ceiling) and limit.is_much:
        # What would explain it brings too little to be a reason.
        headline = f"{_HELD_UP[WITHOUT_INPUT]}; {_NO_REMEDY}."
        text = _effect(diagnosis, limit, _ANY_INPUT)
    left_out = diagnosis.left_out
    comparisons = (c for c in diagnosis.comparisons if c.variant not in left_out)
    is_sure = all(compared.sure == "sure" for compared in comparisons)
    return Verdict(
        headline=headline,
        much=text,
        sure="sure" if is_sure else "likely",
        warnings=warnings,
        next=_LESS_WORK if _computing_share(diagnosis) > _COMPUTE_BOUND else "",
    )


def _to_delete(cause: Cause) -> str:
    """Which line to delete; "" where that is not all there is to do."""
    if len(cause.edits) != 1 or cause.edits[0].new != "":
        return ""
    (edit,) = cause.edits
    code, last = edit.old.strip(), edit.lines[-1]
    lines = f"line {edit.line}" if last == edit.line else f"lines {edit.line}-{last}"
    of_cell = f" of code cell {edit.cell}" if edit.cell else ""
    quote = f", `{code}`" if last == edit.line and len(code) <= _LONGEST else ""
    return f"Delete {lines}{of_cell}{quote}"


def _effect(
    diagnosis: Diagnosis, gain: Gain, subject: str, cause: Cause | None = None
) -> str:
    """How many times as fast, and how long a step takes then."""
    runs, takes = "would run", "would take"
    if cause and not cause.ceiling and cause.grade == "measured here" and cause.change:
        runs, takes = "runs", "takes"
    if cause and cause.at_least:
        runs, takes = f"{runs} at least", f"{takes} at most"
    if not gain.is_known:
        return f"{subject} {runs} faster; by how much is not known yet."
    sentence = f"{subject} {runs} {gain.brief}"
    step, batch = diagnosis.step, int(diagnosis.facts.get("batch") or 0)
    if not (step and units.is_narrow(step.low, step.high)):
        return f"{sentence}."
    clause = f"a step {takes}"
    if cause and cause.cause == "small-batch":
        # A step of a larger batch is another one.
        clause = f"{batch} examples {takes.removesuffix('s')}"
    took = units.instead(_short(step.median_s / gain.estimate), _short(step.median_s))
    return f"{sentence}: {clause} {took}."


def _short(seconds: float) -> str:
    """Seconds as a reader repeats them, with two significant digits."""
    return units.seconds(float(f"{seconds:.2g}") if seconds < 99.5 else seconds)


def _warnings(diagnosis: Diagnosis, cause: Cause) -> Iterator[str]:
    """What could change the decision for a change."""
    if cause.mind:
        yield cause.mind
    together = diagnosis.together
    # What is not made together with others says nothing of them.
    at_once = together is not None and cause.change in together.changes
    if together and at_once and together.speedup.high < cause.speedup.low:
        names = _quoted(together.changes)
        yield f"Don't combine them: {names} together run {together.speedup.brief}."
    yield from _between(diagnosis)
    yield from _disturbance(diagnosis)


def _subject(diagnosis: Diagnosis) -> str:
    return "its steps" if any(_between(diagnosis)) else "this training"


def _between(diagnosis: Diagnosis) -> Iterator[str]:
    """What comes again in the real training and is in no rate here."""
    between_s = float(diagnosis.facts.get("between_s") or 0)
    if between_s > LONG_BETWEEN_S:
        step_s = diagnosis.step.median_s if diagnosis.step else 0.0
        steps_s = step_s * int(diagnosis.facts.get("steps") or 0)
        beside = f", beside {_short(steps_s)} of steps" if steps_s else ""
        yield (
            f"Between epochs its own code took {_short(between_s)}{beside}. The rates "
            "here leave that out, and no change of it was tried."
        )


def _disturbance(diagnosis: Diagnosis) -> Iterator[str]:
    """That other programs kept cores busy meanwhile."""
    busy = [cores for _, cores in load.readings_of(diagnosis.finding, "cpu_other")]
    mean = sum(busy) / len(busy) if busy else 0.0
    if mean >= _BUSY_CORES:
        amount = f"{units.significant(mean, 2)} of {diagnosis.machine.cores} cores"
        yield f"Other programs kept {amount} busy meanwhile: end them to be surer."


def _next(best: Cause, causes: Sequence[Cause]) -> Iterator[str]:
    """What to type where no line says it, and what to do after that."""
    before = ""
    needs = not best.edits or any(edit.new is None for edit in best.edits)
    # What the headline says is not said again.
    if needs and best.fix not in ("", f"{best.do}."):
        yield best.fix
        before = "Then "
    for cause in causes:
        if cause.ceiling:
            qualifier = " at most; which change brings that is not known yet"
        elif best.ceiling:
            qualifier = ""
        elif cause.speedup.high >= best.speedup.low:
            qualifier = " by itself, perhaps as much as the first"
        else:
            qualifier = " by itself"
        action = lower(cause.do) if before else cause.do
        yield f"{before}{action}: {cause.speedup.brief}{qualifier}."
        before = "Then "


def _again(diagnosis: Diagnosis) -> str:
    return f"Run again with {as_budget(2 * diagnosis.budget_s, diagnosis.training)}."


def because(diagnosis: Diagnosis) -> Iterator[str]:
    """Say what a reader should know of how the training ran."""
    if uncontained := diagnosis.facts.get("uncontained"):
        yield str(uncontained)
    if names := [str(name) for name in diagnosis.facts.get("late") or ()]:
        yield settings.late_in_words(names)
    if reason := diagnosis.notes.get(NO_TURNS):
        yield f"No change could be tried in the process of the first look: {reason}"


def _quoted(names: Sequence[str]) -> str:
    """Names in a sentence, the first few of them."""
    return listed((f'"{name}"' for name in names), most=_MOST_NAMES)


def _computing_share(diagnosis: Diagnosis) -> float:
    """The share of its time that its account charges to computing; 0 if unknown.

    Starting operations is no computing, and without a trace nobody knows what is.
    """
    account = diagnosis.account
    if account is None or account.untraced:
        return 0.0
    starting_s = sum(line.starting_s for line in account.lines)
    return account.share(account.kinds[COMPUTING] - starting_s)


# What an account adds: where the seconds go, beside the swaps.

# Why none was tried, among the causes that were not tested.
NO_CHANGES = "changes"
# A change that was measured leads unless a line could bring so many times more.
_LEADS_BY = 1.2
# What an A/B test leaves to be had that is not worth a word.
_MIN_SPEEDUP = 1.05
_MAX_TIPS = 2


def with_account(diagnosis: Diagnosis, verdict: Verdict) -> Verdict:
    """The verdict of a diagnosis, with what its account says where that says more."""
    account = diagnosis.account
    if account is None or not account.lines:
        return verdict
    if NO_CHANGES in diagnosis.untested:
        reason = as_sentence(f"no change was tried: {diagnosis.untested[NO_CHANGES]}")
        text = f"{account.verdict.much} {reason}"
        return replace(account.verdict, much=text, because=verdict.because)
    if not account.repeated_s:
        return verdict
    # Leaving all of a group out is no change that anybody can keep.
    changes = (c for c in diagnosis.best if c.change and not c.ceiling)
    tips, measured = open_tips(diagnosis, account), next(changes, None)
    if tips and _leads(tips[0], measured, account):
        return _tip_first(diagnosis, account, tips, verdict if measured else None)
    if verdict.sure == "not known yet" and not measured:
        return replace(
            verdict,
            headline=account.verdict.headline,
            much=f"{verdict.headline} {verdict.much}".strip(),
        )
    if tips:
        parts = filter(None, [verdict.next, _profiled(tips)])
        return replace(verdict, next="\n".join(parts))
    return verdict


def open_tips(diagnosis: Diagnosis, account: Account) -> list[Tip]:
    """The tips of an account that no A/B test has refuted."""
    return [tip for tip in account.tips if _max_speedup(diagnosis, tip) >= _MIN_SPEEDUP]


def _max_speedup(diagnosis: Diagnosis, tip: Tip) -> float:
    """How many times as fast a training may be at most without what a tip is about."""
    speedup = 1 / max(1e-3, 1 - tip.share)
    compared = _comparison_of(diagnosis, tip)
    if compared is not None and compared.is_judged:
        speedup = min(speedup, compared.high)
    return speedup


def _comparison_of(diagnosis: Diagnosis, tip: Tip) -> Comparison | None:
    """The change that leaves out what a tip is about; None where none was measured."""
    if tip.group:
        return diagnosis.compared(tip.group)
    account = diagnosis.account
    if account is None or len(tip.lines) != 1:
        return None
    line = account.lines[tip.lines[0]]
    name = without_line(diagnosis.training, line.file, line.line, line.cell)
    return diagnosis.compared(name)


def _leads(tip: Tip, measured: Cause | None, account: Account) -> bool:
    """Whether a tip is about more of the whole script than the best change is."""
    if measured is None:
        return True
    # A change is measured in steps, which may be little of what the script does.
    steps = 1 - account.share(account.kinds[SET_UP])
    script_speedup = 1 / (1 - steps * (1 - 1 / max(1.0, measured.speedup.estimate)))
    return 1 / max(1e-3, 1 - tip.share) > _LEADS_BY * script_speedup


def _tip_first(
    diagnosis: Diagnosis, account: Account, tips: list[Tip], verdict: Verdict | None
) -> Verdict:
    tip, *other_tips = tips
    compared = _comparison_of(diagnosis, tip)
    effect, interval = tip.means, account.verdict.interval
    sure: Sure = "profiled"
    if compared is not None and compared.verdict == "faster" and compared.ends:
        effect += (
            f" A/B tested: without all of it the training would run "
            f"{units.times(compared.ratio)} times as fast."
        )
        sure, interval = compared.sure, compared.ends
    # Those of its own verdict hold what its first tip may cost.
    minds = (tip.mind, *account_report.warnings(account))
    advice = [f"Try: {tip.fix}."] if tip.fix else []
    if verdict is not None:
        advice.append(f"A/B tested: {verdict.headline} {verdict.much}")
    if other_tips:
        advice.append(_profiled(other_tips))
    return Verdict(
        headline=f"{tip.do}.",
        much=effect,
        sure=sure,
        interval=interval,
        warnings=tuple(filter(None, minds))[:2],
        next="\n".join(advice),
    )


def _profiled(tips: list[Tip]) -> str:
    named = (f"{tip.do} ({units.percent(tip.share)})" for tip in tips[:_MAX_TIPS])
    return f"Profiled, not tested: {'; '.join(named)}."
