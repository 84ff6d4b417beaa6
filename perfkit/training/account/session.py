"""Where the seconds of a script go: ``perfkit.lines("train.py")``.

An account, from running the script to the saved record.
"""

import contextlib
import datetime
import functools
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfkit import __version__, units
from perfkit.engine.alone import Alone
from perfkit.engine.launcher import launcher
from perfkit.engine.plan import Event, Preparing, Progress
from perfkit.engine.processes import in_process
from perfkit.engine.trial import Limits
from perfkit.errors import RunError
from perfkit.findings.account import Account, Line
from perfkit.findings.account_report import verdict
from perfkit.findings.record import Verdict
from perfkit.machine.collect import machine
from perfkit.machine.environment import anonymize, check_trains
from perfkit.questions.replay import recordings_of, replay_from
from perfkit.questions.runs import home_of, seconds, watch_here
from perfkit.questions.session import Keeper
from perfkit.training.account import causes, collect
from perfkit.training.account.charge import CHARGED, charge
from perfkit.training.account.memory import growth_of
from perfkit.training.diagnose import failure
from perfkit.training.diagnose.maker import (
    OTHER_CELL,
    LineNames,
    assigned,
    digest,
    maker,
    name_of,
)
from perfkit.training.diagnose.script import whole_script

_LEAST_S = 5.0
_SLICE_S = 0.1
_SILENCE_S = 60.0
# What charging takes at most.
_CHARGING_S = 120.0
_PREFIX = "perfkit-account-"
# Lines of the source around a line that takes something.
_AROUND, _MOST_TEXT = 2, 4000
_SHOWN = 0.01
# What an account holds as it was charged.
_AS_TOLD = (
    *("wall_s", "once_s", "elsewhere_s", "looking_s", "traced_s", "sampling_s"),
    *("samples", "updates", "ended", "untraced", "uncontained", "stages"),
    "pass_ends_s",
)


def lines(
    training: Callable[[], Any] | str | Path,
    /,
    *,
    budget: float | None = None,
    folder: str | Path | None = None,
    arguments: tuple[str, ...] = (),
    source: bool = True,
    replay: str | Path | None = None,
) -> Account:
    """Show where the time of a script goes, line by line, without an A/B test.

    The script runs unchanged to its end or for the budget; its writes stay apart from
    your files. A kernel interrupt or Ctrl-C is Stop: the account then holds the results
    so far.

    Args:
        training: A script, ``"train.py"``, a notebook, or a function that makes a
            training, as ``perfkit.diagnose`` takes it.
        budget: Seconds to watch it, 30 by default; up to four times as long if it has
            hardly trained by then.
        folder: Where the account is saved; None for ``perfkit-findings`` here.
        arguments: The script's own, as on its command line.
        source: Whether lines of your code go into the account.
        replay: A recorded account of exactly this code to show instead of a run.

    Raises:
        BadParameterError: ``training`` is not a training, or the budget is not a time.
        MissingPartError: There is no Keras 3 on TensorFlow, or no such recording.
        RunError: It cannot be run; the sentence says why.
    """
    session = open_lines(training, budget, folder, arguments, source, replay)
    return session if isinstance(session, Account) else watch_here(session)


def open_lines(
    training: Any,
    budget: float | None = None,
    folder: str | Path | None = None,
    arguments: tuple[str, ...] = (),
    source: bool = True,
    replay: str | Path | None = None,
) -> "AccountSession | Account":
    """Make an account's session, not yet begun, or find the recording in its place."""
    make = maker(training, arguments, read=whole_script)
    if where := replay_from(replay):
        accounts = recordings_of(name_of(make), digest(make), where, Account)
        return max(accounts, key=lambda a: a.recorded).as_recording()
    spent_s = collect.USUAL_S
    if budget is not None:
        spent_s = max(_LEAST_S, seconds("budget", budget))
    return AccountSession(make, budget=spent_s, folder=home_of(folder), source=source)


class AccountSession(Keeper[Account]):
    """An account that can be watched and stopped, and that saves what it has.

    Args:
        training: What ``diagnose.maker.maker`` has made of what was given.
        budget: Seconds to look at it.
        limit: Seconds where it has hardly trained by then; None for four times as many.
        folder: As of ``Keeper``.
        source: Whether lines of the source go into it.
        saves: Whether it is saved at all; a diagnosis holds its own.
    """

    def __init__(
        self,
        training: Callable[[], Any],
        *,
        budget: float = collect.USUAL_S,
        limit: float | None = None,
        folder: Path | None = None,
        source: bool = True,
        saves: bool = True,
    ) -> None:
        super().__init__(folder)
        self._maker, self.budget, self._limit = training, budget, limit
        self._source, self._saves = source, saves
        self._variables = assigned(training)
        check_trains(os.environ | self._variables)
        if not self._variables:
            launcher().warm()

    def events(self) -> Generator[Event]:
        """Run the script, look at it, and tell what happens.

        Raises:
            RunError: It cannot be run; a note holds what its own code raised.
        """
        alone = Alone("an account", self.budget)
        with contextlib.ExitStack() as stack:
            stack.callback(alone.let_go)
            for message in alone.wait(self._stopped):
                yield Preparing(message, waiting=True)
            if not self._stopped.is_set():
                stack.callback(launcher().load_with, {})
                launcher().load_with(self._variables)
                yield from self.look()

    def look(self) -> Iterator[Event]:
        """Do the same for a caller that already holds the right to measure."""
        recorded = datetime.datetime.now().astimezone().isoformat("T", "seconds")
        while not self._stopped.is_set() and not launcher().wait(_SLICE_S):
            yield Preparing("Loading TensorFlow, once")
        if self._stopped.is_set():
            return
        with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
            notes = yield from self._collect(folder)
            yield Preparing("Charging every second to a line")
            ended = in_process(functools.partial(charge, folder), _CHARGING_S)
        if CHARGED not in ended.notes:
            why = f"that {ended.message or 'took too long'}"
            raise RunError(
                f"perfkit could not read its samples of the training: {why}."
            )
        charges: dict[str, Any] = ended.notes[CHARGED]
        charges["uncontained"] = notes.get(collect.UNCONTAINED, "")
        self.finding = self._account(charges, recorded)
        if self._saves:
            self._save(self.finding)

    def _collect(self, folder: str) -> Generator[Event, None, dict[str, Any]]:
        arguments = self._maker, self.budget, folder, self._limit
        work = functools.partial(collect.collect, *arguments)
        running = launcher().start(work, 0, Limits(silence=_SILENCE_S))
        notes, stop = running.notes, Path(folder, collect.STOP)
        try:
            while running.outcome is None and collect.SEEN not in notes:
                running.poll(_SLICE_S)
                if self._stopped.is_set():
                    # The process first writes down what it has seen.
                    stop.touch()
                progress = notes.get(collect.PROGRESS, {})
                yield Progress(float(progress.get("spent_s", 0.0)), self.budget)
                guarded = notes.get(collect.UNCONTAINED) if not progress else None
                yield Preparing(guarded or _doing(progress))
        finally:
            running.kill("stopped", "was stopped")
        if collect.SEEN not in notes:
            raise failure.run_error(running, "give it a larger budget")
        return notes

    def _account(self, charges: dict[str, Any], recorded: str) -> Account:
        names = LineNames(self._maker, with_text=self._source)
        lines = tuple(_as_seen(line, names) for line in charges["lines"])
        index = {place: number for number, place in enumerate(charges["places"])}
        account = Account(
            training=name_of(self._maker),
            recorded=recorded,
            perfkit=__version__,
            machine=machine(),
            verdict=Verdict(headline=""),
            error=anonymize(charges["error"]) if charges["error"] else "",
            lines=lines,
            epochs_s=tuple(end - begin for begin, end in charges["epochs"] if end),
            growth=growth_of(charges, lines, index),
            code=digest(self._maker),
            stopped=self._stopped.is_set(),
            **{name: charges[name] for name in _AS_TOLD},
        )
        account = replace(account, tips=causes.tips(account, charges))
        if self._source:
            visible = (o for o in lines if account.share(o.total_s) >= _SHOWN)
            files = (names.of_cell, *(file for file, _ in index))
            account = replace(account, text=_around(visible, files, names))
        return replace(account, verdict=verdict(account))


def _doing(progress: dict[str, Any]) -> str:
    rows = progress.get("rows", ())[:3]
    parts = (f"{Path(file).name}:{n} {units.percent(share)}" for file, n, share in rows)
    return f"So far: {', '.join(parts)}" if rows else "Running the script as it is"


def _around(
    lines: Iterable[Line], files: Iterable[str], names: LineNames
) -> dict[str, dict[str, str]]:
    """Return the source around some lines, by file and cell, then by number."""
    paths = {names.locate(file, 1)[0]: file for file in files}
    # Several may have that name.
    paths.pop(OTHER_CELL, None)
    around: dict[str, dict[str, str]] = {}
    for line in (line for line in lines if line.file in paths):
        file = paths[line.file]
        start = (names.cells_of(file) or (1,))[line.cell - 1] if line.cell else 1
        texts = around.setdefault(f"{line.file}#{line.cell}", {})
        for number in range(max(1, line.line - _AROUND), line.line + _AROUND + 1):
            code = names.code(file, start + number - 1)
            if len(texts) < _MOST_TEXT and code.strip():
                texts[str(number)] = code[:200]
    return around


def _as_seen(line: Line, names: LineNames) -> Line:
    """A line as its reader knows it: by the name of its file, and with its code."""
    file, cell, number = names.locate(line.file, line.line)
    code = names.code(line.file, line.line).rstrip()[:200]
    return replace(line, file=file, cell=cell, line=number, code=code)
