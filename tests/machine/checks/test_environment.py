import pytest

from perfkit.machine.checks import settings
from tests.machine.checks.computers import card, changed, without_card, workstation


def told(machine, **variables):
    machine = changed(machine, environment=variables)
    return [(check.id, check.status) for check in settings.costly(machine)]


@pytest.mark.parametrize(
    ("variable", "costs", "does_not", "rule"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", "0", "launch-blocking"),
        ("CUDA_CACHE_DISABLE", "1", "0", "no-kernel-cache"),
        ("TF_DETERMINISTIC_OPS", "true", "false", "deterministic"),
        ("TF_CUDNN_DETERMINISTIC", "1", "0", "deterministic-cudnn"),
        ("TF_CUDNN_USE_AUTOTUNE", "0", "1", "no-autotune"),
        ("TF_FORCE_UNIFIED_MEMORY", "1", "0", "unified-memory"),
        ("NVIDIA_TF32_OVERRIDE", "0", "1", "no-tf32"),
        ("TF_ENABLE_ONEDNN_OPTS", "0", "1", "onednn-off"),
        ("XLA_FLAGS", "--xla_dump_to=<path>", "--xla_gpu_cuda_data_dir=/", "xla-dump"),
        ("TF_CPP_MIN_LOG_LEVEL", "2", "1", "silenced-log"),
    ],
)
def test_a_variable_costs_with_one_value_and_not_with_another(
    variable, costs, does_not, rule
):
    assert told(workstation(), **{variable: costs}) == [(rule, "warn")]
    assert told(workstation(), **{variable: does_not}) == []


def test_forcing_the_driver_to_compile_is_a_fault():
    assert told(workstation(), CUDA_FORCE_PTX_JIT="1") == [("forced-compiling", "fail")]


def test_clustering_by_xla_is_neither_good_nor_bad():
    flags = {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2"}
    assert told(workstation(), **flags) == [("auto-clustering", "unknown")]


def test_what_concerns_a_gpu_is_no_matter_without_one():
    variables = {
        "CUDA_LAUNCH_BLOCKING": "1",
        "NVIDIA_TF32_OVERRIDE": "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    assert told(without_card(), **variables) == []


def test_older_cards_have_no_tf32_to_lose():
    turing = workstation(card(compute_capability="7.5"))
    assert told(turing, NVIDIA_TF32_OVERRIDE="0") == []


def test_onednn_costs_most_where_the_processor_trains():
    def cost(machine):
        set_off = changed(machine, environment={"TF_ENABLE_ONEDNN_OPTS": "0"})
        return next(settings.costly(set_off)).cost

    assert cost(without_card()) > cost(workstation())


def test_the_remedy_unsets_the_variable_in_the_words_of_the_system():
    slow = changed(workstation(), environment={"CUDA_LAUNCH_BLOCKING": "1"})
    windows = changed(slow, software={"platform": "windows"})
    inside = changed(slow, software={"container": True})
    assert next(settings.costly(slow)).remedy.startswith("unset CUDA_LAUNCH")
    assert "Remove-Item Env:CUDA_LAUNCH" in next(settings.costly(windows)).remedy
    assert "without -e CUDA_LAUNCH" in next(settings.costly(inside)).remedy


@pytest.mark.parametrize(
    ("variable", "value", "faults"),
    [
        ("TF_NUM_INTRAOP_THREADS", "4", 1),
        ("TF_NUM_INTRAOP_THREADS", "24", 0),
        # 0 leaves the choice to TensorFlow.
        ("TF_NUM_INTRAOP_THREADS", "0", 0),
        ("TF_NUM_INTEROP_THREADS", "1", 1),
        ("TF_NUM_INTEROP_THREADS", "2", 0),
        ("OMP_NUM_THREADS", "1", 1),
        ("OMP_NUM_THREADS", "four", 0),
    ],
)
def test_threads_are_held_against_the_cores(variable, value, faults):
    machine = changed(workstation(), environment={variable: value})
    found = list(settings.threads(machine))
    assert len(found) == faults
    assert all(variable in check.title for check in found)


def test_as_many_threads_as_cores_are_granted_are_enough():
    environment_of = {"TF_NUM_INTRAOP_THREADS": "2"}
    machine = changed(workstation(), cores_granted=2.0, environment=environment_of)
    assert list(settings.threads(machine)) == []


def test_one_thread_for_each_core_without_its_second_thread_is_enough():
    machine = changed(workstation(), environment={"OMP_NUM_THREADS": "12"})
    assert len(list(settings.threads(machine))) == 1
    two_each = changed(machine, processor={"physical_cores": 12})
    assert list(settings.threads(two_each)) == []


def test_variables_that_were_set_too_late_are_named():
    late = {"set_late": ("TF_GPU_ALLOCATOR", "TF_XLA_FLAGS")}
    (found,) = settings.late(changed(workstation(), software=late))
    assert found.evidence == "Set too late: TF_GPU_ALLOCATOR, TF_XLA_FLAGS."
    assert list(settings.late(workstation())) == []
