import pickle
import re
from dataclasses import replace

import cloudpickle
import pytest

from perfkit.engine.tick import REFUSED, Note
from perfkit.errors import RunError
from perfkit.findings import standing
from perfkit.questions import experiment, microbenchmarks
from perfkit.questions.microbenchmarks import work
from perfkit.questions.shared import benchmark
from tests.findings import parts

pytestmark = pytest.mark.usefixtures("gpus")
judge = experiment("machine-ladder").verdict
TENSORFLOW = (2.2e11, "FLOP", "TensorFlow", 5e11)


@pytest.fixture
def prepared(monkeypatch):
    """The notes of preparing, with nothing drawn and no TensorFlow touched."""
    monkeypatch.setattr(microbenchmarks, "without_gpus", lambda: None)
    monkeypatch.setattr(microbenchmarks.work, "hertz", lambda: 3e9)

    def notes(**parameters):
        made = experiment("machine-ladder", **parameters).prepare()
        return {n.name: n.value for n in made if isinstance(n, Note)}

    return notes


def test_every_part_is_tried_and_a_gpu_heated_only_when_asked(gpus, monkeypatch):
    variants = experiment("machine-ladder").make_variants()
    assert len(variants) > 20
    assert all(one.against == "" for one in variants.values())
    gpus(1)
    every = experiment("machine-ladder", parts=",".join(microbenchmarks._GROUPS))
    assert max(map(len, every.make_variants())) <= 30
    variants = experiment("machine-ladder").make_variants()
    assert {"GPU launch", "to the GPU, pinned", "GPU product, TF32"} <= set(variants)
    assert not any(one.unavailable for one in variants.values())
    assert all(pickle.loads(cloudpickle.dumps(one.work)) for one in variants.values())
    assert "GPU clock under load" not in variants
    heated = experiment("machine-ladder", parts="heat").make_variants()
    assert "GPU clock under load" in heated
    monkeypatch.setattr(microbenchmarks, "_without_tensorflow", lambda: True)
    variants = experiment("machine-ladder").make_variants()
    for name in ("graph call", "JPEG decode"):
        assert "TensorFlow" in variants[name].unavailable
    assert not variants["memory copy"].unavailable


@pytest.mark.parametrize(
    ("benchmarks", "names", "why"),
    [
        ("disk", [benchmark.NAME], ""),
        # Without a GPU its microbenchmarks are one line, where anybody asks for them.
        ("gpu", ["GPU microbenchmarks"], "No NVIDIA driver here."),
        ("memory", ["memory copy, 1 core", "memory copy"], ""),
    ],
)
def test_one_part_brings_the_product_that_tells_the_noise(benchmarks, names, why):
    variants = experiment("machine-ladder", parts=benchmarks).make_variants()
    assert list(variants) == [benchmark.BASELINE, *names]
    assert variants[names[-1]].unavailable == why


def test_preparing_tells_what_each_counts_and_what_is_possible(prepared):
    groups = "interpreter,arrays,pipeline"
    counts = standing.microbenchmarks(prepared(parts=groups))
    variants = experiment("machine-ladder", parts=groups).make_variants()
    assert set(counts) == set(variants)
    assert counts["tf.data map"].unit == "elements"
    on_gpu = standing.microbenchmarks(prepared(parts="gpu"))
    assert on_gpu["GPU microbenchmarks"].group == "GPU"
    limits = {name for name, one in counts.items() if one.limit}
    assert limits <= {name for name in counts if name.startswith("NumPy ")}
    assert all(counts[name].limit_from for name in limits)


def test_a_disk_says_whether_it_is_read_cold(prepared, tmp_path, monkeypatch):
    (tmp_path / "data").write_bytes(b"x" * 10_000)
    for forgets, how in ((True, benchmark.COLD), (False, benchmark.CACHED)):
        monkeypatch.setattr(benchmark, "forgets", lambda _, answer=forgets: answer)
        counts = standing.microbenchmarks(prepared(parts="disk", data=str(tmp_path)))
        assert counts[benchmark.NAME].what == f"reading {how}"


def test_what_cannot_be_made_or_used_takes_no_other_with_it(
    prepared, gpus, monkeypatch
):
    def full(_):
        raise RunError("There is no room.")
        yield

    monkeypatch.setattr(benchmark, "make", full)
    notes = prepared(parts="disk,interpreter")
    assert notes[REFUSED] == {benchmark.NAME: "There is no room."}
    assert "Python loop" in standing.microbenchmarks(notes)
    gpus(1)
    monkeypatch.setattr(microbenchmarks.gpu, "sees_one", lambda: False)
    refused = prepared(parts="gpu")[REFUSED]
    assert "GPU launch" in refused
    assert benchmark.BASELINE not in refused


BOTH = {
    work.ONE_CORE: (1000.0, "images", "images", None),
    work.ALL_CORES: (700.0, "images", "images", None),
}
SLOW_NUMPY = {benchmark.TENSORFLOW: (8e11, "FLOP", "TensorFlow", 9e11)}
FULL_GPU = {"GPU memory": (5e9, "B", "GPU", 3.2e10)}
DISK = {benchmark.NAME: (2e8, "B", "disk", None), work.ALL_CORES: BOTH[work.ALL_CORES]}
HEALTHY = "No part of this machine is shown to be weak."


def timed(rounds=3, notes=None, **benchmarks):
    return parts.measured({**parts.RATES, **benchmarks}, rounds, notes)


def says(measured):
    """The answer, how much, how sure."""
    found = judge(measured)
    assert found.winner == ""
    return " ".join((found.headline, found.much, found.sure))


def test_a_healthy_machine_has_no_weak_part_and_shares_or_rates_are_said():
    said = says(timed(**{benchmark.TENSORFLOW: TENSORFLOW}))
    assert said.startswith(f"{HEALTHY} Products in float32: 4")
    assert "of what 2 cores can do in theory" in said
    bare = {**parts.RATES, benchmark.BASELINE: (2e11, "FLOP", "arrays", None)}
    found = judge(parts.measured(bare))
    assert found.headline.endswith("are not known here.")
    assert re.search(r"float32: [\d.]+ GFLOP/s", found.much)
    facts = {fact.label: fact.value for fact in judge(timed()).facts}
    assert facts["A call of a tf.function"].startswith("2")


@pytest.mark.parametrize(
    ("benchmarks", "notes", "weak"),
    [
        (SLOW_NUMPY, {}, "write `tf.matmul`"),
        (BOTH, {}, "JPEG decode, 2 cores against one: 0."),
        (BOTH | {work.ALL_CORES: (1500.0, "images", "images", None)}, {}, ""),
        (FULL_GPU, {}, "GPU memory: 1"),
        ({"to the GPU, pinned": FULL_GPU["GPU memory"]}, {}, "to the GPU, pinned: "),
        # Sound machines reach no more of these limits.
        ({"to the GPU": FULL_GPU["GPU memory"]}, {}, ""),
        ({benchmark.BASELINE: (2e10, "FLOP", "arrays", 5e11)}, {}, ""),
        (DISK, {"image_bytes": 1_000_000}, "The disk: 20"),
        (DISK, {"image_bytes": 10_000}, ""),
    ],
)
def test_a_part_is_weak_where_its_whole_interval_says_so(benchmarks, notes, weak):
    said = says(timed(notes=notes, **benchmarks))
    assert weak in said
    assert said.startswith(HEALTHY) is not bool(weak)


def test_the_weakest_comes_first_with_its_interval_and_two_rates():
    found = judge(timed(**SLOW_NUMPY))
    assert re.search(r"NumPy: [34]\.\d times as fast: \d+ instead", found.much)
    assert (found.sure, bool(found.interval)) == ("sure", True)
    assert found.facts[0].interval == found.interval
    assert found.facts[1].label == "Products in float32"
    assert found.facts[1].value.startswith("8")
    found = judge(timed(**SLOW_NUMPY, **FULL_GPU))
    assert "perfkit doctor" in found.headline
    labels = [fact.label for fact in found.facts[:2]]
    assert labels == ["GPU memory", "Matrix products, TensorFlow against NumPy"]


@pytest.mark.parametrize("kept", ["one round", "one round of it"])
def test_one_round_calls_nothing_weak(kept):
    measured = timed(1 if kept == "one round" else 3, **FULL_GPU)
    trials = [t for t in measured.trials if t.variant not in FULL_GPU or t.round == 1]
    found = judge(replace(measured, trials=tuple(trials)))
    assert found.sure == ("not known yet" if kept == "one round" else "")
    assert "GPU memory" not in found.headline + found.much + repr(found.facts)
    assert ("more seconds" in found.next) is (kept == "one round")


def test_what_was_not_reached_is_told():
    measured = timed()
    cut = [t for t in measured.trials if t.variant != "graph call"]
    reasons = judge(replace(measured, trials=tuple(cut))).because
    assert reasons == ("Not measured: graph call. A longer run may reach them.",)


def test_a_noisy_machine_is_asked_to_be_quieter_and_no_share_is_above_its_limit():
    measured = timed()
    assert "Close other programs" not in judge(timed()).next
    noisy = measured.timing(benchmark.BASELINE)
    object.__setattr__(noisy, "high", 3 * noisy.rate)
    found = judge(measured)
    assert found.much.endswith("is not known yet.")
    assert found.next.startswith("Close other programs")
    measured = timed()
    timing = measured.timing(benchmark.BASELINE)
    for name, value in (("low", 4e11), ("rate", 4.5e11), ("high", 6e11)):
        object.__setattr__(timing, name, value)
    said = says(measured)
    assert "float32: 90 % of what 2 cores can do in theory (80 % or more)" in said
    object.__setattr__(timing, "rate", 5.5e11)
    assert "float32: what 2 cores can do in theory (" in says(measured)


def test_what_other_programs_took_is_the_likely_reason_and_no_part_is_weak():
    busy = {"t": (0.0, 1.0), "cpu_other": (1.6, 1.8)}
    found = judge(replace(timed(**SLOW_NUMPY), samples=busy))
    assert found.headline.startswith("This run does not show")
    assert "tf.matmul" not in repr(found)
    assert found.because[0].startswith("Other programs kept 1.7 cores busy")
    assert found.next.startswith("Close the programs that keep the cores busy")
