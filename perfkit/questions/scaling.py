"""What do several devices bring to one training, and what keeps them from more?

The suspect: n devices sum their gradients in every step.
The test: train on one device without a strategy, on one with it and on more of them,
with and without the sum of gradients, on a batch that is there.

A process can have one strategy: a second one, over another number of devices, was seen
to fail in its first sum. So each training and each check has a process of its own.
"""

import functools
import itertools
import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Comparison, Estimate
from perfkit.engine.trial import READY, REFUSED, Note, Yielded, every
from perfkit.errors import BadParameterError, RunError
from perfkit.findings.record import Fact, Verdict
from perfkit.machine.nvml import gpus_here
from perfkit.questions.base import Choice, Experiment, Range
from perfkit.questions.shared import benchmark, keras, loops, tf, verdicts
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.verdicts import fact, rates_behind

DeviceKind = Literal["GPU", "logical device"]
GPU: DeviceKind = "GPU"
LOGICAL: DeviceKind = "logical device"
# How a training differs from the plain one on so many devices, which has "".
STRATEGY, OWN = "strategy", "own gradients"
_CHANGES = {
    "": "The number of devices; several are joined by MirroredStrategy.",
    STRATEGY: "MirroredStrategy.",
    OWN: "Gradients are not summed.",
}
SHARED = "Logical devices share this processor, so this says nothing about more GPUs."
# No machine is as fast or has as many, but a file may hold anything.
_MAX_RATE, _MOST_DEVICES = 1e15, 1000
_RENT = "Run this on a machine with several GPUs before you pay for them."
_IDLE = "One device left cores idle, so try a larger batch without a strategy."
_STRATEGY = """strategy = tf.distribute.MirroredStrategy([{}])
with strategy.scope():
    model = build()"""
_SUMMING = "Of it, summing the gradients"
_WHOLE_BATCH = (
    "Here each had a whole batch, but `fit` splits one: give it {} times as many "
    "examples, and watch the validation loss."
)
_RANKS = ("faster", "too noisy to say", "no difference shown", "slower")


def name_of(kind: DeviceKind, count: int, mode: str = "") -> str:
    """The name of a variant, such as ``"4 GPUs, own gradients"``."""
    devices = units.count(count, kind)
    return f"{devices}, {mode}" if mode else devices


@dataclass(frozen=True, kw_only=True)
class Job(loops.Job):
    """A training on ``count`` devices of a kind; ``batch`` is that of all together."""

    kind: DeviceKind
    count: int


def claim_devices(job: Job) -> tuple[str, ...]:
    """Make a fresh process use a job's devices alone: ``("GPU:0", "GPU:1")``."""
    if job.kind == GPU:
        gpus = tf.config.list_physical_devices("GPU")
        if len(gpus) < job.count:
            raise RunError(
                f"TensorFlow can use {len(gpus)} of {job.count} GPUs here; give fewer "
                "devices, or `on=logical`. If there are more, `perfkit doctor` says "
                "why."
            )
        tf.config.set_visible_devices(gpus[: job.count], "GPU")
    else:
        benchmark.without_gpus()
        processor, *_ = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration() for _ in range(job.count)]
        tf.config.set_logical_device_configuration(processor, parts)
    device = "GPU" if job.kind == GPU else "CPU"
    return tuple(f"{device}:{number}" for number in range(job.count))


def train(job: Job, mode: str) -> Iterator[Yielded]:
    """Train on a batch that stays on its devices."""
    places, is_mirrored = claim_devices(job), job.count > 1 or mode == STRATEGY
    strategy = mirrored(places) if is_mirrored else tf.distribute.get_strategy()
    with strategy.scope():
        network = job.network()
    step = plain(network)
    if is_mirrored:
        step = shared_out(network, strategy, summed=mode != OWN)
    batch = batch_at_hand(job, strategy)
    call = functools.partial(loops.compiled(step, autograph=False), *batch)
    yield READY
    # A call gives back nothing; its examples are done once the device is waited for.
    steps = (call() or job.batch for _ in itertools.count())
    yield from every(steps, sync=loops.wait)


def code_of_training(job: Job, mode: str) -> str:
    """The lines of a training, as a reader types them; see ``train``."""
    step: list[Callable[..., Any]] = [plain]
    if job.count > 1 or mode == STRATEGY:
        step = [mirrored, functools.partial(shared_out, summed=mode != OWN)]
    graph = functools.partial(loops.compiled, autograph=False)
    return code_of(*step, graph)


def mirrored(places: tuple[str, ...]) -> Any:
    """Give the strategy over these devices."""
    strategy = tf.distribute.MirroredStrategy(list(places))
    return strategy


def plain(network: Any) -> Callable[..., None]:
    """Give the step of one device, without a strategy."""

    def step(features: Any, labels: Any) -> None:
        slopes = gradients(network, features, labels)
        for weight, slope in zip(variables(network), slopes, strict=True):
            descend(weight, slope)

    return step


def shared_out(network: Any, strategy: Any, *, summed: bool) -> Callable[..., None]:
    """Give the step of all devices, which learn from all gradients or their own."""

    def learn(_: Any, slopes: list[Any]) -> None:
        for weight, slope in zip(variables(network), slopes, strict=True):
            strategy.extended.update(weight, descend, args=(slope,), group=False)

    def on_each(*part: Any) -> None:
        slopes, device = gradients(network, *part), tf.distribute.get_replica_context()
        if summed:
            slopes = device.all_reduce(tf.distribute.ReduceOp.SUM, slopes)
        device.merge_call(learn, args=(slopes,))

    return lambda *batch: strategy.run(on_each, args=batch)


def gradients(network: Any, features: Any, labels: Any) -> Any:
    """A device's part of the gradient of the mean loss over the whole batch."""
    # A mean of Keras's is divided by the devices already, in some of its versions.
    loss_of = keras.losses.SparseCategoricalCrossentropy(True, reduction="sum")
    batch = labels.shape[0] * tf.distribute.get_strategy().num_replicas_in_sync
    with tf.GradientTape() as tape:
        loss = loss_of(labels, network(features, training=True)) / batch
    return tape.gradient(loss, variables(network))


def variables(network: Any) -> list[Any]:
    """TensorFlow's own variables of the weights that learn."""
    return [weight.value for weight in network.trainable_variables]


def descend(weight: Any, slope: Any) -> None:
    """Change a weight by gradient descent."""
    weight.assign_sub(loops.LEARNING_RATE * slope)


def batch_at_hand(job: Job, strategy: Any) -> Any:
    """Features and labels of a step; each device of the strategy holds its share."""
    count = strategy.num_replicas_in_sync
    parts = [np.split(array, count) for array in job.examples(job.batch)]

    def share() -> tuple[Any, ...]:
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return tuple(tf.identity(part[number]) for part in parts)

    return strategy.run(share)


# Sums in another order differ by a ten-thousandth of a step, and TF32 keeps ten bits;
# a gradient that is missing is a good part of the step.
TOLERANCE = 0.02
# Devices that cannot reach each other wait for each other without an end.
LONGEST_S = 90.0
_SILENT = (
    "gave no answer within {}: set NCCL_P2P_DISABLE=1 if the GPUs cannot reach each "
    "other, or run again if they are new, because TensorFlow compiles for them first"
)
_APART = (
    "learns something else than one device does from the whole batch: after one step "
    "its weights are {} off. BatchNormalization sees only one device's share, so "
    "choose a model without it, such as `wide-dense`"
)


def why_not_equal(job: Job) -> str:
    """Say how a step on several devices differs from one on one; "" if it does not.

    This process must not have used TensorFlow, because it may be forked.
    """
    with multiprocessing.get_context().Pool(1) as pool:
        try:
            share = pool.apply_async(deviation, (job,)).get(LONGEST_S)
        except multiprocessing.TimeoutError:
            return _SILENT.format(units.seconds(LONGEST_S))
        except RunError:
            raise
        except Exception:
            # Devices that cannot make a step at all say why in their trials.
            return ""
    return _APART.format(units.percent(share)) if share > TOLERANCE else ""


def deviation(job: Job, *, summed: bool = True) -> float:
    """How far a step on several devices ends from that of one with the whole batch.

    It is the worst device's way off, as a share of the way of the one.
    """
    strategy = mirrored(claim_devices(job))
    with strategy.scope():
        network = job.network()
    start = _weights(network)
    step = shared_out(network, strategy, summed=summed)
    loops.compiled(step, autograph=False)(*batch_at_hand(job, strategy))
    single = job.network()
    plain(single)(*batch_at_hand(job, tf.distribute.get_strategy()))
    end = _weights(single)
    ends = (_weights(network, number) for number in range(job.count))
    worst = max(float(np.linalg.norm(weights - end)) for weights in ends)
    return worst / float(np.linalg.norm(end - start))


def _weights(network: Any, device: int = 0) -> Any:
    """All weights that learn, as they are on one of the devices."""
    mirrors = (getattr(weight, "values", (weight,)) for weight in variables(network))
    return np.concatenate([np.ravel(values[device].numpy()) for values in mirrors])


def gains_of(measured: Measurement, kind: DeviceKind) -> dict[int, Comparison]:
    """What several devices bring against one without a strategy, by their number."""
    names = {timing.variant for timing in measured.timings if timing.rate < _MAX_RATE}
    single = name_of(kind, 1)
    several = {count: name_of(kind, count) for count in range(2, _MOST_DEVICES)}
    return {
        count: gain
        for count, name in several.items()
        if {name, single} <= names and (gain := measured.compare(name, single))
    }


@dataclass(frozen=True, kw_only=True)
class Scaling(Experiment):
    """What do several devices bring to one training, and what keeps them from more?"""

    on: Annotated[
        str, Choice(("here", "logical"), help="here: the GPUs, where there are several")
    ] = "here"
    devices: Annotated[int, Range(0, 16, help="At most; 0 for all that are here")] = 0
    batch: Annotated[int, Range(1, 65_536, unit="examples", help="Of each device")] = 32
    model: Annotated[str, Choice(tuple(MODELS), help="What is trained")] = "wide-dense"

    name = "scaling"

    def __post_init__(self) -> None:
        """Refuse a single device, which has nothing to share."""
        super().__post_init__()
        if self.devices == 1:
            raise BadParameterError("devices is 1; give 2 or more, or 0 for all.")

    @property
    def baseline(self) -> str:
        """One device without a strategy."""
        return name_of(self._kind, 1)

    def make_variants(self) -> Mapping[str, Variant]:
        """Each number of devices as it is, and without the sum of gradients."""
        variants = dict[str, Variant]()
        for count in self._counts:
            job, plain = self._job(count), name_of(self._kind, count)
            for mode in ("", STRATEGY if count == 1 else OWN):
                name = name_of(self._kind, count, mode)
                variants[name] = Variant(
                    name,
                    functools.partial(train, job, mode),
                    _CHANGES[mode],
                    plain if mode else self.baseline,
                    code=code_of_training(job, mode),
                )
        return variants

    def prepare(self) -> Iterator[Yielded]:
        """Refuse numbers of devices that learn something else than one does."""
        refused = dict[str, str]()
        for count in self._counts[1:]:
            yield Note("progress", f"Checking what {self._kind}s learn: {count}")
            if reason := why_not_equal(self._job(count)):
                names = (name_of(self._kind, count, mode) for mode in ("", OWN))
                refused |= dict.fromkeys(names, reason)
        yield Note(REFUSED, refused)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what more devices bring, what keeps them from more, what to change."""
        variants = {variant.name for variant in measured.variants}
        kind = GPU if name_of(GPU, 1) in variants else LOGICAL
        single, gains = name_of(kind, 1), gains_of(measured, kind)
        choices = {single: verdicts.Choice(f"Train on {single}.", "model = build()")}
        warnings: tuple[str, ...] = ()
        if gains:
            names = tuple(gain.variant for gain in gains.values())
            fastest = {timing.variant for timing in measured.fastest(names)}
            leaders = ((n, c) for n, c in gains.items() if c.variant in fastest)
            # The fewest devices that are as fast as any; of those that are not one.
            count, best = min(leaders, key=lambda pair: _RANKS.index(pair[1].verdict))
            places = ", ".join(f'"GPU:{number}"' for number in range(count))
            do = f"Train on {best.variant}." if kind == GPU else _IDLE
            choices[best.variant] = verdicts.Choice(do, _STRATEGY.format(places))
            warnings = (_WHOLE_BATCH.format(count),)
        verdict = verdicts.Race(measured, choices, "examples").verdict(
            warnings=warnings,
            facts=tuple(self._facts(measured, gains)),
            next="" if kind == GPU else _RENT,
        )
        if gains and best.verdict == "slower":
            alone = "on one GPU"
            if kind != GPU:
                alone = "without a strategy on this processor"
            headline = f"Train {alone}: {best.variant} are slower."
            much = f"They train {units.times(best.ratio)} times as fast as one"
            rates = rates_behind(measured, best)
            verdict = replace(
                verdict, headline=headline, much=f"{much}{rates}.", interval=best.ends
            )
        if kind == GPU:
            return verdict
        return replace(verdict, warnings=(SHARED,), edits=(), winner="")

    def _facts(
        self, measured: Measurement, gains: Mapping[int, Comparison]
    ) -> Iterator[Fact]:
        """Of each number its efficiency; of the most a step, and the sum's share."""
        for count, gain in gains.items():
            ends = (gain.ratio, gain.low, gain.high)
            value, low, high = (end / count for end in ends)
            share = Estimate(value=value, low=low, high=high)
            yield fact(f"Efficiency of {gain.variant}", share, units.percent)
            if count < max(gains) or (timing := measured.timing(gain.variant)) is None:
                continue
            step = timing.seconds(count * self.batch)
            yield fact(f"A step of {gain.variant}", step, units.seconds)
            if c := measured.compare(gain.variant, f"{gain.variant}, {OWN}"):
                share = Estimate(value=1 - c.ratio, low=1 - c.high, high=1 - c.low)
                row = fact(_SUMMING, share, units.percent)
                yield row if c.high < 1 else Fact(_SUMMING, "none shown")

    @property
    def _kind(self) -> DeviceKind:
        return GPU if self.on == "here" and len(gpus_here()[0]) > 1 else LOGICAL

    @property
    def _counts(self) -> tuple[int, ...]:
        """How many devices to try: 1, 2, 4, 8 and so on, and the most."""
        # Two logical devices show the method; more than four show nothing more of it.
        parts = min(max(benchmark.granted(), 2), 4)
        largest = self.devices or (len(gpus_here()[0]) if self._kind == GPU else parts)
        return tuple(sorted({largest, *(1 << n for n in range(largest.bit_length()))}))

    def _job(self, count: int) -> Job:
        batch = count * self.batch
        return Job(model=self.model, kind=self._kind, count=count, batch=batch)
