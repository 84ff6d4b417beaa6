"""Examinations made by hand."""

from dataclasses import replace

from perfkit.doctor.examination import Examination
from perfkit.machine import record
from perfkit.machine.checks.base import Check, fine
from perfkit.machine.record import Driver, Gpu, Link, Machine, Proof, Said
from tests.findings.made import MACHINE

BARE = replace(
    MACHINE, versions={}, environment={}, no_gpu="No NVIDIA driver is installed."
)
CARD = Gpu(
    name="NVIDIA RTX 4090",
    memory=24 * 10**9,
    compute_capability="8.9",
    link=Link(generation_max=4, width_max=16),
)
RIGHT = {"ran_on": "GPU:0", "error": 1e-6, "allowed": 1e-3}
FULL = Machine(
    cpu="AMD Ryzen 9",
    cores=16,
    cores_granted=16.0,
    memory=60 * 10**9,
    memory_present=64 * 10**9,
    system="Linux 6.8",
    python="3.12.1",
    versions={
        "tensorflow": "2.21.0",
        "keras": "3.15.1",
        "nvidia-cuda-runtime-cu12": "12.9.79",
        "nvidia-cudnn-cu12": "9.10.2.21",
    },
    gpus=(CARD,),
    driver=Driver(version="570.133.20", cuda="12.8"),
    processor=record.Processor(instructions=("avx2", "fma"), governor="powersave"),
    load=record.Load(others=1.25, memory_free=50 * 10**9, on_battery=True),
    software=record.Software(platform="linux", build="cuda", cuda="12.5.1", cudnn="9"),
    disk=record.Disk(filesystem="ext4"),
    start=record.Start(
        seconds=4.2,
        said=(
            Said(line="oneDNN is on", meaning="It is.", weight="harmless"),
            Said(line="ptxas too old", meaning="XLA is slower.", weight="matters"),
            Said(line="the moon is full", meaning="", weight="unexplained"),
        ),
        devices=("CPU:0", "GPU:0"),
        proofs=(
            Proof(device="GPU:0", computation="convolution", **RIGHT),
            Proof(device="GPU:0", computation="matrix product", **RIGHT),
        ),
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
