"""A finding as strangers might send it, and the way to each of its values."""

import json
from functools import cache

from perfkit.findings.store import to_json
from tests.findings.made import failed, finding, trial


@cache
def sound():
    """A sound finding, as the bytes of its file."""
    gone = failed("cached", "out-of-memory", "ran out of memory")
    extra = gone, trial("parallel", 1300, 3, notes={"losses": [[32, 2.0], [64, 1.5]]})
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


def get(document, path):
    """One value of a document."""
    for key in path:
        document = document[key]
    return document
