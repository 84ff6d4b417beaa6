"""Places where trials run: an interpreter, its variables, its cores, a launcher each.

What this process is itself needs no more than its own launcher. Every other place gets
a process of its own, which has that interpreter and those variables from its start:
``python -m perfkit.engine.host NUMBER CORES LENT``. Questions come over the connection
of that number, and each has an answer; once it is closed, the process ends with all it
started. Nothing is installed there: what the other environment lacks of perfkit
it is lent, by a folder of links on its path.
"""

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from perfkit.engine.launcher import Message, Running, Started, launcher, pickled
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
# An answer is waited for a little longer than it may take.
_LATE_S = 0.05
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
    backend = environment.trains_on(place.environment, versions)
    if backend == "tensorflow" and not place.environment.get("KERAS_BACKEND"):
        found = (name for name in environment.BACKENDS if answer["found"].get(name))
        backend = next(found, backend)
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


class Host:
    """The launcher of a place that is another than this process.

    It answers one question after another.
    """

    def __init__(self, place: Place, environment: Environment) -> None:
        self._is_loaded = False
        self._place = place
        # Whose questions have no answer yet, and whose answers were not heard, by the
        # trial's process; 0 for none.
        self._asked = deque[int]()
        self._answers = defaultdict[int, list[Any]](list)
        self._lent, self._backend = "", environment.backend
        try:
            if place.python:
                self._lent = _lend(environment.lacks)
            self._connection, theirs = Pipe()
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
                *(",".join(map(str, self._place.cores)), self._lent),
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
        if self._is_loaded:
            return True
        answers = self._ask(timeout, "wait", timeout)
        if problem := next((text for text in answers if isinstance(text, str)), ""):
            raise RunError(problem)
        self._is_loaded = any(answers)
        return self._is_loaded

    def start(
        self, work: Callable[[], Iterator[Any]], seed: int, limits: Limits
    ) -> "Hosted":
        """Start a trial of ``work``, which makes the variant's generator.

        Raises:
            RunError: The launcher there is gone, or can start none.
        """
        answers = self._ask(_START_S, "start", pickled(work), seed, limits)
        if not answers or isinstance(answers[-1], str):
            raise RunError(answers[-1] if answers else self._last_words())
        pid, started_ns = answers[-1]
        return Hosted(self, pid, started_ns, limits.silence)

    def _ask(self, timeout: float, *question: Any) -> list[Any]:
        try:
            return self.ask(0, timeout, *question)
        except (EOFError, OSError):
            raise RunError(self._last_words()) from None

    def ask(self, pid: int, timeout: float, *question: Any) -> list[Any]:
        """Ask about a trial; give the answers about it that come within ``timeout``.

        What it tells is asked for again once that was answered.

        Raises:
            EOFError: The launcher there is gone.
        """
        if pid not in self._asked or question[0] in ("start", "kill"):
            self._connection.send(question)
            self._asked.append(pid)
        end = time.perf_counter() + timeout + _LATE_S
        while pid in self._asked:
            if not self._connection.poll(max(0.0, end - time.perf_counter())):
                break
            self._answers[self._asked.popleft()].append(self._connection.recv())
        return self._answers.pop(pid, [])

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

    def __init__(self, host: Host, pid: int, started_ns: int, silence: float) -> None:
        super().__init__(pid, started_ns, silence)
        self._host = host

    def _hear(self, timeout: float) -> list[Message]:
        return self._ask(timeout, "poll", self.pid, timeout)

    def _ask(self, timeout: float, *question: Any) -> list[Message]:
        messages: list[Message] = []
        try:
            answers = self._host.ask(self.pid, timeout, *question)
        except (EOFError, OSError):
            answers = [([], "crashed", "lost the process that started it", "")]
        for told, *ended in answers:
            messages += told
            self.outcome, self.message, self.tail = ended
        if messages:
            self._heard = time.perf_counter()
        return messages

    def kill(self, outcome: Outcome, message: str) -> None:
        """End the trial and all it started, now; it ends with this outcome."""
        if self.outcome is None:
            self._ask(_END_S, "kill", self.pid, outcome, message)
        if self.outcome is None:
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


def serve(asking: Connection) -> None:
    """Start trials and answer what is asked about them, until nobody asks any more."""
    trials: dict[int, Running] = {}
    try:
        while True:
            asking.send(_answer(trials, *asking.recv()))
    except (EOFError, ConnectionError):
        # Whoever asked is gone, in whatever way.
        pass
    finally:
        for trial in trials.values():
            trial.kill("stopped", "nobody listens any more")


def _answer(trials: dict[int, Running], verb: str, *fields: Any) -> Any:
    try:
        if verb == "wait":
            return launcher().wait(*fields)
        if verb == "start":
            payload, seed, limits = fields
            # Whoever asked knows when a trial stands still, and so what is silence.
            trial = launcher().start(payload, seed, replace(limits, silence=math.inf))
            trials[trial.pid] = trial
            return trial.pid, trial.started_ns
    except RunError as error:
        return str(error)
    pid, *details = fields
    trial = trials[pid]
    if verb == "kill":
        trial.kill(*details)
    # One that is over tells nothing more.
    messages = trial.poll(*details) if verb == "poll" else []
    return messages, trial.outcome, trial.message, trial.tail


if __name__ == "__main__":
    _, _number, _cores, _lent_folder = sys.argv
    if _cores:
        # Before anything is started, which has the same ones.
        os.sched_setaffinity(0, map(int, _cores.split(",")))
    serve(Connection(int(_number)))
    # It goes even where whoever lent it was killed.
    shutil.rmtree(_lent_folder, ignore_errors=True)
    os._exit(0)
