import json
import shutil
import socket
import sys
from pathlib import Path

import psutil
import pytest

from tests.lab.server import running_lab

SHIPPED = Path(__file__).resolve().parents[2] / "notebooks"
OTHER_KERNEL = {
    "argv": ["/nowhere/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
    "display_name": "Another Python",
    "language": "python",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server of a user who has kernels, settings and an empty token of their own.

    It shows a checkout, and the port that it is to have is taken.
    """
    home = tmp_path_factory.mktemp("home")
    for name in ("python3", "another"):
        kernel = home / ".local" / "share" / "jupyter" / "kernels" / name
        kernel.mkdir(parents=True)
        (kernel / "kernel.json").write_text(json.dumps(OTHER_KERNEL))
    config = home / ".jupyter" / "jupyter_server_config.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"ServerApp": {"ip": "0.0.0.0", "port": 1}}))
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(SHIPPED, root / "notebooks")
    variables = {"JUPYTER_TOKEN": "", "JUPYTER_IP": "0.0.0.0"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with running_lab(root, home, "--port", port, **variables) as server:
            assert not server.origin.endswith(f":{port}")
            yield server


def test_a_request_without_the_token_is_refused_and_there_are_no_terminals(lab):
    assert lab.get("/api/contents", token=False)[0] == 403
    assert lab.get("/api/contents")[0] == 200
    assert lab.get("/api/terminals")[0] == 404


def test_it_listens_on_the_loopback_address_only(lab):
    sockets = psutil.Process(lab.process.pid).net_connections(kind="inet")
    heard = {s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN}
    assert heard == {"127.0.0.1"}


def test_the_only_kernel_is_the_python_that_runs_it(lab):
    specs = json.loads(lab.get("/api/kernelspecs")[1])
    assert specs["default"] == "python3"
    assert list(specs["kernelspecs"]) == ["python3"]
    assert specs["kernelspecs"]["python3"]["spec"]["argv"][0] == sys.executable


def test_of_a_checkout_nothing_but_the_copies_can_be_opened(lab):
    assert lab.path == "/lab/tree/00_start_here.ipynb"
    listed = json.loads(lab.get("/api/contents")[1])["content"]
    shown = {entry["name"] for entry in listed if entry["type"] == "notebook"}
    assert shown == {path.name for path in SHIPPED.glob("*.ipynb")}
    assert not {"notebooks", "my-notebooks"} & {entry["name"] for entry in listed}


def test_the_users_own_jupyter_is_left_as_it_was(lab):
    theirs = {".jupyter", ".local/share/jupyter"}
    files = {
        str(path.relative_to(lab.home))
        for folder in theirs
        for path in (lab.home / folder).rglob("*")
        if path.is_file()
    }
    assert files == {
        ".jupyter/jupyter_server_config.json",
        ".local/share/jupyter/kernels/python3/kernel.json",
        ".local/share/jupyter/kernels/another/kernel.json",
    }
