"""What is this GPU, and what does its driver let it do?

Every reading is None where the driver gives none, and ``refused`` then has its word.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Link:
    """The way between a GPU and the rest of the machine: PCI Express.

    Attributes:
        generation: In use at the moment of asking; it falls while the GPU idles.
        width: Lanes in use.
        generation_max: What card and slot can do together, and so ``width_max``.
        generation_card: What the card alone can do.
        busy_generation: The highest seen while data were copied, and so
            ``busy_width``; None until that was looked at.
        replays: Packets that had to be sent again.
    """

    generation: int | None = None
    width: int | None = None
    generation_max: int | None = None
    width_max: int | None = None
    generation_card: int | None = None
    busy_generation: int | None = None
    busy_width: int | None = None
    replays: int | None = None


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """How fast a GPU runs, in hertz, and what holds it back.

    Attributes:
        sm: The multiprocessors' clock now; ``sm_max`` is the highest.
        sm_set: The clock that applications are given, where somebody set it.
        memory: The memory's clock now; ``memory_max`` is the highest.
        throttle: What slows it at the moment of asking, in words.
        busy_throttle: What slowed it while it was loaded; None until that was looked
            at.
    """

    sm: float | None = None
    sm_max: float | None = None
    sm_set: float | None = None
    memory: float | None = None
    memory_max: float | None = None
    throttle: tuple[str, ...] | None = None
    busy_throttle: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Power:
    """Power in watts and heat in degrees Celsius.

    Attributes:
        draw: Now.
        limit: In force; ``limit_default`` is the card's own, ``limit_max`` the highest
            that may be set.
        temperature: Now; ``slowdown`` is where the hardware slows down.
        fan: Share of the fan's full speed.
    """

    draw: float | None = None
    limit: float | None = None
    limit_default: float | None = None
    limit_max: float | None = None
    temperature: float | None = None
    slowdown: float | None = None
    fan: float | None = None


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A program that holds a GPU; ``memory`` in bytes, None where the driver hides it.

    Attributes:
        own: Whether it is this process or one that it started.
    """

    program: str
    memory: int | None = None
    own: bool = False


@dataclass(frozen=True, kw_only=True)
class State:
    """How a GPU is set.

    Attributes:
        persistence: Whether the driver stays loaded while nobody uses the GPU.
        compute_mode: ``"default"``, ``"exclusive process"``, ``"prohibited"``.
        ecc: Whether memory errors are corrected.
        mig: Whether the card is divided into instances; ``instance`` where this is
            one of them.
        performance: ``"P0"`` is the fastest state.
        driver_model: On Windows: ``"WDDM"``, ``"TCC"``, ``"MCDM"``.
        errors: Uncorrected memory errors since the driver was loaded.
        rows_remapped: Rows of memory that were replaced for errors.
        numa_node: The group of cores that it is attached to.
    """

    persistence: bool | None = None
    compute_mode: str | None = None
    ecc: bool | None = None
    mig: bool | None = None
    instance: bool = False
    performance: str | None = None
    driver_model: str | None = None
    errors: int | None = None
    rows_remapped: int | None = None
    numa_node: int | None = None


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One NVIDIA GPU as its driver describes it; None where the driver says nothing.

    Attributes:
        memory: Bytes; ``memory_used`` is what is taken, by anybody.
        compute_capability: Such as ``"8.9"``.
        cores: CUDA cores; ``memory_bus`` is the width of the memory's bus in bits.
        busy: Share of the time in which at least one kernel ran.
        holders: Programs that hold it; None where the driver does not say.
        refused: The driver's word for every reading that it refused, by name.
    """

    name: str
    memory: int | None = None
    driver: str | None = None
    compute_capability: str | None = None
    architecture: str | None = None
    cores: int | None = None
    memory_bus: int | None = None
    memory_used: int | None = None
    busy: float | None = None
    link: Link = field(default_factory=Link)
    clocks: Clocks = field(default_factory=Clocks)
    power: Power = field(default_factory=Power)
    state: State = field(default_factory=State)
    holders: tuple[Holder, ...] | None = None
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Driver:
    """NVIDIA's driver.

    Attributes:
        version: Such as ``"570.133.20"``.
        cuda: The highest CUDA version it supports, such as ``"12.8"``.
        topology: How the GPUs are joined, a sentence for each pair.
    """

    version: str | None = None
    cuda: str | None = None
    topology: tuple[str, ...] = ()
