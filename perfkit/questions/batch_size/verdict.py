"""What a run over batch sizes means: its verdict, and the facts behind it."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.findings.record import Edit, Verdict
from perfkit.questions.batch_size import numbers
from perfkit.questions.batch_size.numbers import Knee, SearchResult
from perfkit.questions.shared.words import failures, rates_behind

_TENSOR = re.compile(r"OOM when allocating tensor with shape\s*\[([\d, ]{1,99})\]")
_NUMPY = re.compile(r"Unable to allocate ([\d.]+ \w+)")
_FLOAT = 4
_KNOWN = {
    "it waited for more": "it waited for memory that its limit does not leave",
    "bad_alloc": "a library asked for memory and was given none",
    "mmap error": "a library asked for memory and was given none",
    "could not create a primitive": "oneDNN was given no memory to work in",
    "MemoryError": "Python was given no memory",
    "killed by the system": "the system ended it, because the machine's memory was "
    "full",
}


def explain_end(message: str) -> str:
    """Say what a trial was short of, by what is recorded of its end."""
    if tensor := _TENSOR.search(message):
        sides = [int(side) for side in tensor[1].replace(",", " ").split()]
        shape = " by ".join(f"{side:,}" for side in sides)
        amount = units.size(_FLOAT * math.prod(sides))
        return f"a tensor of {shape} numbers ({amount} in float32) did not fit any more"
    if array := _NUMPY.search(message):
        return f"an array of {array[1]} did not fit any more"
    explanations = (words for sign, words in _KNOWN.items() if sign in message)
    return next(explanations, f"it {message.rstrip('.')}")


_LEARNS = "A larger batch learns otherwise: compare the validation loss."

# The largest batch that can be asked for.
LARGEST = 65_536
_NOTHING = Verdict(
    headline="No batch size could be timed.",
    next="Look at how the trials ended, or give the run more seconds.",
)


def judge(measured: Measurement, memory: int, model: str) -> Verdict:
    """Say which batch is large enough, by how much, and how large one may be.

    Where there is no GPU it has to fit into ``memory`` bytes.
    """
    knee, search = numbers.knee(measured), numbers.read_search(measured.trials)
    # What a batch has to fit into.
    room = f"perfkit's limit of {units.size(memory)}"
    if measured.notes.get("gpus"):
        room = "the GPU's memory"
    verdict = _answer(measured, knee, model) if knee else _NOTHING
    because = (*_too_large(measured, search, room), *failures(measured))
    warnings = (*_largest(search, room), *verdict.warnings)
    return replace(verdict, warnings=warnings, because=because)


def _answer(measured: Measurement, knee: Knee, model: str) -> Verdict:
    if not knee.firm:
        return _open(knee)
    if knee.size == knee.sizes[0]:
        best = knee.tied.get(knee.best)
        reached = numbers.sized(measured.timings)[knee.size].in_words()
        return Verdict(
            headline="Choose the batch that learns best: no larger one is faster.",
            much=f"Batches of {knee.size:,} reach {reached}.",
            sure=knee.sure,
            interval=best.ends if best else "",
        )
    # The smallest that is as fast as the best; the best where that is not known.
    names = [numbers.name_of(size) for size in (knee.size, knee.best)]
    pairs = (measured.compare(name, numbers.name_of(knee.sizes[0])) for name in names)
    compared = next((c for c in pairs if c and c.verdict == "faster"), None)
    if compared is None:
        return _open(knee)
    size, small = (numbers.size_of(n) for n in (compared.variant, compared.baseline))
    ends = size == knee.sizes[-1]
    larger = min(4 * size, LARGEST) if ends else size
    # What did not fit need not be asked again.
    if larger >= min(_failed(measured, size), default=math.inf):
        larger = size
    rises = "no larger one was timed" if ends else "larger is not faster"
    if ends and knee.rising:
        rises = "the rate still rises there"
    return Verdict(
        headline=f"Train with `batch_size={size}`: {rises}.",
        much=f"This training then runs {compared.as_fast_as} with {small:,}"
        f"{rates_behind(measured, compared)}.",
        sure=compared.sure,
        interval=compared.ends,
        edits=(Edit(old=_fit(small), new=_fit(size)),),
        warnings=(_LEARNS,),
        next=f"`perfkit run batch-size --model {model} --largest {larger}` goes on."
        if larger > size
        else "",
        winner="" if knee.tied else compared.variant,
    )


def _failed(measured: Measurement, above: int) -> Iterator[int]:
    """The larger sizes that ended as none should, and the least that does not fit."""
    for trial in measured.trials:
        size = numbers.size_of(trial.variant)
        if trial.has_failed and not trial.is_try and size > above:
            yield size
    search = numbers.read_search(measured.trials)
    # On processors it is sought within a limit that no other trial has.
    if measured.notes.get("gpus") and search is not None and search.fails is not None:
        yield search.fails


def _open(knee: Knee) -> Verdict:
    """What is known where noise hides from which size on the rate stops rising."""
    slower = f"Every size below {knee.size:,} is slower; "
    if knee.size == knee.sizes[0]:
        slower = ""
    ties = {n: tie for n, tie in knee.tied.items() if tie}
    size = max(ties, key=lambda n: ties[n].high, default=knee.best)
    compared = ties.get(size)
    limit = units.times(compared.high) if compared and compared.ends else units.UNKNOWN
    return Verdict(
        headline="From which batch size on training is no faster is not known yet.",
        much=f"{slower}{size:,} may be up to {limit} times as fast as {knee.size:,}.",
        sure="not known yet",
    )


def _fit(size: int) -> str:
    return f"model.fit(x, y, batch_size={size})"


def _largest(search: SearchResult | None, room: str) -> Iterator[str]:
    if search is None or (search.fails and not search.by_limit):
        return
    if search.fails is None:
        yield f"Batches of {search.fits:,} fit into {room}; no larger one was tried."
    elif not search.fits:
        yield f"Not even a batch of {search.fails:,} fits into {room}."
    elif search.closed:
        yield f"Batches of up to {search.fits:,} fit into {room}."
    else:
        fails = f"{search.fails:,} do not"
        yield f"Batches of {search.fits:,} fit into {room}, and {fails}."


def _too_large(
    measured: Measurement, search: SearchResult | None, room: str
) -> Iterator[str]:
    """What the smallest batch that does not fit was short of."""
    if search is None or search.fails is None:
        return
    tries = f"{search.tries} batches were tried, each in a process of its own"
    if not search.by_limit:
        yield (
            f"Whether memory ended the batch of {search.fails:,} is not known: it "
            f"{search.reason.rstrip('.')}. {tries}."
        )
        return
    peak = numbers.asked_for(measured.trials, search.fits)
    request = f" The batch of {search.fits:,} had asked for {units.size(peak)}."
    yield (
        f"Within {room} a batch of {search.fails:,} is too large: "
        f"{explain_end(search.reason)}.{request if peak else ''} {tries}; the step of "
        f"the search is {numbers.step(search.fits):,}."
    )
