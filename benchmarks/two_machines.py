"""Why does the same training run differently there? This machine, made different.

Run from a checkout:
``python benchmarks/two_machines.py [--only NAME] [--budget 90] [--out FOLDER]``.
A passport of this machine as it is, then one of it with one thing made worse on
purpose: held against each other, the cause has to be named first, and the step that is
predicted has to be the step that is seen. Passports of the machine as it is are held
against each other as well: no difference may be shown. The folder keeps each passport
and a row per pair in ``rows.jsonl``; what is there is not measured again. With
``--again`` no passport is made, and those that are there are compared anew.
"""

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from perfkit.errors import PerfkitError
from perfkit.experiments.contention.loads import CPU, LOADS, MEMORY, at_work
from perfkit.experiments.shared import cache
from perfkit.machines.compare import compare
from perfkit.passports.passport import load

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SAME = "same"
# What is predicted may be off by so much of what is seen.
OFF = 0.20
COLUMNS = ("made different by", "named first", "ok", "predicted", "seen", "off", "rest")
WIDTHS = (18, 66, 4, 10, 10, 7, 10)
# Seconds of a passport that are no part of its budget.
LATE_S = 60.0
GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Way:
    """One way of making this machine different.

    Attributes:
        name: In the table.
        part: Of the step, that has to be named first.
        said: What has to stand behind it.
        variables: Of the environment that the passport is made in.
        cores: The only ones that it may use; () for all.
        limits: Of control groups: the controller, its file and what is written there.
        load: What works beside it, and in how many processes.
    """

    name: str
    part: str
    said: str
    variables: dict = field(default_factory=dict)
    cores: tuple = ()
    limits: tuple = ()
    load: tuple = ()


def disk():
    """The number of the disk that perfkit's own files lie on."""
    number = os.stat(cache.folder()).st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def ways():
    """All of them, those that are the likeliest to be met first.

    Less memory is none of them: with 1.5 GB no reference training was slower.
    """
    xla = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"
    slow = (("blkio", "blkio.throttle.read_bps_device", f"{disk()} {100 * 10**6}"),)
    half = (("cpu", "cpu.cfs_quota_us", "100000"),)
    late = {"PYTHONPATH": str(HERE / "slow_elements")}
    # One thread within an operation is made up for by operations side by side.
    threads = {f"TF_NUM_{kind}_THREADS": "1" for kind in ("INTRAOP", "INTEROP")}
    return (
        Way("one core", "", "cores granted: 1 on B", cores=(0,)),
        Way("slow disk", "input", "data disk", limits=slow),
        Way("oneDNN off", "compute", "ONEDNN", {"TF_ENABLE_ONEDNN_OPTS": "0"}),
        Way("one burner", "background load", "of 2 cores busy", load=(CPU, 1)),
        Way("late elements", "input", "tf.data map", late),
        Way("half its time", "", "cores granted: 1 on B", limits=half),
        Way("two burners", "background load", "of 2 cores busy", load=(CPU, 2)),
        Way("one thread", "", "THREADS", threads),
        Way("memory hog", "background load", "of 2 cores busy", load=(MEMORY, 2)),
        Way("XLA on", "", "TF_XLA_FLAGS", {"TF_XLA_FLAGS": xla}),
    )


def main():
    """Measure what is asked for, compare all that is there, and say what holds."""
    options = asked()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.again:
        for name in wanted(options):
            make(name, options)
    rows = [row_of(*pair) for pair in pairs(options.out)]
    keep(rows, options.out)
    print_line(COLUMNS)
    for row in rows:
        show(row)
    return int(not all([print_total(*total) for total in totals(rows)]))


def asked():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="of a way")
    parser.add_argument("--same", type=int, default=5, help="passports as it is")
    parser.add_argument("--budget", type=float, default=90.0, help="seconds each")
    parser.add_argument("--out", type=Path, default=Path("two-machines"), help="folder")
    parser.add_argument("--again", action="store_true", help="only compare")
    return parser.parse_args()


def wanted(options):
    """Names of the passports: as it is between the ways, to see the machine drift."""
    plain = [f"{SAME}-{number}" for number in range(1, options.same + 1)]
    both = itertools.zip_longest(plain, [way.name for way in ways()])
    names = [name for pair in both for name in pair if name]
    return [name for name in names if not options.only or name in options.only]


def path_of(name, folder):
    """The file of a passport."""
    return folder / f"{name.replace(' ', '-')}.json"


# Making this machine different.


def make(name, options):
    """Make one passport, unless it is there."""
    path = path_of(name, options.out).resolve()
    if path.exists():
        return
    way = next((one for one in ways() if one.name == name), Way(name, "", ""))
    words = ["-m", "perfkit", "passport", "-o", str(path), "--label", name]
    try:
        with different(way) as begin:
            subprocess.run(
                [sys.executable, *words, "--budget", str(options.budget)],
                # What was measured in detail is kept beside it.
                cwd=options.out,
                env=os.environ | {"PYTHONPATH": str(ROOT)} | joined(way.variables),
                preexec_fn=begin,
                timeout=options.budget + LATE_S,
                check=True,
                stdout=subprocess.DEVNULL,
            )
    except (OSError, PerfkitError, subprocess.SubprocessError) as error:
        print(f"{name} was not made: {error}", file=sys.stderr)


def joined(variables):
    """The variables; a folder for modules comes before the package's own."""
    if "PYTHONPATH" not in variables:
        return variables
    return variables | {"PYTHONPATH": f"{variables['PYTHONPATH']}:{ROOT}"}


@contextlib.contextmanager
def different(way):
    """Give what the passport's process does first; undo all when it is over."""
    with contextlib.ExitStack() as undone:
        groups = [undone.enter_context(group(*limit)) for limit in way.limits]
        if way.load:
            name, processes = way.load
            undone.enter_context(at_work(LOADS[name], processes))

        def begin():
            for folder in groups:
                (folder / "cgroup.procs").write_text(str(os.getpid()))
            if way.cores:
                os.sched_setaffinity(0, way.cores)

        yield begin


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


# A row.


def pairs(folder):
    """Each pair of passports as they are, then each way against those next to it."""
    plain = sorted(folder.glob(f"{SAME}-*.json"))
    for one, other in itertools.combinations(plain, 2):
        yield SAME, one, other
    for way in ways():
        path = path_of(way.name, folder)
        if path.exists() and plain:
            made = path.stat().st_mtime
            nearest = min(plain, key=lambda one: abs(one.stat().st_mtime - made))
            yield way.name, nearest, path


def row_of(name, a, b):
    """Compare one pair and hold what is said against what was done."""
    found = compare(load(a), load(b))
    row = {
        "way": name,
        "a": a.stem,
        "b": b.stem,
        "verdict": found.verdict,
        "headline": found.headline,
        "works": [plain_work(work) for work in found.works],
    }
    work = found.main
    if name == SAME or work is None:
        # Of a machine that was made different something has to be named.
        alike = found.verdict == "no difference shown"
        return row | {"ok": name == SAME and alike}
    way = next(one for one in ways() if one.name == name)
    first = next(iter(work.causes), None)
    why = f"{first.name}: {first.why}" if first else ""
    named = bool(first) and way.part in ("", first.name) and way.said in why
    predicted = work.predicted.seconds if work.predicted else None
    return row | {
        "work": work.name,
        "named": why,
        "ok": named,
        "a_s": work.a,
        "predicted": predicted,
        "seen": work.b,
    }


def plain_work(work):
    """One training as a row keeps it."""
    speed, told = work.speed, work.predicted
    return {
        "name": work.name,
        "a": work.a,
        "b": work.b,
        "speed": [speed.ratio, speed.low, speed.high] if speed else None,
        "verdict": speed.verdict if speed else work.missing,
        "predicted": told.seconds if told else None,
        "causes": [[one.name, one.share, one.why] for one in work.causes],
    }


def keep(rows, folder):
    """Write all rows, one JSON object a line."""
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "rows.jsonl").write_text(lines)


# The table.


def off_by(row):
    """How far the prediction is off, as a share of what was seen; None if unknown."""
    if not row.get("predicted"):
        return None
    return row["predicted"] / row["seen"] - 1


def show(row):
    """Print one pair."""
    if row["way"] == SAME or "named" not in row:
        name = f"{row['way']} {row['a']}/{row['b']}" if row["way"] == SAME else ""
        print_line((name or row["way"], row["headline"], yes(row["ok"])))
        return
    off = off_by(row)
    rest = "" if off is None else f"{1e3 * (row['seen'] - row['predicted']):.2f} ms"
    told = "" if off is None else f"{1e3 * row['predicted']:.2f} ms"
    named = f"{row['work']}: {row['named']}"
    seen, share = f"{1e3 * row['seen']:.2f} ms", "" if off is None else f"{off:+.0%}"
    print_line((row["way"], named, yes(row["ok"]), told, seen, share, rest))


def yes(value):
    """A word for a table."""
    return "yes" if value else "NO"


def print_line(cells):
    """Print a line of the table; the words of a long cell are cut."""
    told = (str(cell)[:width] for cell, width in zip(cells, WIDTHS, strict=False))
    print(
        "  ".join(
            f"{cell:<{width}}" for cell, width in zip(told, WIDTHS, strict=False)
        ).rstrip()
    )


def totals(rows):
    """What has to hold: its name, how often it does, of how many, and the least."""
    same = [row for row in rows if row["way"] == SAME]
    other = [row for row in rows if row["way"] != SAME]
    near = [row for row in other if abs(off_by(row) or OFF + 1) <= OFF]
    yield "cause named first", sum(row["ok"] for row in other), len(other), 1.0
    yield "predicted within 20 %", len(near), len(other), 1.0
    yield "no difference shown", sum(row["ok"] for row in same), len(same), 0.9


def print_total(name, held, count, least):
    """Print one of the totals, and say whether it is enough."""
    enough = count > 0 and held >= least * count
    print(f"{name}: {held} of {count}{'' if enough else ' (too few)'}")
    return enough


if __name__ == "__main__":
    sys.exit(main())
