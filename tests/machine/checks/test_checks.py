"""Each fault alone is named first, among the quirks that healthy machines have."""

from dataclasses import dataclass, replace

import pytest

from perfkit.machine.checks import checks
from perfkit.machine.gpu import Driver, Holder, Power
from perfkit.machine.load import observed
from perfkit.machine.record import Machine, Processor, Said
from tests.machine.checks import collected, computers
from tests.machine.checks.computers import (
    GB,
    card,
    changed,
    libraries,
    started,
    with_card,
)

ORDER = {"fail": 0, "warn": 0, "unknown": 0, "ok": 1}
WITH, WITHOUT = computers.workstation(), computers.without_card()


def fatal(line):
    return Said(line=line, meaning="So.", weight="fatal")


def computing(place, said=(), **facts):
    """A start in which one computation ends otherwise; the third is the GPU's first."""
    start = started("GPU:0", said=said)
    proofs = list(start.proofs)
    proofs[place] = replace(proofs[place], **facts)
    return replace(start, proofs=tuple(proofs))


def broken(problem, *said):
    return computing(2, said, problem=problem, ran_on="", error=None)


OLD_DRIVER = changed(
    WITH,
    driver=Driver(version="470.256.02", cuda="11.4"),
    start=started(said=(computers.NO_DRIVER,)),
)
MISSING_LIBRARY = changed(
    WITH,
    software={"libraries": libraries("cannot open it", missing=("libcudnn.so.9",))},
    start=started(said=(fatal("Cannot dlopen some GPU libraries."),)),
)
OLD_CUDNN = changed(
    WITH,
    versions={"nvidia-cudnn-cu12": "9.1.0.70"},
    start=broken("No DNN in stream executor."),
)
TOO_NEW = Said(
    line="TensorFlow was not built with CUDA kernel binaries compatible with compute "
    "capability 12.0.",
    meaning="This GPU is newer than this TensorFlow.",
    weight="matters",
)
SHADOWED = replace(libraries()[-1], origin="search path", version="8.9")
# What no files and no driver's script can show; the rest is in ``collected``.
ILL = (
    (OLD_DRIVER, "driver-too-old", "sudo ubuntu-drivers install"),
    (MISSING_LIBRARY, "missing-library", "tensorflow[and-cuda]==2.21.0"),
    (OLD_CUDNN, "wrong-cudnn", "tensorflow[and-cuda]==2.21.0"),
    (changed(with_card(WITH, compute_capability="5.2"), start=started(said=())),
     "no-kernels", "tensorflow[and-cuda]<2.17"),
    (changed(with_card(WITH, compute_capability="12.0"),
     start=started("GPU:0", said=(TOO_NEW,))), "compiled-kernels",
     "CUDA_CACHE_MAXSIZE=4294967296"),
    (changed(with_card(WITH, compute_capability="9.0"),
     driver=Driver(version="535.183.01", cuda="12.2")), "uncompiled-kernels",
     "sudo ubuntu-drivers install"),
    (with_card(WITH, power=Power(limit=100, limit_default=200)), "power-limit",
     "sudo nvidia-smi -i 0 -pl 200"),
    # All of the memory is taken, so TensorFlow fails on the card.
    (changed(with_card(WITH, holders=(Holder(program="python", memory=15 * GB),)),
     start=broken("Out of memory.", fatal("ran out of memory"))), "shared-gpu",
     "nvidia-smi -i 0"),
    (changed(WITHOUT, disk={"cold": 24e6, "filesystem": "nfs4"}), "slow-disk", "SSD"),
    (changed(WITH, software={"platform": "wsl2"},
     disk={"cold": 90e6, "filesystem": "9p", "windows": True}), "windows-drive",
     "cp -r"),
    (changed(WITH, environment={"NVIDIA_TF32_OVERRIDE": "0"}), "no-tf32",
     "unset NVIDIA_TF32_OVERRIDE"),
    (changed(WITH, software={"libraries": (*libraries()[:-1], SHADOWED)}),
     "shadowed-libraries", "unset LD_LIBRARY_PATH"),
    (changed(WITH, start=computing(3, error=0.4)), "wrong-result", "overclocking"),
    (changed(WITH, start=computing(2, ran_on="CPU:0")), "no-result", "pip install"),
    (changed(WITHOUT, start=replace(started(), devices=(), proofs=(),
     problem="TensorFlow's process was ended by SIGILL while importing.")), "no-start",
     "pip install"),
)  # fmt: skip
SCREEN = card("GT 1030", compute_capability="6.1", multiprocessors=3)
WELL = {
    "one of eight cards is chosen": changed(
        computers.workstation(*[card()] * 8),
        environment={"CUDA_VISIBLE_DEVICES": "3", "OMP_NUM_THREADS": "24"},
        start=started("GPU:0"),
    ),
    "a container with all that the host has": changed(
        WITH,
        software={"container": True},
        disk={"filesystem": "overlay"},
        environment={"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "1"},
    ),
    "a rented machine from an image for GPUs": changed(
        WITHOUT,
        versions={"nvidia-cuda-runtime-cu12": "12.5.82"},
        driver=Driver(problem="not loaded"),
        no_gpu="The NVIDIA driver is installed but not loaded: restart the machine.",
        processor=Processor(virtual=True),
        start=started(said=(computers.NO_DRIVER,)),
    ),
    "a small card for the screen is left out": changed(
        computers.workstation(computers.looked_at(card()), SCREEN),
        start=started("GPU:0", said=(fatal("TF_MIN_GPU_MULTIPROCESSOR_COUNT"),)),
    ),
}


@dataclass(frozen=True)
class Recorded:
    """A machine as a record, for those that are ``Scripted``."""

    machine: Machine
    name: str
    remedy: str = ""

    def read(self, *_):
        return checks(self.machine)


def check_all(found):
    """What costs most comes first; what is well comes last and needs no remedy."""
    keys = [(ORDER[check.status], -check.cost) for check in found]
    assert keys == sorted(keys)
    for check in found:
        assert check.evidence.endswith((".", '"'))
        assert 0 <= check.cost <= 1
        if check.status == "ok":
            assert (check.remedy, check.cost) == ("", 0.0)
        elif check.status != "unknown":
            assert check.cost > 0
            assert all((check.title, check.why, check.remedy))


by_name = {"ids": lambda machine: machine.name}
HEALTHY = [Recorded(machine, name) for name, machine in WELL.items()]


@pytest.mark.parametrize("machine", [*HEALTHY, *collected.HEALTHY], **by_name)
def test_nothing_is_said_against_a_healthy_machine(machine, tmp_path, described):
    found = machine.read(tmp_path, described)
    statuses = {check.status for check in found}
    assert "ok" in statuses
    assert statuses <= {"ok", "unknown"}
    check_all(found)


FAULTY = [Recorded(*row) for row in ILL]


@pytest.mark.parametrize("machine", [*FAULTY, *collected.FAULTY], **by_name)
def test_what_was_planted_is_named_first_with_what_to_type(
    machine, tmp_path, described
):
    found = machine.read(tmp_path, described)
    assert found[0].id == machine.name
    assert found[0].status in ("warn", "fail")
    assert machine.remedy in found[0].remedy
    check_all(found)


@pytest.mark.parametrize("machine", [OLD_DRIVER, MISSING_LIBRARY, OLD_CUDNN])
def test_a_gpu_that_computes_refutes_that_it_cannot(machine):
    working = changed(machine, start=started("GPU:0"))
    assert [c.id for c in checks(working) if c.status == "fail"] == []


def test_a_gpu_that_leaves_its_work_to_the_processor_refutes_nothing():
    start = started("GPU:0")
    passed_on = tuple(replace(proof, ran_on="CPU:0") for proof in start.proofs)
    machine = changed(OLD_DRIVER, start=replace(start, proofs=passed_on))
    assert checks(machine)[0].id == "driver-too-old"


def test_what_a_machine_says_is_shown_as_it_is_whatever_is_in_it():
    odd = {"tensorflow": "2.{x}.{0}"}
    machine = changed(OLD_CUDNN, versions=odd, software={"build": "cpu"})
    (found,) = (c for c in checks(machine) if c.id == "cpu-only-build")
    assert "2.{x}.{0} has no CUDA" in found.evidence
    assert found.remedy.endswith('"tensorflow[and-cuda]==2.{x}.{0}"')


@pytest.mark.parametrize(
    ("generation", "throttle", "rule"),
    [(4, 0x4, None), (3, 0x4, "slow-link"), (4, 0x20, "throttled")],
)
def test_what_was_seen_at_work_decides(generation, throttle, rule, described):
    driver, (gpu,), _ = described["idle_link"]
    samples = {
        "gpu0_busy": (0.0, 0.9, 0.9, 0.9, 0.9),
        "gpu0_link_generation": (1, *[generation] * 4),
        "gpu0_link_width": (16, *[16] * 4),
        "gpu0_throttle": (0x1, *[throttle] * 4),
    }
    machine = computers.workstation(*observed((gpu,), samples), driver=driver)
    wrong = [check.id for check in checks(machine) if check.status != "ok"]
    assert wrong == ([rule] if rule else [])
