"""Real trials in real processes, each forked from one with TensorFlow loaded."""

import errno
import itertools
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from perfkit.errors import RunError
from perfkit.measure import launcher as measure_launcher
from perfkit.measure import worker
from perfkit.measure.launcher import Launcher, Started, launcher
from perfkit.measure.live import LiveTrial
from perfkit.measure.trial import Limits
from tests.measure import workloads


@pytest.fixture(scope="module")
def start():
    """Start trials; whatever a test leaves running is ended."""
    started = []
    while not launcher().wait(1):
        pass

    def start(work, *, seed=1, **limits):
        started.append(launcher().start(work, seed, Limits(**limits)))
        return started[-1]

    yield start
    for running in started:
        running.kill("stopped", "the test is over")


def to_the_end(running):
    messages = []
    while running.outcome is None:
        messages += running.poll(0.1)
    return messages


def until_ticks(running):
    while not any(message[0] == "ticks" for message in running.poll(0.1)):
        assert running.outcome is None, running.message


def test_a_trial_tells_ticks_notes_and_pauses_in_order(start):
    running = start(workloads.notes_and_pauses)
    messages = to_the_end(running)
    ticks = [tick for m in messages if m[0] == "ticks" for tick in m[1]]
    assert [(n, label) for _, n, _, label in ticks] == [
        (0, "set-up"),
        (3, ""),
        (0, "end of epoch"),
        (4, ""),
    ]
    assert ("note", "plan", {"stages": [1, 2]}) in messages
    times = [time for time, *_ in ticks]
    assert times == sorted(times)
    assert times[0] > running.started_ns
    assert (running.outcome, running.message) == ("completed", "")


def test_nobody_else_can_ask_the_launcher_for_a_process(start):
    to_the_end(start(workloads.nothing))
    socket = Path(os.fsdecode(forkserver._forkserver._forkserver_address))
    # One without a file could be reached by every user.
    assert socket.is_socket()
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    for folder in (socket.parent, Path(launcher()._folder)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_trial_has_tensorflow_without_importing_it(start):
    running = start(workloads.tensorflow)
    until_ticks(running)
    assert running.outcome is None


@pytest.mark.parametrize(
    ("work", "outcome", "words"),
    [
        (workloads.segfault, "crashed", "SIGSEGV"),
        (workloads.killed, "crashed", "SIGKILL"),
        (workloads.raises, "crashed", "raised ValueError: the images are upside down"),
        (
            workloads.fills_disk,
            "crashed",
            "raised OSError: [Errno 28] No space left",
        ),
        (workloads.prints_much, "completed", ""),
        (workloads.nothing, "completed", ""),
    ],
)
@pytest.mark.fault(
    "trial", "SIGKILL, SIGSEGV", sees="By which signal it ended; the run goes on."
)
@pytest.mark.fault("trial", "full disk", sees="What it raised; the run goes on.")
def test_however_a_trial_ends_it_is_an_outcome(start, work, outcome, words):
    running = start(work)
    to_the_end(running)
    assert running.outcome == outcome
    assert words in running.message
    assert "\n" not in running.message


@pytest.mark.fault(
    "trial", "memory limit", sees="The trial is an outcome of its own, out of memory."
)
def test_a_trial_past_its_memory_limit_is_out_of_memory(start):
    running = start(workloads.fills_memory, memory=300_000_000)
    to_the_end(running)
    assert running.outcome == "out-of-memory"


@pytest.mark.parametrize("work", [workloads.hangs, workloads.never_ready])
def test_a_trial_without_a_sign_of_life_is_timed_out(start, work):
    running = start(work, silence=0.5)
    to_the_end(running)
    assert running.outcome == "timed-out"
    assert not psutil.pid_exists(running.pid)


@pytest.mark.fault("trial", "SIGSTOP", sees="Nothing: it goes on, or has timed out.")
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
    trial = live.record()
    stood = next(iter(running.stood.items()))
    begin, end = ((at - running.started_ns) / 1e9 for at in stood)
    over = [
        examples
        for (before, _), (at, examples) in itertools.pairwise(trial.ticks)
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
    clock = SimpleNamespace(now=0.0)
    clock.perf_counter = lambda: clock.now
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
@pytest.mark.fault("launcher", "SIGSTOP", sees="Nothing: that time is in no rate.")
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


def test_who_stood_still_hears_the_silence_of_nobody(clock):
    trial = Suspended(clock)
    trial.poll(0.1)
    clock.now += HOUR
    trial.poll(0.1)
    assert trial.outcome is None
    for _ in range(101):
        clock.now += 0.1
        trial.poll(0.1)
    assert trial.outcome == "timed-out"
    assert trial.message == "gave no sign of life for 10 s and was ended"


def test_a_trial_that_stays_stopped_is_given_up_and_that_is_said(clock, monkeypatch):
    monkeypatch.setattr(measure_launcher, "_is_stopped", lambda pid: True)
    trial = Suspended(clock)
    while trial.outcome is None:
        clock.now += 0.1
        trial.poll(0.1)
    assert trial.message == "was stopped from outside for 10 s and was ended"


def test_standing_still_is_not_silence(start):
    running = start(workloads.count, silence=0.5)
    until_ticks(running)
    running.freeze()
    running._frozen -= 3600  # as if it had stood still for an hour
    running.resume()
    until_ticks(running)


def test_a_frozen_trial_does_nothing_and_goes_on_afterwards(start):
    running = start(workloads.count)
    until_ticks(running)
    running.freeze()
    process = psutil.Process(running.pid)
    while process.status() != psutil.STATUS_STOPPED:
        pass
    running.poll(0)
    assert running.poll(0.2) == []
    running.resume()
    until_ticks(running)


def test_kill_ends_the_trial_with_what_it_started(start):
    running = start(workloads.leaves_a_child)
    process = psutil.Process(running.pid)
    until_ticks(running)
    while not (children := process.children()):
        pass
    running.kill("stopped", "was stopped")
    assert (running.outcome, running.message) == ("stopped", "was stopped")
    _, alive = psutil.wait_procs(children, timeout=5)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def test_every_trial_is_a_fresh_process_and_equal_seeds_give_equal_numbers(start):
    seen = []
    for seed in (1, 1, 2):
        notes = {
            m[1]: m[2]
            for m in to_the_end(start(workloads.what_it_sees, seed=seed))
            if m[0] == "note"
        }
        assert notes["group"] == notes["pid"]
        seen.append(notes)
    assert len({notes["pid"] for notes in seen}) == 3
    assert seen[0]["random"] == seen[1]["random"] != seen[2]["random"]


def test_functions_of_a_notebook_cell_work(start):
    scope = {}
    exec("def work():\n    yield 0\n    yield offset", scope | {"offset": 7}, scope)
    work = scope["work"]
    work.__globals__["offset"] = 7
    messages = to_the_end(start(work))
    assert [n for m in messages if m[0] == "ticks" for _, n, *_ in m[1]] == [0, 7]


# TensorFlow takes seconds to load, and nothing here needs it.
WITHOUT = Path(__file__).parents[1] / "guilty" / "without_tensorflow"
_PARENT = """
    import os, sys, time
    from perfkit.measure.launcher import Launcher, launcher
    from perfkit.measure.trial import Limits
    from tests.measure import workloads

    while {wait} and not launcher().wait(1):
        pass
    launcher().warm()
    if {wait}:
        running = launcher().start(workloads.{work}, 1, Limits())
        while not running.poll(0.1) and running.outcome is None:
            pass
        if {frozen}:
            running.freeze()
    print("ready", flush=True)
    time.sleep(3600)
"""


@pytest.mark.parametrize(
    ("work", "wait", "frozen"),
    [
        ("count", True, False),
        ("hangs", True, False),
        ("leaves_a_child", True, False),
        ("count", True, True),
        ("count", False, False),
    ],
    ids=[
        "at work",
        "in a call that never returns",
        "with a child",
        "frozen",
        "warming",
    ],
)
@pytest.mark.fault(
    "launcher",
    "kernel killed",
    sees="Nothing: it ends with the program that it belongs to.",
)
@pytest.mark.fault(
    "trial", "kernel killed", sees="Nothing: the trial ends, with what it started."
)
def test_nothing_outlives_a_parent_that_is_killed(work, wait, frozen):
    # No __main__ guard: a script without one must work as well.
    code = textwrap.dedent(_PARENT.format(work=work, wait=wait, frozen=frozen))
    mine = {"PERFKIT_TEST_FAMILY": str(os.getpid()), "PYTHONPATH": str(WITHOUT)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ | mine
    ) as parent:
        try:
            assert parent.stdout.readline() == b"ready\n"
            # The launcher starts in a thread, so it may not be there yet.
            while not (family := _family(parent.pid)):
                threading.Event().wait(0.01)
        finally:
            parent.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(family, timeout=2)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def _family(parent):
    """The processes that the parent has started, and those that they have."""
    return [p for p in psutil.process_iter() if p.pid != parent and _is_family(p)]


def _is_family(process):
    try:
        return process.environ().get("PERFKIT_TEST_FAMILY") == str(os.getpid())
    except psutil.Error:
        return False


def test_a_launcher_that_cannot_start_says_so():
    code = textwrap.dedent("""
        import sys
        from multiprocessing import spawn
        from perfkit.errors import RunError
        from perfkit.measure.launcher import Launcher, launcher

        spawn.set_executable("/bin/false")
        try:
            while not launcher().wait(1):
                pass
        except RunError as error:
            print(error)
    """)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert "ended before it was ready" in done.stdout
    assert "python -c 'import tensorflow'" in done.stdout


# What the system refuses, at the boundary to it.


def refusing(number):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    return refuse


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
    sees="What the system refused, what to do about it, and to run again.",
)
def test_what_the_system_refuses_a_launcher_is_a_sentence(
    monkeypatch, tmp_path, number, todo
):
    refused = Launcher()
    monkeypatch.setattr(refused, "_folder", str(tmp_path))
    monkeypatch.setattr(measure_launcher, "Running", refusing(number))
    monkeypatch.setattr(refused, "_start_server", refusing(number))
    with pytest.raises(RunError) as caught:
        refused.start_pickled(b"", 0, Limits())
    said = str(caught.value)
    assert said.startswith(f"No trial could be started ({os.strerror(number)}): ")
    assert todo in said
    assert said.endswith(", then run again.")
    with pytest.raises(RunError) as caught:
        refused.wait(60)
    assert todo in str(caught.value)


def test_a_launcher_that_gets_no_thread_says_so(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RunError, match=r"\(can't start new thread\): close other"):
        Launcher().warm()


_LOSES = """
    import os, signal, sys
    from multiprocessing import forkserver
    from pathlib import Path
    import psutil
    from perfkit.errors import RunError
    from perfkit.measure.launcher import Launcher, launcher
    from perfkit.measure.trial import Limits
    from tests.measure import workloads

    def started():
        while not launcher().wait(1):
            pass
        running = launcher().start(workloads.count, 1, Limits())
        while not running.poll(0.1):
            pass
        return running

    running, no_fork = started(), Path(os.environ["NO_FORK"])
    if sys.argv[1] == "killed":
        os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)
        while running.outcome is None:
            running.poll(0.1)
        print(running.outcome, running.message)
    else:
        no_fork.touch()
    try:
        launcher().start(workloads.count, 1, Limits())
    except RunError as error:
        print(error)
    no_fork.unlink(missing_ok=True)
    print(started().outcome)
"""


@pytest.mark.parametrize("end", ["killed", "no fork"])
@pytest.mark.fault(
    "launcher",
    "SIGKILL, fork failure",
    sees="That it has ended, and to close other programs; the next run starts it anew.",
)
def test_a_launcher_that_is_lost_says_so_and_the_next_run_has_another(end, tmp_path):
    no_fork = str(WITHOUT.parent / "no_fork")
    mine = {"PYTHONPATH": no_fork, "NO_FORK": str(tmp_path / "no-fork")}
    mine |= {"TMPDIR": str(tmp_path), "PERFKIT_TEST_FAMILY": str(os.getpid())}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_LOSES), end],
        env=os.environ | mine,
        capture_output=True,
        text=True,
    )
    *first, said, again = done.stdout.splitlines()
    assert (said, again) == (measure_launcher._LOST, "None"), done.stderr
    lost = "crashed lost the process that started it"
    assert first == ([lost] if end == "killed" else [])
    _, alive = psutil.wait_procs(_family(0), timeout=10)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
    assert list(tmp_path.glob("perfkit-launcher-*")) == []


@pytest.mark.fault(
    "launcher", "memory limit", sees="That TensorFlow could not be loaded, and why."
)
def test_memory_that_is_too_short_for_tensorflow_is_said(tmp_path):
    (tmp_path / "keras.py").write_text("raise MemoryError('too little')")
    code = textwrap.dedent("""
        from perfkit.errors import RunError
        from perfkit.measure.launcher import Launcher, launcher
        try:
            while not launcher().wait(1):
                pass
        except RunError as error:
            print(error)
    """)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "ended before it was ready (MemoryError: too little)" in done.stdout


@pytest.fixture
def odd_folder():
    """A short one: a socket of the launcher has to have its place below it."""
    folder = Path(tempfile.mkdtemp(prefix="ä 数"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.fault("launcher", "path", sees="Trials start, as in any other folder.")
def test_a_launcher_works_in_a_folder_with_an_odd_name(odd_folder):
    leave_files("over", odd_folder)
    assert list(odd_folder.glob("perfkit-launcher-*")) == []


@pytest.mark.fault("launcher", "path", sees="Set TMPDIR to a folder with a short path.")
def test_a_folder_with_a_path_too_long_for_a_socket_is_said(monkeypatch, tmp_path):
    refused = Launcher()

    def refuse():
        raise OSError("AF_UNIX path too long")

    monkeypatch.setattr(refused, "_start_server", refuse)
    with pytest.raises(RunError, match="set TMPDIR to another folder with a short pat"):
        refused.wait(60)


def test_a_trial_that_is_killed_leaves_no_files(start):
    running, notes = start(workloads.leaves_files), {}
    while "tidying" not in notes:
        notes |= {m[1]: m[2] for m in running.poll(0.1) if m[0] == "note"}
    folders, file = notes["left"]
    tidying = [psutil.Process(pid) for pid in notes["tidying"]]
    assert all(map(os.listdir, folders))
    assert str(Path(file).parent) == folders[0]
    running.kill("stopped", "the test is over")
    psutil.wait_procs(tidying, timeout=10)
    assert not any(map(os.path.exists, folders))


_LEAVES = """
    import os, signal, sys, tempfile
    from perfkit.measure.launcher import Launcher, launcher
    from perfkit.measure.trial import Limits

    def leave():
        print(tempfile.mkstemp()[1])
        yield 1

    while not launcher().wait(1):
        pass
    running = launcher().start(leave, 0, Limits())
    while running.outcome is None:
        running.poll(1)
    print(running.tail, flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "killed with all":
        os.killpg(0, signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["over", "killed"])
def test_what_a_trial_leaves_behind_goes_with_the_launcher(end, tmp_path):
    leave_files(end, tmp_path)
    assert list(tmp_path.glob("perfkit-launcher-*")) == []


def test_whatever_keeps_it_from_starting_nobody_waits_for_ever(monkeypatch):
    broken = Launcher()
    monkeypatch.setattr(broken, "_start_server", lambda: 1 / 0)
    with pytest.raises(RunError, match=r"ready \(ZeroDivisionError: division"):
        broken.wait(60)


@pytest.mark.fault(
    "launcher",
    "kernel killed",
    sees="Nothing: the next launcher removes the files that were left.",
)
def test_what_was_killed_with_its_launcher_is_removed_by_the_next(tmp_path):
    leave_files("killed with all", tmp_path)
    assert len(list(tmp_path.glob("perfkit-launcher-*"))) == 1
    leave_files("over", tmp_path)
    assert list(tmp_path.glob("perfkit-launcher-*")) == []


def leave_files(end, folder):
    mine = {"TMPDIR": str(folder), "PYTHONPATH": str(WITHOUT)}
    mine["PERFKIT_TEST_FAMILY"] = str(os.getpid())
    started = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_LEAVES), end],
        env=os.environ | mine,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    assert f"{folder}/perfkit-launcher-" in started.stdout, started.stderr
    # The fork server ends a moment later, once it sees that nobody needs it.
    psutil.wait_procs(_family(0), timeout=10)


_LOADS = """
    import os
    from perfkit.measure.launcher import Launcher, launcher
    from perfkit.measure.trial import Limits

    def look():
        print(os.environ.get("TF_OF_A_FILE"), os.environ.get("TF_OF_THE_KERNEL"))
        yield 1

    def seen():
        while not launcher().wait(1):
            pass
        running = launcher().start(look, 0, Limits())
        while running.outcome is None:
            running.poll(1)
        print(launcher()._folder, running.tail, flush=True)

    seen()
    launcher().load_with({"TF_OF_A_FILE": "0"})
    seen()
    os.environ["TF_OF_THE_KERNEL"] = "1"
    launcher().load_with({})
    seen()
    launcher().load_with({})
    seen()
"""


def test_tensorflow_is_loaded_anew_where_it_would_read_other_variables(tmp_path):
    mine = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(WITHOUT)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_LOADS)],
        env=os.environ | mine,
        capture_output=True,
        text=True,
    )
    said = filter(None, done.stdout.splitlines())
    folders, *seen = zip(*map(str.split, said), strict=True)
    assert seen == [("None", "0", "None", "None"), ("None", "None", "1", "1")]
    first, with_variables, anew, same = folders
    assert len({first, with_variables, anew}) == 3
    assert anew == same
    assert list(tmp_path.glob("perfkit-launcher-*")) == []


def test_an_error_in_a_graph_is_told_by_what_was_wrong():
    text = (
        "Graph execution error:\n\nDetected at node dense/MatMul defined at (most "
        'recent call last):\n  File "train.py", line 3, in <module>\n'
        "<stack traces unavailable>\nOOM when allocating tensor with shape[9,9]\n"
        "\t [[{{node dense/MatMul}}]]"
    )
    assert worker._says(text) == "OOM when allocating tensor with shape[9,9]"
    assert worker._says("no digits\nat all") == "no digits"
    assert worker._says("Graph execution error:") == "Graph execution error:"
    assert worker._says("") == ""
