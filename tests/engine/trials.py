"""Trials heard to their end, and programs that start some, with all that they start."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil

from perfkit.engine.launcher import launcher

ROOT = Path(__file__).parents[2]
# TensorFlow takes seconds to load, and most of what starts here needs none.
WITHOUT = ROOT / "tests" / "guilty" / "without_tensorflow"
PATH = ("PYTHONPATH", f"{WITHOUT}{os.pathsep}{ROOT}")
# Where there is also the experiment of the tests.
ON_HOSTS = WITHOUT.parent / "on_hosts"
_MINE = {"PERFKIT_TEST_FAMILY": str(os.getpid())}
# How programs of the tests begin. No __main__ guard: a script without one works too.
_BEGIN = """
import os, signal, sys, tempfile, time
from perfkit.errors import RunError
from perfkit.engine.host import Environment, Host, Place
from perfkit.engine.launcher import Launcher, launcher
from perfkit.engine.trial import Limits
from tests.engine import trials, workloads

def wait(by=launcher()):
    return trials.ready(by)

def tries(call, *given):
    try:
        return call(*given)
    except RunError as error:
        print(error)
"""


def ready(by):
    """What starts trials, once it does so at once."""
    while not by.wait(1):
        pass
    return by


def launched():
    """The launcher, once it starts trials at once in the environment of now."""
    launcher().load_with({})
    return ready(launcher())


def to_the_end(running):
    messages = []
    while running.outcome is None:
        messages += running.poll(0.1)
    return messages


def ticks_of(messages):
    return [tick for m in messages if m[0] == "ticks" for tick in m[1]]


def notes_of(running):
    return {m[1]: m[2] for m in to_the_end(running) if m[0] == "note"}


def until_ticks(running, wanted=1):
    """All that a trial tells until it has ticked so often."""
    messages = []
    while len(ticks_of(messages)) < wanted:
        assert running.outcome is None, running.message
        messages += running.poll(0.1)
    return messages


def are_gone(processes, seconds=10):
    """Whether none of them runs after so long at most."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def program(code, *arguments, begins=subprocess.run, **variables):
    """Run lines as a program; whatever it starts belongs to ``family``."""
    variables = os.environ | {PATH[0]: str(WITHOUT)} | _MINE | variables
    command = [sys.executable, "-c", _BEGIN + textwrap.dedent(code), *arguments]
    out = {"capture_output": True} if begins is subprocess.run else {"stdout": -1}
    return begins(
        command, env=variables, cwd=ROOT, text=True, start_new_session=True, **out
    )


def family(parent=0):
    """The processes that programs of the tests have started, and what those have."""
    return [p for p in psutil.process_iter() if p.pid != parent and _is_family(p)]


def _is_family(process):
    try:
        return _MINE.items() <= process.environ().items()
    except psutil.Error:
        return False
