"""A trial with a load beside it, for tests of what ends with it."""

import threading

from perfkit.experiments.contention import loads
from perfkit.measure.tick import READY, Note


def beside_burners():
    """Wait between its steps while two processes burn."""
    with loads.at_work(loads.LOADS[loads.CPU], 2) as working:
        yield Note("pids", [each.pid for each in working])
        yield READY
        while True:
            threading.Event().wait(0.02)
            loads.check(working)
            yield 1
