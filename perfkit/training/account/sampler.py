"""Samples of the thread that trains: which line it is at, and what it does there."""

import gc
import operator
import random
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice, repeat, takewhile, tee
from types import CodeType, FrameType
from typing import Any, NamedTuple

from perfkit.training.account import places
from perfkit.training.account.places import Kind, Place, Stack, is_in_loop, place_at
from perfkit.training.account.watch import Watch

# Between two samples; there are more in a traced window, which is split by them.
# A sample costs 0.1 to 0.3 ms of a processor: every 10 ms slowed long steps by 4 %.
EVERY_S, EVERY_TRACED_S = 0.025, 0.005
# A sample this late waited for Python's lock. So many waits after it are random, and
# none is longer than so many usual ones.
_LATE_S, _AFTER_LATE, _LONGEST_WAIT = 0.005, 10, 5.0
_WRAPPERS = frozenset({"error_handler", "wrapper", "wrapped", "call", "init"})
_MOST_WRAPPERS = 8
_TRAINING = frozenset({Kind.GRAPH, Kind.DATA, Kind.TRACED, Kind.PASS_END})
_PY_FUNC = "tensorflow/python/ops/script_ops.py"


class Key(NamedTuple):
    """What samples have in common.

    Attributes:
        place: Line; None where no code of the user's is on the stack.
        call: Public function of a library that the line called; "" for its own Python,
            ``VALIDATION`` where ``fit`` validates.
        repeats: Whether the training had begun, and the line is at work in its loops,
            or between several of its steps: what prepares a second one runs once.
    """

    place: Place | None
    call: str
    kind: str
    repeats: bool


@dataclass
class Sampler:
    """Weighs samples by the seconds that they stand for.

    Attributes:
        thread: The one that trains, by its number.
        home: The line that stands for a ``fit`` which perfkit itself calls, on what a
            function of the user's has made; None for a script.
        seconds: Of each key, outside of traced windows.
        background: Of lines of the user's in other threads.
        window: Times and keys, while a window is traced.
        taken_s: Seconds that sampling took.
        key: Of the last sample.
    """

    watch: Watch
    thread: int
    home: Place | None = None
    seconds: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    background: dict[Place, float] = field(default_factory=lambda: defaultdict(float))
    window: list[tuple[float, Key]] | None = None
    taken_s: float = 0.0
    imports_s: float = 0.0
    samples: int = 0
    key: Key | None = None
    # The call that a line is in, and whether it has run a graph yet.
    _call: int = 0
    _executed: bool = False
    # The call that traced its function, as long as it lasts.
    _traced: FrameType | None = None
    # Code that has training below it, and when lines outside of its loops were seen.
    _trainers: set[CodeType] = field(default_factory=set)
    _phases: dict[Place, set[int]] = field(default_factory=lambda: defaultdict(set))
    _computed: dict[int, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.perf_counter)
    _random_left: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(0))

    def skip(self) -> None:
        """Leave out the time until now: nobody looked."""
        self._last = time.perf_counter()

    def sample(self, every_s: float = EVERY_S) -> None:
        """Take a sample, usually so many seconds after the last one.

        One that came late ended with the call of C that held it up. A wait that is
        always as long would then never see what follows that call. A random one whose
        past says nothing of its end sees every line as often as it is at work.
        """
        wait_s = every_s
        if waits_at_random := self._random_left > 0:
            wait_s = min(_LONGEST_WAIT, self._random.expovariate(1.0)) * every_s
        asleep = time.perf_counter()
        began, computed, collects, stacks = find_stacks(wait_s)
        late_s = max(0.0, began - asleep - wait_s)
        spent = every_s + late_s if waits_at_random else began - self._last
        self._last = began
        self._random_left = _AFTER_LATE if late_s > _LATE_S else self._random_left - 1
        try:
            key = self._look(stacks, spent)
        finally:
            if collects:
                gc.enable()
        if key is None:
            return
        self.samples += 1
        self.key = key
        if self.window is None:
            self.seconds[key] += spent
            self.imports_s += spent * (key.kind == Kind.IMPORT)
        else:
            self.window.append((time.time(), key))
        # While this thread waits for Python's lock, the training goes on.
        self.taken_s += time.thread_time() - computed

    def _look(self, stacks: dict[int, Stack], spent: float) -> Key | None:
        stack = stacks.pop(self.thread, None)
        stacks.pop(threading.get_ident(), None)
        key = self._key_of(stack) if stack else None
        if key and key.kind in (Kind.GRAPH, Kind.DATA, Kind.PYTHON):
            self._look_beside(stacks, spent, key.place)
        return key

    def _look_beside(
        self, stacks: dict[int, Stack], spent: float, asking: Place | None
    ) -> None:
        """Share the seconds out over the user's lines in other threads.

        Most of them wait for Python's lock, which shows nowhere: what a thread computed
        counts, and only what nobody did is everybody's, such as waiting for a disk.
        What a library's Python computes for the input is on the line ``asking`` for it.
        """
        lines = {thread: places.place_in(stack) for thread, stack in stacks.items()}
        at_work = {t: place for t, place in lines.items() if place is not None}
        libraries = {t for t in {*stacks} - {*at_work} if asking and _feeds(stacks[t])}
        if not at_work and not libraries:
            return
        new, old = processor_seconds(), self._computed
        self._computed = new
        added = {t: new.get(t, 0.0) - old.get(t, 0.0) for t in {*at_work, *libraries}}
        computed = {t: min(spent, max(0.0, s)) for t, s in added.items()}
        idle = max(0.0, spent - sum(computed.values())) / max(1, len(at_work))
        for thread, place in at_work.items():
            self.background[place] += computed[thread] + idle
        for thread in libraries:
            if asking and computed[thread]:
                self.background[asking] += computed[thread]

    def _key_of(self, stack: Stack) -> Key:
        roles = set[str]()
        # From the leaf outwards, up to the line of the user's.
        inside: list[FrameType] = []
        place: Place | None = None
        for frame, line in stack:
            role = places.role(frame.f_code)
            if role == Kind.TRACED:
                # What is traced is the doing of the line that called for it.
                place = None
            if place is None and role == Kind.USER:
                place = place_at(frame, line)
            elif place is None:
                inside.append(frame)
                roles.add(role)
        place = place or self.home
        repeats = bool(self.watch.trained_at) and self._repeats(place, roles, stack)
        if place is None:
            kind = Kind.IMPORT if Kind.IMPORT in roles else Kind.PYTHON
            return Key(None, "", kind, repeats)
        name, call = _call(inside)
        if call != self._call:
            self._call, self._executed = call, False
        kind = self._kind(roles, inside)
        if kind == Kind.OTHER:
            callback = _callback(inside)
            if maker := self.watch.callbacks.get(id(callback)):
                return Key(maker, type(callback).__name__, Kind.CALLBACK, repeats)
            kind, code = Kind.PYTHON, stack[0][0].f_code
            role = places.role(code)
            if role == Kind.SET_UP or (self._call and not self._executed):
                kind = Kind.SET_UP
            elif role == Kind.COMPUTING or code.co_name == "quick_execute":
                kind = Kind.COMPUTING
        return Key(place, name, kind, repeats)

    def _repeats(self, place: Place | None, roles: set[str], stack: Stack) -> bool:
        frames = [frame for frame, _ in stack]
        users = [f for f in frames if places.role(f.f_code) == Kind.USER]
        if roles & _TRAINING or any(map(_is_loop, frames)):
            self._trainers.update(frame.f_code for frame in users)
            return True
        trainers = (frame for frame in users if frame.f_code in self._trainers)
        if place is None or any(map(is_in_loop, trainers)):
            return True
        self._phases[place].add(self.watch.events)
        return len(self._phases[place]) > 1

    def _kind(self, roles: set[str], inside: list[FrameType]) -> str:
        """What the frames of libraries do together, if one of them tells."""
        # The outermost call of a ``tf.function``.
        calls = (f for f in reversed(inside) if f.f_code.co_name == "__call__")
        functions = (f for f in calls if f.f_code.co_filename.endswith(_FUNCTION))
        function_call = next(functions, None)
        if Kind.TRACED in roles:
            self._traced = function_call
            return Kind.TRACED
        if self._traced is not None:
            # TensorFlow optimizes a graph, and XLA compiles it, as it first runs.
            if function_call is self._traced and Kind.GRAPH in roles:
                return Kind.TRACED
            self._traced = None
        for kind in (Kind.PASS_END, Kind.GRAPH, Kind.DATA, Kind.IMPORT):
            if kind in roles:
                self._executed = self._executed or kind != Kind.IMPORT
                return kind
        return Kind.OTHER


def _feeds(stack: Stack) -> bool:
    """Whether ``tf.data`` asks Python for a batch in this thread."""
    return any(frame.f_code.co_filename.endswith(_PY_FUNC) for frame, _ in stack)


def find_stacks(after_s: float) -> tuple[float, float, bool, dict[int, Stack]]:
    """Sleep, then see where each thread is.

    All of it is one expression of C. Between two lines of Python another thread may
    take the lock again, and one that has just left a long call of C would be seen at
    the line behind it. No garbage is collected then: that may end objects of
    TensorFlow, which lets other threads go on while their frames are read.

    Returns:
        When that was, on ``time.perf_counter`` and on ``time.thread_time``; whether
        garbage is to be collected again; and the stack of each thread by its number.
    """
    told: list[Any] = []
    line_of = operator.attrgetter("f_lineno")
    clocks = time.perf_counter, time.thread_time
    asked = (*clocks, gc.isenabled, gc.disable, sys._current_frames)
    # None of these yields anything; the frames are what was told last.
    before = chain(
        map(time.sleep, (after_s,)), map(told.append, map(operator.call, asked))
    )
    last = map(operator.itemgetter(-1), (told,))
    leaves = chain(filter(None, before), chain.from_iterable(map(dict.values, last)))
    # Each leaf, then its ``f_back``, and so on until there is none.
    steps = map(chain, zip(leaves), repeat(repeat("f_back")))
    walks = map(
        takewhile, repeat(operator.truth), map(accumulate, steps, repeat(getattr))
    )
    frames, copies = tee(map(list, walks))
    lines = map(list, map(map, repeat(line_of), copies))
    stacks = list(map(list, map(zip, frames, lines)))
    began, computed, collects, _, threads = told
    return began, computed, collects, dict(zip(threads, stacks, strict=True))


def processor_seconds() -> dict[int, float]:
    """Processor seconds of each thread that is in Python, by its number.

    Empty on systems that do not count them.
    """
    if not hasattr(time, "pthread_getcpuclockid"):
        return {}
    # In one expression of C: between lines of Python a thread might end, and reading
    # the clock of an ended thread crashes.
    snapshots = iter(sys._current_frames, None)
    threads, copies = tee(chain.from_iterable(islice(snapshots, 1)))
    clocks = map(time.pthread_getcpuclockid, copies)
    return dict(zip(threads, map(time.clock_gettime, clocks), strict=True))


# Keras's loops: what they do before a graph runs is their set-up.
_SETS_UP = frozenset({"fit", "evaluate", "predict"})
VALIDATION = "validation"
_FUNCTION = "polymorphic_function.py"
_CALLBACKS = "/keras/src/callbacks/"
_LISTS = _CALLBACKS + "callback_list.py"


def _call(inside: list[FrameType]) -> tuple[str, int]:
    """Return the public call that a line is in, and an id of it if it is a loop."""
    for frame in reversed(inside[-_MOST_WRAPPERS:]):
        code = frame.f_code
        name = code.co_name
        if name in _WRAPPERS or (name.startswith(("_", "<")) and name != "__call__"):
            continue
        if not _is_loop(frame):
            return name, 0
        for inner in inside if name == "fit" else ():
            if inner.f_code.co_name == "evaluate" and _is_loop(inner):
                return VALIDATION, id(inner)
        return name, id(frame)
    return "", 0


def _is_loop(frame: FrameType) -> bool:
    """Whether it is one of Keras's loops over batches."""
    return frame.f_code.co_name in _SETS_UP and "/keras/" in frame.f_code.co_filename


def _callback(inside: list[FrameType]) -> Any:
    """The callback of Keras's own that is at work; None for none."""
    for frame in inside:
        file = frame.f_code.co_filename.replace("\\", "/")
        if _CALLBACKS in file and not file.endswith(_LISTS):
            return frame.f_locals.get("self")
    return None
