"""A real JupyterLab as ``perfkit.lab`` starts it, for tests to look at."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import perfkit
import perfkit.lab

SETTINGS = Path(perfkit.lab.__file__).parent / "settings"
ADDRESS = re.compile(r"(http://[0-9.]+:(\d+))(/\S*)\?token=(\w+)")


@dataclasses.dataclass
class Lab:
    """A running server: where it is, what it shows, what it has said so far."""

    root: Path
    home: Path
    process: subprocess.Popen
    said: list
    origin: str = ""
    path: str = ""
    token: str = ""

    @property
    def url(self):
        """What a browser is opened on."""
        return f"{self.origin}{self.path}?token={self.token}"

    def get(self, path, *, token=True, method="GET"):
        """Ask for a path; gives the status and the body."""
        request = urllib.request.Request(self.origin + path, method=method)
        if token:
            request.add_header("Authorization", f"token {self.token}")
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    def forget(self):
        """End every kernel and bring back the layout of the first start."""
        for session in json.loads(self.get("/api/sessions")[1]):
            self.get(f"/api/sessions/{session['id']}", method="DELETE")
        for layout in self.home.rglob("*.jupyterlab-workspace"):
            shutil.copyfile(SETTINGS / "workspace.json", layout)


@contextlib.contextmanager
def running_lab(root, home, *options, **environment):
    """Start a server on ``root`` with ``home`` as the user's home folder; end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "perfkit", "lab", str(root), "--no-browser", *options],
        env=_environment(home) | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    lab = Lab(root, home, process, [])
    try:
        _read_address(lab)
        _is_reached(lab)
        yield lab
    finally:
        process.terminate()
        process.wait(timeout=60)


def _read_address(lab):
    """Wait until it says where it is, which is before anybody can reach it there."""
    for line in lab.process.stderr:
        lab.said.append(line)
        if found := ADDRESS.search(line):
            lab.origin, _, lab.path, lab.token = found.groups()
            break
    else:
        raise AssertionError("No address; it said: " + "".join(lab.said))
    rest = threading.Thread(target=lambda: lab.said.extend(lab.process.stderr))
    rest.daemon = True
    rest.start()


def _is_reached(lab):
    """Wait until it can be reached."""
    port = int(lab.origin.rpartition(":")[2])
    while lab.process.poll() is None:
        with (
            contextlib.suppress(ConnectionRefusedError),
            socket.create_connection(("127.0.0.1", port)),
        ):
            return


def _environment(home):
    """A user whose home is ``home`` and who has set nothing about Jupyter."""
    mine = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "XDG"))}
    source = str(Path(perfkit.__file__).resolve().parent.parent)
    return mine | {"HOME": str(home), "PYTHONPATH": source}
