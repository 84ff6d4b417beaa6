"""Launchers in processes of their own: what they are given arrives, and they end.

They load no TensorFlow, which nothing here needs.
"""

import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from perfkit.engine.host import Environment, Host, Place, environment_of
from perfkit.engine.trial import Limits
from perfkit.errors import BadParameterError, MissingPartError, RunError
from tests.engine import trials, workloads
from tests.machine.trees import grow, package

HERE = Environment("3.11.7")


@pytest.fixture
def host():
    """Make hosts, ready to start trials; they end with the test."""
    made = []

    def host(*variables, environment=HERE, **place):
        place = Place(variables=(trials.PATH, *variables), **place)
        made.append(Host(place, environment))
        return trials.ready(made[-1])

    yield host
    for one in made:
        one.close()


def start(host, work, **limits):
    return host.start(work, 1, Limits(**limits))


def test_variables_and_cores_arrive_and_this_process_keeps_its_own(host):
    cores = sorted(os.sched_getaffinity(0))
    one = host(("OF_ONE", "a b=c"), cores=(cores[-1],))
    other = host(("TF_OF_OTHER", ""), environment=replace(HERE, backend="jax"))
    work = workloads.what_it_sees
    seen = [trials.notes_of(start(each, work)) for each in (one, other)]
    assert [found["cores"] for found in seen] == [[cores[-1]], cores]
    assert seen[0]["variables"]["OF_ONE"] == "a b=c"
    assert "TF_OF_OTHER" not in seen[0]["variables"]
    assert seen[1]["variables"]["TF_OF_OTHER"] == ""
    # Trials are told which backend their environment has.
    assert seen[1]["variables"]["KERAS_BACKEND"] == "jax"
    assert "OF_ONE" not in os.environ
    assert sorted(os.sched_getaffinity(0)) == cores


@pytest.mark.fault(
    "race", "SIGKILL", sees="The race's trials end, and perfkit says what to try next."
)
def test_a_server_that_is_killed_ends_its_trials_in_a_sentence(host):
    server = host()
    both = [start(server, workloads.count) for _ in "ab"]
    for running in both:
        trials.until_ticks(running)
    processes = [psutil.Process(running.pid) for running in both]
    os.kill(server._process.pid, signal.SIGKILL)
    for running in both:
        trials.to_the_end(running)
        # To end what is gone asks nothing more of anyone.
        running.kill("stopped", "was stopped")
        assert running.outcome == "crashed"
        assert running.message == "lost the process that started it"
    assert trials.are_gone(processes)
    with pytest.raises(RunError, match="Trials could not be started with another"):
        start(server, workloads.count)


@pytest.mark.fault("race", "SIGSTOP", sees="The trial's measurements arrive later.")
def test_a_server_that_stood_still_tells_what_it_did_not(host):
    server = host()
    running = start(server, workloads.count)
    trials.until_ticks(running)
    stopped = psutil.Process(server._process.pid)
    stopped.suspend()
    while stopped.status() != psutil.STATUS_STOPPED:
        pass
    running.poll(0.1)
    stopped.resume()
    trials.until_ticks(running)


def python(folder, answer="", code=0):
    """A program that answers like an interpreter that was asked what it is."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


LENT = ("cloudpickle", "markupsafe", "psutil", "greenlet")
FOUND = dict.fromkeys(("tensorflow", *LENT), True)


def told(python=sys.version_info[:3], path=(), **found):
    return json.dumps({"python": python, "path": path, "found": FOUND | found})


def refused(name, error=BadParameterError):
    """The sentence with which an interpreter is refused, after its name."""
    with pytest.raises(error) as caught:
        environment_of(Place(python=str(name)))
    said = str(caught.value)
    assert said.startswith(f"{name} ")
    assert "\n" not in said
    return said


OTHER = told((3, 99, 0), psutil=False)
NEITHER = told((3, 99, 0), psutil=False, greenlet=False)
NO_PYTHON = (
    " cannot be run as Python (it does not answer like Python): give the python of an "
    "environment, such as other-env/bin/python."
)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (told((3, 9, 1)), BadParameterError, " is Python 3.9.1, but perfkit needs "),
        (told(tensorflow=False), MissingPartError, " has no TensorFlow: give another "),
        (OTHER, MissingPartError, " lacks psutil, and "),
        # All that cannot be lent is named as it is installed.
        (NEITHER, MissingPartError, "/python -m pip install psutil greenlet`"),
        *(
            (text, BadParameterError, NO_PYTHON)
            for text in ("", "Python 3.11", '{"python": [3, 1', "[]")
        ),
    ],
)
def test_an_interpreter_that_will_not_do_is_refused(tmp_path, answer, error, said):
    assert said in refused(python(tmp_path, answer), error)


@pytest.mark.parametrize(
    ("variables", "modules", "backend"),
    [
        ({}, {}, "tensorflow"),
        ({}, {"jax": True, "keras": True}, "tensorflow"),
        # Without TensorFlow it trains on what it has.
        ({}, {"tensorflow": False, "jax": True, "keras": True}, "jax"),
        ({}, {"tensorflow": False, "torch": True, "keras": True}, "torch"),
        ({"KERAS_BACKEND": "torch"}, {"torch": True, "keras": True}, "torch"),
        ({"TF_USE_LEGACY_KERAS": "1"}, {"tf_keras": True}, "Keras 2"),
        # Or not at all.
        ({"KERAS_BACKEND": "jax"}, {"keras": True}, " has no JAX: "),
        ({"KERAS_BACKEND": "jax"}, {"jax": True}, " has no Keras: "),
        ({"TF_USE_LEGACY_KERAS": "1"}, {}, " has no tf_keras: "),
        ({"KERAS_BACKEND": "tensorflow"}, {"tensorflow": False, "jax": True}, "no Ten"),
    ],
)
def test_an_environment_trains_on_what_was_chosen_or_what_it_has(
    tmp_path, variables, modules, backend
):
    place = Place(
        python=python(tmp_path, told(**modules)),
        variables=(("HOME", str(tmp_path)), *variables.items()),
    )
    if " " in backend and backend != "Keras 2":
        with pytest.raises(MissingPartError, match=backend):
            environment_of(place)
    else:
        assert environment_of(place).backend == backend


def test_an_environment_of_keras_2_is_taken(tmp_path):
    packages = grow(tmp_path / "a", package("keras", "2.15.0"))
    place = Place(python=python(tmp_path, told(path=[str(packages)])))
    assert environment_of(place).backend == "Keras 2"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("{folder}/python", "it ended with 3"),
        ("no-python-at-all", "No such file or directory"),
        ("{folder}", "Permission denied"),
        ("{folder}/mute", "it did not answer within 0 s"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(tmp_path, monkeypatch, name, why):
    monkeypatch.setattr("perfkit.engine.host._PROBE_S", 0.2 if "mute" in name else 60)
    Path(python(tmp_path)).rename(mute := tmp_path / "mute")
    mute.write_text("#!/bin/sh\nexec sleep 3600\n")
    python(tmp_path, "x", code=3)
    said = refused(name := name.format(folder=tmp_path))
    assert said.startswith(f"{name} cannot be run as Python ({why}):")


@pytest.mark.parametrize("killed", [False, True])
def test_what_an_environment_lacks_is_lent_to_it(tmp_path, monkeypatch, killed):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = Place(python=sys.executable, variables=(trials.PATH,))
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
    assert (trials.ROOT / "perfkit" / "engine" / "host.py").is_file()


def test_a_server_that_cannot_start_says_why_and_what_to_try(tmp_path):
    name = python(tmp_path)
    Path(name).write_text("#!/bin/sh\necho 'ImportError: libcudart' >&2\nexit 1\n")
    broken = Host(Place(python=name), HERE)
    with pytest.raises(RunError) as caught:
        broken.wait(60)
    assert str(caught.value) == (
        f"Trials could not be started with {name} (ImportError: libcudart). Try "
        f"`{name} -c 'import keras'` with the same variables."
    )
    broken.close()


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EMFILE])
@pytest.mark.fault(
    "race", "fork failure, open files", sees="perfkit asks you to close other programs."
)
def test_a_host_that_the_system_refuses_is_a_sentence(monkeypatch, tmp_path, number):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    refuse = Mock(side_effect=OSError(number, os.strerror(number)))
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(RunError) as caught:
        Host(Place(python=sys.executable), Environment("3.11.7", {}, ("psutil",)))
    said = f"with {sys.executable} ({os.strerror(number)}): close other programs"
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault(
    "race", "fork failure", sees="perfkit says why no trial starts, and what to do."
)
def test_a_host_that_can_start_no_trial_says_why(tmp_path, host):
    path = f"{trials.WITHOUT.parent / 'no_fork'}{os.pathsep}{trials.ROOT}"
    server = host(("NO_FORK", str(tmp_path / "no")), ("PYTHONPATH", path))
    (tmp_path / "no").touch()
    with pytest.raises(RunError, match="The process that starts trials has ended, pro"):
        start(server, workloads.count)
