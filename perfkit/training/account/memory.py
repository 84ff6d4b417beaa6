"""What a training adds to its process's memory and does not give back.

Memory is read at each end of an epoch, a ``fit`` or a pass over the data. A reading
holds all that came before it, so neighbours are alike, and a line fitted through them
calls any wandering a trend. The mean is therefore taken of what each end adds to the
one before. It has to show most of the time, and at last, too: a few steps of an
allocator's pools are no leak, and neither is what fills up once.
"""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil

from perfkit.engine.statistics import Estimate, student
from perfkit.findings.account import READ_EVERY, Growth, Line
from perfkit.training.account.places import Place

# The first ends are left out: pools, caches and buffers fill up there.
_WARM_ENDS, _WARM_SHARE, _MIN_ENDS = 2, 0.2, 8
# Pools grow by more than one end needs: so many stretches of ends are averaged at most.
_MAX_STRETCHES = 10
# Of the mean what its lower end, the last third and all that was kept reach at least.
_STEADY = 0.5
_MIN_KEPT_BYTES = 8e6
# A line that makes something less often than this, or than half of the ends, does it
# for other reasons.
_OFTEN = 4
# Stages that fill up once, by their class, and the one behind which an epoch may end
# before the data do.
_FILLING, _REPEATS = {"CacheDataset", "_ShuffleDataset"}, "_RepeatDataset"
_Key = tuple[str, Place | None]


@dataclass
class MemoryReadings:
    """Reads the memory of this process at the ends of what a training repeats.

    ``bytes_at`` has, by unit (of ``READ_EVERY``) and line, the number of each end that
    was read, and the bytes that the training takes then.
    """

    bytes_at: dict[_Key, list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _ends: Counter[_Key] = field(default_factory=Counter)
    _process: psutil.Process = field(default_factory=psutil.Process)
    _in_window: bool = False
    _due: set[_Key] = field(default_factory=set)

    def note_end(self, unit: str, place: Place | None) -> None:
        """Count an end of what a line repeats, and read the memory where it is due."""
        key = unit, place
        self._ends[key] += 1
        if self._ends[key] % READ_EVERY[unit] == 0:
            self._due.add(key)
            self._read()

    def begin_window(self) -> None:
        """Put readings off until the window ends, because its records take memory."""
        self._in_window = True

    def end_window(self) -> None:
        """Read what is due; what the first window leaves behind is one jump."""
        self._in_window = False
        self._read()

    def _read(self) -> None:
        while self._due and not self._in_window:
            # Another thread may have read it meanwhile.
            with contextlib.suppress(psutil.Error, OSError, KeyError):
                key = self._due.pop()
                memory = self._process.memory_info()
                # Pages of files come and go with caches.
                private = int(memory.rss - getattr(memory, "shared", 0))
                number = self._ends[key] // READ_EVERY[key[0]]
                self.bytes_at[key].append((number, private))


def estimate_growth(readings: Sequence[Sequence[int]]) -> Estimate | None:
    """Return the bytes that each end adds, with the 95 % interval of a trimmed mean.

    ``readings`` have the number of the end and bytes, of each one that was read. None
    where too few ends were seen, or no growth is shown.
    """
    # Two threads may have read after the same end.
    readings = [*{number: (number, held) for number, held in readings}.values()]
    warm = max(_WARM_ENDS, int(_WARM_SHARE * len(readings)))
    if len(readings) - warm < _MIN_ENDS:
        return None
    ends, taken = np.array(readings[warm:], dtype=np.float64).T
    added = np.diff(taken) / np.diff(ends)
    count = min(len(added), _MAX_STRETCHES)
    stretches = np.array([part.mean() for part in np.array_split(added, count)])
    # Without the smallest and the largest; their spread is Yuen's (1974).
    inner = np.sort(stretches)[1:-1]
    mean = float(inner.mean())
    spread = float(np.clip(stretches, inner[0], inner[-1]).std(ddof=1))
    half = student(count - 3) * spread
    half *= ((count - 1) / ((count - 2) * (count - 3))) ** 0.5
    last = float(stretches[-(count // 3 + 1) :].mean())
    kept = float(taken[-1] - taken[0])
    least = max(_MIN_KEPT_BYTES, _STEADY * mean * (ends[-1] - ends[0]))
    if mean - half <= _STEADY * mean or last < _STEADY * mean or kept < least:
        return None
    return Estimate(value=mean, low=mean - half, high=mean + half)


def growth_of(
    charges: Mapping[str, Any], lines: Sequence[Line], index: Mapping[Any, int]
) -> Growth | None:
    """Return what an account's training adds to memory; None where none is shown.

    ``charges`` are what ``charge`` gives, ``index`` has the number of a line by place.
    """
    # A ``fit`` holds its epochs, so it comes first.
    series = sorted(charges["memory"], key=lambda row: [*READ_EVERY].index(row[0]))
    fills, repeats = charges["fills"]
    for unit, place, readings in series:
        each = estimate_growth(readings)
        # Only whole passes over the data are known to have filled what fills up.
        if each is None or (fills and (repeats or READ_EVERY[unit] > 1)):
            continue
        ends = int(readings[-1][0])
        often = max(_OFTEN, ends * READ_EVERY[unit] / 2)
        made = [(n, index.get((file, at), -1)) for file, at, n in charges["models"]]
        counts = [sum(trace.count for trace in line.traces) for line in lines]
        traced = [(count, number) for number, count in enumerate(counts)]
        kept: Any = ""
        number = index.get(place, -1)
        # What is made about as often as something ends.
        for name, makers in (("traces", traced), ("models", made)):
            count, line = max(makers, default=(0, -1))
            kept, number = (name, line) if count >= often else (kept, number)
        interval = {"each_bytes": each.value, "low": each.low, "high": each.high}
        return Growth(unit=unit, ends=ends, kept=kept, line=number, **interval)
    return None


def fills_up(kinds: Sequence[str]) -> tuple[bool, bool]:
    """Whether stages of these classes fill up once, and whether data are repeated."""
    return not _FILLING.isdisjoint(kinds), _REPEATS in kinds
