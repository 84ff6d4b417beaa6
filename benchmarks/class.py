"""How long does a large class take, and how much memory?

    .venv/bin/python benchmarks/class.py --machines 1000

Passports of the size that real ones have are written to a folder and read in a process
that is new; the seconds are of reading alone, and of what is made of it.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

SAMPLES, READINGS = 300, 10
TRAININGS = ("tiny dense", "small CNN", "small CNN from JPEG", "products")


def main():
    """Write the passports, read them in a process of its own, print what it took."""
    asked = _asked()
    if asked.folder:
        read(asked.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        size = write(Path(folder), asked.machines)
        print(
            f"{asked.machines:,} passports, {size / asked.machines / 1e3:.0f} KB each"
        )
        command = [sys.executable, __file__, "--folder", folder]
        subprocess.run(command, check=True)


def write(folder, machines):
    """Write so many passports, each of another machine; give their bytes."""
    from perfkit.findings.store import save
    from tests.machines.passports import passport, training

    for number in range(machines):
        draw = random.Random(number)
        speed = draw.lognormvariate(0, 0.6)
        one = passport(
            f"machine {number}",
            speed,
            trainings=tuple(training(name, 0.01 / speed) for name in TRAININGS),
            samples=_samples(draw),
        )
        # As many microbenchmarks as there are on a machine with a GPU.
        benchmarks = tuple(
            replace(benchmark, name=f"{benchmark.name} {copy}")
            for copy in range(6)
            for benchmark in one.microbenchmarks
        )
        one = replace(one, microbenchmarks=benchmarks)
        save(one, path=folder / f"machine-{number}.json")
    return sum(path.stat().st_size for path in folder.iterdir())


def _samples(draw):
    rows = {"t": tuple(0.6 * place for place in range(SAMPLES))}
    return rows | {
        f"reading_{number}": tuple(draw.random() for _ in range(SAMPLES))
        for number in range(READINGS)
    }


def read(folder):
    """Read a folder and print the seconds and the memory at its highest."""
    import perfkit

    began = _now()
    room = perfkit.classroom(folder)
    _told(f"{len(room.passports):,} machines read", began)
    began = _now()
    repr(room)
    _told("report", began)
    began = _now()
    path = room.export(Path(folder) / "class.html")
    _told(f"page of {path.stat().st_size / 1e6:.1f} MB", began)


def _now():
    """Seconds of the clock, and of the processor for this process."""
    return time.perf_counter(), time.process_time()


def _told(what, began):
    seconds, worked = (now - then for now, then in zip(_now(), began, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    took = f"{seconds:.2f} s ({worked:.2f} s of a core)"
    print(f"{what}: {took}, {peak / 1e6:.0f} MB at most", flush=True)


def _asked():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--folder", help="read this one, and write nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
