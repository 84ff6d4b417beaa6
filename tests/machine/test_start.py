import errno
import os
import subprocess
import sys
from unittest.mock import Mock

import psutil
import pytest

from perfkit.machine.starting import child, started, watched
from tests.engine.trials import WITHOUT, are_gone

# A TensorFlow that computes with NumPy on a CPU and a GPU that are not there; what
# its GPU does wrong stands in a variable.
SCRIPTED = """
import contextlib, os, sys
from types import SimpleNamespace
import numpy as np

fault = os.environ.get("FAULT", "")
print("2026-11-21 02:28:49.953958: W a.cc:1] ptxas too old", file=sys.stderr)
print("level", os.environ.get("TF_CPP_MIN_LOG_LEVEL"), "Can't find libdevice directory")
if fault == "import":
    raise TypeError("Descriptors cannot be created directly in /home/ada/lib/x.py")
if fault == "part":
    raise ImportError("cannot import name 'ops'", name="tensorflow")
if fault.isdigit():
    os.kill(os.getpid(), int(fault))
if fault == "exit":
    print("out of ideas", file=sys.stderr, flush=True)
    os._exit(7)


@contextlib.contextmanager
def device(name):
    where.append(name.strip("/"))
    try:
        yield
    finally:
        where.pop()


class Result:
    def __init__(self, value):
        on = "CPU:0" if fault == "elsewhere" else where[-1]
        self.device = f"/job:localhost/replica:0/task:0/device:{on}"
        broken = fault == "zeros" and where[-1] == "GPU:0"
        self.value = np.zeros_like(value) if broken else value
    def numpy(self):
        return self.value.astype(np.float32)


def matmul(left, right):
    if fault == "mac":
        sys.platform = "darwin"
    if fault == "kernel" and where[-1] == "GPU:0":
        raise errors.OpError("no kernel image is available in /home/ada/x.cc:3")
    return Result(left @ right)


def conv2d(images, kernels, strides, padding):
    from perfkit.machine.starting.child import convolved
    return Result(convolved(images, kernels))


def devices():
    if fault == "devices":
        raise RuntimeError("CUDA runtime implicit initialization on GPU:0 failed.")
    return [SimpleNamespace(name=f"/device:{name}:0") for name in ("CPU", "GPU")]


def function(call, jit_compile):
    if fault in ("xla", "mac"):
        print("Unknown flag in XLA_FLAGS: --x", file=sys.stderr, flush=True)
        os.abort()
    return lambda number: Result(number)


where = ["CPU:0"]
constant = np.asarray
errors = SimpleNamespace(OpError=type("OpError", (Exception,), {}))
nn = SimpleNamespace(conv2d=conv2d)
linalg = SimpleNamespace(matmul=matmul)
config = SimpleNamespace(
    set_soft_device_placement=lambda on: None,
    list_physical_devices=lambda kind: [],
    list_logical_devices=devices,
)
"""


@pytest.fixture
def scripted(tmp_path):
    """Starts the scripted TensorFlow with a fault."""
    package = tmp_path / "tensorflow"
    package.mkdir()
    (package / "__init__.py").write_text(SCRIPTED)

    def start(fault="", limit=60, **more):
        told = {"PYTHONPATH": str(tmp_path), "FAULT": fault}
        return started(limit, variables=os.environ | told | more)

    return start


def test_tensorflow_starts_here_and_computes_right():
    real = started()
    assert real.problem == ""
    assert real.seconds > 0
    assert "CPU:0" in real.devices
    done = {(p.device, p.computation) for p in real.proofs if child.is_right(p)}
    kinds = (child.CONVOLUTION, child.PRODUCT)
    assert done == {(device, kind) for device in real.devices for kind in kinds}


def test_a_device_that_computes_right_is_proved_and_its_log_is_on(scripted):
    start = scripted(TF_CPP_MIN_LOG_LEVEL="3", TF_CPP_MAX_VLOG_LEVEL="9")
    assert start.problem == ""
    assert start.devices == ("CPU:0", "GPU:0")
    assert len(start.proofs) == 4
    assert all(map(child.is_right, start.proofs))
    # Whatever the variables say; and prints do no harm.
    lines = {one.line for one in start.said}
    assert {"level 0 Can't find libdevice directory", "ptxas too old"} <= lines
    # There Keras never asks for XLA on a GPU.
    assert scripted("mac").problem == ""


@pytest.mark.parametrize(
    ("fault", "wrong"),
    [
        ("zeros", [("GPU:0", 1.0), ("GPU:0", 1.0)]),
        # A silent fall back to another device computes right.
        ("elsewhere", [("CPU:0", 0.0), ("CPU:0", 0.0)]),
        # One computation that fails leaves the others.
        ("kernel", [("", None)]),
    ],
)
def test_a_gpu_that_computes_wrongly_or_not_at_all_is_caught(scripted, fault, wrong):
    proofs = scripted(fault).proofs
    assert len(proofs) == 4
    found = [proof for proof in proofs if not child.is_right(proof)]
    assert {proof.device for proof in found} == {"GPU:0"}
    assert [(p.ran_on, p.error and round(p.error, 2)) for p in found] == wrong
    if fault == "kernel":
        assert found[0].computation == "matrix product"
        assert "no kernel image is available in <path>" in found[0].problem


XLA = "SIGABRT while compiling something tiny with XLA; its last words: Unknown flag"


@pytest.mark.parametrize(
    ("fault", "problem", "proofs"),
    [
        # A compiler that ends the process leaves what was proved.
        ("xla", f"TensorFlow's process was ended by {XLA} in XLA_FLAGS", 4),
        *((*row, 0) for row in (
        ("import", "Failed while importing TensorFlow: TypeError: Descriptors cannot "
         "be created directly in <path>"),
        ("part", "Failed while importing TensorFlow: ImportError: cannot import name"),
        ("40", "TensorFlow's process was ended by signal 40 while importing"),
        ("4", "TensorFlow's process was ended by SIGILL (this processor lacks"),
        ("9", "TensorFlow's process was ended by SIGKILL"),
        ("exit", "TensorFlow's process ended with exit code 7 while importing "
         "TensorFlow; its last words: out of ideas"),
        ("devices", "Failed while preparing its devices: RuntimeError: CUDA runtime"),
        )),
    ],
)  # fmt: skip
@pytest.mark.fault(
    "doctor",
    "SIGKILL, SIGSEGV",
    sees="The doctor names the signal, and says what TensorFlow was doing.",
)
def test_what_goes_wrong_is_said_and_what_was_told_kept(
    scripted, fault, problem, proofs
):
    start = scripted(fault, XLA_FLAGS="--x")
    assert start.problem.startswith(problem)
    assert len(start.proofs) == proofs
    assert all(map(child.is_right, start.proofs))
    assert "ptxas too old" in {one.line for one in start.said}


NOISE = 'print(\'42\\n[1]\\n{"seconds": 2.0}\\n{"devices": ["CPU\')'
HANGS = [sys.executable, "-c", "import threading; threading.Event().wait()"]


@pytest.mark.parametrize(
    ("how", "problem", "seconds"),
    [
        ({"limit": 0.5, "command": HANGS}, "Ended after 500 ms, while starting Python.",
         None),
        ({"command": ["no-such-program"]},
         "No process could be started (No such file or directory).", None),
        # What is no message of ours is no answer.
        ({"command": [sys.executable, "-c", NOISE]},
         "TensorFlow's process ended with exit code 0", 2.0),
        ({"variables": os.environ | {"PYTHONPATH": str(WITHOUT)}},
         "TensorFlow is not installed in this environment; install it with `", None),
    ],
    ids=["hangs", "is not there", "tells nonsense", "has no TensorFlow"],
)  # fmt: skip
def test_what_is_no_tensorflow_is_said(how, problem, seconds):
    start = started(**how)
    assert start.problem.startswith(problem)
    assert (start.seconds, start.devices) == (seconds, ())


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EMFILE])
@pytest.mark.fault(
    "doctor", "fork failure, open files", sees="The doctor says why no process starts."
)
def test_a_process_that_the_system_refuses_is_said(monkeypatch, number):
    refuse = Mock(side_effect=OSError(number, os.strerror(number)))
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert started().problem == f"No process could be started ({os.strerror(number)})."


@pytest.mark.fault("doctor", "kernel killed", sees="The doctor's process ends as well.")
def test_the_process_ends_when_nobody_waits_for_it_any_more(tmp_path):
    (tmp_path / "tensorflow.py").write_text(
        "import threading; print('here', flush=True); threading.Event().wait()"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", child.__file__],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr.readline() == "here\n"
    process.stdin.close()
    assert process.wait() == 1
    process.stderr.close()


# How any process is watched.


def python(code, limit=60):
    return watched([sys.executable, "-S", "-c", code], os.environ, limit)


def test_what_it_started_ends_with_it():
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-S', '-c',"
        "'import threading; threading.Event().wait()']); print(p.pid)"
    )
    output, _, _ = python(code)
    assert are_gone([p for p in psutil.process_iter() if p.pid == int(output)])


def test_an_interrupt_ends_it_and_goes_on(monkeypatch):
    begun = []

    class Interrupted(subprocess.Popen):
        def wait(self, timeout=None):
            begun.append(self)
            if timeout == 60:
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        python("import threading; threading.Event().wait()")
    assert begun[0].returncode < 0
