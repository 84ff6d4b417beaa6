import itertools
import re

import pytest

import perfkit
from perfkit.errors import BadParameterError, RunError
from perfkit.experiments import experiment, scaling
from perfkit.experiments.scaling import ONE_GPU, Scaling
from perfkit.experiments.scaling.agreement import LEARNS_OTHERWISE
from perfkit.experiments.scaling.numbers import LINK, SHARED
from perfkit.experiments.scaling.work import GPU, LOGICAL
from perfkit.measure.measurement import Variant
from perfkit.measure.tick import REFUSED, Pause, Tick
from tests.experiments.races import sayings
from tests.experiments.scalings import linked, measured, note, steps

SMALL = Scaling(on="logical", devices=2, model="dense", batch=8, image_side=32)


verdict, said = sayings("scaling")


def variants_of(**asked):
    return experiment("scaling", **asked).make_variants()


def test_without_a_gpu_devices_are_logical_and_every_name_says_so(gpus):
    variants = variants_of()
    assert [(one.name, one.against) for one in variants.values()] == [
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
    assert not any(one.unavailable for one in variants.values())


@pytest.mark.parametrize(("cores", "most"), [(1, 2), (2, 2), (3, 3), (64, 4)])
def test_a_few_logical_devices_are_usual(gpus, cores, most):
    gpus(0, cores)
    assert f"{most} logical devices, fed" in variants_of()
    assert f"{most + 1} logical devices" not in variants_of()


def test_with_gpus_all_of_them_are_tried(gpus):
    gpus(6)
    plain = [name for name in variants_of() if name.endswith(("GPU", "GPUs"))]
    assert plain == ["1 GPU", "2 GPUs", "4 GPUs", "6 GPUs"]
    assert next(iter(variants_of(on="logical"))) == "1 logical device"


def test_more_gpus_than_there_are_are_not_run_and_say_how_many_there_are(gpus):
    gpus(1)
    variants = variants_of()
    assert list(variants) == ["1 GPU", "1 GPU, strategy", "1 GPU, fed", "2 GPUs"]
    assert variants["2 GPUs"].unavailable == "one GPU is all there is"
    four = variants_of(devices=4)
    assert four["4 GPUs, fed"].unavailable == "one GPU is all there is"
    assert four["1 GPU, fed"].unavailable == ""
    assert four[LINK].unavailable
    gpus(2)
    variants = variants_of(devices=4)
    missing = {name for name, one in variants.items() if one.unavailable}
    assert missing == {"4 GPUs", "4 GPUs, own gradients", "4 GPUs, fed"}
    assert variants["4 GPUs"].unavailable == "2 GPUs are all there is"


@pytest.mark.parametrize(
    ("asked", "batches"),
    [({"scaling": "weak"}, [8, 16, 32]), ({"scaling": "strong"}, [8, 8, 8])],
)
def test_devices_have_a_batch_each_or_share_one(gpus, asked, batches):
    variants = variants_of(batch=8, **asked)
    jobs = [variants[name].work.args[0] for name in variants if name.endswith("fed")]
    assert [job.batch for job in jobs] == batches


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"devices": 1}, "devices is 1; give 2 or more"),
        ({"batch": 6, "scaling": "strong"}, "4 devices are to share it evenly"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(gpus, asked, why):
    with pytest.raises(BadParameterError, match=why):
        experiment("scaling", **asked)


def test_gpus_that_cannot_be_used_are_said_before_anything_is_timed(gpus, monkeypatch):
    gpus(4)
    monkeypatch.setattr(scaling, "call_or_none", lambda function, longest_s: 1)
    with pytest.raises(RunError, match=r"1 of 4 GPUs here.*on=logical"):
        list(experiment("scaling").prepare())


def test_gpus_are_told_with_one_ratio_two_rates_and_what_to_type():
    found = verdict(measured(linked(steps())))
    assert found.headline == "Train on 4 GPUs."
    # 4 x 10 / 14.5: 128 examples in 14.5 ms against 32 in 10.
    assert " train 2.8 times as fast as one: 8," in found.much
    assert " instead of 3," in found.much
    assert (found.sure, found.winner) == ("sure", "4 GPUs")
    (warning,) = found.warnings
    assert "give it 4 times as many examples" in warning
    places = '["GPU:0", "GPU:1", "GPU:2", "GPU:3"]'
    assert f"MirroredStrategy({places})" in found.edits[0].new
    assert "4 GPUs 69 % (" in said(measured(linked(steps())))
    assert "larger batch on each GPU" in found.next
    assert "--batch 128`" in found.next
    found = experiment("scaling", batch=256).verdict(measured(linked(steps())))
    assert "--batch 1024`" in found.next
    found = verdict(measured(steps(summing=0.1)))
    assert found.headline == "Train on one GPU: 4 GPUs are slower."
    assert " 0.36 times as fast" in found.much
    assert (found.winner, found.edits) == ("", ())


def test_of_several_numbers_the_fastest_is_advised_and_of_equals_the_fewest():
    timed = {"1 GPU": (32, 0.010), "2 GPUs": (64, 0.011), "4 GPUs": (128, 0.013)}
    slow = {"8 GPUs": (256, 0.120)}
    assert verdict(measured(timed | slow)).headline == "Train on 4 GPUs."
    equal = {"2 GPUs": (64, 0.0065)}
    assert verdict(measured(timed | equal | slow)).headline == "Train on 2 GPUs."


@pytest.mark.parametrize("noise", [0.002, 0.9])
@pytest.mark.parametrize("counts", [(1, 2, 4), (1,)])
def test_logical_devices_are_never_told_without_saying_so(noise, counts):
    run = measured(linked(steps(counts, kind=LOGICAL)), noise=noise)
    found = verdict(run)
    assert found.warnings == (SHARED,)
    assert "GPUs" not in found.headline + found.much
    assert ("reach 1/4, 25 %" in said(run)) == (4 in counts)


@pytest.mark.parametrize("kind", [GPU, LOGICAL])
def test_noise_is_a_verdict(kind):
    found = verdict(measured(steps(kind=kind, summing=0.029), noise=0.9))
    assert found.sure == "not known yet"
    assert found.headline.endswith("are faster than one is not known yet.")
    assert "times" not in found.much


def test_the_sum_is_told_as_seen_and_as_computed_and_how_gpus_are_joined():
    facts = said(measured(linked(steps())))
    assert re.search(r"gradients of 4 GPUs takes [34](\.\d+)? ms \(", facts)
    assert "copying 6 MB explains 1.5" in facts
    assert "nothing was predicted" in said(measured(steps()))
    hidden = said(measured(linked(steps(summing=0.0)), noise=0.2))
    assert "none is shown for sure" in hidden
    words = "GPU 0 and GPU 1: joined by NVLink."
    assert words in said(measured(linked(steps()), notes=note(joined=[words])))


def test_input_that_holds_gpus_up_is_what_to_do_next():
    run = measured(linked(steps(feeding=0.01)))
    found = verdict(run)
    # How sure that is, is said of the headline alone.
    assert found.headline == "Train on 4 GPUs."
    assert "make the input faster before you add GPUs: `perfkit run" in found.next
    # 30 ms of 44.5.
    assert re.search(r"4 GPUs: input, 6[78] % of a step", said(run))
    assert "1 GPU: nothing that is shown" in said(run)


def test_what_is_to_be_done_next_follows_from_what_devices_bring():
    quick = steps(summing=0.0, feeding=0.0)
    assert verdict(measured(linked(quick))).next == ""
    quick = steps(summing=0.0, feeding=0.0, kind=LOGICAL)
    found = verdict(measured(linked(quick)))
    assert found.headline.startswith("One device left cores idle")
    assert "--batch" in found.next
    most = experiment("scaling", batch=65_536).verdict(measured(linked(quick)))
    assert most.next.startswith("Run this on a machine with several GPUs")


def test_one_gpu_says_what_can_be_learnt():
    missing = Variant("2 GPUs", list, unavailable=ONE_GPU)
    found = verdict(measured(steps((1,)), variants=(missing,)))
    assert found.headline.startswith("One GPU is all there is")
    # 10 ms of 10.5.
    assert re.search(r"one GPU with it reaches 0\.9[56]× \(", " ".join(found.because))
    assert "--on logical" in found.next


def test_where_all_were_refused_another_model_is_advised():
    refused = Variant("2 GPUs", list, unavailable=f"{LEARNS_OTHERWISE}: after one step")
    found = verdict(measured(steps((1,)), variants=(refused,)))
    assert found.sure == "not known yet"
    assert found.next.endswith("such as `wide-dense`.")


@pytest.mark.parametrize("name", list(SMALL.make_variants()))
def test_every_variant_trains(name):
    variant = SMALL.make_variants()[name]

    def look(tf):
        return [type(item) for item in itertools.islice(variant.work(), 3)]

    assert perfkit.fresh(look) == [Pause, Tick, Tick]


def test_preparing_counts_what_is_summed_and_refuses_what_learns_otherwise(gpus):
    notes = perfkit.fresh(lambda tf: {n.name: n.value for n in SMALL.prepare()})
    # 784 by 128 and 128 by 10, each with a bias.
    assert notes["scaling"]["weights"] == 785 * 128 + 129 * 10
    assert notes["scaling"]["batches"] == {"1": 8, "2": 16}
    assert notes[REFUSED] == {}
    asked = Scaling(devices=2, model="small-resnet", batch=4)
    notes = perfkit.fresh(lambda tf: {n.name: n.value for n in asked.prepare()})
    refused = notes[REFUSED]
    ways = ("", ", own gradients", ", fed")
    assert set(refused) == {f"2 logical devices{way}" for way in ways}
    assert "BatchNormalization sees one device's share" in refused["2 logical devices"]
