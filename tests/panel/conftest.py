"""What every panel of these tests begins with."""

import pytest

from perfkit.panel import panel


@pytest.fixture(autouse=True)
def no_panel_of_an_earlier_test():
    panel._panels.clear()


@pytest.fixture
def pages():
    """For who looks at the page of a run: its charts take a second to draw."""


@pytest.fixture(autouse=True)
def _pages_only_if_looked_at(request, monkeypatch):
    if "pages" not in request.fixturenames:
        monkeypatch.setattr("perfkit.panel.view.downloads", lambda *_: "")
