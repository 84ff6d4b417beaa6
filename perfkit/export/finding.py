"""A finding as a page shows it: texts, pictures and tables, ready to be laid out."""

from __future__ import annotations

import collections
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from perfkit import units
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.sections import sections
from perfkit.findings.standing import is_ladder, of_limit, rate, rungs, standings
from perfkit.findings.text import plain, plain_lines, with_code
from perfkit.measure.measurement import TWIN
from perfkit.measure.statistics import WORTH_KNOWING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.findings.record import Finding
    from perfkit.findings.standing import Standing
    from perfkit.findings.store import Recorded
    from perfkit.machine.gpu import Gpu


_NUMBERS_NAME = 80
_PLACES = {"fastest": "the fastest here", "tied": "among the fastest here", "": ""}


@dataclass(frozen=True)
class Table:
    """Cells as text; the first of each row is its name.

    Attributes:
        caption: What it is about.
        headings: Of the columns.
        rows: One tuple each, as long as ``headings``.
        strong: The row that stands out; -1 for none.
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: int = -1


def tables(finding: Finding) -> Iterator[Table]:
    """The tables that there is something to say in."""
    stood = standings(finding)
    if rungs(finding.notes):
        yield _rungs(finding, stood)
    elif stood:
        yield _rates(stood)
    if finding.timings:
        yield _before(stood)
    if finding.trials:
        yield _numbers_trials(finding)


def _rungs(finding: Finding, stood: tuple[Standing, ...]) -> Table:
    """Rates that count something else each, and the most that is possible of it."""
    told = rungs(finding.notes)
    rows = []
    for s in stood:
        rung = told.get(s.variant)
        limit = units.rate(s.limit, s.unit) if s.limit else "not known"
        rows.append(
            (
                plain(s.variant, _NUMBERS_NAME),
                plain(s.problem) or rate(s),
                of_limit(s),
                limit if rung else "",
                rung.what if rung else "",
                rung.limit_from if rung else "",
            )
        )
    return Table(
        "Steady rates with their 95 % intervals, and the limits in theory",
        ("rung", "rate", "share", "limit", "what is done", "where the limit is from"),
        tuple(rows),
    )


def _rates(stood: tuple[Standing, ...]) -> Table:
    strong = [row for row, s in enumerate(stood) if s.place == "fastest"]
    return Table(
        "Steady rates, and their ratios to what each variant is compared with",
        (
            *("variant", "examples/s", "95 % interval"),
            *("compared with", "ratio", "95 % interval of it", "verdict"),
        ),
        tuple(map(_rate, stood)),
        strong[0] if strong else -1,
    )


def _rate(standing: Standing) -> tuple[str, ...]:
    timing, compared = standing.timing, standing.comparison
    rate = ("not timed", "")
    if timing:
        rate = _apart(timing.rate, timing.low, timing.high, units.significant)
    ratio = ("baseline" if standing.is_baseline else "", "", "")
    if compared:
        found = _apart(compared.ratio, compared.low, compared.high, units.ratio)
        ratio = (plain(compared.baseline, _NUMBERS_NAME), *found)
    said = (compared.judgement if compared else "", _PLACES[standing.place])
    words = "; ".join(filter(None, (*said, plain(standing.problem))))
    return (plain(standing.variant, _NUMBERS_NAME), *rate, *ratio, words)


def _before(stood: tuple[Standing, ...]) -> Table:
    """What is told apart from the steady rate."""
    rows = tuple(
        (
            plain(s.variant, _NUMBERS_NAME),
            units.seconds(s.timing.setup_s),
            units.seconds(s.timing.first_call_s),
            units.seconds(s.timing.warm_up_s),
            units.percent(s.timing.drift) if s.timing.drift else "none shown",
            units.percent(s.timing.cv) if s.timing.trials > 1 else "one trial",
        )
        for s in stood
        if s.timing
    )
    return Table(
        "Before the steady rate, and how it varied",
        (
            *("variant", "set-up", "first call", "until steady"),
            *("drift within a trial", "spread between trials"),
        ),
        rows,
    )


def _numbers_trials(finding: Finding) -> Table:
    ended = collections.Counter((t.variant, t.outcome) for t in finding.trials)
    variants = dict.fromkeys(t.variant for t in finding.trials)
    # In the order of the record's own definition, completed first.
    outcomes = sorted({t.outcome for t in finding.trials}, key=_badness)
    rows = tuple(
        (
            plain(variant, _NUMBERS_NAME),
            *(str(ended[variant, outcome]) for outcome in outcomes),
        )
        for variant in variants
    )
    return Table("Trials by their outcome", ("variant", *outcomes), rows)


def _badness(outcome: str) -> int:
    known = ("completed", "stopped", "timed-out", "out-of-memory", "crashed")
    return known.index(outcome)


def _apart(
    value: float, low: float, high: float, write: Callable[[float], str]
) -> tuple[str, str]:
    """A value and its interval as two cells."""
    if not units.is_known(low, high):
        return units.UNKNOWN, units.UNKNOWN
    return write(value), f"{write(low)} to {write(high)}"


_METHOD_NAME, _VALUE, _FACT = 80, 300, 600

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
    yield "Trials", _method_trials(finding)
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
        f"{plain(t.variant, _METHOD_NAME)}, round {t.round}, {t.outcome}: "
        f"{plain(t.message)}"
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
            (plain(str(name), _METHOD_NAME), plain(_text(value), _FACT) or "none")
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
        said.append(f"The baseline is {plain(finding.baseline, _METHOD_NAME)}.")
    for name, why in finding.unavailable.items():
        said.append(f"{plain(name, _METHOD_NAME)} was not run: {plain(why, _VALUE)}.")
    return " ".join(said).replace("..", ".")


def _method_trials(finding: Finding) -> str:
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
    from perfkit.charts.timeline import in_words

    said = [plain(words, _VALUE) for words in in_words(finding)]
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


_SENTENCE = 600


@dataclass(frozen=True, kw_only=True)
class ShownFinding:
    """A finding in texts that a page can hold.

    Attributes:
        question: What was asked.
        headline: The verdict.
        because: What it rests on.
        next: What to do now.
        guess: What the reader expected; "" if nothing.
        warnings: What keeps the verdict from being whole.
        machine: What it was measured on, in a line.
        recorded: When it was begun.
        file: The name of its file; "" where it has none.
        figures: Its charts.
        tables: Its numbers.
        method: How it was measured, as terms and sentences.
        verdicts: What the words of the verdict mean.
        failures: What was said about trials that did not complete.
        facts: What it was asked with and measured on.
    """

    question: str
    headline: str
    because: tuple[Markup, ...]
    next: Markup
    guess: str
    warnings: tuple[str, ...]
    machine: str
    recorded: str
    file: str
    figures: tuple[Markup, ...]
    tables: tuple[Table, ...]
    method: tuple[tuple[str, str], ...]
    verdicts: tuple[tuple[str, str], ...]
    failures: tuple[str, ...]
    facts: tuple[Table, ...]


def shown(found: Recorded, *, charts: bool = True) -> ShownFinding:
    """Prepare a finding, or a diagnosis, for a page.

    Args:
        found: What to show.
        charts: Whether to draw it.
    """
    finding = found.finding if isinstance(found, Diagnosis) else found
    verdict = finding.verdict
    return ShownFinding(
        question=plain(finding.question, _SENTENCE),
        headline=plain(verdict.headline, _SENTENCE),
        because=tuple(
            _with_code(plain(reason, _SENTENCE)) for reason in verdict.because
        ),
        next=_with_code(plain_lines(verdict.next)),
        guess=plain(finding.guess),
        warnings=tuple(_warnings(finding)),
        machine=machine(finding),
        recorded=plain(finding.recorded[:16].replace("T", " ")),
        file=plain(found.path.name, _SENTENCE) if found.path else "",
        figures=tuple(_figures(found)) if charts else (),
        tables=(*_sections(found), *tables(finding)),
        method=tuple(method(finding)),
        verdicts=VERDICTS,
        failures=failures(finding),
        facts=tuple(facts(finding)),
    )


def machine(finding: Recorded) -> str:
    """The machine of a finding in a line, with what trained on it."""
    library = plain(finding.machine.versions.get("tensorflow", ""), 40)
    known = f", TensorFlow {library}" if library else ""
    return f"{plain(finding.machine.summary, _SENTENCE)}{known}"


def _warnings(finding: Finding) -> Iterator[str]:
    if finding.replayed:
        yield finding.stamp
    if finding.ended_early:
        yield finding.ended_early
    if not finding.timings:
        yield "No variant could be timed."
    elif not finding.comparisons and not is_ladder(finding):
        yield "No two variants could be compared."


def _sections(found: Recorded) -> Iterator[Table]:
    if isinstance(found, Diagnosis):
        for section in sections(found):
            yield Table(section.title, section.headings, section.rows)


def _figures(finding: Recorded) -> Iterator[Markup]:
    from perfkit.gallery import chart, kinds

    for number, kind in enumerate(kinds(finding), 1):
        yield chart(finding, kind).in_document(number)


def _with_code(text: str) -> Markup:
    """Escape a text and set what stands between backticks as code."""
    return Markup(with_code(str(escape(text))))
