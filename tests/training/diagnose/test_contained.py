"""Whatever a script tries with files or the network, what is the user's stays as it is.

One script makes all attempts, each on a file of its own, on its way to its training and
in it. It is looked at as every trial is.
"""

import contextlib
import functools
import os
import select
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from perfkit.engine.processes import in_process
from perfkit.training.diagnose import layers, look
from perfkit.training.diagnose.failure import PROBLEM
from perfkit.training.diagnose.maker import contain, maker
from tests.training.diagnose.test_script import has_layers

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
            spoil(self.at)
            print("did", self.at, flush=True)

def attempt(name, code):
    at = places[name]
    try:
        exec(code, globals() | locals())
        print("did", name, flush=True)
    except Exception as error:
        print("could not", name, repr(error), flush=True)

for name, code in {**changes, **sends}.items():
    attempt(name, code)
own = socket.create_server(("127.0.0.1", 0))
socket.create_connection(own.getsockname(), 5).close()
print("did reach itself", flush=True)
atexit.register(spoil, places["atexit"])
given = [
    eval(code, globals() | {"at": places[name]}) for name, code in callbacks.items()
]
model.fit(x, y, batch_size=16, epochs=50, verbose=0, callbacks=given)
spoil(places["behind it"])
"""
NAMES = [*CHANGES, *CALLBACKS, "atexit", "behind it", "in /var/tmp"]


@pytest.fixture(autouse=True, scope="module")
def _needs_layers():
    if not has_layers():
        pytest.skip("this system has no layers for users")


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
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
        made = maker(project / "train.py", [told])
        ended = in_process(functools.partial(look.look, made), 120)
        yield root, places, ended, heard()


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


def test_the_script_is_understood_and_its_attempts_are_made(tried):
    _, places, ended, _ = tried
    assert PROBLEM not in ended.notes
    assert look.FACTS in ended.notes
    changed = [name for name in CHANGES if f"did {name}\n" not in ended.tail]
    assert changed == [], ended.tail
    by_hand = ("own, by epoch", "own, as it begins")
    assert [n for n in by_hand if f"did {places[n]}\n" not in ended.tail] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_the_users_is_as_it_was(tried, name):
    _, places, _, _ = tried
    place = places[name]
    assert os.listdir(place.parent) == ["file"]
    assert place.read_text() == MINE
    assert place.stat().st_mode & 0o600 == 0o600


def test_the_folder_of_the_script_is_as_it_was(tried):
    project = tried[0] / "project"
    assert sorted(os.listdir(project)) == ["best.keras", "train.py"]
    assert (project / "best.keras").read_text() == MINE


@pytest.mark.parametrize("name", SENDS)
def test_nobody_hears_of_it(tried, name):
    _, _, ended, reached = tried
    assert f"could not {name} " in ended.tail
    assert reached == []
    assert "did reach itself" in ended.tail


def test_a_function_writes_and_sends_as_little(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at = tmp_path / "best.keras"
    at.write_text(MINE)
    with listening() as (port, heard):

        def makes():
            at.write_text("x")
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 5).send(b"x")
            raise ValueError(f"it read {at.read_text()}")

        told = in_process(functools.partial(look.look, makes), 60).notes[PROBLEM]
        assert heard() == []
    assert "it read x" in told
    assert at.read_text() == MINE


@pytest.mark.parametrize("online", [False, True])
def test_who_lets_a_training_reach_the_network_says_so(online, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(layers, "contain", lambda *_, online: seen.append(online))
    monkeypatch.setenv("PERFKIT_ONLINE", "1" if online else "")
    contain(lambda: None)
    assert seen == [online]


@pytest.mark.parametrize("online", [False, True])
def test_a_network_of_its_own_has_nobody_in_it(online, tmp_path):
    code = (
        "import sys; from pathlib import Path; "
        "from perfkit.training.diagnose import layers; "
        "before = layers.is_offline(); "
        f"layers.contain([Path(sys.argv[1])], online={online}); "
        "print(before, layers.is_offline())"
    )
    run = [sys.executable, "-c", code, str(tmp_path)]
    said = subprocess.run(run, capture_output=True, text=True)
    before, after = said.stdout.split()
    assert after == (before if online else "True"), said.stderr


def test_a_script_that_wants_the_network_is_told_what_to_do(tmp_path):
    wants = (
        "import urllib.request, keras\n"
        "urllib.request.urlopen('http://example.org/data.csv')\nkeras.Model().fit(1, 2)"
    )
    (tmp_path / "train.py").write_text(wants)
    notes = in_process(
        functools.partial(look.look, maker(tmp_path / "train.py")), 60
    ).notes
    assert "run it once by itself" in notes[PROBLEM]
