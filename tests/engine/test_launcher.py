"""Real trials in real processes, forked by a launcher here or by that of a host."""

import errno
import itertools
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing import forkserver, spawn
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest

from perfkit.engine import launcher as measure_launcher
from perfkit.engine.host import Environment, Host, Place
from perfkit.engine.launcher import _OURS as OURS
from perfkit.engine.launcher import Launcher, Started, launcher
from perfkit.engine.live import LiveTrial
from perfkit.engine.trial import Limits
from perfkit.errors import BadParameterError, RunError
from tests.engine import trials, workloads
from tests.engine.scripted import Seconds

launcher_alone = pytest.mark.parametrize("start", ["launcher"], indirect=True)


@pytest.fixture(scope="module", params=["launcher", "host"])
def start(request):
    """Start trials; whatever a test leaves running is ended."""
    by, started = launcher(), []
    if request.param == "host":
        by = Host(Place(variables=(trials.PATH,)), Environment("3.11.7"))
    trials.ready(by)

    def start(work, *, seed=1, **limits):
        started.append(by.start(work, seed, Limits(**limits)))
        return started[-1]

    yield start
    for running in started:
        running.kill("stopped", "the test is over")
    if request.param == "host":
        by.close()


def test_what_cannot_travel_is_refused_in_a_sentence(start):
    lock = threading.Lock()
    with pytest.raises(BadParameterError, match="lock' object"):
        start(lambda: iter([lock]))


def test_a_trial_tells_ticks_notes_and_pauses_in_order(start):
    running = start(workloads.notes_and_pauses)
    messages = trials.to_the_end(running)
    times, counts, _, labels = zip(*trials.ticks_of(messages), strict=True)
    assert counts == (0, 3, 0, 4)
    assert labels == ("set-up", "", "end of epoch", "")
    assert ("note", "plan", {"stages": [1, 2]}) in messages
    # One clock for all: a trial starts before it tells anything.
    assert [running.started_ns, *times] == sorted({running.started_ns, *times})
    assert (running.outcome, running.message) == ("completed", "")
    # Functions of a notebook's cell work.
    cell = {"offset": 7}
    exec("def work():\n    yield 0\n    yield offset", cell)
    ticks = trials.ticks_of(trials.to_the_end(start(cell["work"])))
    assert [examples for _, examples, *_ in ticks] == [0, 7]


@launcher_alone
def test_nobody_else_can_ask_the_launcher_for_a_process(start):
    trials.to_the_end(start(list))
    socket = Path(os.fsdecode(forkserver._forkserver._forkserver_address))
    # One without a file could be reached by every user.
    assert socket.is_socket()
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    for folder in (socket.parent, Path(launcher()._folder)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


NO_ROOM = OSError(errno.ENOSPC, "No space left on device")
WRONG = ValueError("the images are upside down\nand more")
ENDS = {
    "SIGSEGV": (workloads.segfault, "SIGSEGV"),
    "SIGKILL": (workloads.Ended(signal.SIGKILL), "SIGKILL"),
    "signal 40": (workloads.Ended(40), "signal 40"),
    "raises": (workloads.Raises(WRONG), "raised ValueError: the images are"),
    "full disk": (workloads.Raises(NO_ROOM), "raised OSError: [Errno 28] No space"),
    "prints": (workloads.prints_much, ""),
    "nothing": (list, ""),
}


@launcher_alone
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.fault(
    "trial", "SIGKILL, SIGSEGV", sees="The report names the signal. The run goes on."
)
@pytest.mark.fault(
    "trial", "full disk", sees="The report shows the error, and the run goes on."
)
def test_however_a_trial_ends_it_is_an_outcome(start, end):
    work, words = ENDS[end]
    running = start(work)
    trials.to_the_end(running)
    assert running.outcome == ("crashed" if words else "completed")
    assert words in running.message
    assert "\n" not in running.message
    assert running.tail.endswith("y\n" if end == "prints" else "")


@pytest.mark.fault(
    "trial", "memory limit", sees="The trial runs out of memory, and the run goes on."
)
def test_a_trial_past_its_memory_limit_is_out_of_memory(start):
    running = start(workloads.fills_memory, memory=300_000_000)
    trials.to_the_end(running)
    assert running.outcome == "out-of-memory"


@pytest.mark.parametrize("work", [workloads.hangs, workloads.never_ready])
def test_a_trial_without_a_sign_of_life_is_timed_out(start, work):
    running = start(work, silence=0.5)
    process = psutil.Process(running.pid)
    trials.to_the_end(running)
    assert running.outcome == "timed-out"
    assert trials.are_gone([process])


@launcher_alone
@pytest.mark.fault(
    "trial", "SIGSTOP", sees="The trial goes on, and no rate counts the pause."
)
def test_a_real_trial_that_was_stopped_shows_no_rate_of_that_time(start):
    running = start(workloads.count, silence=60)
    clock = time.perf_counter_ns
    live = LiveTrial("count", 1, running, zero_ns=clock(), clock=clock, seed=0)
    while len(live.costs) < 3:
        live.listen(0.1)
    os.kill(running.pid, signal.SIGSTOP)
    while not running.stood:
        live.listen(0.1)
    os.kill(running.pid, signal.SIGCONT)
    known = len(live.costs)
    while len(live.costs) < known + 3:
        live.listen(0.1)
    live.end()
    stood = next(iter(running.stood.items()))
    begin, end = ((at - running.started_ns) / 1e9 for at in stood)
    over = [
        examples
        for (before, _), (at, examples) in itertools.pairwise(live.record().ticks)
        if before < end and begin < at and at - before > 1
    ]
    assert over
    assert not any(over)


class Suspended(Started):
    """A trial whose news come when the test says, on a clock that the test moves."""

    def __init__(self, clock, silence=10.0):
        super().__init__(os.getpid(), 0, silence)
        self.clock, self.told = clock, []

    def _hear(self, timeout):
        told, self.told = self.told, []
        if told:
            self._heard = self.clock.perf_counter()
        return [("ticks", [(round(at * 1e9), 10, {}, "") for at in told])]

    def kill(self, outcome, message):
        self.outcome, self.message = outcome, message


@pytest.fixture
def clock(monkeypatch):
    """The launcher's clock, at ``now`` seconds."""
    clock = Seconds()
    monkeypatch.setattr(measure_launcher, "time", clock)
    return clock


HOUR = 3600.0
# When it is listened to after an hour, and which ticks are heard then. Before it there
# was one every tenth of a second for three seconds.
AFTER = {
    "all stood still": [(HOUR, [HOUR - 0.01])],
    "its tick ended first": [(HOUR, []), (HOUR + 0.01, [HOUR - 0.02])],
    "its tick ended last": [(HOUR, []), (HOUR + 0.2, [HOUR + 0.1])],
    "it went on until nobody listened": [(HOUR, [3.0, 3.1, 3.2, HOUR])],
}


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
@pytest.mark.fault("launcher", "SIGSTOP", sees="No rate counts the time of the pause.")
def test_time_in_which_nobody_listened_is_in_no_rate(clock, after):
    trial = Suspended(clock)
    live = LiveTrial(
        "v", 1, trial, zero_ns=0, clock=lambda: round(clock.now * 1e9), seed=0
    )
    every_tenth = [number / 10 for number in range(30)]
    later = [(HOUR + 1 + at, [HOUR + 1 + at]) for at in every_tenth]
    for at, ticks in [*((at, [at]) for at in every_tenth), *after, *later]:
        clock.now, trial.told = at, list(ticks)
        live.listen(0.025)
    live.end()
    spent = [
        (end - begin) / examples
        for (begin, _), (end, examples) in itertools.pairwise(live.record().ticks)
        if examples
    ]
    # An example took a hundredth, or a tenth in the second until the ticks went on.
    assert max(spent) < 0.12
    assert len(spent) >= 57


@pytest.mark.parametrize(
    ("stopped", "said"),
    [(False, "gave no sign of life for 10 s"), (True, "was suspended for")],
)
def test_who_stood_still_hears_the_silence_of_nobody(clock, monkeypatch, stopped, said):
    monkeypatch.setattr(measure_launcher, "_is_stopped", lambda pid: stopped)
    trial = Suspended(clock)
    trial.poll(0.1)
    clock.now += HOUR
    trial.poll(0.1)
    assert trial.outcome is None
    for _ in range(101):
        clock.now += 0.1
        trial.poll(0.1)
    assert trial.outcome == "timed-out"
    assert trial.message.startswith(said)


def test_a_frozen_trial_does_nothing_and_its_silence_is_none(start):
    running = start(workloads.count, silence=30.0)
    trials.until_ticks(running)
    running.freeze()
    process = psutil.Process(running.pid)
    while process.status() != psutil.STATUS_STOPPED:
        pass
    # What was on its way still comes, and then nothing more.
    while running.poll(0.2):
        pass
    assert running.outcome is None
    # As if all that were an hour ago.
    running._frozen -= 3600
    running._heard -= 3600
    running.resume()
    running.poll(0)
    trials.until_ticks(running)


def left_by(running):
    """The processes of a trial, once it has started one, and its file."""
    while "left" not in running.notes:
        running.poll(0.1)
    child, file = running.notes["left"]
    return [psutil.Process(running.pid), psutil.Process(child)], Path(file)


def test_kill_ends_the_trial_with_what_it_started_and_leaves_no_files(start):
    running = start(workloads.leaves_behind)
    both, file = left_by(running)
    assert file.exists()
    running.kill("stopped", "was stopped")
    assert (running.outcome, running.message) == ("stopped", "was stopped")
    assert trials.are_gone(both)
    assert not file.exists()


@launcher_alone
def test_a_trial_that_nobody_hears_any_more_ends_with_what_it_started(start):
    running = start(workloads.leaves_behind)
    both, _ = left_by(running)
    running._open.remove(running._messages)
    running._messages.close()
    assert trials.are_gone(both)


def test_every_trial_is_a_fresh_process_and_equal_seeds_give_equal_numbers(start):
    at_once = [start(workloads.what_it_sees, seed=seed) for seed in (1, 1, 2)]
    told = [trials.notes_of(running) for running in reversed(at_once)]
    for running, notes in zip(reversed(at_once), told, strict=True):
        assert notes["group"] == notes["pid"] == running.pid
    assert len({notes["pid"] for notes in told}) == 3
    other, *same = (notes["random"] for notes in told)
    assert same[0] == same[1] != other


def test_only_what_the_launcher_starts_is_spared_its_parents_script(monkeypatch):
    # In a notebook `%reset` leaves less than a script has.
    main = SimpleNamespace(__file__="there/train.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    Launcher()
    told = {name: spawn.get_preparation_data(name) for name in (OURS, "Process-1")}
    mains = {n: any("main" in key for key in kept) for n, kept in told.items()}
    assert mains == {OURS: False, "Process-1": True}


_PARENT = """
    by = {by}
    getattr(by, "warm", bool)()
    # The last of them stands still.
    for work in {works}:
        running = wait(by).start(getattr(workloads, work), 1, Limits())
        while not running.poll(0.1) and running.outcome is None:
            pass
    if {works}:
        running.freeze()
    print("ready", flush=True)
    time.sleep(3600)
"""


@pytest.mark.parametrize(
    ("by", "works"),
    [
        ("launcher()", ("count", "hangs", "leaves_behind", "count")),
        ("Host(Place(), Environment('3.11.7'))", ("hangs", "leaves_behind")),
        ("launcher()", ()),
    ],
    ids=["trials of all kinds", "of a host", "warming"],
)
@pytest.mark.fault("launcher", "kernel killed", sees="The launcher ends as well.")
@pytest.mark.fault("trial", "kernel killed", sees="The trial and its children end.")
@pytest.mark.fault("race", "kernel killed", sees="All processes of the race end.")
def test_nothing_outlives_a_parent_that_is_killed(by, works, tmp_path):
    code = _PARENT.format(by=by, works=works)
    name, path = trials.PATH
    if not works:
        # What is imported stands still, and would for ever.
        tmp_path.joinpath("keras.py").write_text("import time; time.sleep(3600)")
        path = f"{tmp_path}{os.pathsep}{trials.ROOT}"
    with trials.program(code, begins=subprocess.Popen, **{name: path}) as parent:
        try:
            assert parent.stdout.readline() == "ready\n"
            # A launcher starts in a thread, so it may not be there yet.
            while not (started := trials.family(parent.pid)):
                threading.Event().wait(0.01)
        finally:
            parent.send_signal(signal.SIGKILL)
    assert trials.are_gone(started)
    assert trials.are_gone(trials.family())


REFUSED = {
    errno.ENOSPC: "free some space or set TMPDIR to another folder",
    errno.EROFS: "set TMPDIR to another folder",
    errno.EMFILE: "allow more open files with `ulimit -n 4096`",
    errno.EAGAIN: "close other programs",
}


@pytest.mark.parametrize(("number", "todo"), REFUSED.items(), ids=errno.errorcode.get)
@pytest.mark.fault(
    "launcher",
    "full disk, read-only, open files, fork failure",
    sees="perfkit says what the system refused, and what to do before the next run.",
)
def test_what_is_refused_a_launcher_is_a_sentence(monkeypatch, tmp_path, number, todo):
    refused = Launcher()
    monkeypatch.setattr(refused, "_folder", str(tmp_path))
    refuse = Mock(side_effect=OSError(number, os.strerror(number)))
    monkeypatch.setattr(measure_launcher, "Running", refuse)
    monkeypatch.setattr(refused, "_start_server", refuse)
    with pytest.raises(RunError) as caught:
        refused.start(b"", 0, Limits())
    said = str(caught.value)
    assert said.startswith(f"No trial could be started ({os.strerror(number)}): ")
    assert said.endswith(", then run again.")
    assert todo in said
    with pytest.raises(RunError, match=re.escape(todo)):
        refused.wait(60)


def test_a_launcher_that_gets_no_thread_says_so(monkeypatch):
    refuse = Mock(side_effect=RuntimeError("can't start new thread"))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RunError, match=r"\(can't start new thread\): close other"):
        Launcher().warm()


_LOSES = """
    from multiprocessing import forkserver

    def started():
        running = wait().start(workloads.count, 1, Limits())
        while not running.poll(0.1):
            pass
        return running

    running = started()
    os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)
    trials.to_the_end(running)
    print(running.outcome, running.message)
    tries(launcher().start, workloads.count, 1, Limits())
    print(started().outcome)
"""


@pytest.mark.fault(
    "launcher", "SIGKILL", sees="perfkit says that it ended, and later starts another."
)
def test_a_launcher_that_is_lost_says_so_and_the_next_run_has_another(tmp_path):
    done = trials.program(_LOSES, TMPDIR=str(tmp_path))
    said = ["crashed lost the process that started it", measure_launcher._LOST, "None"]
    assert done.stdout.splitlines() == said, done.stderr
    assert trials.are_gone(trials.family())
    assert left_in(tmp_path) == []


def left_in(folder):
    return list(folder.glob("perfkit-launcher-*"))


@pytest.mark.fault("launcher", "memory limit", sees="perfkit shows TensorFlow's error.")
def test_memory_that_is_too_short_for_tensorflow_is_said(tmp_path):
    (tmp_path / "keras.py").write_text("raise MemoryError('too little')")
    mine = {"PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    said = trials.program("tries(wait)", **mine).stdout
    assert "ended before it was ready (MemoryError: too little)" in said
    assert "python -c 'import tensorflow'" in said


@pytest.mark.fault("launcher", "path", sees="perfkit asks for a short path in TMPDIR.")
def test_a_server_that_cannot_be_started_is_said(monkeypatch):
    refused = Launcher()
    long = OSError("AF_UNIX path too long")
    monkeypatch.setattr(refused, "_start_server", Mock(side_effect=long))
    with pytest.raises(RunError, match="set TMPDIR to another folder with a short"):
        refused.wait(60)


_LEAVES = """
    def leave():
        print(tempfile.mkstemp()[1])
        yield 1

    running = wait().start(leave, 0, Limits())
    trials.to_the_end(running)
    print(running.tail, flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "killed with all":
        os.killpg(0, signal.SIGKILL)
"""


@pytest.mark.fault("launcher", "path", sees="Trials start as in any other folder.")
@pytest.mark.fault(
    "launcher", "kernel killed", sees="The next launcher removes the files left behind."
)
def test_what_was_killed_with_its_launcher_is_removed_by_the_next():
    # A short name: a socket of the launcher has to have its place below it.
    with tempfile.TemporaryDirectory(prefix="ä 数") as folder:
        # What a trial leaves behind goes with the launcher.
        for end, left in (("killed", 0), ("killed with all", 1), ("over", 0)):
            done = trials.program(_LEAVES, end, TMPDIR=folder)
            assert f"{folder}/perfkit-launcher-" in done.stdout, done.stderr
            # The fork server ends a moment later, as nobody needs it.
            psutil.wait_procs(trials.family(), timeout=10)
            assert len(left_in(Path(folder))) == left


_LOADS = """
    def look():
        print(os.environ.get("TF_OF_A_FILE"), os.environ.get("TF_OF_THE_KERNEL"))
        yield 1

    def seen():
        running = wait().start(look, 0, Limits())
        trials.to_the_end(running)
        print(launcher()._folder, running.tail, flush=True)

    seen()
    launcher().load_with({"TF_OF_A_FILE": "0"})
    seen()
    os.environ["TF_OF_THE_KERNEL"] = "1"
    for _ in "ab":
        launcher().load_with({})
        seen()
"""


def test_tensorflow_is_loaded_anew_where_it_would_read_other_variables(tmp_path):
    done = trials.program(_LOADS, TMPDIR=str(tmp_path))
    said = filter(None, done.stdout.splitlines())
    folders, *seen = zip(*map(str.split, said), strict=True)
    assert seen == [("None", "0", "None", "None"), ("None", "None", "1", "1")]
    first, with_variables, anew, same = folders
    assert len({first, with_variables, anew}) == 3
    assert anew == same
    assert left_in(tmp_path) == []
