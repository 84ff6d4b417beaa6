"""Places where trials run: an interpreter, its variables, its cores, a launcher each.

What this process is itself needs no more than its own launcher. Every other place gets
a process of its own, which has that interpreter and those variables from its start:
``python -m perfkit.engine.host NUMBER LENT``. Requests come over the connection of that
number, and what trials tell goes back over it; once it is closed, the process ends with
all it started. Nothing is installed there: what the other environment lacks of perfkit
it is lent, by a folder of links on its path.
"""

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from multiprocessing import Pipe, connection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cloudpickle

from perfkit.engine.launcher import Message, Running, Started, launcher
from perfkit.engine.trial import Limits, Outcome
from perfkit.errors import BadParameterError, MissingPartError, RunError, remedy
from perfkit.machine import environment

# What a trial imports besides Keras; those that need their parts in C fit one Python.
_LENT = {"cloudpickle": False, "markupsafe": False, "psutil": True, "greenlet": True}
_PROBE = """
import importlib.util, json, sys
names = sys.argv[1:]
found = {n: importlib.util.find_spec(n) is not None for n in names}
print(json.dumps({"python": sys.version_info[:3], "path": sys.path, "found": found}))
"""
_NAMES = environment.BACKENDS | {"keras": "Keras", "tf_keras": "tf_keras"}
_PROBE_S, _START_S, _END_S = 60.0, 60.0, 5.0
_OLDEST = (3, 11)
# How what is no interpreter fails to say what it is.
_NO_PYTHON = (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError)


@dataclass(frozen=True)
class Place:
    """Where trials run, as far as it is another than this process.

    Attributes:
        python: The interpreter; "" for this one.
        variables: Of the environment, set before TensorFlow is loaded.
        cores: Numbers of the cores it may use; empty for all.
    """

    python: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    cores: tuple[int, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """All variables that it has."""
        return os.environ | dict(self.variables)


@dataclass(frozen=True)
class Environment:
    """What an interpreter is.

    Attributes:
        python: Its version.
        versions: Of the packages that matter, by name.
        lacks: What it has to be lent.
        backend: What its Keras trains on, as ``environment.trains_on`` has it.
    """

    python: str
    versions: dict[str, str] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()
    backend: str = "tensorflow"


def environment_of(place: Place) -> Environment:
    """Ask an interpreter what it is; nothing of TensorFlow is imported.

    Keras takes TensorFlow where nobody chose a backend. An environment without it
    trains on JAX or PyTorch, whichever it has.

    Raises:
        BadParameterError: It cannot be run, or is too old.
        MissingPartError: It lacks what a training needs.
    """
    name = place.python or sys.executable
    try:
        ran = subprocess.run(
            [name, "-c", _PROBE, *_NAMES, *_LENT],
            env=place.environment,
            capture_output=True,
            timeout=_PROBE_S,
            check=True,
            text=True,
            cwd="/",
        )
        answer = json.loads(ran.stdout.splitlines()[-1])
        python = tuple(answer["python"])
    except _NO_PYTHON as error:
        raise BadParameterError(
            f"{name} cannot be run as Python ({_in_short(error)}): give the python of "
            "an environment, such as other-env/bin/python."
        ) from None
    if python[:2] < _OLDEST:
        raise BadParameterError(
            f"{name} is Python {'.'.join(map(str, python))}, but perfkit needs "
            f"{'.'.join(map(str, _OLDEST))} or later."
        )
    versions = environment.versions([folder for folder in answer["path"] if folder])
    backend = _backend_of(place, versions, answer["found"])
    # TensorFlow brings Keras; tf_keras is installed beside it.
    needed = [backend, "keras"] if backend in ("jax", "torch") else ["tensorflow"]
    if environment.is_legacy(place.environment):
        needed.append("tf_keras")
    for part in needed:
        if not answer["found"].get(part):
            todo = "give another environment"
            if not place.python:
                todo = "install it there, or race an environment that has it: --python"
            raise MissingPartError(f"{name} has no {_NAMES[part]}: {todo}.")
    lacks = tuple(part for part in _LENT if not answer["found"][part])
    if python[:2] != sys.version_info[:2] and any(_LENT[part] for part in lacks):
        missing = " and ".join(part for part in lacks if _LENT[part])
        raise MissingPartError(
            f"{name} lacks {missing}, and this Python's copy does not fit it: "
            f"`{name} -m pip install {missing.replace(' and', '')}` installs it."
        )
    return Environment(".".join(map(str, python)), versions, lacks, backend)


def _backend_of(
    place: Place, versions: Mapping[str, str], modules: Mapping[str, bool]
) -> str:
    """Return what Keras trains on there, of the modules that were found."""
    variables = place.environment
    backend = environment.trains_on(variables, versions)
    if backend != "tensorflow" or variables.get("KERAS_BACKEND"):
        return backend
    return next((name for name in environment.BACKENDS if modules.get(name)), backend)


def _in_short(error: Exception) -> str:
    match error:
        case subprocess.CalledProcessError():
            lines = str(error.stderr or "").strip().splitlines()
            return lines[-1][:200] if lines else f"it ended with {error.returncode}"
        case subprocess.TimeoutExpired():
            return f"it did not answer within {_PROBE_S:.0f} s"
        case OSError():
            return error.strerror or type(error).__name__
        case _:
            return "it does not answer like Python"


@contextlib.contextmanager
def _on(cores: Collection[int]) -> Iterator[None]:
    """Let this thread use these cores alone, and so what it starts, from its start on.

    Set from outside, they would come too late for what it has started itself by then.
    """
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Host:
    """The launcher of a place that is another than this process.

    Attributes:
        loaded_s: Seconds that loading it took; None before that.
    """

    def __init__(self, place: Place, environment: Environment) -> None:
        self.loaded_s: float | None = None
        self._place = place
        self._number = 0
        self._inbox: dict[int, deque[Message]] = defaultdict(deque)
        self._began = time.perf_counter()
        self._lent, self._backend = "", environment.backend
        try:
            if place.python:
                self._lent = _lend(environment.lacks)
            self._connection, theirs = Pipe()
            with _on(place.cores):
                self._process = self._started(theirs.fileno())
        except OSError as error:
            shutil.rmtree(self._lent, ignore_errors=True)
            raise RunError(
                f"Trials could not be started with {place.python or 'another process'} "
                f"({error.strerror or error}): {remedy(error)}, then race again."
            ) from error
        theirs.close()

    def _started(self, number: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                self._place.python or sys.executable,
                # Without the folder that it is started in.
                *("-P", "-m", "perfkit.engine.host", str(number)),
                *([self._lent] if self._lent else []),
            ],
            env=self._variables(),
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # An interrupt means the run, and what it started is ended by it.
            start_new_session=True,
        )

    def _variables(self) -> dict[str, str]:
        variables = self._place.environment
        if self._backend in ("jax", "torch"):
            variables["KERAS_BACKEND"] = self._backend
        if self._lent:
            path = (variables.get("PYTHONPATH", ""), self._lent)
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        return variables

    def wait(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds; True once trials start at once.

        Raises:
            RunError: It ended before it was ready.
        """
        if self.loaded_s is not None:
            return True
        if not self._connection.poll(timeout):
            return False
        try:
            _, problem = self._connection.recv()
        except (EOFError, OSError):
            problem = self._last_words()
        if problem:
            raise RunError(problem)
        self.loaded_s = time.perf_counter() - self._began
        return True

    def start(
        self, work: Callable[[], Iterator[Any]], seed: int, limits: Limits
    ) -> "Hosted":
        """Start a trial of ``work``, which makes the variant's generator.

        Raises:
            RunError: The launcher there is gone, or can start none.
        """
        self._number += 1
        number, payload = self._number, cloudpickle.dumps(work)
        try:
            self._connection.send(("start", number, payload, seed, limits))
            began = time.perf_counter()
            while not self._inbox[number]:
                if time.perf_counter() - began > _START_S:
                    raise EOFError
                self.receive(_START_S)
        except (EOFError, OSError):
            raise RunError(self._last_words()) from None
        kind, *fields = self._inbox[number].popleft()
        if kind != "started":
            raise RunError(fields[1])
        pid, started_ns = fields
        return Hosted(self, number, pid, started_ns, limits.silence)

    def receive(self, timeout: float) -> None:
        """Take in what is told within ``timeout`` seconds.

        Raises:
            EOFError: The launcher there is gone.
        """
        while self._connection.poll(timeout):
            kind, number, *fields = self._connection.recv()
            self._inbox[number].append((kind, *fields))
            timeout = 0.0

    def messages(self, number: int, timeout: float) -> list[Message]:
        """What a trial told, and last how it ended, within ``timeout`` seconds."""
        inbox = self._inbox[number]
        try:
            if not inbox:
                self.receive(timeout)
        except (EOFError, OSError):
            inbox.append(("ended", "crashed", "lost the process that started it", ""))
        messages = list(inbox)
        inbox.clear()
        return messages

    def ask(self, *request: Any) -> None:
        """Ask for something that has no answer of its own."""
        with contextlib.suppress(OSError):
            self._connection.send(request)

    def close(self) -> None:
        """End it with all it started."""
        self._connection.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()
        # Where it was killed it could not tidy up itself.
        if self._lent:
            shutil.rmtree(self._lent, ignore_errors=True)

    def _last_words(self) -> str:
        self._process.kill()
        output = self._process.stderr.read() if self._process.stderr else b""
        lines = output.decode(errors="replace").strip().splitlines()
        last = f" ({lines[-1].strip()[:300]})" if lines else ""
        name = self._place.python or "another process"
        return (
            f"Trials could not be started with {name}{last}. Try "
            f"`{self._place.python or 'python'} -c 'import keras'` with the same "
            "variables."
        )


class Hosted(Started):
    """A trial that another process started for this one."""

    def __init__(
        self, host: Host, number: int, pid: int, started_ns: int, silence: float
    ) -> None:
        super().__init__(pid, started_ns, silence)
        self._host, self._number = host, number

    def _hear(self, timeout: float) -> list[Message]:
        messages: list[Message] = []
        for kind, *fields in self._host.messages(self._number, timeout):
            self._heard = time.perf_counter()
            if kind == "told":
                messages += fields[0]
            else:
                self.outcome, self.message, self.tail = fields
        return messages

    def kill(self, outcome: Outcome, message: str) -> None:
        """End the trial and all it started, now; it ends with this outcome."""
        if self.outcome is not None:
            return
        self._host.ask("kill", self._number, outcome, message)
        began = time.perf_counter()
        while self.outcome is None:
            self._hear(_END_S)
            if time.perf_counter() - began > _END_S and self.outcome is None:
                self.outcome, self.message = outcome, message


class Launchers:
    """Starts each trial in its place; its work says which, as ``work.place``.

    One launcher of this process does for all where they share one place.
    """

    def __init__(
        self, places: set[Place], environments: Mapping[Place, Environment]
    ) -> None:
        self._is_shared = len(places) == 1
        self.hosts: dict[Place, Host] = {}
        if self._is_shared:
            launcher().load_with(dict(next(iter(places)).variables))
            return
        self.hosts = {place: Host(place, environments[place]) for place in places}

    def wait(self, timeout: float) -> bool:
        """Wait until all can start trials; False if that takes longer."""
        if self._is_shared:
            return launcher().wait(timeout)
        share = timeout / len(self.hosts)
        return all([host.wait(share) for host in self.hosts.values()])

    def start(self, work: Any, seed: int, limits: Limits) -> Started:
        """Start a trial where its work belongs."""
        starter = launcher() if self._is_shared else self.hosts[work.place]
        return starter.start(work, seed, limits)

    def close(self) -> None:
        """End all that was started for it."""
        for host in self.hosts.values():
            host.close()
        if self._is_shared:
            launcher().load_with({})


def _lend(lacks: tuple[str, ...]) -> str:
    """Make a folder with links to perfkit and to what an environment lacks of it."""
    folder = Path(tempfile.mkdtemp(prefix="perfkit-lent-"))
    for name in ("perfkit", *lacks):
        spec = importlib.util.find_spec(name)
        if spec and spec.origin:
            origin = Path(spec.origin)
            source = origin.parent if origin.name == "__init__.py" else origin
            (folder / source.name).symlink_to(source)
    return str(folder)


_SLICE_S = 0.05
_FOR_EVER = float("inf")


def serve(asking: Connection) -> None:
    """Start trials and pass on what they tell, until nobody asks any more."""
    running: dict[int, Running] = {}
    try:
        _warm(asking)
        while True:
            heard_on = [pipe for trial in running.values() for pipe in trial.heard_on]
            connection.wait([asking, *heard_on])
            _tell(asking, running)
            while asking.poll():
                _do(asking, running, asking.recv())
    except (EOFError, ConnectionError):
        # Whoever asked is gone, in whatever way.
        pass
    finally:
        for trial in running.values():
            trial.kill("stopped", "nobody listens any more")


def _warm(asking: Connection) -> None:
    try:
        while not launcher().wait(_SLICE_S):
            if asking.poll():
                asking.recv()
    except RunError as error:
        asking.send(("ready", str(error)))
        raise EOFError from None
    asking.send(("ready", ""))


def _do(asking: Connection, running: dict[int, Running], task: tuple[Any, ...]) -> None:
    kind, number, *fields = task
    if kind == "start":
        payload, seed, limits = fields
        # Whoever asked knows when a trial stands still, and so what is silence.
        limits = replace(limits, silence=_FOR_EVER)
        try:
            trial = running[number] = launcher().start_pickled(payload, seed, limits)
        except RunError as error:
            asking.send(("ended", number, "crashed", str(error), ""))
            return
        asking.send(("started", number, trial.pid, trial.started_ns))
    elif number in running:
        running[number].kill(*fields)
        _tell(asking, running)


def _tell(asking: Connection, running: dict[int, Running]) -> None:
    for number, trial in list(running.items()):
        if messages := trial.poll(0):
            asking.send(("told", number, messages))
        if trial.outcome is not None:
            asking.send(("ended", number, trial.outcome, trial.message, trial.tail))
            del running[number]


if __name__ == "__main__":
    serve(connection.Connection(int(sys.argv[1])))
    # What it was lent goes with it, even where whoever lent it was killed.
    for folder in sys.argv[2:]:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
