import pickle
from dataclasses import replace

import cloudpickle
import pytest

from perfkit.engine.trial import REFUSED, Note
from perfkit.errors import RunError
from perfkit.findings import standing
from perfkit.questions import experiment, microbenchmarks
from perfkit.questions.microbenchmarks import work
from perfkit.questions.shared import benchmark
from tests.findings import parts

pytestmark = pytest.mark.usefixtures("gpus")
judge = experiment("machine-ladder").verdict


def prepared(**parameters):
    """The notes of preparing."""
    made = experiment("machine-ladder", **parameters).prepare()
    return {n.name: n.value for n in made if isinstance(n, Note)}


def test_every_part_is_tried(gpus):
    assert list(experiment("machine-ladder", parts="gpu").make_variants()) == [
        work.BASELINE
    ]
    gpus(1)
    variants = experiment("machine-ladder").make_variants()
    assert {"to the GPU", "GPU product, TF32"} <= set(variants)
    assert not any(one.unavailable for one in variants.values())
    assert all(pickle.loads(cloudpickle.dumps(one.work)) for one in variants.values())


def test_what_cannot_be_made_or_used_takes_no_other_with_it(gpus, monkeypatch):
    def full(_):
        raise RunError("There is no room.")
        yield

    # Nothing is drawn, and no TensorFlow touched.
    monkeypatch.setattr(microbenchmarks, "without_gpus", lambda: None)
    monkeypatch.setattr(microbenchmarks.work, "hertz", lambda: 3e9)
    monkeypatch.setattr(benchmark, "make", full)
    notes = prepared(parts="disk,memory")
    assert notes[REFUSED] == {work.DATA_DISK: "There is no room."}
    assert "memory copy" in standing.microbenchmarks(notes)
    gpus(1)
    monkeypatch.setattr(benchmark, "sees_gpu", lambda: False)
    refused = prepared(parts="gpu")[REFUSED]
    assert "to the GPU" in refused
    assert work.BASELINE not in refused


BOTH = {
    work.ONE_CORE: (1000.0, "images", "images", None),
    work.ALL_CORES: (700.0, "images", "images", None),
}
FULL_GPU = {"GPU memory": (5e9, "B", "GPU", 3.2e10)}
DISK = {work.DATA_DISK: (2e8, "B", "disk", None), work.ALL_CORES: BOTH[work.ALL_CORES]}
HEALTHY = "No part of this machine is shown to be weak."


def timed(rounds=3, notes=None, **benchmarks):
    return parts.measured({**parts.RATES, **benchmarks}, rounds, notes)


def says(measured):
    """The answer, how much, how sure."""
    found = judge(measured)
    assert found.winner == ""
    return " ".join((found.headline, found.much, found.sure))


@pytest.mark.parametrize(
    ("benchmarks", "notes", "weak"),
    [
        (BOTH, {}, "JPEG decode, 2 cores against one: 0."),
        (BOTH | {work.ALL_CORES: (1500.0, "images", "images", None)}, {}, ""),
        (FULL_GPU, {}, "GPU memory: 1"),
        # Sound machines reach no more of these limits.
        ({"to the GPU": FULL_GPU["GPU memory"]}, {}, ""),
        ({work.BASELINE: (2e10, "FLOP", "arrays", 5e11)}, {}, ""),
        (DISK, {"image_bytes": 1_000_000}, "The disk: 20"),
        (DISK, {"image_bytes": 10_000}, ""),
    ],
)
def test_a_part_is_weak_where_its_whole_interval_says_so(benchmarks, notes, weak):
    said = says(timed(notes=notes, **benchmarks))
    assert weak in said
    assert said.startswith(HEALTHY) is not bool(weak)


@pytest.mark.parametrize("kept", ["one round", "one round of it"])
def test_one_round_calls_nothing_weak(kept):
    measured = timed(1 if kept == "one round" else 3, **FULL_GPU)
    trials = [t for t in measured.trials if t.variant not in FULL_GPU or t.round == 1]
    found = judge(replace(measured, trials=tuple(trials)))
    assert found.sure == ("not known yet" if kept == "one round" else "")
    assert "GPU memory" not in found.headline + found.much + repr(found.facts)
    assert ("more seconds" in found.next) is (kept == "one round")


def test_a_noisy_machine_is_asked_to_be_quieter_and_no_share_is_above_its_limit():
    measured = timed()
    noisy = measured.timing(work.BASELINE)
    object.__setattr__(noisy, "high", 3 * noisy.rate)
    found = judge(measured)
    assert found.much.endswith("is not known yet.")
    assert found.next.startswith("Close other programs")
    measured = timed()
    timing = measured.timing(work.BASELINE)
    for name, value in (("low", 4e11), ("rate", 5.5e11), ("high", 6e11)):
        object.__setattr__(timing, name, value)
    assert "100 % of what 2 cores can do in theory (" in says(measured)


def test_what_other_programs_took_is_the_likely_reason_and_no_part_is_weak():
    busy = {"t": (0.0, 1.0), "cpu_other": (1.6, 1.8)}
    found = judge(replace(timed(**FULL_GPU), samples=busy))
    assert found.headline.startswith("This run does not show")
    assert "GPU memory" not in found.much
    assert found.because[0].startswith("Other programs kept 1.7 cores busy")
    assert found.next.startswith("Close other programs")
