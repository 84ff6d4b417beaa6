"""What a person reads of an account: the answer, the user's own lines, and the rest."""

import itertools
import shlex
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from perfkit import units
from perfkit.findings import record as records
from perfkit.findings.account import (
    COMPUTING,
    COPYING,
    INPUT,
    KINDS,
    MOST_HOT,
    READ_EVERY,
    SET_UP,
    Account,
    Line,
    Tip,
)
from perfkit.findings.report import Fold, Listing, Report, Row, Table, Verdict
from perfkit.findings.text import is_file, minute, one_line, paragraphs

_TIPS, _LINES = "What usually helps with these lines", "Every line, in numbers"
# Lines below this share of what repeats are folded.
_SHOWN = 0.01
# No script has a line whose number is as long.
_DIGITS = 10
# What work is called that went into a kind, after "63 % of the time".
_GOES = {kind: f"goes into {kind} at" for kind in KINDS}
_GOES |= {INPUT: "the model waits for input from"}
_GOES |= {SET_UP: "goes into set-up and tracing at"}
# Of a line whose steps nobody traced.
_PASSES = "passes in steps at"
# Operations of a step that are too many to be a model's own.
_MANY = 500
# Weights of one variable whose update takes time by itself.
_MANY_WEIGHTS = 100_000
_MOST_CALLS, _MOST_STAGES = 3, 20
_FEW_UPDATES = 20
# Epochs that take so many times as long at last grow, where nearly all of them take
# longer than those before: on a busy machine some always do.
_GROWS, _FEW_EPOCHS, _NEARLY_ALL = 1.3, 6, 0.9
# Ends of passes that take less are not mentioned.
_ENDS = 0.05
_AUTOTUNER = (
    "There TensorFlow sometimes waits for its autotuner, mostly while the processors "
    "are busy. One iterator avoids that: `data.repeat()`, with `steps_per_epoch` in "
    "`fit`."
)
# When memory grows, by ``Growth.unit``.
_EACH = {"fit": "each `fit`", "epoch": "each epoch", "pass": "each pass over the data"}
# What keeps it, by ``Growth.kept``: what a line does, and what to do about it.
_KEEPS = {
    "models": (
        " makes a model each time, and the one before stays",
        "Make the model once and give it its first weights again (`set_weights`); "
        "`keras.backend.clear_session()` before the next gives back a part",
    ),
    "traces": (
        " has a function traced each time, and its graph stays, with `jit_compile` its "
        "compiled code, too",
        "Make the function once, outside of the loop, and hand it tensors of one shape",
    ),
    "": ("", "Keep no tensors in a list, a callback or a global: keep `float(loss)`"),
}


def verdict(account: Account) -> Verdict:
    """Say where the time goes, and what people do about it."""
    warns = tuple(warnings(account))
    is_profiled = bool(account.lines and account.repeated_s)
    if not is_profiled:
        once = units.seconds(account.once_s)
        headline = "perfkit saw only the set-up of this script."
        much = f"{once} went into imports, reading data and the first traces."
        remedy = "Give a larger `budget`."
        if not account.lines:
            headline = "perfkit saw no line of this script run."
            much = "It ran too briefly, or its work runs in another process."
            remedy = "Give a larger `budget`, or the script that trains."
    elif account.tips:
        tip = account.tips[0]
        headline, much, remedy = f"{tip.do}.", tip.means, "\n".join(_next(account.tips))
        warns = (*filter(None, [tip.mind]), *warns)
    else:
        top = account.lines[0]
        share = units.percent(account.share(top.total_s))
        untraced = account.untraced and top.kind == COMPUTING
        goes = _PASSES if untraced else _GOES[top.kind]
        headline = f"{share} of the time {goes} {top.where}."
        much = "Nothing that usually slows a line is seen there: look at its code."
        costs = "`perfkit diagnose` measures what its work costs"
        remedy = f"{costs}, if it can be left out."
    return Verdict(
        headline=headline,
        much=much,
        sure="profiled" if is_profiled else "not known yet",
        interval=units.seconds(round(account.wall_s)) if is_profiled else "",
        warnings=warns[:2],
        next=remedy,
    )


def _next(tips: Sequence[Tip]) -> Iterator[str]:
    if tips[0].fix:
        yield f"Try: {tips[0].fix}."
    if also := [f"{tip.do} ({units.percent(tip.share)})" for tip in tips[1:3]]:
        yield f"Then: {'; '.join(also)}."
    yield "`perfkit diagnose` measures how much that brings."


def warnings(account: Account) -> Iterator[str]:
    """What a reader must know of how an account came about."""
    if account.error:
        sentence = account.error.rstrip(".")
        yield f"{sentence}; the account ends there."
    elif account.updates == 0 and account.lines and not account.ended:
        yield "No training step ran in this time: give a larger budget."
    elif account.updates < _FEW_UPDATES and not account.ended:
        steps = units.count(account.updates, "step")
        yield f"Only {steps} ran in this time, so the shares may still change."
    yield from filter(None, [account.untraced, account.uncontained])


@records.report.register
def report(account: Account) -> Report:
    """Lay an account out."""
    command = f"perfkit.lines({account.training})"
    if is_file(account.training):
        command = shlex.join(["perfkit", "lines", account.training])
    return Report(
        verdict=account.verdict,
        question=f"Where does the time of {account.training} go?",
        stamp=account.stamp,
        listing=listing(account),
        besides=tuple(_besides(account)),
        folds=folds(account),
        repeat=f"Repeat it: `{command}`.",
        foot=(f"Seen on {account.machine.summary}, {minute(account.recorded)}.",),
        path=account.path,
    )


def memory_advice(account: Account) -> tuple[str, str, str]:
    """What the training adds to memory, what to do, and where; "" each for nothing."""
    growth = account.growth
    if growth is None:
        return "", "", ""
    calls = f"every {READ_EVERY[growth.unit]} calls of `{growth.unit}`"
    each = _EACH.get(growth.unit, calls)
    amount = units.between(growth.each_bytes, growth.low, growth.high, _size)
    total = _size(growth.each_bytes * growth.ends)
    where = account.lines[growth.line].where if growth.line >= 0 else ""
    behind, remedy = _KEEPS[growth.kept]
    reason = f" {where}{behind}." if where and behind else ""
    sentence = f"Memory grows by {amount} with {each}, {total} so far.{reason}"
    return sentence, remedy, where


def _size(amount: float) -> str:
    """Bytes with two digits."""
    return units.size(float(f"{amount:.2g}"))


def listing(account: Account) -> Listing:
    """The user's own lines with what each takes."""
    shares = [account.share(line.total_s) for line in account.lines]
    small, folded = [share for share in shares if share < _SHOWN], ""
    if small:
        lines, share = units.count(len(small), "line"), units.percent(sum(small))
        folded = f"{lines} with less than 1 %, {share} together"
    return Listing(tuple(_rows(account)), tuple(KINDS), folded)


def folds(account: Account) -> tuple[Fold, ...]:
    """What stands one click away."""
    sampling = account.sampling_s / account.wall_s if account.wall_s else 0.0
    method = paragraphs("lines.txt.j2", account=account, sampling=sampling)
    return (
        Fold(_TIPS, tables=(_tips(account),)),
        Fold(_LINES, tables=(_table(account),)),
        Fold("The stages of the input", tables=(_stages(account),)),
        Fold("How this was sampled, and what sampling cost", method),
    )


def _rows(account: Account) -> Iterator[Row]:
    """The lines that take something, in the order of the source, with those around."""
    lines = [line for line in account.lines if account.share(line.total_s) >= _SHOWN]
    hot, first = account.hot, {tip.lines[0] for tip in account.tips if tip.lines}
    places: dict[tuple[str, int], dict[int, Line | None]] = {}
    for item in lines:
        # The file with the hottest line comes first.
        places.setdefault((item.file, item.cell), {})[item.line] = item
    for (file, cell), measured_lines in places.items():
        texts = account.text.get(f"{file}#{cell}", {})
        around = (int(n) for n in texts if n.isdecimal() and len(n) < _DIGITS)
        place = [file, f"cell {cell}" if cell else ""]
        yield Row(heading=", ".join(filter(None, place)))
        for number in sorted({*measured_lines, *around}):
            line = measured_lines.get(number)
            if line is None:
                yield Row(number=number, code=texts.get(str(number), ""))
                continue
            is_hot = line in hot
            yield Row(
                number=number,
                code=line.code,
                share=account.share(line.total_s),
                kinds=tuple(account.share(line.spent(kind)) for kind in KINDS),
                remark="; ".join(remarks(account, line)) if is_hot else "",
                strong=is_hot or account.lines.index(line) in first,
            )


def remarks(account: Account, line: Line) -> Iterator[str]:
    """What was seen on a line, in a few words each."""
    for call in line.calls[:_MOST_CALLS]:
        if call.count > 1:
            average = units.seconds((call.seconds or line.total_s) / call.count)
            yield f"{call.count:,} calls of {call.name}, {average} each"
    for trace in line.traces[:1]:
        average = units.seconds(trace.seconds / trace.count)
        name = _traced(line, trace.name)
        cause = f" ({one_line(trace.because[0], 120)})" if trace.because else ""
        yield f"{name} traced {units.count(trace.count, 'time')}, {average} each{cause}"
    if line.operations >= _MANY:
        starting = line.starting_s / line.total_s if line.total_s else 0.0
        started = f"{units.percent(starting)} of the time starting them"
        many = f"{line.operations:,.0f} operations a step"
        yield f"{many}, {started}" if starting > 0.2 else many
    if line.is_part("optimizer") and line.elements >= _MANY_WEIGHTS:
        yield f"updates up to {line.elements:,} weights in each step"
    elif line.parts and not line.is_part("line") and line.kind == COMPUTING:
        yield line.parts[0]
    elif line.kind == INPUT and COPYING in line.parts[:1]:
        yield f"mostly {COPYING}"
    if line.beside_s > line.total_s and account.share(line.beside_s) > 0.1:
        yield f"another {units.seconds(line.beside_s)} of its work delayed no step"


def _traced(line: Line, name: str) -> str:
    """A function that was traced, as its reader knows it: Keras's own have no name."""
    call = line.find_call("fit", "predict", "evaluate", "train_on_batch")
    if call is None:
        return f"`{name}`"
    part = "the input" if name.startswith("Dataset_") else "the step"
    return f"{part} of `{call.name}`"


def _besides(account: Account) -> Iterator[str]:
    once = f"{units.seconds(account.once_s)} for imports, reading data and first traces"
    yield f"Not in the shares: {once}, once."
    if account.share(account.pass_ends_s) >= _ENDS:
        ended = units.seconds(account.pass_ends_s)
        yield f"Nor {ended} at the ends of passes over the data. {_AUTOTUNER}"
    fits = [line.find_call("fit") for line in account.lines]
    if account.epochs_s[1:] and not any(fit and fit.count > 1 for fit in fits):
        first, *later = account.epochs_s
        usual = statistics.median(later)
        took = f"{units.seconds(first)}, later ones {units.seconds(usual)}"
        yield f"{len(account.epochs_s)} epochs ended: the first took {took}."
        third = max(1, len(later) // 3)
        before, after = map(statistics.median, (later[:third], later[-third:]))
        if after > _GROWS * before and _rises(later):
            took = units.instead(units.seconds(after), units.seconds(before))
            yield f"Epochs get longer: the last ones took {took}."
    grows, remedy, _ = memory_advice(account)
    if grows:
        yield f"{grows} {remedy}."


def _rises(values: Sequence[float]) -> bool:
    """Whether nearly all values are above those before them."""
    pairs = [before < after for before, after in itertools.combinations(values, 2)]
    return len(values) >= _FEW_EPOCHS and sum(pairs) >= _NEARLY_ALL * len(pairs)


def _tips(account: Account) -> Table:
    rows = tuple(
        (
            units.percent(tip.share),
            f"{tip.do}.",
            tip.means,
            f"{tip.fix}\n{tip.mind}".strip(),
        )
        for tip in account.tips
    )
    return Table(_TIPS, ("share", "what to do", "why", "how, and what to mind"), rows)


def _table(account: Account) -> Table:
    rows = []
    for line in account.lines[: 10 * MOST_HOT]:
        share = units.percent(account.share(line.total_s))
        if line.total_s or line.beside_s:
            seconds = map(units.seconds, (*map(line.spent, KINDS), line.beside_s))
            rows.append((line.where, share, *seconds))
    elsewhere = units.percent(account.share(account.elsewhere_s))
    rows.append(("elsewhere", elsewhere, *[""] * len(KINDS), ""))
    return Table(_LINES, ("line", "share", *KINDS, "delayed no step"), tuple(rows))


def _stages(account: Account) -> Table:
    inputs, outputs = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for stage in account.stages:
        inputs[stage.kind, stage.line] += stage.given
        outputs[stage.kind, stage.line] += stage.out
    rows = []
    for (kind, line), out in [*outputs.items()][:_MOST_STAGES]:
        where = account.lines[line].where if line >= 0 else "a library"
        elements = inputs[kind, line]
        rows.append((kind, where, f"{elements:,}" if elements else "", f"{out:,}"))
    headings = ("stage", "line", "elements in", "out")
    return Table("Elements in the traced seconds", headings, tuple(rows))
