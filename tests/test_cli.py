import contextlib
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from perfkit import cli, options
from perfkit.errors import BadParameterError
from perfkit.findings import store
from perfkit.findings.reading import DOCUMENT_KINDS
from perfkit.machine.record import Start
from tests.engine.scripted import Session
from tests.engine.trials import ON_HOSTS, ROOT
from tests.findings import made
from tests.machines import looked


def start(line, folder, *, stderr=subprocess.PIPE, **environment):
    """The command line in a process of its own, with the napping experiment.

    It finds no TensorFlow, whose import is most of what a short run takes.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "perfkit", *line.split()],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ON_HOSTS}"} | environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def ended(run, code=0):
    """What a process has said, which ended with a code."""
    out, err = run.communicate()
    assert run.returncode == code, err
    return out, err


def everything_from(terminal):
    """All that is written to a terminal until nobody writes to it any more."""
    text = b""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 4096):
            text += part
    os.close(terminal)
    return text.decode()


@pytest.mark.parametrize(
    ("checks", "fields", "code"),
    [
        ([looked.WELL, looked.SLOW, looked.HIDDEN], {}, 0),
        ([looked.WELL, looked.WRONG], {}, 1),
        ([looked.WRONG], {"stopped": True}, 130),
        # What a probe missed is said beside the JSON.
        ([looked.WELL], {"missed": ("No trial ran.",)}, 1),
    ],
)
def test_the_code_of_the_doctor_tells_what_fails(
    monkeypatch, capsys, checks, fields, code
):
    found = looked.examination(*checks, **fields)
    monkeypatch.setattr("perfkit.machines.examination.doctor", lambda **_: found)
    assert cli.main(["doctor"]) == code
    assert "AMD Ryzen 9" in capsys.readouterr().out
    assert cli.main(["doctor", "--json", "--probe"]) == code
    said = capsys.readouterr()
    assert said.out == found.to_json() + "\n"
    assert said.err == "".join(f"perfkit: {sentence}\n" for sentence in found.missed)


@pytest.mark.parametrize(
    ("problem", "code", "told"),
    [
        ("", 0, "Ready for the notebooks."),
        ("It needs AVX.", 1, "Not ready: It needs AVX."),
        ("Ended after 75 s.", 1, "Not known yet, try again: Ended after 75 s."),
    ],
)
def test_the_doctor_says_whether_a_machine_is_ready_for_a_workshop(
    monkeypatch, capsys, problem, code, told
):
    machine = replace(looked.FULL, start=Start(problem=problem))
    found = looked.examination(looked.SLOW, looked.WELL, machine=machine)
    monkeypatch.setattr("perfkit.machines.examination.doctor", lambda **_: found)
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main(["doctor", "--workshop"]) == code
    assert capsys.readouterr().out.splitlines() == [
        told,
        machine.summary,
        "WARN: The cores save power. The governor is powersave. Do: sudo cpupower "
        "frequency-set -g performance",
    ]


def test_show_writes_a_saved_finding_and_draws_its_chart(tmp_path, capsys):
    saved = str(store.save(made.finding(), tmp_path))
    picture = tmp_path / "rates.svg"
    assert cli.main(["show", saved, "--chart", str(picture)]) == 0
    shown = capsys.readouterr().out
    assert "prefetched is the fastest way here." in shown
    assert "faster" in shown
    assert "\x1b" not in shown
    assert picture.read_text().startswith("<svg")
    assert "prefetched" in picture.read_text()
    where = str(tmp_path / "nowhere" / "rates.svg")
    assert cli.main(["show", saved, "--chart", where]) == 1
    assert f"Cannot write {where}" in capsys.readouterr().err


def test_a_run_shows_a_bar_in_a_terminal_reports_saves_and_succeeds(tmp_path):
    parent, child = pty.openpty()
    line = "run napping --budget 3 --out kept --json out.json"
    run = start(line, tmp_path, stderr=child, TERM="xterm")
    os.close(child)
    screen = everything_from(parent)
    assert "s left" in screen
    assert "variants take turns" in screen
    out, _ = ended(run)
    (kept,) = (tmp_path / "kept").glob("*.json")
    assert f"Saved as kept/{kept.name}\n" in out
    assert f"To make a page: perfkit export kept/{kept.name}\n" in out
    assert "Napping is " in out
    # The oracle: a nap of 5 ms after 10 ms of work. However busy this machine is: the
    # truth, or too noisy to say, never the opposite.
    written = json.loads((tmp_path / "out.json").read_text())
    (comparison,) = written["comparisons"]
    assert comparison["verdict"] in ("slower", "too noisy to say")
    assert comparison["low"] < 1
    # A nap is never shorter than asked for, so eight examples never come sooner.
    rates = {timing["variant"]: timing["rate"] for timing in written["timings"]}
    assert 0 < rates["awake"] <= 8 / 0.010
    assert 0 < rates["napping"] <= 8 / 0.015
    assert json.loads(kept.read_text()) == written


def test_an_interrupt_stops_the_run_and_keeps_what_it_has(tmp_path):
    run = start("run napping --budget 30 --json out.json", tmp_path)
    folder = tmp_path / "perfkit-findings"
    # A finding is saved as soon as the trials of the first round have ended.
    while run.poll() is None and not list(folder.glob("*.json")):
        threading.Event().wait(0.02)
    run.send_signal(signal.SIGINT)
    out, err = ended(run, 130)
    assert "Napping is " in out
    assert "The run was stopped early; this holds the measurements until then." in out
    assert "Traceback" not in err
    assert json.loads((tmp_path / "out.json").read_text())["stopped"] is True


def interrupted(finding, stop):
    session = Session(signal.SIGINT, finding=finding)
    session.stop = stop
    return session


KEPT = made.finding()
TWICE = interrupted(KEPT, lambda: signal.raise_signal(signal.SIGINT))
NOTHING_KEPT = "perfkit: stopped before a trial ended, so nothing was kept.\n"


@pytest.mark.parametrize(
    ("session", "code", "said"),
    [
        (Session(finding=made.finding({}, rounds=0)), 1, ""),
        (interrupted(None, list), 130, NOTHING_KEPT),
        (TWICE, 130, "perfkit: interrupted; the results so far are in {path}.\n"),
    ],
    ids=["nothing could be timed", "an early interrupt", "a second interrupt"],
)
def test_a_run_without_a_result_fails_and_says_what_was_kept(
    monkeypatch, tmp_path, capsys, session, code, said
):
    path = store.save(KEPT, tmp_path)
    monkeypatch.setattr("perfkit.questions.runs.open_session", lambda *_, **__: session)
    assert cli.main(["run", "data-pipeline"]) == code
    assert capsys.readouterr().err.endswith(said.format(path=path))


@pytest.mark.fault(
    "findings", "read-only", sees="perfkit shows the verdict, and why it saved no file."
)
def test_a_disk_that_cannot_be_written_to_costs_the_file_but_not_the_verdict(tmp_path):
    (tmp_path / "kept").touch()
    out, err = ended(start("run napping --budget 2 --out kept", tmp_path), 1)
    assert "Napping is " in out
    assert err.startswith("perfkit: The finding could not be saved")
    assert err.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    run = start("list", tmp_path)
    run.stdout.close()
    assert run.wait() == 1
    assert run.stderr.read() == ""


def shell(line, folder, **environment):
    """Run a line, in which ``$0`` is this Python; how it ended and what it said."""
    return subprocess.run(
        ["sh", "-c", line, sys.executable],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("where", "said"),
    [("&-", "standard output is closed"), ("/dev/full", "No space left on device")],
)
def test_an_output_that_takes_nothing_is_said_in_one_line(where, said):
    run = shell(f'"$0" -m perfkit list >{where}', ROOT)
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert said in run.stderr


@pytest.mark.parametrize("kind", DOCUMENT_KINDS)
def test_the_schema_of_a_kind_has_what_its_documents_have(kind, capsys):
    assert cli.main(["skill", "--schema", kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    record = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    assert record["properties"]["kind"]["enum"] == [kind]
    assert {"schema", "recorded"} <= record["properties"].keys()


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("--nap-ms 2.5 --batch 4 --dreams --kind deep",
         {"nap_ms": 2.5, "batch": 4, "dreams": True, "kind": "deep"}),
        # What is not given is left to the experiment, as is what is no number.
        ("", {}),
        ("--no-dreams", {"dreams": False}),
        ("--nap-ms long --batch 2.5", {"nap_ms": "long", "batch": "2.5"}),
    ],
)  # fmt: skip
def test_options_are_made_from_the_parameters(napping, line, given):
    found = options.parameters(options.parse(shlex.split(f"run napping {line}")))
    assert found == given
    assert {name: type(found[name]) for name in given} == {
        name: type(value) for name, value in given.items()
    }
    if "long" in line:
        with pytest.raises(BadParameterError, match="from 0 to 100 ms"):
            napping(nap_ms=found["nap_ms"])
