"""Drivers that do not exist: NVIDIA's library as a text file has it answer."""

import functools
import os
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pynvml

from perfkit.machine import nvml

HERE = Path(__file__).parent
_SUCCEED = ("nvmlInit", "nvmlShutdown", "nvmlDeviceGetHandleByIndex")
_PIDS = {"self": os.getpid(), "parent": os.getppid()}


class Library:
    """What stands in for ``pynvml``.

    Each line says what one call answers about one card, "*" standing for every card::

        nvmlInit                     *  !18           refuse with NVML's error 18
        nvmlDeviceGetCount           *  2
        nvmlDeviceGetName            0  NVIDIA H200
        nvmlDeviceGetPowerUsage      1  350000
        lost                         1  12            from its 12th reading on, error 15

    The first line that fits wins, and a call without a line is refused as not
    supported. Numbers are NVML's own; where a call picks one of several clocks, the
    answer lists them in NVML's order. Processes are "pid:bytes", with self, parent or
    a number as pid.
    """

    NVMLError = pynvml.NVMLError

    def __init__(self, text):
        lines = (line.split(maxsplit=2) for line in text.splitlines())
        self.lines = [line for line in lines if len(line) == 3]
        self.readings = Counter()

    def __getattr__(self, call):
        assert hasattr(pynvml, call), call
        return functools.partial(self.answer, call.removesuffix("_v3"))

    def line(self, call, card):
        return next((a for c, n, a in self.lines if c == call and n in (card, "*")), "")

    def answer(self, call, card="*", *place):
        reads = "DeviceGet" in call and "Handle" not in call
        self.readings[card] += reads
        lost, answer = self.line("lost", str(card)), self.line(call, str(card))
        if lost and self.readings[card] >= int(lost):
            raise self.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        if not answer and call in _SUCCEED:
            return card
        if not answer or answer.startswith("!"):
            raise self.NVMLError(int(answer[1:] or pynvml.NVML_ERROR_NOT_SUPPORTED))
        return _parse(call, answer, *place)


def _parse(call, answer, place=0):
    """An answer as ``pynvml`` gives it."""
    if call.endswith(("Name", "DriverVersion")) and "Cuda" not in call:
        return answer
    if "Processes" in call:
        pairs = (word.split(":") for word in answer.split() if ":" in word)
        return [
            SimpleNamespace(pid=_PIDS.get(pid) or int(pid), usedGpuMemory=int(memory))
            for pid, memory in pairs
        ]
    first, *rest = numbers = [int(n, 0) for n in re.split("[ .]", answer)]
    if call.endswith("MemoryInfo"):
        return SimpleNamespace(total=first, used=rest[0])
    if call.endswith("UtilizationRates"):
        return SimpleNamespace(gpu=first)
    if call.endswith(("Capability", "MigMode")):
        return numbers
    # Clocks are counted from 1.
    return numbers[max(0, place - 1)]


def library(text):
    """Lets perfkit ask this library, for as long as the context lasts."""
    return mock.patch.dict("sys.modules", pynvml=Library(text))


def describe(text):
    """Driver, GPUs and why there are none, of a machine written down so."""
    with library(text):
        return nvml.gpus()


def script(name):
    """The text of a scripted machine, its own lines before those of one like it."""
    text = (HERE / "nvml" / f"{name}.txt").read_text()
    like = re.search(r"^like (\w+)$", text, re.MULTILINE)
    return text + script(like[1]) if like else text


@functools.cache
def described():
    """Every scripted machine as perfkit describes it, by its name."""
    names = [path.stem for path in (HERE / "nvml").glob("*.txt")]
    return {name: describe(script(name)) for name in names}
