import functools

import pytest

from perfkit.machine.record import Clocks, Gpu, Link
from perfkit.questions.microbenchmarks import peaks
from perfkit.questions.microbenchmarks.peaks import Hardware
from tests.machine.trees import grow

AVX512 = "fpu avx f16c fma avx2 avx512f avx512bw"
INTEL = {"vendor_id": "GenuineIntel", "cpu family": 6, "model": 143, "flags": AVX512}


@pytest.fixture(autouse=True)
def two_whole_cores(monkeypatch):
    monkeypatch.setattr("psutil.cpu_count", lambda logical=True: 4 if logical else 2)


def described(tmp_path, told=None, *, cores=4, clock=3e9):
    """A machine whose /proc tells this of its four threads on two cores."""
    every = INTEL | {"physical id": 0, "cpu cores": 2} | (told or {})
    threads = [every | {"processor": n, "core id": n % 2} for n in range(4)]
    text = ("".join(f"{k}\t: {v}\n" for k, v in one.items()) + "\n" for one in threads)
    grow(tmp_path, {"proc/cpuinfo": "".join(text)})
    return peaks.hardware(tmp_path, cores=cores, clock=clock)


def gflops(machine, *, one_core=False):
    found = peaks.on_cpu(machine, one_core=one_core)
    return found and found.rate / 1e9


def test_a_processor_does_what_its_cores_units_and_clock_allow_if_known(tmp_path):
    machine = described(tmp_path)
    # 2 whole cores, 2 units, 16 numbers, multiplied and added, 3 billion times.
    assert gflops(machine) == pytest.approx(2 * 2 * 16 * 2 * 3)
    assert gflops(machine, one_core=True) == pytest.approx(192)
    words = peaks.on_cpu(machine, one_core=False).words
    assert words.startswith("2 cores at 64 FLOP a tick")
    assert "3 GHz, the clock that a chain of additions showed" in words
    assert gflops(described(tmp_path, cores=1)) == pytest.approx(192)
    assert gflops(described(tmp_path, clock=None)) is None


@pytest.mark.parametrize(
    ("vendor", "family", "model", "flags", "flop"),
    [
        ("GenuineIntel", 6, 60, "fpu avx fma avx2", 32),
        ("AuthenticAMD", 26, 2, AVX512, 64),
        # It has the instructions and runs them in two halves.
        ("AuthenticAMD", 25, 97, AVX512, 32),
        ("AuthenticAMD", 23, 0x31, "fpu avx fma avx2", 32),
        ("", 0, 0, "", None),
    ],
)
def test_a_tick_does_what_a_core_does(tmp_path, vendor, family, model, flags, flop):
    told = dict(zip(INTEL, (vendor, family, model, flags), strict=True))
    found = gflops(described(tmp_path, told), one_core=True)
    assert found == (flop and pytest.approx(3 * flop))


def card(name="A card", **more):
    return Hardware(gpu=Gpu(name=name, **more))


def lanes(generation, **more):
    return card(link=Link(generation_max=generation, width_max=16), **more)


WIDE = {"memory_bus": 5120, "clocks": Clocks(memory_max=1.215e9)}
OTHER = card(cores=1000, clocks=Clocks(sm_max=1.5e9))
A100, T4 = card("NVIDIA A100-SXM4-40GB"), card("Tesla T4")


@pytest.mark.parametrize(
    ("machine", "peak", "rate"),
    [
        # What the standard says of sixteen lanes.
        *((lanes(n), peaks.link, r) for n, r in ((1, 4e9), (4, 31.5e9), (9, None))),
        *((machine, peaks.link, None) for machine in (card(), Hardware())),
        # As the data sheet of an A100 with 40 GB has it: 1,555 GB/s.
        (card(**WIDE), peaks.gpu_memory, 1555e9),
        # Of a divided card the driver tells the bus of the whole.
        (card(**WIDE, divided=True), peaks.gpu_memory, None),
        (A100, "float32", 19.5e12),
        (A100, "bfloat16", 312e12),
        (T4, "bfloat16", None),
        (OTHER, "float32", 3e12),
    ],
)
def test_a_card_is_as_fast_as_known_or_has_no_limit(machine, peak, rate):
    if isinstance(peak, str):
        peak = functools.partial(peaks.on_gpu, kind=peak)
    found = peak(machine)
    assert (found and found.rate) == (rate and pytest.approx(rate, rel=0.005))
