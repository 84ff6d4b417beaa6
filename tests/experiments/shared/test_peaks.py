import pytest

from perfkit.experiments.shared import peaks
from perfkit.experiments.shared.peaks import Hardware
from perfkit.machine.record import Clocks, Gpu, Link
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


def gflops(machine, bits=32, *, one_core=False):
    found = peaks.of_kind(machine, kind=f"float{bits}", one_core=one_core)
    return found and found.rate / 1e9


def test_a_processor_does_what_its_cores_units_and_clock_allow_if_known(tmp_path):
    machine = described(tmp_path)
    # 2 whole cores, 2 units, 16 numbers, multiplied and added, 3 billion times.
    assert gflops(machine) == pytest.approx(2 * 2 * 16 * 2 * 3)
    assert gflops(machine, 64) == pytest.approx(gflops(machine) / 2)
    assert gflops(machine, one_core=True) == pytest.approx(192)
    words = peaks.of_kind(machine, kind="float32", one_core=False).words
    assert words.startswith("2 cores at 64 FLOP a tick")
    assert "3 GHz, the clock that a chain of additions showed" in words
    assert gflops(described(tmp_path, cores=1)) == pytest.approx(192)
    assert gflops(described(tmp_path, clock=None)) is None


@pytest.mark.parametrize(
    ("vendor", "family", "model", "flags", "flop"),
    [
        ("GenuineIntel", 6, 60, "fpu avx fma avx2", 32),
        ("GenuineIntel", 6, 42, "fpu avx", None),
        ("AuthenticAMD", 26, 2, AVX512, 64),
        # It has the instructions and runs them in two halves.
        ("AuthenticAMD", 25, 97, AVX512, 32),
        ("AuthenticAMD", 25, 33, "fpu avx fma avx2", 32),
        ("AuthenticAMD", 23, 0x31, "fpu avx fma avx2", 32),
        ("AuthenticAMD", 23, 0x01, "fpu avx fma avx2", None),
        ("HygonGenuine", 24, 0x01, "fpu avx fma avx2", None),
        ("", 0, 0, "", None),
    ],
)
def test_a_tick_does_what_a_core_does(tmp_path, vendor, family, model, flags, flop):
    told = dict(zip(INTEL, (vendor, family, model, flags), strict=True))
    found = gflops(described(tmp_path, told), one_core=True)
    assert found == (flop and pytest.approx(3 * flop))


def test_the_higher_of_two_clocks_counts(tmp_path):
    policy = "sys/devices/system/cpu/cpufreq/policy0"
    grow(tmp_path, {f"{policy}/cpuinfo_max_freq": "4000000\n"})
    machine = described(tmp_path)
    assert machine.clock == 4e9
    assert machine.clock_from == "the highest clock that the system states"


def test_bfloat16_has_a_limit_only_where_it_is_known():
    plain = {"cores": 2.0, "clock": 2e9, "clock_from": "x"}
    amx = Hardware(instructions=frozenset(["amx_bf16"]), **plain)
    found = peaks.of_kind(amx, kind="bfloat16", one_core=False)
    assert found.rate == pytest.approx(2 * 2 * 16 * 16 * 32 / 16 * 2e9)
    zen = Hardware(instructions=frozenset(["avx512f", "avx512_bf16"]), **plain)
    assert peaks.of_kind(zen, kind="bfloat16", one_core=False) is None
    assert peaks.of_kind(zen, kind="float16", one_core=False) is None
    assert peaks.of_kind(zen, kind="float32", one_core=False) is not None


def card(name="A card", **more):
    return Hardware(gpu=Gpu(name=name, **more))


@pytest.mark.parametrize(
    ("generation", "gigabytes"), [(1, 4), (3, 15.8), (4, 31.5), (5, 63), (6, 121)]
)
def test_sixteen_lanes_carry_what_the_standard_says(generation, gigabytes):
    link = Link(generation=1, generation_max=generation, width_max=16)
    found = peaks.link(card(link=link))
    assert found.rate / 1e9 == pytest.approx(gigabytes, rel=0.005)


def test_memory_and_link_are_as_fast_as_known_or_have_no_limit():
    assert peaks.link(card()) is None
    assert peaks.link(card(link=Link(generation_max=9, width_max=16))) is None
    assert peaks.link(Hardware()) is None
    # As the data sheet of an A100 with 40 GB has it: 1,555 GB/s.
    found = peaks.gpu_memory(card(memory_bus=5120, clocks=Clocks(memory_max=1.215e9)))
    assert found.rate / 1e9 == pytest.approx(1555, rel=0.001)
    assert peaks.gpu_memory(card(memory_bus=5120)) is None
    # Of a divided card the driver tells the bus of the whole.
    clocks = Clocks(memory_max=1.215e9)
    assert peaks.gpu_memory(card(memory_bus=5120, clocks=clocks, divided=True)) is None


def test_products_on_a_gpu_have_the_rates_of_its_data_sheet_or_float32_only():
    a100 = card("NVIDIA A100-SXM4-40GB")
    rates = [peaks.on_gpu(a100, kind=k).rate / 1e12 for k in ("float32", "TF32")]
    assert rates == [19.5, 156]
    assert peaks.on_gpu(a100, kind="bfloat16").rate == 312e12
    assert peaks.on_gpu(card("Tesla T4"), kind="bfloat16") is None
    assert peaks.on_gpu(card("Tesla T4"), kind="TF32") is None
    other = card(cores=1000, clocks=Clocks(sm_max=1.5e9))
    assert peaks.on_gpu(other, kind="float32").rate == pytest.approx(3e12)
    assert peaks.on_gpu(other, kind="float16") is None
    assert peaks.gpu_clock(other).rate == 1.5e9
    assert peaks.gpu_clock(card()) is None
