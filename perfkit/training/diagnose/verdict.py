"""A diagnosis in words: what to change first, how much that brings, how sure it is."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfkit import units
from perfkit.engine.live import NO_TURNS
from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.engine.statistics import WORTH_KNOWING
from perfkit.findings import load
from perfkit.findings.diagnosis import (
    OF_INPUT,
    TOGETHER,
    Cause,
    Diagnosis,
    Gain,
    leaves_line_out,
)
from perfkit.findings.reading import stages
from perfkit.findings.record import Verdict
from perfkit.findings.text import as_budget, as_sentence, plain
from perfkit.training.diagnose import rounds, settings, split, tracing
from perfkit.training.diagnose.accounted import with_account
from perfkit.training.diagnose.changes import resident
from perfkit.training.diagnose.epochs import EPOCH_END
from perfkit.training.diagnose.facts import LONG_BETWEEN_S
from perfkit.training.diagnose.gains import gain
from perfkit.training.diagnose.rounds import AS_GIVEN, CLAIMED

# What each cause means, after "this training ...:".
MEANINGS = {
    "input-bound": "its input takes time from its steps",
    "serial-map": "its map works on one element at a time",
    "no-prefetch": "no batch is made ready while the model works",
    "no-cache": "each epoch does again what could be kept",
    "python-input": "Python makes its input",
    "slow-read": "reading its files takes its time",
    "host-to-device": "its data take long on their way to the device",
    "eager": "its steps run operation by operation in Python, not as a graph",
    "step-overhead": "it goes back to Python after each step",
    "small-batch": "its batch is small for this machine",
    "retracing": "its step is traced anew again and again",
    "callback": "what watches the training takes its time",
    "validation": "validation takes its time",
    "epoch-boundary": "the end of an epoch takes its time",
    "xla": "its step is not compiled by XLA",
    "precision": "it computes with more bits than it may need",
    "debugging": "what is for debugging is on",
    "threads": "a setting holds it to another number of threads than there are cores",
    "per-example-map": "a map is called for each example instead of each batch",
    "late-shuffle": "its shuffle is filled with what an expensive map made",
    "padding": "it computes with padding",
    "contention": "other programs take the processor",
    "memory-pressure": "memory is short",
}
_MOST_NAMES = 4
# No more is told of what to do; the rest stands in the table.
_MOST_FIXES = 3
# Of a step's graphs so many are told: those that take most of it.
_MOST_GRAPHS = 2
# Code of a line that is told in a sentence is no longer.
_LONGEST = 60
# Ends of epochs that differ by so much of a step are worth a word.
_DIFFER = 0.1
# Others that kept as many cores busy may have changed what was measured.
_BUSY_CORES = 0.5
_MEASURED = "(measured here)"
_KINDS = {
    "defect": "a defect",
    "opportunity": "an opportunity, nothing is wrong there",
}
# What ran instead, where that is no change that a training can keep.
_SUBJECTS = {
    "without input": "Without any input it",
    "without observers": "Without all of it the training",
    "without metrics": "Without them the training",
    "without Python": "With what Python makes in memory the training",
    "read from memory": "With its files in memory the training",
    "": "Without that the training",
}
# What is known where a ceiling brings much, and no change of what it leaves out.
_HELD_UP = {
    "without input": "Its input slows this training",
    "without observers": "What watches this training slows it",
}
_NO_REMEDY = "how to change that is not known yet"
_NOT_KNOWN = "Whether anything slows this training is not known yet."
_REMEDIES = {
    "out-of-memory": "Make the batch smaller, or free memory; then diagnose again.",
    "timed-out": "Train it alone for a minute: see whether its data ever come, and "
    "whether its first step ever ends.",
    "crashed": "Train by itself, without perfkit, and fix what that says.",
    "stopped": "Diagnose again, and let it run until the first round is over.",
}


def verdict_of(diagnosis: Diagnosis) -> Verdict:
    """Say in words what a diagnosis says in numbers; its own words are not read."""
    if diagnosis.step is None:
        return with_account(diagnosis, _not_measured(diagnosis))
    applied = _applied(diagnosis)
    verdict = applied or _to_do(diagnosis) or _nothing_to_do(diagnosis)
    verdict = replace(verdict, because=tuple(because(diagnosis)))
    return verdict if applied else with_account(diagnosis, verdict)


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
    if ending:
        text = f"It {'then ' if step_s else ''}{ending}."
    elif diagnosis.stopped:
        text = "The run was stopped before the training had made enough steps."
    else:
        text = "The training made too few steps within the budget."
    plan, advice = _to_give(diagnosis), _REMEDIES.get(diagnosis.outcome, "")
    if not advice or (runs and not diagnosis.stopped):
        # Trials that the budget's end has cut off were stopped, too.
        advice = plan or _again(diagnosis)
    if step_s:
        times = [f"A step takes about {_short(step_s)}", *_spent(diagnosis)]
        text = f"{', '.join(times)}. {''.join(_traced(diagnosis))}{text}"
    headline = _NOT_KNOWN
    if ending and not step_s:
        headline = "This training could not be run."
    elif ending.startswith("raised "):
        # What the first look has seen at work can be run, and its own code ends it.
        headline = "This training makes some steps, then ends with an error."
    return Verdict(
        headline=headline,
        much=text,
        sure="not known yet" if headline == _NOT_KNOWN else "",
        because=(*([plan] if plan not in ("", advice) else []), *_remarks(diagnosis)),
        next=advice,
    )


def _spent(diagnosis: Diagnosis) -> Iterator[str]:
    """What the first look saw a step of a loop wait for, and its graphs take."""
    parts, waits_s = [], _waits_s(diagnosis)
    if waits_s is not None:
        parts.append(f"it waits {_short(waits_s)} for its data")
    graphs = diagnosis.facts.get("graphs_s") or {}
    within = [
        f"{_short(seconds)} in {f'`{name}`' if name else 'Keras'}"
        for name, seconds in list(graphs.items())[:_MOST_GRAPHS]
    ]
    if within:
        parts.append(f"{'' if parts else 'it '}spends {' and '.join(within)}")
    if parts:
        yield f"of which {' and '.join(parts)}"


def _waits_s(diagnosis: Diagnosis) -> float | None:
    """Seconds that a step of a loop waits for its data; of one that counts, None."""
    waits_s = diagnosis.facts.get("waits_s")
    is_known = isinstance(waits_s, int | float)
    return waits_s if is_known and "input-bound" not in diagnosis.untested else None


def _traced(diagnosis: Diagnosis) -> Iterator[str]:
    """What the first look saw being traced again and again."""
    for name, entry in (diagnosis.facts.get("retraced") or {}).items():
        anew, took = int(entry["traces"]) - 1, units.seconds(float(entry["seconds"]))
        sentence = f"{tracing.display_name(name, entry)} was traced anew {anew} times"
        yield f"{sentence[:1].upper()}{sentence[1:]}, {took} in all. "


def _applied(diagnosis: Diagnosis) -> Verdict | None:
    """What chosen changes brought, where nothing else was looked for."""
    if len(diagnosis.comparisons) != 1 or rounds.ONLY not in diagnosis.facts:
        return None
    (compared,) = diagnosis.comparisons
    together = diagnosis.together if compared.variant == TOGETHER else None
    names = listed(together.changes if together else [compared.variant])
    headlines = {
        "faster": f"Keep {names}: the training is faster so.",
        "slower": f"Do without {names}: the training is slower so.",
        "no difference shown": f"{names} changes nothing that shows.",
        "too noisy to say": f"Whether {names} makes it faster is not known yet.",
    }
    effect = ""
    if compared.is_judged and units.is_known(compared.low, compared.high):
        effect = _effect(diagnosis, gain(compared), "The training then")
    return Verdict(
        headline=headlines[compared.verdict],
        much=effect,
        sure=compared.sure,
        interval=compared.ends,
        warnings=tuple(_disturbance(diagnosis)),
    )


def _to_do(diagnosis: Diagnosis) -> Verdict | None:
    """What brings most; a little of the input that may be spared is nothing to do."""
    causes = [
        c
        for c in diagnosis.best
        if not c.is_ceiling or c.kind == "defect" or c.speedup.is_much
    ]
    if not causes:
        return None
    cause, *other_causes = causes
    headline = f"{_to_delete(cause) or cause.do}."
    if cause.is_ceiling and not diagnosis.explained(cause.change):
        headline = f"{_HELD_UP[cause.change]}; {_NO_REMEDY}."
    elif diagnosis.healthy and not (diagnosis.left_open or diagnosis.unmeasured):
        right = f"Nothing is wrong in {_subject(diagnosis)}. "
        lead = right if _is_little(diagnosis) else ""
        headline = f"{lead}For more speed, {_low(headline)}"
    subject = "Without it the training" if cause.change[:7] == "without" else ""
    text = _effect(
        diagnosis,
        cause.speedup,
        _SUBJECTS.get(cause.change, subject or "The training then"),
        would=cause.is_ceiling or cause.grade != "measured here" or not cause.change,
        # A step of a larger batch is another one.
        examples=cause.cause == "small-batch",
        is_lower_bound=cause.change == resident.PARTS,
    )
    if cause.change == "without Python":
        text += " What replaces it takes time, too."
    return Verdict(
        headline=headline,
        much=text,
        sure=diagnosis.how_sure(cause),
        interval=cause.speedup.ends,
        edits=cause.edits,
        warnings=tuple(_warnings(diagnosis, cause))[:2],
        next="\n".join(_next(diagnosis, cause, other_causes[: _MOST_FIXES - 1])),
    )


def _is_little(diagnosis: Diagnosis) -> bool:
    """Whether all that is shown to be lost, or to be had, is little."""
    gains = [*(cause.speedup for cause in diagnosis.causes), diagnosis.ceiling]
    return not any(gain is not None and gain.is_much for gain in gains)


def _nothing_to_do(diagnosis: Diagnosis) -> Verdict:
    open_yet = (*diagnosis.left_open, *diagnosis.unmeasured)
    step, warnings = _step(diagnosis), (*_between(diagnosis), *_disturbance(diagnosis))
    if open_yet or not diagnosis.healthy:
        text = f"{step}; {listed(open_yet)} may bring more." if open_yet else f"{step}."
        advice = _again(diagnosis)
        if not diagnosis.comparisons and not open_yet:
            times = ", ".join([step, *_spent(diagnosis)])
            text = f"{times}; nothing in it can be changed without its code."
            advice = _by_hand(diagnosis)
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
    if little := next((c for c in diagnosis.causes if c.is_ceiling), None):
        text = _effect(diagnosis, little.speedup, _SUBJECTS[little.change], would=True)
    headline = f"Nothing is wrong in {_subject(diagnosis)}."
    if (limit := diagnosis.ceiling) and limit.is_much:
        # What would explain it brings too little to be a reason.
        headline = f"{_HELD_UP[resident.NAME]}; {_NO_REMEDY}."
        text = _effect(diagnosis, limit, _SUBJECTS[resident.NAME], would=True)
    comparisons = (c for c in diagnosis.comparisons if not leaves_line_out(c.variant))
    is_sure = all(compared.sure == "sure" for compared in comparisons)
    work = "Most of a step is its own work: only less of that makes it faster."
    return Verdict(
        headline=headline,
        much=text,
        sure="sure" if is_sure else "likely",
        warnings=warnings,
        next=work if _is_compute_bound(diagnosis) else "",
    )


def _by_hand(diagnosis: Diagnosis) -> str:
    """Where its author should look, where no change could be tried."""
    graphs = diagnosis.facts.get("graphs_s") or {}
    half_s = diagnosis.step.median_s / 2 if diagnosis.step else math.inf
    if (_waits_s(diagnosis) or 0.0) > half_s:
        return "Make its data faster: most of a step waits for them."
    if sum(graphs.values()) > half_s:
        name = next(iter(graphs))
        subject = f"`{name}`" if name else "what Keras computes"
        return f"Look into {subject} first: `perfkit profile` shows its operations."
    if graphs:
        return "Most of a step is Python outside of its graphs: do more of it in them."
    return "See why each cause was not tested."


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
    diagnosis: Diagnosis,
    gain: Gain,
    subject: str,
    *,
    would: bool = False,
    examples: bool = False,
    is_lower_bound: bool = False,
) -> str:
    """How many times as fast, and how long a step takes then."""
    runs, takes = ("would run", "would take") if would else ("runs", "takes")
    if is_lower_bound:
        runs, takes = f"{runs} at least", f"{takes} at most"
    if not gain.is_known:
        return f"{subject} {runs} faster; by how much is not known yet."
    sentence = f"{subject} {runs} {gain.brief}"
    if gain.estimate < 1:
        sentence = f"{subject} {takes} {units.times(1 / gain.estimate)} times as long"
    step, batch = diagnosis.step, int(diagnosis.facts.get("batch") or 0)
    if not (step and units.is_narrow(step.low, step.high)):
        return f"{sentence}."
    clause = f"a step {takes}"
    if examples:
        clause = f"{batch} examples {takes.removesuffix('s')}"
    took = units.instead(_short(step.median_s / gain.estimate), _short(step.median_s))
    return f"{sentence}: {clause} {took}."


def _short(seconds: float) -> str:
    """Seconds as a reader repeats them, with two significant digits."""
    return units.seconds(float(f"{seconds:.2g}") if seconds < 99.5 else seconds)


def _low(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _warnings(diagnosis: Diagnosis, cause: Cause) -> Iterator[str]:
    """What could change the decision for a change."""
    cache_bytes = diagnosis.facts.get("pipeline", {}).get("bytes")
    if cause.cause == "no-cache" and isinstance(cache_bytes, int | float):
        yield f"It keeps {units.size(cache_bytes)} in memory."
    if cause.mind:
        yield cause.mind
    together = diagnosis.together
    # What is not made together with others says nothing of them.
    at_once = together is not None and cause.change in together.changes
    if together and at_once and together.speedup.high < cause.speedup.low:
        names = listed(together.changes)
        yield f"Do not make all of it: {names} at once run {together.speedup.brief}."
    yield from _between(diagnosis)
    if cause.cause != "contention":
        yield from _disturbance(diagnosis)


def _subject(diagnosis: Diagnosis) -> str:
    return "its steps" if any(_between(diagnosis)) else "this training"


def _between(diagnosis: Diagnosis) -> Iterator[str]:
    """What comes again in the real training and is in no rate here."""
    if diagnosis.facts.get("again"):
        yield (
            "The script calls fit again and again: what a call of it costs beside its "
            "steps is in no rate here."
        )
    between_s = float(diagnosis.facts.get("between_s") or 0)
    if between_s > LONG_BETWEEN_S:
        step_s = diagnosis.step.median_s if diagnosis.step else 0.0
        steps_s = step_s * int(diagnosis.facts.get("steps") or 0)
        beside = f", beside {_short(steps_s)} of steps" if steps_s else ""
        yield (
            f"From epoch to epoch its own code took {_short(between_s)}{beside}: no "
            "rate here counts that, and no change of it was tried."
        )


def _disturbance(diagnosis: Diagnosis) -> Iterator[str]:
    """That other programs kept cores busy meanwhile."""
    busy = [cores for _, cores in load.readings_of(diagnosis.finding, "cpu_other")]
    mean = sum(busy) / len(busy) if busy else 0.0
    if mean >= _BUSY_CORES:
        amount = f"{units.significant(mean, 2)} of {diagnosis.machine.cores} cores"
        yield f"Other programs kept {amount} busy meanwhile: end them to be surer."


def _next(diagnosis: Diagnosis, best: Cause, causes: Sequence[Cause]) -> Iterator[str]:
    """What to type where no line says it, and what to do after that."""
    before = ""
    needs = not best.edits or any(edit.new is None for edit in best.edits)
    if needs and (advice := _to_type(diagnosis, best)):
        yield advice
        before = "Then "
    for cause in causes:
        if cause.is_ceiling:
            qualifier = " at most, by what is not known yet"
        elif best.is_ceiling:
            qualifier = ""
        elif cause.speedup.high >= best.speedup.low:
            qualifier = " by itself, which may be as much"
        else:
            qualifier = " by itself"
        action = _low(cause.do) if before else cause.do
        yield f"{before}{action}: {cause.speedup.brief}{qualifier}."
        before = "Then "


def _to_type(diagnosis: Diagnosis, cause: Cause) -> str:
    """The fix; what the headline says is not said again, and code keeps its case."""
    action, _, detail = cause.fix.partition(": ")
    if action.rstrip(".") != cause.do:
        return cause.fix
    limit = diagnosis.anatomy.get("limits")
    if cause.change == resident.NAME and any(
        stage.name == limit for stage in stages(diagnosis.anatomy)
    ):
        return f'Look at "{plain(str(limit), 80)}" first.'
    return f"{detail[:1].upper()}{detail[1:]}"


def _again(diagnosis: Diagnosis) -> str:
    return f"Run again with {as_budget(2 * diagnosis.budget_s, diagnosis.training)}."


def _to_give(diagnosis: Diagnosis) -> str:
    """The plan of a run that is over, where it says what to give the next one."""
    plan = str(diagnosis.facts.get(rounds.PLAN) or "")
    return plan if "budget" in plan else ""


def because(diagnosis: Diagnosis) -> Iterator[str]:
    """Say what the verdict rests on, a sentence or two each."""
    yield f"{_step(diagnosis, in_full=True)} {_MEASURED}."
    if plan := _to_give(diagnosis):
        yield f"Planned by its first steps: {plan}"
    for cause in diagnosis.causes:
        means = f"{MEANINGS[cause.cause]}. " if cause.cause in MEANINGS else ""
        kind = f"{_KINDS[cause.kind]}; {cause.grade}"
        yield f"{cause.cause}: {means}{cause.evidence} ({kind})"
    yield from _input(diagnosis)
    if diagnosis.together:
        together = diagnosis.together.speedup
        yield (
            f"Together, {listed(diagnosis.together.changes)} run {together.brief} "
            f"({between(together)}); gains do not add up {_MEASURED}."
        )
    yield from _ends(diagnosis)
    yield from _aside(diagnosis)
    if diagnosis.healthy and _is_little(diagnosis) and _is_compute_bound(diagnosis):
        yield (
            "It is compute-bound: most of its time is the work of its steps (inferred)."
        )
    reached = split.read_share(diagnosis.facts)
    if reached is not None:
        yield f"{split.in_words(reached).rstrip('.')} {_MEASURED}."
    yield from _remarks(diagnosis)
    yield from _failures(diagnosis)


def _step(diagnosis: Diagnosis, *, in_full: bool = False) -> str:
    step = diagnosis.step
    if step is None or not units.is_known(step.low, step.high):
        return "How long a step takes as it is is not known yet"
    if not in_full:
        took = units.roughly(step.median_s, step.low, step.high, _short)
        return f"A step takes {took}"
    median, low, high = map(units.seconds, (step.median_s, step.low, step.high))
    return f"As it is a step takes {median} ({low} to {high})"


def _input(diagnosis: Diagnosis) -> Iterator[str]:
    """The ceiling, and what of it the best change of the input gets back."""
    limit = diagnosis.ceiling
    if limit is None:
        return
    gain = f"{units.ratio(limit.estimate)} the rate ({between(limit)})"
    if diagnosis.explained(resident.NAME) > limit.high:
        # One of its changes is shown to bring more.
        return
    noise = max(CLAIMED, diagnosis.noise_floor or 1)
    if not (limit.low > 1 and limit.estimate >= noise):
        sure = limit.high < WORTH_KNOWING
        text = (
            "Its input does not hold it up"
            if sure
            else "Whether its input holds it up is open"
        )
        yield f"{text}: without any it runs at {gain} {_MEASURED}."
        return
    text = f"Without any input it runs at {gain} {_MEASURED}: no pipeline brings more."
    best = next((c for c in diagnosis.causes if c.cause in OF_INPUT), None)
    if best:
        share = recovered(best.speedup, limit)
        text += (
            f' "{best.change}" gets back {units.percent(share)} of the time that input '
            "costs."
        )
    yield text


def recovered(gain: Gain, limit: Gain) -> float:
    """Which share of the time that input costs a change of it saves, at most 1."""
    saved, lost = 1 - 1 / gain.estimate, 1 - 1 / limit.estimate
    return min(1.0, max(0.0, saved / lost)) if lost > 0 else 0.0


def _ends(diagnosis: Diagnosis) -> Iterator[str]:
    """Ends of epochs that differ by much, and what that does to the gains."""
    trials = [t for t in diagnosis.trials if t.variant in (AS_GIVEN, CONTROL)]
    ends = [end_s for t in trials for end_s in t.pauses.get(EPOCH_END, ())]
    examples = [t.recurring[EPOCH_END][0] for t in trials if EPOCH_END in t.recurring]
    if not (ends and examples and diagnosis.step):
        return
    batch = int(diagnosis.facts.get("batch", 1))
    differ_s = (max(ends) - min(ends)) * batch / examples[0]
    if differ_s > _DIFFER * diagnosis.step.median_s:
        yield (
            f"An end of an epoch took {units.seconds(min(ends))} to "
            f"{units.seconds(max(ends))}: a pipeline that is dropped may wait for its "
            "tuning thread, which sleeps. All changes are charged with that alike, so "
            f"one that makes steps faster may bring more than is shown {_MEASURED}."
        )


def _aside(diagnosis: Diagnosis) -> Iterator[str]:
    """What changes the learning, and seems to bring more than it does."""
    gains = [
        f'"{c.variant}" runs at {units.ratio(c.ratio)} the rate '
        f"({c.low:.2f} to {c.high:.2f})"
        for c in diagnosis.comparisons
        if c.variant in diagnosis.aside and units.is_known(c.low, c.high)
    ]
    if gains:
        yield (
            f"{'; '.join(gains)} {_MEASURED}. This changes what is learnt: fix the "
            "defects first, and look again."
        )


def _remarks(diagnosis: Diagnosis) -> Iterator[str]:
    """Say what a reader should know of how the training ran."""
    if uncontained := diagnosis.facts.get("uncontained"):
        yield str(uncontained)
    names = [str(name) for name in diagnosis.facts.get("late") or ()]
    if names:
        yield settings.late_in_words(names)
    if reason := diagnosis.notes.get(NO_TURNS):
        yield f"No change could be tried in the process that was set up: {reason}"


def _failures(diagnosis: Diagnosis) -> Iterator[str]:
    """How changes ended that could not be measured, or not always."""
    ended = {
        trial.variant: trial.message or trial.outcome
        for trial in diagnosis.trials
        if trial.has_failed and trial.variant != AS_GIVEN
    }
    for name, ending in ended.items():
        yield f'"{name}" {ending.rstrip(".")}.'


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, the first few of them."""
    quoted = [f'"{name}"' for name in names[:_MOST_NAMES]]
    hidden_count = len(names) - len(quoted)
    if hidden_count:
        quoted.append(f"{hidden_count} more")
    *first, last = quoted
    return f"{', '.join(first)} and {last}" if first else last


def between(gain: Gain) -> str:
    """The interval of a gain."""
    return f"95 % interval {gain.low:.2f} to {gain.high:.2f}"


def _is_compute_bound(diagnosis: Diagnosis) -> bool:
    """Whether what no change takes away is shown to be most of a step."""
    step, work = diagnosis.step, diagnosis.split.get("compute")
    return bool(step and work and (work.low or 0.0) > step.median_s / 2)
