"""What several folders of tests share."""

import contextlib
import functools
import importlib
import math
import os
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import cloudpickle
import pytest

import perfkit.questions
from perfkit.machine.limits import cores_granted

# A worker that has loaded TensorFlow holds most of a gigabyte.
MOST_WORKERS = 8
GUILTY = Path(__file__).parent / "guilty"
# Findings made by hand, `made.finding()`, for all who read findings.
sys.path.append(str(Path(__file__).parent / "findings"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    return min(math.ceil(cores_granted(Path("/"), os.cpu_count() or 1)), MOST_WORKERS)


def is_worker(config):
    return hasattr(config, "workerinput")


def pytest_configure(config):
    # What runs of tests see is nothing that the machine's own runs should know.
    state = tempfile.mkdtemp(prefix="perfkit-state-")
    config.add_cleanup(functools.partial(shutil.rmtree, state, ignore_errors=True))
    os.environ["XDG_STATE_HOME"] = state
    if is_worker(config):
        # It ignores interrupts, and so would all that tests start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # What measures takes a lock in this folder, so only tests of one worker wait.
        os.environ["TMPDIR"] = tempfile.tempdir = config.workerinput["tmp"]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    folder = node.workerinput["tmp"] = tempfile.mkdtemp(prefix="perfkit-")
    # Not by the worker: what it has started ends after it.
    removed = functools.partial(shutil.rmtree, folder, ignore_errors=True)
    node.config.add_cleanup(removed)


def pytest_itemcollected(item):
    if "browser" in item.fixturenames:
        item.add_marker("browser")


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config, items):
    """Deselect what takes minutes or a GPU, unless ``-m`` names it."""
    names = {"gpu", "slow"} - set(re.findall(r"\w+", config.option.markexpr))
    left = [item for item in items if any(map(item.get_closest_marker, names))]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


@pytest.fixture(autouse=True)
def _no_test_waits_for_an_iterator_to_end():
    """On a busy machine one of ``tf.data`` takes up to a minute to end."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow and not hasattr(tensorflow.data.Iterator, "__del__"):
        importlib.import_module("perfkit.training.diagnose.epochs").end_passes_aside()


@contextlib.contextmanager
def as_if_it_lay_there(monkeypatch, name, folder):
    """An experiment's module, by its dotted name, from another folder."""
    paths = [*perfkit.questions.__path__, str(folder)]
    monkeypatch.setattr(perfkit.questions, "__path__", paths)
    module = importlib.import_module(name)
    # Trials are forked from a process that does not know that folder.
    cloudpickle.register_pickle_by_value(module)
    yield module
    cloudpickle.unregister_pickle_by_value(module)
    del sys.modules[name]
    delattr(perfkit.questions, name.rpartition(".")[2])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def napping(monkeypatch):
    """An experiment with a known answer, as if it lay in perfkit/questions."""
    name = "perfkit.questions.napping"
    with as_if_it_lay_there(monkeypatch, name, GUILTY) as module:
        yield module.Napping
