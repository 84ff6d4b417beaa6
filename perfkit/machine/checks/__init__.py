"""What in this machine slows training? One small rule for each thing that may.

A rule is a function of the record alone. It yields a check for every statement that it
has, and none where it does not apply: no battery, no word about it.
"""

from collections.abc import Callable, Iterator

from perfkit.machine.checks import hardware, software
from perfkit.machine.checks.base import Check
from perfkit.machine.record import Machine

Rule = Callable[[Machine], Iterator[Check]]

# From what keeps a GPU away to what costs a little.
RULES: tuple[Rule, ...] = (
    *software.DRIVER,
    software.build,
    software.unseen_libraries,
    software.old_cudnn,
    hardware.hidden,
    hardware.kernels,
    *software.START,
    *hardware.GPU_SPEED,
    *hardware.PROCESSOR,
    software.late,
)
# What cannot be so where a GPU was seen to compute: a newer part came from elsewhere.
_REFUTED = ("driver-too-old", "wrong-cudnn")


def checks(machine: Machine) -> tuple[Check, ...]:
    """What can be said of this machine: what costs most first, what is well last."""
    results = [check for rule in RULES for check in rule(machine)]
    proofs = machine.start.proofs if machine.start else ()
    on_gpu = [proof for proof in proofs if proof.device.startswith("GPU")]
    if on_gpu and all(p.ran_on == p.device and not p.problem for p in on_gpu):
        results = [check for check in results if check.id not in _REFUTED]
    results.sort(key=lambda check: (check.status == "ok", -check.cost))
    if results[0].status == "fail" and results[0].id != software.UNSEEN:
        # That TensorFlow finds no GPU is no news once the cause has been named.
        results = [check for check in results if check.id != software.UNSEEN]
    return tuple(results)
