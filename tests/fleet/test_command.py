import signal
import sys

import pytest

from perfkit import cli
from perfkit.errors import BadParameterError, MissingPartError
from perfkit.fleet import run
from perfkit.options import parse
from tests.experiments.toy import Loops
from tests.fleet import scripted


@pytest.fixture
def fleet(monkeypatch, tmp_path):
    """Two machines that do what a test writes down, and what was asked of them."""
    fleet = scripted.Fleet({}, scripted.members(2))
    fleet.asked = []

    def opened(task, where, *, folder, each, tls):
        fleet.asked.append((task, where, folder, each, tls))
        return fleet.run(task, tmp_path)

    monkeypatch.setattr(run, "open_run", opened)
    monkeypatch.setenv("COLUMNS", "100")  # whatever runs the tests
    return fleet


BROKEN = [(1, ("failed", "It has no perfkit."))]


def test_one_that_sends_something_is_enough(fleet, capsys):
    fleet.scripts = {"w1": scripted.whole(), "w2": BROKEN}
    line = "fleet tcp://a:1 run data-pipeline --batch 16 --budget 60 --each worker"
    assert cli.main(line.split()) == 0
    said = capsys.readouterr()
    assert "prefetched is the fastest way here." in said.out
    assert "It has no perfkit." in said.out
    assert "1 of 2 sent what they measured" in said.out
    assert "host 2: failed: It has no perfkit." in said.err
    ((task, where, folder, each, tls),) = fleet.asked
    assert (task.experiment, task.budget) == ("data-pipeline", 60.0)
    assert task.parameters["batch"] == 16
    assert (where, folder, each) == ("tcp://a:1", None, "worker")
    assert not any(tls)


def test_the_code_tells_that_nothing_came_home(fleet, capsys):
    fleet.scripts = {"w1": BROKEN, "w2": BROKEN}
    assert cli.main(["fleet", "passport"]) == 1
    assert "0 of 2 sent" in capsys.readouterr().out
    assert fleet.asked[0][0].experiment == ""


def test_an_interrupt_stops_all_and_keeps_what_comes_home(fleet, capsys, request):
    # A shell that starts tests in the background has them ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    fleet.scripts = {"w1": [(3, scripted.sent(how="stopped"))]}
    begin = fleet.begin

    def interrupted(*member):
        begin(*member)
        if len(fleet.began) == 2:
            signal.raise_signal(signal.SIGINT)

    fleet.begin = interrupted
    assert cli.main(["fleet", "run", "data-pipeline"]) == 130
    said = capsys.readouterr().out
    assert "It was stopped. What it measured by then" in said
    assert "Nothing came home after Stop." in said


def test_dask_is_needed_for_a_cluster_alone(monkeypatch):
    monkeypatch.delitem(sys.modules, "perfkit.fleet.cluster", raising=False)
    for name in ("distributed", "dask"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPartError, match="pip install distr"):
        run.open_run(scripted.TASK, "tcp://scheduler:8786")
    (member,) = run.open_run(scripted.TASK).members
    assert member.name == "this machine"


TLS = "tls://scheduler:8786"


@pytest.mark.parametrize(
    ("address", "files", "said"),
    [
        *((address, (), "no address of a scheduler")
          for address in ("scheduler", "tcp:scheduler:8786", "x://", "tcp://a:b", "")),
        # Certificates are three files that are there and can be used.
        (TLS, (), "go together"),
        (TLS, ("a", None, None), "together"),
        ("tcp://scheduler:8786", ["{broken}"] * 3, "go together"),
        (TLS, ("a", "b", "c"), "no file 'a'"),
        (TLS, ["{broken}"] * 3, "certificates cannot be used"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_at_once(tmp_path, address, files, said):
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    files = [name and name.format(broken=broken) for name in files]
    with pytest.raises(BadParameterError, match=said):
        run.open_run(scripted.TASK, address, tls=files)


def test_an_experiment_of_this_session_cannot_be_asked_of_others():
    with pytest.raises(BadParameterError, match="'loops' is an experiment of this"):
        run.make_task(Loops())


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("fleet run vectorised", (None, "run", "vectorised")),
        ("fleet tcp://a:1 run vectorised", ("tcp://a:1", "run", "vectorised")),
        ("fleet --budget 5 a:1 run --rows 10 vectorised", ("a:1", "run", "vectorised")),
        ("fleet tls://a:1 passport --budget 5", ("tls://a:1", "passport", None)),
        ("fleet passport", (None, "passport", None)),
    ],
)
def test_the_command_line_says_who_is_asked_what(line, asked):
    found = parse(line.split())
    name = getattr(found, "name", None)
    assert (found.address, found.what, name) == asked


def test_the_help_says_what_connecting_means(capsys):
    with pytest.raises(SystemExit):
        parse(["fleet", "--help"])
    assert "runs any code" in capsys.readouterr().out
