"""What computer is this? The facts that a reader of a finding needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from perfkit import units


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One NVIDIA GPU as its driver describes it; None where the driver says nothing."""

    name: str
    memory: int | None = None
    driver: str | None = None
    compute_capability: str | None = None


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
        versions: Of the libraries that matter, by distribution name.
        environment: The TF_*, CUDA_*, XLA_*, OMP_* variables that are set.
        gpus: One record each.
        no_gpu: Why ``gpus`` is empty, in one sentence; "" where it is not.
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

    @property
    def summary(self) -> str:
        """The machine on one line, for captions and tables."""
        granted = units.significant(self.cores_granted)
        cores = f"{granted} of {self.cores}"
        if self.cores_granted == self.cores:
            cores = granted
        plural = "core" if cores == "1" else "cores"
        names = list(dict.fromkeys(gpu.name for gpu in self.gpus))
        counts = [sum(gpu.name == name for gpu in self.gpus) for name in names]
        gpus = [
            f"{n} x {name}" if n > 1 else name
            for name, n in zip(names, counts, strict=True)
        ]
        parts = [self.cpu, f"{cores} {plural}", units.size(self.memory), *gpus]
        return ", ".join([*parts, *([] if gpus else ["no GPU"]), self.system])
