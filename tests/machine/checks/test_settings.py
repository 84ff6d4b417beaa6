import pytest

from perfkit.machine.checks import software as settings
from tests.machine.checks.computers import (
    card,
    changed,
    says,
    without_card,
    workstation,
)

WITH = workstation()


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
    assert told(WITH, **{variable: costs}) == [(rule, "warn")]
    assert told(WITH, **{variable: does_not}) == []


@pytest.mark.parametrize(
    ("machine", "variables", "said"),
    [
        (WITH, {"CUDA_FORCE_PTX_JIT": "1"}, [("forced-compiling", "fail")]),
        *[(WITH, {"XLA_FLAGS": f"--xla_disable_{some}hlo_passes"},
           [("xla-passes-off", "warn")]) for some in ("", "all_")],
        # Clustering by XLA is neither good nor bad.
        (WITH, {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2"},
         [("auto-clustering", "unknown")]),
        # What concerns a GPU is no matter without one; older cards have no TF32.
        (without_card(), {"CUDA_LAUNCH_BLOCKING": "1", "NVIDIA_TF32_OVERRIDE": "0",
         "TF_CPP_MIN_LOG_LEVEL": "3"}, []),
        (workstation(card(compute_capability="7.5")), {"NVIDIA_TF32_OVERRIDE": "0"},
         []),
    ],
)  # fmt: skip
def test_a_variable_counts_where_it_is_read(machine, variables, said):
    assert told(machine, **variables) == said


def test_onednn_costs_most_where_the_processor_trains():
    def cost(machine):
        set_off = changed(machine, environment={"TF_ENABLE_ONEDNN_OPTS": "0"})
        return next(settings.costly(set_off)).cost

    assert cost(without_card()) > cost(WITH)


@pytest.mark.parametrize(
    ("software", "remedy"),
    [
        ({}, " | unset CUDA_LAUNCH"),
        ({"platform": "windows"}, "Remove-Item Env:CUDA_LAUNCH"),
        ({"container": True}, "without -e CUDA_LAUNCH"),
    ],
)
def test_the_remedy_unsets_the_variable_in_the_words_of_the_system(software, remedy):
    slow = changed(WITH, environment={"CUDA_LAUNCH_BLOCKING": "1"}, software=software)
    says(settings.costly, slow, "launch-blocking:warn", remedy)


@pytest.mark.parametrize(
    ("variable", "value", "facts", "faults"),
    [
        ("TF_NUM_INTRAOP_THREADS", "4", {}, 1),
        ("TF_NUM_INTRAOP_THREADS", "24", {}, 0),
        # 0 leaves the choice to TensorFlow.
        ("TF_NUM_INTRAOP_THREADS", "0", {}, 0),
        ("TF_NUM_INTEROP_THREADS", "1", {}, 1),
        ("TF_NUM_INTEROP_THREADS", "2", {}, 0),
        ("OMP_NUM_THREADS", "1", {}, 1),
        ("OMP_NUM_THREADS", "four", {}, 0),
        # As many as cores are granted are enough, and one for each core.
        ("TF_NUM_INTRAOP_THREADS", "2", {"cores_granted": 2.0}, 0),
        ("OMP_NUM_THREADS", "12", {}, 1),
        ("OMP_NUM_THREADS", "12", {"processor": {"physical_cores": 12}}, 0),
    ],
)
def test_threads_are_held_against_the_cores(variable, value, facts, faults):
    machine = changed(WITH, environment={variable: value}, **facts)
    said = " ".join(["few-threads:warn"] * faults)
    says(settings.threads, machine, said, *[f" | {variable} allows"] * faults)


def test_variables_that_were_set_too_late_are_named():
    late = {"set_late": ("TF_GPU_ALLOCATOR", "TF_XLA_FLAGS")}
    evidence = " | Set too late: TF_GPU_ALLOCATOR, TF_XLA_FLAGS. | "
    says(settings.late, changed(WITH, software=late), "set-too-late:warn", evidence)
    says(settings.late, WITH, "")
