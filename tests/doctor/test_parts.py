from dataclasses import replace

import pytest

from perfkit.doctor.page import parts
from perfkit.machine.record import Library, Load, Proof, Software, Start
from tests.doctor import looked


def test_every_part_that_is_known_has_its_line():
    assert dict(parts(looked.FULL)) == {
        "Processor": "AMD Ryzen 9, 16 of 16 cores, AVX2, governor powersave",
        "Memory": "60 GB of 64 GB, 50 GB free",
        "GPU": "NVIDIA RTX 4090, 24 GB, compute capability 8.9, PCIe 4 ×16, 450 W",
        "Driver": "NVIDIA 570.133.20, for CUDA up to 12.8",
        "TensorFlow": "2.21.0, with CUDA 12.9.79 and cuDNN 9.10.2.21, Keras 3.15.1",
        "Its start": "imported in 4.2 s, GPU:0 computes right: convolution and matrix "
        "product",
        "System": "Linux 6.8, Python 3.12.1",
        "Load": "other programs keep 1.2 of 16 cores busy, on battery",
        "Disk": "ext4, reads 1.5 GB/s, 6 GB/s from memory",
    }


def test_what_is_not_known_is_left_out():
    lines = dict(parts(looked.BARE))
    assert list(lines) == ["Processor", "Memory", "GPU", "TensorFlow", "System"]
    assert lines["Processor"] == "Intel Xeon Platinum 8481C, 2 of 8 cores"
    assert lines["GPU"] == "No NVIDIA driver is installed."
    assert lines["TensorFlow"] == "unknown"
    # Two gpus are numbered.
    two = replace(looked.FULL, gpus=(looked.CARD, looked.CARD))
    assert [name for name, _ in parts(two) if "GPU" in name] == ["GPU 0", "GPU 1"]


NARROW = replace(looked.CARD, link=replace(looked.CARD.link, width=8))
CPU = Software(platform="linux", build="cpu", packages=("tensorflow-cpu",))


def bare(**facts):
    return replace(looked.BARE, **facts)


def computed(**facts):
    """A start in which a convolution ended so."""
    one = Proof(device="GPU:0", computation="convolution", **looked.RIGHT | facts)
    return bare(start=Start(devices=("GPU:0",), proofs=(one,)))


@pytest.mark.parametrize(
    ("machine", "part", "said"),
    [
        # A link that lacks lanes is told with what it could have.
        (replace(looked.FULL, gpus=(NARROW,)), "GPU",
         "NVIDIA RTX 4090, 24 GB, compute capability 8.9, PCIe 4 ×8 of 4 ×16, 450 W"),
        (bare(cores_quota=2.0, cores_affinity=8), "Processor",
         "Intel Xeon Platinum 8481C, 2 of 8 cores (quota)"),
        # A distribution of another name is named.
        (bare(versions={"tensorflow-cpu": "2.21.0"}, software=CPU), "TensorFlow",
         "2.21.0 (tensorflow-cpu), build for CPUs"),
        (bare(software=Software(platform="linux", build="none")), "TensorFlow",
         "not installed"),
        # Only what is proved is called right.
        *((computed(**wrong), "Its start",
           "GPU:0 does not compute right: convolution")
          for wrong in ({"error": 0.5}, {"ran_on": "CPU:0"})),
        (computed(), "Its start", "GPU:0 computes right: convolution"),
        # A quiet machine is told from one that does not tell.
        (bare(load=Load(others=0.0, on_battery=False)), "Load",
         "other programs keep 0 of 8 cores busy, on mains power"),
        (bare(load=Load()), "Load", "unknown"),
    ],
)  # fmt: skip
def test_a_part_is_said_as_it_is(machine, part, said):
    assert dict(parts(machine))[part] == said


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (None, "without packages of CUDA"),
        ("not found", "without the CUDA libraries that a GPU needs"),
        ("", "with CUDA libraries that are no packages of pip"),
    ],
)
def test_a_wheel_for_gpus_without_their_libraries_is_told_from_one_with(problem, said):
    # The driver brings libcuda; nobody installs it with TensorFlow.
    names = () if problem is None else ("libcuda.so.1", "libcudart.so.12")
    found = tuple(
        Library(name=name, problem=problem if "rt" in name else "not found")
        for name in names
    )
    installed = replace(looked.FULL.software, libraries=found)
    machine = replace(
        looked.BARE, versions={"tensorflow": "2.21.0"}, software=installed
    )
    assert dict(parts(machine))["TensorFlow"] == f"2.21.0, {said}"
