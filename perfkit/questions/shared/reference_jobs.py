"""Which trainings are the same on every machine?

Network, batch, data, seed and the way of feeding are fixed here. Nothing of them is
chosen by the machine: what differs between two machines is then the machine.
"""

from dataclasses import dataclass
from typing import Literal

from perfkit.questions.shared.images import HEIGHT, QUALITY, WIDTH
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.precision import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    PRECISIONS,
    Hardware,
    expected,
)

Feed = Literal["memory", "JPEG", "disk"]
# Changing anything that shapes the jobs has to change this: only jobs of the same
# recipe are the same job.
RECIPE = 1
SEED = 0
# Photographs that are read again and again; microbenchmarks decode the same.
PHOTOGRAPHS = 32
# Calls of the map at a time, on every machine: at most as many run as there are cores.
CALLS = 32
# An image that is read from the disk as it is: its side in px, and the bytes of each,
# so that a file of theirs holds a whole number of images.
SIDE_ON_DISK, DEPTH_ON_DISK = 256, 4
BYTES_ON_DISK = SIDE_ON_DISK**2 * DEPTH_ON_DISK
_RESIDENT = ", resident"
# Steps on one example in a call, at most, and as a multiple of those on a batch: they
# have to end within a turn.
_MOST_AT_ONCE, _AT_ONCE = 64, 8


@dataclass(frozen=True)
class Reference:
    """One fixed training.

    Attributes:
        name: In passports, such as ``"small CNN from JPEG"``.
        model: A name of ``perfkit.questions.shared.models``.
        batch: Examples in a step.
        together: Steps in one call, where a call makes several.
        feed: Where its examples come from.
        dtype: What Keras calls the precision it trains in.
    """

    name: str
    model: str
    batch: int
    together: int
    feed: Feed = "memory"
    dtype: str = FLOAT32

    @property
    def variant(self) -> str:
        """The variant that trains it in full."""
        return self.name if self.dtype == FLOAT32 else f"{self.name}, {self.dtype}"

    @property
    def resident(self) -> str:
        """The variant that trains the same network on one batch that is there."""
        precision = "" if self.dtype == FLOAT32 else f", {self.dtype}"
        return f"{self.model}{precision}{_RESIDENT}"

    @property
    def many(self) -> int:
        """Steps on one example in a call that makes several of them."""
        return min(_MOST_AT_ONCE, _AT_ONCE * self.together)

    @property
    def description(self) -> str:
        """It in a line."""
        fed = {
            "memory": "arrays in memory",
            "JPEG": f"{PHOTOGRAPHS} JPEG files of {WIDTH} by {HEIGHT} px",
            "disk": f"images of {BYTES_ON_DISK:,} bytes in a file that memory forgot",
        }
        return f"{MODELS[self.model].description}, fed from {fed[self.feed]}"

    @property
    def job(self) -> dict[str, str | int]:
        """What has to be equal for two machines to have done the same."""
        quality = f", quality {QUALITY}" if self.feed == "JPEG" else ""
        return {
            "recipe": RECIPE,
            "model": self.model,
            "data": f"{self.description}{quality}",
            "feeding": f"{CALLS} calls at a time, 2 batches ahead",
            "optimizer": "Adam",
            "seed": SEED,
        }


_FLOAT32 = (
    Reference("tiny dense", "tiny-dense", 32, 64),
    Reference("small CNN from memory", "small-cnn", 32, 4),
    Reference("small CNN from JPEG", "small-cnn", 32, 4, feed="JPEG"),
    Reference("small CNN from disk", "small-cnn", 32, 4, feed="disk"),
    Reference("wide dense", "wide-dense", 128, 2),
)
_MIXED = tuple(
    Reference("wide dense", "wide-dense", 128, 2, dtype=dtype)
    for dtype in (BFLOAT16, FLOAT16)
)
REFERENCES = (*_FLOAT32, *_MIXED)
# One for each network and precision, however it is fed.
RESIDENTS = {job.resident: job for job in REFERENCES if job.feed == "memory"}


def not_eligible(reference: Reference, hardware: Hardware) -> str:
    """Why a precision is not tried on this machine, as a clause; "" where it is."""
    if reference.dtype == FLOAT32:
        return ""
    expectation = expected(PRECISIONS[reference.dtype], hardware)
    return expectation.because if expectation.expect == "slower" else ""
