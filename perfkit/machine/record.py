"""What computer is this? The facts that a reader of a finding needs.

Every part is None, and every reading in it, where this machine gives no answer: what is
not known is never 0 and never a guess.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from perfkit import units
from perfkit.machine.gpu import Driver, Gpu

Platform = Literal["linux", "container", "wsl1", "wsl2", "macos", "windows", "other"]
Build = Literal["cuda", "rocm", "cpu", "metal", "none", "unknown"]
Weight = Literal["fatal", "matters", "harmless", "unexplained"]

# With one of these TensorFlow for Linux turns oneDNN on. Of Arm's processors it does so
# on Neoverse V1 alone, which instructions do not tell from others.
_ONEDNN = frozenset(
    ("avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16")
)


@dataclass(frozen=True, kw_only=True)
class Processor:
    """What the cores are, and whether they save power.

    Attributes:
        instructions: Those that matter for speed, as Linux spells them: ``"avx2"``,
            ``"fma"``, ``"avx512f"``, ``"avx512_bf16"``, ``"amx_bf16"``.
        physical_cores: Cores without their second threads.
        frequency_max: Hertz that a core may reach.
        governor: How Linux picks the frequency, such as ``"powersave"``.
        frequency_driver: What sets it, such as ``"intel_pstate"``: there
            ``"powersave"`` follows the load, with others it is the lowest frequency.
        preference: Whether such a driver prefers speed or saving power, such as
            ``"balance_performance"`` or ``"power"``.
    """

    instructions: tuple[str, ...] | None = None
    physical_cores: int | None = None
    frequency_max: float | None = None
    governor: str | None = None
    frequency_driver: str | None = None
    preference: str | None = None

    @property
    def uses_onednn(self) -> bool:
        """Whether TensorFlow turns oneDNN on by itself, or may, where none is told."""
        return self.instructions is None or not _ONEDNN.isdisjoint(self.instructions)


@dataclass(frozen=True, kw_only=True)
class Busy:
    """A program, by name alone, and the cores it kept busy."""

    program: str
    cores: float


@dataclass(frozen=True, kw_only=True)
class Load:
    """What else the machine did while it was described.

    Attributes:
        others: Cores that other programs kept busy: all but this process and those
            that it started.
        memory_free: Bytes of RAM that this process could still take.
        on_battery: Whether a laptop runs on its battery; None without a battery.
        top: The programs that took most, most first.
    """

    others: float | None = None
    memory_free: int | None = None
    on_battery: bool | None = None
    top: tuple[Busy, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Software:
    """What TensorFlow is here and what it stands on.

    Attributes:
        platform: What kind of system this is; of a container under WSL, WSL's.
        container: Whether it runs in a container, on whatever kind of system.
        build: Which TensorFlow is installed; nothing is imported to find out.
        packages: Distributions that bring a module ``tensorflow``; two are a fault.
        cuda: Version that the build was made with, and so ``cudnn``.
        capabilities: Compute capabilities that the build has kernels for, as it spells
            them: ``"sm_80"`` is native, ``"compute_90"`` is compiled at first use.
        set_late: Variables that were seen to change when TensorFlow had been loaded.
    """

    platform: Platform
    container: bool = False
    build: Build = "unknown"
    packages: tuple[str, ...] = ()
    cuda: str | None = None
    cudnn: str | None = None
    capabilities: tuple[str, ...] | None = None
    set_late: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Disk:
    """The disk under a folder.

    Attributes:
        filesystem: As the system names it, such as ``"ext4"``, ``"9p"``, ``"nfs4"``.
        windows: Whether it is a Windows drive seen from WSL, such as ``/mnt/c``.
    """

    filesystem: str | None = None
    windows: bool = False


@dataclass(frozen=True, kw_only=True)
class Said:
    """A line that TensorFlow logs as it starts, and what it means.

    Attributes:
        line: Its text, without paths and times.
        meaning: In words; "" where nobody has explained it.
        weight: Whether it keeps the GPU away, costs speed, or may be left alone.
    """

    line: str
    meaning: str
    weight: Weight


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One computation on one device, held against the same in float64 on the CPU.

    Attributes:
        device: Where it was asked to run, such as ``"GPU:0"``.
        computation: ``"convolution"`` or ``"matrix product"``.
        ran_on: Where it ran.
        error: The largest difference, as a share of the largest value; None where it
            gave no result.
        allowed: The error that rounding alone explains.
        problem: What went wrong, in a sentence; "" where it ended well.
    """

    device: str
    computation: str
    ran_on: str = ""
    error: float | None = None
    allowed: float = 0.0
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Start:
    """What TensorFlow said and did when it was started in a process of its own.

    Attributes:
        seconds: That importing it took.
        said: Its log, line by line, each explained where it can be.
        devices: Those it can use, such as ``("CPU:0", "GPU:0")``.
        proofs: What each of them computed.
        problem: Why it could not be started, in a sentence; "" where it could.
    """

    seconds: float | None = None
    said: tuple[Said, ...] = ()
    devices: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A computer, without its host name, its users or their paths.

    Attributes:
        cpu: Model name.
        cores: Logical cores present.
        cores_granted: Cores this process may use: affinity and cgroup quota considered.
        cores_quota: Cores whose time a cgroup grants, such as a container's; None where
            no quota is seen.
        cores_affinity: Cores this process may run on; None where that is not known.
        memory: Bytes of RAM this process may use.
        memory_present: Bytes of RAM the system has; None if unknown.
        system: Operating system and release, such as ``"Linux 6.1"``.
        python: Version.
        versions: Of the libraries that matter, by distribution name; ``"tensorflow"``
            is the module, whichever distribution brought it.
        environment: The TF_*, CUDA_*, XLA_*, OMP_* variables that are set.
        gpus: One record each.
        no_gpu: Why ``gpus`` is empty, in one sentence; "" where it is not.
        nvidia_cards: Cards of NVIDIA's on the bus, whether or not a driver answers for
            them; None where the system does not list them (WSL, Windows).
        driver: NVIDIA's; None where there is none.
        processor: What the cores are.
        load: What else the machine did meanwhile.
        software: What TensorFlow is here.
        disk: Under the folder that holds the data; None where nobody asked.
        start: What TensorFlow did when it was started; None until it was.
    """

    cpu: str
    cores: int
    cores_granted: float
    memory: int
    memory_present: int | None = None
    system: str
    python: str
    versions: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    cores_quota: float | None = None
    cores_affinity: int | None = None
    gpus: tuple[Gpu, ...] = ()
    no_gpu: str = ""
    nvidia_cards: int | None = None
    driver: Driver | None = None
    processor: Processor | None = None
    load: Load | None = None
    software: Software | None = None
    disk: Disk | None = None
    start: Start | None = None

    @property
    def summary(self) -> str:
        """The machine on one line, for captions and tables."""
        granted = units.significant(self.cores_granted)
        cores = f"{granted} of {self.cores}"
        if self.cores_granted == self.cores:
            cores = granted
        plural = "core" if cores == "1" else "cores"
        alike = Counter(gpu.name for gpu in self.gpus)
        gpus = [f"{n} x {name}" if n > 1 else name for name, n in alike.items()]
        parts = [self.cpu, f"{cores} {plural}", units.size(self.memory), *gpus]
        return ", ".join([*parts, *([] if gpus else ["no GPU"]), self.system])
