"""Launchers in processes of their own: what they are given arrives, and they end.

They load no TensorFlow, which nothing here needs.
"""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import psutil
import pytest

from perfkit.errors import BadParameterError, MissingPartError, RunError
from perfkit.measure.host import (
    Environment,
    Host,
    Launchers,
    Place,
    environment_of,
)
from perfkit.measure.trial import Limits
from tests.measure import workloads

ROOT = Path(__file__).parents[2]
WITHOUT = ROOT / "tests" / "guilty" / "without_tensorflow"
PATH = ("PYTHONPATH", f"{WITHOUT}{os.pathsep}{ROOT}")
HERE = Environment("3.11.7")


@pytest.fixture
def host():
    """Make hosts, ready to start trials; they end with the test."""
    made = []

    def host(*variables, **place):
        place = Place(variables=(PATH, *variables), **place)
        made.append(Host(place, HERE))
        while not made[-1].wait(1):
            pass
        return made[-1]

    yield host
    for one in made:
        one.close()


def start(host, work, **limits):
    return host.start(work, 1, Limits(**limits))


def to_the_end(running):
    messages = []
    while running.outcome is None:
        messages += running.poll(0.1)
    return messages


def notes_of(running):
    return {m[1]: m[2] for m in to_the_end(running) if m[0] == "note"}


def until_ticks(running):
    while not any(message[0] == "ticks" for message in running.poll(0.1)):
        assert running.outcome is None, running.message


def gone(*pids):
    alive = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(alive, timeout=10)
    return [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def test_variables_and_cores_arrive_and_this_process_keeps_its_own(host):
    cores = sorted(os.sched_getaffinity(0))
    one = host(("OF_ONE", "a b=c"), cores=(cores[-1],))
    other = host(("TF_OF_OTHER", ""))
    seen = [notes_of(start(each, workloads.where_it_runs)) for each in (one, other)]
    assert [found["cores"] for found in seen] == [[cores[-1]], cores]
    assert seen[0]["variables"]["OF_ONE"] == "a b=c"
    assert "TF_OF_OTHER" not in seen[0]["variables"]
    assert seen[1]["variables"]["TF_OF_OTHER"] == ""
    assert "OF_ONE" not in os.environ
    assert sorted(os.sched_getaffinity(0)) == cores
    assert one.loaded_s > 0


def test_a_trial_tells_what_it_does_and_how_it_ends(host):
    server = host()
    running = start(server, workloads.notes_and_pauses)
    messages = to_the_end(running)
    ticks = [tick for m in messages if m[0] == "ticks" for tick in m[1]]
    assert [(n, label) for _, n, _, label in ticks] == [
        (0, "set-up"),
        (3, ""),
        (0, "end of epoch"),
        (4, ""),
    ]
    assert ("note", "plan", {"stages": [1, 2]}) in messages
    assert (running.outcome, running.message) == ("completed", "")
    # One clock for all: a trial starts before it tells anything.
    assert ticks[0][0] > running.started_ns
    failed = start(server, workloads.raises)
    to_the_end(failed)
    assert failed.outcome == "crashed"
    assert "raised ValueError: the images are upside down" in failed.message
    printed = start(server, workloads.prints_much)
    to_the_end(printed)
    assert printed.tail.endswith("y\n")


def test_two_trials_at_once_are_told_apart(host):
    server = host()
    one, other = (start(server, workloads.what_it_sees) for _ in "ab")
    seen = [notes_of(running) for running in (other, one)]
    assert [found["pid"] for found in seen] == [other.pid, one.pid]
    assert seen[0]["random"] == seen[1]["random"]


def test_a_frozen_trial_does_nothing_and_goes_on_afterwards(host):
    running = start(host(), workloads.count, silence=30.0)
    until_ticks(running)
    running.freeze()
    process = psutil.Process(running.pid)
    while process.status() != psutil.STATUS_STOPPED:
        pass
    # What was on its way still comes.
    while running.poll(0.2):
        pass
    assert running.outcome is None
    running.resume()
    until_ticks(running)


def test_a_silent_trial_is_timed_out_by_the_one_who_asked(host):
    running = start(host(), workloads.never_ready, silence=0.5)
    to_the_end(running)
    assert running.outcome == "timed-out"
    assert gone(running.pid)


def test_kill_ends_the_trial_with_what_it_started(host):
    running = start(host(), workloads.leaves_a_child)
    until_ticks(running)
    while not (children := psutil.Process(running.pid).children()):
        pass
    running.kill("stopped", "was stopped")
    assert (running.outcome, running.message) == ("stopped", "was stopped")
    assert gone(running.pid, *(child.pid for child in children))


@pytest.mark.fault(
    "race",
    "SIGKILL",
    sees="Its trials lost the process that started them; what to try next.",
)
def test_a_server_that_is_killed_ends_its_trials_in_a_sentence(host):
    server = host()
    running, other = (start(server, workloads.count) for _ in "ab")
    until_ticks(running)
    until_ticks(other)
    os.kill(server._process.pid, signal.SIGKILL)
    to_the_end(running)
    to_the_end(other)
    for each in (running, other):
        assert each.outcome == "crashed"
        assert each.message == "lost the process that started it"
    assert gone(running.pid, other.pid)
    with pytest.raises(RunError, match="Trials could not be started with another"):
        start(server, workloads.count)
    # To end what is gone asks nothing more of anyone.
    running.kill("stopped", "was stopped")
    assert running.outcome == "crashed"


@pytest.mark.fault("race", "SIGSTOP", sees="Nothing: the trial's news come later.")
def test_a_server_that_stood_still_tells_what_it_did_not(host):
    server = host()
    running = start(server, workloads.count)
    until_ticks(running)
    stopped = psutil.Process(server._process.pid)
    stopped.suspend()
    while stopped.status() != psutil.STATUS_STOPPED:
        pass
    running.poll(0.1)
    stopped.resume()
    until_ticks(running)


def test_closing_ends_all_that_was_started(host):
    server = host()
    running = start(server, workloads.count)
    until_ticks(running)
    family = [server._process.pid, running.pid]
    family += [p.pid for p in psutil.Process(family[0]).children(recursive=True)]
    server.close()
    assert gone(*family)


_PARENT = """
    import sys, time
    from perfkit.measure.host import Environment, Host, Place
    from perfkit.measure.trial import Limits
    from tests.measure import workloads

    host = Host(Place(variables=(("OF_ONE", "1"),)), Environment("3.11.7"))
    while {wait} and not host.wait(1):
        pass
    if {wait}:
        running = host.start(workloads.leaves_a_child, 1, Limits())
        while not running.poll(0.1) and running.outcome is None:
            pass
        if {frozen}:
            running.freeze()
    print("ready", flush=True)
    time.sleep(3600)
"""


@pytest.mark.parametrize(
    ("wait", "frozen"),
    [(True, False), (True, True), (False, False)],
    ids=["at work", "frozen", "warming"],
)
@pytest.mark.fault("race", "kernel killed", sees="Nothing: hosts and trials end.")
def test_nothing_outlives_a_parent_that_is_killed(wait, frozen):
    code = textwrap.dedent(_PARENT.format(wait=wait, frozen=frozen))
    mine = {"PERFKIT_TEST_HOST": str(os.getpid()), PATH[0]: PATH[1]}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ | mine
    ) as parent:
        try:
            assert parent.stdout.readline() == b"ready\n"
            while not (family := family_of(parent.pid)):
                threading.Event().wait(0.01)
        finally:
            parent.send_signal(signal.SIGKILL)
    assert gone(*family)
    assert family_of(0) == []


def family_of(parent):
    """What the parent has started, and what that has."""
    return [p.pid for p in psutil.process_iter() if p.pid != parent and is_of_it(p)]


def is_of_it(process):
    try:
        mine = process.environ().get("PERFKIT_TEST_HOST") == str(os.getpid())
        return mine and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def python(folder, told=None, text="", code=0):
    """A program that answers like an interpreter that was asked what it is."""
    path = folder / "python"
    answer = json.dumps(told) if told else text
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


FOUND = {"tensorflow": True, "cloudpickle": True, "psutil": True, "greenlet": True}


def told(python=sys.version_info[:3], path=(), **found):
    return {"python": list(python), "path": list(path), "found": FOUND | found}


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (
            told((3, 9, 1)),
            BadParameterError,
            " is Python 3.9.1, and perfkit runs on 3.",
        ),
        (told(tensorflow=False), MissingPartError, " has no TensorFlow: give another "),
        (
            told((3, 99, 0), psutil=False),
            MissingPartError,
            " lacks psutil, which this ",
        ),
    ],
    ids=["too old", "without TensorFlow", "lacks what cannot be lent"],
)
def test_an_interpreter_that_will_not_do_is_refused(tmp_path, answer, error, said):
    name = python(tmp_path, answer)
    with pytest.raises(error) as caught:
        environment_of(Place(python=name))
    assert str(caught.value).startswith(name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_that_cannot_be_lent_is_named_as_it_is_installed(tmp_path):
    name = python(tmp_path, told((3, 99, 0), psutil=False, greenlet=False))
    with pytest.raises(MissingPartError) as caught:
        environment_of(Place(python=name))
    assert f"`{name} -m pip install psutil greenlet`" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "Python 3.11", '{"python": [3, 1', "[]"], ids=repr
)
def test_a_program_that_is_no_python_is_refused(tmp_path, text):
    name = python(tmp_path, text=text)
    with pytest.raises(BadParameterError) as caught:
        environment_of(Place(python=name))
    assert str(caught.value) == (
        f"{name} cannot be run as Python (it answers as no Python does): give the "
        "python of an environment, such as other-env/bin/python."
    )


def test_what_cannot_be_run_is_refused_in_a_sentence(tmp_path):
    broken = python(tmp_path, text="x", code=3)
    (tmp_path / "plain").write_text("no program")
    for name, why in (
        (broken, "it ended with 3"),
        ("no-python-at-all", "No such file or directory"),
        (str(tmp_path / "plain"), "Permission denied"),
        (str(tmp_path), "Permission denied"),
        ("false", "it ended with 1"),
    ):
        with pytest.raises(BadParameterError) as caught:
            environment_of(Place(python=name))
        assert str(caught.value).startswith(f"{name} cannot be run as Python ({why}):")


def test_a_program_that_never_answers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("perfkit.measure.host._PROBE_S", 0.2)
    Path(name := python(tmp_path)).write_text("#!/bin/sh\nexec sleep 3600\n")
    with pytest.raises(BadParameterError, match="it did not answer within 0 s"):
        environment_of(Place(python=name))


def test_an_environment_with_an_old_keras_is_refused(tmp_path):
    packages = tmp_path / "packages"
    (packages / "keras").mkdir(parents=True)
    (packages / "keras" / "__init__.py").write_text('__version__ = "2.15.0"\n')
    name = python(tmp_path, told(path=[str(packages)]))
    with pytest.raises(MissingPartError, match=r"has Keras 2\.15\.0, and perfkit meas"):
        environment_of(Place(python=name))


def test_what_an_environment_is_is_asked_without_importing_tensorflow(monkeypatch):
    found = environment_of(Place(variables=(("OF_ONE", "1"),)))
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert found.lacks == ()
    assert found.versions["tensorflow"]


@pytest.mark.parametrize("killed", [False, True])
def test_what_an_environment_lacks_is_lent_to_it_and_taken_back(
    tmp_path, monkeypatch, killed
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = Place(python=sys.executable, variables=(PATH,))
    lent = Host(place, Environment("3.11.7", {}, ("psutil",)))
    (folder,) = tmp_path.glob("perfkit-lent-*")
    assert {link.name for link in folder.iterdir()} == {"perfkit", "psutil"}
    assert all(link.is_symlink() for link in folder.iterdir())
    assert lent.wait(60)
    if killed:
        os.kill(lent._process.pid, signal.SIGKILL)
    lent.close()
    assert not folder.exists()
    # The links are gone, and not what they led to.
    assert (ROOT / "perfkit" / "measure" / "host.py").is_file()


def test_a_server_that_cannot_start_says_why_and_what_to_try(tmp_path):
    name = python(tmp_path)
    Path(name).write_text("#!/bin/sh\necho 'ImportError: libcudart' >&2\nexit 1\n")
    broken = Host(Place(python=name), HERE)
    with pytest.raises(RunError) as caught:
        broken.wait(60)
    assert str(caught.value) == (
        f"Trials could not be started with {name} (ImportError: libcudart). Try "
        f"`{name} -c 'import tensorflow'` with the same variables."
    )
    broken.close()


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EMFILE])
@pytest.mark.fault(
    "race", "fork failure, open files", sees="What the system refused, and what to do."
)
def test_a_host_that_the_system_refuses_is_a_sentence(monkeypatch, tmp_path, number):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(RunError) as caught:
        Host(Place(python=sys.executable), Environment("3.11.7", {}, ("psutil",)))
    said = f"with {sys.executable} ({os.strerror(number)}): close other programs"
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault("race", "fork failure", sees="Why no trial starts, and what to do.")
def test_a_host_that_can_start_no_trial_says_why(tmp_path, host):
    path = f"{WITHOUT.parent / 'no_fork'}{os.pathsep}{ROOT}"
    server = host(("NO_FORK", str(tmp_path / "no")), ("PYTHONPATH", path))
    (tmp_path / "no").touch()
    with pytest.raises(RunError, match="The process that starts trials has ended, as"):
        start(server, workloads.count)


def test_places_have_a_host_each_and_a_trial_starts_where_its_work_belongs():
    one, other = (Place(variables=(PATH, ("OF", name))) for name in ("one", "other"))
    launchers = Launchers({one, other}, {one: HERE, other: HERE})
    try:
        while not launchers.wait(1):
            pass
        for place in (one, other):
            work = workloads.Placed(place)
            seen = notes_of(launchers.start(work, 1, Limits()))
            assert seen["variables"]["OF"] == dict(place.variables)["OF"]
    finally:
        launchers.close()
    assert all(host._process.poll() is not None for host in launchers.hosts.values())
