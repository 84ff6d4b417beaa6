"""Runs a training as it is for some seconds, in a process of its own, and looks at it.

The script runs in a thread; this process's first thread samples it, and traces it for
a moment now and then. What was seen goes into a folder, for ``charge`` to read when
nothing runs any more.
"""

import ast
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfkit.engine.trial import Note
from perfkit.errors import BadParameterError
from perfkit.training.account.places import IN_GRAPHS, Kind, Place
from perfkit.training.account.sampler import EVERY_S, EVERY_TRACED_S, Key, Sampler
from perfkit.training.account.watch import ENOUGH_UPDATES, Watch
from perfkit.training.diagnose import failure
from perfkit.training.diagnose.epochs import stand_in
from perfkit.training.diagnose.maker import InFile, contain
from perfkit.training.diagnose.source import of_kind, parse
from perfkit.training.diagnose.training import handed_over
from perfkit.training.profile.course import Marks

SEEN, PROGRESS, UNCONTAINED = "seen", "progress", "uncontained"
# Files in the folder: what was seen, and one that asks for the end.
RAW, STOP = "seen.json", "stop"
USUAL_S, LONGEST_S = 30.0, 120.0
_TELL_EVERY_S = 1.0
# Python keeps its lock for 5 ms otherwise, and a thread would be seen where it lets go
# of the lock by itself, not where it computes.
_SWITCH_S = 0.00005
# When windows are traced: shares of the seconds left once the training began.
_WINDOWS = (0.1, 0.3, 0.5, 0.7, 0.85)
# What takes such a share of the graphs' seconds is waited for, if it is in no window.
_UNTRACED_SHARE, _PATIENCE_S = 0.1, 2.0
_WARM_UPDATES, _ASK_EVERY_S = 3, 0.25
_FIRST_S, _SHORTEST_S, _LONGEST_WINDOW_S, _TRACED_SHARE = 0.15, 0.1, 1.2, 0.08
# Fewer are better than a window that holds none.
_WHOLE_STEPS, _LONGEST_WHOLE_S = (2.5, 1.5), 3.0
# One window of whole steps may take more of the time than all of them should.
_DEAR_SHARE = 0.2
# All of them, their writing included, take so much of the time, about.
_LOOKING_SHARE = 0.1
_LATE, _LEAST_LEFT_S = 0.7, 6.0
_ENDLESS = 10**9


@failure.as_notes
def collect(
    maker: Callable[[], Any], seconds: float, folder: str, limit: float | None = None
) -> Iterator[Note]:
    """Look at a training for some seconds, and write what was seen into a folder.

    ``seconds`` do not count imports; up to ``limit``, or four times as many, where it
    has hardly trained by then.

    Yields:
        ``"progress"`` every second, ``"seen"`` at last, ``"uncontained"`` where that
        is so, or what kept it from running, as ``failure.as_notes`` has it.
    """
    longest = limit or max(seconds, min(LONGEST_S, 4 * seconds))
    if uncontained := contain(maker, folder):
        yield Note(UNCONTAINED, uncontained)
    watch = Watch()
    watch.begin()
    errors: list[BaseException] = []
    # It ends with the process.
    running = threading.Thread(target=_run, args=(maker, errors), daemon=True)
    running.start()
    sampler = Sampler(watch, running.ident or 0, _home(maker))
    sys.setswitchinterval(_SWITCH_S)
    windows = _Windows(sampler, seconds, Path(folder))
    began = told_at = time.perf_counter()
    while running.is_alive():
        sampler.sample(EVERY_S if sampler.window is None else EVERY_TRACED_S)
        at = time.perf_counter()
        spent = at - began - sampler.imports_s
        windows.look(spent)
        if at - told_at > _TELL_EVERY_S:
            told_at = at
            yield Note(PROGRESS, _progress(sampler, spent))
            enough = watch.updates() >= ENOUGH_UPDATES and windows.is_done
            is_over = spent > longest or (spent > seconds and enough)
            if is_over or Path(folder, STOP).exists():
                break
    ended = not running.is_alive()
    windows.close()
    if errors and not any(key.place for key in sampler.seconds):
        # None of the user's own code was seen at work.
        raise errors[0]
    raw = _raw(sampler, windows, time.perf_counter() - began)
    raw |= {"ended": ended, "error": failure.in_sentence(errors[0]) if errors else ""}
    Path(folder, RAW).write_text(json.dumps(raw))
    yield Note(SEEN, True)


def _home(maker: Callable[[], Any]) -> Place | None:
    """Return the line of a function that makes a training; None for a script."""
    if code := getattr(maker, "__code__", None):
        return code.co_filename, code.co_firstlineno
    if not isinstance(maker, InFile):
        return None
    functions = of_kind(ast.FunctionDef, parse(maker.path))
    places = ((maker.path, f.lineno) for f in functions if f.name == maker.name)
    return next(places, None)


def _run(maker: Callable[[], Any], errors: list[BaseException]) -> None:
    """Run a training to its end, as it is."""
    stand_in()
    try:
        returned = maker()
        if isinstance(returned, tuple):
            training = handed_over(returned)
            callbacks = training.arguments["callbacks"]
            training.fit(callbacks, epochs=training.epochs or _ENDLESS)
    except BaseException as error:
        errors.append(error)


@dataclass
class _Windows:
    """Traces a moment now and then.

    ``looking_s`` went into windows, their start and their end included; ``failed`` says
    why there is no trace.
    """

    sampler: Sampler
    seconds: float
    folder: Path
    traced: list[dict[str, Any]] = field(default_factory=list)
    looking_s: float = 0.0
    failed: str = ""
    _due: list[float] = field(default_factory=list)
    _marks: Marks | None = None
    _until: float = 0.0
    _began: float = 0.0
    _length: float = _FIRST_S
    _checked: float = 0.0
    _warm: tuple[float, int] = (0.0, 0)
    # Line and call of what ran in graphs while a window was open.
    _contexts: set[tuple[Place | None, str]] = field(default_factory=set)

    @property
    def is_done(self) -> bool:
        """Whether no more windows are to come."""
        begun = bool(self.traced or self.failed)
        return begun and self._marks is None and not (self._due and self._length)

    def look(self, spent: float) -> None:
        """Begin or end a window if it is time."""
        at, watch = time.perf_counter(), self.sampler.watch
        if self._marks is not None:
            if at >= self._until:
                self.close()
            return
        if watch.is_tracing:
            return
        begun = self._due or self.traced or self.failed
        if not begun and at >= self._checked + _ASK_EVERY_S:
            self._checked = at
            # The first updates trace functions that the others run, and take longer.
            warm = watch.updates() >= _WARM_UPDATES
            if warm and watch.trained_at:
                self._warm = at, watch.updates()
            if warm or (not watch.trained_at and spent >= _LATE * self.seconds):
                remaining = max(_LEAST_LEFT_S, self.seconds - spent)
                self._due = [spent + share * remaining for share in _WINDOWS]
        if self._due and spent >= self._due[0] and not watch.is_tracing:
            if spent < self._due[0] + _PATIENCE_S and self._waits_for_untraced():
                return
            self._due.pop(0)
            if self._length > 0:
                self._begin()

    def _waits_for_untraced(self) -> bool:
        """Whether what runs now was traced, and something else that takes long was not.

        An epoch's validation, for one, may be missed by all windows.
        """
        key = self.sampler.key
        if key is None or not self.traced:
            return False
        seconds = defaultdict[tuple[Place | None, str], float](float)
        for other, spent in self.sampler.seconds.items():
            if other.kind in IN_GRAPHS and other.repeats:
                seconds[other[:2]] += spent
        enough = _UNTRACED_SHARE * sum(seconds.values())
        untraced = {o for o, spent in seconds.items() if spent >= enough}
        untraced -= self._contexts
        return bool(untraced) and key[:2] not in untraced

    def _begin(self) -> None:
        place = self.folder / f"window{len(self.traced)}"
        place.mkdir()
        self._began = time.perf_counter()
        marks = Marks(str(place), all_operations=True)
        memory = self.sampler.watch.memory
        memory.begin_window()
        try:
            marks.start()
        except BadParameterError as error:
            # The user's own profiler runs: the samples are kept.
            memory.end_window()
            self.failed, self._due = str(error), []
            self.sampler.skip()
            return
        self._marks, updates = marks, [self.sampler.watch.updates()]
        window = {"folder": place.name, "started": time.time(), "updates": updates}
        self.traced.append(window)
        self.sampler.skip()
        self.sampler.window = []
        self._until = time.perf_counter() + self._length

    def close(self) -> None:
        """End the window that is open, if any."""
        if self._marks is None:
            return
        window, watch = self.traced[-1], self.sampler.watch
        window["samples"] = samples = self.sampler.window or []
        self._contexts |= {key[:2] for _, key in samples if key.kind in IN_GRAPHS}
        window["ended"] = time.time()
        window["updates"].append(watch.updates())
        marks, self._marks, self.sampler.window = self._marks, None, None
        marks.stop()
        watch.memory.end_window()
        self.sampler.skip()
        self.looking_s += time.perf_counter() - self._began
        self._length = self._next_length()

    def _next_length(self) -> float:
        """Return the seconds of the next window, by the cost of the last ones.

        With many small operations, writing a window takes many times its length. 0.0
        if the budget holds no more of them.
        """
        recorded_s: float = sum(w["ended"] - w["started"] for w in self.traced)
        cost = self.looking_s / max(1e-3, recorded_s)
        remaining = _LOOKING_SHARE * self.seconds - self.looking_s
        longest = remaining / max(1, len(self._due)) / cost
        share = self.seconds * _TRACED_SHARE / len(_WINDOWS)
        length = min(share, _LONGEST_WINDOW_S, longest)
        if longest < _SHORTEST_S:
            length = 0.0 if len(self.traced) > 1 else _SHORTEST_S
        # What the ends of a window cut off is in no trace: of long steps fewer windows
        # are traced, which hold whole ones.
        step_s = self._step_s
        for steps in _WHOLE_STEPS:
            whole = min(steps * step_s, _LONGEST_WHOLE_S)
            if whole <= length or not self._due:
                return length
            room = int(remaining / cost / whole)
            has_whole = any(w["ended"] - w["started"] >= whole for w in self.traced)
            if whole * cost < _DEAR_SHARE * self.seconds and not has_whole:
                room = max(1, room)
            if room:
                self._due = self._due[:room]
                return whole
        return length

    @property
    def _step_s(self) -> float:
        """Seconds from update to update since the first ones; 0.0 if unknown."""
        at, before = self._warm
        updates = self.sampler.watch.updates() - before
        return (time.perf_counter() - at) / updates if at and updates > 0 else 0.0


def _progress(sampler: Sampler, spent: float) -> dict[str, Any]:
    rows: dict[Place, float] = defaultdict(float)
    for key, seconds in sampler.seconds.items():
        if key.place is not None and key.kind != Kind.PASS_END:
            rows[key.place] += seconds
    total = sum(rows.values()) or 1.0
    top = sorted(rows.items(), key=lambda row: -row[1])[:8]
    return {"spent_s": spent, "rows": [[*place, s / total] for place, s in top]}


def _raw(sampler: Sampler, windows: _Windows, wall_s: float) -> dict[str, Any]:
    """Return everything that was seen, as JSON."""
    keys: defaultdict[Key, int] = defaultdict(lambda: len(keys))
    return {
        "seconds": [[keys[key], s] for key, s in sampler.seconds.items()],
        "windows": [
            window | {"samples": [[at, keys[key]] for at, key in window["samples"]]}
            for window in windows.traced
            if "samples" in window
        ],
        "keys": [list(key) for key in keys],
        "background": [[*p, s] for p, s in sampler.background.items()],
        "wall_s": wall_s,
        "looking_s": windows.looking_s,
        "sampling_s": sampler.taken_s,
        "samples": sampler.samples,
        "untraced": windows.failed,
        "trained_at": sampler.watch.trained_at,
        **sampler.watch.as_note(),
    }
