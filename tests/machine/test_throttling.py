import pytest

from perfkit.machine.gpu import throttle_reasons


@pytest.mark.parametrize("mask", [0, 0x1, 0x2, 0x10, 0x100, 0x113])
def test_idle_and_clocks_set_by_hand_are_not_throttling(mask):
    assert throttle_reasons(mask) == ()


def test_each_kind_of_throttling_has_words_of_its_own():
    bits = [0x4, 0x8, 0x20, 0x40, 0x80, 0x200, 0x400, 0x8000]
    words = [throttle_reasons(bit) for bit in bits]
    assert all(len(reasons) == 1 for reasons in words)
    assert len(set(words)) == len(bits)
    assert throttle_reasons(float(0x44 | 0x1)) == (*words[0], *words[3])
    assert throttle_reasons(0x8000) == ("reason 0x8000",)
