"""Machines with one planted fault each, among the quirks that every machine has.

``MACHINES`` holds each, the rule that must be named first, and a piece of what it must
tell to type.
"""

from dataclasses import replace

from perfkit.machine.gpu import Driver, Holder, Link, Power
from perfkit.machine.record import Busy, Proof, Said
from tests.machine.checks import healthy
from tests.machine.checks.computers import (
    GB,
    NO_DRIVER,
    card,
    changed,
    desktop,
    libraries,
    looked_at,
    proved,
    started,
    with_card,
    workstation,
)

GAMING = healthy.gaming_linux()
HOPPER = healthy.hopper_at_rest()
LAPTOP, LAPTOP_ALONE = healthy.laptop_on_mains(), healthy.laptop_without_card()
SERVER = healthy.server_without_card()
CONTAINER, WSL = healthy.container_with_all_cores(), healthy.wsl_with_card()
GPU_BUILD = 'python -m pip install "tensorflow[and-cuda]==2.21.0"'
UNSEEN = started(said=())
NO_CARD_SEEN = started(said=(NO_DRIVER,))


def silent(problem, why, base=GAMING, cards=1):
    """A machine whose driver reports no GPU; TensorFlow then says so too."""
    driver = None if problem == "no driver" else Driver(problem=problem)
    facts = {"gpus": (), "driver": driver, "no_gpu": why, "nvidia_cards": cards}
    return changed(base, start=NO_CARD_SEEN, **facts)


def fatal(line, meaning):
    return Said(line=line, meaning=meaning, weight="fatal")


def broken(problem, **more):
    """A start in which the GPU fails to convolve."""
    proof = Proof(device="GPU:0", computation="convolution", problem=problem)
    return replace(started("GPU:0", **more), proofs=(*proved("CPU:0"), proof))


def computing(place, **facts):
    """A start in which one computation of the GPU ends otherwise."""
    proofs = list(started("GPU:0").proofs)
    proofs[place] = replace(proofs[place], **facts)
    return replace(started("GPU:0"), proofs=tuple(proofs))


NONE = "No NVIDIA driver is installed."
OLD_DRIVER = changed(
    GAMING, driver=Driver(version="470.256.02", cuda="11.4"), start=NO_CARD_SEEN
)
MISSING_LIBRARY = changed(
    LAPTOP,
    software={"libraries": libraries("cannot open it", missing=("libcudnn.so.9",))},
    start=started(said=(fatal("Cannot dlopen some GPU libraries.", "Missing."),)),
)
OLD_CUDNN = changed(
    GAMING,
    versions={"nvidia-cudnn-cu12": "9.1.0.70"},
    start=broken("No DNN in stream executor."),
)
GONE = replace(
    card("unknown NVIDIA GPU"),
    refused={"card": "GPU is lost"},
    compute_capability=None,
    multiprocessors=None,
    memory=None,
)
FOR_CPU = {
    "build": "cpu",
    "packages": ("tensorflow-cpu",),
    "cuda": None,
    "capabilities": None,
    "libraries": (),
}
MX450 = looked_at(card("NVIDIA GeForce MX450", multiprocessors=14))
MAXWELL = looked_at(card("NVIDIA GeForce GTX 970", compute_capability="5.2"))
BLACKWELL = looked_at(card("NVIDIA GeForce RTX 5090", compute_capability="12.0"))
TOO_NEW = Said(
    line="TensorFlow was not built with CUDA kernel binaries compatible with compute "
    "capability 12.0.",
    meaning="This GPU is newer than this TensorFlow.",
    weight="matters",
)
NARROW = Link(
    generation=1,
    width=8,
    generation_max=4,
    width_max=16,
    generation_card=4,
    busy_generation=3,
    busy_width=8,
)
TOO_WARM = ("power limit reached", "too warm, slowed by the driver")
THIEVES = (*desktop(), Holder(program="python", memory=5 * GB, busy=0.8))
FILLED = with_card(GAMING, holders=(Holder(program="python", memory=int(11.8 * GB)),))
MIG = {
    "name": "NVIDIA H200 MIG 1g.18gb",
    "memory": 18 * GB,
    "multiprocessors": 16,
    "pci_bus": "0000:1b:00.0",
    "state": {"mig": True, "instance": True},
}
STRESS = (Busy(program="stress", cores=9.8), Busy(program="chrome", cores=1.2))
SHADOWED = (
    *libraries()[:-1],
    replace(libraries()[-1], origin="search path", version="8.9"),
)

MACHINES = (
    (silent("no driver", NONE), "no-driver", "sudo ubuntu-drivers install"),
    (silent("no driver", NONE, CONTAINER), "no-driver", "docker run --gpus all"),
    (silent("no driver", NONE, WSL, None), "no-driver", "wsl --shutdown"),
    (silent("mismatch", "It no longer fits."), "driver-mismatch", "sudo reboot"),
    (silent("not loaded", "Not loaded."), "driver-not-loaded", "sudo modprobe nvidia"),
    (silent("no permission", "Refused."), "driver-refused", "usermod -aG"),
    (OLD_DRIVER, "driver-too-old", "sudo ubuntu-drivers install"),
    (workstation(looked_at(card()), GONE), "lost-card", "sudo reboot"),
    (changed(GAMING, versions={"tensorflow-cpu": "2.21.0"}, software=FOR_CPU,
     start=UNSEEN), "cpu-only-build", GPU_BUILD),
    (changed(GAMING, versions={"tensorflow-cpu": "2.20.0"},
     software={"build": "cpu", "packages": ("tensorflow", "tensorflow-cpu")},
     start=UNSEEN), "two-tensorflows", "uninstall -y tensorflow tensorflow-cpu"),
    (changed(replace(SERVER, versions={"keras": "3.15.1"}),
     software={"build": "none", "packages": ()}, start=None), "no-tensorflow",
     "python -m pip install"),
    (MISSING_LIBRARY, "missing-library", GPU_BUILD),
    (OLD_CUDNN, "wrong-cudnn", GPU_BUILD),
    (changed(GAMING, environment={"CUDA_VISIBLE_DEVICES": "-1"}, start=NO_CARD_SEEN),
     "hidden-gpu", "unset CUDA_VISIBLE_DEVICES"),
    (changed(workstation(MX450), environment={"TF_MIN_GPU_MULTIPROCESSOR_COUNT": "16"},
     start=UNSEEN), "small-gpu", "export TF_MIN_GPU_MULTIPROCESSOR_COUNT=14"),
    (changed(healthy.windows_without_card(),
     gpus=(card("NVIDIA GeForce RTX 4060", driver="572.83", holders=None),), no_gpu="",
     driver=Driver(version="572.83", cuda="12.8")), "native-windows", "wsl --install"),
    (changed(workstation(MAXWELL), start=UNSEEN), "no-kernels",
     "tensorflow[and-cuda]<2.17"),
    (changed(workstation(BLACKWELL), start=started("GPU:0", said=(TOO_NEW,))),
     "compiled-kernels", "CUDA_CACHE_MAXSIZE=4294967296"),
    (changed(HOPPER, driver=Driver(version="535.183.01", cuda="12.2")),
     "uncompiled-kernels", "sudo ubuntu-drivers install"),
    (with_card(GAMING, link=NARROW), "slow-link", "BIOS"),
    (with_card(LAPTOP, clocks={"sm": 900e6, "busy_throttle": TOO_WARM},
     power={"temperature": 87.0}), "throttled", "nvidia-smi -i 0 -q"),
    (with_card(GAMING,
     power=Power(draw=60, limit=100, limit_default=200, temperature=50)), "power-limit",
     "sudo nvidia-smi -i 0 -pl 200"),
    (with_card(GAMING, holders=THIEVES, memory_used=6 * GB, busy=0.8), "shared-gpu",
     "nvidia-smi -i 0"),
    # All of the memory is taken, so TensorFlow fails on the card.
    (changed(FILLED,
     start=broken("Out of memory.", said=(fatal("ran out of memory", "Full."),))),
     "shared-gpu", "nvidia-smi -i 0"),
    (with_card(HOPPER, **MIG), "mig", "sudo nvidia-smi -i 0000:1b:00.0 -mig 0"),
    (with_card(HOPPER, state={"compute_mode": "exclusive process"}), "exclusive-gpu",
     "-c DEFAULT"),
    (changed(CONTAINER, cores_granted=2.0), "few-cores", "docker update --cpus 24"),
    (changed(GAMING, load={"others": 11.4, "top": STRESS}), "busy-cores", "top"),
    (changed(healthy.cloud_image_without_card(), load={"steal": 0.22}), "stolen-time",
     "machine type"),
    (changed(SERVER,
     processor={"governor": "powersave", "frequency_driver": "acpi-cpufreq"}),
     "governor", "sudo cpupower frequency-set -g performance"),
    (changed(LAPTOP_ALONE,
     processor={"frequency_max": 4.2e9, "frequency_allowed": 1.4e9}),
     "limited-frequency", "sudo cpupower frequency-set -u 4200MHz"),
    (changed(LAPTOP, processor={"preference": "power"}, load={"on_battery": True}),
     "battery", "charger"),
    (changed(LAPTOP_ALONE, load={"swap": 7 * GB, "memory_free": GB}), "swapping",
     "top -o %MEM"),
    (changed(CONTAINER, memory=2 * GB), "little-memory", "docker update --memory"),
    (changed(SERVER, disk={"cold": 24e6, "filesystem": "nfs4"}), "slow-disk", "SSD"),
    (changed(WSL, disk={"cold": 90e6, "filesystem": "9p", "windows": True}),
     "windows-drive", "cp -r"),
    (changed(LAPTOP_ALONE, system="Linux 4.4 (WSL)", software={"platform": "wsl1"}),
     "wsl-1", "wsl --set-version"),
    (changed(GAMING, environment={"CUDA_LAUNCH_BLOCKING": "1"}), "launch-blocking",
     "unset CUDA_LAUNCH_BLOCKING"),
    (changed(healthy.data_centre(), environment={"TF_DETERMINISTIC_OPS": "true"}),
     "deterministic", "unset TF_DETERMINISTIC_OPS"),
    (changed(healthy.data_centre(), environment={"NVIDIA_TF32_OVERRIDE": "0"}),
     "no-tf32", "unset NVIDIA_TF32_OVERRIDE"),
    (changed(LAPTOP_ALONE, environment={"TF_ENABLE_ONEDNN_OPTS": "0"}), "onednn-off",
     "unset TF_ENABLE_ONEDNN_OPTS"),
    (changed(SERVER,
     environment={"TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "4"}),
     "few-threads", "unset TF_NUM_INTRAOP_THREADS"),
    (changed(GAMING, software={"set_late": ("TF_GPU_THREAD_MODE",)}), "set-too-late",
     "TF_GPU_THREAD_MODE"),
    (changed(LAPTOP, software={"elsewhere": "This Python is not in it."}),
     "other-environment", "ipykernel install"),
    (changed(GAMING, software={"keras_backend": "torch"}), "keras-backend",
     "export KERAS_BACKEND=tensorflow"),
    (changed(GAMING, software={"libraries": SHADOWED}), "shadowed-libraries",
     "unset LD_LIBRARY_PATH"),
    (changed(GAMING, start=computing(3, error=0.4)), "wrong-result", "overclocking"),
    (changed(GAMING, start=computing(2, ran_on="CPU:0")), "no-result", "pip install"),
    (
        changed(
            GAMING,
            start=started(
                said=(fatal("failed call to cuInit: CUDA_ERROR_UNKNOWN", "Lost."),)
            ),
        ),
        "start-log",
        "sudo reboot",
    ),
    (changed(LAPTOP_ALONE, start=replace(started(), devices=(), proofs=(),
     problem="TensorFlow's process was ended by SIGILL while importing.")), "no-start",
     "pip install"),
)  # fmt: skip
