"""A profile as a file: one JSON document, whole or as it was before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.findings import store
from perfkit.findings.profile import Profile
from perfkit.findings.reading import parsed_as, written
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST, _MOST_PARTS = 1000, 50
_LISTS = ("traced_s", "untraced_s", "steps", "table", "stages", "launched", "held")


def to_json(profile: Profile) -> str:
    """Write a profile as JSON."""
    return written(profile).decode()


def save(profile: Profile, path: str | Path) -> Path:
    """Write a profile to a file.

    The file is there in full or, whatever happens, as it was before.

    Raises:
        PerfkitError: It cannot be written there. The profile itself is untouched.
    """
    path = Path(os.path.expanduser(path))
    store.write_as(path, to_json(profile).encode(), profile.kind)
    return path


def load(path: str | Path) -> Profile:
    """Read a profile from its file.

    Raises:
        BadFileError: There is no such file, or it is not a profile that this perfkit
            can read.
    """
    path = Path(os.path.expanduser(path))
    return parsed(store.whole_file(path), plain(path.name))


def parsed(data: bytes, name: str) -> Profile:
    """Read a profile from the bytes of a file.

    Args:
        data: All of it.
        name: What errors call it.

    Raises:
        BadFileError: It is anything but a profile; the sentence says what.
    """
    return parsed_as(Profile, data, name, _faults)


def _faults(profile: Profile) -> Iterator[str]:
    """What no profiler can have seen, although each value is of the right type."""
    for field in _LISTS:
        if len(getattr(profile, field)) > _MOST:
            yield f"it has more than {_MOST} entries in {field}"
    if not profile.traced_s or not profile.untraced_s:
        yield "it has no times"
    if min((*profile.traced_s, *profile.untraced_s), default=1.0) <= 0:
        yield "a time is not above 0"
    if any(len(step.parts) > _MOST_PARTS for step in profile.steps):
        yield f"a step has more than {_MOST_PARTS} parts"
    seconds = [*(step.seconds for step in profile.steps)]
    seconds += [spent for step in profile.steps for spent in step.parts.values()]
    seconds += [op.self_s for op in profile.table]
    seconds += [stage.self_s for stage in profile.stages]
    seconds += [kernel.total_s for kernel in profile.launched]
    if min(seconds, default=0.0) < 0:
        yield "a time is below 0"
