"""What the tests of trainings share."""

import pytest

from perfkit.engine import alone


@pytest.fixture
def alone_here(monkeypatch, tmp_path):
    """Wait for no other run of this user: nothing here is judged by its rates."""
    monkeypatch.setattr(alone, "lock_file", lambda: tmp_path / "lock")
