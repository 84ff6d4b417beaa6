"""What a finding and a diagnosis report: their verdict, rows and everything folded."""

import collections
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perfkit import units
from perfkit.engine.measurement import CONTROL, OWN
from perfkit.engine.statistics import WORTH_KNOWING, Comparison
from perfkit.engine.trial import ONE_PROCESS
from perfkit.findings import account_report, load
from perfkit.findings import record as records
from perfkit.findings.diagnosis import ARGUMENTS, TOGETHER, WITHOUT_INPUT, Diagnosis
from perfkit.findings.record import Finding
from perfkit.findings.report import Fold, Report, Table
from perfkit.findings.standing import (
    Standing,
    counts_runs,
    has_microbenchmarks,
    microbenchmarks,
    rate,
    share_of,
    standings,
)
from perfkit.findings.text import (
    as_sentence,
    is_file,
    minute,
    one_line,
    paragraphs,
    without_marks,
)
from perfkit.machine.record import Machine

# The least gain that is worth claiming.
_WORTH = 1.05
_UNMEASURED = "it may help, but this run did not measure it"
# The parameter of what was typed as a command of its own.
TYPED = "command"
# Of what is not known yet so many are named at once; all stand among the rest.
_NAMED = 2


@records.report.register
def of_finding(finding: Finding) -> Report:
    """What a person reads of a finding."""
    repeat, table = _repeat(finding), _variants(finding)
    return Report(
        verdict=load.with_next(finding.verdict, finding),
        question=finding.question,
        stamp=finding.stamp,
        table=table,
        charted=True,
        besides=tuple(_missing(finding, table)),
        folds=(*finding.verdict.folds, *_common_folds(finding, repeat)),
        repeat=repeat,
        foot=tuple(_foot(finding)),
        path=finding.path,
    )


@records.report.register
def of_diagnosis(diagnosis: Diagnosis) -> Report:
    """What a person reads of a diagnosis."""
    finding, account = diagnosis.finding, diagnosis.account
    repeat, table = _repeat(finding, diagnosis.training), _to_change(diagnosis)
    # Where nothing was swapped the account is all there is, and is whole.
    is_whole = account is not None and not finding.timings
    missing: Iterable[str] = () if is_whole else _missing(finding, table)
    causes, tried = _causes(diagnosis), _unclaimed(diagnosis)
    return Report(
        verdict=load.with_next(diagnosis.verdict, finding, diagnosis.training),
        question=finding.question,
        stamp=finding.stamp,
        table=table,
        listing=account_report.listing(account) if account else None,
        besides=(*_besides(diagnosis), *missing),
        folds=(
            *(account_report.folds(account) if account else ()),
            Fold("How each cause is known, and what to type", tables=(causes,)),
            Fold(tried.title, tables=(tried,)),
            *_common_folds(finding, repeat),
        ),
        repeat=repeat,
        foot=tuple(_foot(finding)),
        path=diagnosis.path,
    )


def machine_in_words(machine: Machine) -> str:
    """A machine in a line, with what trained on it."""
    library = machine.versions.get("tensorflow", "")
    trainer = f", TensorFlow {library}" if library else ""
    return f"{machine.summary}{trainer}"


def facts(finding: Finding) -> Fold:
    """What it was measured on, name by name: for a page."""
    machine, sentences = finding.machine, []
    groups: dict[str, Mapping[str, Any]] = {
        "Drivers": {gpu.name: gpu.driver for gpu in machine.gpus},
        "Libraries": {"Python": machine.python} | machine.versions,
        "Environment variables": machine.environment,
    }
    for title, values in groups.items():
        if words := [f"{name} {text}" for name, text in values.items() if text]:
            sentences.append(f"{title}: {', '.join(words)}.")
    return Fold("What it was measured on", tuple(sentences))


def _common_folds(finding: Finding, repeat: str) -> tuple[Fold, ...]:
    """What every run has to tell of itself, with what to type to ``repeat`` it."""
    load_told = tuple(map(as_sentence, load.in_words(finding)))
    claims = paragraphs("sure.txt.j2", finding=finding, worth_knowing=WORTH_KNOWING - 1)
    return (
        Fold("Every variant, with its code", code=tuple(finding.code.items())),
        Fold(
            "How sure is this?",
            (*finding.verdict.because, *claims),
            (finding.verdict.facts_table,),
        ),
        Fold("What the machine did meanwhile", load_told),
        Fold(
            "How it was measured, and how to repeat it",
            (repeat, *_method(finding), *_failures(finding)),
            tables=(_works(finding),),
        ),
    )


def _variants(finding: Finding) -> Table:
    """Every variant: its rate, its ratio, what that means."""
    stood = standings(finding)
    if microbenchmarks(finding.notes):
        return _benchmarks(finding, stood)
    places = [row for row, s in enumerate(stood) if s.is_fastest]
    rate_heading = "a run takes" if counts_runs(finding) else "examples/s"
    return Table(
        "All variants",
        ("variant", rate_heading, "against", "as fast", "what that shows"),
        tuple(map(_variant, stood)),
        places[0] if places else -1,
    )


def _variant(standing: Standing) -> tuple[str, ...]:
    compared, judged = standing.comparison, ""
    ratio = ("baseline" if standing.is_baseline else "", "")
    if compared is not None:
        ratio, judged = (compared.baseline, compared.interval), compared.judgement
    place = "the fastest here" if standing.is_fastest else ""
    remarks = (judged, place, standing.problem)
    return (standing.variant, rate(standing), *ratio, "; ".join(filter(None, remarks)))


def _benchmarks(finding: Finding, stood: tuple[Standing, ...]) -> Table:
    """Rates that count something else each, and the most that is possible of it."""
    benchmarks = microbenchmarks(finding.notes)
    rows = []
    for part in stood:
        limit = units.rate(part.limit, part.unit) if part.limit else "not known"
        share = ""
        if part.timing and part.limit:
            share = share_of(part.timing, part.limit)
        possible = limit if part.variant in benchmarks else ""
        rows.append((part.variant, part.problem or rate(part), share, possible))
    headings = ("part", "rate", "share", "limit in theory")
    return Table("Each part of the machine", headings, tuple(rows))


def _works(finding: Finding) -> Table:
    """What each part was given to do, and how its limit was worked out."""
    parts = microbenchmarks(finding.notes).items()
    rows = ((name, part.what, part.limit_from) for name, part in parts)
    headings = ("part", "what is done", "where the limit is from")
    return Table("What was done", headings, tuple(rows))


def _missing(finding: Finding, table: Table) -> Iterator[str]:
    """What keeps it from being whole."""
    if any(cell.startswith(units.UNKNOWN) for row in table.rows for cell in row):
        yield f'"{units.UNKNOWN}": not known yet, because the interval is too wide.'
    if not finding.timings:
        yield next(_failures(finding), "No variant could be timed.")
    elif not finding.comparisons and not has_microbenchmarks(finding):
        yield "No two variants could be compared."
    if finding.ended_early:
        yield finding.ended_early


def _foot(finding: Finding) -> Iterator[str]:
    if finding.guess:
        yield f"Your guess: {finding.guess}"
    when = minute(finding.recorded)
    yield f"Measured on {machine_in_words(finding.machine)}, {when}."


def _method(finding: Finding) -> tuple[str, ...]:
    """What was done, a few sentences each."""
    trials = finding.trials
    ended = collections.Counter(trial.outcome for trial in trials)
    ends = (trial.started_s + trial.wall_s for trial in trials if trial.round)
    return paragraphs(
        "method.txt.j2",
        finding=finding,
        of_parts=has_microbenchmarks(finding),
        of_runs=counts_runs(finding),
        is_diagnosis=finding.experiment == Diagnosis.kind,
        ran=len({t.variant for t in trials if not t.is_try} - {CONTROL}),
        rounds=max((trial.round for trial in trials), default=0),
        outcomes=", ".join(f"{count} {outcome}" for outcome, count in ended.items()),
        tries=sum(trial.is_try for trial in trials),
        turns=sum(len(trial.turns) for trial in trials),
        one_process=any(trial.notes.get(ONE_PROCESS) for trial in trials),
        one_round={c.rounds for c in finding.comparisons} == {1},
        spent=max(ends, default=0.0),
    )


def _repeat(finding: Finding, training: str = "") -> str:
    """What to type for the same once more; ``training`` is what was diagnosed."""
    budget, seed = f"budget={finding.budget_s:g}", f"seed={finding.seed}"
    parameters, typed = dict(finding.parameters), finding.parameters.get(TYPED)
    hint = ", its own arguments after `--`" if parameters.pop(ARGUMENTS, "") else ""
    if training and not is_file(training):
        command = f"perfkit.diagnose({training}, {budget}, {seed})"
    elif typed:
        again = f"perfkit race --{budget} --{seed}"
        command = str(typed).replace("perfkit race", again, 1)
    else:
        words = ["diagnose", training] if training else ["run", finding.experiment]
        flags = filter(None, (_option(*pair) for pair in parameters.items()))
        command = shlex.join(["perfkit", *words, *flags, f"--{budget}", f"--{seed}"])
    again = f"`{one_line(command, 600)}`{hint}"
    if OWN in finding.code and not typed:
        # No command has the reader's function.
        again = "run its cell again"
    return f"Repeat it: {again} (perfkit {finding.perfkit})."


def _option(name: str, value: Any) -> str:
    """A parameter as an option of the command line; "" where it says nothing."""
    dashed = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{dashed}" if value else f"--no-{dashed}"
    has_value = isinstance(value, str | int | float) and value != ""
    return f"--{dashed}={value}" if has_value else ""


def _failures(finding: Finding) -> Iterator[str]:
    """What was said when a trial did not complete; the same said once."""
    yield from dict.fromkeys(
        f"{t.variant}, round {t.round}, {t.outcome}: {t.message}"
        for t in finding.trials
        if t.outcome != "completed" and t.message
    )


def _to_change(diagnosis: Diagnosis) -> Table:
    """The most that a reader acts on: what, where, how much, how sure."""
    rows = [
        (
            cause.do,
            cause.edits[0].where if cause.edits else "",
            f"at most {gain}" if cause.ceiling else gain,
            diagnosis.how_sure(cause),
        )
        for cause in diagnosis.best[:3]
        for gain in [cause.speedup.interval]
    ]
    alone = max((cause.speedup.estimate for cause in diagnosis.best), default=0.0)
    together, compared = diagnosis.together, diagnosis.compared(TOGETHER)
    # What brings no more than one of them by itself is nothing to do.
    if together and together.speedup.estimate > alone:
        names, sure = " + ".join(together.changes), compared.sure if compared else ""
        rows.append((f"Together: {names}", "", together.speedup.interval, sure))
    strong = 0 if rows else -1
    if diagnosis.account and diagnosis.account.growth:
        grows, remedy, where = account_report.memory_advice(diagnosis.account)
        rows.append((f"{remedy}. {grows}", where, "not tested", "likely"))
    headings = ("change", "line", "as fast", "how sure")
    return Table("Changes", headings, tuple(rows), strong)


def _besides(diagnosis: Diagnosis) -> Iterator[str]:
    """What is in order, and what is not known yet."""
    yield from diagnosis.in_order
    entries = []
    for reason, names in (
        ("little measured", diagnosis.left_open),
        ("not measured", diagnosis.unmeasured),
    ):
        several = f"{len(names)} changes" if len(names) > _NAMED else ", ".join(names)
        if names:
            entries.append(f"{several} ({reason})")
    if entries:
        yield f"Not known yet: {'; '.join(entries)}."


def _causes(diagnosis: Diagnosis) -> Table:
    rows = tuple(
        (
            ": ".join(filter(None, [cause.cause, cause.change])),
            cause.kind,
            cause.evidence,
            cause.grade,
            "\n".join([cause.fix, *map(str, cause.edits)]),
        )
        for cause in diagnosis.causes
    )
    headings = ("cause: change", "kind", "evidence", "how it is known")
    return Table("What slows it", (*headings, "what to type"), rows)


def _of_line(comparison: Comparison, where: str) -> str:
    """What a fix of a line brings at most, in a sentence."""
    if not (comparison.is_judged and comparison.ends):
        return f"The most that a fix of {where} brings is not known yet."
    if comparison.verdict != "faster":
        return f"No fix of {where} is shown to bring anything."
    return (
        f"Without the work of {where} the training would run "
        f"{units.times(comparison.ratio)} times as fast ({comparison.ends}), so no "
        "fix of that line brings more."
    )


def _unclaimed(diagnosis: Diagnosis) -> Table:
    """What no cause claims: what it brought, or why it was not tried."""
    claimed = {cause.change for cause in diagnosis.causes} | {diagnosis.baseline}
    rows = [
        (standing.variant, *_what_came_of(standing, diagnosis))
        for standing in standings(diagnosis.finding)
        if standing.variant not in claimed
    ]
    reasons = diagnosis.untested | dict.fromkeys(diagnosis.unmeasured, _UNMEASURED)
    rows += [
        (name, "not tested", without_marks(reason)) for name, reason in reasons.items()
    ]
    headings = ("change or cause", "as fast", "what that shows")
    return Table("Everything that was tried, and what was not", headings, tuple(rows))


def _what_came_of(standing: Standing, diagnosis: Diagnosis) -> tuple[str, str]:
    compared, name = standing.comparison, standing.variant
    if compared is None:
        return "not measured", standing.problem
    if where := diagnosis.left_out.get(name):
        return compared.interval, _of_line(compared, where)
    words = compared.judgement
    if name == TOGETHER and diagnosis.together:
        words = f"all at once: {', '.join(diagnosis.together.changes)}"
    elif name == WITHOUT_INPUT and diagnosis.ceiling:
        words = "every step on one batch: no faster pipeline brings more"
    elif name in diagnosis.aside:
        words = "faster, but it changes what the model learns: fix the defects first"
    elif compared.verdict == "faster" and compared.ratio < _WORTH:
        words = "faster, but by too little to be worth a change"
    elif compared.verdict == "faster" and not compared.stands_out:
        words = "faster, perhaps by chance, because so many changes were tried"
    return compared.interval, "; ".join(filter(None, (words, standing.problem)))
