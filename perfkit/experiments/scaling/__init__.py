"""What do several devices bring to one training, and what keeps them from more?

The suspect: n devices do not train n times as fast, because their gradients have to be
summed in every step and their input has to come n times as fast.
The test: train on one device without a strategy, on one with it, and on more of them,
each time on a batch that is there already, on one from a pipeline, and without summing
the gradients. Before that, several devices have to learn what one learns.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from perfkit import units
from perfkit.errors import BadParameterError, RunError
from perfkit.experiments.base import Experiment
from perfkit.experiments.parameters import Choice, Range
from perfkit.experiments.scaling import agreement, numbers
from perfkit.experiments.scaling import work as scaling_work
from perfkit.experiments.scaling.agreement import LEARNS_OTHERWISE, call_or_none
from perfkit.experiments.scaling.numbers import FED, LINK, OWN, SHARED, STRATEGY, Setup
from perfkit.experiments.scaling.work import GPU, LOGICAL, DeviceKind, Job
from perfkit.experiments.shared import benchmark
from perfkit.experiments.shared.benchmark import without_gpus
from perfkit.experiments.shared.models import MODELS
from perfkit.experiments.shared.words import between, failures, instead
from perfkit.findings.record import Edit, Verdict
from perfkit.machine import cards
from perfkit.machine.cards import gpus_here
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.statistics import Comparison
from perfkit.measure.tick import REFUSED, Note, Yielded

# Two show the method; more than four show nothing more of it.
_FEWEST_LOGICAL, _MOST_LOGICAL = 2, 4

ONE_GPU = "one GPU is all there is"
_WAYS = {
    "weak": "Each was given a batch of its own, which was at hand.",
    "strong": "They shared one batch, which was at hand.",
}
# What to do where GPUs are held up, and where they reach less of the ideal than that.
_GOOD = 0.9
# What is said of several: of those that may be as fast the best that is shown.
_LIKELIEST = ("faster", "too noisy to say", "no difference shown", "slower")
_NEXT = {
    "input": "Where yours is fed so, make the input faster before you add GPUs: "
    "`perfkit run data-pipeline` says how.",
    "sum": "Sum less often for the same examples: a larger batch on each GPU, which "
    "`perfkit run scaling --batch {}` tries.",
}
_LIMITS = {
    "input": "input, {} of a step",
    "sum": "the sum of gradients, {} of a step",
    "neither": "nothing that is shown to take a tenth of a step",
}
_MORE_WORK = (
    "Give each GPU more work in a step: try a larger `--batch`, and see whether the "
    "efficiency rises."
)
_LARGER = "`perfkit run scaling --batch {}` tries a larger batch. "
# A batch that is tried next, in batches of this run; and none is larger.
_TIMES, _LARGEST = 4, 65_536
_ELSEWHERE = "Run this on a machine with several GPUs before you pay for them."


@dataclass(frozen=True, kw_only=True)
class Scaling(Experiment):
    """What do several devices bring to one training, and what keeps them from more?"""

    on: Annotated[
        str,
        Choice(
            ("here", "logical"),
            help="here: the GPUs, or logical devices of the processor where none is",
        ),
    ] = "here"
    devices: Annotated[
        int, Range(0, 16, help="At most; 0 for all GPUs, or a few logical ones")
    ] = 0
    batch: Annotated[
        int, Range(1, 65_536, unit="examples", help="Of each device, or of all")
    ] = 32
    scaling: Annotated[
        str,
        Choice(
            ("weak", "strong"),
            help="weak: each device has a batch; strong: all share one",
        ),
    ] = "weak"
    model: Annotated[str, Choice(tuple(MODELS), help="What is trained")] = "wide-dense"
    image_side: Annotated[
        int, Range(32, 512, unit="px", help="Of the JPEG decoded for each example")
    ] = 96

    name = "scaling"

    def __post_init__(self) -> None:
        """Refuse what cannot be shared out."""
        super().__post_init__()
        if self.devices == 1:
            raise BadParameterError(
                "devices is 1; give 2 or more, or 0 for all that are here."
            )
        uneven = [count for count in self._counts if self.batch % count]
        if self.scaling == "strong" and uneven:
            raise BadParameterError(
                f"batch is {self.batch} and {uneven[0]} devices are to share it "
                "evenly; give a multiple of each number of devices."
            )

    @property
    def baseline(self) -> str:  # type: ignore[override]
        """One device without a strategy."""
        return Setup(self._kind, 1).name

    def make_variants(self) -> Mapping[str, Variant]:
        """Each number of devices as it is, fed, and without the sum of gradients."""
        variants = [one for count in self._counts for one in self._with(count)]
        if len(self._counts) > 1:
            variants.append(self._link())
        elif not self.devices:
            # What a machine with one GPU cannot show.
            variants.append(self._variant(2, "", self._train(2), "A second GPU."))
        return {one.name: one for one in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Refuse numbers of devices that learn something else than one does.

        Raises:
            RunError: TensorFlow cannot use the GPUs that are here.
        """
        if self._kind == GPU:
            seen = call_or_none(scaling_work.usable, agreement.LONGEST_S) or 0
            if seen < self._here:
                raise RunError(
                    f"TensorFlow can use {seen} of {self._here} GPUs here; `perfkit "
                    "doctor` says why, and `on=logical` shows the method without them"
                )
        refused = dict[str, str]()
        for count in self._present:
            yield Note("progress", f"Checking what {self._kind}s learn: {count}")
            why = agreement.difference(self._job(count))
            # What rests on what these devices learn.
            every = (STRATEGY,) if count == 1 else ("", OWN, FED)
            names = (Setup(self._kind, count, how).name for how in every)
            refused |= dict.fromkeys(names if why else (), why)
        yield Note(REFUSED, refused)
        # The processes that checked had the GPUs; this one has no use for them.
        without_gpus()
        driver, _, _ = cards.gpus()
        yield Note(
            numbers.NOTE,
            {
                "weights": scaling_work.weights(self.model),
                "batches": {str(n): self._job(n).batch for n in self._counts},
                "link": scaling_work.bytes_of_an_example(self._job(max(self._present))),
                # How the GPUs are joined, a sentence for each pair.
                "joined": list(driver.topology) if driver and self._kind == GPU else [],
            },
        )

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what more devices bring, what keeps them from more, what to change."""
        points, on_gpus = numbers.points(measured), numbers.kind(measured) == GPU
        if points and points[-1].speed_up:
            best = _best(measured, points)
            return _of_several(measured, points[0], best, self.scaling, self.batch)
        because = tuple(_grounds(measured))
        if any(one.unavailable == ONE_GPU for one in measured.variants):
            return Verdict(
                headline="One GPU is all there is: nothing is said about several.",
                much="What can be learnt here is what input takes and what the "
                "strategy itself costs.",
                because=because,
                next="Run `perfkit run scaling --on logical` to see how several "
                "devices work together, on logical devices of the processor.",
            )
        learns = any(LEARNS_OTHERWISE in one.unavailable for one in measured.variants)
        return Verdict(
            headline=f"Whether several {numbers.kind(measured)}s are faster than one "
            "is not known yet.",
            much="Fewer than two numbers of them were timed.",
            sure="not known yet",
            warnings=() if on_gpus else (SHARED,),
            because=because,
            next="Choose a model of which several devices learn what one learns, such "
            "as `wide-dense`."
            if learns
            else "Look at how the trials ended, or give the run more seconds.",
        )

    @property
    def _kind(self) -> DeviceKind:
        return GPU if self.on == "here" and gpus_here()[0] else LOGICAL

    @property
    def _here(self) -> int:
        """How many devices of the kind there are; as many logical ones as asked for."""
        if self._kind == GPU:
            return len(gpus_here()[0])
        usual = min(max(benchmark.granted(), _FEWEST_LOGICAL), _MOST_LOGICAL)
        return self.devices or usual

    @property
    def _counts(self) -> tuple[int, ...]:
        return scaling_work.counts(self.devices or self._here)

    @property
    def _present(self) -> list[int]:
        return [count for count in self._counts if count <= self._here]

    def _job(self, count: int) -> Job:
        batch = self.batch if self.scaling == "strong" else count * self.batch
        return Job(model=self.model, kind=self._kind, count=count, batch=batch)

    def _with(self, count: int) -> Iterator[Variant]:
        """The variants of a number of devices, the one the others change first."""
        itself, train = Setup(self._kind, count).name, self._train(count)
        fed = functools.partial(train, side=self.image_side)
        if count > 1:
            own = functools.partial(train, summed=False)
            what = "MirroredStrategy over several devices."
            yield self._variant(count, "", train, what, self.baseline)
            yield self._variant(count, OWN, own, "Gradients are not summed.", itself)
        else:
            together = functools.partial(train, with_strategy=True)
            yield self._variant(count, "", train, "One device, no strategy.")
            yield self._variant(count, STRATEGY, together, "MirroredStrategy.", itself)
        yield self._variant(count, FED, fed, "Examples are decoded from JPEGs.", itself)

    def _train(self, count: int) -> functools.partial[Iterator[Yielded]]:
        several = count > 1
        return functools.partial(
            scaling_work.train, self._job(count), with_strategy=several
        )

    def _variant(
        self,
        count: int,
        how: str,
        work: functools.partial[Iterator[Yielded]],
        changes: str,
        against: str = "",
    ) -> Variant:
        name, why_not = Setup(self._kind, count, how).name, self._why_not(count)
        code = scaling_work.code_of_training(
            with_strategy=count > 1 or how == STRATEGY,
            is_fed=how == FED,
            summed=how != OWN,
        )
        against = "" if why_not else against
        return Variant(name, work, changes, against, why_not, code=code)

    def _why_not(self, count: int) -> str:
        if count <= self._here:
            return ""
        return ONE_GPU if self._here == 1 else f"{self._here} GPUs are all there is"

    def _link(self) -> Variant:
        job = self._job(max(self._present))
        what = "one GPU to another" if self._kind == GPU else "memory to memory"
        return Variant(
            LINK,
            functools.partial(scaling_work.copying, job),
            f"Copying from {what} what {job.count} devices sum in a step.",
            unavailable=self._why_not(2),
            code=scaling_work.code_of_link(self._kind),
        )


def _best(measured: Measurement, points: Sequence[numbers.Point]) -> numbers.Point:
    """The fewest devices that are as fast as any; of those that are not one."""
    several = {point.timing.variant: point for point in points[1:]}
    fastest = [several[one.variant] for one in measured.fastest(tuple(several))]

    def place(point: numbers.Point) -> tuple[int, int]:
        assert point.speed_up
        return _LIKELIEST.index(point.speed_up.verdict), point.count

    return min(fastest, key=place)


def _of_several(
    measured: Measurement,
    one: numbers.Point,
    most: numbers.Point,
    scaling: str,
    batch: int,
) -> Verdict:
    compared, who = most.speed_up, numbers.of(numbers.kind(measured), most.count)
    assert compared
    limit, _ = numbers.limits(measured).get(most.count, ("neither", 0.0))
    on_gpus, gains = numbers.kind(measured) == GPU, compared.verdict == "faster"
    rates = instead(most.timing, one.timing)
    much = f"They reach {rates.removeprefix(': ')}." if rates else ""
    if compared.ends:
        much = f"They train {compared.as_fast_as} one{rates}."
    edits = (_on(most.count),) if on_gpus and gains else ()
    larger = min(_TIMES * batch, _LARGEST)
    then = _NEXT.get(limit, _MORE_WORK if most.efficiency.low < _GOOD else "")
    if limit == "sum" and larger == batch:
        then = ""
    return Verdict(
        headline=_headline(compared, who, on_gpus=on_gpus),
        much=much,
        sure=compared.sure,
        interval=compared.ends,
        edits=edits,
        warnings=_warnings(scaling, most.count) * len(edits) if on_gpus else (SHARED,),
        because=(_WAYS[scaling], *_grounds(measured)),
        next=then.format(larger)
        if on_gpus
        else _LARGER.format(larger) * (gains and larger > batch) + _ELSEWHERE,
        winner=most.timing.variant if on_gpus and gains else "",
    )


def _on(count: int) -> Edit:
    """The lines that train on the first so many GPUs, of however many there are."""
    places = ", ".join(f'"GPU:{number}"' for number in range(count))
    return Edit(
        old="model = build()",
        new=f"strategy = tf.distribute.MirroredStrategy([{places}])\n"
        "with strategy.scope():\n"
        "    model = build()",
    )


def _warnings(scaling: str, count: int) -> tuple[str, ...]:
    """What besides the edit is as it was measured."""
    if scaling != "weak":
        return ()
    return (
        f"Here each had a whole batch: `fit` shares one out, so give it {count} times "
        "as many examples, and watch the validation loss.",
    )


def _headline(compared: Comparison, who: str, *, on_gpus: bool) -> str:
    if compared.sure == "not known yet":
        return f"Whether {who} are faster than one is not known yet."
    if compared.verdict == "faster":
        idle = "One device left cores idle: try a larger batch without a strategy."
        return f"Train on {who}." if on_gpus else idle
    where = "on one GPU" if on_gpus else "without a strategy on this processor"
    judged = "slower" if compared.verdict == "slower" else "not shown to be faster"
    return f"Train {where}: {who} are {judged}."


def _grounds(measured: Measurement) -> Iterator[str]:
    """The facts that a verdict rests on; costs are those of the most devices."""
    of = numbers.kind(measured)
    more = [point for point in numbers.points(measured) if point.speed_up]
    if more:
        said = "; ".join(
            f"{numbers.of(of, p.count)} {between(p.efficiency, units.percent)}"
            for p in more
        )
        yield f"Efficiency, the share of so many times one device's rate: {said}."
    if more and of != GPU:
        most = more[-1].count
        yield (
            f"They compute on the same cores: {numbers.of(of, most)} reach 1/{most}, "
            f"{units.percent(1 / most)}, where sharing costs nothing and one of them "
            "keeps all cores busy."
        )
    cost = numbers.strategy_cost(measured)
    if cost is not None:
        yield (
            f"The strategy itself: one {of} with it reaches {cost.interval} the rate "
            f"of one without ({cost.judgement})."
        )
    rate = numbers.link(measured)
    if rate is not None:
        where = "from one GPU to another" if of == GPU else "within memory"
        said = between(rate, lambda value: units.rate(value, "B"))
        yield f"Copying {where} reaches {said}."
    yield from numbers.joined(measured)
    yield from (_summed(one, of) for one in numbers.sums(measured)[-1:])
    limits = [
        f"{numbers.of(of, count)}: {_LIMITS[limit].format(units.percent(share))}"
        for count, (limit, share) in numbers.limits(measured).items()
    ]
    if limits:
        yield f"What holds them up when they are fed from JPEGs: {'; '.join(limits)}."
    yield from failures(measured)


def _summed(one: numbers.Sum, of: DeviceKind) -> str:
    shown = f", {units.percent(one.share)} of a step"
    if one.seen.low <= 0:
        shown = "; none is shown for sure"
    elif not units.is_known(one.seen.low, one.seen.high):
        shown = "; how much is not known yet"
    link = "nothing was predicted"
    if one.predicted is not None:
        link = (
            f"copying {units.size(one.moved)} explains "
            f"{between(one.predicted, units.seconds)} of it"
        )
    return (
        f"Summing the gradients of {numbers.of(of, one.count)} takes "
        f"{between(one.seen, units.seconds)}{shown}; {link}."
    )
