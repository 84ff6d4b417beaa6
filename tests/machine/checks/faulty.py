"""Machines with one planted fault each, among the quirks that every machine has.

``MACHINES`` holds how to make each, the rule that must be named first, and a piece of
what it must tell to type.
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

GPU_BUILD = 'python -m pip install "tensorflow[and-cuda]==2.21.0"'
DLOPEN = Said(
    line="Cannot dlopen some GPU libraries. Skipping registering GPU devices...",
    meaning="A CUDA library could not be loaded.",
    weight="fatal",
)


def silent(problem, why, base=healthy.gaming_linux):
    """A machine whose driver reports no GPU; TensorFlow then says so too."""
    driver = None if problem == "no driver" else Driver(problem=problem)
    return changed(
        base(),
        gpus=(),
        driver=driver,
        no_gpu=why,
        nvidia_cards=1,
        start=started(said=(NO_DRIVER,)),
    )


def no_driver():
    return silent("no driver", "No NVIDIA driver is installed.")


def no_driver_in_container():
    return silent(
        "no driver", "No NVIDIA driver is installed.", healthy.container_with_all_cores
    )


def no_driver_in_wsl():
    found = silent("no driver", "No NVIDIA driver is installed.", healthy.wsl_with_card)
    return replace(found, nvidia_cards=None)


def mismatch():
    return silent("mismatch", "The driver no longer fits its library.")


def not_loaded():
    return silent("not loaded", "The driver is installed but not loaded.")


def refused():
    return silent("no permission", "The driver refuses this user.")


def old_driver():
    return changed(
        healthy.gaming_linux(),
        driver=Driver(version="470.256.02", cuda="11.4"),
        start=started(said=(NO_DRIVER,)),
    )


def lost_card():
    gone = replace(card("unknown NVIDIA GPU"), refused={"card": "GPU is lost"})
    gone = replace(gone, compute_capability=None, multiprocessors=None, memory=None)
    return workstation(looked_at(card()), gone)


def processor_build():
    return changed(
        healthy.gaming_linux(),
        versions={"tensorflow": "2.21.0", "tensorflow-cpu": "2.21.0"},
        software={
            "build": "cpu",
            "packages": ("tensorflow-cpu",),
            "cuda": None,
            "capabilities": None,
            "libraries": (),
        },
        start=started(said=()),
    )


def two_tensorflows():
    return changed(
        healthy.gaming_linux(),
        versions={"tensorflow-cpu": "2.20.0"},
        software={"build": "cpu", "packages": ("tensorflow", "tensorflow-cpu")},
        start=started(said=()),
    )


def no_tensorflow():
    server = replace(healthy.server_without_card(), versions={"keras": "3.15.1"})
    return changed(server, software={"build": "none", "packages": ()}, start=None)


def missing_library():
    found = libraries("cannot open shared object file", missing=("libcudnn.so.9",))
    return changed(
        healthy.laptop_on_mains(),
        software={"libraries": found},
        start=started(said=(DLOPEN,)),
    )


def old_cudnn():
    broken = Proof(
        device="GPU:0", computation="convolution", problem="No DNN in stream executor."
    )
    start = replace(started("GPU:0"), proofs=(*proved("CPU:0"), broken))
    return changed(
        healthy.gaming_linux(),
        versions={"nvidia-cudnn-cu12": "9.1.0.70"},
        start=start,
    )


def hidden():
    return changed(
        healthy.gaming_linux(),
        environment={"CUDA_VISIBLE_DEVICES": "-1"},
        start=started(said=(NO_DRIVER,)),
    )


def too_small():
    small = looked_at(card("NVIDIA GeForce MX450", multiprocessors=14))
    return changed(
        workstation(small),
        environment={"TF_MIN_GPU_MULTIPROCESSOR_COUNT": "16"},
        start=started(said=()),
    )


def windows():
    return changed(
        healthy.windows_without_card(),
        gpus=(card("NVIDIA GeForce RTX 4060", driver="572.83", holders=None),),
        no_gpu="",
        driver=Driver(version="572.83", cuda="12.8"),
    )


def old_card():
    maxwell = card("NVIDIA GeForce GTX 970", compute_capability="5.2")
    return changed(workstation(looked_at(maxwell)), start=started(said=()))


def new_card():
    blackwell = card("NVIDIA GeForce RTX 5090", compute_capability="12.0")
    said = Said(
        line="TensorFlow was not built with CUDA kernel binaries compatible with "
        "compute capability 12.0.",
        meaning="This GPU is newer than this TensorFlow.",
        weight="matters",
    )
    return changed(
        workstation(looked_at(blackwell)), start=started("GPU:0", said=(said,))
    )


def cannot_compile():
    found = healthy.hopper_at_rest()
    return changed(found, driver=Driver(version="535.183.01", cuda="12.2"))


def slow_link():
    gaming = healthy.gaming_linux()
    link = Link(
        generation=1,
        width=8,
        generation_max=4,
        width_max=16,
        generation_card=4,
        busy_generation=3,
        busy_width=8,
    )
    return with_card(gaming, link=link)


def throttling_laptop():
    hot = ("power limit reached", "too warm, slowed by the driver")
    laptop = healthy.laptop_on_mains()
    return with_card(
        laptop,
        clocks={"sm": 900e6, "busy_throttle": hot},
        power={"temperature": 87.0},
    )


def low_power():
    eco = Power(draw=60, limit=100, limit_default=200, temperature=50)
    return with_card(healthy.gaming_linux(), power=eco)


def shared():
    strangers = (*desktop(), Holder(program="python", memory=5 * GB, busy=0.8))
    return with_card(
        healthy.gaming_linux(), holders=strangers, memory_used=6 * GB, busy=0.8
    )


def full():
    """Another program holds all of the card's memory, so TensorFlow fails on it."""
    strangers = (Holder(program="python", memory=int(11.8 * GB)),)
    held = with_card(healthy.gaming_linux(), holders=strangers)
    broken = Proof(device="GPU:0", computation="convolution", problem="Out of memory.")
    said = Said(line="ran out of memory", meaning="Memory is taken.", weight="fatal")
    start = started("GPU:0", said=(said,))
    return changed(held, start=replace(start, proofs=(*proved("CPU:0"), broken)))


def divided():
    h200 = healthy.hopper_at_rest()
    return with_card(
        h200,
        name="NVIDIA H200 MIG 1g.18gb",
        memory=18 * GB,
        multiprocessors=16,
        pci_bus="0000:1b:00.0",
        state={"mig": True, "instance": True},
    )


def exclusive():
    state = {"compute_mode": "exclusive process"}
    return with_card(healthy.hopper_at_rest(), state=state)


def few_cores():
    return changed(healthy.container_with_all_cores(), cores_granted=2.0)


def busy():
    top = (Busy(program="stress", cores=9.8), Busy(program="chrome", cores=1.2))
    return changed(healthy.gaming_linux(), load={"others": 11.4, "top": top})


def stolen():
    return changed(healthy.cloud_image_without_card(), load={"steal": 0.22})


def governor():
    processor = {"governor": "powersave", "frequency_driver": "acpi-cpufreq"}
    return changed(healthy.server_without_card(), processor=processor)


def limited():
    processor = {"frequency_max": 4.2e9, "frequency_allowed": 1.4e9}
    return changed(healthy.laptop_without_card(), processor=processor)


def battery():
    laptop = changed(healthy.laptop_on_mains(), processor={"preference": "power"})
    return changed(laptop, load={"on_battery": True})


def swapping():
    load = {"swap": 7 * GB, "memory_free": GB}
    return changed(healthy.laptop_without_card(), load=load)


def little_memory():
    return changed(healthy.container_with_all_cores(), memory=2 * GB)


def slow_disk():
    disk = {"cold": 24e6, "filesystem": "nfs4"}
    return changed(healthy.server_without_card(), disk=disk)


def windows_drive():
    disk = {"cold": 90e6, "filesystem": "9p", "windows": True}
    return changed(healthy.wsl_with_card(), disk=disk)


def wsl_1():
    return changed(
        healthy.laptop_without_card(),
        system="Linux 4.4 (WSL)",
        software={"platform": "wsl1"},
    )


def launch_blocking():
    return changed(healthy.gaming_linux(), environment={"CUDA_LAUNCH_BLOCKING": "1"})


def deterministic():
    return changed(healthy.data_centre(), environment={"TF_DETERMINISTIC_OPS": "true"})


def no_tf32():
    return changed(healthy.data_centre(), environment={"NVIDIA_TF32_OVERRIDE": "0"})


def onednn_off():
    environment = {"TF_ENABLE_ONEDNN_OPTS": "0"}
    return changed(healthy.laptop_without_card(), environment=environment)


def few_threads():
    environment = {"TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "4"}
    return changed(healthy.server_without_card(), environment=environment)


def too_late():
    software = {"set_late": ("TF_GPU_THREAD_MODE",)}
    return changed(healthy.gaming_linux(), software=software)


def elsewhere():
    why = "VIRTUAL_ENV names an environment, and this Python is not in it."
    return changed(healthy.laptop_on_mains(), software={"elsewhere": why})


def other_backend():
    return changed(healthy.gaming_linux(), software={"keras_backend": "torch"})


def shadowed():
    found = libraries()
    old = replace(found[-1], origin="search path", version="8.9")
    return changed(healthy.gaming_linux(), software={"libraries": (*found[:-1], old)})


def wrong_result():
    wrong = replace(proved("GPU:0")[1], error=0.4)
    start = started("GPU:0")
    return changed(
        healthy.gaming_linux(), start=replace(start, proofs=(*start.proofs[:3], wrong))
    )


def falls_back():
    elsewhere = replace(proved("GPU:0")[0], ran_on="CPU:0")
    start = replace(started("GPU:0"), proofs=(*proved("CPU:0"), elsewhere))
    return changed(healthy.gaming_linux(), start=start)


def left_out():
    said = Said(
        line="failed call to cuInit: INTERNAL: CUDA_ERROR_UNKNOWN",
        meaning="The driver could not be started.",
        weight="fatal",
    )
    return changed(healthy.gaming_linux(), start=started(said=(said,)))


def does_not_start():
    problem = "TensorFlow's process was ended by SIGILL while importing tensorflow."
    start = replace(started(), devices=(), proofs=(), problem=problem)
    return changed(healthy.laptop_without_card(), start=start)


MACHINES = (
    (no_driver, "no-driver", "sudo ubuntu-drivers install"),
    (no_driver_in_container, "no-driver", "docker run --gpus all"),
    (no_driver_in_wsl, "no-driver", "wsl --shutdown"),
    (mismatch, "driver-mismatch", "sudo reboot"),
    (not_loaded, "driver-not-loaded", "sudo modprobe nvidia"),
    (refused, "driver-refused", "usermod -aG"),
    (old_driver, "driver-too-old", "sudo ubuntu-drivers install"),
    (lost_card, "lost-card", "sudo reboot"),
    (processor_build, "cpu-only-build", GPU_BUILD),
    (two_tensorflows, "two-tensorflows", "uninstall -y tensorflow tensorflow-cpu"),
    (no_tensorflow, "no-tensorflow", "python -m pip install"),
    (missing_library, "missing-library", GPU_BUILD),
    (old_cudnn, "wrong-cudnn", GPU_BUILD),
    (hidden, "hidden-gpu", "unset CUDA_VISIBLE_DEVICES"),
    (too_small, "small-gpu", "export TF_MIN_GPU_MULTIPROCESSOR_COUNT=14"),
    (windows, "native-windows", "wsl --install"),
    (old_card, "no-kernels", "tensorflow[and-cuda]<2.17"),
    (new_card, "compiled-kernels", "CUDA_CACHE_MAXSIZE=4294967296"),
    (cannot_compile, "uncompiled-kernels", "sudo ubuntu-drivers install"),
    (slow_link, "slow-link", "BIOS"),
    (throttling_laptop, "throttled", "nvidia-smi -i 0 -q"),
    (low_power, "power-limit", "sudo nvidia-smi -i 0 -pl 200"),
    (shared, "shared-gpu", "nvidia-smi -i 0"),
    (full, "shared-gpu", "nvidia-smi -i 0"),
    (divided, "mig", "sudo nvidia-smi -i 0000:1b:00.0 -mig 0"),
    (exclusive, "exclusive-gpu", "-c DEFAULT"),
    (few_cores, "few-cores", "docker update --cpus 24"),
    (busy, "busy-cores", "top"),
    (stolen, "stolen-time", "machine type"),
    (governor, "governor", "sudo cpupower frequency-set -g performance"),
    (limited, "limited-frequency", "sudo cpupower frequency-set -u 4200MHz"),
    (battery, "battery", "charger"),
    (swapping, "swapping", "top -o %MEM"),
    (little_memory, "little-memory", "docker update --memory"),
    (slow_disk, "slow-disk", "SSD"),
    (windows_drive, "windows-drive", "cp -r"),
    (wsl_1, "wsl-1", "wsl --set-version"),
    (launch_blocking, "launch-blocking", "unset CUDA_LAUNCH_BLOCKING"),
    (deterministic, "deterministic", "unset TF_DETERMINISTIC_OPS"),
    (no_tf32, "no-tf32", "unset NVIDIA_TF32_OVERRIDE"),
    (onednn_off, "onednn-off", "unset TF_ENABLE_ONEDNN_OPTS"),
    (few_threads, "few-threads", "unset TF_NUM_INTRAOP_THREADS"),
    (too_late, "set-too-late", "TF_GPU_THREAD_MODE"),
    (elsewhere, "other-environment", "ipykernel install"),
    (other_backend, "keras-backend", "export KERAS_BACKEND=tensorflow"),
    (shadowed, "shadowed-libraries", "unset LD_LIBRARY_PATH"),
    (wrong_result, "wrong-result", "overclocking"),
    (falls_back, "no-result", "pip install"),
    (left_out, "start-log", "sudo reboot"),
    (does_not_start, "no-start", "pip install"),
)
