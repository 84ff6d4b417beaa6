"""Computers that nothing is wrong with, as records: tests plant faults in them."""

from dataclasses import replace

import pytest

from perfkit.machine import record
from perfkit.machine.record import (
    Clocks,
    Driver,
    Gpu,
    Link,
    Machine,
    Proof,
    Said,
    Start,
)

GB = 10**9
HELD = ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90")
NO_DRIVER = Said(
    line="Could not find cuda drivers on your machine, GPU will not be used.",
    meaning="No NVIDIA driver was found.",
    weight="fatal",
)


def proved(*devices):
    return tuple(
        Proof(
            device=device,
            computation=computation,
            ran_on=device,
            error=1e-7,
            allowed=1e-3,
        )
        for device in devices
        for computation in ("convolution", "matrix product")
    )


def started(*gpus, said=()):
    devices = ("CPU:0", *gpus)
    return Start(seconds=6.0, said=said, devices=devices, proofs=proved(*devices))


def card(name="NVIDIA RTX A4000", **facts):
    """A card that is well, at rest: its link has slowed down to save power."""
    ordinary = {
        "memory": 16 * GB,
        "driver": "570.133.20",
        "compute_capability": "8.6",
        "memory_used": GB // 2,
        "busy": 0.0,
        "link": Link(generation=1, width=16, generation_max=4, width_max=16),
        "clocks": Clocks(sm_max=2100e6, throttle=()),
        "holders": (),
    }
    return Gpu(name=name, **ordinary | facts)


def looked_at(gpu, generation=4, width=16, throttle=()):
    """The same card, after it was watched while it worked."""
    link = replace(gpu.link, busy_generation=generation, busy_width=width)
    return replace(gpu, link=link, clocks=replace(gpu.clocks, busy_throttle=throttle))


def workstation(*gpus, **facts):
    """Linux on the metal with a card, TensorFlow's GPU build and its libraries."""
    gpus = gpus or (looked_at(card()),)
    names = [f"GPU:{index}" for index in range(len(gpus))]
    ordinary = {
        "cpu": "AMD Ryzen 9 7900",
        "cores": 24,
        "cores_granted": 24.0,
        "memory": 64 * GB,
        "memory_present": 64 * GB,
        "system": "Linux 6.8",
        "python": "3.12.3",
        "versions": {
            "tensorflow": "2.21.0",
            "keras": "3.15.1",
            "nvidia-cuda-runtime-cu12": "12.5.82",
            "nvidia-cudnn-cu12": "9.3.0.75",
        },
        "gpus": gpus,
        "nvidia_cards": len(gpus),
        "driver": Driver(version="570.133.20", cuda="12.8"),
        "processor": record.Processor(
            instructions=("avx2", "avx512_vnni", "fma"),
            frequency_max=5.4e9,
            governor="powersave",
            frequency_driver="amd-pstate-epp",
            preference="balance_performance",
        ),
        "load": record.Load(others=0.7, memory_free=48 * GB),
        "software": record.Software(
            platform="linux",
            build="cuda",
            packages=("tensorflow",),
            cuda="12.5.1",
            capabilities=HELD,
        ),
        "disk": record.Disk(filesystem="ext4"),
        "start": started(*names),
    }
    return Machine(**ordinary | facts)


def without_card(**facts):
    """The same without a card: no driver, and no libraries for one."""
    machine = workstation(
        versions={"tensorflow": "2.21.0", "keras": "3.15.1"},
        driver=None,
        no_gpu="No NVIDIA driver is installed.",
        start=started(said=(NO_DRIVER,)),
    )
    return changed(replace(machine, gpus=(), nvidia_cards=0), **facts)


def changed(machine, **facts):
    """The machine with other facts; a part's facts are given as a dictionary."""
    for name, value in facts.items():
        old = getattr(machine, name)
        if isinstance(value, dict) and not isinstance(old, dict):
            value = replace(old, **value)
        elif isinstance(value, dict):
            value = old | value
        machine = replace(machine, **{name: value})
    return machine


def with_card(machine, **facts):
    """The machine with its first card changed in the same way."""
    return replace(machine, gpus=(changed(machine.gpus[0], **facts), *machine.gpus[1:]))


def says(rule, machine, expected, *pieces):
    """Hold what a rule says against ``"id:status ..."`` and pieces of its words.

    The words are title, evidence, why and remedy, with ``" | "`` around each; a piece
    that begins with ``"~"`` must not be among them.
    """
    found = list(rule(machine))
    assert " ".join(f"{check.id}:{check.status}" for check in found) == expected
    fields = [(c.title, c.evidence, c.why, c.remedy) for c in found]
    text = "".join(f" | {field} | " for each in fields for field in each)
    for piece in pieces:
        assert (piece.removeprefix("~") in text) != piece.startswith("~"), text


def by_rule(told):
    """A test of rules by their cases, ``(machine, expected, *pieces)`` as ``says``."""
    cases = [
        pytest.param(rule, case, id=f"{rule.__name__} {case[1]}".strip())
        for rule, cases in told.items()
        for case in cases
    ]

    @pytest.mark.parametrize(("rule", "case"), cases)
    def test_a_rule(rule, case):
        says(rule, *case)

    return test_a_rule
