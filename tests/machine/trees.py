"""Computers that do not exist: what /proc and /sys say there, as a folder.

``described(root, files)`` collects one, with nothing of the computer that the tests run
on: ``computer()`` is a healthy one, and each function below gives the files that make
it another. What happens between two looks at the load is ``later``.
"""

import types

from perfkit.machine.collect import Surroundings, machine
from perfkit.machine.record import Library

XEON = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
OLD = "fpu sse sse2 ht sse4_1 sse4_2 avx"
AVX2 = "fpu sse sse2 ht sse4_1 sse4_2 avx f16c fma avx2"
AVX512 = f"{AVX2} avx512f avx512dq avx512bw avx512vl avx512_vnni"
AMX = f"{AVX512} avx512_bf16 avx512_fp16 avx_vnni amx_tile amx_int8 amx_bf16"
WSL1 = "4.4.0-19041-Microsoft"
WSL2 = "5.15.153.1-microsoft-standard-WSL2"
ME = 400
# Ticks of 10 ms that each core has between the two looks.
WINDOW = 30

CORE = """\
processor\t: {number}
vendor_id\t: GenuineIntel
model name\t: {model}
cpu MHz\t\t: {megahertz}
physical id\t: 0
core id\t\t: {core}
cpu cores\t: {cores}
flags\t\t: {flags}

"""
BUILD = """\
# Made by the build.
import collections

build_info = collections.OrderedDict([{pairs}])
"""
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
LOADED = tuple(
    Library(name=name, version="12.5", origin="package")
    for name in ("libcudart.so.12", "libcublas.so.12", "libcudnn.so.9")
)


def grow(root, files):
    """Write ``files``, a text by path, under ``root``."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def computer(
    cores=8,
    gigabytes=32,
    release="6.8.0-45-generic",
    *,
    model=XEON,
    flags=AVX512,
    threads=2,
):
    """The files of an ordinary Linux computer."""
    return {
        "proc/cpuinfo": cpuinfo(cores, model, flags, threads),
        "proc/meminfo": meminfo(gigabytes),
        "proc/sys/kernel/osrelease": release + "\n",
        "proc/sys/kernel/hostname": "engine\n",
        "proc/version": f"Linux version {release} (buildd@lcy02) #45 SMP\n",
        "proc/2/comm": "kthreadd\n",
        "proc/self/status": f"Name:\tpython\nCpus_allowed_list:\t0-{cores - 1}\n",
        "proc/self/cgroup": "0::/\n",
        "proc/self/stat": process(ME, "python"),
        "proc/self/mountinfo": "22 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw\n",
        **ticking(cores),
        **topology(cores, threads),
        "sys/bus/pci/devices/0000:00:02.0/vendor": "0x8086\n",
        "sys/bus/pci/devices/0000:00:02.0/class": "0x030000\n",
    }


def cpuinfo(cores, model=XEON, flags=AVX512, threads=2, megahertz="2700.000"):
    return "".join(
        CORE.format(
            number=number,
            model=model,
            flags=flags,
            core=number % max(1, cores // threads),
            cores=cores // threads,
            megahertz=megahertz,
        )
        for number in range(cores)
    )


def meminfo(gigabytes, *, available=None, swap=2, swap_free=None):
    """All in GB; what is not given is free."""
    left = gigabytes * 0.75 if available is None else available
    return (
        f"MemTotal:       {gigabytes * 10**6} kB\nMemFree:        1 kB\n"
        f"MemAvailable:   {left * 10**6:.0f} kB\n"
        f"SwapTotal:      {swap * 10**6} kB\n"
        f"SwapFree:       {(swap if swap_free is None else swap_free) * 10**6:.0f} kB\n"
        "HugePages_Total:       0\n"
    )


def topology(cores, threads=2):
    """Which threads share a core; second threads are numbered after all first ones."""
    each = max(1, cores // threads)
    return {
        f"sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": ",".join(
            str(n % each + each * thread) for thread in range(cores // each)
        )
        + "\n"
        for n in range(cores)
    } | {"sys/devices/system/node/node0/cpulist": f"0-{cores - 1}\n"}


def ticking(cores=8, *, ticks=0, mine=0, steal=0, others=()):
    """The load's counters after ``ticks`` of every core.

    Args:
        cores: How many there are.
        ticks: That each had.
        mine: Of them, by this process.
        steal: By other machines, of all cores together.
        others: Name and ticks of other programs.
    """
    busy = mine + sum(used for _, used in others)
    idle = 50_000 + cores * ticks - busy - steal
    counted = f"{1000 + busy} 7 200 {idle} 30 0 4 {10 + steal} 0 0"
    lines = [f"cpu{n} 1 0 1 1 0 0 0 0 0 0" for n in range(cores)]
    found = {"proc/stat": "\n".join([f"cpu  {counted}", *lines, "intr 5 0"]) + "\n"}
    found[f"proc/{ME}/stat"] = process(ME, "python", used=mine)
    for number, (name, used) in enumerate(others):
        found[f"proc/{500 + number}/stat"] = process(500 + number, name, used=used)
    return found


def process(number, name, *, parent=1, used=0, ended=0, started=9):
    """A line of /proc/[number]/stat; ``used`` and ``ended`` in ticks."""
    return (
        f"{number} ({name}) S {parent} 1 1 0 -1 4194304 9 9 0 0 {used} 0 {ended} 0 "
        f"20 0 1 0 {started} 1000 50 18446744073709551615\n"
    )


def busy(cores=8, **used):
    """What ``later`` must be, for a window in which the counters moved by this."""
    return ticking(cores, ticks=WINDOW, **used)


def scaling(cores=8, *, driver="intel_pstate", governor="powersave", **more):
    """How the frequency is set, in kHz; an ordinary laptop where nothing is said."""
    said = {
        "scaling_driver": driver,
        "scaling_governor": governor,
        "cpuinfo_max_freq": "4200000",
        "scaling_max_freq": "4200000",
        "scaling_cur_freq": "1200000",
        "energy_performance_preference": "balance_performance",
    } | more
    return {
        f"sys/devices/system/cpu/cpufreq/policy{number}/{name}": f"{text}\n"
        for number in range(cores)
        for name, text in said.items()
        if text is not None
    }


def battery(status="Discharging", *, plugged=False):
    """A laptop's power, with a mouse that has a battery too, and is online."""
    power = "sys/class/power_supply"
    return {
        f"{power}/BAT0/type": "Battery\n",
        f"{power}/BAT0/status": f"{status}\n",
        f"{power}/AC/type": "Mains\n",
        f"{power}/AC/online": f"{int(plugged)}\n",
        f"{power}/hidpp_battery_0/type": "Battery\n",
        f"{power}/hidpp_battery_0/scope": "Device\n",
        f"{power}/hidpp_battery_0/status": "Discharging\n",
        f"{power}/hidpp_battery_0/online": "1\n",
    }


def cached(used, prefix=""):
    """Of GB in use a quarter is files that were read, half of it read again."""
    each = f"{used * 10**9 // 8:.0f}"
    return f"{prefix}inactive_file {each}\n{prefix}active_file {each}\n"


def quota_v2(cores, gigabytes, used=1, swap=0):
    """A container's limits, the GB it uses, and its bytes in swap."""
    return {
        "sys/fs/cgroup/cpu.max": f"{cores * 100_000:.0f} 100000\n",
        "sys/fs/cgroup/memory.max": f"{gigabytes * 10**9:.0f}\n",
        "sys/fs/cgroup/memory.current": f"{used * 10**9:.0f}\n",
        "sys/fs/cgroup/memory.stat": f"anon 5\n{cached(used)}",
        "sys/fs/cgroup/memory.swap.current": f"{swap}\n",
    }


def quota_v1(cores, gigabytes, used=1, swap=0):
    """The same on an older system."""
    memory = "sys/fs/cgroup/memory"
    return {
        "proc/self/cgroup": "5:memory:/docker/4f2a\n4:cpu,cpuacct:/docker/4f2a\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": f"{cores * 100_000:.0f}\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        f"{memory}/memory.limit_in_bytes": f"{gigabytes * 10**9:.0f}\n",
        f"{memory}/memory.usage_in_bytes": f"{used * 10**9:.0f}\n",
        f"{memory}/memory.stat": f"total_swap {swap}\n{cached(used, 'total_')}",
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


def windows_drive():
    """How WSL 2 shows the drives of Windows."""
    options = "rw,dirsync,aname=drvfs;path=C:\\;uid=1000"
    return {
        "proc/self/mountinfo": "60 1 8:32 / / rw - ext4 /dev/sdc rw\n"
        f"91 60 0:53 / /mnt/c rw,noatime - 9p C:\\134 {options}\n"
    }


def tensorflow(build=CUDA, version="2.21.0", name="tensorflow", *, brings=True):
    """A TensorFlow among the packages; ``build`` is what its build wrote."""
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    record = "tensorflow/__init__.py,sha256=x,9\n" if brings else "README,,\n"
    pairs = ", ".join(map(repr, build.items()))
    return {
        "tensorflow/__init__.py": "raise RuntimeError('imported')\n",
        "tensorflow/python/platform/build_info.py": BUILD.format(pairs=pairs),
        f"{about}/METADATA": f"Name: {name}\nVersion: {version}\n",
        f"{about}/RECORD": record,
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
    later=None,
    packages=None,
    gpus=(),
    no_gpu=NO_DRIVER,
    driver=None,
    libraries=(),
    **around,
):
    """Collect the computer of these files, and nothing of the one at hand.

    Args:
        root: An empty folder.
        files: By path.
        variables: The environment.
        later: Files that have changed at the second look.
        packages: What is installed, by path; None for TensorFlow with CUDA.
        gpus: What the driver describes, ``no_gpu`` why there are none.
        driver: Itself.
        libraries: How those that a GPU needs were found.
        **around: Fields of ``Surroundings``.
    """
    grow(root, files)
    grow(root / "site", tensorflow() if packages is None else packages)
    scripted = {
        "root": root,
        "variables": variables or {},
        "names": (),
        "kind": "Linux",
        "system": "Linux",
        "cpu": "x86_64",
        "counters": counters(),
        "python": "3.11.7",
        "prefix": str(root / "venv"),
        "paths": (str(root / "site"),),
        "loaded": (),
        "seen": {},
        "gpus": lambda: (driver, tuple(gpus), "" if gpus else no_gpu),
        "trying": lambda *_: lambda: tuple(libraries),
        "wait": lambda _: grow(root, later or {}),
    }
    return machine(Surroundings(**scripted | around))


def counters(**told):
    """What psutil tells where there is no /proc; nothing but the least."""
    least = {
        "cpu_count": lambda logical=True: 4 if logical else 2,
        "virtual_memory": lambda: types.SimpleNamespace(
            total=8 * 10**9, available=5 * 10**9
        ),
        "swap_memory": lambda: types.SimpleNamespace(total=10**9, used=10**8),
        "cpu_freq": lambda: None,
        "sensors_battery": lambda: None,
        "cpu_times": lambda: Times(0, 0, 0),
        "process_iter": lambda _: [],
    }
    return types.SimpleNamespace(**least | told)


class Times(tuple):
    """Seconds of all cores, as psutil gives them."""

    def __new__(cls, user, system, idle):
        return super().__new__(cls, (user, system, idle))

    @property
    def idle(self):
        return self[2]
