"""Files changed at random, byte by byte; everything follows from the seed."""

_BITES = [bytes([one]) for one in b'\x00"\\{}[],:\xff']
_BITES += (b"\xed\xa0", b"NaN", b"-Infinity", b"1e999", b"\\ud800", b"\xef\xbb\xbf")
_BITES.append(b"null")


def bitten(data, draw):
    """Bytes that were changed in a few places, by a ``random.Random``."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        at, length = draw.randrange(len(changed) + 1), draw.choice((1, 1, 2, 50, 2000))
        match draw.randrange(5):
            case 0:
                changed[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                changed[at:at] = draw.choice(_BITES)
            case 2:
                del changed[at : at + length]
            case 3:
                changed[at:at] = changed[at : at + length] * draw.choice((1, 2, 30))
            case 4:
                del changed[draw.choice((at, len(changed) - 1)) :]
    return bytes(changed)
