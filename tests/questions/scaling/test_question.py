"""The variants and the verdict of runs whose costs are known."""

import itertools
import re

import pytest

import perfkit
from perfkit.engine.trial import REFUSED, Pause, Tick
from perfkit.errors import BadParameterError
from perfkit.questions import experiment
from perfkit.questions.scaling import (
    GPU,
    LOGICAL,
    OWN,
    SHARED,
    STRATEGY,
    Scaling,
    gains_of,
    name_of,
)
from tests.questions.batches import timed_steps
from tests.questions.races import sayings

SMALL = Scaling(on="logical", devices=2, model="dense", batch=8)
SHARE = 32
# Seconds: of a step's arithmetic on one device, of the strategy, and of summing the
# gradients of two devices or more.
STEP, STRATEGY_S, SUM_S = 0.010, 0.0005, 0.004
WHOLE = STEP + STRATEGY_S + SUM_S

verdict = sayings("scaling")


def steps(counts=(1, 2, 4), kind=GPU, *, summing=SUM_S):
    """Examples and seconds of a step by variant."""
    timed = {}
    for count in counts:
        batch, alone = count * SHARE, STEP + (STRATEGY_S if count > 1 else 0.0)
        timed[name_of(kind, count)] = batch, alone + (summing if count > 1 else 0.0)
        if count == 1:
            timed[name_of(kind, count, STRATEGY)] = batch, STEP + STRATEGY_S
        else:
            timed[name_of(kind, count, OWN)] = batch, alone
    return timed


def measured(timed, **more):
    """A run of such steps; the rest is as of ``batches.timed_steps``."""
    baseline = next(iter(timed))

    def against(name):
        before, _, way = name.partition(",")
        return "" if name == baseline else before if way else baseline

    return timed_steps(timed, against, **more)


@pytest.mark.parametrize("present", [0, 1])
def test_without_several_gpus_devices_are_logical_and_every_name_says_so(gpus, present):
    gpus(present)
    variants = experiment("scaling", devices=2).make_variants().values()
    one, two = "1 logical device", "2 logical devices"
    assert [(variant.name, variant.against) for variant in variants] == [
        *((one, one), (f"{one}, strategy", one)),
        *((two, one), (f"{two}, own gradients", two)),
    ]


def test_a_single_device_is_refused():
    with pytest.raises(BadParameterError, match="devices is 1; give 2 or more"):
        experiment("scaling", devices=1)


def test_several_gpus_have_one_ratio_and_code_to_type():
    run = measured(steps())
    # Each device makes its share in WHOLE seconds, where one alone takes STEP.
    assert {count: gain.ratio for count, gain in gains_of(run, GPU).items()} == {
        count: pytest.approx(count * STEP / WHOLE, rel=0.02) for count in (2, 4)
    }
    advice = verdict(run)
    assert (advice.sure, advice.winner) == ("sure", "4 GPUs")
    assert "give it 4 times as many examples" in advice.warnings[0]
    places = '["GPU:0", "GPU:1", "GPU:2", "GPU:3"]'
    assert f"MirroredStrategy({places})" in advice.edits[0].new
    rows = {fact.label: fact.value for fact in advice.facts}
    assert rows["Efficiency of 4 GPUs"] == "69 %"


RENT = "Run this on a machine with several GPUs before you pay for them."
MORE = "Give the run more seconds: no trial reached steady steps."
QUICK = {"summing": 0.0}
NUMBERS = {"1 GPU": (32, 0.010), "2 GPUs": (64, 0.011), "4 GPUs": (128, 0.013)}
AS_FAST_AS_FOUR, SLOW = {"2 GPUs": (64, 0.0065)}, {"8 GPUs": (256, 0.120)}


@pytest.mark.parametrize(
    ("timed", "headline", "winner", "next"),
    [
        (steps(summing=0.1), "Train on one GPU: 4 GPUs are slower.", "",
         ""),
        (steps(**QUICK), "Train on 4 GPUs.", "4 GPUs", ""),
        (NUMBERS | SLOW, "Train on 4 GPUs.", "4 GPUs", ""),
        (NUMBERS | AS_FAST_AS_FOUR | SLOW, "Train on 2 GPUs.", "2 GPUs", ""),
        (steps(kind=LOGICAL, **QUICK), "One device left cores idle, so try a larger "
         "batch without a strategy.", "", RENT),
        (steps(kind=LOGICAL, summing=0.1), "Train without a strategy on this "
         "processor: 4 logical devices are slower.", "", RENT),
        (steps((1,)), 'Only "1 GPU" could be timed.', "", MORE),
        (steps() | {"1 GPU": (32, 1e-20)}, 'Only "1 GPU" could be timed.', "", MORE),
    ],
)  # fmt: skip
def test_what_to_do_follows_from_what_devices_bring(timed, headline, winner, next):
    advice = verdict(measured(timed))
    assert (advice.headline, advice.winner) == (headline, winner)
    assert advice.next == next
    assert bool(advice.edits) == bool(winner)


@pytest.mark.parametrize("noise", [0.002, 0.9])
@pytest.mark.parametrize("counts", [(1, 2, 4), (1,)])
def test_logical_devices_are_never_told_without_saying_so(noise, counts):
    advice = verdict(measured(steps(counts, kind=LOGICAL), noise=noise))
    assert advice.warnings == (SHARED,)
    assert "GPUs" not in advice.headline + advice.much


def test_what_the_sum_takes_is_a_step_with_it_less_one_without():
    # 4 ms of 14.5.
    *_, step, summing = verdict(measured(steps())).facts
    assert (step.label, step.value[:3]) == ("A step of 4 GPUs", "14.")
    assert (summing.label, summing.value) == ("Of it, summing the gradients", "28 %")
    assert re.fullmatch(r"2\d % to \d\d %", summing.interval)
    *_, hidden = verdict(measured(steps(summing=0.0), noise=0.2)).facts
    assert (hidden.value, hidden.interval) == ("none shown", "")


@pytest.mark.parametrize("way", ["", STRATEGY, OWN])
def test_every_way_trains(way):
    variant = SMALL.make_variants()[name_of(LOGICAL, 1 if way == STRATEGY else 2, way)]

    def look(tf):
        return [type(item) for item in itertools.islice(variant.work(), 3)]

    assert perfkit.fresh(look) == [Pause, Tick, Tick]


def test_preparing_refuses_what_learns_otherwise(gpus):
    def prepare(question):
        return {note.name: note.value for note in question.prepare()}[REFUSED]

    assert perfkit.fresh(lambda tf: prepare(SMALL)) == {}
    normal = Scaling(devices=2, model="small-resnet", batch=4)
    refused = perfkit.fresh(lambda tf: prepare(normal))
    ways = ("", ", own gradients")
    assert set(refused) == {f"2 logical devices{way}" for way in ways}
    reason = refused["2 logical devices"]
    assert "BatchNormalization sees only one device's share" in reason
