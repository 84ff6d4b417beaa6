import re

import pytest

from perfkit.errors import BadParameterError, RunError
from perfkit.questions import cpu_or_gpu, experiment
from perfkit.questions.cpu_or_gpu import PAIRS, CpuOrGpu
from perfkit.questions.runs import run
from tests.questions.crossings import CPU, GPU, ONE, SIZES, TWO, measured, steps
from tests.questions.races import sayings

GPU_PAIR = PAIRS[1]
verdict = sayings("cpu-or-gpu")


def test_without_a_gpu_each_size_pairs_one_core_with_all(gpus):
    asked = experiment("cpu-or-gpu")
    runs = [*asked.make_variants().values()]
    assert runs[0].name == asked.baseline == "one core, width 32, batch 64"
    assert [one.against for one in runs[::2]] == [""] * 5
    assert [one.against for one in runs[1::2]] == [one.name for one in runs[::2]]


def test_with_a_gpu_the_whole_cpu_is_held_against_it(gpus):
    gpus(1)
    variants = experiment("cpu-or-gpu").make_variants()
    assert not any(one.unavailable for one in variants.values())
    assert variants["GPU, width 32, batch 64"].against == "CPU, width 32, batch 64"


def test_what_cannot_be_asked_or_used_is_said_before_the_run(gpus, monkeypatch):
    for low, high, widths in ((8, 8, 4), (32, 36, 4), (32, 2048, 2)):
        with pytest.raises(BadParameterError, match=r"give a (number from 3|wide)"):
            CpuOrGpu(narrowest=low, widest=high, widths=widths)
    gpus(1)
    monkeypatch.setattr(cpu_or_gpu.benchmark, "sees_gpu", lambda: False)
    with pytest.raises(RunError, match="devices=cores"):
        list(experiment("cpu-or-gpu").prepare())


def test_a_crossover_is_told_with_what_it_brings_and_what_a_step_costs():
    found = verdict(measured(steps(ONE, TWO)))
    where = r"Train on both cores from about width 1\d0 up, on one core below."
    assert re.fullmatch(where, found.headline)
    assert re.search(r"training on both cores is (1\.9|2\.0) times as", found.much)
    assert (found.sure, found.winner) == ("sure", "")
    rows = {fact.label: fact.value for fact in found.facts}
    assert re.fullmatch(r"[56]\d\d µs", rows["A step before any work, one core"])
    share = rows["Share before any work at width 32, all cores"]
    assert int(share.removesuffix(" %")) > 90
    gpu = verdict(measured(steps(CPU, GPU, pair=GPU_PAIR)))
    assert gpu.headline.startswith("Train on the GPU from about width")


def test_never_and_always_are_verdicts_and_a_gpu_that_never_pays_is_hidden():
    never = verdict(measured(steps(ONE, ONE)))
    assert never.headline == "Stay on one core: both cores would bring too little."
    assert (never.edits, never.sure) == ((), "sure")
    always = verdict(measured(steps(ONE, tuple(part / 2 for part in ONE))))
    assert always.headline.startswith("Train on both cores at every width")
    slower = tuple(2 * part for part in CPU)
    found = verdict(measured(steps(CPU, slower, pair=GPU_PAIR)))
    assert found.headline.startswith("Stay on the CPU")
    assert "on the GPU is 0.50 times as fast as on the CPU" in found.much
    assert 'set_visible_devices([], "GPU")' in found.edits[0].new


def test_noise_and_too_few_widths_leave_it_open():
    found = verdict(measured(steps(ONE, TWO), noise=0.8))
    assert found.headline == "This run does not show whether to train on both cores."
    few = verdict(measured(steps(ONE, TWO, SIZES[:2])))
    assert "Fewer than three widths" in few.much
    assert found.sure == few.sure == "not known yet"


def test_a_short_run_ends_with_a_verdict(tmp_path, gpus):
    asked = CpuOrGpu(narrowest=4, widest=64, widths=3, batch=8)
    found = run(asked, budget=8, folder=tmp_path)
    completed = {t.variant for t in found.trials if t.outcome == "completed"}
    assert {*asked.make_variants()} <= completed
    # Its process asks for itself.
    assert found.notes["cores"] == max(1, round(found.machine.cores_granted))
    # On a busy machine some widths may have no rate, and then that is said.
    assert re.search("core", found.verdict.headline)
