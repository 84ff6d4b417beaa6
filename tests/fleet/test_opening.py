import subprocess
import sys

import pytest

from perfkit import cli
from perfkit.errors import BadParameterError, MissingPartError
from perfkit.fleet import opening
from perfkit.options import parse
from tests.experiments.toy import Loops
from tests.fleet.scripted import TASK


def test_without_dask_a_cluster_is_refused_with_the_command_that_adds_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingPartError, match="install it with `pip install distr"):
        opening.open_asking(TASK, "tcp://scheduler:8786")


def test_without_a_cluster_no_dask_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setitem(sys.modules, "dask", None)
    (row,) = opening.open_asking(TASK).rows
    assert row.member.name == "this machine"


def test_dask_is_not_loaded_before_a_cluster_is_asked():
    code = (
        "import sys, perfkit.cli, perfkit.fleet.opening, perfkit.panel.panel;"
        "sys.exit('distributed' in sys.modules or 'dask' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    "address", ["scheduler", "tcp:scheduler:8786", "x://", "tcp://a:b", ""]
)
def test_what_is_no_address_is_refused_before_anything_connects(address):
    with pytest.raises(BadParameterError, match="no address of a scheduler"):
        opening.open_asking(TASK, address)


def test_certificates_are_tried_before_anything_connects(tmp_path):
    with pytest.raises(BadParameterError, match="needs certificates"):
        opening.open_asking(TASK, "tls://scheduler:8786")
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    files = opening.tls_files(str(broken), str(broken), str(broken))
    with pytest.raises(BadParameterError, match="certificates cannot be used"):
        opening.open_asking(TASK, "tls://scheduler:8786", tls=files)
    with pytest.raises(BadParameterError, match="begins with tls://"):
        opening.open_asking(TASK, "tcp://scheduler:8786", tls=files)


def test_certificates_are_three_files_that_are_there(tmp_path):
    assert opening.tls_files(None, None, None) is None
    with pytest.raises(BadParameterError, match="together"):
        opening.tls_files("a", None, None)
    with pytest.raises(BadParameterError, match="no file 'a'"):
        opening.tls_files("a", "b", "c")


def test_an_experiment_of_this_session_cannot_be_asked_of_others():
    with pytest.raises(BadParameterError, match="'loops' is an experiment of this"):
        opening.run_task(Loops())


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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("fleet walk", "invalid choice: 'walk'"),
        ("fleet run vectoris", "Did you mean 'vectorised'?"),
        ("fleet tcp://a:1 run", "required: NAME"),
        ("fleet run vectorised --budget 0", "budget is 0.0"),
        ("fleet a:1 run vectorised --each core", "invalid choice: 'core'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(line, said, capsys):
    assert cli.main(line.split()) == 2
    assert said in capsys.readouterr().err


def test_the_help_says_what_connecting_means(capsys):
    with pytest.raises(SystemExit):
        parse(["fleet", "--help"])
    assert "runs any code" in capsys.readouterr().out
