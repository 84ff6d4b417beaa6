"""Findings as strangers might send them: any part of a sound one replaced by junk."""

import contextlib
import json
from functools import cache

from hypothesis import strategies as st

from perfkit.findings.store import to_json
from tests.findings.made import failed, finding, trial

_PLAN = {
    "stages": [
        {"name": "list in memory", "share": 0.1, "ns_per_element": 900},
        {"name": "map", "share": 0.9, "parallelism": 2, "buffer": None, "tuned": True},
    ]
}


@cache
def sound():
    """A sound finding, as the bytes of its file."""
    gone = failed("cached", "out-of-memory", "ran out of memory")
    extra = gone, trial("parallel", 1300, 3, notes={"plan": _PLAN})
    told = {"guess": "3x", "unavailable": {"gpu": "none here"}}
    return to_json(finding(rounds=2, extra=extra, **told)).encode()


def document(**changes):
    """The same as a document, with some of its keys changed."""
    return json.loads(sound()) | changes


def places(node, path=()):
    """The way to every value of a document."""
    yield path
    children = dict(enumerate(node)) if isinstance(node, list) else node
    for key, child in children.items() if isinstance(children, dict) else ():
        yield from places(child, (*path, key))


def put(document, path, value):
    """Replace one value of a document."""
    get(document, path[:-1])[path[-1]] = value


_PLACES = [path for path in places(document()) if path]
# Ticks and samples are many and alike: they would leave no room for the others.
_MANY = [p for p in _PLACES if p[0] == "samples" or {*p[2:3]} & {"ticks", "parts"}]
_FEW = [path for path in _PLACES if path not in set(_MANY)]
_TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["naive", "parallel", "control (A/A)", "2x", "\x00\x1b[2J"]),
    st.sampled_from(
        ["<script>", "$\\frac$", "--> ]]>", "\u202eevil", "too noisy to say"]
    ),
)
_INTEGERS = st.one_of(st.integers(0, 1000), st.sampled_from([10**15, 10**29]))
_NUMBERS = st.one_of(
    st.floats(0, 1e6), st.sampled_from([0.0, 1e-300, 1e-9, 1.0, 1e29]), st.floats()
)
_JUNK = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    st.lists(st.floats(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=3),
)
_WHERE = st.one_of(st.sampled_from(_FEW), st.sampled_from(_MANY))


@st.composite
def spoiled(draw, alike=False):
    """A finding's bytes in which some values are junk, ``alike`` of the same types."""
    made = document()
    for path in draw(st.lists(_WHERE, min_size=1, max_size=4)):
        # An earlier change may have taken away what this one goes through.
        with contextlib.suppress(KeyError, IndexError, TypeError):
            junk = _like(get(made, path)) if alike else _JUNK
            put(made, path, draw(junk))
    return json.dumps(made).encode()


def get(document, path):
    """One value of a document."""
    for key in path:
        document = document[key]
    return document


def _like(value):
    """Junk of the type of a value."""
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, list):
        return st.sampled_from([[], value[:1], value + value, value[::-1]])
    if isinstance(value, dict):
        return st.sampled_from([{}, dict(list(value.items())[:1]), value])
    kinds = {str: _TEXTS, int: _INTEGERS, float: _NUMBERS}
    return kinds.get(type(value), st.none())
