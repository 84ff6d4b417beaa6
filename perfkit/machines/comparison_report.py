"""What a comparison of two machines says: its sentences, its tables and its page."""

from collections.abc import Iterable, Iterator, Sequence

from perfkit import units
from perfkit.export.page import laid_out, page_of
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.machine.checks.base import first_way
from perfkit.machines import ratios
from perfkit.machines.comparison import (
    LOAD,
    UNEXPLAINED,
    Change,
    Explained,
    Explanation,
    Said,
    largest,
    size,
)
from perfkit.machines.ratios import BenchmarkRatio, Differs, Ratio
from perfkit.passports.words import seconds

_PARTS_SAID = {
    "input": "the input pipeline",
    "dispatch": "starting the steps (dispatch)",
    "transfer": "copying to the GPU (transfer)",
    "compute": "compute",
    "throttling": "slower clocks (throttling)",
    LOAD: "background load",
    UNEXPLAINED: "not explained",
}
_NEXT = {
    "input": "`perfkit run data-pipeline` says which input pipeline is fastest there.",
    "dispatch": "`perfkit run execution-mode` says what several steps per call bring.",
    "transfer": "`perfkit doctor` says whether the link to the GPU is held back.",
    "compute": "`perfkit doctor --probe` says how near to its limits each part comes.",
}
# A share whose interval spans a larger factor is not known, unless all of it is small.
_SMALL = 0.1
# What surely reaches this may be all of it.
_NEARLY_ALL = 0.9
_ALIKE, _NOISY = "no difference shown", "too noisy to say"


def percent(value: float | None, low: float | None, high: float | None) -> str:
    """A share with its interval, or ``units.UNKNOWN``; "" where there is none."""
    if value is None or low is None or high is None:
        return ""
    small = max(abs(low), abs(high)) <= _SMALL
    if not small and not units.is_known(low, high):
        return units.UNKNOWN
    return f"{value:z.0%} ({low:z.0%} to {high:z.0%})".replace("%", " %")


def share(change: Change) -> str:
    """A part's share of the difference, as text."""
    return percent(change.share, change.share_low, change.share_high)


def _times(speed: Ratio) -> tuple[str, str, str]:
    """How many times, ``"as long"`` or ``"as fast"``, and the ends of the interval."""
    slower = speed.ratio < 1
    word = "as long" if slower else "as fast"
    values = speed.ratio, speed.low, speed.high
    middle, *ends = (1 / value if slower else value for value in values)
    low, high = sorted(ends)
    if not units.is_known(low, high):
        return units.UNKNOWN, word, "how much is not known yet"
    return units.times(middle), word, f"{units.times(low)} to {units.times(high)}"


def _on_both(work: Explained) -> str:
    return f"{seconds(work.a)} {work.a_unit} on A, {seconds(work.b)} on B"


def _all_named(found: Iterable[Differs]) -> str:
    """Differences with both their values, in one clause."""
    told = (f"{one.what}: {one.a} on A, {one.b} on B" for one in found)
    return "; ".join(dict.fromkeys(told))


def verdict(works: tuple[Explained, ...]) -> Said:
    """What is shown over all jobs, as a word."""
    speeds = [work.speed for work in works if work.speed]
    said = {speed.verdict for speed in speeds}
    both = [work for work in works if work.a is not None and work.b is not None]
    if both and all(work.job for work in both):
        return "not the same job"
    if not said:
        return "not measured"
    claimed = said & {"faster", "slower"}
    if claimed:
        return claimed.pop() if len(claimed) == 1 else "depends on the training"
    whole = ratios.on_the_whole(speeds)
    alike = said == {_ALIKE} or (whole is not None and whole.verdict == _ALIKE)
    return "no difference shown" if alike else "too noisy to say"


def headline(
    found: Said,
    works: tuple[Explained, ...] = (),
    job: tuple[Differs, ...] = (),
    benchmarks: tuple[BenchmarkRatio, ...] = (),
) -> str:
    """It all in a sentence."""
    if found == "not the same job":
        named = job or tuple(one for work in works for one in work.job)
        return f"Not the same job, so no word on speed: {_all_named(named)}."
    most = largest(works)
    if most is not None:
        return _claim(most)
    compared = [work for work in works if work.speed is not None]
    if not compared:
        return f"No training was measured on both machines{_of_benchmarks(benchmarks)}."
    return _without_claim(found, compared)


def _claim(work: Explained) -> str:
    """How many times as long, or as fast, a job runs on B."""
    if work.speed is None:
        return ""
    times, word, _ = _times(work.speed)
    verb = "takes" if work.speed.ratio < 1 else "runs"
    name = f"{work.name[:1].upper()}{work.name[1:]}"
    return f"{name} {verb} {times} times {word} on B as on A."


def _of_benchmarks(benchmarks: tuple[BenchmarkRatio, ...]) -> str:
    """How many parts of B are slower or faster, and which most."""
    known = [(one.name, one.speed) for one in benchmarks if one.speed is not None]
    if not known:
        return ", and no part of them"
    told = []
    for word in ("slower", "faster"):
        found = [one for one in known if one[1].verdict == word]
        if found:
            name, speed = max(found, key=lambda one: size(one[1]))
            told.append(
                f"{word} in {len(found)} (most in {name}, {units.ratio(speed.ratio)})"
            )
    said = " and ".join(told) or "shown to differ in none"
    return f"; of {len(known)} parts B is {said}"


def _without_claim(found: Said, works: list[Explained]) -> str:
    """That no difference shows, or that too much is left open, and where."""
    speeds = [work.speed for work in works if work.speed]
    noisy = sum(speed.verdict == _NOISY for speed in speeds)
    noun = "training" if works[0].unit == "step" else "variant"
    count = f"{noisy} of {len(works)} {noun}{'' if len(works) == 1 else 's'}"
    left = f"{count} may differ by more than 10 %"
    if found != _ALIKE:
        return f"Too noisy to say: {left}."
    whole = ratios.on_the_whole(speeds)
    said = "No difference shown"
    if whole is not None:
        times, word, ends = _times(whole)
        verb = "takes" if whole.ratio < 1 else "runs"
        said += f": on the whole B {verb} {times} times {word} as A ({ends})"
    return f"{said}{f'; alone, {left}' if noisy else ''}."


def because(works: tuple[Explained, ...], software: str) -> Iterator[str]:
    """The measured facts, a sentence each."""
    if software:
        yield software
    for work in works:
        if work.speed is not None:
            times, word, ends = _times(work.speed)
            told = f"{times} times {word} ({ends}): {work.speed.verdict}"
            yield f"{work.name}: {_on_both(work)}, {told}."
        elif work.job:
            yield f"{work.name} is another job on B: {_all_named(work.job)}."
        else:
            yield f"{work.name}: {work.missing}"
    most = largest(works)
    if most is not None:
        yield from _split(most)


def _split(work: Explained) -> Iterator[str]:
    for change in work.causes[1:]:
        part = share(change)
        if part == units.UNKNOWN:
            part = "Part of it, how much is not known yet,"
        yield f"{part} is {_with_why(change)}."
    left = work.change(UNEXPLAINED)
    if left is not None and left.low is not None and left.high is not None:
        ends = f"{seconds(left.low)} to {seconds(left.high)}"
        told = f"{seconds(left.change)} ({ends}) of {work.name} open"
        if left.low <= 0 <= left.high:
            told = f"nothing of {work.name} open that it could show ({ends})"
        yield f"The split leaves {told}."
    if work.predicted is not None:
        yield _against_predicted(work)
    elif work.changes:
        yield (
            "B's step is not predicted from A's: microbenchmarks are missing, or the "
            "split leaves too much of A's step open."
        )


def _with_why(change: Change) -> str:
    return f"{_PARTS_SAID[change.name]}{f': {change.why}' if change.why else ''}"


def _against_predicted(work: Explained) -> str:
    told, seen = work.predicted, work.b or 0.0
    if told is None or not units.is_known(told.low, told.high):
        return "B's step, predicted from A and the microbenchmarks, is not known yet."
    left = "which lies within that"
    if not told.low <= seen <= told.high:
        apart = seconds(abs(told.seconds - seen))
        left = f"and the microbenchmarks do not explain the {apart} between"
    return (
        "B's step, predicted from A and the microbenchmarks: "
        f"{units.between(told.seconds, told.low, told.high, seconds)}; seen were "
        f"{seconds(seen)}, {left}."
    )


def following(works: tuple[Explained, ...]) -> Iterator[str]:
    """Which measurement on the slower machine says more."""
    most = largest(works)
    if most is None:
        return
    if not most.changes:
        yield "`perfkit passport` on both machines says which part of them it is."
    yield from (_NEXT[one.name] for one in most.causes[:1] if one.name in _NEXT)


def much(works: tuple[Explained, ...]) -> str:
    """Both steps of the job where the difference is largest, which nothing explains."""
    most = largest(works)
    if most is None:
        return ""
    steps = units.instead(seconds(most.b), seconds(most.a))
    why = "its time was not taken apart on both"
    if most.changes:
        why = "no single part of the step is shown to explain it"
    return f"{steps} {most.a_unit}; {why}.{_other_way(works, most)}"


def _why(works: tuple[Explained, ...], most: Explained | None) -> str:
    """What stands behind the part that is most of the difference."""
    if most is None or not most.causes:
        return ""
    first = most.causes[0]
    how_much = "Mostly" if (first.share or 0.0) > 0.5 else "Above all"
    return f"{how_much} {_with_why(first)}.{_other_way(works, most)}"


def _other_way(works: tuple[Explained, ...], most: Explained) -> str:
    other = largest(work for work in works if work.slower != most.slower)
    return f" {_claim(other)}" if other else ""


def report(found: Explanation) -> Report:
    """What a person reads of it."""
    every = [_jobs, _split_table, _differences, _benchmarks, _missing]
    filled = [one for one in (tell(found) for tell in every) if one.rows]
    advice = tuple(
        f"{one.title} (up to {units.seconds(one.seconds)} of a step of {one.of}): "
        f"{one.remedy}"
        for one in found.advice
    )
    to_do = _to_do(found)
    sides = (("A", found.a), ("B", found.b))
    return Report(
        verdict=_answer(found, to_do),
        question="Two machines: why does the same training run differently?",
        table=filled[0] if filled else None,
        # What to do is read first, and the chart has the numbers of its job.
        charted=bool(to_do),
        besides=tuple(filter(None, [_why(found.works, found.main)])),
        folds=(
            Fold("How sure is this?", found.because),
            Fold("What to do on the slower machine", advice),
            *(Fold(table.title, tables=(table,)) for table in filled[1:]),
        ),
        foot=(
            *([f"Your guess: {found.guess}"] if found.guess else ()),
            *(
                f"{side}: {f'{one.label}, ' if one.label else ''}{one.summary}, "
                f"recorded {one.recorded}"
                for side, one in sides
            ),
        ),
    )


def _answer(found: Explanation, to_do: str) -> Verdict:
    """What to do, how far the machines are apart, and how sure that is."""
    speed = found.main.speed if found.main else None
    return Verdict(
        headline=to_do or found.headline,
        much=found.headline if to_do else much(found.works),
        sure="sure" if speed else "",
        interval=_times(speed)[2] if speed else "",
        next="" if to_do else "".join(found.next[:1]),
    )


def _to_do(found: Explanation) -> str:
    """What to do first, and how much that can explain; "" where nothing is shown."""
    for one in found.advice[:1]:
        work = next(work for work in found.works if work.name == one.of)
        causes = [cause for cause in work.causes if cause.name in one.parts]
        told = _part_of(causes, work, found.main)
        # The rest of the ways is folded.
        return f"On {work.slower}, {first_way(one.remedy)}; that can explain {told}."
    if found.main is None or not found.main.causes:
        return ""
    main, first = found.main, found.main.causes[0]
    part, told = _PARTS_SAID[first.name], _part_of([first], main, main)
    _, command, _ = _NEXT.get(first.name, "``").split("`")
    do = f"run `{command}`; {part}" if command else f"look at {part}; it"
    return f"On {main.slower}, {do} is {told}."


def _part_of(causes: Sequence[Change], work: Explained, main: Explained | None) -> str:
    """How much of the difference some parts of a step are, and how sure that is."""
    of = "of the difference" + f" in {work.name}" * (work != main)
    shares = ((c.share or 0.0, c.share_low or 0.0, c.share_high or 0.0) for c in causes)
    # The ends of a sum lie within the sums of the ends.
    middle, low, high = (min(sum(values), 1.0) for values in zip(*shares, strict=True))
    if not units.is_known(low, high):
        return f"part {of}, how much is not known yet"
    if low > _NEARLY_ALL:
        return f"all {of} (sure: at least {units.percent(low)})"
    ends = f"{100 * low:.0f} to {100 * high:.0f} %"
    return f"{units.percent(middle)} {of} (sure: {ends})"


def _jobs(found: Explanation) -> Table:
    compared = [(work, work.speed) for work in found.works if work.speed is not None]
    works = [work for work, _ in compared]
    rows = tuple(
        (
            work.name,
            seconds(work.a),
            seconds(work.b),
            units.ratio_between(speed.ratio, speed.low, speed.high),
            speed.verdict,
            units.between(told.seconds, told.low, told.high, seconds)
            if (told := work.predicted)
            else "microbenchmarks or the split are missing",
        )
        for work, speed in compared
    )
    heads = ("job", "on A", "on B", "B's speed over A's", "shown", "predicted for B")
    strong = works.index(found.main) if found.main in works else -1
    return Table("The same job", heads, rows, strong)


def _split_table(found: Explanation) -> Table:
    rows = tuple(
        (
            f"{work.name}, {one.name}",
            seconds(one.a),
            seconds(one.b),
            "not measured"
            if one.change is None or one.low is None or one.high is None
            else units.between(one.change, one.low, one.high, seconds),
            share(one),
            "" if one.predicted is None else seconds(one.predicted),
            ", ".join(one.microbenchmarks),
        )
        for work in found.works
        for one in work.changes
        if one.a or one.b
    )
    heads = ("job, part", "on A", "on B", "change", "share", "predicted for B")
    return Table("Where the time of a step goes", (*heads, "microbenchmarks"), rows)


def _differences(found: Explanation) -> Table:
    rows = tuple(
        (one.what, one.a, one.b, ", ".join(one.parts) or "nothing known")
        for one in found.differences
    )
    heads = ("what", "A", "B", "can slow")
    return Table("What differs in the machines", heads, rows)


def _benchmarks(found: Explanation) -> Table:
    rows = tuple(
        (
            benchmark.name,
            *(
                "" if r is None else units.rate(r, benchmark.unit)
                for r in (benchmark.a, benchmark.b)
            ),
            *(
                ("", benchmark.missing)
                if (one := benchmark.speed) is None
                else (units.ratio_between(one.ratio, one.low, one.high), one.verdict)
            ),
        )
        for benchmark in found.microbenchmarks
    )
    heads = ("part of the machine", "A", "B", "B over A", "shown")
    return Table("How fast each part of the machines is", heads, rows)


def _missing(found: Explanation) -> Table:
    rows = tuple(("the whole", _all_named([one])) for one in found.job)
    rows += tuple((work.name, work.missing) for work in found.works if work.missing)
    return Table("What is not compared", ("job", "why"), rows)


def page(found: Explanation) -> str:
    """Lay an explanation out as a page."""
    return laid_out([page_of(report(found), found.charts.values())])
