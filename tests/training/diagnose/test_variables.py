import os
from dataclasses import replace

import pytest

from perfkit.engine.launcher import read_early
from perfkit.training.diagnose import verdict
from perfkit.training.diagnose.maker import InFile, assigned
from perfkit.training.diagnose.settings import set_late
from tests.training.diagnose.diagnosed import diagnosis

FILE = """
import os
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("KMP_BLOCKTIME", "1")
os.putenv("XLA_FLAGS", "--x")
os.environ["TF_UNKNOWN"] = str(len("it takes running the file"))
os.environ["DATA"] = "no library's"
if True:
    os.environ["TF_MAYBE"] = "1"

def make_training():
    os.environ["TF_IN_FUNCTION"] = "1"
    import tensorflow as tf
    os.environ["TF_TOO_LATE"] = "1"

def another():
    os.environ["TF_ANOTHER"] = "1"
"""


@pytest.fixture
def environ(monkeypatch):
    """An environment that is as before once the test is over."""
    monkeypatch.setattr(os, "environ", {"KMP_BLOCKTIME": "0"})
    return os.environ


def test_what_a_file_plainly_sets_before_its_import_is_read(tmp_path, environ):
    path = tmp_path / "train.py"
    path.write_text(FILE)
    assert assigned(InFile(str(path), "make_training")) == {
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "OMP_NUM_THREADS": "1",
        "XLA_FLAGS": "--x",
        "TF_IN_FUNCTION": "1",
    }
    for text in ("import keras.layers\n" + FILE, "this is no Python"):
        path.write_text(text)
        assert assigned(InFile(str(path), "make_training")) == {}


def test_what_is_set_too_late_is_said_by_name(environ):
    loaded = read_early(environ)
    environ |= {"TF_LATE": "1", "CUDA_VISIBLE_DEVICES": "", "DATA": "x"}
    environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    del environ["KMP_BLOCKTIME"]
    late = set_late(loaded)
    assert late == ("KMP_BLOCKTIME", "TF_LATE")
    found = replace(diagnosis(), facts={"late": list(late)})
    (said,) = [one for one in verdict.because(found) if "TF_LATE" in one]
    assert said.startswith("KMP_BLOCKTIME, TF_LATE were set after TensorFlow")
    assert ": set them before" in said
