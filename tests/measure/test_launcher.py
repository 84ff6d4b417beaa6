"""Real trials in real processes, each forked from one with TensorFlow loaded."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import psutil
import pytest

from perfkit.errors import RunError
from perfkit.measure import worker
from perfkit.measure.launcher import Launcher, launcher
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
        (workloads.prints_much, "completed", ""),
        (workloads.nothing, "completed", ""),
    ],
)
def test_however_a_trial_ends_it_is_an_outcome(start, work, outcome, words):
    running = start(work)
    to_the_end(running)
    assert running.outcome == outcome
    assert words in running.message
    assert "\n" not in running.message


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
