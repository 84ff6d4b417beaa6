"""Whatever a script tries with files or the network, what is the user's stays as it is.

One script makes all attempts, each on a file of its own, on its way to its training and
in it. It is looked at as every trial is: sealed, in layers, and guarded, in a copy of
its folder beside which nothing may be written.
"""

import contextlib
import os
import select
import socket
import tempfile
from pathlib import Path

import pytest

from perfkit.engine.launcher import launcher
from perfkit.training.diagnose import guard, layers, look
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.failure import PROBLEM, TRACEBACK
from perfkit.training.diagnose.maker import contain, maker
from tests.training.diagnose.test_script import has_layers, in_layers, looked

MINE = "mine"
# Code that changes the file ``at``, which lies in no folder of the script.
CHANGES = {
    "open": "open(at, 'w').write('x')",
    "in place": "open(at, 'r+').write('x')",
    "truncate": "os.truncate(at, 0)",
    "remove": "os.remove(at)",
    "rename": "os.rename(at, at + '.old')",
    "replace": "open(at + '.new', 'w').close(); os.replace(at + '.new', at)",
    "rmtree": "shutil.rmtree(os.path.dirname(at))",
    "a folder anew": (
        "d = os.path.dirname(at); shutil.rmtree(d); os.makedirs(d + '/runs'); "
        "np.save(d + '/runs/x', x)"
    ),
    "through a link": "os.symlink(at, 'link'); open('link', 'w').write('x')",
    "through proc": "open('/proc/self/root' + at, 'w').write('x')",
    "memory map": "np.memmap(at, mode='r+', shape=1)[:] = 7",
    "tf.io.gfile": "tf.io.gfile.GFile(at, 'w').write('x')",
    "tf.train.Checkpoint": "tf.train.Checkpoint(m=model).write(at); os.remove(at)",
    "a shell": "subprocess.run(['sh', '-c', 'echo x > \"$0\"', at], check=True)",
    "left behind": (
        "subprocess.Popen(['sh', '-c', 'echo x > \"$0\"', at], "
        "start_new_session=True, env={}).wait()"
    ),
    "chmod": "os.chmod(at, 0)",
    "a shell's chmod": "subprocess.run(['chmod', '0', at], check=True)",
    "a thread": "run(threading.Thread(target=lambda: open(at, 'w').write('x')))",
    "a process": "run(multiprocessing.Process(target=spoil, args=(at,)))",
}
# The same, once it trains.
CALLBACKS = {
    "ModelCheckpoint": "ModelCheckpoint(at + '.keras', save_freq=1)",
    "ModelCheckpoint in the folder": "ModelCheckpoint('best.keras', save_freq=1)",
    "CSVLogger": "CSVLogger(at)",
    "BackupAndRestore": "BackupAndRestore(os.path.dirname(at), save_freq=1)",
    "own, by epoch": "Own(at, 'on_epoch_end')",
    "own, as it begins": "Own(at, 'on_train_begin')",
    "own, as it ends": "Own(at, 'on_train_end')",
}
# What would reach somebody, at ``port`` of this machine.
SENDS = {
    "TCP": "socket.create_connection(('127.0.0.1', port), 5).send(b'x')",
    "HTTP": "urllib.request.urlopen(f'http://127.0.0.1:{port}/', b'x', 5)",
    "UDP": (
        "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port)); "
        "raise OSError('nobody says whether it came')"
    ),
    "an abstract socket": "socket.socket(socket.AF_UNIX).connect(f'\\0perfkit-{port}')",
}
SCRIPT = """
import atexit, multiprocessing, os, shutil, socket, subprocess, sys
import threading, urllib.request
import keras, numpy as np, tensorflow as tf
from keras.callbacks import *

places, port, changes, callbacks, sends = eval(sys.argv[1])
x, y = np.ones((64, 4), "float32"), np.ones((64, 1), "float32")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.build((None, 4))

def spoil(at, *_, **__):
    open(at, "w").write("x")

def run(what):
    what.start()
    what.join()

class Own(Callback):
    def __init__(self, at, hook):
        super().__init__()
        self.at = at
        setattr(self, hook, self.does)

    def does(self, *_, **__):
        if open(self.at).read() != "x":
            try:
                spoil(self.at)
                print("did", self.at, flush=True)
            except PermissionError:
                print("could not", self.at, flush=True)

def attempt(name, code):
    at = places[name]
    try:
        exec(code, globals() | locals())
        print("did", name, flush=True)
    except Exception as error:
        print("could not", name, repr(error), flush=True)

for name, code in {**changes, **sends}.items():
    attempt(name, code)
try:
    own = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(own.getsockname(), 5).close()
    print("did reach itself", flush=True)
except PermissionError:
    print("could not reach itself", flush=True)
atexit.register(spoil, places["atexit"])
given = [
    eval(code, globals() | {"at": places[name]}) for name, code in callbacks.items()
]
model.fit(x, y, batch_size=16, epochs=50, verbose=0, callbacks=given)
spoil(places["behind it"])
"""
NAMES = [*CHANGES, *CALLBACKS, "atexit", "behind it", "in /var/tmp"]
SEALED, GUARDED = "sealed", "guarded"
# What may be done to a file of the user's all the same: Landlock knows no such right.
NOT_HELD = {SEALED: set(), GUARDED: {"a shell's chmod"}}


@pytest.fixture(scope="module", params=[SEALED, GUARDED])
def level(request):
    """How a training is kept from files, for all that is started meanwhile."""
    if request.param == SEALED and not has_layers():
        pytest.skip("this system has no layers for users")
    if request.param == GUARDED and guard._landlock_version() < 6:
        pytest.skip("this system has not all of Landlock")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(guard.FORCED, "1" if request.param == GUARDED else "")
        launcher().load_with({})
        yield request.param
    launcher().load_with({})


@pytest.fixture(scope="module")
def tried(tmp_path_factory, level):
    """The places of the files, what the script said, and what reached somebody."""
    root = tmp_path_factory.mktemp("contained")
    project = root / "project"
    project.mkdir()
    (project / "best.keras").write_text(MINE)
    (project / "train.py").write_text(SCRIPT)
    places = {name: root / "files" / str(n) / "file" for n, name in enumerate(NAMES)}
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="perfkit-test-") as shared,
        contextlib.chdir(project),
        listening() as (port, heard),
    ):
        places["in /var/tmp"] = Path(shared, "file")
        for place in places.values():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(MINE)
        given = {name: str(place) for name, place in places.items()}
        given |= dict.fromkeys(SENDS, "")
        changes = CHANGES | {"in /var/tmp": CHANGES["open"]}
        told = repr((given, port, changes, CALLBACKS, SENDS))
        yield root, places, looked(maker(project / "train.py", [told]), 120), heard()


@contextlib.contextmanager
def listening():
    """A port of this machine, and who has heard of it: TCP, UDP, an abstract socket."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(type=socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as local,
    ):
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        local.bind(f"\0perfkit-{port}")
        local.listen()
        # Who connects or sends waits in a queue until somebody looks.
        yield port, lambda: select.select([tcp, udp, local], [], [], 0)[0]


def test_the_network_would_be_heard_of():
    with listening() as (port, heard):
        assert heard() == []
        for code in ("TCP", "UDP", "an abstract socket"):
            with contextlib.suppress(OSError):
                exec(SENDS[code], {"socket": socket, "port": port})
        assert len(heard()) == 3


def test_the_script_is_understood_and_its_attempts_are_made(tried, level):
    _, places, ended, _ = tried
    assert PROBLEM not in ended.notes
    assert look.FACTS in ended.notes
    by_hand = [str(places[name]) for name in ("own, by epoch", "own, as it begins")]
    missing = [n for n in (*CHANGES, *by_hand) if f"did {n}\n" not in ended.tail]
    if level == SEALED:
        assert missing == [], ended.tail
    # What fails is told, and a process or a thread fails by itself.
    assert [name for name in missing if f"could not {name}" not in ended.tail] == []
    assert (look.UNCONTAINED in ended.notes) == (level == GUARDED)
    # Sockets of a network of its own and those of this machine's cannot be told apart.
    result = "did" if level == SEALED else "could not"
    assert f"{result} reach itself" in ended.tail


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_the_users_is_as_it_was(tried, level, name):
    _, places, _, _ = tried
    place = places[name]
    assert os.listdir(place.parent) == ["file"]
    is_changed = place.stat().st_mode & 0o600 != 0o600
    assert is_changed == (name in NOT_HELD[level])
    if is_changed:
        place.chmod(0o600)
    assert place.read_text() == MINE


def test_the_folder_of_the_script_is_as_it_was_and_nobody_hears_of_it(tried):
    root, _, ended, reached = tried
    assert sorted(os.listdir(root / "project")) == ["best.keras", "train.py"]
    assert (root / "project" / "best.keras").read_text() == MINE
    assert [name for name in SENDS if f"could not {name} " not in ended.tail] == []
    assert reached == []


def test_a_function_writes_and_sends_as_little(tmp_path, monkeypatch, level):
    monkeypatch.chdir(tmp_path)
    at = tmp_path / "best.keras"
    at.write_text(MINE)
    with listening() as (port, heard):

        def makes():
            at_home = at if level == SEALED else Path("best.keras")
            at_home.write_text("x")
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 5).send(b"x")
            raise ValueError(f"it read {at_home.read_text()}")

        told = looked(makes).notes[PROBLEM]
        assert heard() == []
    assert "it read x" in told
    assert at.read_text() == MINE


OWN_FOLDER = """
import os, sys
import keras, numpy as np
import data

files = [__file__, sys.argv[0], data.__file__]
paths = [data.beside(file, str(number)) for number, file in enumerate(files)]
for path in ["log.txt", os.path.abspath("runs/log.txt"), sys.argv[1], *paths]:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    open(path, "a").write("x")
    assert open(path).read() == "x", path
assert open("../given.txt").read() == "mine"
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data.rows(), epochs=3)
"""
DATA = """
import os
import numpy as np, tensorflow as tf

def beside(file, name):
    return os.path.join(os.path.dirname(os.path.abspath(file)), "out", name)

def rows():
    x, y = np.ones((640, 4), "f4"), np.ones((640, 1), "f4")
    return (
        tf.data.Dataset.from_tensor_slices((x, y))
        .shuffle(9)
        .batch(
            16)
    )
"""


def test_a_script_reads_what_it_has_written_and_its_files_keep_their_names(
    tmp_path, monkeypatch, level
):
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "given.txt").write_text(MINE)
    (folder / "train.py").write_text(OWN_FOLDER)
    (folder / "data.py").write_text(DATA)
    monkeypatch.chdir(folder)
    notes = looked(maker("train.py", [str(folder / "runs" / "argument.txt")])).notes
    assert PROBLEM not in notes, notes
    # Each stage has the line that made it.
    lines = DATA.splitlines()
    at = [stage["line"] for stage in Facts(**notes[look.FACTS]).stages]
    assert [one[:2] for one in at] == [["data.py", 0]] * 3
    for (*_, line), text in zip(at, ("slices(", ".shuffle(9)", ".batch("), strict=True):
        assert text in lines[line - 1]
    assert sorted(os.listdir(folder)) == ["data.py", "train.py"]


@pytest.fixture
def noted(tmp_path, monkeypatch, level):
    """Notes of a look at a script of these lines, whose fit comes last."""
    monkeypatch.chdir(tmp_path)

    def look_at(*lines):
        text = "\n".join(["import keras", *lines, "keras.Model().fit(1, 2)"])
        (tmp_path / "train.py").write_text(text)
        return looked(maker("train.py")).notes

    return look_at


def test_what_a_script_raises_names_the_users_own_files(tmp_path, noted):
    (tmp_path / "other.py").write_text("def fails(path):\n    open(path)\n")
    fails = "other.fails(os.path.abspath('missing.csv'))"
    note = noted("import os, other", fails)[TRACEBACK]
    files = [file for file, *_ in note["frames"]]
    assert files == [str(tmp_path / name) for name in ("train.py", "other.py")]
    assert str(tmp_path / "missing.csv") in note["said"]
    assert "/files/" not in note["said"]


def test_who_is_refused_a_write_or_the_network_is_told_what_to_do(
    tmp_path, noted, level
):
    at = tmp_path / "log.txt"
    problem = noted(f"open({str(at)!r}, 'w').write('x')")[PROBLEM]
    assert ("use relative paths" in problem) == (level == GUARDED)
    assert not at.exists()
    reads = "urllib.request.urlopen('http://example.org/data.csv')"
    problem = noted("import urllib.request", reads)[PROBLEM]
    assert "run it once by itself" in problem


@pytest.mark.parametrize("online", [False, True])
def test_who_lets_a_training_reach_the_network_says_so(online, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(layers, "refusal", lambda *_, **__: "")
    monkeypatch.setattr(layers, "contain", lambda *_, online: seen.append(online))
    monkeypatch.delenv(guard.FORCED, raising=False)
    monkeypatch.setenv("PERFKIT_ONLINE", "1" if online else "")
    contain(lambda: None)
    assert seen == [online]


@pytest.mark.skipif("not has_layers()", reason="this system has no layers for users")
@pytest.mark.parametrize("online", [False, True])
def test_a_network_of_its_own_has_nobody_in_it(online, tmp_path):
    code = (
        "before = layers.is_offline(); "
        f"layers.contain(folders, online={online}); "
        "print(before, layers.is_offline())"
    )
    said = in_layers(code, tmp_path)
    before, after = said.stdout.split()
    assert after == (before if online else "True"), said.stderr


@pytest.mark.skipif("not has_layers()", reason="this system has no layers for users")
def test_who_has_no_home_is_sealed_and_writes_what_is_temporary(tmp_path):
    code = (
        "layers.contain(folders); Path(tempfile.gettempdir(), 'new').touch(); "
        "(folders[0] / 'new').touch(); print('written')"
    )
    project, temporary = tmp_path / "project", tmp_path / "temporary"
    project.mkdir()
    temporary.mkdir()
    # As Docker has it for a user that the image does not know.
    variables = os.environ | {"HOME": "/", "TMPDIR": str(temporary)}
    said = in_layers(code, project, env=variables)
    assert said.stdout == "written\n", said.stderr
    assert (temporary / "new").exists()
    assert not (project / "new").exists()
