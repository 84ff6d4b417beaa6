"""What a diagnosis shows besides its verdict: rows of words under a title each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.findings.standing import standings
from perfkit.findings.text import plain, plain_lines, without_marks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.diagnosis import Diagnosis, Gain, Part
    from perfkit.findings.standing import Standing

_NAME, _SENTENCE, _MOST = 60, 400, 40
# The least gain that is worth claiming.
_WORTH = 1.05
_UNMEASURED = "it applies and may help, and this run did not measure it"
_KINDS = {"defect": "a defect", "opportunity": "an opportunity"}


@dataclass(frozen=True)
class Section:
    """Rows under a title; the first cell of a row is its name.

    Attributes:
        title: What they show.
        headings: Of the columns.
        rows: One tuple each, as long as ``headings``.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sections(found: Diagnosis) -> Iterator[Section]:
    """The sections that there is something to say in, as a reader wants them."""
    made = (
        _causes(found),
        _split(found),
        _limits(found),
        _anatomy(found),
        _unclaimed(found),
        _untested(found),
        _hints(found),
    )
    yield from (section for section in made if section.rows)


def gain_in_words(gain: Gain) -> str:
    """A gain with its interval, as ``"2.31× (2.10 to 2.55)"``."""
    return units.ratio_between(gain.estimate, gain.low, gain.high)


def part_in_words(part: Part, whole: float) -> tuple[str, str]:
    """Seconds of a part and its share of a step: ``?`` and "" if not known."""
    low, high = part.low or 0.0, part.high
    # In older files what was not tested has 0 seconds.
    if part.grade == "not tested" or (part.seconds or 0.0) < 0:
        return "?", ""
    if part.seconds is not None:
        said = units.seconds(part.seconds)
        if high is not None and low < high:
            said += f" ({units.seconds(low)} to {units.seconds(high)})"
        return said, units.percent(part.seconds / whole)
    if high is not None:
        least = f"{units.seconds(low)} to " if low else "at most "
        share = f"{units.percent(low / whole)} to " if low else "at most "
        return least + units.seconds(high), share + units.percent(high / whole)
    if low:
        share = units.percent(low / whole)
        return f"at least {units.seconds(low)}", f"at least {share}"
    return "?", ""


def _causes(found: Diagnosis) -> Section:
    rows = tuple(
        (
            f"{number}. {plain(cause.cause, _NAME)}",
            gain_in_words(cause.speedup),
            _KINDS[cause.kind],
            f'"{plain(cause.swap, _NAME)}"' if cause.swap else "no swap",
            cause.grade,
            plain_lines(cause.to_type),
        )
        for number, cause in enumerate(found.causes, 1)
    )
    return Section(
        "What slows it, by what swapping it brought",
        (
            *("cause", "as fast (95 % interval)", "kind", "the swap"),
            *("how it is known", "the line to change"),
        ),
        rows,
    )


def _split(found: Diagnosis) -> Section:
    whole = found.step.median_s if found.step else 0.0
    rows = tuple(
        (
            plain(name, _NAME),
            *part_in_words(part, whole),
            part.grade,
            plain(part.how, _SENTENCE),
        )
        for name, part in (found.split.items() if whole else ())
    )
    return Section(
        f"Where a step of {units.seconds(whole)} goes",
        ("part", "each step", "share", "how it is known", "from what"),
        rows,
    )


def _limits(found: Diagnosis) -> Section:
    rows = []
    if found.together:
        names = ", ".join(f'"{plain(name, _NAME)}"' for name in found.together.swaps)
        gain = gain_in_words(found.together.speedup)
        rows.append(("the best of them together", gain, "measured here", names))
    if found.ceiling:
        gain = gain_in_words(found.ceiling)
        what = "one batch, again and again: no faster pipeline brings more"
        rows.append(("the ceiling without input", gain, "measured here", what))
    return Section(
        "What can be had at most",
        ("", "as fast (95 % interval)", "how it is known", "what ran"),
        tuple(rows),
    )


def _anatomy(found: Diagnosis) -> Section:
    """The plan of its pipeline; what makes no sense in a note is left out."""
    listed = found.anatomy.get("stages")
    stages = listed[:_MOST] if isinstance(listed, list | tuple) else ()
    slowest = found.anatomy.get("limits")
    rows = tuple(
        _stage(stage, slowest)
        for stage in stages
        if isinstance(stage, dict) and isinstance(stage.get("name"), str)
    )
    return Section(
        "What TensorFlow runs for its data",
        ("stage", "share of the work", "each", "at a time", "what that says"),
        rows,
    )


def _stage(stage: dict[str, Any], slowest: Any) -> tuple[str, ...]:
    share, each, at_a_time = (
        stage.get(name) for name in ("share", "ns_per_element", "parallelism")
    )
    by = " (AUTOTUNE)" if stage.get("tuned") is True else ""
    return (
        plain(stage["name"], _NAME),
        units.percent(share) if isinstance(share, int | float) else "",
        units.seconds(each / 1e9) if isinstance(each, int | float) else "",
        f"{at_a_time:g}{by}" if isinstance(at_a_time, int | float) else "",
        "read from TensorFlow; it limits" * (stage["name"] == slowest),
    )


def _unclaimed(found: Diagnosis) -> Section:
    shown = {cause.swap for cause in found.causes} | {found.baseline}
    rows = tuple(
        (plain(standing.variant, _NAME), *_tried(standing, found.aside))
        for standing in standings(found.finding)
        if standing.variant not in shown
        and not (standing.comparison and _is_limit(found, standing))
    )
    return Section(
        "Tried, and not claimed",
        ("the swap", "as fast (95 % interval)", "what that shows"),
        rows,
    )


def _is_limit(found: Diagnosis, standing: Standing) -> bool:
    """Whether it is told among the limits already."""
    ratio = standing.comparison.ratio if standing.comparison else 0.0
    limits = (found.ceiling, found.together.speedup if found.together else None)
    return any(gain is not None and gain.estimate == ratio for gain in limits)


def _tried(standing: Standing, aside: tuple[str, ...]) -> tuple[str, str]:
    compared = standing.comparison
    if compared is None:
        return "not measured", standing.problem
    words = [compared.judgement]
    if compared.verdict == "faster" and compared.ratio < _WORTH:
        words = ["faster, by too little to be worth a change"]
    if standing.variant in aside:
        words = ["faster, and it changes what is learnt: fix the defects first"]
    return compared.interval, "; ".join(filter(None, [*words, standing.problem]))


def _untested(found: Diagnosis) -> Section:
    rows = tuple(
        (plain(cause, _NAME), without_marks(plain(why, _SENTENCE)))
        for cause, why in found.untested.items()
    )
    rows += tuple((f'"{plain(n, _NAME)}"', _UNMEASURED) for n in found.unmeasured)
    return Section("Not tested", ("cause or swap", "why"), rows)


def _hints(found: Diagnosis) -> Section:
    # What a cause names was measured, and stands with it.
    edits = [edit for cause in found.causes for edit in cause.edits]
    measured = {(edit.cell, line) for edit in edits for line in edit.lines}
    rows = tuple(
        (hint.where, plain(hint.code, 120), plain(hint.says, _SENTENCE))
        for hint in found.hints
        if (hint.cell, hint.line) not in measured
    )
    return Section(
        "Seen in the code, not measured", ("where", "what stands there", "hint"), rows
    )
