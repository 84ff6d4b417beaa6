"""What does a comparison say of this machine, recorded twice or made different?

Run from a checkout:
``python benchmarks/two_machines.py [--only NAME] [--times 10] [--budget 60]``.
Each pair is a passport of this machine as it is and a second one, made in another way:
as it is (no difference may be claimed), beside two busy loops (the load has to be
named, or nothing is known yet), on one core or without oneDNN (it has to be slower).
The folder keeps each passport; what is there is not measured again.
"""

import argparse
import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from perfkit.machines.compare import compare
from perfkit.questions.contention.loads import CPU, LOADS, at_work

ROOT = Path(__file__).resolve().parents[1]
# Seconds of a passport that are no part of its budget.
LATE_S = 120.0


@dataclass(frozen=True)
class Way:
    """One way of recording this machine, and the verdicts that are right of it.

    Attributes:
        right: The verdicts against the machine as it is.
        variables: Of the environment that the passport is made in.
        cores: The only ones that it may use; () for all.
        loops: How many processes keep a core busy beside it.
    """

    right: tuple
    variables: dict = field(default_factory=dict)
    cores: tuple = ()
    loops: int = 0


OPEN = ("no difference shown", "too noisy to say")
AS_IT_IS = "same"
WAYS = {
    # A load that came meanwhile is named, and that claims no difference either.
    AS_IT_IS: Way((*OPEN, "busy")),
    "busy": Way(("busy", "too noisy to say", "not measured"), loops=2),
    "one core": Way(("slower",), cores=(0,)),
    "oneDNN off": Way(("slower",), {"TF_ENABLE_ONEDNN_OPTS": "0"}),
}


def main():
    """Make the pairs that are asked for, and print how often the answer is right."""
    options = asked()
    options.out.mkdir(parents=True, exist_ok=True)
    all_right = True
    for name, way in WAYS.items():
        if options.only and name not in options.only:
            continue
        right = sum(is_right(name, way, n, options) for n in range(options.times))
        print(f"{name}: {right} of {options.times} right", flush=True)
        all_right &= right == options.times
    return int(not all_right)


def asked():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", choices=WAYS, help="one way")
    parser.add_argument("--times", type=int, default=10, help="pairs of each")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds each")
    parser.add_argument("--out", type=Path, default=Path("two-machines"), help="folder")
    return parser.parse_args()


def is_right(name, way, number, options):
    """Compare one pair, and print what is said."""
    one = make(f"{AS_IT_IS} {number}", WAYS[AS_IT_IS], options)
    # The next one of this machine as it is serves as the first of the next pair, too.
    which = number + 1 if name == AS_IT_IS else number
    other = make(f"{name} {which}", way, options)
    two = compare(one, other)
    right = two.verdict in way.right
    word = "right" if right else "WRONG"
    said = two.report.verdict
    print(f"  {word}: {two.verdict}. {said.headline} {said.much}", flush=True)
    return right


def make(name, way, options):
    """Make one passport, unless it is there."""
    path = (options.out / f"{name.replace(' ', '-')}.json").resolve()
    if path.exists():
        return path
    words = ["passport", "-o", str(path), "--budget", str(options.budget)]
    loops = at_work(LOADS[CPU], way.loops) if way.loops else contextlib.nullcontext()
    with loops:
        subprocess.run(
            [sys.executable, "-m", "perfkit", *words],
            # What was measured in detail is kept beside it.
            cwd=options.out,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | way.variables,
            preexec_fn=lambda: way.cores and os.sched_setaffinity(0, way.cores),
            timeout=options.budget + LATE_S,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return path


if __name__ == "__main__":
    sys.exit(main())
