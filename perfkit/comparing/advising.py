"""What to do on the slower machine: what its checks advise, where that can matter.

The checks are made here from the machine's record, so that no file can put words or
commands of its own into them. Each is held against the parts of a step that make the
difference; what both machines have explains none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.comparing.record import LOAD, THROTTLING, Advice
from perfkit.findings.text import plain
from perfkit.machine.checks import checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.comparing.record import Explained
    from perfkit.comparing.works import Held

_PROCESSOR = ("input", "dispatch", "compute")
_GPU = ("compute", "transfer")
# By a check's id, the parts of a step that it bears on.
_BEARS = {
    **dict.fromkeys(("few-cores", "few-threads"), ("input", "compute")),
    **dict.fromkeys(("busy-cores", "stolen-time"), (LOAD, *_PROCESSOR)),
    **dict.fromkeys(
        ("governor", "limited-frequency", "saving-power", "battery"),
        (THROTTLING, *_PROCESSOR),
    ),
    **dict.fromkeys(("swapping", "little-memory"), ("input", "compute")),
    **dict.fromkeys(("slow-disk", "windows-drive"), ("input",)),
    **dict.fromkeys(("throttled", "power-limit"), (THROTTLING, "compute")),
    "slow-link": ("transfer",),
    **dict.fromkeys(("shared-gpu", "mig", "small-gpu"), _GPU),
    **dict.fromkeys(
        (
            *("no-driver", "driver-not-loaded", "wsl-1", "driver-too-old"),
            *("lost-card", "no-libcuda", "missing-library", "wrong-cudnn"),
            *("cpu-only-build", "native-windows", "hidden-gpu", "no-computing"),
            *("no-kernels", "unseen-gpu", "exclusive-gpu", "shadowed-libraries"),
        ),
        ("compute",),
    ),
    "launch-blocking": ("dispatch", "compute"),
    **dict.fromkeys(
        (
            *("onednn-off", "no-tf32", "no-autotune", "deterministic-cudnn"),
            *("forced-compiling", "unified-memory", "xla-passes-off", "no-xla"),
        ),
        ("compute",),
    ),
    "deterministic": ("input", "compute"),
    "xla-dump": ("compute",),
}


def advice(a: Held, b: Held, works: Iterable[Explained]) -> tuple[Advice, ...]:
    """The remedies that bear on what makes the difference, most seconds first."""
    found = dict[str, Advice]()
    for work in works:
        for one in _of(work, a, b):
            known = found.get(one.title)
            if known is None or known.seconds < one.seconds:
                found[one.title] = one
    return tuple(sorted(found.values(), key=lambda one: -one.seconds))


def _of(work: Explained, a: Held, b: Held) -> Iterator[Advice]:
    if not work.claimed:
        return
    slow, fast = (b, a) if work.slower == "B" else (a, b)
    there = {(check.id, check.title) for check in checks(fast.machine)}
    for check in checks(slow.machine):
        wrong = check.status in ("fail", "warn") and check.remedy
        bears = _BEARS.get(check.id, ())
        seconds = sum(abs(c.change or 0.0) for c in work.causes if c.name in bears)
        if wrong and seconds and (check.id, check.title) not in there:
            yield Advice(
                title=plain(check.title),
                remedy=plain(check.remedy, 600),
                seconds=seconds,
                of=work.name,
            )
