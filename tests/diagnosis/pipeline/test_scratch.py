import os
import subprocess
import sys
from pathlib import Path

import psutil

MAKE = """
import sys
from perfkit.diagnosis.pipeline.files import scratch
print(scratch(), flush=True)
sys.stdin.read()
"""


def test_a_folder_is_there_while_its_process_is_and_gone_when_that_is_killed():
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    folder = Path(process.stdout.readline().strip())
    assert folder.is_dir()
    (waiting,) = psutil.Process(process.pid).children()
    process.kill()
    process.communicate()
    psutil.wait_procs([waiting], timeout=30)
    assert not os.path.exists(folder)
