import pickle
import re

import pytest

import perfkit
from perfkit.errors import BadParameterError, RunError
from perfkit.questions import cpu_or_gpu, experiment
from perfkit.questions.cpu_or_gpu import CpuOrGpu, numbers
from perfkit.questions.cpu_or_gpu.numbers import Crossing, Result
from perfkit.questions.cpu_or_gpu.verdict import _headline
from perfkit.questions.cpu_or_gpu.work import Size
from perfkit.questions.runs import run
from tests.questions.crossings import CPU, GPU, ONE, SIZES, TWO, measured, steps
from tests.questions.races import sayings

GPU_PAIR = numbers.PAIRS[1]


verdict, _ = sayings("cpu-or-gpu")


def facts(run, **asked):
    """The numbers that a verdict rests on, by their labels."""
    return {fact.label: fact for fact in verdict(run, **asked).facts}


FIRST = "one core, width 32, batch 64"


def test_without_a_gpu_each_size_pairs_one_core_with_all_and_the_gpus_say_why(gpus):
    asked = experiment("cpu-or-gpu")
    variants = asked.make_variants()
    assert next(iter(variants)) == asked.baseline == FIRST
    runs = [one for one in variants.values() if not one.unavailable]
    assert [one.against for one in runs[::2]] == [""] * 5
    assert [one.against for one in runs[1::2]] == [one.name for one in runs[::2]]
    assert [one.name for one in runs[1::8]] == [
        *("all cores, width 32, batch 64", "all cores, width 512, batch 512")
    ]
    missing = [a for a in variants.values() if a.unavailable]
    assert [(a.name, a.unavailable, a.against) for a in missing] == [
        (name, "needs a GPU: No NVIDIA driver here.", "")
        for name in ("GPU", "GPU fed floats", "GPU fed bytes", "GPU fed ahead")
    ]


def test_with_a_gpu_the_whole_cpu_is_held_against_it(gpus):
    gpus(1)
    asked = experiment("cpu-or-gpu")
    variants = asked.make_variants()
    assert not any(one.unavailable for one in variants.values())
    assert asked.baseline == "CPU, width 32, batch 64"
    against = {
        "GPU, width 32, batch 64": asked.baseline,
        "GPU fed floats": "GPU, width 2,048, batch 64",
        "GPU fed bytes": "GPU fed floats",
    }
    assert {name: variants[name].against for name in against} == against
    assert all(pickle.loads(pickle.dumps(a)).changes for a in variants.values())


@pytest.mark.parametrize(
    ("cores", "why"), [(8, ""), (1, "needs more than the one core that this proc")]
)
def test_of_cores_alone_one_has_nothing_to_be_held_against(cores, why, gpus):
    gpus(1, cores=cores)
    asked = experiment("cpu-or-gpu", devices="cores")
    missing = [one.unavailable for one in asked.make_variants().values()][1::2]
    assert (asked.baseline, len(missing)) == (FIRST, 5)
    assert all(one.startswith(why) and bool(one) == bool(why) for one in missing)


@pytest.mark.parametrize(
    ("narrowest", "widest", "count", "widths"),
    [(30, 100, 2, [30, 100]), (16, 1024, 4, [16, 64, 256, 1024]), (4, 8, 8, [4, 8])],
)
def test_widths_lie_evenly_between_the_ends(narrowest, widest, count, widths):
    sizes = CpuOrGpu(narrowest=narrowest, widest=widest, widths=count, batch=8).sizes
    assert [s.width for s in sizes if s.batch == 8] == widths
    assert sizes[-1].batch == 64
    with pytest.raises(BadParameterError, match="widest above the narrowest"):
        CpuOrGpu(narrowest=widest, widest=widest)


def test_a_gpu_that_cannot_be_used_is_said_before_the_run(gpus, monkeypatch):
    gpus(1)
    monkeypatch.setattr(cpu_or_gpu, "sees_one", lambda: False)
    with pytest.raises(RunError, match="devices=cores"):
        list(experiment("cpu-or-gpu").prepare())


def test_a_crossover_is_told_with_what_it_brings_and_what_a_step_costs():
    found = verdict(measured(steps(ONE, TWO)))
    where = r"Train on both cores from about width 1\d0 up, on one core below."
    assert re.fullmatch(where, found.headline)
    much = r"At width 2,048 training runs (1\.9|2\.0) times as fast"
    assert re.search(much, found.much)
    assert (found.sure, found.winner) == ("sure", "")
    # The larger batch was seen to pay.
    assert "`batch_size=512`" in found.next
    rows = {fact.label: fact for fact in found.facts}
    where = rows["Width from which it is 10 % faster, batch 64"]
    assert re.fullmatch(r"1\d0", where.value)
    assert re.fullmatch(r"\d+ to 1\d0", where.interval)
    for device, flops in (("one core", 50), ("all cores", 100)):
        assert rows[f"A step before any work, {device}"].value.endswith(" µs")
        speed, unit = rows[f"Arithmetic, {device}"].value.split()
        assert (float(speed), unit) == (pytest.approx(flops, rel=0.1), "GFLOP/s")
    assert rows["Share before any work at width 32, all cores"].value.startswith("9")
    assert rows["Gain at width 512, batch 512"].value == "2.0×, faster"


@pytest.mark.parametrize(
    ("costs", "pair", "notes", "devices"),
    [
        ((CPU, GPU), GPU_PAIR, {}, ("the GPU", "the CPU")),
        ((ONE, TWO), numbers.PAIRS[0], {"cores": 16}, ("all 16 cores", "one core")),
        ((ONE, TWO), numbers.PAIRS[0], {"cores": 0}, ("all the cores", "one core")),
    ],
)
def test_both_devices_are_called_by_their_names(costs, pair, notes, devices):
    found = verdict(measured(steps(*costs, pair=pair), notes=notes))
    assert found.headline.startswith(f"Train on {devices[0]} from about width")
    assert found.headline.endswith(f" up, on {devices[1]} below.")


def test_never_and_always_are_verdicts_and_a_gpu_that_never_pays_is_hidden():
    never = verdict(measured(steps(ONE, ONE)))
    assert never.headline == "Stay on one core: both cores would bring too little."
    assert "taskset -c 0" in never.next
    assert (never.edits, never.sure) == ((), "sure")
    assert "training runs as fast on both cores" in never.much
    half = tuple(part / 2 for part in ONE)
    always = verdict(measured(steps(ONE, half)))
    assert always.headline.startswith("Train on both cores at every width")
    assert "`narrowest` below 32" in always.next
    # Whoever types it types no comma.
    wide = [Size(width, 64) for width in (1024, 2048, 4096)]
    asked = {"narrowest": 1024, "widest": 4096, "widths": 3}
    assert "below 1024." in verdict(measured(steps(ONE, half, wide)), **asked).next
    slower = tuple(2 * part for part in CPU)
    found = verdict(measured(steps(CPU, slower, pair=GPU_PAIR)))
    assert found.headline.startswith("Stay on the CPU")
    assert "takes 2.0 times as long on the GPU" in found.much
    assert 'set_visible_devices([], "GPU")' in found.edits[0].new


def altered(name, times):
    known = steps(ONE, TWO)
    batch, step = known[name]
    return measured(known | {name: (batch, times * step)})


def test_a_fit_that_misses_and_a_gain_that_is_lost_again_are_told():
    rows = facts(altered("all cores, width 128, batch 64", 2.5))
    assert not any(label.startswith("Share before any work") for label in rows)
    found = verdict(altered("all cores, width 2,048, batch 64", 2))
    where = "at width 128, width 512; not elsewhere."
    assert found.headline == f"Train on both cores {where}"
    assert found.much.startswith("At width 512 training runs 1.")


def test_below_a_crossing_that_is_hardly_known_nothing_is_advised():
    crossing = Crossing(kind="from", width=400.0, low=0.0, high=1200.0)
    shown = {"devices": numbers.PAIRS[0], "points": (), "fits": {}, "dots": ()}
    result = Result(curve=None, crossing=crossing, **shown)
    assert _headline(result, "one core", "both cores") == (
        "Train on both cores from width 1,200 up, or earlier; below that is not "
        "known yet."
    )


def test_noise_and_too_few_widths_leave_it_open():
    found = verdict(measured(steps(ONE, TWO), noise=0.8))
    assert found.headline == "This run does not show whether to train on both cores."
    few = verdict(measured(steps(ONE, TWO, SIZES[:2])))
    assert "Fewer than three widths" in few.much
    assert found.sure == few.sure == "not known yet"


def test_the_ways_of_bringing_a_batch_are_compared():
    known = steps(CPU, GPU, pair=GPU_PAIR)
    _, stays = known["GPU, width 2,048, batch 64"]
    feeds = {"floats": 1.3, "bytes": 1.1, "ahead": 1.0}
    known |= {f"GPU fed {how}": (64, stays * part) for how, part in feeds.items()}
    against = dict.fromkeys(("GPU fed bytes", "GPU fed ahead"), "GPU fed floats")
    against["GPU fed floats"] = "GPU, width 2,048, batch 64"
    rows = facts(measured(known, **against))
    told = [
        rows[f'"{name}" against "{other}"'].value for name, other in against.items()
    ]
    assert told == ["1.2×, faster", "1.3×, faster", "0.77×, slower"]


PLACED = steps(ONE, TWO) | {
    "one core, dense, batch 64": (64, 0.002),
    "all cores, dense, batch 64": (64, 0.0016),
}


def test_a_readers_model_stands_on_the_curve_by_its_arithmetic_or_its_weights():
    notes = {"yours": {"flops": SIZES[1].cost.flops}}
    like = 'Gain of "{}", like width 128, {}'.format
    dot = facts(measured(PLACED, notes=notes), yours="dense")[like("dense", "measured")]
    assert (dot.value, dot.interval) == ("1.26×", "1.24× to 1.28×")
    beyond = {"yours": {"flops": 1.0}}
    labels = " ".join(facts(measured(PLACED, notes=beyond), yours="dense"))
    assert "like width" not in labels
    # Width 128 has three layers of 128 by 128 and one of 128 by 10.
    rows = facts(measured(steps(ONE, TWO)), weights=3 * 128**2 + 1280)
    assert like("50,432 weights", "read off the curve, not measured") in rows
    assert "like width" not in " ".join(facts(measured(steps(ONE, TWO)), weights=10))


@pytest.mark.measures
def test_a_short_run_ends_with_a_verdict(tmp_path, gpus):
    asked = CpuOrGpu(narrowest=4, widest=64, widths=2, batch=8)
    found = run(asked, budget=12, folder=tmp_path)
    completed = {t.variant for t in found.trials if t.outcome == "completed"}
    runs = {name for name, one in asked.make_variants().items() if not one.unavailable}
    assert runs <= completed
    # Its process asks for itself.
    assert found.notes["cores"] == max(1, round(found.machine.cores_granted))
    # On a busy machine some widths may have no rate, and then that is said.
    assert re.search("core", found.verdict.headline)


def test_the_work_of_a_named_model_is_counted_before_the_run(gpus):
    asked = CpuOrGpu(yours="tiny-dense", batch=8)
    notes = perfkit.fresh(lambda _: {n.name: n.value for n in asked.prepare()})
    # 100 by 10 and 10 by 2: forward, for the weights, and for what lies between.
    assert notes["yours"]["flops"] == 2 * 8 * (2 * (1000 + 20) + 20)
    assert list(asked.make_variants())[10:12] == [
        *("one core, tiny-dense, batch 8", "all cores, tiny-dense, batch 8")
    ]
