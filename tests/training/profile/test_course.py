"""Which steps are timed and which are traced, told by a clock that is scripted."""

import contextlib

import pytest

from perfkit.training.profile.course import Course
from tests.engine.scripted import Seconds


class Scripted(Seconds):
    """A clock, a profiler and a device that note what is asked of them, in order."""

    def __init__(self, step, traced=None):
        self.step, self.traced = step, traced or step
        self.heard, self.recording = [], False

    def sync(self):
        self.heard.append("sync")

    def start(self):
        self.recording = True
        self.heard.append("start")

    def stop(self):
        self.recording = False
        self.heard.append("stop")

    @contextlib.contextmanager
    def mark(self, number):
        yield self.heard.append(f"begin {number}")
        self.heard.append(f"end {number}")

    def run(self, course, most=10_000):
        while not course.over and course.made < most:
            course.begin()
            self.now += self.traced if self.recording else self.step
            course.end()
            # What lies between two steps is no part of them.
            self.now += 100.0


def followed(steps, script, most=10_000):
    course = Course(steps, script, script.sync, script)
    script.run(course, most)
    return course


def test_steps_are_timed_before_and_after_those_that_are_traced_and_marked():
    script = Scripted(0.01, traced=0.03)
    course = followed(3, script)
    assert course.traced == pytest.approx([0.03] * 3)
    assert course.untraced == pytest.approx([0.01] * 20)
    within = script.heard[script.heard.index("start") + 1 : script.heard.index("stop")]
    assert within == [
        *("begin 0", "end 0", "begin 1", "end 1", "begin 2", "end 2", "sync")
    ]
    assert not [what for what in script.heard if what.startswith("begin")][3:]
    # The device is done before a time is taken: twice at the end of the warm-up, then
    # once for each block.
    assert script.heard.count("sync") == 2 + 10 + 1 + 10


def test_what_was_traced_is_kept_although_the_data_end_then():
    script = Scripted(1.0)
    # Three and two to warm up, two blocks of one, and the trace of one.
    course = followed(1, script, most=3 + 2 + 2 + 1)
    assert course.traced == [1.0]
    assert course.untraced == [1.0, 1.0]
