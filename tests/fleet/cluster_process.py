"""A scheduler and its workers as processes, two workers on each of three addresses.

Prints the scheduler's process and its address, then of each worker its process and its
name, and runs until its input ends. Each address has a folder of its own for temporary
files, and so, as for machines, a lock of its own for measuring.
"""

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

import dask
from distributed import Scheduler, Worker

HOSTS = [f"127.0.0.{number}" for number in range(1, 4)]


async def work(scheduler, host, name):
    async with Worker(
        scheduler, host=host, name=name, nthreads=1, dashboard=False
    ) as worker:
        await worker.finished()


async def schedule(out):
    async with Scheduler(host=HOSTS[0], port=0, dashboard=False) as scheduler:
        os.write(out, f"{scheduler.address}\n".encode())
        await scheduler.finished()


def forked(function):
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        function()
        os._exit(0)
    return pid


def main(folder):
    dask.config.set({"distributed.worker.use-file-locking": False})
    read, out = os.pipe()
    pids = [forked(lambda: asyncio.run(schedule(out)))]
    address = os.read(read, 200).decode().strip()
    print(pids[0], address, flush=True)
    for host in HOSTS:
        os.environ["TMPDIR"] = str(Path(folder) / host)
        os.makedirs(os.environ["TMPDIR"])
        tempfile.tempdir = None
        for name in (f"{host}-{letter}" for letter in "ab"):
            pid = forked(lambda h=host, n=name: asyncio.run(work(address, h, n)))
            print(pid, name, flush=True)
            pids.append(pid)
    sys.stdin.read()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
