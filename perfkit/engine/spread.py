"""How much do rounds of the same thing differ on this machine? Its own runs tell.

The variance of a round's log ratio is told in units of what its own turns let expect,
and of the least that processes differ by anywhere. In these units runs of quick and of
slow work, with many turns and with few, are held against each other. The scale of a
machine and how far its comparisons scatter about it are fitted to the variances that it
has seen, by the moments of their logarithms (the prior of Smyth's moderated t, 2004).

What is seen is kept in one small file a machine, in the user's folder for state. No run
needs it: without it, or where it cannot be read, a usual machine is assumed.
"""

import contextlib
import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit.engine.alone import private_folder

# A variance in the units above, and its degrees of freedom.
Variance = tuple[float, int]

NOTE = "spread"
# Two processes that do the same differ by so much in any case: a standard deviation of
# the log ratio.
LEAST = 0.02
# Two rounds may agree by luck, and a logarithm would make too much of that.
_LUCK = 1e-3
# Fewer variances than this say nothing of a machine; older runs than this no more.
_FEW, _RUNS = 10, 30
# However alike its runs were, today may be another day.
_FREEDOM = (2.0, 10.0)
# Variances of a run share a baseline: they tell half of what they would apart, and
# their logarithms about half of what they do.
_SHARED, _WEIGHT = 0.5, 0.25
# A variance beyond so many of those that are expected is of another kind.
APART = 0.95
_MOST_BYTES, _MOST_SEEN = 100_000, 50
_LARGEST = 1e6


@dataclass(frozen=True)
class Spread:
    """What is known of the variance of a round's log ratio before it is seen.

    Without arguments it is that of a machine of which nothing is known: one round on it
    never shows that there is no difference.

    Attributes:
        scale: The variance, in units of what is expected of it.
        freedom: How sure that is, in degrees of freedom.
        turn: The variance that the log ratio of a single turn usually has.
    """

    scale: float = 2.25
    freedom: float = 3.0
    turn: float = 0.0

    @classmethod
    def learnt(cls, runs: Sequence[Sequence[Variance]]) -> "Spread":
        """What the variances of earlier runs let expect of the next one."""
        variances = [variance for run in runs for variance in run]
        if len(variances) < _FEW:
            return cls()
        # Not with the module, which every trial imports: it takes most of a second.
        from scipy import special

        logs, freedoms = _centred_logs(variances), np.array([df for _, df in variances])
        excess = logs.var(ddof=1) - special.polygamma(1, freedoms / 2).mean()
        grid = np.linspace(*_FREEDOM, 81)
        freedom = grid[np.abs(special.polygamma(1, grid / 2) - excess).argmin()]
        shift = special.digamma(freedom / 2) - np.log(freedom / 2)
        scale = max(1.0, float(np.exp(logs.mean() + shift)))
        return cls(scale=round(scale, 3), freedom=round(float(freedom), 1))

    def updated(self, run: Sequence[Variance], turn: float) -> "Spread":
        """What the rounds of a run that is under way make of it."""
        total = sum(freedom for _, freedom in run)
        if not total:
            return Spread(self.scale, self.freedom, turn)
        from scipy import special

        mean, weight = float(np.exp(_centred_logs(run).mean())), _WEIGHT * total
        if mean > self.scale * special.fdtri(_SHARED * total, self.freedom, APART):
            # What earlier runs saw is of other work: this one's own rounds have to do.
            return Spread(mean, max(1.0, _SHARED * total), turn)
        scale = (self.freedom * self.scale + weight * mean) / (self.freedom + weight)
        return Spread(scale, self.freedom, turn)

    def as_note(self) -> dict[str, Any]:
        """The note of a run that keeps it; empty where nothing was known."""
        prior = {"scale": self.scale, "freedom": self.freedom}
        return {} if self == Spread() else {NOTE: prior}

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> "Spread":
        """Read it from the notes of a run; a note that makes no sense is none."""
        with contextlib.suppress(TypeError, KeyError, ValueError, OverflowError):
            note = notes[NOTE]
            scale, freedom = float(note["scale"]), float(note["freedom"])
            if 1 <= scale <= _LARGEST and 1 <= freedom <= _LARGEST:
                return cls(scale, freedom)
        return cls()


def of_this_machine() -> Spread:
    """What the runs of this user on this machine let expect."""
    return Spread.learnt(_read())


def remember(run: Sequence[Variance]) -> None:
    """Keep what a run has seen; where nothing can be written, go on without."""
    if not run:
        return
    path, runs = _path(), [*_read(), list(run)[:_MOST_SEEN]][-_RUNS:]
    beside = path.with_suffix(".part")
    with contextlib.suppress(OSError):
        private_folder(path.parent)
        beside.touch(0o600)
        beside.write_text(json.dumps(runs), encoding="utf-8")
        beside.replace(path)


def _path() -> Path:
    import platformdirs

    # Homes may be shared by machines.
    host = hashlib.sha256(platform.node().encode()).hexdigest()[:12]
    folder = platformdirs.user_state_path("perfkit", appauthor=False)
    return folder / f"{NOTE}-{host}.json"


def _read() -> list[list[Variance]]:
    """The runs in the file; none where there is no such file, or not such a one."""
    path = _path()
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return []
        content = json.loads(path.read_bytes())
        runs = [[(float(v), int(df)) for v, df in run] for run in content]
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return []
    variances = [variance for run in runs for variance in run]
    sound = all(0 <= v <= _LARGEST and 1 <= df <= _LARGEST for v, df in variances)
    return runs[-_RUNS:] if sound else []


def _centred_logs(variances: Sequence[Variance]) -> NDArray[np.float64]:
    """Logarithms of variances, less what they lie below that of the true one."""
    from scipy import special

    ratios, freedoms = np.array(variances, dtype=np.float64).T
    logs = np.log(np.maximum(ratios, _LUCK))
    return np.asarray(logs - special.digamma(freedoms / 2) + np.log(freedoms / 2))
