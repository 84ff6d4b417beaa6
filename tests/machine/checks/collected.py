"""Whole machines as files and a driver's script, which the collectors then read.

``HEALTHY`` and ``FAULTY`` hold ``Scripted`` machines; ``read`` collects one and says
what the checks make of it.
"""

from dataclasses import dataclass, field, replace

from perfkit.machine.checks import checks
from perfkit.machine.record import Start
from perfkit.machine.starting.log import said
from tests.machine import trees
from tests.machine.checks.computers import libraries, proved
from tests.machine.trees import CPU, battery, computer, container, scaling

CARD = trees.nvidia_card()
PROCESSOR_BUILD = trees.tensorflow(CPU, name="tensorflow-cpu")


@dataclass(frozen=True)
class Scripted:
    """A machine that does not exist.

    Attributes:
        name: Of the machine; of a faulty one the rule that must be named first.
        files: Of ``proc`` and ``sys``.
        card: The driver's script; "" where there is no driver.
        remedy: A piece of what must be told to type.
        log: What TensorFlow logs as it starts; None where it is not started.
        more: What ``trees.described`` takes besides.
    """

    name: str
    files: dict = field(default_factory=computer)
    card: str = ""
    remedy: str = ""
    log: str | None = None
    more: dict = field(default_factory=dict)

    def read(self, root, driver_says):
        """Collect it; ``driver_says`` is the driver's answer by script."""
        driver, gpus, why = driver_says.get(self.card, (None, (), trees.NO_DRIVER))
        told = {"libraries": libraries() if gpus else ()} | self.more
        machine = trees.described(
            root, self.files, driver=driver, gpus=gpus, no_gpu=why, **told
        )
        if self.log is None:
            return checks(machine)
        start = Start(devices=("CPU:0",), said=said(self.log), proofs=proved("CPU:0"))
        return checks(replace(machine, start=start))


def tower(**files):
    """A computer with a card in it."""
    return computer() | CARD | scaling() | files


def with_variables(**variables):
    return {"variables": variables}


HEALTHY = (
    Scripted("a card at work in a data centre", tower(), "data_centre"),
    Scripted("two Hoppers at rest", tower(), "hopper"),
    Scripted("an Ampere in a container with all it may want",
     tower() | container() | trees.quota_v2(8, 32, used=3), "ampere"),
    Scripted("a gaming card whose link sleeps", tower(), "idle_link"),
    Scripted("a gaming card at work", tower(), "gaming"),
    Scripted("a small card for the screen beside a large one", tower(), "two_unlike"),
    Scripted("a small card alone", tower(), "small_card"),
    Scripted("a laptop on mains", tower() | battery("Charging", plugged=True),
     "laptop"),
    Scripted("WSL with a card", computer(release=trees.WSL2), "wsl"),
    Scripted("a server without a card",
     computer(cores=64, gigabytes=256) | scaling(64, governor="performance"),
     log="I0000 00:00:1 1 x.cc:31] Could not find cuda drivers on your machine, GPU "
     "will not be used."),
    Scripted("a laptop without a card",
     computer(gigabytes=16) | battery("Full", plugged=True) | scaling(),
     more={"packages": PROCESSOR_BUILD}),
    Scripted("a Mac", {},
     more={"kind": "Darwin", "system": "macOS 15.1", "packages": PROCESSOR_BUILD}),
    Scripted("Windows", {},
     more={"kind": "Windows", "system": "Windows 11", "packages": PROCESSOR_BUILD}),
)  # fmt: skip

FAULTY = (
    Scripted("no-driver", tower(), remedy="sudo ubuntu-drivers install"),
    Scripted("no-driver", tower() | container(), remedy="docker run --gpus all"),
    Scripted("no-driver", computer(release=trees.WSL2), remedy="wsl --shutdown",
     more={"packages": trees.tensorflow() | trees.package("nvidia-cuda-runtime-cu12",
     "12.5.82")}),
    Scripted("driver-mismatch", tower(), "version_mismatch", "sudo reboot"),
    Scripted("driver-not-loaded", tower(), "not_loaded", "sudo modprobe nvidia"),
    Scripted("driver-refused", tower(), "no_permission", "usermod -aG"),
    Scripted("driver-silent", tower(), "no_card", "nvidia-smi"),
    Scripted("lost-card", tower(), "card_gone", "sudo reboot"),
    Scripted("cpu-only-build", tower(), "idle_link",
     'python -m pip install "tensorflow[and-cuda]==2.21.0"',
     more={"packages": PROCESSOR_BUILD}),
    Scripted("two-tensorflows", tower(), "idle_link", "uninstall -y",
     more={"packages": trees.tensorflow() | PROCESSOR_BUILD}),
    Scripted("no-tensorflow", remedy="pip install", more={"packages": {}}),
    Scripted("missing-library", tower(), "gaming", "tensorflow[and-cuda]",
     log="W0000 00:00:1 1 gpu_device.cc:2342] Cannot dlopen some GPU libraries. "
     "Skipping registering GPU devices...",
     more={"libraries": libraries("not found", missing=("libcudnn.so.9",))}),
    Scripted("no-libcuda", tower() | container(), "gaming",
     "NVIDIA_DRIVER_CAPABILITIES=compute",
     log="E0000 00:00:1 1 cuda_platform.cc:52] failed call to cuInit: INTERNAL: "
     "CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)",
     more={"libraries": libraries("not found", missing=("libcuda.so.1",))}),
    Scripted("wrong-cudnn", tower(), "idle_link", "tensorflow[and-cuda]",
     more={"packages": trees.tensorflow() | trees.package("nvidia-cudnn-cu12",
     "9.1.0.70")}),
    Scripted("hidden-gpu", tower(), "idle_link", "unset CUDA_VISIBLE_DEVICES",
     more=with_variables(CUDA_VISIBLE_DEVICES="-1")),
    Scripted("small-gpu", tower(), "small_card",
     "export TF_MIN_GPU_MULTIPROCESSOR_COUNT=3",
     more=with_variables(TF_MIN_GPU_MULTIPROCESSOR_COUNT="8")),
    Scripted("native-windows", {}, "wsl", "wsl --install", more={"kind": "Windows",
     "system": "Windows 11", "packages": trees.tensorflow(CPU)}),
    Scripted("wsl-1", computer(release=trees.WSL1), remedy="wsl --set-version"),
    Scripted("slow-link", tower(), "gaming_x8", "BIOS"),
    Scripted("throttled", tower(), "laptop_throttled", "nvidia-smi -i 0 -q"),
    Scripted("shared-gpu", tower(), "held", "nvidia-smi -i 0"),
    Scripted("mig", tower(), "mig_slice", "-i 0000:07:00.0 -mig 0"),
    Scripted("exclusive-gpu", tower(), "exclusive", "-c DEFAULT"),
    Scripted("start-log", tower(), "idle_link", "sudo reboot",
     log="E0000 00:00:1 1 cuda_driver.cc:1] failed call to cuInit: INTERNAL: "
     "CUDA error: Failed call to cuInit: CUDA_ERROR_UNKNOWN"),
    Scripted("few-cores", tower() | container() | trees.quota_v2(2, 32, used=3),
     "ampere", "docker update --cpus 8"),
    Scripted("few-cores", computer() | trees.quota_v1(1.5, 32, used=3),
     remedy="docker update --cpus 8"),
    Scripted("few-cores",
     computer() | {"proc/self/status": "Cpus_allowed_list:\t0-1\n"},
     remedy="taskset -cp 0-7"),
    Scripted("battery", tower() | battery(), "idle_link", "charger"),
    Scripted("governor",
     computer() | scaling(driver="acpi-cpufreq", energy_performance_preference=None),
     remedy="sudo cpupower frequency-set -g performance"),
    Scripted("limited-frequency", computer() | scaling(scaling_max_freq="1400000"),
     remedy="-u 4200MHz"),
    Scripted("swapping", computer(gigabytes=16) | {"proc/meminfo": trees.meminfo(16,
     available=1.8, swap=8, swap_free=1)}, remedy="top -o %MEM"),
    Scripted("little-memory", computer() | container() | trees.quota_v2(8, 2),
     remedy="docker update --memory"),
    Scripted("busy-cores", computer(), remedy="top",
     more={"later": trees.busy(others=(("stress", 110), ("chrome", 12)))}),
    Scripted("stolen-time", computer(), remedy="machine type",
     more={"later": trees.busy(steal=60)}),
    Scripted("launch-blocking", tower(), "gaming", "unset CUDA_LAUNCH_BLOCKING",
     more=with_variables(CUDA_LAUNCH_BLOCKING="1")),
    Scripted("deterministic", tower(), "hopper", "unset TF_DETERMINISTIC_OPS",
     more=with_variables(TF_DETERMINISTIC_OPS="1")),
    Scripted("onednn-off", computer(), remedy="unset TF_ENABLE_ONEDNN_OPTS",
     more=with_variables(TF_ENABLE_ONEDNN_OPTS="0")),
    Scripted("few-threads", computer(), remedy="unset TF_NUM_INTRAOP_THREADS",
     more=with_variables(TF_NUM_INTRAOP_THREADS="1")),
    Scripted("keras-backend", computer(), remedy="export KERAS_BACKEND=tensorflow",
     more=with_variables(KERAS_BACKEND="torch")),
    Scripted("set-too-late", computer(), remedy="restart the kernel",
     more={"loaded": ("tensorflow",), "seen": {"TF_GPU_THREAD_MODE": "global"},
     "variables": {"TF_GPU_THREAD_MODE": "gpu_private"}}),
    Scripted("other-environment", computer(), remedy="ipykernel install",
     more=with_variables(VIRTUAL_ENV="/opt/course")),
)  # fmt: skip
