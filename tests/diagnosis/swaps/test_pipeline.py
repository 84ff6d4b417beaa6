import tensorflow as tf

from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.pipeline.chain import chain, kind
from perfkit.diagnosis.pipeline.facts import pipeline_facts
from perfkit.diagnosis.swap import Swap
from perfkit.diagnosis.swaps import pipeline
from perfkit.diagnosis.training import Training

DATA = tf.data.Dataset


def drawn(number):
    return number + tf.random.uniform((), 0, 9, tf.int64)


def python(number):
    return tf.numpy_function(lambda value: value, [number], tf.int64)


def training(dataset):
    return Training(None, dataset)


def facts(dataset, steps=5, **more):
    known = pipeline_facts(training(dataset)) | {"memory": 10**9} | more
    return Facts(data="tf.data", batch=2, steps=steps, step_s=0.1, pipeline=known)


def one(found):
    (only,) = found
    return only


def test_a_random_map_that_is_serial_is_made_parallel_and_others_stay():
    dataset = DATA.range(10).map(drawn).batch(2, drop_remainder=True)
    swap = one(pipeline.serial_map(facts(dataset)))
    made = training(dataset)
    swap.apply(made)
    _, mapped, batch = chain(made.data)
    assert int(mapped._num_parallel_calls) == tf.data.AUTOTUNE
    assert bool(batch._drop_remainder)
    assert swap.after == "without input"
    assert "num_parallel_calls" in swap.fix


def test_a_serial_interleave_is_made_parallel():
    dataset = DATA.range(4).interleave(DATA.range, cycle_length=3).batch(2)
    made = training(dataset)
    one(pipeline.serial_map(facts(dataset))).apply(made)
    assert type(chain(made.data)[0]).__name__ == "_ParallelInterleaveDataset"
    assert int(chain(made.data)[0]._cycle_length) == 3


def test_python_in_a_serial_map_is_a_serial_map_too():
    assert isinstance(one(pipeline.serial_map(facts(DATA.range(9).map(python)))), Swap)


def test_what_tensorflow_makes_parallel_itself_is_not_tried():
    plain = DATA.range(10).map(lambda x: x * 2).batch(2)
    assert "by itself" in one(pipeline.serial_map(facts(plain))).why
    options = tf.data.Options()
    options.experimental_optimization.map_parallelization = False
    found = one(pipeline.serial_map(facts(plain.with_options(options))))
    assert isinstance(found, Swap)


def test_parallel_maps_need_nothing():
    dataset = DATA.range(10).map(drawn, num_parallel_calls=2).batch(2)
    assert list(pipeline.serial_map(facts(dataset))) == []


def test_a_prefetch_is_tried_only_where_there_is_none():
    plain = DATA.range(9).batch(2)
    options = tf.data.Options()
    own = plain.prefetch(1).with_options(options)
    assert "already" in one(pipeline.no_prefetch(facts(own))).why
    planned = facts(plain, plan=["Range", "BatchV2", "Prefetch"])
    assert "by itself" in one(pipeline.no_prefetch(planned)).why
    made = training(plain)
    one(pipeline.no_prefetch(facts(plain, plan=["Range", "BatchV2"]))).apply(made)
    assert kind(chain(made.data)[-1]) == "prefetch"


def halved(number):
    return tf.cast(number, tf.float32) / 2


def test_a_cache_is_offered_with_what_it_would_take():
    dataset = DATA.range(1000).shuffle(9).map(halved).batch(2)
    swap = one(pipeline.no_cache(facts(dataset)))
    # A thousand numbers of four bytes.
    assert "about 4 KB" in swap.changes
    assert "shuffle behind it" in swap.fix
    made = training(dataset)
    swap.apply(made)
    kinds = [kind(stage) for stage in chain(made.data)]
    assert kinds.index("map") < kinds.index("cache") < kinds.index("shuffle")
    assert int(made.data.cardinality()) == 500


def test_no_cache_is_offered_where_it_would_be_wrong():
    def why(dataset, **more):
        return one(pipeline.no_cache(facts(dataset, **more))).why

    assert "freeze the augmentation" in why(DATA.range(9).map(drawn).batch(2))
    assert "Python" in why(DATA.range(9).map(python).batch(2))
    assert "already" in why(DATA.range(9).map(halved).cache().batch(2))
    assert "are free" in why(DATA.range(9).map(halved).batch(2), memory=60)
    some = DATA.range(9).filter(lambda number: number > 3).map(halved)
    assert "how many" in why(some.batch(2))


def test_without_a_gpu_nothing_is_copied():
    assert "no GPU" in one(pipeline.host_to_device(facts(DATA.range(3)))).why


def test_with_a_gpu_batches_are_copied_ahead():
    swap = one(pipeline.host_to_device(facts(DATA.range(3), gpus=1)))
    assert "prefetch_to_device" in swap.fix


def test_other_data_than_a_pipeline_have_no_stages():
    arrays = Facts(data="arrays")
    for kind_of_swap in (
        pipeline.serial_map,
        pipeline.no_prefetch,
        pipeline.no_cache,
        pipeline.host_to_device,
    ):
        assert list(kind_of_swap(arrays)) == []


def test_all_that_helps_can_be_applied_one_after_the_other():
    dataset = (
        DATA.range(40).map(halved).map(lambda x: x + tf.random.uniform(())).batch(2)
    )
    known = facts(dataset, plan=["Range", "MapAndBatch"])
    made = training(dataset)
    for offered in (pipeline.serial_map, pipeline.no_cache, pipeline.no_prefetch):
        one(offered(known)).apply(made)
    kinds = [kind(stage) for stage in chain(made.data)]
    assert kinds == [
        *("range", "map", "take", "cache", "repeat", "take"),
        *("map", "batch", "prefetch"),
    ]
    assert len(list(made.data)) == 20


def test_where_tensorflow_does_not_tell_of_its_stages_nothing_is_tested(monkeypatch):
    dataset = DATA.range(9).map(drawn).batch(2)
    monkeypatch.delattr(tf.data.Dataset, "cardinality")
    known = pipeline_facts(training(dataset))
    found = {one.cause for one in pipeline.untold(Facts(pipeline=known))}
    assert {"serial-map", "no-cache", "python-input"} <= found
    assert list(pipeline.untold(Facts(pipeline={"stages": []}))) == []
