"""Diagnose a training of one's own: the verb, and the run that can be watched."""

import functools
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import __version__
from perfkit.engine import spread
from perfkit.engine.alone import Alone
from perfkit.engine.launcher import Message, launcher
from perfkit.engine.live import Opening
from perfkit.engine.measurement import Measurement
from perfkit.engine.plan import Event, Finished, Plan, Preparing, TrialEnded
from perfkit.engine.trial import Limits, Yielded
from perfkit.errors import RunError
from perfkit.findings.diagnosis import ARGUMENTS, ASKED, TOGETHER, Diagnosis, Together
from perfkit.findings.load import with_next
from perfkit.findings.record import MEASURED, Verdict
from perfkit.findings.standing import LIMITS
from perfkit.findings.text import as_budget
from perfkit.machine.collect import machine
from perfkit.machine.environment import check_trains
from perfkit.questions.replay import recordings_of, replay_from
from perfkit.questions.runs import (
    check_seed,
    default_budget,
    home_of,
    seconds,
    watch_here,
)
from perfkit.questions.session import Keeper, Measurer, check_budget
from perfkit.training.account.causes import swapped
from perfkit.training.account.collect import USUAL_S
from perfkit.training.account.session import AccountSession
from perfkit.training.diagnose import gains, look, rounds, settings, verdict
from perfkit.training.diagnose.causes import applicable
from perfkit.training.diagnose.causes.lines import hot
from perfkit.training.diagnose.change import Change
from perfkit.training.diagnose.edits import locate
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.maker import assigned, digest, maker, name_of, tell_edits
from perfkit.training.diagnose.rounds import AS_GIVEN, Rounds
from perfkit.training.diagnose.script import Script, WholeScript

if TYPE_CHECKING:
    from perfkit.findings.account import Account

# Whoever gives no budget gives this one: what the training needs, at most ten minutes.
AUTO = "auto"
_SLICE_S = 0.1
# Below this budget no account is taken; it takes a share of larger ones.
_LEAST_ACCOUNTED_S, _ACCOUNT_SHARE = 45.0, 5.0
_LONGEST_LOOK_S = 300.0
# Where little is left of a small budget, a look and a round still tell something.
_LEAST_LOOK_S, _LEAST_ROUND_S = 10.0, 7.0
# The share of a budget by which that may overrun it.
_LATE = 0.1
# What comes after the last round: the record is worked out and written.
_CLOSING_S = 0.8
LEAST_BUDGET_S = 10.0


def diagnose(
    make_training: Callable[[], Any] | str | Path,
    /,
    *,
    budget: float | str | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    arguments: Sequence[str] = (),
    fit: int = 0,
    guess: str = "",
    source: bool = True,
    replay: str | Path | None = None,
) -> Diagnosis:
    """Change one thing at a time in your training, and rank how much each brings.

    ``make_training`` returns a compiled Keras model, its data and optionally a dict of
    arguments for ``fit``. Each trial calls it again in a fresh process; your code stays
    unchanged. A kernel interrupt or Ctrl-C is Stop: the diagnosis then holds the
    results so far.

    Args:
        make_training: The function, ``"FILE.py:make_training"``, or a script as it is,
            ``"train.py"``. A script runs up to its training call, which perfkit takes
            over. Its writes stay apart from your files, and it reaches no network.
        budget: Seconds in all, or ``"auto"``: as many as the training needs, at most
            ten minutes. Auto is the default unless PERFKIT_BUDGET says otherwise.
        seed: Where random order and random numbers start; None draws one.
        folder: Where it is saved; None for ``perfkit-findings`` here.
        arguments: The script's own, as on its command line.
        fit: Which call of ``fit`` to take in a script, from 1; 0 for the longest.
        guess: What you expect, such as ``"3x"``; the finding keeps it and the chart
            draws it.
        source: Whether the saved file holds your lines that take time.
        replay: A recorded diagnosis of exactly this code to show instead of a run; see
            ``perfkit.run``.

    Raises:
        BadParameterError: ``make_training`` is not a training, or the budget is too
            small.
        MissingPartError: There is no such recording, or no Keras 3 on TensorFlow.
        RunError: The training cannot be run; the sentence says why, and a note holds
            the traceback of your own code.
    """
    training = maker(make_training, arguments, fit)
    session = open_diagnosis(
        training, budget, seed, folder, replay=replay, source=source, guess=guess
    )
    return watch_here(session)


def open_diagnosis(
    maker: Callable[[], Any],
    budget: float | str | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    replay: str | Path | None = None,
    source: bool = True,
    guess: str = "",
) -> "DiagnosisSession | Replay":
    """Make a diagnosis, not yet begun, or its replay; refuse what cannot succeed."""
    check_seed(seed)
    home = home_of(folder)
    if where := replay_from(replay):
        recordings = recordings_of(name_of(maker), digest(maker), where, Diagnosis)
        # The newest whole one.
        newest = max(recordings, key=lambda d: (not d.finding.ended_early, d.recorded))
        return Replay(newest, home, guess)
    return DiagnosisSession(
        maker,
        budget=in_seconds(budget),
        seed=seed,
        folder=home,
        source=source,
        guess=guess,
    )


def in_seconds(budget: float | str | None) -> float | None:
    """Understand the budget of a run of one's own training; None for ``"auto"``.

    Who makes every run small still gets one that holds something. What is no time is
    refused.
    """
    if budget not in (None, AUTO):
        return seconds("budget", budget or 0)
    default = default_budget(0.0)
    return max(LEAST_BUDGET_S, default) if default else None


class DiagnosisSession(Measurer[Diagnosis]):
    """A diagnosis that can be watched and stopped, and that saves what it has.

    Its budget is in seconds, None for what the training needs. One that holds no
    diagnosis is refused, and so is an environment without Keras 3 on TensorFlow.
    """

    def __init__(
        self,
        maker: Callable[[], Any],
        *,
        budget: float | None = None,
        seed: int | None = None,
        folder: Path | None = None,
        source: bool = True,
        guess: str = "",
    ) -> None:
        if budget is not None:
            check_budget(budget, LEAST_BUDGET_S)
        super().__init__(rounds.LONGEST_S if budget is None else budget, seed, folder)
        self._maker, self._code = maker, digest(maker)
        self._name = name_of(self._maker)
        self._requested_s = budget
        self._longest = 0.0
        self._opening: Opening | None = None
        self._source, self._guess = source, guess
        self._facts = Facts()
        self._changes: tuple[Change, ...] = ()
        self._untested: dict[str, str] = {}
        self._rounds: Rounds | None = None
        self._account: Account | None = None
        self._variables = assigned(self._maker)
        check_trains(os.environ | self._variables)
        if not self._variables:
            launcher().warm()

    @property
    def variants(self) -> list[str]:
        """What may be measured, by name; the training as given first."""
        return [AS_GIVEN, *(change.name for change in self._changes), TOGETHER]

    @property
    def _remaining_s(self) -> float:
        return self._began + self._budget - time.perf_counter()

    def _alone(self) -> Alone:
        return Alone("a diagnosis", self._requested_s or 0.0)

    def _measure(self) -> Iterator[Event]:
        # Stopped while it waited, it may not touch the launcher: others measure.
        if self._stopped.is_set():
            return
        try:
            self._began = time.perf_counter()
            launcher().load_with(self._variables)
            self._machine = machine()
            yield from self._take_account()
            if isinstance(self._maker, WholeScript):
                # Its steps are not found: it is accounted for and nothing is swapped.
                self._keep_account("perfkit finds no steps in it")
                return
            try:
                yield from self._look()
                if self._facts.late:
                    yield Preparing(settings.late_in_words(self._facts.late))
                if not self._stopped.is_set():
                    yield from self._compare()
            except RunError as error:
                if self._account is None or self.finding:
                    raise
                self._keep_account(str(error))
            if not self.finding and self._stopped.is_set():
                self._keep_account("the run was stopped before the first turn ended")
        finally:
            launcher().load_with({})

    def _take_account(self) -> Iterator[Event]:
        """Look where the seconds go first, where the budget has room for that."""
        is_whole = isinstance(self._maker, WholeScript)
        budget = self._requested_s or rounds.LONGEST_S
        if budget < _LEAST_ACCOUNTED_S and not is_whole:
            return
        seconds = min(USUAL_S, budget / _ACCOUNT_SHARE)
        runner = self._maker
        if isinstance(runner, Script) and not is_whole:
            runner = WholeScript(runner.path, runner.arguments, folder=runner.folder)
        account = AccountSession(
            runner, budget=seconds, limit=budget / 3, source=self._source, saves=False
        )
        try:
            for event in account.look():
                if self._stopped.is_set():
                    account.stop()
                if isinstance(event, Preparing):
                    yield event
        except RunError:
            # What it raises is told by the look, which can do more about it.
            if is_whole:
                raise
        self._account = account.finding

    def _keep_account(self, reason: str) -> None:
        """Save a diagnosis that holds an account and nothing that was swapped."""
        self._untested = {verdict.NO_CHANGES: reason.rstrip(".")}
        nothing = Measurement(variants=(rounds.baseline(),), baseline=AS_GIVEN)
        stopped = self._stopped.is_set()
        if self._account is not None:
            self._save(self._diagnosis(nothing, stopped=stopped, unfinished=False))

    def _look(self) -> Iterator[Event]:
        remedy = f"diagnose again with {as_budget(2 * self._budget, self._name)}"
        while not self._stopped.is_set() and not launcher().wait(_SLICE_S):
            if self._remaining_s <= 0:
                raise RunError(
                    f"Loading TensorFlow took the whole budget of {self._budget:.0f} "
                    f"s: {remedy}."
                )
            yield Preparing("Loading TensorFlow, once")
        if self._stopped.is_set():
            return
        longest = min(_LONGEST_LOOK_S, self._remaining_s)
        running = launcher().start(
            functools.partial(
                look.look,
                self._maker,
                self._requested_s,
                began=self._began,
                screens=True,
                suspects=swapped(self._account) if self._account else frozenset(),
                lines=hot(self._account) if self._account else (),
            ),
            self._seed,
            Limits(silence=max(_LEAST_LOOK_S, longest)),
        )
        messages: list[Message] = []
        notes, is_screening = running.notes, False
        try:
            while not (running.outcome or is_screening or self._stopped.is_set()):
                messages += running.poll(_SLICE_S)
                is_screening = look.SPENT in notes
                yield Preparing(notes.get(look.UNCONTAINED, "Looking at the training"))
        finally:
            if not is_screening or self._stopped.is_set():
                running.kill("stopped", "was stopped")
        if self._stopped.is_set():
            return
        self._facts = look.facts_in(running, remedy)
        self._changes, self._untested = applicable(self._facts)
        if is_screening:
            spent_s = float(notes[look.SPENT])
            plan = rounds.planned(self._facts, spent_s, self._requested_s)
            self._budget, turns_s, self._longest = plan
            # A turn that takes long to compile takes no time of the rounds.
            until_s = self._began + spent_s + turns_s + rounds.last_turn_s(self._facts)
            after = next(i for i, m in enumerate(messages) if m[1] == look.SPENT)
            self._opening = Opening(
                running,
                tuple(messages[after + 1 :]),
                rounds.to_variants(self._changes),
                until_s - running.started_ns / 1e9,
            )
        elif self._requested_s is None:
            self._budget = rounds.without_turns_s(self._facts)

    def _compare(self) -> Iterator[Event]:
        min_s = min(_LEAST_ROUND_S, self._remaining_s + _LATE * self._budget)
        remaining_s = max(1.0, min_s, self._remaining_s) - _CLOSING_S
        if self._opening:
            # The process that looked has run since before.
            remaining_s += time.perf_counter() - self._opening.running.started_ns / 1e9
        longest = remaining_s + max(0.0, self._longest - self._budget)
        self._rounds = Rounds(
            self._changes,
            self._work,
            longest,
            self._facts,
            screened=self._opening is not None,
            usual_s=remaining_s,
        )
        plan = Plan(
            variants=(rounds.baseline(self._work(())),),
            baseline=AS_GIVEN,
            budget=longest,
            seed=self._seed,
            in_turns=not self._machine.gpus,
            overrun=1.0,
            choose=self._rounds,
            usual=remaining_s,
            opening=self._opening,
            spread=spread.of_this_machine(),
            # Where not even a round fits, one change is compared with what is known.
            twice=rounds.round_s(self._facts) <= longest,
            ready_s=self._facts.ready_s,
        )
        yield from self._run(plan, launcher())

    def _work(self, subset: Sequence[Change]) -> Callable[[], Iterator[Yielded]]:
        return functools.partial(look.trial, self._maker, self._facts, tuple(subset))

    def _keep(self, event: TrialEnded | Finished) -> None:
        measured, finding = event.measurement, self.finding
        finished = isinstance(event, Finished)
        stopped = isinstance(event, Finished) and event.stopped
        # A run that was over before any trial was is told as one that was too short.
        nothing = not measured.trials and (stopped or not finished)
        if nothing or (finding and not finished and finding.trials == measured.trials):
            return
        if self._requested_s is None:
            # What was open after what was planned was measured on.
            spent_s = time.perf_counter() - self._began
            self._budget = float(max(self._budget, round(spent_s)))
        self._save(self._diagnosis(measured, stopped=stopped, unfinished=not finished))

    def _diagnosis(
        self, measured: Measurement, *, stopped: bool, unfinished: bool
    ) -> Diagnosis:
        step = gains.step_of(measured, self._facts)
        inferences = gains.inferred(self._changes, step, measured, self._facts)
        together = self._together(measured)
        at_once = together.changes if together else ()
        proved = gains.causes(self._changes, measured, inferences, at_once)
        causes = gains.rank((*proved, *inferences))
        limits = [change.name for change in self._changes if change.ceiling]
        open_still = rounds.unmeasured(self._changes, measured)
        if "eager" in self._untested:
            # What only its author can change may help most.
            open_still = ("tf.function", *open_still)
        # What a script was asked with; its arguments themselves may be secrets.
        fit = getattr(self._maker, "fit", 0)
        options = {"fit": fit} if fit else {}
        if getattr(self._maker, "arguments", ()):
            options[ARGUMENTS] = True
        diagnosis = Diagnosis(
            training=self._name,
            recorded=self._recorded,
            perfkit=__version__,
            machine=self._machine,
            step=step,
            verdict=Verdict(headline=""),
            healthy=gains.healthy(self._changes, causes, measured),
            causes=causes,
            together=together,
            ceiling=gains.ceiling(measured),
            untested=self._untested,
            unmeasured=open_still,
            aside=gains.set_aside(self._changes, measured, at_once),
            left_out={c.name: c.leaves_out for c in self._changes if c.leaves_out},
            facts=asdict(self._facts) | {ASKED: options},
            outcome=verdict.outcome(measured),
            account=self._account,
            code=self._code,
            notes=measured.notes | {LIMITS: limits},
            budget_s=self._budget,
            seed=self._seed,
            guess=self._guess,
            stopped=stopped,
            unfinished=unfinished,
            **{name: getattr(measured, name) for name in MEASURED},
        )
        warnings = tuple(tell_edits(self._maker, self._code))
        if not warnings:
            diagnosis = locate(diagnosis, self._maker, self._changes)
        said = verdict.verdict_of(diagnosis)
        said = with_next(said, diagnosis.finding, diagnosis.training)
        said = replace(said, warnings=(*warnings, *said.warnings))
        return replace(diagnosis, verdict=said)

    def _together(self, measured: Measurement) -> Together | None:
        speedup = gains.measured_gain(TOGETHER, measured)
        if speedup is None or self._rounds is None:
            return None
        names = tuple(change.name for change in self._rounds.together)
        return Together(changes=names, speedup=speedup)


class Replay(Keeper[Diagnosis]):
    """A recorded diagnosis in place of one that measures, watched as that is.

    It stands in for a training whose code is the same, word for word: what another one
    is slowed by, or this one after a change, it does not know. A copy that says of
    itself that it is a recording, with the reader's ``guess``, goes to ``folder``.
    """

    def __init__(
        self, recorded: Diagnosis, folder: Path | None = None, guess: str = ""
    ) -> None:
        super().__init__(folder)
        self.variants: list[str] = []
        self.budget = recorded.budget_s
        self._shown = replace(recorded.as_recording(), guess=guess)

    def events(self) -> Generator[Event]:
        """Show the recording, and tell what it is."""
        self._save(self._shown)
        yield Preparing(self._shown.finding.stamp)
