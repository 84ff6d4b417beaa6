"""Files that are no document at all, or none of the kind that is asked for.

Each is made from a sound document when it is asked for: some are large.
"""

import json
from functools import partial

from perfkit.findings.reading import LARGEST_BYTES

_DEEP = 100_000


def broken(sound):
    """What cannot be read: by what is wrong with it, a function that makes it."""
    return {name: partial(make, sound) for name, make in (_BYTES | _DOCUMENTS).items()}


def _with(sound, value):
    """One more value, before all others."""
    return sound.replace(b"{", b'{"x": ' + value + b", ", 1)


def is_large(case):
    """Whether a file is so large that one reader of it is enough."""
    return "million" in case or "larger" in case


def write_small(folder, sound):
    """Write into a folder what is no document and of no great size."""
    for number, (case, make) in enumerate(broken(sound).items()):
        if not is_large(case):
            (folder / f"broken-{number}.json").write_bytes(make())


_BYTES = {
    "empty": lambda _: b"",
    "zero bytes": lambda _: b"\x00" * 4096,
    "cut off early": lambda s: s[: len(s) // 10],
    "cut off half way": lambda s: s[: len(s) // 2],
    "a hole in the middle": lambda s: s[:200] + b"\x00" * 512 + s[712:],
    "UTF-16": lambda s: s.decode().encode("utf-16"),
    "byte order mark": lambda s: b"\xef\xbb\xbf" + s,
    "half a character": lambda s: s.replace(b'"kind"', b'"\xe2\x82": 1, "kind"', 1),
    "lone surrogate": lambda s: s.replace(b'"kind"', b'"\\ud800": 1, "kind"', 1),
    "picture": lambda _: b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "pickle": lambda _: b"\x80\x04\x95\x1d\x00cposix\nsystem\n(S'echo x'\ntR.",
    "two documents": lambda s: s + s,
    "something behind it": lambda s: s + b"\nrm -rf ~",
    "not a number": lambda s: _with(s, b"NaN"),
    "number beyond floats": lambda s: _with(s, b"1e999"),
    "number of 9,000 digits": lambda s: _with(s, b"9" * 9000),
    "deep lists that end": lambda _: b"[" * _DEEP + b"]" * _DEEP,
    "deep inside": lambda s: _with(s, b"[" * _DEEP + b"]" * _DEEP),
    "ten million values": lambda s: _with(s, b"[" + b"1," * 10**7 + b"1]"),
    "text of 60 million": lambda s: _with(s, b'"' + b"x" * (60 * 10**6) + b'"'),
    "larger than any": lambda s: s + b" " * (LARGEST_BYTES + 1 - len(s)),
}


def _top(value):
    return lambda _: json.dumps(value).encode()


def _changed(**changes):
    return lambda sound: json.dumps(json.loads(sound) | changes).encode()


def _without(name):
    def make(sound):
        made = json.loads(sound)
        del made[name]
        return json.dumps(made).encode()

    return make


_DOCUMENTS = {
    "a list": _top([]),
    "a text": _top("finding"),
    "nothing": _top(None),
    "a list of itself": lambda s: b"[" + s + b"]",
    "no kind": _without("kind"),
    "another kind": _changed(kind="recipe"),
    "a kind that is a list": _changed(kind=["finding"]),
    "a kind with escapes": _changed(kind="\x1b[2Jpass\u202eport\n"),
    "a kind of 90,000": _changed(kind="x" * 90_000),
    "two kinds": lambda s: s[:-1] + b', "kind": "recipe"}',
    "no schema": _without("schema"),
    "a schema in words": _changed(schema="1"),
    "a newer schema": _changed(schema=4),
    "a schema far ahead": _changed(schema=10**18),
    "a schema below 0": _changed(schema=-1),
    "no machine": _without("machine"),
    "a machine that is a text": _changed(machine="fast"),
}
