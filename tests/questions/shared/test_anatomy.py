import pytest
import tensorflow as tf

from perfkit.questions.shared import anatomy

NUMBERS = tf.data.Dataset.from_tensor_slices(tf.range(64.0)).repeat()


def work(number):
    return tf.reduce_sum(tf.matmul(tf.fill((160, 160), number), tf.ones((160, 160))))


def draw(number):
    return work(number) + tf.random.uniform(())


def options(dataset, *, autotune=True):
    """The dataset without TensorFlow's rewrites, so that its stages are as written."""
    chosen = tf.data.Options()
    chosen.experimental_optimization.apply_default_optimizations = False
    chosen.autotune.enabled = autotune
    return dataset.with_options(chosen)


def plan_of(dataset, batches=3):
    iterator = iter(dataset)
    for _ in range(batches):
        next(iterator)
    return anatomy.plan(iterator)


@pytest.mark.parametrize(
    ("step", "parallelism", "tuned"), [(work, None, True), (draw, 1, False)]
)
def test_naive_code_is_rewritten_and_kept_serial_by_random_numbers(
    step, parallelism, tuned
):
    *_, fused = plan_of(NUMBERS.map(step).batch(4))["stages"]
    assert (fused["name"], fused["tuned"]) == ("map and batch, fused", tuned)
    assert parallelism in (None, fused["parallelism"])


def test_of_code_as_written_elements_are_counted_and_shares_add_up():
    plan = plan_of(options(NUMBERS.map(work).batch(4)))
    elements = {stage["name"]: stage["elements"] for stage in plan["stages"]}
    assert (elements["batch"], elements["map"]) == (3, 12)
    assert sum(stage["share"] for stage in plan["stages"]) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("calls", "tuned"), [(3, False), (tf.data.AUTOTUNE, True)])
def test_stages_come_in_order_with_what_was_chosen_and_the_busiest(calls, tuned):
    mapped = NUMBERS.map(work, num_parallel_calls=calls).batch(4).prefetch(2)
    plan = plan_of(options(mapped))
    stages = {stage["name"]: stage for stage in plan["stages"]}
    wanted = "list in memory", "repeat", "map, parallel", "batch", "prefetch"
    assert tuple(stages) == wanted
    busiest = stages["map, parallel"]
    assert anatomy.busiest(plan) == busiest
    assert busiest["share"] > 0.5
    assert busiest["ns_per_element"] > 1000
    assert busiest["tuned"] is tuned
    assert tuned or busiest["parallelism"] == 3
    assert stages["prefetch"]["buffer"] >= 1
    assert stages["batch"]["parallelism"] is stages["batch"]["buffer"] is None
    assert min(plan["cores"], plan["memory"]) >= 1


def test_files_in_turns_and_other_stages_have_names_for_people():
    def one(number):
        return tf.data.Dataset.from_tensors(number)

    read = NUMBERS.interleave(one, num_parallel_calls=2, deterministic=False)
    stages = plan_of(options(read.cache().shuffle(4).map(work).batch(4)))["stages"]
    assert "files in turns, parallel" in [stage["name"] for stage in stages]
    assert [stage for stage in stages if stage["name"] == stage["kind"]] == []


def test_without_a_plan_the_absence_is_said(monkeypatch):
    assert "plain Python" in anatomy.plan(iter([1]))["missing"]
    plan = plan_of(options(NUMBERS.map(work), autotune=False))
    assert "AUTOTUNE is off here" in plan["missing"]
    assert anatomy.busiest(plan) is None
    assert anatomy.plan(iter(NUMBERS)).keys()
    monkeypatch.delattr(tf.data.experimental, "get_model_proto")
    plan = anatomy.plan(iter(NUMBERS))
    assert plan == {"missing": f"TensorFlow {tf.__version__} does not show its plan."}
