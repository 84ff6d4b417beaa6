"""Documents changed at random: by their structure, or byte by byte.

Everything follows from the seed, so that a document that breaks something can be made
again.
"""

import json
import random

from tests.findings.spoiled import get, places, put
from tests.hostile.texts import ATTACKS

_NUMBERS = (0, -1, 1, -0.0, 0.5, 1e-308, 1e-9, 1e9, 1e29, -1e29, 2**31, 2**63, 10**29)
_JUNK = (None, True, False, [], {}, [[]], [None], {"": ""}, "", *_NUMBERS)


_BITES = [bytes([one]) for one in b'\x00"\\{}[],:\xff']
_BITES += (b"\xed\xa0", b"NaN", b"-Infinity", b"1e999", b"\\ud800", b"\xef\xbb\xbf")
_BITES.append(b"null")


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


def bitten(data, draw):
    """Bytes that were changed in a few places, by a ``random.Random``."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        at, length = draw.randrange(len(changed) + 1), draw.choice((1, 1, 2, 50, 2000))
        match draw.randrange(5):
            case 0:
                changed[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                changed[at:at] = draw.choice(_BITES)
            case 2:
                del changed[at : at + length]
            case 3:
                changed[at:at] = changed[at : at + length] * draw.choice((1, 2, 30))
            case 4:
                del changed[draw.choice((at, len(changed) - 1)) :]
    return bytes(changed)
