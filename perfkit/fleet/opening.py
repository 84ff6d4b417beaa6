"""Open a fleet: what is asked, and of whom."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import running
from perfkit.errors import BadParameterError
from perfkit.experiments import experiments
from perfkit.fleet.asking import Asking, Keeper
from perfkit.fleet.outcome import Task, tensorflow_here
from perfkit.fleet.showing import display_here
from perfkit.fleet.supervising import Here

if TYPE_CHECKING:
    from distributed import Client
    from rich.console import Console

    from perfkit.experiments.base import Experiment
    from perfkit.fleet.outcome import Gathered

# As `perfkit passport` has it.
_PASSPORT_S = 180.0


def run_task(
    experiment: Experiment, budget: float | None = None, seed: int | None = None
) -> Task:
    """Make the task of running an experiment.

    Raises:
        BadParameterError: The other machines cannot have that experiment, or the
            budget or the seed is none.
    """
    if experiments().get(experiment.name) is not type(experiment):
        raise BadParameterError(
            f"{experiment.name!r} is an experiment of this session; a fleet runs those "
            "that lie in perfkit/experiments/ on every machine."
        )
    running.check_seed(seed)
    return Task(
        what="run",
        experiment=experiment.name,
        parameters=experiment.parameters,
        budget=_seconds(budget, running.default_budget()),
        seed=seed,
        tensorflow=tensorflow_here(),
    )


def passport_task(budget: float | None = None) -> Task:
    """Make the task of recording a machine.

    Raises:
        BadParameterError: The budget is none.
    """
    usual = running.default_budget(_PASSPORT_S)
    seconds = _seconds(budget, usual)
    return Task(what="passport", budget=seconds, tensorflow=tensorflow_here())


def open_asking(
    task: Task,
    where: str | Client | None = None,
    *,
    folder: str | Path | None = None,
    each: str = "host",
    tls: tuple[str, str, str] | None = None,
) -> Asking:
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
    keeper = Keeper(Path(folder).expanduser() if folder is not None else None)
    if where is None:
        return Asking(Here(), task, keeper)
    from perfkit.fleet.cluster import Cluster, connect

    # Connecting is part of what it may take.
    ours, since = isinstance(where, str), time.monotonic()
    client = connect(where, tls) if isinstance(where, str) else where
    try:
        cluster = Cluster(client, each=each, ours=ours)
    except BaseException:
        if ours:
            client.close(timeout=1)
        raise
    try:
        return Asking(cluster, task, keeper, since=since)
    except BaseException:
        cluster.close()
        raise


def watch(asking: Asking, console: Console | None = None) -> Gathered:
    """Run a fleet to its end and draw it; an interrupt is Stop."""
    with (
        running.interrupt_is_stop() as asked,
        display_here(console) as display,
        closing(asking.events()) as events,
    ):
        for rows in events:
            if asked.is_set():
                asking.stop()
            display.show(rows)
    return asking.gathered()


def tls_files(
    authority: str | None, certificate: str | None, key: str | None
) -> tuple[str, str, str] | None:
    """The three files together; None where none is given.

    Raises:
        BadParameterError: Some are given and others not, or one is not there.
    """
    given = [authority, certificate, key]
    if not any(given):
        return None
    files = [file for file in given if file]
    if len(files) < len(given):
        raise BadParameterError(
            "TLS takes --tls-ca-file, --tls-cert and --tls-key together."
        )
    for file in files:
        if not Path(file).is_file():
            raise BadParameterError(f"There is no file {file!r}.")
    return (files[0], files[1], files[2])


def _seconds(given: Any, usual: float) -> float:
    return usual if given is None else running.seconds("budget", given)
