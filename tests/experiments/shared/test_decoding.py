import itertools
import mmap
import subprocess
import sys

import pytest

from perfkit.experiments.shared import benchmark, decoding
from perfkit.measure.tick import READY

# In a process of its own: TensorFlow's threads in this one must not meet a fork.
SCRIPT = """
import itertools
from dataclasses import dataclass
import psutil
from perfkit.measure.tick import READY, Tick
from perfkit.experiments.shared import decoding

@dataclass
class Images:
    paths: tuple

def decoder():
    {decoder}

limit = decoding.limit(Images(({path!r},) * 3), decoder)
assert next(limit) is READY
children = psutil.Process().children()
ticks = list(itertools.islice(limit, 3))
limit.close()
left = psutil.Process().children()
print(len(children), min(tick.examples for tick in ticks) > 0, len(left))
"""


def run(tmp_path, decoder):
    path = tmp_path / "image"
    path.write_bytes(b"12345")
    script = SCRIPT.format(path=str(path), decoder=decoder)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )


@pytest.mark.skipif(sys.platform != "linux", reason="threads elsewhere")
def test_every_core_decodes_and_no_process_is_left(tmp_path):
    done = run(tmp_path, "return lambda file: bytes(reversed(file))")
    assert done.stdout.split() == [str(benchmark.granted()), "True", "0"], done.stderr


@pytest.mark.parametrize("decoder", ["return lambda file: 1 / 0", "return 1 / 0"])
def test_a_process_that_ends_early_is_said(tmp_path, decoder):
    done = run(tmp_path, decoder)
    assert "One of the processes that decode ended before its time." in done.stderr


def test_threads_do_the_same_where_there_is_no_fork(images, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    limit = decoding.limit(images)
    taken = list(itertools.islice(limit, 4))
    limit.close()
    assert taken[0] is READY
    assert all(tick.examples > 0 for tick in taken[1:])


def test_a_count_that_is_being_written_does_not_go_back():
    counts = mmap.mmap(-1, 16)
    counts[0:1] = b"\x07"
    assert decoding._read(counts, [5, 9]) == [7, 9]
