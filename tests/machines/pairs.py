"""Pairs of passports made by code: one machine, and the same with one thing changed.

What a step takes is worked out here from rates and works, and not by the comparison:
input, dispatch and compute are so many units of work, each over a microbenchmark's
rate.
"""

import random
from dataclasses import replace

from perfkit.machine.record import Busy, Load, Machine, Processor, Software
from perfkit.passports.passport import PARTS, Part
from tests.machines import passports
from tests.machines.passports import benchmark

# Unit, rate, group.
RATES = {
    "Python loop": ("steps", 5e7, "interpreter"),
    "NumPy product, 1 core": ("FLOP", 1.2e11, "arrays"),
    "NumPy product, float32": ("FLOP", 2.3e11, "arrays"),
    "memory copy, 1 core": ("B", 3e10, "memory"),
    "memory copy": ("B", 4e10, "memory"),
    "data disk": ("B", 2.5e9, "disk"),
    "JPEG decode, 1 core": ("images", 1200.0, "images"),
    "JPEG decode": ("images", 2300.0, "images"),
    "tf.data map": ("elements", 55e3, "pipeline"),
    "graph call": ("calls", 6000.0, "TensorFlow"),
    "operation in a graph": ("calls", 4e6, "TensorFlow"),
    "TensorFlow product, 1 core": ("FLOP", 2.3e11, "TensorFlow"),
    "TensorFlow product, float32": ("FLOP", 4.2e11, "TensorFlow"),
    "convolution, float32": ("FLOP", 4e11, "TensorFlow"),
}


EVERY_CORE = (
    *("NumPy product, float32", "JPEG decode", "TensorFlow product, float32"),
    *("convolution, float32", "memory copy"),
)
KERNELS = (
    *("TensorFlow product, 1 core", "TensorFlow product, float32"),
    "convolution, float32",
)
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
# Name, network, batch, weights, and what it is fed from.
TRAININGS = (
    ("tiny dense", "tiny-dense", 32, 1032, "memory"),
    ("small CNN from memory", "small-cnn", 32, 545_098, "memory"),
    ("small CNN from JPEG", "small-cnn", 32, 545_098, "JPEG"),
    ("small CNN from disk", "small-cnn", 32, 545_098, "disk"),
    ("wide dense", "wide-dense", 128, 3_159_050, "memory"),
)
DATA = {
    "memory": "arrays in memory",
    "JPEG": "32 JPEG files",
    "disk": "images of 262,144 bytes in a file that memory forgot",
}
SAMPLES = 60


def passport(rates=None, machine=MACHINE, **more):
    """The passport of a machine with these rates; the rest is usual.

    Args:
        rates: Times the usual rate, by microbenchmark.
        machine: Its record.
        **more: ``noise`` and ``seed`` of what is measured, ``width`` of intervals,
            ``extra`` seconds of input per step, ``late`` seconds by which an element
            comes later, ``others`` cores kept busy by other programs, and fields of
            the passport.
    """
    draw = random.Random(more.pop("seed", 0))
    noise, width = more.pop("noise", 0.0), more.pop("width", 0.03)
    extra, others = more.pop("extra", {}), more.pop("others", 0.04)
    late = more.pop("late", 0.0)

    def measured(value):
        return value * draw.gauss(1, noise) if noise else value

    times = rates or {}
    real = {name: rate * times.get(name, 1.0) for name, (_, rate, _) in RATES.items()}
    free = (machine.cores - others) / machine.cores
    real = {name: r * (free if name in EVERY_CORE else 1) for name, r in real.items()}
    worked = real | {"late": late}
    fields = {
        "label": "one",
        "machine": machine,
        "checks": (),
        "microbenchmarks": tuple(
            benchmark(name, measured(rate), RATES[name][0], RATES[name][2], width)
            for name, rate in real.items()
        ),
        "trainings": tuple(
            training(one, worked, extra.get(one[0], 0.0), measured, width)
            for one in TRAININGS
        ),
        "samples": {
            "t": tuple(float(at) for at in range(SAMPLES)),
            "cpu_trial": (max(0.0, 1.9 * machine.cores / 2 - others),) * SAMPLES,
            "cpu_other": (others,) * SAMPLES,
            "memory_used": (1e9,) * SAMPLES,
            "core_speed": (0.94,) * SAMPLES,
        },
        "phases": {"reference-trainings": (0.0, float(SAMPLES))},
        "noise_floors": {"machine-ladder": 1.03, "reference-trainings": 1.02},
        "parameters": {},
    }
    return passports.passport(**fields | more)


def split(one, real, extra=0.0):
    """Seconds of each part, from the work that the network and its feeding are.

    What the pipeline waits is hidden below the rest of the step, and the disk reads
    while it works.
    """
    _, model, batch, weights, feed = one
    multiplied = {
        "tiny-dense": 0.0,
        "small-cnn": batch * 35_003_904 / real["convolution, float32"],
        "wide-dense": batch * 16_838_656 / real["TensorFlow product, float32"],
    }[model]
    alone = 200 / real["operation in a graph"]
    if model != "tiny-dense":
        # Kernels where the other cores find nothing to do.
        kernels = real["TensorFlow product, 1 core"]
        if model == "small-cnn":
            every = real["TensorFlow product, float32"]
            kernels *= real["convolution, float32"] / every
        alone = 7e8 / kernels
    update = 28 * weights / real["memory copy"] if model != "tiny-dense" else 0.0
    main = multiplied + alone
    dispatch = 1 / real["graph call"] + 5000 / real["Python loop"]
    late = real.get("late", 0.0)
    work, read = extra, 0.0
    if feed == "JPEG":
        work += batch / real["JPEG decode"]
    if feed == "disk":
        work += 0.4 * batch / real["JPEG decode"]
        read = batch * 262_144 / real["data disk"]
    else:
        work += 250 * batch / real["Python loop"]
    return {
        "input": max(work, max(work + batch * late, read) - dispatch - main - update),
        "dispatch": dispatch,
        "transfer": 0.0,
        "compute": main + update,
    }


def training(one, real, extra=0.0, measured=lambda value: value, width=0.03):
    name, model, batch, weights, feed = one
    seconds = {part: measured(s) for part, s in split(one, real, extra).items()}
    step = sum(seconds.values())
    known = [seconds.get(part, 0.0) for part in PARTS]
    near = width * step / 4
    parts = tuple(
        Part(name=part, seconds=s, low=s - near, high=s + near)
        for part, s in zip(PARTS, known, strict=True)
    )
    return passports.training(
        name,
        step,
        what="",
        job={"recipe": 1, "model": model, "data": DATA[feed], "seed": 0},
        batch=batch,
        weights=weights,
        low=step * (1 - width),
        high=step * (1 + width),
        parts=parts,
    )


def one_core():
    rates = {"JPEG decode": 1200 / 2300, "memory copy": 0.8}
    rates |= {name: 0.52 for name in EVERY_CORE if name not in rates}
    return passport(rates, replace(MACHINE, cores_granted=1.0))


def slow_disk():
    return passport({"data disk": 0.05})


def onednn_off():
    machine = replace(MACHINE, environment={"TF_ENABLE_ONEDNN_OPTS": "0"})
    return passport(dict.fromkeys(KERNELS, 0.5), machine)


def busy():
    top = (Busy(program="renderer", cores=1.0),)
    load = replace(MACHINE.load, others=1.0, top=top)
    return passport({}, replace(MACHINE, load=load), others=1.0)


def little_memory():
    load = replace(MACHINE.load, memory_free=2 * 10**8)
    machine = replace(MACHINE, memory=2 * 10**9, load=load)
    return passport({}, machine, extra={"small CNN from JPEG": 0.03})


def waiting_elements():
    late = 1e-3
    longer = 1 / (RATES["tf.data map"][1] * late + 1)
    return passport({"tf.data map": longer}, late=late)


def changed(of=MACHINE, **fields):
    return replace(of, **fields)


def each(things, **fields):
    return tuple(replace(one, **fields) for one in things)


def on_gpu(passport, hidden):
    """The same machine with a GPU: a pipeline that works while the GPU computes."""
    trainings = []
    for one in passport.trainings:
        seconds = {part.name: part.seconds for part in one.parts}
        rest = seconds["dispatch"] + seconds["compute"]
        fed = 0.0 if hidden else 2 * rest
        parts = tuple(
            changed(p, seconds=fed, low=fed, high=fed) if p.name == "input" else p
            for p in one.parts
        )
        step = rest + fed
        took = {"seconds": step, "low": 0.99 * step, "high": 1.01 * step}
        trainings.append(changed(one, device="GPU:0", parts=parts, **took))
    names = {
        "memory copy": "GPU memory",
        "operation in a graph": "GPU launch",
        "TensorFlow product, float32": "GPU product, float32",
        "convolution, float32": "GPU convolution, float32",
    }
    measured = {one.name: one for one in passport.microbenchmarks}
    more = (changed(measured[name], name=names[name]) for name in names)
    benchmarks = (*passport.microbenchmarks, *more)
    return changed(passport, trainings=tuple(trainings), microbenchmarks=benchmarks)
