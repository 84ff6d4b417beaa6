"""The time of day may jump: it is a date, or how old a file is, and never a rate."""

import ast
import re

import pytest

from tests.test_house import PACKAGE

OF_DAY = {"time.time", "time.time_ns", "datetime.now", "datetime.today", "date.today"}
# Who asks it, and what for.
DATES = {
    "questions/session.py": "when a finding or a diagnosis was recorded",
    "training/account/collect.py": "the profiler writes the time of day into its file",
    "training/account/sampler.py": "a sample is held against the profiler's events",
    "training/account/session.py": "when an account was recorded",
    "questions/shared/cache.py": "whether what a killed run left is a day old",
    "findings/store.py": "the name of a file whose finding has no date",
    "machines/fleet.py": "the name of a fleet's folder",
    "machines/recording.py": "when a passport was recorded",
    "training/profile/profile.py": "when a profile was recorded",
}


def asks(path):
    """Whether a module asks the time of day."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"\b(time|time_ns|now|today)\(", text):
        return False  # To parse all of them takes seconds.
    tree = ast.parse(text)
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = {".".join(ast.unparse(call).split(".")[-2:]) for call in calls}
    return not names.isdisjoint(OF_DAY)


@pytest.mark.fault("trial", "clock jump", sees="Rates use a clock that never jumps.")
def test_the_time_of_day_is_asked_for_dates_alone():
    found = [path for path in PACKAGE.rglob("*.py") if asks(path)]
    assert {str(path.relative_to(PACKAGE)) for path in found} == set(DATES)
