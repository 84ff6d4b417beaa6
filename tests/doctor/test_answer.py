from dataclasses import replace

import pytest

from perfkit.doctor.page import answer
from perfkit.machine.record import Proof, Start
from tests.doctor import looked

UNTRIED = replace(looked.FULL, start=None)
LACKING = replace(looked.WRONG, id="no-tensorflow")
MISMATCH = replace(looked.WRONG, id="driver-mismatch")
WRONG = Proof(device="GPU:0", computation="convolution", error=1.0, allowed=1e-3)


@pytest.mark.parametrize(
    ("machine", "checks", "said"),
    [
        (looked.FULL, (), "TensorFlow can use NVIDIA RTX 4090: it computed right"),
        (UNTRIED, (), "can use NVIDIA RTX 4090, as far as can be told without trying; "
         "`perfkit doctor --probe` lets it compute."),
        (UNTRIED, (looked.WRONG,), "cannot use NVIDIA RTX 4090 as things are"),
        (looked.BARE, (), "trains on the processor: no NVIDIA GPU is seen here."),
        (replace(looked.BARE, nvidia_cards=0), (), "there is no NVIDIA GPU here."),
        (looked.BARE, (MISMATCH,), "trains on the processor: no GPU answers here"),
        (looked.BARE, (LACKING,), "TensorFlow is not installed"),
        (replace(UNTRIED, gpus=(looked.CARD,) * 2), (), "use 2 x NVIDIA RTX 4090,"),
        (replace(UNTRIED, start=Start(devices=("CPU:0",))), (),
         "trains on the processor: it does not find NVIDIA RTX 4090."),
        (replace(UNTRIED, start=Start(devices=("GPU:0",), proofs=(WRONG,))), (),
         "was not seen to compute right"),
        (replace(UNTRIED, start=Start(problem="It hung.")), (), "its start here."),
    ],
)  # fmt: skip
def test_the_first_question_is_answered_from_what_was_seen(machine, checks, said):
    assert said in answer(machine, checks)
