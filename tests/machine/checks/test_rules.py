"""Each rule at its limits, one machine a row; whole machines are in test_checks.py."""

import math
from dataclasses import replace

import pytest

from perfkit.machine.checks import checks, hardware, software
from perfkit.machine.record import (
    Busy,
    Clocks,
    Disk,
    Driver,
    Holder,
    Link,
    Load,
    Processor,
    Proof,
    Said,
    computing,
    throttle_reasons,
)
from perfkit.machine.starting import child
from tests.machine.checks import computers
from tests.machine.checks.computers import (
    GB,
    NO_DRIVER,
    by_rule,
    card,
    changed,
    proved,
    says,
    with_card,
    workstation,
)

WITH, WITHOUT = workstation(), computers.without_card()
MAXWELL = card("NVIDIA GTX 970", compute_capability="5.2")


def visible(value, *gpus, **environment):
    environment |= {"CUDA_VISIBLE_DEVICES": value}
    return changed(workstation(*gpus), environment=environment)


def of_capability(capability, **facts):
    return changed(with_card(WITH, compute_capability=capability), **facts)


def slowed(*reasons, busy=True):
    told = {"busy_throttle" if busy else "throttle": reasons}
    return with_card(workstation(card()), clocks=Clocks(**told))


def linked(**link):
    return with_card(WITH, link=Link(**{"generation_max": 4, "width_max": 16} | link))


def held(*holders, **facts):
    return with_card(WITH, holders=holders, **facts)


def python(gigabytes, **facts):
    return Holder(program="python", memory=gigabytes * GB, **facts)


def hidden(used):
    return with_card(WITH, holders=None, busy=None, memory_used=used)


WARM, HOT = "too warm, slowed by the driver", "too hot, slowed by the hardware"
IDLE = {"generation": 1, "width": 16}
test_a_card_is_judged_by_what_is_known_of_it = by_rule({
    # A value that names no card hides all.
    hardware.hidden: [
        *[(visible(value), "hidden-gpu:fail", f'"{value}"')
          for value in ("", "1", "-1,0")],
        *[(visible(value), "") for value in ("0,1", "0,-1", "MIG-12")],
    ],
    # The wheel is held against the card.
    hardware.kernels: [
        (of_capability("2.1"), "no-kernels:fail", " built for 2.1 (NVIDIA RTX A4000)."),
        (of_capability("12.0"), "compiled-kernels:warn",
         "CUDA_CACHE_MAXSIZE=4294967296"),
        *[(of_capability(capability), "kernels:ok", f"capability {capability}")
          for capability in ("6.0", "8.7", "9.0")],
        # Machine code is of no use to an older card or to another generation.
        *[(of_capability(capability, software={"capabilities": (code,)}), result)
          for code, capability, result in (
              ("sm_86", "8.0", "no-kernels:fail"), ("sm_80", "9.0", "no-kernels:fail"),
              ("sm_120", "12.0", "kernels:ok"))],
        # Of a build that does not tell nothing is said.
        (of_capability("12.0", software={"capabilities": None}), ""),
        # What is hidden is left out. Unlike cards are all looked at where their
        # numbers are not those of CUDA.
        (visible("0", card(), MAXWELL, CUDA_DEVICE_ORDER="PCI_BUS_ID"), "kernels:ok"),
        (visible("0", card(), MAXWELL), "kernels:ok no-kernels:warn"),
    ],
    hardware.throttled: [
        # Limits by design are no faults; nor is a reason without a name.
        *[(slowed(*throttle_reasons(bit)), result)
          for result, bits in {"throttled:ok": (0x1, 0x4, 0x200, 0x400, 0x100000),
                               "throttled:warn": (0x8, 0x20, 0x40, 0x80)}.items()
          for bit in bits],
        # An idle clock tells nothing.
        (slowed(WARM, busy=False), ""),
        (with_card(slowed(WARM, busy=False), busy=0.9), "throttled:warn", ", now: "),
    ],
    hardware.narrow: [
        # An idle link is no fault, nor is one whose lanes rest.
        *[(linked(generation=1, width=width), "") for width in (16, 8)],
        # Under load it is held against card and slot.
        *[(linked(**IDLE, busy_generation=generation, busy_width=width), result)
          for generation, width, result in (
              (5, 16, "link:ok"), (3, 16, "slow-link:warn"), (4, 8, "slow-link:warn"))],
        (with_card(linked(generation=3, width=8), busy=0.9), "slow-link:warn",
         "PCIe 3 ×8 (7.88 GB/s) now"),
        # A slot that is older than the card is no fault.
        (linked(generation_max=3, width=16, busy_generation=3), "link:ok"),
        (with_card(WITH, link=Link()), ""),
        # A part of a divided card has no link of its own.
        (with_card(linked(busy_generation=1, busy_width=1), divided=True), ""),
    ],
    # What others hold is held against the memory.
    hardware.other_programs: [
        # A desktop holds a little.
        (held(python(0.5), python(0.3), busy=0.1), "shared-gpu:ok"),
        *[(held(python(gigabytes)), f"shared-gpu:{status}", "in use by python")
          for gigabytes, status in ((2, "ok"), (4, "warn"), (15, "fail"))],
        # What this process holds or does is not somebody else.
        (held(python(15, own=True), busy=0.9), "shared-gpu:ok"),
        (held(Holder(program="x", own=True), memory_used=15 * GB), "shared-gpu:ok"),
        # What may be our own, or is hidden, counts with all that is in use.
        *[(held(Holder(program="x", **facts), memory_used=used * GB),
           result, f": {taken}", " memory is in use")
          for facts in ({"own": None, "memory": 15 * GB}, {"memory": None})
          for used, taken, result in (
              (5, 31, "shared-gpu:ok"), (15, 94, "used-gpu:warn"))],
        # A container may hide who holds it.
        (held(python(1), memory_used=15 * GB), "used-gpu:warn", ": 94 % of its memory"),
        # Where the driver names nobody more is allowed for.
        (hidden(5 * GB), "shared-gpu:ok"),
        (hidden(9 * GB), "used-gpu:warn",
         " | The GPU is in use, by your own or by other programs | "),
        (hidden(None), ""),
    ],
})  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "number"),
    [(WITH, 0), (WITHOUT, None), (visible("1", card(), card()), 1),
     (visible("1", card(), MAXWELL, CUDA_DEVICE_ORDER="PCI_BUS_ID"), 1),
     # The numbers of unlike cards are CUDA's own.
     (visible("1", card(), MAXWELL), None),
     (visible("GPU-1234", card(), card()), None)],
)  # fmt: skip
def test_the_first_card_that_programs_see_is_the_one_that_computes(machine, number):
    card = None if number is None else machine.gpus[number]
    assert computing(machine.gpus, machine.environment) is card


TOP = (Busy(program="stress", cores=7.5), Busy(program="chrome", cores=1.25))


def granted(number, **facts):
    return changed(WITH, cores_granted=number, **facts)


def memory(gigabytes, free):
    return changed(WITH, memory=gigabytes * GB, load={"memory_free": free})


test_cores_memory_and_disk_are_judged_by_what_is_known_of_them = by_rule({
    hardware.granted: [
        *[(granted(number), result, f"{number:g} of 24 cores") for number, result in (
            (23.5, "cores:ok"), (12.0, "few-cores:warn"), (0.5, "few-cores:warn"))],
    ],
    # Others cost what they take of the cores granted: a quota of 4 is still free while
    # others leave more than that.
    hardware.busy: [
        (granted(number, load={"others": others, "top": TOP}), result,
         "busy: stress 7.5, chrome 1.2. | ")
        for number, others, result in (
            (24.0, 1.0, "load:ok"), (24.0, 6.0, "busy-cores:warn"),
            (4.0, 15.0, "load:ok"), (4.0, 23.0, "busy-cores:warn"))
    ],
    # "powersave" is the lowest frequency with some drivers; a battery comes first.
    hardware.saving: [
        *[(changed(WITH, processor={"governor": governor, "frequency_driver": driver}),
           result) for governor, driver, result in (
            ("powersave", "amd-pstate-epp", ""),
            ("powersave", "intel_cpufreq", "saving-power:warn"),
            ("powersave", None, ""), ("performance", "acpi-cpufreq", ""))],
        (changed(WITH, processor={"preference": "power"}), "saving-power:warn"),
        (changed(WITH, load={"on_battery": True}, processor={"preference": "power"}),
         "battery:warn", " | This machine saves power | ", "charger"),
    ],
    # Memory is short where little is granted or left.
    hardware.memory: [
        (memory(64, GB), "little-memory-left:warn"),
        (memory(2, 1.9 * GB), "little-memory:warn"),
        (memory(8, None), "memory:ok"),
    ],
    hardware.windows_drive: [
        (changed(WITH, disk=Disk(windows=True, filesystem="9p")), "windows-drive:warn",
         " | The folder is on 9p. | ", "cp -r"),
    ],
})  # fmt: skip


@pytest.mark.parametrize(("cores", "load"), [(None, None), (Processor(), Load())])
def test_what_was_not_looked_at_is_not_told(cores, load):
    machine = changed(WITH, processor=cores, load=load, disk=None, start=None)
    rules = hardware.busy, hardware.saving, hardware.windows_drive, *software.START
    assert [check for rule in rules for check in rule(machine)] == []
    # Memory is judged by what there is.
    says(hardware.memory, machine, "memory:ok")


def silent(cards=1, **facts):
    """A machine whose driver tells of no GPU."""
    return changed(WITHOUT, nvidia_cards=cards, **facts)


def built(machine=WITH, *, versions=(), **facts):
    """A machine with a TensorFlow of other facts, and other packages."""
    return changed(machine, software=facts, versions=dict(versions))


def cudnn(version, name="nvidia-cudnn-cu12"):
    return built(versions={name: version})


UNLOADED = Driver(problem="not loaded")
WSL = built(changed(WITHOUT, nvidia_cards=None), platform="wsl2")
WSL_WITH = changed(WSL, versions={"nvidia-cuda-runtime-cu12": "12.5.82"})
UNSTARTED = changed(WITH, start=None)
NO_PACKAGES = replace(UNSTARTED, versions={"tensorflow": "2.21.0"})
test_software_is_judged_by_what_is_known_of_it = by_rule({
    # No GPU is a fault only where one is left unused.
    software.unanswered: [
        (WITH, ""),
        *[(machine, "no-gpu:ok") for machine in (
            WITHOUT, silent(None), built(WITHOUT, build="rocm"))],
        (changed(WITHOUT, driver=UNLOADED), "no-gpu:ok", "~restart"),
        (built(WITHOUT, build="metal"), "no-gpu:ok", "~processor"),
        (WSL, "driver-in-windows:unknown"),
        (WSL_WITH, "no-driver:fail"),
        (silent(None, driver=UNLOADED), "driver-not-loaded:fail"),
        # Each silence of the driver has its name and remedy.
        (silent(driver=Driver(problem="no answer")), "driver-silent:fail",
         "nvidia-smi"),
        (silent(2), "no-driver:fail", "NVIDIA cards on the bus: 2."),
    ],
    # A driver is held against the minimum of CUDA 12.
    software.too_old: [
        *[(built(changed(WITH, driver={"version": version}), platform=platform), result,
           version) for platform, version, result in (
            ("linux", "525.60.13", "driver:ok"),
            ("linux", "525.60.11", "driver-too-old:fail"),
            ("wsl2", "528.33", "driver:ok"),
            ("wsl2", "527.41", "driver-too-old:fail"))],
        # Of a version of CUDA that is not in the table nothing is said.
        *[(built(cuda=cuda), "") for cuda in ("14.0", None)],
    ],
    software.build: [
        (built(WITHOUT, build="cpu", packages=("tensorflow-cpu",)), ""),
        (built(build="rocm"), "cpu-only-build:fail", "without CUDA"),
    ],
    # A cuDNN fits if it is as new and of the same generation, and for this CUDA.
    software.old_cudnn: [
        *[(cudnn(version), "") for version in ("9.3.0.75", "9.26.0.1")],
        *[(cudnn(version), "wrong-cudnn:fail") for version in ("8.9.7.29", "10.0")],
        (cudnn("8.9.7.29", "nvidia-cudnn-cu11"), ""),
    ],
    # Without packages of CUDA only a start tells whether TensorFlow finds it.
    software.unseen_libraries: [
        (NO_PACKAGES, "unseen-libraries:unknown", "perfkit doctor --probe"),
        (UNSTARTED, "unseen-libraries:ok", "CUDA 12.5.82"),
        (changed(WITHOUT, start=None), ""),
    ],
})  # fmt: skip


@pytest.mark.parametrize("cards", [None, 0])
@pytest.mark.parametrize("problem", ["mismatch", "no permission", "no answer", ""])
def test_a_driver_that_is_there_is_believed_whatever_the_bus_says(problem, cards):
    broken = silent(cards, driver=Driver(problem=problem))
    assert [check.status for check in software.unanswered(broken)] == ["fail"]


FIRST = proved("GPU:0")[0]
BROKEN = Proof(device="GPU:0", computation="convolution", problem="No.")
ENDED = "TensorFlow's process was ended by"
XLA = f"{ENDED} SIGABRT while compiling something tiny with XLA; unknown flag."


def saying(*lines, gpus=(), machine=WITH, **facts):
    """A machine whose start logs this, and finds these GPUs."""
    start = computers.started(*gpus, said=lines)
    return changed(machine, start=replace(start, **facts))


def proving(*proofs):
    return saying(gpus=("GPU:0",), proofs=proofs)


def ended(problem):
    """A machine whose start has ended so."""
    machine = saying(problem=problem)
    return changed(machine, start=replace(machine.start, devices=(), proofs=()))


HIDDEN = changed(saying(), environment={"CUDA_VISIBLE_DEVICES": "-1"})
SLOW = Said(line="ptxas too old. 1", meaning="Slower.", weight="matters")
LATE = f"Ended after 75 s, while {child.COMPILING}."
test_a_start_is_judged_by_what_is_known_of_it = by_rule({
    # What each device computed is held against the answer.
    software.computed: [
        (proving(*proved("CPU:0", "GPU:0")), "computes:ok", "convolution on CPU:0",
         "matrix product on GPU:0"),
        *[(proving(replace(FIRST, error=error)), "wrong-on-gpu:fail",
           "rounding explains 0.001", "overclocking")
          for error in (0.1, math.nan, math.inf)],
        # An error as large as rounding explains is none.
        (proving(replace(FIRST, error=1e-3)), "computes:ok"),
        (proving(replace(FIRST, ran_on="CPU:0")), "passed-on:fail",
         " | The convolution on GPU:0 ran on CPU:0. | "),
        (proving(replace(proved("CPU:0")[0], error=0.1)), "wrong-result:fail",
         " | CPU:0 computes wrongly | ", " | python -m pip install"),
        (proving(BROKEN), "no-result:fail", " | The convolution on GPU:0: No. | "),
    ],
    software.log: [
        # A fatal line counts only where a GPU is lost, or fails to compute.
        (saying(NO_DRIVER, machine=WITHOUT), ""),
        (saying(NO_DRIVER, gpus=("GPU:0",)), ""),
        (saying(NO_DRIVER), "fatal-start-log:fail", f" | {NO_DRIVER.meaning} | ",
         NO_DRIVER.line),
        (saying(NO_DRIVER, gpus=("GPU:0",), proofs=(BROKEN,)), "fatal-start-log:fail"),
        # A line that matters is told once.
        (saying(SLOW, replace(SLOW, line="ptxas too old. 2"), gpus=("GPU:0",)),
         "start-log:warn", " | Slower. | ", "ptxas too old. 1"),
    ],
    # A start that fails is told in its words.
    software.broken: [
        # One that the system killed wants memory and no new install.
        (ended(f"{ENDED} SIGKILL."), "no-start:fail", " | End other notebooks"),
        (ended(XLA), "no-xla:fail", "unset it; else: python -m pip install"),
        # One that takes long is not known to fail.
        (ended(LATE), "late-start:unknown"),
    ],
    software.unseen: [
        (saying(), "unseen-gpu:fail", "NVIDIA RTX A4000", "devices: CPU:0. | "),
        # One that is hidden is not missed, nor is it where nothing starts.
        *[(machine, "") for machine in (WITH, WITHOUT, HIDDEN, ended(XLA))],
    ],
})  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "fails"),
    [(WITH, []), (WITHOUT, []), (saying(), ["unseen-gpu"]), (HIDDEN, ["hidden-gpu"]),
     (changed(saying(), software={"build": "cpu"}), ["cpu-only-build"])],
)  # fmt: skip
def test_that_tensorflow_finds_no_gpu_is_not_told_beside_its_cause(machine, fails):
    assert [c.id for c in checks(machine) if c.status == "fail"] == fails
