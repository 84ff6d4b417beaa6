"""Does any file crash a reader, or put anything into a page that runs?

    .venv/bin/python benchmarks/fuzz_reader.py --minutes 10
    .venv/bin/python benchmarks/fuzz_reader.py --seed 1234 --documents 1

Sound documents of every kind are changed at random, in their structure or byte by byte.
Each is refused in one sentence, or read and shown: as text and as a card, and every few
of them as charts and pages too. What goes wrong is printed with the seed that makes the
same document again; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from perfkit.errors import BadFileError  # noqa: E402
from perfkit.findings.shown import Shown  # noqa: E402
from tests.hostile.kinds import KINDS  # noqa: E402
from tests.hostile.mutations import mutated  # noqa: E402

# Charts and pages take a hundred times as long as reading.
_IN_FULL = 10
_PRINTED = 10


def main():
    """Change, read and show until the time is over; print the counts."""
    asked = _asked()
    first = random.randrange(10**9) if asked.seed is None else asked.seed
    print(f"First seed: {first}", flush=True)
    counts, end = collections.Counter(), time.monotonic() + 60 * asked.minutes
    seed, slowest = first, (0.0, first)
    while seed - first < asked.documents and time.monotonic() < end:
        kind = list(KINDS)[seed % len(KINDS)]
        began = time.monotonic()
        came = _came_of(KINDS[kind], seed, in_full=asked.documents == 1)
        slowest = max(slowest, (time.monotonic() - began, seed))
        counts.update([came, f"of kind {kind}"])
        if came == "crashed" and counts[came] <= _PRINTED:
            print(f"Seed {seed}, a {kind}:\n{traceback_of(KINDS[kind], seed)}")
        seed += 1
    told = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
    print(f"{seed - first:,} documents, seeds {first} to {seed - 1}: {told}")
    print(f"The slowest took {slowest[0]:.1f} s: seed {slowest[1]}")
    return 1 if counts["crashed"] else 0


def _came_of(kind, seed, *, in_full):
    data = mutated(kind.sound(), seed)
    try:
        found = kind.read(data, "x.json")
        repr(found)
        # Its charts are drawn where it is shown in full.
        Shown._repr_html_(found)
        if in_full or seed // len(KINDS) % _IN_FULL == 0:
            kind.show(data)
            return "shown in full"
    except BadFileError as error:
        return "refused" if str(error).isprintable() else "crashed"
    # Whatever it is, it is what is looked for.
    except Exception:
        return "crashed"
    return "shown"


def traceback_of(kind, seed):
    """What a document does, once more, as a traceback."""
    try:
        kind.show(mutated(kind.sound(), seed))
    # The same again.
    except Exception:
        return traceback.format_exc(limit=-6)
    return "Its sentence holds what cannot be printed."


def _asked():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of the first document")
    parser.add_argument("--documents", type=int, default=10**9, help="at most")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
