"""Examinations made by hand."""

from dataclasses import replace

from perfkit.machine.checks.base import Check, fine
from perfkit.machine.record import Load, Said, Start
from perfkit.machines.examination import Examination
from tests.findings.made import MACHINE
from tests.machine.checks.computers import GB, card, proved, workstation

BARE = replace(
    MACHINE, versions={}, environment={}, no_gpu="No NVIDIA driver is installed."
)
CARD = card("NVIDIA RTX 4090", memory=24 * GB, compute_capability="8.9")
FULL = workstation(
    CARD,
    memory=60 * GB,
    load=Load(others=1.25, memory_free=50 * GB, on_battery=True),
    start=Start(
        seconds=4.2,
        said=(Said(line="ptxas too old", meaning="XLA is slower.", weight="matters"),),
        devices=("CPU:0", "GPU:0"),
        proofs=proved("GPU:0"),
    ),
)
SLOW = Check(
    id="saving-power",
    status="warn",
    title="The cores save power",
    evidence="The governor is powersave.",
    why="Cores run at a lower frequency.",
    remedy="sudo cpupower frequency-set -g performance",
    cost=0.3,
)
WRONG = Check(
    id="wrong-result",
    status="fail",
    title="GPU:0 computes wrongly",
    evidence="The matrix product on GPU:0 is off by 1 of its largest value.",
    cost=0.9,
)
HIDDEN = Check(
    id="link",
    status="unknown",
    title="How the GPU is connected",
    evidence="Not Supported.",
)


def examination(*checks, machine=FULL, **more):
    return Examination(machine=machine, checks=checks, **more)


WELL = fine("cores", "All cores may be used", "This process may use 16 of 16 cores.")
