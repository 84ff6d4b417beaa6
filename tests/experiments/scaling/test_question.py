import itertools
import re

import pytest

import perfkit
from perfkit.errors import BadParameterError
from perfkit.experiments import experiment
from perfkit.experiments.scaling import Scaling
from perfkit.experiments.scaling.verdict import SHARED, name_of, result
from perfkit.experiments.scaling.work import GPU, LOGICAL
from perfkit.measure.tick import REFUSED, Pause, Tick
from tests.experiments import scalings
from tests.experiments.races import sayings
from tests.experiments.scalings import STEP, SUM_S, measured, steps

SMALL = Scaling(on="logical", devices=2, model="dense", batch=8, image_side=32)
WHOLE = STEP + scalings.STRATEGY_S + SUM_S


verdict, said = sayings("scaling")


def variants_of(**asked):
    return experiment("scaling", **asked).make_variants()


@pytest.mark.parametrize("present", [0, 1])
def test_without_several_gpus_devices_are_logical_and_every_name_says_so(gpus, present):
    gpus(present)
    variants = variants_of(devices=2)
    assert [(one.name, one.against) for one in variants.values()] == [
        ("1 logical device", "1 logical device"),
        ("1 logical device, strategy", "1 logical device"),
        ("1 logical device, fed", "1 logical device"),
        ("2 logical devices", "1 logical device"),
        ("2 logical devices, own gradients", "2 logical devices"),
        ("2 logical devices, fed", "2 logical devices"),
    ]
    assert not any(one.unavailable for one in variants.values())


@pytest.mark.parametrize(
    ("present", "cores", "tried"),
    [
        *((0, 1, (1, 2)), (0, 3, (1, 2, 3)), (0, 64, (1, 2, 4))),
        *((2, 8, (1, 2)), (6, 8, (1, 2, 4, 6)), (8, 8, (1, 2, 4, 8))),
    ],
)
def test_numbers_of_devices_double_up_to_all_gpus_or_a_few_logical_ones(
    gpus, present, cores, tried
):
    gpus(present, cores)
    kind = GPU if present else LOGICAL
    plain = [name for name in variants_of() if "," not in name]
    assert plain == [name_of(kind, count) for count in tried]
    assert next(iter(variants_of(on="logical"))) == "1 logical device"


def test_more_gpus_than_there_are_are_not_run_and_say_how_many_there_are(gpus):
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


def test_efficiency_is_speed_up_over_one_device_by_their_number():
    for point in result(measured(steps())).several:
        # Each device makes its share in WHOLE seconds, where one alone takes STEP.
        assert point.efficiency.value == pytest.approx(STEP / WHOLE, rel=0.02)
        assert point.speed_up.ratio == pytest.approx(
            point.count * STEP / WHOLE, rel=0.02
        )
        assert point.efficiency.low < point.efficiency.value < point.efficiency.high
    timed = steps()
    del timed["1 GPU"]
    assert result(measured(timed)).several == ()


def test_gpus_are_told_with_one_ratio_two_rates_and_what_to_type():
    found = verdict(measured(steps()))
    assert found.headline == "Train on 4 GPUs."
    # 4 x 10 / 14.5: 128 examples in 14.5 ms against 32 in 10.
    assert " train 2.8 times as fast as one: 8," in found.much
    assert " instead of 3," in found.much
    assert (found.sure, found.winner) == ("sure", "4 GPUs")
    (warning,) = found.warnings
    assert "give it 4 times as many examples" in warning
    places = '["GPU:0", "GPU:1", "GPU:2", "GPU:3"]'
    assert f"MirroredStrategy({places})" in found.edits[0].new
    assert "--batch 128`" in found.next
    found = experiment("scaling", batch=65_536).verdict(measured(steps()))
    assert found.next == ""
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
    run = measured(steps(counts, kind=LOGICAL), noise=noise)
    found = verdict(run)
    assert found.warnings == (SHARED,)
    assert "GPUs" not in found.headline + found.much


@pytest.mark.parametrize("kind", [GPU, LOGICAL])
def test_noise_is_a_verdict(kind):
    found = verdict(measured(steps(kind=kind, summing=0.029), noise=0.9))
    assert found.sure == "not known yet"
    assert found.headline.endswith("are faster than one is not known yet.")
    assert "times" not in found.much


def test_what_the_sum_takes_is_a_step_with_it_less_one_without():
    # 4 ms of 14.5.
    words = r"Summing the gradients of 4 GPUs takes 28 % \(2\d % to \d\d %\) of a step"
    assert re.search(words + r" of 14\.[456] ms\.", said(measured(steps())))
    hidden = said(measured(steps(summing=0.0), noise=0.2))
    assert "is not shown to take any of a step" in hidden


def test_what_is_to_be_done_next_follows_from_what_devices_bring():
    found = verdict(measured(steps(feeding=0.01)))
    # How sure that is, is said of the headline alone.
    assert found.headline == "Train on 4 GPUs."
    assert "make the input faster before you add GPUs: `perfkit run" in found.next
    quick = steps(summing=0.0, feeding=0.0)
    assert verdict(measured(quick)).next == ""
    found = verdict(measured(steps(summing=0.0, feeding=0.0, kind=LOGICAL)))
    assert found.headline.startswith("One device left cores idle")
    assert found.next.startswith("Run this on a machine with several GPUs")


@pytest.mark.parametrize("name", list(SMALL.make_variants()))
def test_every_variant_trains(name):
    variant = SMALL.make_variants()[name]

    def look(tf):
        return [type(item) for item in itertools.islice(variant.work(), 3)]

    assert perfkit.fresh(look) == [Pause, Tick, Tick]


def test_preparing_refuses_what_learns_otherwise(gpus):
    notes = perfkit.fresh(lambda tf: {n.name: n.value for n in SMALL.prepare()})
    assert notes[REFUSED] == {}
    asked = Scaling(devices=2, model="small-resnet", batch=4)
    notes = perfkit.fresh(lambda tf: {n.name: n.value for n in asked.prepare()})
    refused = notes[REFUSED]
    ways = ("", ", own gradients", ", fed")
    assert set(refused) == {f"2 logical devices{way}" for way in ways}
    reason = refused["2 logical devices"]
    assert "BatchNormalization sees one device's share" in reason
    assert reason.endswith("such as `wide-dense`")
