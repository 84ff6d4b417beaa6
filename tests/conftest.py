"""What several folders of tests share."""

import importlib
import sys
from pathlib import Path

import cloudpickle
import pytest

import perfkit.experiments

GUILTY = Path(__file__).parent / "guilty"
# Findings made by hand, `made.finding()`, for all who read findings.
sys.path.append(str(Path(__file__).parent / "findings"))


@pytest.fixture
def napping(monkeypatch):
    """An experiment with a known answer, as if it lay in perfkit/experiments."""
    monkeypatch.setattr(
        perfkit.experiments, "__path__", [*perfkit.experiments.__path__, str(GUILTY)]
    )
    module = importlib.import_module("perfkit.experiments.napping")
    # Trials are forked from a process that does not know that folder.
    cloudpickle.register_pickle_by_value(module)
    yield module.Napping
    cloudpickle.unregister_pickle_by_value(module)
    del sys.modules[module.__name__], perfkit.experiments.napping
