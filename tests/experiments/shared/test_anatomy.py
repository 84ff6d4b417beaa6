import pytest
import tensorflow as tf

from perfkit.experiments.data_pipeline import work
from perfkit.experiments.data_pipeline.variants import VARIANTS
from perfkit.experiments.shared import anatomy


def plan_of(dataset, batches=3):
    iterator = iter(dataset)
    for _ in range(batches):
        next(iterator)
    return anatomy.plan(iterator)


def names(plan):
    return [stage["name"] for stage in plan["stages"]]


@pytest.mark.parametrize(
    ("method", "parallelism", "tuned"),
    [("naive map", None, True), ("random in map", 1, False)],
)
def test_naive_code_is_rewritten_and_kept_serial_by_random_numbers(
    task, method, parallelism, tuned
):
    plan = plan_of(VARIANTS[method].build(task))
    assert "map" not in names(plan)
    fused = plan["stages"][-1]
    assert (fused["name"], fused["tuned"]) == ("map and batch, fused", tuned)
    assert parallelism in (None, fused["parallelism"])


def test_of_code_as_written_elements_are_counted_and_shares_add_up(task):
    plan = plan_of(VARIANTS["naive as written"].build(task), batches=3)
    elements = {stage["name"]: stage["elements"] for stage in plan["stages"]}
    assert (elements["batch"], elements["map"]) == (3, 3 * task.batch)
    assert sum(stage["share"] for stage in plan["stages"]) == pytest.approx(1, abs=0.01)


def as_written():
    """Options that leave a pipeline as it is written."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return options


def test_stages_come_in_order_with_what_autotune_chose_and_the_busiest(task):
    plan = plan_of(VARIANTS["prefetch"].build(task).with_options(as_written()))
    chosen = {stage["name"]: stage for stage in plan["stages"]}
    wanted = "list in memory", "repeat", "map, parallel", "batch", "prefetch"
    assert tuple(chosen) == wanted
    busiest = anatomy.busiest(plan)
    assert busiest == chosen["map, parallel"]
    assert busiest["share"] > 0.5
    assert busiest["ns_per_element"] > 100_000
    assert busiest["parallelism"] >= 1
    assert busiest["tuned"]
    assert chosen["prefetch"]["buffer"] >= 1
    assert chosen["batch"]["parallelism"] is chosen["batch"]["buffer"] is None
    assert plan["cores"] >= 1
    assert plan["memory"] > 0
    numbers = tf.data.Dataset.range(99).map(lambda x: x, num_parallel_calls=3)
    written = plan_of(numbers.with_options(as_written()))["stages"][-1]
    assert (written["parallelism"], written["tuned"]) == (3, False)


def test_files_in_turns_and_other_stages_have_names_for_people(run, task):
    run(work.make(task.images, "shards"))
    plan = plan_of(VARIANTS["tfrecord shards"].build(task))
    assert "files in turns, parallel" in names(plan)
    for method in ("cache", "naive map", "batch first"):
        for stage in plan_of(VARIANTS[method].build(task))["stages"]:
            assert stage["name"] != stage["kind"], stage


@pytest.mark.parametrize(
    ("method", "missing"),
    [("fixed threads", "AUTOTUNE is off here"), ("python generator", "plain Python")],
)
def test_without_autotune_the_absence_is_said(task, method, missing):
    plan = plan_of(VARIANTS[method].build(task))
    assert missing in plan["missing"]
    assert anatomy.busiest(plan) is None


def test_what_has_given_nothing_yet_has_a_plan_or_says_why_not(task, monkeypatch):
    assert anatomy.plan(iter(VARIANTS["prefetch"].build(task))).keys()
    monkeypatch.delattr(tf.data.experimental, "get_model_proto")
    plan = anatomy.plan(iter(tf.data.Dataset.range(3)))
    assert plan == {"missing": f"TensorFlow {tf.__version__} tells nobody its plan."}
