"""All that a run has measured so far, and what it says."""

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine import statistics
from perfkit.engine.spread import Spread, Variance
from perfkit.engine.statistics import Comparison, Rounds, Timing, student
from perfkit.engine.steady import Steady, Usual, steady
from perfkit.engine.trial import ONE_PROCESS, WHOLE, Trial, Yielded

# The baseline once more in each round: what two runs of one thing differ by here.
# No variant of a reader's is likely to be called so.
CONTROL = "control (A/A)"
# A function of the reader's as a variant.
OWN = "yours"
# Epochs that something would have lasted which met no end of one.
_ENDLESS = 2


@dataclass(frozen=True)
class Variant:
    """One variant as the engine sees it.

    Attributes:
        name: Its name in the experiment, in charts and in files.
        work: Makes the generator that does the work; called in a fresh process.
        changes: The one thing it changes, in a sentence.
        against: The variant it is compared with; "" or its own name for none.
        unavailable: Why it is not run on this machine; "" where it is.
        own_pauses: Whether it is about its recurring pauses, so that those of its own
            trials count, one by one.
        other_pauses: Whether they are known to be others than those of the rest, so
            that only its own trials say what is usual.
        code: The lines that it runs, as a reader types them; "" where none are shown.
    """

    name: str
    work: Callable[[], Iterator[Yielded]]
    changes: str = ""
    against: str = ""
    unavailable: str = ""
    own_pauses: bool = False
    other_pauses: bool = False
    code: str = ""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """All that has been measured so far, and what it says.

    Attributes:
        variants: The variants asked for, in order, without the control.
        trials: Every trial that has ended, in order; the control's are ``CONTROL``.
        samples: The machine's load, as ``Finding.samples`` holds it.
        notes: What ``prepare`` told, by name, and what was known of the machine's
            ``spread`` before.
        baseline: The variant that the control repeats.
        least_rounds: No comparison of fewer rounds claims a difference.
    """

    variants: tuple[Variant, ...]
    trials: tuple[Trial, ...] = ()
    samples: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    baseline: str = ""
    least_rounds: int = 1

    def trials_of(self, variant: str) -> tuple[Trial, ...]:
        """The trials of one variant, whatever their outcome."""
        return tuple(t for t in self.trials if t.variant == variant)

    @functools.cached_property
    def timings(self) -> tuple[Timing, ...]:
        """A rate with its interval for each variant that completed a trial."""
        usual = statistics.usual_spread(
            list(rounds.values()) for rounds in self._steady.values()
        )
        return tuple(
            statistics.timing(
                v.name,
                list(self._steady[v.name].values()),
                [t.setup_s for t in self.trials_of(v.name) if t.setup_s is not None],
                usual,
                one_process=all(
                    ONE_PROCESS in trial.notes
                    for trial, _ in self._completed[v.name].values()
                ),
            )
            for v in self.variants
            if self._steady.get(v.name)
        )

    def timing(self, variant: str) -> Timing | None:
        """One variant's rate; None while it has no completed trial."""
        return next((t for t in self.timings if t.variant == variant), None)

    @functools.cached_property
    def noise_floor(self) -> float | None:
        """The ratio that the baseline and its control reached; None if unknown."""
        control = self._rounds(CONTROL, self.baseline)
        return statistics.noise_floor(control, self._usual) if control else None

    @functools.cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each variant against the one it is compared with."""
        return tuple(self._comparison(rounds) for rounds in self._compared)

    def compare(self, variant: str, baseline: str) -> Comparison | None:
        """Any two variants, from the rounds that hold both; None if there are none."""
        for comparison in self.comparisons:
            if (comparison.variant, comparison.baseline) == (variant, baseline):
                return comparison
        rounds = self._rounds(variant, baseline)
        return None if rounds is None else self._comparison(rounds)

    def _comparison(self, rounds: Rounds) -> Comparison:
        compared = statistics.comparison(
            rounds, self._usual, self.noise_floor, max(1, len(self._compared))
        )
        # A single turn shows nothing of how turns differ.
        return compared.after(max(self.least_rounds, 2 if rounds.single else 1))

    def fastest(self, among: tuple[str, ...] = ()) -> tuple[Timing, ...]:
        """The fastest variant, then those it is not shown to beat; best rate first.

        Not all are in every round, and rounds differ: a rate is that of the baseline
        times what they differ by where both were. What is too noisy to say hides
        nothing that is shown to beat the baseline.

        Args:
            among: Only these variants; empty for all.
        """
        ranked = sorted(
            (t for t in self.timings if not among or t.variant in among),
            key=self._rate_in_common,
            reverse=True,
        )
        if not ranked:
            return ()
        best, *rivals = [t for t in ranked if self._beats(t)] or ranked
        for rival in rivals:
            compared = self.compare(rival.variant, best.variant)
            if compared and compared.verdict == "faster":
                best = rival
        ties = (t for t in ranked if t is not best and self._ties(best, t))
        return (best, *ties)

    def _beats(self, timing: Timing) -> bool:
        compared = self.compare(timing.variant, self.baseline)
        return compared is not None and compared.verdict == "faster"

    def _rate_in_common(self, timing: Timing) -> float:
        common = self.timing(self.baseline)
        compared = common and self.compare(timing.variant, self.baseline)
        if not common or not compared:
            return timing.rate
        return common.rate * compared.ratio

    def _ties(self, best: Timing, rival: Timing) -> bool:
        comparison = self.compare(best.variant, rival.variant)
        if comparison is None:
            return rival.high >= best.low
        return comparison.verdict != "faster"

    def by_round(self, variant: str) -> dict[int, tuple[Trial, Steady]]:
        """What counts of a variant in each round: a trial, and its steady part."""
        return self._completed.get(variant, {})

    @functools.cached_property
    def _completed(self) -> dict[str, dict[int, tuple[Trial, Steady]]]:
        completed: dict[str, dict[int, tuple[Trial, Steady]]] = {}
        waited = set[int]()
        for trial in self.trials:
            if trial.is_try or trial.outcome != "completed" or self._misses(trial):
                continue
            if (part := steady(trial)) is not None:
                completed.setdefault(trial.variant, {})[trial.round] = trial, part
                waited |= {trial.round} if part.waited else set()
        # Where the first tick of a turn is not like the others, nobody's counts.
        return {
            variant: {
                number: (trial, (number in waited and part.rested) or part)
                for number, (trial, part) in rounds.items()
            }
            for variant, rounds in completed.items()
        }

    def _misses(self, trial: Trial) -> bool:
        """Whether its turns in one process met no end of an epoch, as the baseline's.

        Its rate would have been spared what the others are charged with. What went on
        for longer than epochs last has no ends: that belongs to what was changed.
        """
        charged = trial.recurring or WHOLE in trial.notes
        if charged or trial.variant in self._with_own_pauses:
            return False
        total = sum(examples for _, examples in trial.ticks)
        lasting = (
            length
            for baseline_trial in self.trials_of(self.baseline)
            if baseline_trial.shares_process(trial)
            for length, _ in baseline_trial.recurring.values()
        )
        return any(total < _ENDLESS * length for length in lasting)

    @functools.cached_property
    def _with_own_pauses(self) -> set[str]:
        """The variants whose pauses are their own."""
        return {variant.name for variant in self.variants if variant.own_pauses}

    @functools.cached_property
    def _usual_pauses(self) -> Usual:
        trials = defaultdict[str, list[Trial]](list)
        for variant, rounds in self._completed.items():
            if variant not in self._with_own_pauses:
                trials[self._repeats(variant)] += [
                    trial for trial, _ in rounds.values()
                ]
        return Usual(trials, [v.name for v in self.variants if v.other_pauses])

    def _repeats(self, variant: str) -> str:
        return self.baseline if variant == CONTROL else variant

    def _steady_of(self, variant: str, *, singly: bool) -> dict[int, Steady]:
        """The steady part of each round, with its recurring pauses shared out."""

        def pauses_s(trial: Trial, part: Steady) -> float:
            if singly or not trial.recurring:
                return part.pauses_s
            usual = self._usual_pauses
            return usual.usual_s(self._repeats(variant), trial, part.example_s)

        return {
            number: part.with_pauses(pauses_s(trial, part))
            for number, (trial, part) in self.by_round(variant).items()
        }

    @functools.cached_property
    def _steady(self) -> dict[str, dict[int, Steady]]:
        return {
            name: self._steady_of(name, singly=name in self._with_own_pauses)
            for name in self._completed
        }

    @functools.cached_property
    def _compared(self) -> tuple[Rounds, ...]:
        pairs = ((v.name, v.against) for v in self.variants if v.against)
        rounds = (self._rounds(a, b) for a, b in pairs if a != b)
        return tuple(r for r in rounds if r is not None)

    @functools.cached_property
    def _all_rounds(self) -> tuple[Rounds, ...]:
        """The rounds of all comparisons, the control's among them.

        How much rounds vary whose pauses count one by one says nothing of the others.
        """
        control = self._rounds(CONTROL, self.baseline)
        usual = (r for r in self._compared if r.variant not in self._with_own_pauses)
        return (*usual, *([control] if control else []))

    @functools.cached_property
    def _usual(self) -> Spread:
        """How much a round's log ratio usually varies in this run."""
        return statistics.usual(Spread.from_notes(self.notes), self._all_rounds)

    @property
    def variances(self) -> list[Variance]:
        """How much its rounds varied: what the machine's file keeps of it."""
        return statistics.variances(self._all_rounds)

    def _rounds(self, variant: str, baseline: str) -> Rounds | None:
        singly = not self._with_own_pauses.isdisjoint((variant, baseline))
        steadies = self._steady_of(variant, singly=singly)
        references = self._steady_of(baseline, singly=singly)
        common = sorted(steadies.keys() & references.keys())
        if not common:
            return None
        one_process = all(
            self._trial(variant, r).shares_process(self._trial(baseline, r))
            for r in common
        )
        sides = (variant, baseline, steadies), (baseline, variant, references)
        errors, baseline_errors = (
            self._pauses_errors(*side, common, singly=singly) for side in sides
        )
        return statistics.rounds(
            variant,
            baseline,
            [(steadies[r], references[r]) for r in common],
            # What is not known of usual pauses is so in all rounds.
            shared=sum(
                (errors.get(key, 0.0) - baseline_errors.get(key, 0.0)) ** 2
                for key in {*errors, *baseline_errors}
            ),
            one_process=one_process,
            # What turns in one process differ by, the turns themselves tell.
            alike=variant == CONTROL and baseline == self.baseline and not one_process,
        )

    def _trial(self, variant: str, number: int) -> Trial:
        return self._completed[variant][number][0]

    def _pauses_errors(
        self,
        variant: str,
        baseline: str,
        steadies: dict[int, Steady],
        common: Sequence[int],
        *,
        singly: bool,
    ) -> dict[str, float]:
        """Errors of the log rate, by source: what is not known of usual pauses."""
        trials = [self._trial(variant, number) for number in common]
        trial = next((trial for trial in trials if trial.recurring), None)
        like = trial or self._trial(baseline, common[0])
        if not like.recurring:
            return {}
        name, usual = self._repeats(variant if trial else baseline), self._usual_pauses
        if trial and not singly:
            errors = usual.errors_s(name, trial)
        else:
            # Those of its trials count one by one, or came between two of its ticks.
            examples = sum(float(steadies[number].examples.sum()) for number in common)
            errors = {variant: usual.by_chance_s(name, like, trials, examples)}
        rate = sum(steady.rate for steady in steadies.values()) / len(steadies)
        return {key: error * rate for key, error in errors.items()}


# When an expensive first call pays back.
#
# A variant that traces or compiles starts later and then works faster. It has paid
# back where the two lines "first call + examples x seconds per example" cross. Both the
# extra of the first call and the saving are known from a few rounds only, so the
# interval is that of a ratio of two means, after Fieller (1954): it has no upper end
# where the saving could be next to nothing.
Paying = Literal["pays back", "at once", "never", "not shown", "one round"]


@dataclass(frozen=True, kw_only=True)
class PayBack:
    """When a variant has caught up with another that started earlier.

    Attributes:
        paying: ``"pays back"`` after ``examples``; ``"at once"``, because its first
            call costs no more; ``"never"``, because its steps are slower; ``"not
            shown"`` where the steps are not shown to differ, or when it is ahead;
            ``"one round"`` where they are, and only one round has timed both.
        examples: After how many; 0.0 for at once, None for the others.
        low: Lower end of the 95 % interval of ``examples``; ``high`` is the upper end,
            None where it has none.
    """

    paying: Paying
    examples: float | None = None
    low: float = 0.0
    high: float | None = None

    def steps(self, batch: float, unit: str = "steps") -> str:
        """``examples`` in batches, with its interval: ``"26 steps (12 to 36)"``.

        Where that is wide or has no end, the least is told.
        """
        if self.examples is None:
            return ""
        low = _whole_steps(self.low / batch)
        if self.high is None or not units.is_known(self.low, self.high):
            # How soon at best is known, whatever the upper end is.
            return f"at least {low} {unit}"
        ends = f"{low} to {_whole_steps(self.high / batch)}"
        return f"{_whole_steps(self.examples / batch)} {unit} ({ends})"


def line(trial: Trial, steady: Steady) -> tuple[float, float]:
    """Seconds of a trial's first call beyond its work, and of each example."""
    # The first call did some work, too, and all of that is in its examples.
    first = next(examples for _, examples in trial.ticks if examples)
    example_s = 1 / steady.rate
    return steady.first_call_s - first * example_s, example_s


def pay_back(measured: Measurement, variant: str, baseline: str) -> PayBack | None:
    """Say after how many examples a variant has caught up; None where unknown."""
    compared = measured.compare(variant, baseline)
    if compared is None:
        return None
    late, early = (measured.by_round(name) for name in (variant, baseline))
    common = sorted(late.keys() & early.keys())
    lines = ([line(*trials[n]) for n in common] for trials in (late, early))
    late_lines, early_lines = map(np.array, lines)
    extra, longer = (late_lines - early_lines).T
    saved = -longer
    if compared.verdict != "faster" or len(common) < 2 or saved.mean() <= 0:
        paying: Paying = "never" if compared.verdict == "slower" else "not shown"
        if compared.verdict == "faster" and len(common) == 1:
            paying = "one round"
        return PayBack(paying=paying)
    middle = float(extra.mean() / saved.mean())
    low, high = _fieller(extra, saved)
    if middle <= 0 and high != 0:
        # Its first call may be shorter, or longer.
        return PayBack(paying="not shown", high=high)
    return PayBack(
        paying="pays back" if middle > 0 else "at once",
        examples=max(middle, 0.0),
        low=low,
        high=high,
    )


def _fieller(
    extra: NDArray[np.float64], saved: NDArray[np.float64]
) -> tuple[float, float | None]:
    """The 95 % interval of ``mean(extra) / mean(saved)``, where it is not negative."""
    count, spread = len(extra), np.cov(extra, saved)
    reach = student(count - 1) ** 2 / count
    # All n with a n^2 - 2 b n + c <= 0: extra - n saved might be nothing there.
    a = saved.mean() ** 2 - reach * spread[1, 1]
    b = saved.mean() * extra.mean() - reach * spread[0, 1]
    c = extra.mean() ** 2 - reach * spread[0, 0]
    root = np.sqrt(max(b**2 - a * c, 0.0))
    if a > 0:
        return max(0.0, float((b - root) / a)), max(0.0, float((b + root) / a))
    if c <= 0 or a == 0:
        return 0.0, None
    return float(c / (b + root)), None


def _whole_steps(steps: float) -> str:
    return units.significant(math.ceil(steps), 2)
