"""Machines of all kinds that nothing is wrong with, each with its ordinary quirks."""

from perfkit.machine.gpu import Clocks, Driver, Link, Power, State
from perfkit.machine.record import Load, Processor
from tests.machine.checks.computers import (
    GB,
    HARMLESS,
    NO_DRIVER,
    card,
    changed,
    desktop,
    looked_at,
    started,
    with_card,
    without_card,
    workstation,
)


def data_centre():
    """Eight H100s, one of them chosen, all at rest, their links not looked at."""
    h100 = card(
        "NVIDIA H100 80GB HBM3",
        memory=80 * GB,
        compute_capability="9.0",
        multiprocessors=132,
        link=Link(
            generation=5, width=16, generation_max=5, width_max=16, generation_card=5
        ),
        power=Power(draw=70, limit=700, limit_default=700, temperature=31),
    )
    return changed(
        workstation(*[h100] * 8),
        cores=192,
        cores_granted=192.0,
        cpu="Intel Xeon Platinum 8480C",
        memory=2000 * GB,
        memory_present=2000 * GB,
        environment={"CUDA_VISIBLE_DEVICES": "3", "OMP_NUM_THREADS": "192"},
        driver={"version": "535.183.01", "cuda": "12.5"},
        processor={"governor": "performance", "frequency_driver": "intel_pstate"},
        load=Load(seconds=0.3, others=6.0, steal=0.0, swap=0, memory_free=1800 * GB),
        start=started("GPU:0"),
    )


def hopper_at_rest():
    """An H200 without MIG whose link has slowed down while it idles."""
    h200 = card(
        "NVIDIA H200",
        memory=141 * GB,
        compute_capability="9.0",
        multiprocessors=132,
        link=Link(
            generation=1, width=16, generation_max=5, width_max=16, generation_card=5
        ),
        clocks=Clocks(sm=345e6, sm_max=1980e6, throttle=("power limit reached",)),
    )
    return workstation(h200)


def gaming_linux():
    """A desktop draws on the card, and its slot is older than the card."""
    gaming = card(
        "NVIDIA GeForce RTX 4070",
        memory=12 * GB,
        compute_capability="8.9",
        multiprocessors=46,
        memory_used=int(1.1 * GB),
        busy=0.04,
        link=Link(
            generation=3, width=16, generation_max=3, width_max=16, generation_card=4
        ),
        holders=desktop(),
    )
    seen = looked_at(gaming, generation=3, throttle=("power limit reached",))
    return changed(
        workstation(seen),
        load=Load(seconds=0.3, others=1.4, steal=0.0, swap=2 * GB, memory_free=40 * GB),
    )


def laptop_on_mains():
    """Few watts, a narrow link by design, a warm card, a processor that saves."""
    small = card(
        "NVIDIA GeForce RTX 3060 Laptop GPU",
        memory=6 * GB,
        multiprocessors=30,
        link=Link(
            generation=1, width=8, generation_max=4, width_max=8, generation_card=4
        ),
        power=Power(draw=11, limit=95, temperature=58),
        holders=desktop(),
    )
    return changed(
        workstation(looked_at(small, width=8)),
        cores=16,
        cores_granted=16.0,
        memory=16 * GB,
        memory_present=16 * GB,
        load={"on_battery": False, "memory_free": 9 * GB, "others": 0.9},
        processor={"preference": "balance_power"},
        disk={"cold": 1.1e9},
    )


def server_without_card():
    """TensorFlow's ordinary build, which could use a card: there is none to use."""
    return changed(
        without_card(),
        cores=64,
        cores_granted=64.0,
        memory=256 * GB,
        memory_present=256 * GB,
        processor={"governor": "schedutil", "frequency_driver": "acpi-cpufreq"},
        load={"others": 3.0, "memory_free": 200 * GB, "steal": 0.01},
    )


def laptop_without_card():
    """A small laptop with the processor's build, on mains."""
    return changed(
        without_card(),
        cpu="Intel Core i5-1135G7",
        cores=8,
        cores_granted=8.0,
        memory=16 * GB,
        memory_present=16 * GB,
        versions={"tensorflow-cpu": "2.21.0"},
        load={"on_battery": False, "others": 0.5, "memory_free": 6 * GB},
        software={
            "build": "cpu",
            "packages": ("tensorflow-cpu",),
            "cuda": None,
            "capabilities": None,
            "libraries": (),
        },
        start=started(said=(HARMLESS,)),
    )


def wsl_with_card():
    """WSL 2: the driver refuses half of the questions and lists no bus."""
    refusing = card(
        "NVIDIA GeForce RTX 3060 Laptop GPU",
        memory=6 * GB,
        memory_used=int(1.6 * GB),
        driver="572.83",
        busy=None,
        link=Link(),
        clocks=Clocks(),
        power=Power(temperature=61),
        state=State(driver_model="WDDM"),
        holders=None,
    )
    return changed(
        workstation(refusing),
        system="Linux 5.15 (WSL2)",
        nvidia_cards=None,
        driver=Driver(version="572.83", cuda="12.8"),
        processor=Processor(instructions=("avx2", "fma"), virtual=True),
        memory=16 * GB,
        memory_present=16 * GB,
        load={"memory_free": 11 * GB, "swap": 0},
        software={"platform": "wsl2"},
    )


def container_with_all_cores():
    """A container with the host's cards, cores and memory."""
    return changed(
        workstation(looked_at(card("NVIDIA A100", compute_capability="8.0"))),
        software={"container": True},
        disk={"filesystem": "overlay"},
        environment={"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "1"},
    )


def mac():
    """A Mac: TensorFlow has no GPU build for it, and no cgroups to ask."""
    return changed(
        without_card(),
        cpu="Apple M2",
        cores=8,
        cores_granted=8.0,
        memory=16 * GB,
        memory_present=16 * GB,
        system="macOS 15.1",
        nvidia_cards=None,
        processor=Processor(physical_cores=8),
        load=Load(
            seconds=0.3, others=0.6, swap=2 * GB, memory_free=5 * GB, on_battery=False
        ),
        software={"platform": "macos", "build": "cpu", "cuda": None, "libraries": ()},
        start=started(said=()),
    )


def windows_without_card():
    """Windows itself with the processor's build and no NVIDIA card."""
    return changed(
        without_card(),
        system="Windows 11",
        nvidia_cards=None,
        processor=Processor(),
        software={"platform": "windows", "build": "cpu", "libraries": ()},
        start=started(said=()),
    )


def cloud_image_without_card():
    """A rented machine made from an image for GPUs: the driver lies there unused."""
    return changed(
        without_card(),
        versions={"nvidia-cuda-runtime-cu12": "12.5.82"},
        driver=Driver(problem="not loaded"),
        no_gpu="The NVIDIA driver is installed but not loaded: restart the machine.",
        processor=Processor(virtual=True),
        start=started(said=(NO_DRIVER,)),
    )


def card_for_the_screen():
    """A large card to compute and a small one for the screen, which is left out."""
    screen = card(
        "NVIDIA GeForce GT 1030",
        memory=2 * GB,
        compute_capability="6.1",
        multiprocessors=3,
        link=Link(generation=1, width=4, generation_max=3, width_max=4),
    )
    large = looked_at(card())
    left_out = with_card(workstation(large, screen))
    ignored = NO_DRIVER.__class__(
        line="Ignoring visible gpu device ... TF_MIN_GPU_MULTIPROCESSOR_COUNT",
        meaning="This GPU is left alone because it is small.",
        weight="fatal",
    )
    return changed(left_out, start=started("GPU:0", said=(ignored,)))


MACHINES = (
    data_centre,
    hopper_at_rest,
    gaming_linux,
    laptop_on_mains,
    server_without_card,
    laptop_without_card,
    wsl_with_card,
    container_with_all_cores,
    mac,
    windows_without_card,
    cloud_image_without_card,
    card_for_the_screen,
)
