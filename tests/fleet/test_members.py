import pytest

from perfkit.errors import BadParameterError
from perfkit.fleet.cluster import members

WORKERS = {
    "tcp://10.0.0.10:5001": {"host": "10.0.0.10", "name": "gpu-0"},
    "tcp://10.0.0.10:5002": {"host": "10.0.0.10", "name": "tcp://10.0.0.10:5002"},
    "tcp://10.0.0.9:5001": {"host": "10.0.0.9", "name": 3},
    "tls://[fe80::1]:5001": {"name": "far"},
}


def test_one_worker_speaks_for_its_host():
    assert [m.name for m in members(WORKERS)] == ["fe80::1", "10.0.0.9", "10.0.0.10"]
    assert members(WORKERS)[2].key == "tcp://10.0.0.10:5001"


def test_each_worker_is_told_apart_where_each_is_asked():
    names = [m.name for m in members(WORKERS, each="worker")]
    assert names == ["fe80::1 far", "10.0.0.9 3", "10.0.0.10 gpu-0", "10.0.0.10 5002"]


def test_what_a_worker_calls_itself_cannot_disturb_a_terminal():
    sly = {"tcp://10.0.0.1:1": {"host": "10.0.0.1", "name": "\x1b[2Jx"}}
    assert members(sly, each="worker")[0].name == "10.0.0.1 [2Jx"


def test_another_word_is_refused():
    with pytest.raises(BadParameterError, match="one of host, worker"):
        members(WORKERS, each="core")
