"""What a run on several devices means."""

from collections.abc import Iterator, Sequence

from perfkit import units
from perfkit.experiments.scaling import numbers
from perfkit.experiments.scaling.agreement import LEARNS_OTHERWISE
from perfkit.experiments.scaling.numbers import SHARED, Point, Sum
from perfkit.experiments.scaling.work import GPU, DeviceKind
from perfkit.experiments.shared.words import between, failures, instead
from perfkit.findings.record import Edit, Verdict
from perfkit.measure.measurement import Measurement
from perfkit.measure.statistics import Comparison

ONE_GPU = "one GPU is all there is"
_FED = {
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


def judge(measured: Measurement, scaling: str, batch: int) -> Verdict:
    """Say what several devices bring, and what to change."""
    points, on_gpus = numbers.points(measured), numbers.kind(measured) == GPU
    if points and points[-1].speed_up:
        best = _best(measured, points)
        return _of_several(measured, points[0], best, scaling, batch)
    because = tuple(_grounds(measured))
    if any(one.unavailable == ONE_GPU for one in measured.variants):
        return Verdict(
            headline="One GPU is all there is: nothing is said about several.",
            much="What can be learnt here is what input takes and what the strategy "
            "itself costs.",
            because=because,
            next="Run `perfkit run scaling --on logical` to see how several devices "
            "work together, on logical devices of the processor.",
        )
    learns = any(LEARNS_OTHERWISE in one.unavailable for one in measured.variants)
    return Verdict(
        headline=f"Whether several {numbers.kind(measured)}s are faster than one is "
        "not known yet.",
        much="Fewer than two numbers of them were timed.",
        sure="not known yet",
        warnings=() if on_gpus else (SHARED,),
        because=because,
        next="Choose a model of which several devices learn what one learns, such as "
        "`wide-dense`."
        if learns
        else "Look at how the trials ended, or give the run more seconds.",
    )


def _best(measured: Measurement, points: Sequence[Point]) -> Point:
    """The fewest devices that are as fast as any; of those that are not one."""
    several = {point.timing.variant: point for point in points[1:]}
    fastest = [several[one.variant] for one in measured.fastest(tuple(several))]

    def place(point: Point) -> tuple[int, int]:
        assert point.speed_up
        return _LIKELIEST.index(point.speed_up.verdict), point.count

    return min(fastest, key=place)


def _of_several(
    measured: Measurement, one: Point, most: Point, scaling: str, batch: int
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
        because=(_FED[scaling], *_grounds(measured)),
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


def _summed(one: Sum, of: DeviceKind) -> str:
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
