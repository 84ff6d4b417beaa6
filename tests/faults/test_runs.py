"""Whole runs and commands, each in a process of its own, while a fault lasts."""

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import psutil
import pytest

from perfkit.findings import store
from tests.engine.trials import ON_HOSTS, PATH, ROOT, are_gone
from tests.findings import made
from tests.test_cli import shell, start

ODD = "mein ärger 数据"
# Python would take UTF-8 where a terminal has no letters, unless told otherwise.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
# A file is in the way of all that would be made there, for root too.
NO_HOME = {"HOME": "/dev/null"} | dict.fromkeys(
    ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), ""
)
# For the sitecustomize of each process.
AS_EVER = ON_HOSTS / "sitecustomize.py"
NO_PROC = "import psutil\npsutil.PROCFS_PATH = '/none'\n"
TERMINALS = {
    "ASCII alone, odd folder": ASCII,
    "Turkish, without a home": NO_HOME | {"LC_ALL": "tr_TR.UTF-8"},
}


@pytest.fixture
def folder(tmp_path):
    made_odd = tmp_path / ODD
    made_odd.mkdir()
    return made_odd


@pytest.fixture
def temporary():
    """A folder for temporary files, and so a lock, of one's own, with a short name."""
    # A socket of the launcher has to have its place below it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        yield made


@pytest.mark.parametrize(
    ("more", "variables"),
    [*(("", variables) for variables in TERMINALS.values()), (NO_PROC, {})],
    ids=[*TERMINALS, "without /proc"],
)
@pytest.mark.fault(
    "findings", "home, locale, path", sees="The run gives a verdict and saves it."
)
@pytest.mark.fault(
    "launcher", "no /proc", sees="The run gives a verdict, but can't see its processes."
)
@pytest.mark.fault("trial", "no /proc", sees="perfkit still measures the trial's rate.")
def test_a_run_ends_with_its_verdict_wherever_it_is_asked_for(
    tmp_path, folder, more, variables, temporary
):
    as_ever = f"__file__ = {str(AS_EVER)!r}\n{AS_EVER.read_text()}"
    (tmp_path / "sitecustomize.py").write_text(as_ever + more)
    own = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "TMPDIR": temporary}
    run = start("run napping --budget 2", folder, **own | variables)
    assert run.communicate()[1] == ""
    # On a machine that is too busy nothing can be timed within the budget.
    assert run.returncode in (0, 1)
    (kept,) = (folder / "perfkit-findings").glob("*.json")
    assert store.load(kept).trials


@pytest.mark.parametrize("variables", TERMINALS.values(), ids=TERMINALS)
@pytest.mark.fault("export", "locale, path", sees="perfkit says where the page is.")
def test_a_page_is_made_wherever_it_is_asked_for(folder, variables):
    store.save(made.finding(), path=folder / "größe.json")
    for line in ("export größe.json", "show größe.json --chart größe.svg"):
        run = start(line, folder, **variables)
        out, err = run.communicate()
        assert run.returncode == 0, err
        # Matplotlib says itself where it keeps its fonts without a home.
        assert "Traceback" not in err
        assert out
    assert (folder / "größe.html").exists()
    assert (folder / "größe.svg").exists()


@pytest.mark.fault("doctor", "home, locale", sees="The doctor gives its usual report.")
@pytest.mark.fault("doctor", "read-only", sees="The doctor reports and writes nothing.")
def test_the_doctor_looks_without_a_home_in_a_folder_that_was_deleted(folder):
    line = 'rmdir "$PWD"; exec "$0" -m perfkit doctor'
    run = shell(line, folder, **NO_HOME, **ASCII)
    assert run.stderr == ""
    assert "TensorFlow trains" in run.stdout


# Once a round was saved it has no file left, or nothing that starts trials.
_RUNS_OUT = """
    import os, resource, sys
    from multiprocessing import forkserver
    from pathlib import Path
    import psutil
    from perfkit.progress import Display
    from perfkit.errors import RunError
    from perfkit.questions.session import Session
    from perfkit.engine.plan import TrialEnded
    from perfkit.questions.runs import watch
    from tests.questions.toy import Loops

    class Failing(Display):
        failed = False

        def show(self, board, *, at_once=False):
            if session.finding is None or self.failed:
                return
            self.failed = True
            if sys.argv[1] == "files":
                free = os.dup(0)
                os.close(free)
                resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
            else:
                psutil.Process(forkserver._forkserver._forkserver_pid).kill()

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # A loaded machine may end a short budget with the first round, and of a long one
    # each round takes long.
    session = Session(Loops(), budget=40, folder=Path(sys.argv[2]))
    try:
        watch(session, Failing())
    except RunError as error:
        print(error, *error.__notes__, sep="\\n")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
"""
SAID = {
    "files": "No trial could be started (Too many open files): close other programs",
    "server": "The process that starts trials has ended",
}


@pytest.mark.parametrize("fault", SAID)
@pytest.mark.fault(
    "launcher",
    "open files, SIGKILL",
    sees="perfkit says what to do, and where it saved the rounds until then.",
)
def test_what_was_measured_is_kept_when_no_trial_starts_any_more(
    fault, tmp_path, temporary
):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_RUNS_OUT), fault, str(tmp_path)],
        env=os.environ | {"TMPDIR": temporary, **dict([PATH])},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    (kept,) = tmp_path.glob("*.json")
    assert done.returncode == 0, done.stderr
    ended = [(t.round, t.message) for t in store.load(kept).trials]
    assert done.stdout, (done.stderr, ended)
    said, where = done.stdout.splitlines()
    assert said.startswith(SAID[fault]), done.stderr
    assert where == f"The measurements until then are in {kept}."
    assert "Traceback" not in done.stderr
    found = store.load(kept)
    assert found.unfinished
    assert len(found.trials) >= 3
    left = [p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in str(p.info)]
    assert are_gone(left)
    assert list(Path(temporary).glob("perfkit-launcher-*")) == []


def test_run_after_run_nothing_is_left_open_alive_or_lying_about():
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "soak.py"), "3", "--panel"],
        env=os.environ | dict([PATH]),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "grown by" in done.stdout
