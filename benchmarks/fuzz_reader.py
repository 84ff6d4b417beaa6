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
import json
import random
import sys
import time
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from perfkit.errors import BadFileError  # noqa: E402
from perfkit.findings.shown import Shown  # noqa: E402
from tests.findings.spoiled import get, places, put  # noqa: E402
from tests.hostile.kinds import KINDS  # noqa: E402
from tests.hostile.mutations import bitten  # noqa: E402
from tests.hostile.texts import ATTACKS  # noqa: E402

# Charts and pages take a hundred times as long as reading.
_IN_FULL = 10
_PRINTED = 10
_NUMBERS = (0, -1, 1, -0.0, 0.5, 1e-308, 1e-9, 1e9, 1e29, -1e29, 2**31, 2**63, 10**29)
_JUNK = (None, True, False, [], {}, [[]], [None], {"": ""}, "", *_NUMBERS)


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


# Documents changed by their structure, too.


def mutated(sound, seed):
    """The bytes of a document that differs from a sound one in a few places."""
    draw = random.Random(seed)
    data = sound
    if draw.random() < 0.8:
        data = _in_structure(data, draw)
    if data is sound or draw.random() < 0.2:
        data = bitten(data, draw)
    return data


def _in_structure(data, draw):
    document = json.loads(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        # Where the way ends says as much as what lies there: short ways come as often.
        ways = [path for path in places(document) if path]
        depth = draw.randint(1, max(map(len, ways)))
        path = draw.choice([path for path in ways if len(path) <= depth])
        draw.choice(_CHANGES)(document, path, draw)
    return json.dumps(document, allow_nan=True).encode()


def _replace(document, path, draw):
    put(document, path, _like(get(document, path), draw))


def _spoil(document, path, draw):
    put(document, path, draw.choice((*_JUNK, *ATTACKS.values())))


def _remove(document, path, _):
    del get(document, path[:-1])[path[-1]]


def _graft(document, path, draw):
    """Put another part of the document here."""
    other = draw.choice([way for way in places(document) if way])
    copy = json.loads(json.dumps(get(document, other)))
    put(document, path, copy)


def _rename(document, path, draw):
    parent = get(document, path[:-1])
    if isinstance(parent, dict):
        parent[draw.choice(list(ATTACKS.values()))] = parent.pop(path[-1])


def _repeat(document, path, draw):
    parent = get(document, path[:-1])
    if isinstance(parent, list):
        parent[path[-1] : path[-1]] = [parent[path[-1]]] * draw.choice((1, 2, 20, 300))


def _reverse(document, path, _):
    value = get(document, path)
    if isinstance(value, list):
        value.reverse()


def _empty(document, path, _):
    value = get(document, path)
    if isinstance(value, list | dict):
        value.clear()


# What is believed reaches further than what is refused.
_CHANGES = (*(_replace,) * 5, _spoil, _remove, _graft, _rename, _repeat, _reverse)
_CHANGES += (_empty,)


def _like(value, draw):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return draw.choice(list(ATTACKS.values()))
    if isinstance(value, int):
        return draw.choice((0, 1, -1, 2, 10**6, 2**63, 10**29, draw.randint(-99, 99)))
    if isinstance(value, float):
        scale = draw.choice((0.0, -1.0, 1e-300, 1e-9, 0.99, 1e3, 1e12, 1e28))
        return draw.choice((scale, value * scale))
    if isinstance(value, list):
        return [value[:1], value[::2], value[::-1], value * 3][draw.randrange(4)]
    return value


if __name__ == "__main__":
    sys.exit(main())
