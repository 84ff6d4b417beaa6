"""What computer is this? The facts that a reader of a finding needs."""

from __future__ import annotations

from dataclasses import dataclass, field


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
        system: Operating system and release, such as ``"Linux 6.1"``.
        python: Version.
        versions: Of the libraries that matter, by distribution name.
        environment: The TF_*, CUDA_*, XLA_*, OMP_* variables that are set.
        gpus: One record each.
    """

    cpu: str
    cores: int
    cores_granted: float
    memory: int
    system: str
    python: str
    versions: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()
