import os
import subprocess
import sys

import psutil
import pytest

from perfkit.machine import starting


def python(code, limit=60):
    return starting.watched([sys.executable, "-S", "-c", code], os.environ, limit)


def wait_until_gone(pid):
    """Come back once this process runs no more, or when the test's time is over."""
    while psutil.pid_exists(pid):
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return


def test_both_streams_and_the_code_are_kept():
    ended = python(
        "import sys; print('out'); print('log', file=sys.stderr); sys.exit(3)"
    )
    assert (ended.told, ended.log, ended.code) == ("out\n", "log\n", 3)
    assert not ended.late
    # Of a flood both ends are kept and no more.
    code = "import sys; print('first', 'x' * 10**7, 'last', sep='\\n', file=sys.stderr)"
    log = python(code).log
    assert log.startswith("first\n")
    assert log.endswith("last\n")
    assert len(log) < 2 * 10**6


def test_what_it_started_ends_with_it():
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-S', '-c',"
        "'import threading; threading.Event().wait()']); print(p.pid)"
    )
    wait_until_gone(int(python(code).told))


def test_an_interrupt_ends_it_and_goes_on(monkeypatch):
    begun = []

    class Interrupted(subprocess.Popen):
        def wait(self, timeout=None):
            begun.append(self)
            if timeout == 60:
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        python("import threading; threading.Event().wait()")
    assert begun[0].returncode < 0
