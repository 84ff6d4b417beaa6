import pickle
import re
from dataclasses import replace

import cloudpickle
import pytest

from perfkit.errors import BadParameterError, RunError
from perfkit.experiments import experiment, microbenchmarks
from perfkit.experiments.microbenchmarks import probes
from perfkit.experiments.microbenchmarks.verdict import judge
from perfkit.experiments.session import Session
from perfkit.experiments.shared import probe
from perfkit.findings import store
from perfkit.findings.standing import rungs
from perfkit.machine.gpu import Gpu
from perfkit.measure.measurement import Measurement
from perfkit.measure.tick import REFUSED, Note
from tests.findings import ladders

TENSORFLOW = (2.2e11, "FLOP", "TensorFlow", 5e11)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    none = ((), "No NVIDIA driver is installed.")
    monkeypatch.setattr(microbenchmarks, "gpus_here", lambda: none)


@pytest.fixture
def a_gpu(monkeypatch):
    one = ((Gpu(name="NVIDIA A10"),), "")
    monkeypatch.setattr(microbenchmarks, "gpus_here", lambda: one)


@pytest.fixture
def prepared(monkeypatch):
    """The notes of preparing, with nothing drawn and no TensorFlow touched."""
    monkeypatch.setattr(microbenchmarks, "without_gpus", lambda: None)
    monkeypatch.setattr(microbenchmarks.parts, "hertz", lambda: 3e9)

    def notes(**parameters):
        made = experiment("machine-ladder", **parameters).prepare()
        return {n.name: n.value for n in made if isinstance(n, Note)}

    return notes


# What is run.


def test_every_part_is_tried_unless_told_otherwise():
    arms = experiment("machine-ladder").variants()
    assert len(arms) > 20
    assert all(arm.against == "" for arm in arms.values())
    assert all(arm.changes for arm in arms.values() if not arm.unavailable)


def test_names_fit_into_a_chart_and_the_notes_of_a_finding(a_gpu):
    arms = experiment("machine-ladder", rungs=",".join(microbenchmarks._GROUPS))
    assert max(map(len, arms.variants())) <= 30


def test_one_part_brings_the_product_that_tells_the_noise():
    assert list(experiment("machine-ladder", rungs="disk").variants()) == [
        probe.BASELINE,
        probe.NAME,
    ]


def test_without_a_gpu_its_rungs_are_one_line_that_says_why():
    arms = experiment("machine-ladder", rungs="gpu").variants()
    assert arms["GPU rungs"].unavailable == "No NVIDIA driver is installed."
    assert list(arms) == [probe.BASELINE, "GPU rungs"]


def test_nothing_is_said_of_a_gpu_that_nobody_asks_for():
    assert "GPU rungs" not in experiment("machine-ladder", rungs="memory").variants()


def test_a_gpu_has_its_rungs_and_is_heated_only_when_asked(a_gpu):
    arms = experiment("machine-ladder").variants()
    assert {"GPU launch", "to the GPU, pinned", "GPU product, TF32"} <= set(arms)
    assert not any(arm.unavailable for arm in arms.values())
    assert "GPU clock under load" not in arms
    heated = experiment("machine-ladder", rungs="heat").variants()
    assert "GPU clock under load" in heated


def test_work_can_be_sent_to_a_process_of_its_own(a_gpu):
    for arm in experiment("machine-ladder").variants().values():
        assert pickle.loads(cloudpickle.dumps(arm.work))


def test_without_tensorflow_the_rest_is_still_tried(monkeypatch):
    monkeypatch.setattr(microbenchmarks, "_without_tensorflow", lambda: True)
    arms = experiment("machine-ladder").variants()
    missing = {name for name, arm in arms.items() if "TensorFlow" in arm.unavailable}
    assert {"graph call", "JPEG decode"} <= missing
    assert not arms["memory copy"].unavailable


def test_a_part_that_there_is_not_is_refused():
    with pytest.raises(BadParameterError, match="choose from interpreter, arrays"):
        experiment("machine-ladder", rungs="toaster")


# What is told of it.


def test_preparing_tells_of_every_rung_what_it_counts_and_what_is_possible(prepared):
    notes = prepared(rungs="interpreter,arrays,pipeline")
    told = rungs(notes)
    assert set(told) == set(
        experiment("machine-ladder", rungs="interpreter,arrays,pipeline").variants()
    )
    assert told["tf.data map"].unit == "elements"
    limits = {name for name, rung in told.items() if rung.limit}
    assert limits <= {name for name in told if name.startswith("NumPy ")}
    assert all(told[name].limit_from for name in limits)


def test_the_gpus_line_is_in_its_group(prepared):
    assert rungs(prepared(rungs="gpu"))["GPU rungs"].group == "GPU"


def test_a_disk_says_whether_it_is_read_cold(prepared, tmp_path, monkeypatch):
    (tmp_path / "data").write_bytes(b"x" * 10_000)
    for forgets, how in ((True, probe.COLD), (False, probe.CACHED)):
        monkeypatch.setattr(probe, "forgets", lambda _, found=forgets: found)
        told = rungs(prepared(rungs="disk", data=str(tmp_path)))
        assert told[probe.NAME].what.endswith(how)


def test_what_cannot_be_made_takes_no_other_rung_with_it(prepared, monkeypatch):
    def full(_):
        raise RunError("There is no room.")
        yield

    monkeypatch.setattr(probe, "made", full)
    notes = prepared(rungs="disk,interpreter")
    assert notes[REFUSED] == {probe.NAME: "There is no room."}
    assert "Python loop" in rungs(notes)


def test_a_gpu_that_tensorflow_cannot_use_is_not_tried(prepared, a_gpu, monkeypatch):
    monkeypatch.setattr(microbenchmarks.gpu, "sees_one", lambda: False)
    refused = prepared(rungs="gpu")[REFUSED]
    assert "GPU launch" in refused
    assert probe.BASELINE not in refused


# What is said.


def ladder(rounds=3, notes=None, **rungs_):
    return ladders.measured({**ladders.RUNGS, **rungs_}, rounds, notes)


def with_tensorflow(**more):
    return ladder(**{probe.TENSORFLOW: TENSORFLOW}, **more)


def test_nothing_measured_says_so():
    assert "Too little" in judge(Measurement(arms=())).headline


def test_the_faster_library_speaks_for_the_arithmetic():
    said = judge(with_tensorflow()).headline
    assert said.startswith("Matrix products in float32 reach 4")
    assert "of what 2 cores can do in theory" in said


def test_a_library_that_lags_behind_is_named_with_what_to_do():
    slow = ladder(**{probe.TENSORFLOW: (8e11, "FLOP", "TensorFlow", 9e11)})
    found = judge(slow)
    assert "weakest is NumPy's matrix product, 0.2" in found.headline
    assert "tf.matmul" in found.next
    assert found.winner == ""


def test_a_healthy_machine_has_no_weak_part():
    assert judge(with_tensorflow()).headline.endswith("no part is shown to be weak.")


def test_one_round_calls_nothing_weak():
    slow = {probe.TENSORFLOW: (8e11, "FLOP", "TensorFlow", 9e11)}
    assert "weakest" not in judge(ladder(1, **slow)).headline


def test_without_a_limit_the_rate_itself_is_said():
    bare = {**ladders.RUNGS, probe.BASELINE: (2e11, "FLOP", "arrays", None)}
    said = judge(ladders.measured(bare)).headline
    assert "float32 reach" in said
    assert "GFLOP/s" in said


@pytest.mark.parametrize(("bytes_each", "weak"), [(1_000_000, True), (10_000, False)])
def test_a_disk_that_gives_fewer_pictures_than_are_decoded_is_weak(bytes_each, weak):
    both = {
        probe.NAME: (2e8, "B", "disk", None),
        probes.ALL_CORES: (1000.0, "images", "images", None),
    }
    found = judge(ladder(notes={"image_bytes": bytes_each}, **both))
    assert ("the disk, which gives 2" in found.headline) is weak


@pytest.mark.parametrize(("all_cores", "weak"), [(700.0, True), (1500.0, False)])
def test_cores_that_do_not_add_up_are_weak(all_cores, weak):
    both = {
        probes.ONE_CORE: (1000.0, "images", "images", None),
        probes.ALL_CORES: (all_cores, "images", "images", None),
    }
    assert (
        '"JPEG decode", on 2 cores only 0.' in judge(ladder(**both)).headline
    ) is weak


@pytest.mark.parametrize(
    ("name", "weak"),
    [("to the GPU, pinned", True), ("to the GPU", False), ("GPU memory", True)],
)
def test_a_gpu_below_half_of_its_limit_is_weak_where_sound_ones_reach_more(name, weak):
    found = judge(ladder(**{name: (5e9, "B", "GPU", 3.2e10)}))
    assert (f'weakest is "{name}", 1' in found.headline) is weak


def test_a_processors_limit_calls_nothing_weak_by_itself():
    low = {**ladders.RUNGS, probe.BASELINE: (2e10, "FLOP", "arrays", 5e11)}
    assert "weakest" not in judge(ladders.measured(low)).headline


def test_what_a_call_costs_and_what_was_not_reached_are_told():
    missed = {"operation in a graph": (1e6, "calls", "TensorFlow", None)}
    measured = ladder(**missed)
    trials = tuple(t for t in measured.trials if t.variant not in missed)
    found = judge(Measurement(arms=measured.arms, trials=trials, notes=measured.notes))
    assert any("tf.function costs 2" in reason for reason in found.because)
    assert any("Not measured: operation in a graph." in r for r in found.because)


@pytest.mark.measures
def test_a_whole_run_tells_rates_in_their_units(tmp_path):
    ladder = experiment("machine-ladder", rungs="interpreter")
    session = Session(ladder, budget=4, folder=tmp_path)
    for _ in session.events():
        pass
    said = repr(session.finding)
    assert "steps/s" in said
    assert "FLOP/s" in said
    assert "examples" not in said
    assert session.finding.noise_floor is not None
    assert session.finding.comparisons == ()
    assert store.load(session.finding.path).notes == session.finding.notes


def test_a_busy_machine_is_asked_to_be_quieter():
    measured = ladder()
    (noisy,) = [t for t in measured.timings if t.variant == probe.BASELINE]
    assert "Close other programs" not in judge(ladder()).next
    object.__setattr__(noisy, "high", 3 * noisy.rate)
    found = judge(measured)
    assert found.headline.startswith("Too noisy to say what matrix products")
    assert found.next.startswith("Close other programs")


def test_one_round_is_shown_and_not_claimed():
    found = judge(ladder(1))
    assert found.headline == "One round: shown, not claimed."
    assert "%" not in " ".join(found.because)


def test_what_other_programs_took_is_the_likely_reason_and_no_part_is_weak():
    slow = {probe.TENSORFLOW: (8e11, "FLOP", "TensorFlow", 9e11)}
    quiet = ladder(**slow)
    assert "weakest" in judge(quiet).headline
    busy = replace(quiet, samples={"t": (0.0, 1.0), "cpu_other": (1.6, 1.8)})
    found = judge(busy)
    assert "weak" not in found.headline
    assert found.because[0].startswith("Other programs kept 1.7 of 2 cores busy")


def test_no_share_above_the_limit_is_said():
    measured = ladder()
    timing = measured.timing(probe.BASELINE)
    for name, value in (("low", 4e11), ("rate", 4.5e11), ("high", 6e11)):
        object.__setattr__(timing, name, value)
    said = judge(measured).headline
    assert "reach 90 % of what 2 cores can do in theory (80 % or more)" in said
    object.__setattr__(timing, "rate", 5.5e11)
    assert "float32 reach what 2 cores can do in theory (" in judge(measured).headline


def test_the_ratio_of_all_cores_to_one_has_its_interval():
    both = {
        probes.ONE_CORE: (1000.0, "images", "images", None),
        probes.ALL_CORES: (700.0, "images", "images", None),
    }
    assert re.search(r"only 0[.]\d+× [(]0", judge(ladder(**both)).headline)


def test_a_rung_that_had_one_round_is_no_weak_part():
    slow = {"GPU memory": (5e9, "B", "GPU", 3.2e10)}
    measured = ladder(**slow)
    assert "weakest" in judge(measured).headline
    kept = [t for t in measured.trials if t.variant not in slow or t.round == 1]
    assert "weakest" not in judge(replace(measured, trials=tuple(kept))).headline


def test_what_stop_kept_from_being_measured_needs_no_larger_budget():
    measured = ladder()
    cut = [t for t in measured.trials if t.variant != "graph call"]
    ended = replace(
        measured.trials[0],
        variant="graph call",
        outcome="stopped",
        message="the run was stopped",
    )
    said = " ".join(judge(replace(measured, trials=(*cut, ended))).because)
    assert "graph call. The run was stopped." in said
    assert "larger budget" not in said
