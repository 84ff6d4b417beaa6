"""Whether the trials of a round fit into memory side by side."""

from types import SimpleNamespace

import pytest

from perfkit.measure import rounds
from tests.measure.scripted import Script, play

OWN = 300 * 10**6


@pytest.mark.parametrize(
    ("present", "free", "fits"),
    [(25e9, 25e9, True), (25e9, 1e9, False), (1e9, 1e9, False)],
)
def test_trials_take_turns_where_all_have_room(present, free, fits, monkeypatch):
    process = SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=OWN, shared=0))
    memory = SimpleNamespace(available=present)
    monkeypatch.setattr(rounds.psutil, "Process", lambda _: process)
    monkeypatch.setattr(rounds.psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(
        rounds, "memory_free", lambda _, available: min(available, free)
    )
    run, _ = play({"base": Script()})
    live = SimpleNamespace(running=SimpleNamespace(pid=1))
    assert run._room_for_another([live], 4) is fits


def test_short_visits_take_the_place_of_one_that_is_long():
    budgets = rounds.budgets
    assert budgets.one_go_s(0.025) == budgets.ONE_GO_S
    assert budgets.one_go_s(0.025, budget=20, variants=25) == 0.5
    assert budgets.one_go_s(0.025, budget=60, variants=25) == pytest.approx(1.2)
    assert budgets.one_go_s(0.2, budget=20, variants=25) == pytest.approx(2.0)
