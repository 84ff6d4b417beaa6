"""What every panel of these tests begins with."""

import pytest

from perfkit.panel import worker


@pytest.fixture(autouse=True)
def no_panel_of_an_earlier_test():
    worker._panels.clear()
