"""How good is the measuring itself? Ratios from one run, against what is named.

    python benchmarks/engine.py start monitor turns
    python benchmarks/engine.py claims --runs 20 --budget 20 --keep rows.jsonl
    python benchmarks/engine.py claims --replay rows.jsonl --stretch 1.05
    python benchmarks/engine.py claims --beside guest

Run it while nothing else loads the machine; the table says what others used meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from perfkit.engine.launcher import launcher
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.monitor import Monitor
from perfkit.engine.plan import Finished, Plan
from perfkit.engine.rounds import Run
from perfkit.engine.spread import Spread
from perfkit.engine.steady import steady
from perfkit.engine.trial import READY, Limits, Trial, every
from perfkit.questions.contention.loads import CPU, LOADS, at_work

# A turn is at least four times as long.
_EARLY_S = 0.05
_FRESH = "import tensorflow as tf; tf.constant(1.0) + 1"
# The baseline, and variants of which every second one is stretched.
COPIES = ("base", "a", "b", "c", "d", "e")
STRETCHED, SLOW = 1.15, COPIES[1::2]
# Looked for in the same runs: which of them is found in nine of ten.
ENOUGH = 0.9
STRETCHES = (1.02, 1.03, 1.04, 1.05, 1.06, 1.08, 1.10, 1.12, 1.15, 1.20, 1.30, 1.50)
ROW = tuple[tuple[Trial, ...], list[float]]
# A neighbour that comes and goes is there for so many seconds, and then is not.
GUEST_S = (1.0, 8.0)
LONGEST_S = 7200.0
GROUPS = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def group(controller, file, value):
    """Give a control group with one limit; root alone can make one, and only in v1."""
    folder = GROUPS / controller / own_group(controller) / f"perfkit-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / file).write_text(value)
        yield folder
    finally:
        emptied(folder)


def emptied(folder):
    """Take a control group away; what is left in it goes back to where it came from."""
    for _ in range(50):
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (folder.parent / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        # A process that is ending leaves its group a moment later.
        time.sleep(0.1)
    print(f"{folder} is left over; take it away with rmdir.", file=sys.stderr)


def own_group(controller):
    """The group that this process is in already, relative to the controller's root."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.lstrip("/")
    return ""


def products(count):
    """Steps of ``count`` matrix products in a graph: a cost known to the percent."""
    import tensorflow as tf

    matrix = tf.random.normal((160, 160)) / 160

    @tf.function
    def step(value):
        for _ in range(count):
            value = tf.tanh(value @ matrix)
        return value

    value = step(matrix)

    def steps():
        while True:
            step(value)
            yield 1

    yield READY
    yield from every(steps())


def base():
    """Forty products a step."""
    return products(40)


def pipeline():
    """A pipeline with AUTOTUNE at every stage, which has a clock of its own."""
    import tensorflow as tf

    pictures = tf.data.Dataset.from_tensors(tf.zeros((128, 128, 3), tf.uint8))
    batches = (
        pictures.repeat()
        .map(_brighter, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(32, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )
    iterator = iter(batches)
    next(iterator)
    yield READY
    yield from every(len(batch) for batch in iterator)


def _brighter(picture):
    import tensorflow as tf

    picture = tf.image.resize(tf.cast(picture, tf.float32) / 255, (96, 96))
    return tf.image.random_brightness(tf.image.random_flip_left_right(picture), 0.2)


def start(times=9):
    """Trial start to first op against a fresh Python that imports TensorFlow."""

    def one_op():
        import tensorflow as tf

        yield int(tf.constant(0.0) + 0)
        yield READY

    _wait()
    forked, fresh = [], []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", _FRESH], check=True, capture_output=True)
        fresh.append(time.perf_counter() - began)
        running = launcher().start(one_op, 1, Limits())
        first = None
        while running.outcome is None:
            for message in running.poll(0.1):
                if message[0] == "ticks" and first is None:
                    first = message[1][0][0]
        forked.append((first - running.started_ns) / 1e9)
    ratio = statistics.median(fresh) / statistics.median(forked)
    detail = (
        f"{statistics.median(forked):.3f} s against {statistics.median(fresh):.2f} s"
    )
    return [("trial start, times faster than a fresh import", f"{ratio:.0f}", detail)]


def monitor(windows=40, seconds=0.75):
    """Throughput of a training with the monitor against without, by turns."""
    _wait()
    running = launcher().start(base, 1, Limits())
    ticks = []
    while len(ticks) < 60:
        ticks += _new(running)
    rates = {True: [], False: []}
    for window in range(2 * windows):
        on = (window + window // 2) % 2 == 0
        watching = Monitor()
        if on:
            watching.watch(running.pid)
            watching.start(time.perf_counter_ns())
        until = time.perf_counter_ns() + int(seconds * 1e9)
        begun, ticks = time.perf_counter_ns(), []
        while time.perf_counter_ns() < until:
            ticks += _new(running)
        watching.stop()
        inside = [t for t in ticks if begun <= t[0] <= until]
        done = sum(n for _, n, *_ in inside[1:])
        rates[on].append(done / (inside[-1][0] - inside[0][0]))
    running.kill("stopped", "done")
    logs = np.log(rates[True]) - np.log(rates[False])
    draw = np.random.default_rng(0)
    means = draw.choice(logs, (2000, len(logs))).mean(axis=1)
    low, high = np.exp(np.quantile(means, [0.025, 0.975]))
    ratio = f"{np.exp(logs.mean()):.3f}"
    detail = f"{low:.3f} to {high:.3f}, {windows} pairs"
    return [("throughput, monitor on against off", ratio, detail)]


def turns(budget=40.0):
    """What standing still costs: the start of each turn against the rest of it."""
    measured = _run({"products": base, "AUTOTUNE pipeline": pipeline}, budget, 0)
    rows = []
    for name in ("products", "AUTOTUNE pipeline"):
        logs = [log for trial in measured.trials_of(name) if (log := _at_turn(trial))]
        mean = np.exp(np.mean(logs))
        spread = np.std(logs, ddof=1) if len(logs) > 1 else float("nan")
        detail = f"standard deviation {spread:.3f}, {len(logs)} trials"
        rows.append(
            (f"{name}: first {_EARLY_S:.2f} s of a turn", f"{mean:.3f}", detail)
        )
    return rows


def _at_turn(trial):
    """The log of a trial's rate early in its turns against later in them."""
    early, late = [0, 0.0], [0, 0.0]
    before = trial.ticks[0][0] if trial.ticks else 0.0
    for at, examples in trial.ticks:
        began = [turn for turn in trial.turns[2:] if turn < at]
        if examples and began:
            part = early if (at + before) / 2 - began[-1] < _EARLY_S else late
            part[0] += examples
            part[1] += at - before
        before = at
    if not early[0] or not late[0]:
        return None
    return np.log(early[0] / early[1]) - np.log(late[0] / late[1])


def claims(runs=20, budget=20.0, keep=None, replay=None, stretch=STRETCHED):
    """Six copies of a training: what is claimed, once the ticks of some are stretched.

    Stretched ticks take ``stretch`` times as long, so every ratio is known exactly.
    What is kept in a file is judged again with ``replay``, by the statistics of then.
    """
    rows = list(_kept(replay) if replay else _copies(runs, budget, keep))
    table = []
    for known in ("each by itself", "with those before"):
        learns = known != "each by itself"
        found = _compared(rows, stretch, learns)
        table += _claimed(found, f"{known}: ", stretch)
        told = [s for s in STRETCHES if _found(_compared(rows, s, learns)) >= ENOUGH]
        least = f"{min(told) - 1:.0%}" if told else f"above {STRETCHES[-1] - 1:.0%}"
        table.append((f"{known}: least that {ENOUGH:.0%} of are found", least, ""))
    load = np.mean([np.mean(loads) for _, loads in rows])
    table.append(_from_run_to_run([trials for trials, _ in rows]))
    return [*table, ("runs", str(len(rows)), f"others used {load:.2f} cores")]


def _compared(rows, stretch, learns):
    """The comparisons of all runs; each may learn from those before it."""
    found, runs_seen = [], []
    for trials, _ in rows:
        measured = Measurement(
            variants=tuple(Variant(name, base, against=COPIES[0]) for name in COPIES),
            trials=tuple(_stretched(trial, stretch) for trial in trials),
            notes=Spread.learnt(runs_seen if learns else []).as_note(),
            baseline=COPIES[0],
        )
        runs_seen = [*runs_seen, measured.variances]
        found += measured.comparisons
    return found


def _found(comparisons):
    """The share of stretched copies that are called slower."""
    return np.mean([c.verdict == "slower" for c in comparisons if c.variant in SLOW])


def _claimed(found, known, stretch):
    """Rows of the table: claims, coverage and widths of comparisons."""
    slow = [c for c in found if c.variant in SLOW]
    same = [c for c in found if c.variant not in SLOW]
    inside = [
        c.low <= (1 / stretch if c.variant in SLOW else 1.0) <= c.high for c in found
    ]
    once = [c for c in found if c.rounds == 1]
    wrong = sum(c.verdict == "faster" for c in slow)
    rounds = np.mean([c.rounds for c in found])
    widths = np.quantile([c.half_width for c in found], (0.25, 0.5, 0.75))
    yield (
        f"{known}{stretch - 1:.0%} stretched and found",
        f"{_found(found):.1%}",
        f"of {len(slow)}, {wrong} called faster; median ratio "
        f"{np.median([c.ratio for c in slow]):.3f} for {1 / stretch:.3f}",
    )
    yield (
        f"{known}copies called different",
        f"{np.mean([not c.is_noise for c in same]):.1%}",
        f"of {len(same)}",
    )
    yield f"{known}intervals that hold the truth", f"{np.mean(inside):.1%}", ""
    yield (
        f"{known}half-width, median",
        f"{widths[1]:.1%}",
        f"quartiles {widths[0]:.1%} and {widths[2]:.1%}; {rounds:.1f} rounds, "
        f"{len(once)} comparisons of one",
    )


def _from_run_to_run(runs):
    """By how much the rate of the same work moves, and how much of that no trial shows.

    All copies of a run count, unstretched: what is left is the machine's.
    """
    parts = [[part for one in trials if (part := steady(one))] for trials in runs]
    logs = [[np.log(np.median(p.seconds / p.examples)) for p in run] for run in parts]
    logs = [run for run in logs if len(run) > 1]
    seen = np.var([np.mean(run) for run in logs], ddof=1)
    within = np.mean([np.var(run, ddof=1) / len(run) for run in logs])
    beyond = np.sqrt(max(0.0, seen - within))
    return (
        "rate of one work from run to run, standard deviation",
        f"{np.sqrt(seen):.1%}",
        f"{beyond:.1%} beyond what the trials of a run show",
    )


def _copies(runs, budget, keep):
    """The trials of each run, kept as a line of JSON once it has ended."""
    for seed in range(runs):
        measured = _run(dict.fromkeys(COPIES, base), budget, seed)
        others = measured.samples.get("cpu_other", ())
        row = measured.trials, [load for load in others if load is not None]
        if keep:
            with keep.open("ab") as file:
                file.write(msgspec.json.encode(row) + b"\n")
        yield row


def _kept(path):
    with path.open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=ROW)


def _stretched(trial, by):
    """The trial as if all that it did had taken as long as its variant is to take."""
    by = by if trial.variant in SLOW else 1.0
    return replace(
        trial,
        ticks=tuple((by * at, examples) for at, examples in trial.ticks),
        turns=tuple(by * at for at in trial.turns),
    )


def _run(works, budget, seed):
    first = next(iter(works))
    variants = tuple(Variant(name, work, against=first) for name, work in works.items())
    plan = Plan(variants=variants, baseline=first, budget=budget, seed=seed)
    for event in Run(plan, launcher(), Monitor()).events():
        if isinstance(event, Finished):
            return event.measurement
    raise AssertionError("a run ends with Finished")


# What may work beside it.


def idle():
    """Nothing of ours works beside it."""
    return contextlib.nullcontext()


def one_busy():
    """A process that computes all the time."""
    return at_work(LOADS[CPU], 1, limit=LONGEST_S)


def all_busy():
    """Such a process for each core."""
    return at_work(LOADS[CPU], limit=LONGEST_S)


@contextlib.contextmanager
def guest():
    """Such a process for each core, and all come and go together."""
    over = threading.Event()

    def come_and_go(processes):
        while not over.is_set():
            for process in processes:
                process.suspend()
            over.wait(random.uniform(*GUEST_S))
            for process in processes:
                process.resume()
            over.wait(random.uniform(*GUEST_S))

    with all_busy() as working:
        processes = [psutil.Process(process.pid) for process in working]
        thread = threading.Thread(target=come_and_go, args=(processes,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextlib.contextmanager
def quota():
    """A container that gets one core's time for all of its processes."""
    with group("cpu", "cpu.cfs_quota_us", "100000") as folder:
        # The launcher and its trials are its children.
        (folder / "cgroup.procs").write_text(str(os.getpid()))
        yield


BESIDE = {one.__name__: one for one in (idle, one_busy, all_busy, guest, quota)}


def _new(running):
    return [t for m in running.poll(0.02) if m[0] == "ticks" for t in m[1] if t[1]]


def _wait():
    while not launcher().wait(1):
        pass


def main():
    """Run what is asked for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    known = {"start": start, "monitor": monitor, "turns": turns, "claims": claims}
    parser.add_argument("what", nargs="+", choices=known)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--keep", type=Path, help="append each run to this file")
    parser.add_argument("--replay", type=Path, help="judge the runs of this file")
    parser.add_argument("--stretch", type=float, default=STRETCHED)
    parser.add_argument("--beside", choices=BESIDE, default="idle")
    asked = vars(parser.parse_args())
    table = Table("what", "figure", "detail")
    with BESIDE[asked.pop("beside")]():
        for what in asked.pop("what"):
            for row in known[what](**(asked if what == "claims" else {})):
                table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
