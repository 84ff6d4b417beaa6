"""A diagnosis in words: what to change first, how much that brings, how sure it is."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfkit import units
from perfkit.diagnosis import rounds, settings, split, tracing
from perfkit.diagnosis.accounted import with_account
from perfkit.diagnosis.changes import resident
from perfkit.diagnosis.epochs import EPOCH_END
from perfkit.diagnosis.facts import LONG_BETWEEN_S
from perfkit.diagnosis.gains import gain
from perfkit.diagnosis.maker import uncontained_in_words
from perfkit.diagnosis.rounds import AS_GIVEN, CLAIMED
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
from perfkit.measure.measurement import CONTROL, Measurement
from perfkit.measure.one_process import NO_TURNS
from perfkit.measure.statistics import WORTH_KNOWING

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
_OTHERS = 0.5
_MEASURED = "(measured here)"
_KINDS = {
    "defect": "a defect",
    "opportunity": "an opportunity, nothing is wrong there",
}
# What ran instead, where that is no change that a training can keep.
_RAN = {
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
_HOW = "how to change that is not known yet"
_NOT_KNOWN = "Whether anything slows this training is not known yet."
_REMEDIES = {
    "out-of-memory": "Make the batch smaller, or free memory; then diagnose again.",
    "timed-out": "Train it alone for a minute: see whether its data ever come, and "
    "whether its first step ever ends.",
    "crashed": "Train by itself, without perfkit, and fix what that says.",
    "stopped": "Diagnose again, and let it run until the first round is over.",
}


def verdict_of(found: Diagnosis) -> Verdict:
    """Say in words what a diagnosis says in numbers; its own words are not read."""
    if found.step is None:
        return with_account(found, _not_measured(found))
    applied = _applied(found)
    said = applied or _to_do(found) or _nothing_to_do(found)
    said = replace(said, because=tuple(because(found)))
    return said if applied else with_account(found, said)


def outcome(measured: Measurement) -> str:
    """How the training as given ended, at best."""
    ended = [trial.outcome for trial in measured.of(AS_GIVEN)]
    return "completed" if "completed" in ended or not ended else ended[-1]


def _not_measured(found: Diagnosis) -> Verdict:
    """What is known where nothing was changed: how long a step took at first sight."""
    ended = [
        trial.message or trial.outcome
        for trial in found.trials
        if trial.variant == AS_GIVEN and trial.has_failed
    ]
    runs = not ended and found.outcome in ("completed", "stopped")
    step_s = float(found.facts.get("step_s") or 0)
    how = "" if runs else (ended or [found.outcome])[-1].rstrip(".")
    if how:
        much = f"It {'then ' if step_s else ''}{how}."
    elif found.stopped:
        much = "The run was stopped before the training had made enough steps."
    else:
        much = "The training made too few steps within the budget."
    plan, then = _to_give(found), _REMEDIES.get(found.outcome, "")
    if not then or (runs and not found.stopped):
        # Trials that the budget's end has cut off were stopped, too.
        then = plan or _again(found)
    if step_s:
        seen = [f"A step takes about {_short(step_s)}", *_spent(found)]
        much = f"{', '.join(seen)}. {''.join(_traced(found))}{much}"
    headline = _NOT_KNOWN
    if how and not step_s:
        headline = "This training could not be run."
    elif how.startswith("raised "):
        # What the first look has seen at work can be run, and its own code ends it.
        headline = "This training makes some steps, then ends with an error."
    return Verdict(
        headline=headline,
        much=much,
        sure="not known yet" if headline == _NOT_KNOWN else "",
        because=(*([plan] if plan not in ("", then) else []), *_remarks(found)),
        next=then,
    )


def _spent(found: Diagnosis) -> Iterator[str]:
    """What the first look saw a step of a loop wait for, and its graphs take."""
    parts, waits_s = [], _waits_s(found)
    if waits_s is not None:
        parts.append(f"it waits {_short(waits_s)} for its data")
    graphs = found.facts.get("graphs_s") or {}
    within = [
        f"{_short(seconds)} in {f'`{name}`' if name else 'Keras'}"
        for name, seconds in list(graphs.items())[:_MOST_GRAPHS]
    ]
    if within:
        parts.append(f"{'' if parts else 'it '}spends {' and '.join(within)}")
    if parts:
        yield f"of which {' and '.join(parts)}"


def _waits_s(found: Diagnosis) -> float | None:
    """Seconds that a step of a loop waits for its data; of one that counts, None."""
    waits_s = found.facts.get("waits_s")
    known = isinstance(waits_s, int | float) and "input-bound" not in found.untested
    return waits_s if known else None


def _traced(found: Diagnosis) -> Iterator[str]:
    """What the first look saw being traced again and again."""
    for name, known in (found.facts.get("retraced") or {}).items():
        anew, took = int(known["traces"]) - 1, units.seconds(float(known["seconds"]))
        said = f"{tracing.named(name, known)} was traced anew {anew} times"
        yield f"{said[:1].upper()}{said[1:]}, {took} in all. "


def _applied(found: Diagnosis) -> Verdict | None:
    """What chosen changes brought, where nothing else was looked for."""
    if len(found.comparisons) != 1 or rounds.ONLY not in found.facts:
        return None
    (compared,) = found.comparisons
    together = found.together if compared.variant == TOGETHER else None
    what = listed(together.changes if together else [compared.variant])
    headlines = {
        "faster": f"Keep {what}: the training is faster so.",
        "slower": f"Do without {what}: the training is slower so.",
        "no difference shown": f"{what} changes nothing that shows.",
        "too noisy to say": f"Whether {what} makes it faster is not known yet.",
    }
    known = compared.is_judged and units.is_known(compared.low, compared.high)
    return Verdict(
        headline=headlines[compared.verdict],
        much=_much(found, gain(compared), "The training then") if known else "",
        sure=compared.sure,
        interval=compared.ends,
        warnings=tuple(_others(found)),
    )


def _to_do(found: Diagnosis) -> Verdict | None:
    """What brings most; a little of the input that may be spared is nothing to do."""
    causes = [
        c
        for c in found.best
        if not c.is_ceiling or c.kind == "defect" or c.speedup.is_much
    ]
    if not causes:
        return None
    cause, *others = causes
    headline = f"{_to_delete(cause) or cause.do}."
    if cause.is_ceiling and not found.explained(cause.change):
        headline = f"{_HELD_UP[cause.change]}; {_HOW}."
    elif found.healthy and not (found.left_open or found.unmeasured):
        right = f"Nothing is wrong in {_what(found)}. " if _is_little(found) else ""
        headline = f"{right}For more speed, {_low(headline)}"
    shown = "Without it the training" if cause.change[:7] == "without" else ""
    much = _much(
        found,
        cause.speedup,
        _RAN.get(cause.change, shown or "The training then"),
        would=cause.is_ceiling or cause.grade != "measured here" or not cause.change,
        # A step of a larger batch is another one.
        examples=cause.cause == "small-batch",
        least=cause.change == resident.PARTS,
    )
    if cause.change == "without Python":
        much += " What replaces it takes time, too."
    return Verdict(
        headline=headline,
        much=much,
        sure=found.how_sure(cause),
        interval=cause.speedup.ends,
        edits=cause.edits,
        warnings=tuple(_warnings(found, cause))[:2],
        next="\n".join(_next(found, cause, others[: _MOST_FIXES - 1])),
    )


def _is_little(found: Diagnosis) -> bool:
    """Whether all that is shown to be lost, or to be had, is little."""
    gains = [*(cause.speedup for cause in found.causes), found.ceiling]
    return not any(gain is not None and gain.is_much for gain in gains)


def _nothing_to_do(found: Diagnosis) -> Verdict:
    open_yet = (*found.left_open, *found.unmeasured)
    step, others = _step(found), (*_between(found), *_others(found))
    if open_yet or not found.healthy:
        much = f"{step}; {listed(open_yet)} may bring more." if open_yet else f"{step}."
        then = _again(found)
        if not found.comparisons and not open_yet:
            seen = ", ".join([step, *_spent(found)])
            much = f"{seen}; nothing in it can be changed without its code."
            then = _by_hand(found)
        if why := found.untested.get("eager"):
            then = as_sentence(why)
        return Verdict(
            headline=_NOT_KNOWN,
            much=much,
            sure="not known yet",
            warnings=others,
            next=then,
        )
    much = f"{step}; no change is shown to bring {units.percent(CLAIMED - 1)} or more."
    if little := next((c for c in found.causes if c.is_ceiling), None):
        much = _much(found, little.speedup, _RAN[little.change], would=True)
    headline = f"Nothing is wrong in {_what(found)}."
    if (limit := found.ceiling) and limit.is_much:
        # What would explain it brings too little to be a reason.
        headline = f"{_HELD_UP[resident.NAME]}; {_HOW}."
        much = _much(found, limit, _RAN[resident.NAME], would=True)
    is_sure = all(
        c.sure == "sure" for c in found.comparisons if not leaves_line_out(c.variant)
    )
    work = "Most of a step is its own work: only less of that makes it faster."
    return Verdict(
        headline=headline,
        much=much,
        sure="sure" if is_sure else "likely",
        warnings=others,
        next=work if _is_compute_bound(found) else "",
    )


def _by_hand(found: Diagnosis) -> str:
    """Where its author should look, where no change could be tried."""
    graphs = found.facts.get("graphs_s") or {}
    half_s = found.step.median_s / 2 if found.step else math.inf
    if (_waits_s(found) or 0.0) > half_s:
        return "Make its data faster: most of a step waits for them."
    if sum(graphs.values()) > half_s:
        most = next(iter(graphs))
        what = f"`{most}`" if most else "what Keras computes"
        return f"Look into {what} first: `perfkit profile` shows its operations."
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
    told = f", `{code}`" if last == edit.line and len(code) <= _LONGEST else ""
    return f"Delete {lines}{of_cell}{told}"


def _much(
    found: Diagnosis,
    gain: Gain,
    who: str,
    *,
    would: bool = False,
    examples: bool = False,
    least: bool = False,
) -> str:
    """How many times as fast, and how long a step takes then."""
    runs, takes = ("would run", "would take") if would else ("runs", "takes")
    if least:
        runs, takes = f"{runs} at least", f"{takes} at most"
    if not gain.is_known:
        return f"{who} {runs} faster; by how much is not known yet."
    said = f"{who} {runs} {gain.brief}"
    if gain.estimate < 1:
        said = f"{who} {takes} {units.times(1 / gain.estimate)} times as long"
    batch = int(found.facts.get("batch") or 0)
    if not (found.step and units.is_narrow(found.step.low, found.step.high)):
        return f"{said}."
    what = f"a step {takes}"
    if examples:
        what = f"{batch} examples {takes.removesuffix('s')}"
    step_s = found.step.median_s
    took = units.instead(_short(step_s / gain.estimate), _short(step_s))
    return f"{said}: {what} {took}."


def _short(seconds: float) -> str:
    """Seconds as a reader repeats them, with two significant digits."""
    return units.seconds(float(f"{seconds:.2g}") if seconds < 99.5 else seconds)


def _low(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _warnings(found: Diagnosis, cause: Cause) -> Iterator[str]:
    """What could change the decision for a change."""
    kept = found.facts.get("pipeline", {}).get("bytes")
    if cause.cause == "no-cache" and isinstance(kept, int | float):
        yield f"It keeps {units.size(kept)} in memory."
    if cause.mind:
        yield cause.mind
    together = found.together
    # What is not made together with others says nothing of them.
    at_once = together is not None and cause.change in together.changes
    if together and at_once and together.speedup.high < cause.speedup.low:
        names = listed(together.changes)
        yield f"Do not make all of it: {names} at once run {together.speedup.brief}."
    yield from _between(found)
    if cause.cause != "contention":
        yield from _others(found)


def _what(found: Diagnosis) -> str:
    return "its steps" if any(_between(found)) else "this training"


def _between(found: Diagnosis) -> Iterator[str]:
    """What comes again in the real training and is in no rate here."""
    if found.facts.get("again"):
        yield (
            "The script calls fit again and again: what a call of it costs beside its "
            "steps is in no rate here."
        )
    between_s = float(found.facts.get("between_s") or 0)
    if between_s > LONG_BETWEEN_S:
        step_s = found.step.median_s if found.step else 0.0
        steps_s = step_s * int(found.facts.get("steps") or 0)
        beside = f", beside {_short(steps_s)} of steps" if steps_s else ""
        yield (
            f"From epoch to epoch its own code took {_short(between_s)}{beside}: no "
            "rate here counts that, and no change of it was tried."
        )


def _others(found: Diagnosis) -> Iterator[str]:
    """That other programs kept cores busy meanwhile."""
    busy = [cores for _, cores in load.known(found.finding, "cpu_other")]
    kept = sum(busy) / len(busy) if busy else 0.0
    if kept >= _OTHERS:
        told = f"{units.significant(kept, 2)} of {found.machine.cores} cores"
        yield f"Other programs kept {told} busy meanwhile: end them to be surer."


def _next(found: Diagnosis, cause: Cause, others: Sequence[Cause]) -> Iterator[str]:
    """What to type where no line says it, and what to do after that."""
    before = ""
    needs = not cause.edits or any(edit.new is None for edit in cause.edits)
    if needs and (told := _to_type(found, cause)):
        yield told
        before = "Then "
    for other in others:
        if other.is_ceiling:
            how = " at most, by what is not known yet"
        elif cause.is_ceiling:
            how = ""
        elif other.speedup.high >= cause.speedup.low:
            how = " by itself, which may be as much"
        else:
            how = " by itself"
        yield (
            f"{before}{_low(other.do) if before else other.do}: {other.speedup.brief}"
            f"{how}."
        )
        before = "Then "


def _to_type(found: Diagnosis, cause: Cause) -> str:
    """The fix; what the headline says is not said again, and code keeps its case."""
    said, _, rest = cause.fix.partition(": ")
    if said.rstrip(".") != cause.do:
        return cause.fix
    most = found.anatomy.get("limits")
    if cause.change == resident.NAME and any(
        stage.name == most for stage in stages(found.anatomy)
    ):
        return f'Look at "{plain(str(most), 80)}" first.'
    return f"{rest[:1].upper()}{rest[1:]}"


def _again(found: Diagnosis) -> str:
    return f"Run again with {as_budget(2 * found.budget_s, found.training)}."


def _to_give(found: Diagnosis) -> str:
    """The plan of a run that is over, where it says what to give the next one."""
    plan = str(found.facts.get(rounds.PLAN) or "")
    return plan if "budget" in plan else ""


def because(found: Diagnosis) -> Iterator[str]:
    """Say what the verdict rests on, a sentence or two each."""
    yield f"{_step(found, whole=True)} {_MEASURED}."
    if plan := _to_give(found):
        yield f"Planned by its first steps: {plan}"
    for cause in found.causes:
        means = f"{MEANINGS[cause.cause]}. " if cause.cause in MEANINGS else ""
        kind = f"{_KINDS[cause.kind]}; {cause.grade}"
        yield f"{cause.cause}: {means}{cause.evidence} ({kind})"
    yield from _input(found)
    if found.together:
        together = found.together.speedup
        yield (
            f"Together, {listed(found.together.changes)} run {together.brief} "
            f"({between(together)}); gains do not add up {_MEASURED}."
        )
    yield from _ends(found)
    yield from _aside(found)
    if found.healthy and _is_little(found) and _is_compute_bound(found):
        yield (
            "It is compute-bound: most of its time is the work of its steps (inferred)."
        )
    reached = split.known(found.facts)
    if reached is not None:
        yield f"{split.in_words(reached).rstrip('.')} {_MEASURED}."
    yield from _remarks(found)
    yield from _failures(found)


def _step(found: Diagnosis, *, whole: bool = False) -> str:
    step = found.step
    if step is None or not units.is_known(step.low, step.high):
        return "How long a step takes as it is is not known yet"
    if not whole:
        took = units.roughly(step.median_s, step.low, step.high, _short)
        return f"A step takes {took}"
    median, low, high = map(units.seconds, (step.median_s, step.low, step.high))
    return f"As it is a step takes {median} ({low} to {high})"


def _input(found: Diagnosis) -> Iterator[str]:
    """The ceiling, and what of it the best change of the input gets back."""
    limit = found.ceiling
    if limit is None:
        return
    gain = f"{units.ratio(limit.estimate)} the rate ({between(limit)})"
    if found.explained(resident.NAME) > limit.high:
        # One of its changes is shown to bring more.
        return
    if not (limit.low > 1 and limit.estimate >= max(CLAIMED, found.noise_floor or 1)):
        sure = limit.high < WORTH_KNOWING
        said = (
            "Its input does not hold it up"
            if sure
            else "Whether its input holds it up is open"
        )
        yield f"{said}: without any it runs at {gain} {_MEASURED}."
        return
    said = f"Without any input it runs at {gain} {_MEASURED}: no pipeline brings more."
    best = next((c for c in found.causes if c.cause in OF_INPUT), None)
    if best:
        share = recovered(best.speedup, limit)
        said += (
            f' "{best.change}" gets back {units.percent(share)} of the time that input '
            "costs."
        )
    yield said


def recovered(gain: Gain, limit: Gain) -> float:
    """Which share of the time that input costs a change of it saves, at most 1."""
    saved, lost = 1 - 1 / gain.estimate, 1 - 1 / limit.estimate
    return min(1.0, max(0.0, saved / lost)) if lost > 0 else 0.0


def _ends(found: Diagnosis) -> Iterator[str]:
    """Ends of epochs that differ by much, and what that does to the gains."""
    given = [t for t in found.trials if t.variant in (AS_GIVEN, CONTROL)]
    ends = [one for t in given for one in t.pauses.get(EPOCH_END, ())]
    every = [t.recurring[EPOCH_END][0] for t in given if EPOCH_END in t.recurring]
    if not (ends and every and found.step):
        return
    differ_s = (max(ends) - min(ends)) * int(found.facts.get("batch", 1)) / every[0]
    if differ_s > _DIFFER * found.step.median_s:
        yield (
            f"An end of an epoch took {units.seconds(min(ends))} to "
            f"{units.seconds(max(ends))}: a pipeline that is dropped may wait for its "
            "tuning thread, which sleeps. All changes are charged with that alike, so "
            f"one that makes steps faster may bring more than is shown {_MEASURED}."
        )


def _aside(found: Diagnosis) -> Iterator[str]:
    """What changes the learning, and seems to bring more than it does."""
    gains = [
        f'"{c.variant}" runs at {units.ratio(c.ratio)} the rate '
        f"({c.low:.2f} to {c.high:.2f})"
        for c in found.comparisons
        if c.variant in found.aside and units.is_known(c.low, c.high)
    ]
    if gains:
        yield (
            f"{'; '.join(gains)} {_MEASURED}. This changes what is learnt: fix the "
            "defects first, and look again."
        )


def _remarks(found: Diagnosis) -> Iterator[str]:
    """Say what a reader should know of how the training ran."""
    if why := found.facts.get("uncontained"):
        yield uncontained_in_words(str(why))
    names = [str(name) for name in found.facts.get("late") or ()]
    if names:
        yield settings.late_in_words(names)
    if why := found.notes.get(NO_TURNS):
        yield f"No change could be tried in the process that was set up: {why}"


def _failures(found: Diagnosis) -> Iterator[str]:
    """How changes ended that could not be measured, or not always."""
    ended = {
        trial.variant: trial.message or trial.outcome
        for trial in found.trials
        if trial.has_failed and trial.variant != AS_GIVEN
    }
    for name, how in ended.items():
        yield f'"{name}" {how.rstrip(".")}.'


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, the first few of them."""
    quoted = [f'"{name}"' for name in names[:_MOST_NAMES]]
    more = len(names) - len(quoted)
    if more:
        quoted.append(f"{more} more")
    *first, last = quoted
    return f"{', '.join(first)} and {last}" if first else last


def between(gain: Gain) -> str:
    """The interval of a gain."""
    return f"95 % interval {gain.low:.2f} to {gain.high:.2f}"


def _is_compute_bound(found: Diagnosis) -> bool:
    """Whether what no change takes away is shown to be most of a step."""
    work = found.split.get("compute")
    return bool(found.step and work and (work.low or 0.0) > found.step.median_s / 2)
