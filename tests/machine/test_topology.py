import pytest

TOPOLOGY = """
from perfkit.machine.cards import gpus
driver, _, _ = gpus()
answer = [driver.topology, driver.refused.get("topology")]
"""
ANCESTOR = "nvmlDeviceGetTopologyCommonAncestor"
REACH = "nvmlDeviceGetP2PStatus"


COUNT = "nvmlDeviceGetCount *"
GONE = "nvmlDeviceGetHandleByIndex 1 !15"
DIVIDED = """
nvmlDeviceGetMigMode 0 1 1
nvmlDeviceGetMaxMigDeviceCount 0 7
nvmlDeviceGetName 0:0 A
nvmlDeviceGetName 0:1 B
"""
EXPRESS = "over PCI Express, through"


@pytest.mark.parametrize(
    ("machine", "said", "refused"),
    [
        (f"{COUNT} 3\n{ANCESTOR} 0 - 10 50\n{ANCESTOR} 1 10 - 40\n{REACH} * 0 0 5 0 0",
         [f"GPU 0 and GPU 1: {EXPRESS} one switch, directly.",
          f"GPU 0 and GPU 2: {EXPRESS} two processors, directly.",
          f"GPU 1 and GPU 2: {EXPRESS} one processor, directly."], None),
        # NVLink is told whatever else joins them.
        (f"{COUNT} 2\n{REACH} * 0 0 0 0 0",
         ["GPU 0 and GPU 1: joined by NVLink."], None),
        # What the driver hides of a way is left out.
        (f"{COUNT} 2\n{ANCESTOR} 0 - 20",
         [f"GPU 0 and GPU 1: {EXPRESS} several switches."], None),
        # A way without a name keeps its number.
        (f"{COUNT} 2\n{ANCESTOR} 0 - 37",
         ["GPU 0 and GPU 1: in a way that the driver numbers 37."], None),
        (f"{COUNT} 0", [], None),
        (f"{COUNT} 1", [], None),
        # A card that is gone is joined to none, nor are instances of one card.
        (f"{COUNT} 3\n{GONE}\n{ANCESTOR} 0 - 0 0",
         ["GPU 0 and GPU 2: on one board."], None),
        (f"{COUNT} 1{DIVIDED}", [], None),
        # The driver's word is kept where it tells of no pair.
        (f"{COUNT} 2", [], "Not Supported"),
    ],
)  # fmt: skip
def test_each_pair_of_cards_has_its_sentence(ask, machine, said, refused):
    assert ask(TOPOLOGY, machine) == [said, refused]
