"""Computers that do not exist: what /proc and /sys say there, as a folder.

``described(root, files)`` collects one, with nothing of the computer that the tests run
on: ``computer()`` is a healthy one, and each function below gives the files that make
it another. ``System`` answers for psutil.
"""

import os
import platform
import types
from collections import namedtuple
from unittest import mock

from perfkit.machine import collect, environment, limits, nvml

XEON = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
WSL2 = "5.15.153.1-microsoft-standard-WSL2"

CORE = """\
processor\t: {number}
vendor_id\t: GenuineIntel
model name\t: {model}
flags\t\t: fpu sse sse2 ht sse4_1 sse4_2 avx f16c fma avx2 avx512f avx512_vnni

"""
BUILD = "import collections\nbuild_info = collections.OrderedDict([{pairs}])\n"
CUDA = {
    "cpu_compiler": "clang",
    "cuda_compute_capabilities": ["sm_60", "sm_70", "sm_80", "sm_89", "compute_90"],
    "cuda_version": "12.5.1",
    "cudnn_version": "9",
    "is_cuda_build": True,
    "is_rocm_build": False,
}
CPU = {"cpu_compiler": "clang", "is_cuda_build": False, "is_rocm_build": False}
NO_DRIVER = "No NVIDIA driver is installed."


def grow(root, files):
    """Write ``files``, a text by path, under ``root``."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def computer(cores=8, release="6.8.0-45-generic", *, model=XEON):
    """The files of an ordinary Linux computer."""
    every_core = (CORE.format(number=n, model=model) for n in range(cores))
    return {
        "proc/cpuinfo": "".join(every_core),
        "proc/sys/kernel/osrelease": release + "\n",
        "proc/sys/kernel/hostname": "engine\n",
        "proc/2/comm": "kthreadd\n",
        "proc/self/cgroup": "0::/\n",
        "sys/bus/pci/devices/0000:00:02.0/vendor": "0x8086\n",
        "sys/bus/pci/devices/0000:00:02.0/class": "0x030000\n",
    }


def scaling(governor="powersave"):
    """How the frequency is set; an ordinary laptop where nothing is said."""
    words = {
        "scaling_driver": "intel_pstate",
        "scaling_governor": governor,
        "cpuinfo_max_freq": "4200000",
        "energy_performance_preference": "balance_performance",
    }
    return {
        f"sys/devices/system/cpu/cpufreq/policy0/{name}": f"{text}\n"
        for name, text in words.items()
    }


def quota(cores, gigabytes, used=1):
    """A container's limits, and the GB it uses.

    A quarter of these is files that were read, half of it read again.
    """
    read = f"{used * 10**9 // 8:.0f}"
    return {
        "sys/fs/cgroup/cpu.max": f"{cores * 100_000:.0f} 100000\n",
        "sys/fs/cgroup/memory.max": f"{gigabytes * 10**9:.0f}\n",
        "sys/fs/cgroup/memory.current": f"{used * 10**9:.0f}\n",
        "sys/fs/cgroup/memory.stat": f"inactive_file {read}\nactive_file {read}\n",
    }


def container():
    """Docker's marks."""
    return {".dockerenv": "", "proc/2/comm": "bash\n"}


def nvidia_card(slot="0000:01:00.0", device_class="0x030000"):
    """A card on the bus, with its sound."""
    bus = "sys/bus/pci/devices"
    return {
        f"{bus}/{slot}/vendor": "0x10de\n",
        f"{bus}/{slot}/class": f"{device_class}\n",
        f"{bus}/{slot[:-1]}1/vendor": "0x10de\n",
        f"{bus}/{slot[:-1]}1/class": "0x040300\n",
    }


def tensorflow(build=CUDA, version="2.21.0", name="tensorflow"):
    """A TensorFlow among the packages; ``build`` is what its build wrote."""
    pairs = ", ".join(map(repr, build.items()))
    return {
        **package(name, version),
        "tensorflow/__init__.py": "raise RuntimeError('imported')\n",
        "tensorflow/python/platform/build_info.py": BUILD.format(pairs=pairs),
        **package("keras", "3.15.1"),
    }


def package(name, version):
    """Another package, without what is in it."""
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    return {
        f"{about}/METADATA": f"Name: {name}\nVersion: {version}\n",
        f"{name}/__init__.py": "raise RuntimeError('imported')\n",
    }


def described(
    root,
    files,
    variables=None,
    *,
    system=None,
    packages=None,
    driver=(None, (), NO_DRIVER),
    names=(),
    loaded=(),
    seen=None,
    calls_itself=None,
    affinity=None,
):
    """Collect the computer of these files, and nothing of the one at hand.

    ``driver`` is what ``nvml.gpus`` tells, ``names`` tell whose machine it is, ``seen``
    are the variables as they were when TensorFlow was loaded, and ``calls_itself``
    answers for Python's ``platform``.
    """
    grow(root, files)
    grow(root / "site", tensorflow() if packages is None else packages)
    counters, seen = system or System(), {} if seen is None else seen
    python = types.SimpleNamespace(
        path=[str(root / "site")], modules=dict.fromkeys(loaded)
    )
    names_itself = {"system": "Linux", "processor": "x86_64"} | (calls_itself or {})
    functions = {n: mock.Mock(return_value=name) for n, name in names_itself.items()}
    with (
        mock.patch.multiple(
            collect, psutil=counters, sys=python, _SEEN=seen, WINDOW_S=0.0
        ),
        mock.patch.object(environment, "own_names", return_value=names),
        mock.patch.object(nvml, "gpus", return_value=driver),
        mock.patch.object(limits, "affinity", return_value=affinity),
        mock.patch.multiple(platform, **functions),
        mock.patch.dict(os.environ, variables or {}, clear=True),
    ):
        return collect.machine(root)


class System:
    """What psutil tells of a computer.

    Programs are named with the cores that they keep busy; in place of these, processes
    have a number, a name, a parent and cores.
    """

    def __init__(
        self,
        cores=8,
        gigabytes=32,
        free=None,
        on_battery=None,
        programs=(),
        processes=(),
        **told,
    ):
        self.cores, self.on_battery = cores, on_battery
        self.total = gigabytes * 10**9
        self.available = 3 * self.total // 4 if free is None else int(free * 10**9)
        others = enumerate(dict(programs).items(), 2)
        named = [(number, name, 1, busy) for number, (name, busy) in others]
        self.processes = processes or [(os.getpid(), "python", 1, 0.0), *named]
        vars(self).update(told)

    def cpu_count(self, logical=True):
        return self.cores if logical else self.cores // 2

    def virtual_memory(self):
        return types.SimpleNamespace(total=self.total, available=self.available)

    def sensors_battery(self):
        if self.on_battery is None:
            return None
        return types.SimpleNamespace(power_plugged=not self.on_battery)

    def cpu_times_percent(self):
        busy = 100 * sum(cores for *_, cores in self.processes) / self.cores
        return Times(busy, 100 - busy, guest=busy)

    def process_iter(self, _):
        for number, name, _, cores in self.processes:
            info = {"name": name, "cpu_percent": 100 * cores}
            yield types.SimpleNamespace(pid=number, info=info)

    def Process(self):
        family, started = {os.getpid()}, []
        for number, _, parent, _ in self.processes:
            if parent in family:
                family.add(number)
                started.append(types.SimpleNamespace(pid=number))
        return types.SimpleNamespace(children=lambda recursive: started)


# Shares of the time of all cores, as psutil gives them.
Times = namedtuple("Times", "user idle guest iowait steal", defaults=(0,) * 5)
