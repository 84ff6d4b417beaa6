"""A guarded process: what its copy holds, and who refuses what, for every user."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from perfkit.training.diagnose import guard
from perfkit.training.diagnose.guard import Replica

ROOT = Path(__file__).resolve().parents[3]
# Attempts on ``at``, a file outside of the copy, and on what it may do.
ATTEMPTS = {
    "open": "open(at, 'a')",
    "truncate": "os.truncate(at, 0)",
    "remove": "os.remove(at)",
    "rename": "os.rename(at, 'own')",
    "hard link": "os.link(at, 'own'); open('own', 'w')",
    "through a link": "os.symlink(at, 'link'); open('link', 'w')",
    "through a link that was there": "open('out/f', 'w')",
    "beside": "open('../beside/f', 'w')",
    "folder": "os.mkdir(at + '.new')",
    "rmtree": "shutil.rmtree(os.path.dirname(at))",
    "chmod": "os.chmod(at, 0)",
    "utime": "os.utime(at, (0, 0))",
    "TCP": "socket.create_connection(('127.0.0.1', port), 2)",
    "UDP": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))",
    "C": "c.fopen.restype = ctypes.c_void_p; assert c.fopen(at.encode(), b'a')",
    "a shell": "subprocess.run(['sh', '-c', ': >> \"$0\"', at], check=True)",
    "a shell's TCP": (
        "subprocess.run([sys.executable, '-c', 'import socket, sys; "
        'socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2)\', str(port)], '
        "check=True)"
    ),
}
ALLOWED = {
    "own": "open('own.txt', 'w').write('x'); assert open('own.txt').read() == 'x'",
    "a new name": "os.replace('own.txt', 'inner/own.txt')",
    "read around": "assert open('../beside/f').read() == 'mine'",
    "a temporary folder": "shutil.rmtree(tempfile.mkdtemp())",
    "metadata": "os.chmod('inner/own.txt', 0o600); os.utime('inner/own.txt')",
    "home": "open(os.path.expanduser('~/new'), 'w')",
    "null": "open('/dev/null', 'w').write('x')",
    "a local socket": "socket.socketpair(); socket.socket(socket.AF_UNIX).bind('s')",
    "a lock": "multiprocessing.get_context('fork').Lock()",
    "read anything": "open('/etc/passwd').read(); open(at).read()",
    "what somebody reads": "open(sys.argv[2] + '/seen', 'w')",
}
CODE = """
import ctypes, json, multiprocessing, os, shutil, socket, subprocess, sys, tempfile
from pathlib import Path
# Another user may not reach this Python.
import encodings.idna, multiprocessing.synchronize
from perfkit.training.diagnose import guard

root, keep, port, by_kernel, attempts = Path(sys.argv[1]), *json.loads(sys.argv[3])
c = ctypes.CDLL(None, use_errno=True)
PREPARE
os.environ["HOME"], tempfile.tempdir = str(root / "home"), str(root / "trial")
os.chdir(root / "project")
at = str(root / "beside" / "f")
if not by_kernel:
    guard._landlock_version, guard._hold_sockets = lambda: 0, lambda: False
sentences = guard.guard([Path.cwd()], [keep], reason="a test")
results = {}
for name, code in attempts.items():
    try:
        exec(code)
        results[name] = ""
    except Exception as error:
        results[name] = repr(error)
print(json.dumps([sentences, results, os.getcwd(), sys.path]))
"""
# As an ordinary user; as a root whose containers may mount nothing.
NOBODY = "os.setgid(65534); os.setuid(65534)"
NO_ADMIN = """
SYS_ADMIN = 21
assert c.prctl(24, SYS_ADMIN, 0, 0, 0) == 0
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
sets = (ctypes.c_uint32 * 6)()
assert c.capget(header, sets) == 0
for number in range(3):
    sets[number] &= ~(1 << SYS_ADMIN)
assert c.capset(header, sets) == 0
"""


@pytest.fixture
def place(monkeypatch):
    """A project with links, and what lies around it, open to all users; a home, too."""
    # Other users reach no folder of pytest's.
    with tempfile.TemporaryDirectory(prefix="perfkit-test-") as folder:
        root = Path(os.path.realpath(folder))
        for name in ("project/inner", "beside", "home/.keras", "trial", "keep"):
            (root / name).mkdir(parents=True)
        (root / "beside" / "f").write_text("mine")
        (root / "project" / "f").write_text("mine")
        (root / "project" / "out").symlink_to("../beside")
        (root / "project" / "in").symlink_to("f")
        for path in (root, *root.rglob("*")):
            path.chmod(0o777)
        monkeypatch.setenv("HOME", str(root / "home"))
        yield root


def attempted(root, attempts, prepare="", *, by_kernel=True):
    """The sentences, and what came of attempts in a guarded process."""
    given = json.dumps([str(root / "keep"), 9, by_kernel, attempts])
    code = CODE.replace("PREPARE", prepare)
    run = [sys.executable, "-c", code, str(root), str(root / "keep"), given]
    ended = subprocess.run(run, capture_output=True, text=True, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def check_refused(root, attempts, results):
    """What is allowed came to pass, and of the attempts nothing."""
    assert [name for name in attempts if not results[name]] == []
    assert {name: results[name] for name in ALLOWED if results[name]} == {}
    assert sorted(os.listdir(root)) == ["beside", "home", "keep", "project", "trial"]
    assert sorted(os.listdir(root / "project")) == ["f", "in", "inner", "out"]
    assert [*os.listdir(root / "home"), *os.listdir(root / "beside")] == [".keras", "f"]
    for file in (root / "beside" / "f", root / "project" / "f"):
        assert file.read_text() == "mine"
        assert file.stat().st_mtime > 0
        assert file.stat().st_mode & 0o777 == 0o777


needs_landlock = pytest.mark.skipif(
    guard._landlock_version() < 3, reason="this system has no Landlock"
)


@needs_landlock
@pytest.mark.parametrize(
    "prepare",
    [
        "",
        "guard._landlock_version = lambda: 3",
        pytest.param(NOBODY, marks=pytest.mark.skipif("os.getuid() != 0")),
        pytest.param(NO_ADMIN, marks=pytest.mark.skipif("os.getuid() != 0")),
    ],
    ids=["as it is", "Linux 6.2", "another user", "root without CAP_SYS_ADMIN"],
)
def test_the_kernel_refuses_every_user_what_lies_outside(place, prepare):
    is_reached = all(path.stat().st_mode & 0o001 for path in place.parents)
    if prepare == NOBODY and not is_reached:
        pytest.skip("another user cannot reach folders for temporary files")
    sentences, results, folder, _ = attempted(place, ATTEMPTS | ALLOWED, prepare)
    assert "The kernel (Landlock) refuses writes elsewhere." in sentences
    assert "The kernel (seccomp) refuses connections" in sentences
    assert folder == f"{place}/trial/files{place}/project"
    check_refused(place, ATTEMPTS, results)


def test_python_refuses_what_python_is_asked_for(place):
    not_held = {"C", "a shell", "a shell's TCP"}
    # That link leads to a copy here.
    attempts = {n: code for n, code in ATTEMPTS.items() if n not in not_held}
    attempts.pop("through a link that was there")
    sentences, results, *_ = attempted(place, attempts | ALLOWED, by_kernel=False)
    assert "C++ libraries and other programs can still write anywhere" in sentences
    assert "Python alone refuses connections" in sentences
    check_refused(place, attempts, results)


@needs_landlock
def test_who_lets_it_reach_the_network_keeps_it_from_files(place, monkeypatch):
    monkeypatch.setenv("PERFKIT_ONLINE", "1")
    attempts = {"socket": "socket.socket().close()", "open": ATTEMPTS["open"]}
    sentences, results, *_ = attempted(place, attempts)
    assert "connections" not in sentences
    assert results["socket"] == ""
    assert "Permission" in results["open"]


# What a copy holds.


def replicate(place, **options):
    made = Replica(str(place / "trial"), [place / "project"], **options)
    return made.make(), Path(f"{made.root}{place}")


def test_links_stay_in_the_copy_or_lead_to_the_original(place):
    (place / "project" / "whole").symlink_to(place / "project" / "inner")
    (place / "project" / "nowhere").symlink_to("missing")
    _, copy = replicate(place)
    project = copy / "project"
    assert (project / "in").resolve() == project / "f"
    assert (project / "whole").resolve() == project / "inner"
    assert (project / "out").resolve() == place / "beside"
    assert (project / "f").stat().st_ino != (place / "project" / "f").stat().st_ino
    assert (copy / "beside").resolve() == place / "beside"
    assert not (project / "nowhere").exists()


@pytest.mark.parametrize("options", [{"follows_links": True}, {"lent": "beside"}])
def test_what_links_lead_to_is_copied_where_a_write_would_go_through(place, options):
    (place / "beside" / "up").symlink_to("..")
    if "lent" in options:
        options = {"lent": str(place / options["lent"])}
    else:
        (place / "beside" / "up").unlink()
    _, copy = replicate(place, **options)
    assert (copy / "project" / "out").resolve() == copy / "project" / "out"
    assert (copy / "project" / "out" / "f").read_text() == "mine"


def test_what_a_training_does_not_write_is_no_part_of_the_copy(place):
    for name in (".git", "__pycache__", "perfkit-findings", "node_modules", "env"):
        (place / "project" / name).mkdir()
        (place / "project" / name / "f").touch()
    (place / "project" / "env" / "pyvenv.cfg").touch()
    os.mkfifo(place / "project" / "pipe")
    _, copy = replicate(place)
    project = copy / "project"
    assert sorted(os.listdir(project)) == sorted(
        [".git", "env", "node_modules", "f", "in", "inner", "out"]
    )
    assert all((project / n).is_symlink() for n in (".git", "env", "node_modules"))


def test_a_copy_that_would_be_too_large_has_links_and_says_to_what(place, monkeypatch):
    monkeypatch.setattr(guard, "LARGEST_BYTES", 300_000)
    monkeypatch.setattr(guard, "LARGE_FILE_BYTES", 100_000)
    for name in ("images/a", "images/b"):
        (place / "project" / name).mkdir(parents=True)
        for number in range(10):
            (place / "project" / name / str(number)).touch()
    (place / "project" / "weights").write_bytes(bytes(150_000))
    labels, copy = replicate(place)
    assert labels == ["images", "files of 0 MB and more"]
    assert (copy / "project" / "images").is_symlink()
    assert (copy / "project" / "weights").is_symlink()
    assert not (copy / "project" / "f").is_symlink()
    assert len(os.listdir(copy / "project" / "images" / "a")) == 10


def test_a_home_is_never_copied_and_has_what_lies_in_it(place, monkeypatch):
    monkeypatch.setenv("HOME", str(place))
    made = Replica(str(place / "trial"), [place, place / "project" / "inner"])
    made.make()
    copy = Path(f"{made.root}{place}")
    assert (copy / "beside").is_symlink()
    assert not (copy / "project").is_symlink()
    assert not (copy / "project" / "inner").is_symlink()
