"""What is said of several devices, on scripted machines and once on this one."""

import itertools
import pickle
import re

import pytest

import perfkit
from perfkit.errors import BadParameterError, RunError
from perfkit.experiments import experiment, scaling
from perfkit.experiments.scaling import Scaling
from perfkit.experiments.scaling.agreement import LEARNS_OTHERWISE
from perfkit.experiments.scaling.numbers import LINK, SHARED
from perfkit.experiments.scaling.work import LOGICAL
from perfkit.machine.gpu import Gpu
from perfkit.measure.measurement import Arm
from perfkit.measure.tick import REFUSED, Pause, Tick
from tests.experiments.scalings import linked, measured, note, steps
from tests.findings.made import failed

SMALL = Scaling(on="logical", devices=2, model="dense", batch=8, image_side=32)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(scaling, "gpus_here", lambda: ((), "No NVIDIA driver here."))
    monkeypatch.setattr(scaling.probe, "granted", lambda: 8)


@pytest.fixture
def gpus(monkeypatch):
    def have(count):
        here = tuple(Gpu(name="A4000") for _ in range(count))
        monkeypatch.setattr(scaling, "gpus_here", lambda: (here, ""))

    return have


def verdict(found, **asked):
    return experiment("scaling", **asked).verdict(found)


def said(found):
    return " ".join(verdict(found).because)


# The arms.


def test_without_a_gpu_devices_are_logical_and_every_name_says_so(no_gpu):
    arms = experiment("scaling").variants()
    assert [(arm.name, arm.against) for arm in arms.values()] == [
        ("1 logical device", ""),
        ("1 logical device, strategy", "1 logical device"),
        ("1 logical device, fed", "1 logical device"),
        ("2 logical devices", "1 logical device"),
        ("2 logical devices, own gradients", "2 logical devices"),
        ("2 logical devices, fed", "2 logical devices"),
        ("4 logical devices", "1 logical device"),
        ("4 logical devices, own gradients", "4 logical devices"),
        ("4 logical devices, fed", "4 logical devices"),
        (LINK, ""),
    ]
    assert not any(arm.unavailable for arm in arms.values())


@pytest.mark.parametrize(("cores", "most"), [(1, 2), (2, 2), (3, 3), (64, 4)])
def test_a_few_logical_devices_are_usual(no_gpu, monkeypatch, cores, most):
    monkeypatch.setattr(scaling.probe, "granted", lambda: cores)
    assert f"{most} logical devices, fed" in experiment("scaling").variants()
    assert f"{most + 1} logical devices" not in experiment("scaling").variants()


def test_with_gpus_all_of_them_are_tried(gpus):
    gpus(6)
    arms = experiment("scaling").variants()
    plain = [name for name in arms if name.endswith(("GPU", "GPUs"))]
    assert plain == ["1 GPU", "2 GPUs", "4 GPUs", "6 GPUs"]
    logical = experiment("scaling", on="logical").variants()
    assert next(iter(logical)) == "1 logical device"


def test_one_gpu_says_that_it_is_all_there_is(gpus):
    gpus(1)
    arms = experiment("scaling").variants()
    assert list(arms) == ["1 GPU", "1 GPU, strategy", "1 GPU, fed", "2 GPUs"]
    assert arms["2 GPUs"].unavailable == "one GPU is all there is"
    four = experiment("scaling", devices=4).variants()
    assert four["4 GPUs, fed"].unavailable == "one GPU is all there is"
    assert four["1 GPU, fed"].unavailable == ""
    assert four[LINK].unavailable


def test_more_gpus_than_there_are_are_not_run(gpus):
    gpus(2)
    arms = experiment("scaling", devices=4).variants()
    missing = {name for name, arm in arms.items() if arm.unavailable}
    assert missing == {"4 GPUs", "4 GPUs, own gradients", "4 GPUs, fed"}
    assert arms["4 GPUs"].unavailable == "2 GPUs are all there is"


def test_every_arm_says_what_it_changes_and_travels(no_gpu):
    arms = experiment("scaling").variants().values()
    assert all(pickle.loads(pickle.dumps(arm)).changes for arm in arms)


@pytest.mark.parametrize(
    ("asked", "batches"),
    [({"scaling": "weak"}, [8, 16, 32]), ({"scaling": "strong"}, [8, 8, 8])],
)
def test_devices_have_a_batch_each_or_share_one(no_gpu, asked, batches):
    arms = experiment("scaling", batch=8, **asked).variants()
    jobs = [arms[name].work.args[0] for name in arms if name.endswith("fed")]
    assert [job.batch for job in jobs] == batches


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"devices": 1}, "devices is 1; give 2 or more"),
        ({"batch": 6, "scaling": "strong"}, "4 devices are to share it evenly"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(no_gpu, asked, why):
    with pytest.raises(BadParameterError, match=why):
        experiment("scaling", **asked)


def test_gpus_that_tensorflow_cannot_use_are_said_before_anything_is_timed(
    gpus, monkeypatch
):
    gpus(4)
    monkeypatch.setattr(scaling, "asked", lambda function, longest_s: 1)
    with pytest.raises(RunError, match=r"1 of 4 GPUs here.*on=logical"):
        list(experiment("scaling").prepare())


def test_devices_that_learn_something_else_are_refused(no_gpu, monkeypatch):
    def difference(job):
        return "does not learn" if job.count == 2 else ""

    monkeypatch.setattr(scaling.agreement, "difference", difference)
    monkeypatch.setattr(scaling, "without_gpus", lambda: None)
    monkeypatch.setattr(scaling, "weights", lambda model: 100)
    monkeypatch.setattr(scaling.scaling_work, "bytes_of_an_example", lambda job: 25.0)
    notes = {n.name: n.value for n in experiment("scaling").prepare()}
    assert set(notes[REFUSED]) == {
        "2 logical devices",
        "2 logical devices, own gradients",
        "2 logical devices, fed",
    }
    assert notes["scaling"]["batches"] == {"1": 32, "2": 64, "4": 128}


# The verdict.


def test_gpus_are_told_with_speed_up_efficiency_and_interval():
    found = verdict(measured(linked(steps())))
    # 4 x 10 / 14.5, and a quarter of it.
    assert found.headline.startswith(
        "4 GPUs, each with a batch of its own, train faster than one, 2.7"
    )
    assert "95 % interval" in found.headline
    assert "69 % (" in found.headline
    assert SHARED not in found.headline
    assert "larger batch on each GPU" in found.next


def test_logical_devices_are_never_told_without_saying_so():
    for noise in (0.002, 0.9):
        run = measured(linked(steps(kind=LOGICAL)), noise=noise)
        assert verdict(run).headline.endswith(SHARED)
        assert "GPUs" not in verdict(run).headline.removesuffix(SHARED)
        assert "1/4, which is 25 %" in said(run)
    short = measured(steps((1,), kind=LOGICAL))
    assert verdict(short).headline.endswith(SHARED)


def test_noise_is_a_verdict():
    headline = verdict(measured(steps(summing=0.029), noise=0.9)).headline
    assert "are not shown to differ from one (too noisy to say)" in headline


def test_a_slower_training_is_told_as_such():
    headline = verdict(measured(steps(summing=0.1))).headline
    assert "train slower than one, 0.36×" in headline


def test_the_prediction_is_told_as_computed_and_the_rest_is_shown():
    facts = said(measured(linked(steps())))
    assert "Summing the gradients of 2 GPUs, computed from 4 MB over that link: 1" in (
        facts
    )
    assert "; seen: 4" in facts
    assert "not explained by the link: 3" in facts
    assert "Nothing was predicted." in said(measured(steps()))


def test_a_sum_that_noise_hides_is_not_shown():
    facts = said(measured(linked(steps(summing=0.0)), noise=0.2))
    assert "so that none is shown for sure" in facts


def test_how_the_driver_joins_gpus_is_told():
    words = "GPU 0 and GPU 1: joined by NVLink."
    assert words in said(measured(linked(steps()), notes=note(joined=[words])))


def test_input_that_holds_gpus_up_comes_first_in_what_to_do():
    run = measured(linked(steps(feeding=0.01)))
    found = verdict(run)
    assert "perfkit run data-pipeline" in found.next
    # 30 ms of 44.5.
    assert re.search(r"4 GPUs: their input, 6[78] % of a step", said(run))


def test_all_gpus_are_used_where_each_brings_what_the_first_brings():
    found = verdict(measured(linked(steps(summing=0.0, feeding=0.0))))
    assert found.next.startswith("Use all of them; they reach nine tenths")


def test_logical_devices_that_are_faster_are_not_said_to_be_of_no_use():
    run = measured(linked(steps(summing=0.0, feeding=0.0, kind=LOGICAL)))
    found = verdict(run)
    assert "train faster than one" in found.headline
    assert found.next.startswith("One device left cores idle")
    assert "Train without" not in found.next


def test_one_gpu_says_what_can_be_learnt():
    missing = Arm("2 GPUs", list, unavailable="one GPU is all there is")
    found = verdict(measured(steps((1,)), arms=(missing,)))
    assert found.headline.startswith(
        "One GPU is all there is: nothing is said about several. What can be learnt"
    )
    # 10 ms of 10.5.
    assert re.search(r"with it one GPU reaches 0\.9[56]× \(", found.headline)
    assert "--on logical" in found.next


def test_what_failed_and_what_was_refused_is_told():
    refused = Arm("8 GPUs", list, unavailable="does not learn what one learns")
    crash = failed("4 GPUs, fed", "crashed", "raised ValueError: no")
    facts = said(measured(steps(), arms=(refused,), extra=(crash,)))
    assert '"8 GPUs" does not learn what one learns.' in facts
    assert '"4 GPUs, fed" raised ValueError: no.' in facts


def test_where_all_were_refused_another_model_is_advised():
    refused = Arm("2 GPUs", list, unavailable=f"{LEARNS_OTHERWISE}: after one step")
    found = verdict(measured(steps((1,)), arms=(refused,)))
    assert found.headline.startswith("Fewer than two numbers of GPUs were timed")
    assert found.next.endswith("such as `wide-dense`.")


# This machine.


@pytest.mark.parametrize("name", list(SMALL.variants()))
def test_every_variant_trains(name):
    arm = SMALL.variants()[name]

    def look(tf):
        return [type(item) for item in itertools.islice(arm.work(), 3)]

    assert perfkit.fresh(look) == [Pause, Tick, Tick]


def test_preparing_counts_what_is_summed_and_refuses_none():
    notes = perfkit.fresh(lambda tf: {n.name: n.value for n in SMALL.prepare()})
    # 784 by 128 and 128 by 10, each with a bias.
    assert notes["scaling"]["weights"] == 785 * 128 + 129 * 10
    assert notes["scaling"]["batches"] == {"1": 8, "2": 16}
    assert notes[REFUSED] == {}


def test_normalising_over_a_batch_is_refused_on_several_devices(no_gpu):
    asked = Scaling(devices=2, model="small-resnet", batch=4)
    refused = perfkit.fresh(
        lambda _: {n.name: n.value for n in asked.prepare()}[REFUSED]
    )
    assert "2 logical devices, fed" in refused
    assert "1 logical device, strategy" not in refused
    assert "BatchNormalization sees one device's share" in refused["2 logical devices"]
