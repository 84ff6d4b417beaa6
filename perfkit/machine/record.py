"""What computer is this? The facts that a reader of a finding needs.

Every part is None, and every reading in it, where this machine gives no answer: what is
not known is never 0 and never a guess.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from perfkit import units

Platform = Literal["linux", "container", "wsl1", "wsl2", "macos", "windows", "other"]
Build = Literal["cuda", "rocm", "cpu", "metal", "none", "unknown"]
# Only files of earlier versions hold lines that nobody explained.
Weight = Literal["fatal", "matters", "harmless", "unexplained"]


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
        platform: What kind of system this is; of a container under WSL, WSL's. Only
            files of earlier versions tell WSL 1 apart.
        container: Whether it runs in a container, on whatever kind of system.
        build: Which TensorFlow is installed; nothing is imported to find out.
        packages: Distributions that bring a module ``tensorflow``.
        cuda: Version that the build was made with.
        capabilities: Compute capabilities that the build has kernels for, as it spells
            them: ``"sm_80"`` is native, ``"compute_90"`` is compiled at first use.
        set_late: Variables that were seen to change when TensorFlow had been loaded.
    """

    platform: Platform = "other"
    container: bool = False
    build: Build = "unknown"
    packages: tuple[str, ...] = ()
    cuda: str | None = None
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
        meaning: In words.
        weight: Whether it keeps the GPU away or costs speed.
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
        said: The lines of its log that matter, each explained.
        devices: Those it can use, such as ``("CPU:0", "GPU:0")``.
        proofs: What each of them computed.
        problem: Why it could not be started, in a sentence; "" where it could.
    """

    seconds: float | None = None
    said: tuple[Said, ...] = ()
    devices: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    problem: str = ""


# A GPU that is busy for half of the time has left its idle clocks and its idle link.
BUSY = 0.5
# Other bits are idling, clocks that somebody set, cards in step, a display: no faults.
_THROTTLES = {
    0x4: "power limit reached",
    0x8: "hardware slowdown (heat or power)",
    0x20: "too warm, slowed by the driver",
    0x40: "too hot, slowed by the hardware",
    0x80: "power brake (external power supply)",
    0x200: "board limit",
    0x400: "voltage limit",
}


def throttle_reasons(mask: float) -> tuple[str, ...]:
    """What slows the GPU's clocks, in words; nothing for idle or clocks set by hand."""
    return tuple(words for bit, words in _THROTTLES.items() if int(mask) & bit)


# Bits per second of one lane in one direction, by generation: transfers times the share
# of them that carries data (8 of 10, 128 of 130, 242 of 256 bits).
_BITS = {
    1: 2.5e9 * 8 / 10,
    2: 5e9 * 8 / 10,
    3: 8e9 * 128 / 130,
    4: 16e9 * 128 / 130,
    5: 32e9 * 128 / 130,
    6: 64e9 * 242 / 256,
}


def link_rate(generation: int | None, width: int | None) -> float | None:
    """Bytes per second in one direction, in theory; None if it is not known."""
    if generation not in _BITS or not width:
        return None
    return _BITS[generation] / 8 * width


Problem = Literal[
    "", "no driver", "not loaded", "mismatch", "no permission", "no answer"
]


@dataclass(frozen=True, kw_only=True)
class Link:
    """The way between a GPU and the rest of the machine: PCI Express.

    Attributes:
        generation: In use at the moment of asking; it falls while the GPU idles.
        width: Lanes in use.
        generation_max: The highest that card and slot can use together, and so
            ``width_max``.
        busy_generation: The highest seen while the GPU worked, and so
            ``busy_width``; None until a run observed it.
    """

    generation: int | None = None
    width: int | None = None
    generation_max: int | None = None
    width_max: int | None = None
    busy_generation: int | None = None
    busy_width: int | None = None


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """How fast a GPU may run, in hertz, and what holds it back.

    Attributes:
        sm_max: The highest clock of the multiprocessors; ``memory_max`` is that of the
            memory.
        throttle: What slows it at the moment of asking, in words; idling and clocks
            that somebody set are not among them.
        busy_throttle: What slowed it in a tenth of the time or more while it worked;
            None until a run observed it.
    """

    sm_max: float | None = None
    memory_max: float | None = None
    throttle: tuple[str, ...] | None = None
    busy_throttle: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A program that holds a GPU, by name alone.

    Attributes:
        program: ``"unknown program"`` where it is out of sight, as in a container that
            does not see the programs outside.
        memory: Bytes; None where the driver hides it.
        own: Whether it is this process or one that it started; None where it is out
            of sight: in a container one's own has another number than on the host.
    """

    program: str
    memory: int | None = None
    own: bool | None = False


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One NVIDIA GPU as its driver describes it; None where the driver says nothing.

    Attributes:
        memory: Bytes; ``memory_used`` is what is taken, by anybody.
        driver: The version of the driver.
        compute_capability: Such as ``"8.9"``.
        cores: CUDA cores.
        memory_bus: Width of the memory's bus in bits.
        busy: Share of the time in which at least one kernel ran.
        divided: Whether the card is divided (MIG), so that a program sees a part of it.
        holders: Programs that hold it, those with most memory first; None where the
            driver does not say.
        lost: The driver's word where it gives no access to the card; "" where it does.
    """

    name: str
    memory: int | None = None
    driver: str | None = None
    compute_capability: str | None = None
    cores: int | None = None
    memory_bus: int | None = None
    memory_used: int | None = None
    busy: float | None = None
    divided: bool = False
    link: Link = field(default_factory=Link)
    clocks: Clocks = field(default_factory=Clocks)
    holders: tuple[Holder, ...] | None = None
    lost: str = ""


@dataclass(frozen=True, kw_only=True)
class Driver:
    """NVIDIA's driver.

    Attributes:
        version: Such as ``"570.133.20"``.
        cuda: The highest CUDA version it supports, such as ``"12.8"``.
        problem: What keeps it from answering; "" where it answers.
    """

    version: str | None = None
    cuda: str | None = None
    problem: Problem = ""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A computer, without its host name, its users or their paths.

    Attributes:
        cpu: Model name.
        cores: Logical cores present.
        cores_granted: Cores this process may use: affinity and cgroup quota considered.
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
        cores = units.significant(self.cores_granted)
        if self.cores_granted != self.cores:
            cores += f" of {self.cores}"
        plural = "core" if cores == "1" else "cores"
        gpus = names_of(self.gpus) or ["no GPU"]
        parts = self.cpu, f"{cores} {plural}", units.size(self.memory)
        return ", ".join([*parts, *gpus, self.system])


def names_of(gpus: Sequence[Gpu]) -> list[str]:
    """The names of GPUs, those that are alike told once."""
    alike = Counter(gpu.name for gpu in gpus)
    return [f"{n} x {name}" if n > 1 else name for name, n in alike.items()]


def chosen_gpus(
    gpus: Sequence[Gpu], environment: Mapping[str, str]
) -> tuple[int, ...] | None:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves to programs, by CUDA's numbers.

    None where it names some of several by something else.
    """
    numbers = tuple(range(len(gpus)))
    setting = environment.get("CUDA_VISIBLE_DEVICES")
    if setting is None:
        return numbers
    if setting.strip().startswith(("GPU-", "MIG-", "<")):
        return numbers if len(numbers) < 2 else None
    visible = []
    # As CUDA reads it: the first index that does not exist ends the list.
    for index in setting.split(","):
        if not index.strip().isdecimal() or int(index) >= len(numbers):
            break
        visible.append(int(index))
    return tuple(visible)


def visible_gpus(
    gpus: Sequence[Gpu], environment: Mapping[str, str]
) -> tuple[int, ...] | None:
    """The same by the driver's numbers; None where it is not known which those are."""
    visible = chosen_gpus(gpus, environment)
    by_bus = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    alike = len({gpu.name for gpu in gpus}) < 2
    # CUDA numbers unlike cards by their speed, the driver by their place on the bus.
    return visible if by_bus or alike or not visible else None


def computing(gpus: Sequence[Gpu], environment: Mapping[str, str]) -> Gpu | None:
    """TensorFlow's first GPU; None where programs see none, or unknown which is it."""
    visible = visible_gpus(gpus, environment)
    return gpus[visible[0]] if visible else None
