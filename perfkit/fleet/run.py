"""One question, asked of every member of a fleet at once; those of a host take turns.

Nobody is waited for longer than the budget and half a minute, and whoever dies, hangs
or falls silent is an outcome with a sentence, while the others go on.
"""

import collections
import dataclasses
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import runs, units
from perfkit.errors import BadParameterError, MissingPartError, installing
from perfkit.experiments import experiments
from perfkit.experiments.base import Experiment
from perfkit.findings.text import plain
from perfkit.fleet.members import SILENT_S, Gathered, How, Member, drawn_on
from perfkit.fleet.process import Task, measure, tensorflow_here
from perfkit.passports.passport import BUDGET_S

if TYPE_CHECKING:
    from distributed import Client
    from rich.console import Console

    from perfkit.fleet.cluster import Cluster

# Beyond the budget: to connect, to start, to prepare, to come home. Of half a minute it
# leaves what closing takes.
SLACK_S = 25.0
# Of a turn, what starting takes at least, and coming home.
_STARTING_S, _COMING_HOME_S = 8.0, 5.0
# After Stop, what came home by then is all.
_STOPPING_S = 8.0
_CLOSING_S = 10.0
_SLICE_S = 0.25
_LEAST_S = 1.0

# What a member does, the bytes that it sent, or how it ended and why in a sentence.
News = dict[str, Any] | bytes | tuple[How, str]
Tell = Callable[[News], None]


class Here:
    """This machine as the only member."""

    def __init__(self) -> None:
        self.members = (Member(key="here", host="here", name="this machine"),)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, member: Member, task: Task, tell: Tell) -> None:
        """Let it do a task, in a thread that looks after it."""
        self._thread = threading.Thread(target=self._do, args=(task, tell), daemon=True)
        self._thread.start()

    def end(self, member: Member | None = None) -> None:
        """Let it end with what it has."""
        self._over.set()

    def close(self) -> None:
        """End it, and wait until it has ended."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_CLOSING_S)

    def _do(self, task: Task, tell: Tell) -> None:
        try:
            told = dataclasses.asdict(task)
            tell(measure(told, tell, lambda: not self._over.is_set()))
        except OSError as error:
            tell(("failed", f"The system refused: {plain(str(error))}."))


class FleetRun:
    """A run of a fleet that can be watched and stopped.

    Args:
        fleet: Who is asked.
        task: What; its budget is for all members of a host together.
        folder: Where what comes home is saved; None for one by the name of its kind.
        clock: Gives seconds, as ``sleep`` waits so many.
        since: When the time began to run; None for now.

    Attributes:
        members: How each stands.

    Raises:
        BadParameterError: The budget leaves too little to each member of a host.
    """

    def __init__(
        self,
        fleet: "Here | Cluster",
        task: Task,
        folder: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        since: float | None = None,
    ) -> None:
        self._fleet, self._task, self._folder = fleet, task, folder
        self._clock, self._sleep = clock, sleep
        self._zero = clock() if since is None else since
        self._now = 0.0
        self._stop = threading.Event()
        self._stopped_at: float | None = None
        self._news: collections.deque[tuple[Member, News]] = collections.deque()
        self._hosts: dict[str, list[Member]] = {}
        for member in fleet.members:
            turns = self._hosts.setdefault(member.host, [])
            member.turn = len(turns)
            turns.append(member)
        for turns in self._hosts.values():
            share_of(task.budget, len(turns))
        self.members = [member for turns in self._hosts.values() for member in turns]

    def stop(self) -> None:
        """End it and keep what comes home; callable from any thread."""
        self._stop.set()

    def events(self) -> Generator[list[Member]]:
        """Run, and give the members four times a second until all have ended."""
        try:
            while not all(member.how for member in self.members):
                self._now = self._clock() - self._zero
                if self._stop.is_set() and self._stopped_at is None:
                    self._stopped_at = self._now
                    self._fleet.end()
                for turns in self._hosts.values():
                    self._begin_turn([m for m in turns if not m.how], len(turns))
                self._sleep(_SLICE_S)
                self._now = self._clock() - self._zero
                while self._news:
                    self._hear(*self._news.popleft())
                for member in self.members:
                    if member.running:
                        self._end_if_over(member)
                        member.mark(self.members, self._now)
                yield self.members
        finally:
            self._fleet.close()

    def gathered(self) -> Gathered:
        """What came home by now."""
        return Gathered(
            asked=self._task.experiment or "passport",
            outcomes=tuple(member for member in self.members if member.how),
            seconds=self._now,
            stopped=self._stop.is_set(),
        )

    def _begin_turn(self, rest: list[Member], turns: int) -> None:
        """Let the next of these begin, of a host with so many, if it is its turn."""
        if not rest or rest[0].began is not None:
            return
        member = rest[0]
        if self._stopped_at is not None:
            member.end("stopped", "It was stopped before its turn.", self._now)
            return
        length = (self._task.budget + SLACK_S - self._now) / len(rest)
        member.began, member.until = self._now, self._now + length
        member.doing = "starting"
        member.task = dataclasses.replace(
            self._task,
            budget=share_of(self._task.budget, turns),
            seconds=max(_LEAST_S, length - _COMING_HOME_S),
            label=f"machine {self.members.index(member) + 1}",
        )
        self._fleet.begin(
            member, member.task, lambda news: self._news.append((member, news))
        )

    def _hear(self, member: Member, news: News) -> None:
        if not member.running:
            return
        member.heard = self._now
        if isinstance(news, bytes):
            member.receive(news, self._task, self._folder, self._now)
        elif isinstance(news, tuple):
            member.end(*news, self._now)
        else:
            # Its last word is how it ended, without a share.
            share = news.get("share", member.share)
            known = isinstance(share, float)
            member.share = min(1.0, max(0.0, share)) if known else 0.0
            member.doing = plain(str(news.get("doing", ""))) or member.doing
            member.left = plain(str(news.get("left", "")))
        if member.how:
            # Else a worker that is started anew by its address would be asked again.
            self._fleet.end(member)

    def _end_if_over(self, member: Member) -> None:
        how: How = "timed out"
        if self._stopped_at is not None and self._now - self._stopped_at > _STOPPING_S:
            how, said = "stopped", "Nothing came home after Stop."
        elif self._now < member.until:
            return
        elif member.heard is None:
            said = (
                "It did not begin: its worker is busy with other work, or stands "
                "still; look at the dashboard of the cluster."
            )
        elif (silent := self._now - member.heard) > SILENT_S:
            how = "cut off"
            said = (
                f"Nothing was heard of it for {units.seconds(round(silent))}, last at "
                f"{units.percent(member.share)} of its run: its network is cut, or the "
                "machine stands still."
            )
        else:
            said = f"It did not end in time; the last that it told: {member.doing}."
        member.end(how, said, self._now)
        self._fleet.end(member)


def share_of(budget: float, turns: int) -> float:
    """The seconds that each member of a host measures, where ``turns`` share a budget.

    Raises:
        BadParameterError: They are too few.
    """
    share = min(budget / turns, (budget + SLACK_S) / turns - _STARTING_S)
    if share < _LEAST_S:
        least = max(turns * _LEAST_S, turns * (_LEAST_S + _STARTING_S) - SLACK_S)
        raise BadParameterError(
            f"A budget of {units.seconds(budget)} is too short for a host on which "
            f"{turns} workers take turns; give {units.seconds(least)} or more."
        )
    return share


def make_task(
    experiment: Experiment | None,
    budget: float | None = None,
    seed: int | None = None,
) -> Task:
    """Make the task of running an experiment or, without one, of recording a machine.

    Raises:
        BadParameterError: The other machines cannot have that experiment, or the
            budget or the seed is none.
    """
    if experiment and experiments().get(experiment.name) is not type(experiment):
        raise BadParameterError(
            f"{experiment.name!r} is an experiment of this session; a fleet runs those "
            "that lie in perfkit/experiments/ on every machine."
        )
    runs.check_seed(seed)
    if budget is None:
        # Who asks does not know whether the machines have GPUs.
        budget = runs.default_budget(runs.USUAL_S if experiment else BUDGET_S)
    return Task(
        experiment=experiment.name if experiment else "",
        parameters=experiment.parameters if experiment else {},
        budget=runs.seconds("budget", budget),
        seed=seed,
        tensorflow=tensorflow_here(),
    )


def open_run(
    task: Task,
    where: "str | Client | None" = None,
    *,
    folder: str | Path | None = None,
    each: str = "host",
    tls: tuple[str | None, ...] = (),
) -> FleetRun:
    """Make the run of a fleet, not yet begun; refuse what cannot succeed.

    Args:
        task: What is asked.
        where: A scheduler's address, or a client that is connected to one. None for
            this machine alone, which needs no Dask.
        folder: Where what comes home is saved.
        each: ``"host"``, or ``"worker"`` where each worker is asked.
        tls: The files of the authority's certificate, one's own and its key.

    Raises:
        BadParameterError: A value that is not accepted.
        MissingPartError: Dask is not installed.
        RunError: No cluster answers there.
    """
    files = [file for file in tls if file]
    if files and len(files) < len(tls):
        raise BadParameterError(
            "TLS takes --tls-ca-file, --tls-cert and --tls-key together."
        )
    for file in files:
        if not Path(file).is_file():
            raise BadParameterError(f"There is no file {file!r}.")
    home = runs.home_of(folder)
    if where is None:
        return FleetRun(Here(), task, home)
    # Connecting is part of what it may take.
    since = time.monotonic()
    try:
        from perfkit.fleet.cluster import Cluster
    except ModuleNotFoundError as error:
        raise MissingPartError(
            "A cluster is asked through Dask, which is not installed in this "
            f"environment; install it with `{installing('distributed')}`."
        ) from error
    cluster = Cluster(where, each, files)
    try:
        return FleetRun(cluster, task, home, since=since)
    except BaseException:
        cluster.close()
        raise


def watch(run: FleetRun, console: "Console") -> Gathered:
    """Run a fleet to its end and draw it; an interrupt is Stop."""
    with (
        runs.interrupt_is_stop() as asked,
        drawn_on(console) as draw,
        closing(run.events()) as events,
    ):
        for members in events:
            if asked.is_set():
                run.stop()
            draw(members)
    return run.gathered()
