"""How fast does a core's clock run just now, counted and not asked for?

In a virtual machine nobody says. A chain of additions, each of which waits for the one
before, takes one tick of the clock per addition on every processor of this kind, so
its speed is the clock's. The chain is a few bytes of machine code.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import time

_ADDITIONS, _ROUNDS = 64, 20_000
_TRIES = 40
# add rax, rax
_ADD = bytes.fromhex("4801c0")
# dec rdi; then a jump back, if that is not 0, by so many bytes; ret
_COUNT, _JUMP, _RETURN = bytes.fromhex("48ffcf"), bytes.fromhex("0f85"), b"\xc3"


def hertz() -> float | None:
    """The highest clock of some tries, in hertz; None where it cannot be counted."""
    code = _code()
    if code is None:
        return None
    try:
        memory = mmap.mmap(
            -1,
            mmap.PAGESIZE,
            prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC,
        )
    except (OSError, AttributeError):
        # Some systems let no memory be written and run.
        return None
    memory.write(code)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    chain = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(start)
    return max(_speed(chain) for _ in range(_TRIES))


def _code() -> bytes | None:
    """The chain as a function of how often to run it; None for other processors."""
    # Windows hands arguments over in another register.
    if platform.machine() not in ("x86_64", "AMD64") or platform.system() == "Windows":
        return None
    body = _ADD * _ADDITIONS + _COUNT
    back = -(len(body) + len(_JUMP) + 4)
    return body + _JUMP + back.to_bytes(4, "little", signed=True) + _RETURN


def _speed(chain: ctypes._FuncPointer) -> float:
    began = time.perf_counter()
    chain(_ROUNDS)
    return _ADDITIONS * _ROUNDS / (time.perf_counter() - began)
