"""What every panel of these tests begins with."""

import pytest

from perfkit.panel import panel


@pytest.fixture(autouse=True)
def no_panel_of_an_earlier_test():
    panel._panels.clear()
