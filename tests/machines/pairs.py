"""Pairs of passports made by code: one machine, and the same with one thing changed.

What a step takes is worked out here from rates and works, and not by the comparison:
input, dispatch and compute are so many units of work, each over a microbenchmark's
rate.
"""

from dataclasses import replace

from perfkit.findings.training import Part
from perfkit.machine.record import Busy, Load, Machine, Processor, Software
from tests.machines import passports
from tests.machines.passports import SAMPLES, benchmark

# Unit, rate, group.
RATES = {
    "loop over an array": ("elements", 5e7, "arrays"),
    "NumPy product, float32": ("FLOP", 2.3e11, "arrays"),
    "memory copy": ("B", 4e10, "memory"),
    "data disk": ("B", 2.5e9, "disk"),
    "JPEG decode": ("images", 2300.0, "images"),
    "graph call": ("calls", 6000.0, "TensorFlow"),
    "TensorFlow product, float32": ("FLOP", 4.2e11, "TensorFlow"),
}
EVERY_CORE = ("NumPy product, float32", "JPEG decode", "TensorFlow product, float32")
MACHINE = Machine(
    cpu="AMD EPYC",
    cores=2,
    cores_granted=2.0,
    memory=25 * 10**9,
    memory_present=25 * 10**9,
    system="Linux 6.18",
    python="3.11.7",
    versions={"tensorflow": "2.21.0", "keras": "3.15.1", "numpy": "2.4.6"},
    processor=Processor(
        instructions=("avx", "avx2", "avx512_vnni", "fma"), physical_cores=2
    ),
    load=Load(others=0.1, memory_free=24 * 10**9),
    software=Software(platform="linux", build="cpu"),
)
# Name, network, batch, weights, FLOP of a step, and what it is fed from.
TRAININGS = (
    ("tiny dense", "tiny-dense", 32, 1032, 2e7, "memory"),
    ("small CNN from memory", "small-cnn", 32, 545_098, 2.2e9, "memory"),
    ("small CNN from JPEG", "small-cnn", 32, 545_098, 2.2e9, "JPEG"),
    ("wide dense", "wide-dense", 128, 3_159_050, 2.8e9, "memory"),
)


def passport(rates=None, machine=MACHINE, *, width=0.03, others=0.04, **fields):
    """The passport of a machine that has so many times the usual ``rates``, by name.

    Intervals have this width on either side, and others keep so many cores busy.
    """
    times = rates or {}
    free = (machine.cores - others) / machine.cores
    real = {
        name: rate * times.get(name, 1.0) * (free if name in EVERY_CORE else 1)
        for name, (_, rate, _) in RATES.items()
    }
    benchmarks = (
        benchmark(name, rate, RATES[name][0], RATES[name][2], width)
        for name, rate in real.items()
    )
    columns = {
        "t": tuple(float(at) for at in range(SAMPLES)),
        "cpu_trial": (max(0.0, 1.9 * machine.cores / 2 - others),) * SAMPLES,
        "cpu_other": (others,) * SAMPLES,
    }
    usual = {
        "label": "one",
        "machine": machine,
        "checks": (),
        "microbenchmarks": tuple(benchmarks),
        "trainings": tuple(training(one, real, width) for one in TRAININGS),
        "samples": columns,
        "noise_floors": {"machine-ladder": 1.03, "reference-trainings": 1.02},
    }
    return passports.passport(**usual | fields)


def training(one, real, width):
    """A training whose parts are so many units of work, each over a real rate."""
    name, model, batch, weights, flop, feed = one
    decoding = batch / real["JPEG decode"] if feed == "JPEG" else 0.0
    seconds = {
        "input": decoding + 250 * batch / real["loop over an array"],
        "dispatch": 1 / real["graph call"],
        "transfer": 0.0,
        "compute": flop / real["TensorFlow product, float32"],
        "unexplained": 0.0,
    }
    step = sum(seconds.values())
    near = width * step / 4
    return passports.training(
        name,
        step,
        what="",
        job={"recipe": 1, "model": model, "data": feed, "seed": 0},
        batch=batch,
        weights=weights,
        low=step * (1 - width),
        high=step * (1 + width),
        parts=tuple(
            Part(name=part, seconds=s, low=s - near, high=s + near)
            for part, s in seconds.items()
        ),
    )


def one_core():
    return passport(dict.fromkeys(EVERY_CORE, 0.52), changed(cores_granted=1.0))


def onednn_off():
    machine = changed(environment={"TF_ENABLE_ONEDNN_OPTS": "0"})
    return passport({"TensorFlow product, float32": 0.5}, machine)


def busy(others=1.0):
    load = replace(
        MACHINE.load, others=others, top=(Busy(program="renderer", cores=others),)
    )
    return passport({}, changed(load=load), others=others)


def changed(of=MACHINE, **fields):
    return replace(of, **fields)


def each(things, **fields):
    return tuple(replace(one, **fields) for one in things)
