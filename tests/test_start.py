"""Set-up in a copy of the checkout, with a uv that does what the test says."""

import ast
import fcntl
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import start

REPOSITORY = Path(start.__file__).parent
BASE_PYTHON = Path(sys.base_prefix) / "bin" / "python3"
LAB = "import os, sys; print('lab', sys.argv[1:], os.environ['VIRTUAL_ENV'])"
UV_FILES = REPOSITORY / "tests" / "setup" / "machine" / "uv"
FAKE_PIP = f"""
import shutil, sys
from pathlib import Path
if "--version" in sys.argv:
    print("pip 20.3 from here")
if "download" in sys.argv:
    (Path(sys.argv[-1]) / "six-1.0-py3-none-any.whl").touch()
if "install" in sys.argv:
    assert "--require-hashes" in sys.argv
    assert sys.argv[-1].endswith("locks/uv.txt")
    place = Path(sys.argv[sys.argv.index("--target") + 1], "bin")
    place.mkdir(parents=True)
    shutil.copy({str(UV_FILES)!r}, place)
"""
# What the fakes in tests/setup are made of.
TOOLS = (
    *("sh", "cat", "dirname", "basename", "mkdir", "ln", "cp", "sleep"),
    *("env", "true", "tar", "gzip"),
)
SEARCHED = "import os; print(os.environ.get('LD_LIBRARY_PATH'))"


class Checkout:
    """A folder as git makes it, and the machine around it."""

    def __init__(self, folder):
        self.root, self.machine = folder / "checkout", folder / "machine"
        fakes = REPOSITORY / "tests" / "setup"
        shutil.copytree(REPOSITORY / "locks", self.root / "locks")
        shutil.copytree(fakes / "machine", self.machine)
        for name in ("perfkit", "pytest", "tests"):
            (self.root / name).mkdir(parents=True)
            (self.root / name / "__init__.py").touch()
            (self.root / name / "__main__.py").write_text(LAB)
        for name in ("start.py", "pyproject.toml", ".gitignore", "tests/needs.py"):
            shutil.copy(REPOSITORY / name, self.root / name)
        for tool in TOOLS:
            (self.machine / tool).symlink_to(shutil.which(tool))
        for program in ("chromium", "cc"):
            shutil.copy(self.machine / "program", self.machine / program)

    def begin(self, *arguments, **variables):
        """Run start.py as a user does; what it says goes to stdout and stderr."""
        env = {
            "PATH": str(self.machine),
            "HOME": str(self.machine),
            "PYTHONPATH": str(self.machine),
            "PYTHON_OF_TEST": str(BASE_PYTHON),
        }
        command = [sys.executable, self.root / "start.py", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=env | variables, **pipes)

    def start(self, *arguments, **variables):
        """The same, to its end."""
        with self.begin(*arguments, **variables) as process:
            out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def asked(self):
        """What uv was asked since the last time, but for its version."""
        path = self.machine / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [line for line in lines if line != "--version"]

    def steps(self, *arguments, **variables):
        """What uv is asked in a start that succeeds."""
        done = self.start(*arguments, **variables)
        assert done.returncode == 0, done.stderr
        return self.asked()

    def fails(self, step, saying):
        (self.machine / f"fail-{step}").write_text(saying)


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def assert_one_sentence(result, *words):
    (sentence,) = result.stderr.strip().splitlines()
    assert result.returncode != 0
    assert "again" in sentence or "continues" in sentence
    assert sentence.endswith(".")
    for word in words:
        assert word in sentence


def verbs(steps):
    return [line.split()[0] for line in steps]


def test_the_first_start_makes_the_environment_and_a_second_one_nothing(checkout):
    venv, packages, perfkit = checkout.steps("setup", "--cpu")
    assert venv.startswith("venv ")
    assert venv.endswith(f"{checkout.root}/.venv")
    assert "--require-hashes" in packages
    assert packages.endswith("locks/cpu.txt")
    own = f"--no-deps --no-build-isolation --editable {checkout.root}"
    assert perfkit.endswith(own)
    assert checkout.steps("setup", "--cpu") == []
    # A changed lock is installed.
    checkout.steps("setup", "--cpu")
    with (checkout.root / "locks" / "cpu.txt").open("a") as lock:
        lock.write("# another version\n")
    assert verbs(checkout.steps("setup", "--cpu")) == ["pip", "pip"]
    # An environment that does not work or was moved is made again.
    checkout.steps("setup")
    (checkout.root / ".venv" / "bin" / "python").unlink()
    assert checkout.steps("setup")[0].startswith("venv ")
    checkout.root = checkout.root.rename(checkout.root.parent / "moved")
    assert checkout.steps("setup")[0].endswith("moved/.venv")


def test_the_lab_starts_with_what_follows_the_dashes(checkout):
    result = checkout.start("--cpu", "--", "--no-browser")
    *_, told, last = result.stdout.splitlines()
    assert last == f"lab ['lab', '--no-browser'] {checkout.root}/.venv"
    assert "press Shift+Enter" in told
    # The libraries of the GPU build are found before others.
    (checkout.root / "perfkit" / "__main__.py").write_text(SEARCHED)
    assert checkout.start("--gpu").stdout.splitlines()[-1] == "None"
    packages = checkout.root / ".venv" / "lib" / "python3.12" / "site-packages"
    folders = [packages / "nvidia" / name / "lib" for name in ("cublas", "cusolver")]
    for folder in reversed(folders):
        folder.mkdir(parents=True)
    result = checkout.start("--gpu", LD_LIBRARY_PATH="/mine")
    assert result.stdout.splitlines()[-1] == ":".join([*map(str, folders), "/mine"])


def test_the_tests_need_their_own_lock_once(checkout):
    checkout.steps("setup")
    last = checkout.start("test", "--", "-k", "units").stdout.splitlines()[-1]
    assert last.startswith("lab ['-n', 'auto', ")
    assert "'10', '-k', 'units']" in last
    (packages,) = checkout.asked()
    assert packages.endswith("locks/test.txt")
    assert checkout.steps("test") == checkout.steps("setup") == []


def test_the_build_stays_and_another_takes_the_place_of_what_it_cannot_use(checkout):
    assert checkout.steps("setup", "--gpu")[1].endswith("locks/gpu.txt")
    assert checkout.steps("setup") == []
    (checkout.root / ".venv/lib/python3/site-packages/nvidia").mkdir(parents=True)
    _, removing, _ = checkout.steps("setup", "--cpu")
    assert removing.startswith("pip uninstall")
    assert "nvidia-cudnn-cu12" in removing
    assert "nvidia-ml-py" not in removing
    assert "tensorflow" not in removing
    # Between the slim build and another the environment is made anew.
    for build, steps in {
        "--slim": ["venv", "pip", "pip"],
        "--cpu": ["venv", "pip", "pip"],
        "--gpu": ["pip", "pip"],
    }.items():
        assert verbs(checkout.steps("setup", build)) == steps


SAID = {
    "error: failed to write `x`: No space left on device (os error 28)": "disk is full",
    "error: Resource temporarily unavailable (os error 11)": "close other programs",
    "error: Read-only file system (os error 30)": "writable",
    "error: Failed to download\n  cause: Hash mismatch for `six`": "differs from",
    "  cause: dns error: Temporary failure in name resolution": "HTTPS_PROXY",
    "invalid peer certificate: UnknownIssuer": "SSL_CERT_FILE",
    "hint: x has no wheels with a matching platform tag": "no build for",
    "error: something nobody has seen": "something nobody has seen; look into",
}


@pytest.mark.parametrize("said", SAID)
@pytest.mark.fault("start.py", "full disk", sees="start.py asks for more disk space.")
@pytest.mark.fault(
    "start.py", "fork failure", sees="start.py asks you to close other programs."
)
@pytest.mark.fault("start.py", "SIGKILL", sees="The next start installs it all again.")
def test_a_failing_download_is_one_sentence_and_the_next_run_goes_on(checkout, said):
    checkout.fails("install", said)
    assert_one_sentence(checkout.start("setup"), SAID[said])
    half = checkout.root / ".venv" / "lib" / "half a package"
    half.mkdir(parents=True)
    (checkout.machine / "fail-install").unlink()
    assert checkout.steps("setup")
    assert not half.exists()
    assert (checkout.root / ".setup" / "log.txt").read_text().count(said) == 1


@pytest.mark.parametrize(
    "variables",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "tr_TR.UTF-8", "HOME": "/dev/null"}],
    ids=["ASCII alone", "Turkish, without a home"],
)
@pytest.mark.fault("start.py", "path, locale, home", sees="The set-up works as usual.")
def test_it_is_set_up_wherever_it_lies_whatever_a_terminal_shows(tmp_path, variables):
    (tmp_path / "mein ärger 数据").mkdir()
    checkout = Checkout(tmp_path / "mein ärger 数据")
    done = checkout.start("setup", "--cpu", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert checkout.asked()[-1].endswith(str(checkout.root))
    checkout.fails("install", f"error: {checkout.root}: Read-only file system")
    assert_one_sentence(checkout.start("setup", "--gpu", **variables), "writable")


@pytest.mark.fault("start.py", "two at once", sees="The second start says it waits.")
def test_a_second_start_waits_for_the_first(checkout):
    (checkout.root / ".setup").mkdir()
    with (checkout.root / ".setup" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = checkout.begin("setup", "--cpu")
        assert "Waiting for another set-up in this folder." in second.stdout.readline()
    assert (second.communicate()[1], second.returncode) == ("", 0)
    assert verbs(checkout.asked()) == ["venv", "pip", "pip"]


@pytest.mark.parametrize(
    ("place", "words", "code"),
    [
        # An environment that someone else made is not deleted.
        ("checkout/.venv/mine", "move it away", 1),
        # As good as read-only, for root too.
        ("checkout/.setup", ".setup", 1),
        ("machine/interrupt-install", "`python3 start.py setup` continues from", 130),
    ],
)
@pytest.mark.fault("start.py", "read-only", sees="start.py names the file in the way.")
def test_what_is_in_the_way_is_one_sentence(checkout, tmp_path, place, words, code):
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).touch()
    result = checkout.start("setup")
    assert_one_sentence(result, words)
    assert (result.returncode, (tmp_path / place).exists()) == (code, True)


def with_pip(checkout, package=""):
    """The variables under which a Python finds a pip that only makes files."""
    pip = checkout.machine / "modules" / "pip"
    pip.mkdir(parents=True, exist_ok=True)
    (pip / "__init__.py").write_text(package)
    (pip / "__main__.py").write_text(FAKE_PIP)
    return {"PYTHONPATH": f"{pip.parent}:{checkout.machine}"}


def test_without_uv_pip_fetches_the_pinned_one(checkout):
    (checkout.machine / "uv").unlink()
    hidden = with_pip(checkout, "raise ImportError('No module named pip')")
    result = checkout.start("setup", **hidden)
    assert_one_sentence(result, "no pip", "apt install python3-pip")
    checkout.steps("setup", **with_pip(checkout))
    assert (checkout.root / ".setup" / "uv" / "bin" / "asked").exists()
    checkout.steps("setup")


@pytest.mark.parametrize(("code", "build"), [(0, "gpu"), (9, "cpu"), (None, "cpu")])
def test_the_gpu_build_is_chosen_where_a_driver_answers(
    monkeypatch, tmp_path, code, build
):
    driver = SimpleNamespace(nvmlInit_v2=lambda: code)
    missing = OSError("libnvidia-ml.so.1: cannot open shared object file")
    load = Mock(return_value=driver, side_effect=missing if code is None else None)
    monkeypatch.setattr(start.ctypes, "CDLL", load)
    monkeypatch.setattr(start, "usable", lambda: False)
    assert start.choose(None) == (build, {})
    assert start.choose("cpu")[0] == "cpu"
    # A GPU build stays without asking the driver.
    (tmp_path / "stamp").write_text(json.dumps({"build": "gpu", "asked": None}))
    monkeypatch.setattr(start, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(start, "usable", lambda: True)
    monkeypatch.setattr(start, "nvidia_driver_answers", lambda: 1 / 0)
    assert start.choose(None)[0] == "gpu"


@pytest.mark.fault("start.py", "full disk", sees="start.py states the space it needs.")
def test_a_disk_without_room_is_refused_before_the_download(monkeypatch, tmp_path):
    monkeypatch.setattr(start, "VENV", tmp_path / "venv")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1e9))
    with pytest.raises(start.Problem, match=r"takes 3\.0 GB and the disk has 1\.0 GB"):
        start.make_environment("uv", "cpu", whole=True)


MINE = "{}.{}".format(*sys.version_info)


@pytest.fixture
def folder(checkout, tmp_path):
    """Where a bundle is made."""
    checkout.with_pip = with_pip(checkout)
    return tmp_path / "bundle"


def bundled(checkout, folder, *arguments):
    return checkout.start("--bundle", str(folder), *arguments, **checkout.with_pip)


def test_a_bundle_holds_what_another_machine_needs(checkout, folder):
    (checkout.root / "my-notebooks").mkdir()
    result = bundled(checkout, folder, "--budget", "20")
    assert result.returncode == 0, result.stderr
    kind = folder / f"{start.here()}-{MINE}"
    held = {"python.tar.gz", "six-1.0-py3-none-any.whl"}
    assert {path.name for path in kind.iterdir()} == held
    copied = {path.name for path in (folder / "perfkit").iterdir()}
    assert {"start.py", "perfkit", "locks", "budget.txt"} <= copied
    assert not {".venv", ".setup", "my-notebooks"} & copied
    guide = (folder / "HOW-TO-INSTALL.txt").read_text()
    assert kind.name in guide
    assert "start.py setup --from" in guide
    choosing, python = checkout.asked()
    locks = checkout.root / "locks"
    assert choosing.endswith(f"{locks}/slim.txt {locks}/uv.txt")
    assert f"cpython-{MINE}-" in python
    # What is there is not fetched again.
    assert bundled(checkout, folder).returncode == 0
    assert [line.split()[1] for line in checkout.asked()] == ["compile"]
    assert (folder / "perfkit" / "budget.txt").read_text() == "20\n"


def test_from_a_bundle_nothing_is_asked_of_the_network(checkout, folder):
    bundled(checkout, folder)
    kind = folder / f"{start.here()}-{MINE}"
    for package, build in {
        "six": "slim",
        "tensorflow": "cpu",
        "tensorflow_cpu": "slim",
        "nvidia_cublas_cu12": "gpu",
    }.items():
        (kind / f"{package}-1.0-py3-none-any.whl").touch()
        assert start.build_in(folder) == build
    with zipfile.ZipFile(kind / "uv-9.0.0-py3-none-any.whl", "w") as wheel:
        wheel.write(UV_FILES, "uv-9.0.0.data/scripts/uv")
    (checkout.machine / "uv").unlink()
    checkout.steps("setup", "--from", str(folder))
    private = checkout.root / ".setup" / "uv" / "bin"
    calls = (private / "from").read_text().splitlines()
    assert {line.split(" ", 1)[1] for line in calls[-3:]} == {f"1 {kind.as_uri()}"}
    venv, packages, _ = (
        line for line in (private / "asked").read_text().splitlines() if "venv" in line
    )
    assert f"--python {MINE} " in venv
    assert packages.endswith("locks/gpu.txt")
    assert (checkout.root / ".setup" / "python" / "cpython").is_dir()
    # Done once, it is there without the bundle.
    shutil.rmtree(folder)
    assert checkout.start("setup").returncode == 0


def test_a_bundle_that_does_not_fit_is_one_sentence(checkout, folder):
    bundled(checkout, folder)
    said = "Packages were unavailable because the network was disabled."
    checkout.fails("install", said)
    result = checkout.start("setup", "--from", str(folder))
    assert_one_sentence(result, "the bundle lacks a package")
    shutil.rmtree(folder)
    folder.mkdir()
    result = checkout.start("setup", "--from", str(folder))
    assert_one_sentence(result, f"holds no bundle for {start.here()}")
    (folder / f"{start.here()}-3.12").mkdir()
    (checkout.machine / "uv").unlink()
    assert_one_sentence(checkout.start("setup", "--from", str(folder)), "not complete")
    for pip in ("raise ImportError('No module named pip')", "print('pip 20.2.4')"):
        checkout.with_pip = with_pip(checkout, f"{pip}; raise SystemExit")
        result = bundled(checkout, folder / "new")
        assert_one_sentence(result, "needs pip 20.3 or newer", "install --upgrade")


def test_a_step_that_does_not_begin_in_time_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(start, "LOG", tmp_path / "log.txt")
    monkeypatch.setattr(start, "ROOT", tmp_path)
    command = ["sh", "-c", "sleep 900 & sleep 900"]
    with pytest.raises(start.Problem, match="Waiting failed"):
        start.run("Waiting", command, None, 0.1)
    start.run("Going on", ["sh", "-c", "echo 0%"], None, 60)


def test_it_can_be_read_by_old_pythons_that_only_have_to_find_a_newer_one():
    ast.parse((REPOSITORY / "start.py").read_text(), feature_version=(3, 8))
