import pytest

TOPOLOGY = """
from perfkit.machine.cards import gpus
driver, _, _ = gpus()
answer = [driver.topology, driver.refused.get("topology")]
"""
ANCESTOR = "nvmlDeviceGetTopologyCommonAncestor"
REACH = "nvmlDeviceGetP2PStatus"


def test_each_pair_of_cards_has_its_sentence(ask):
    machine = f"""
nvmlDeviceGetCount * 3
{ANCESTOR} 0 - 10 50
{ANCESTOR} 1 10 - 40
{REACH} * 0 0 5 0 0
"""
    said, refused = ask(TOPOLOGY, machine)
    express = "over PCI Express, through"
    assert said == [
        f"GPU 0 and GPU 1: {express} one switch, directly.",
        f"GPU 0 and GPU 2: {express} two processors, directly.",
        f"GPU 1 and GPU 2: {express} one processor, directly.",
    ]
    assert refused is None


def test_nvlink_is_told_whatever_else_joins_them(ask):
    machine = f"nvmlDeviceGetCount * 2\n{REACH} * 0 0 0 0 0"
    assert ask(TOPOLOGY, machine)[0] == ["GPU 0 and GPU 1: joined by NVLink."]


def test_what_the_driver_hides_of_a_way_is_left_out(ask):
    machine = f"nvmlDeviceGetCount * 2\n{ANCESTOR} 0 - 20"
    way = "over PCI Express, through several switches"
    assert ask(TOPOLOGY, machine)[0] == [f"GPU 0 and GPU 1: {way}."]


def test_a_way_without_a_name_keeps_its_number(ask):
    said, _ = ask(TOPOLOGY, f"nvmlDeviceGetCount * 2\n{ANCESTOR} 0 - 37")
    assert "37" in said[0]


@pytest.mark.parametrize("count", [0, 1])
def test_one_card_has_no_way_to_go(ask, count):
    assert ask(TOPOLOGY, f"nvmlDeviceGetCount * {count}") == [[], None]


def test_a_card_that_is_gone_is_joined_to_none(ask):
    machine = (
        f"nvmlDeviceGetCount * 3\nnvmlDeviceGetHandleByIndex 1 !15\n{ANCESTOR} 0 - 0 0"
    )
    assert ask(TOPOLOGY, machine) == [["GPU 0 and GPU 2: on one board."], None]


def test_instances_of_one_card_are_not_joined(ask):
    machine = """
nvmlDeviceGetCount * 1
nvmlDeviceGetMigMode 0 1 1
nvmlDeviceGetMaxMigDeviceCount 0 7
nvmlDeviceGetName 0:0 A
nvmlDeviceGetName 0:1 B
"""
    assert ask(TOPOLOGY, machine) == [[], None]


def test_the_drivers_word_is_kept_where_it_tells_of_no_pair(ask):
    assert ask(TOPOLOGY, "nvmlDeviceGetCount * 2") == [[], "Not Supported"]
