"""NVIDIA's management library: opening it, asking it, and words for what it refuses.

On WSL, in containers and on consumer cards the driver refuses some of the readings.
Each is asked on its own and either answers or is refused with the driver's word: none
takes another with it, and what is unknown is never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.gpu import Problem

# The library's own numbers; they have never changed.
INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 2, 3, 6
FUNCTION_NOT_FOUND, GPU_IS_LOST = 13, 15
_NO_PERMISSION, _DRIVER_NOT_LOADED, _LIBRARY_NOT_FOUND, _MISMATCH = 4, 9, 12, 18
# What the library fills in where it has no value: all bits set, in 32 or 64 of them.
_NO_VALUE = (2**32 - 1, 2**64 - 1)

_PROBLEMS: dict[int, tuple[Problem, str]] = {
    _LIBRARY_NOT_FOUND: ("no driver", "No NVIDIA driver is installed."),
    _DRIVER_NOT_LOADED: (
        "not loaded",
        "The NVIDIA driver is installed but not loaded: restart the machine.",
    ),
    _MISMATCH: (
        "mismatch",
        "The NVIDIA driver was updated while it ran and no longer fits its library:"
        " restart the machine.",
    ),
    _NO_PERMISSION: (
        "no permission",
        "The NVIDIA driver refuses this user: the device files need read and write"
        " permission.",
    ),
}


class RefusedError(Exception):
    """The driver gives no value; the message is its word for that.

    Attributes:
        code: The library's number for it; 0 where it answered without a value.
    """

    def __init__(self, word: str = "No Value", code: int = 0) -> None:
        super().__init__(word)
        self.code = code


class Nvml:
    """The library, opened.

    Attributes:
        problem: What keeps the driver from answering; "" where it answers.
        why: The same as a sentence with what to do.
    """

    def __init__(self) -> None:
        self.problem: Problem = ""
        self.why = ""
        self._module: Any = None
        try:
            import pynvml
        except ImportError:
            self.problem = "no reader"
            self.why = "nvidia-ml-py is missing: python -m pip install nvidia-ml-py"
            return
        self._module = pynvml
        self._start()

    def ask(self, call: str, *arguments: Any) -> Any:
        """The answer of one call.

        Raises:
            RefusedError: The driver refuses, or the library has no such call.
        """
        function = getattr(self._module, call, None)
        if function is None:
            raise RefusedError("Function Not Found", FUNCTION_NOT_FOUND)
        try:
            return function(*arguments)
        except self._module.NVMLError as error:
            raise RefusedError(_word(error), error.value) from None
        except UnicodeDecodeError:
            raise RefusedError("Not Text") from None

    def close(self) -> None:
        """Let go of the driver."""
        if not self.problem:
            self._quietly("nvmlShutdown")

    def _start(self) -> None:
        try:
            self.ask("nvmlInit")
        except RefusedError as error:
            unknown = f"The NVIDIA driver does not answer: {error}."
            self.problem, self.why = _PROBLEMS.get(error.code, ("no answer", unknown))

    def _quietly(self, call: str) -> None:
        try:
            self.ask(call)
        except RefusedError:
            return


@dataclass(frozen=True)
class Device:
    """A card to ask, or one instance of a card that is divided.

    Attributes:
        number: Of the card, as the driver counts.
        card: The library's handle of the card; None where it gives none.
        part: That of the instance; that of the card where it is whole.
        refused: The driver's word where it gives no access to the card.
    """

    nvml: Nvml
    number: int
    card: Any = None
    part: Any = None
    refused: str = ""

    @property
    def is_instance(self) -> bool:
        """Whether this is one of the instances of a divided card."""
        return self.part is not self.card

    def ask(self, call: str, *arguments: Any) -> Any:
        """The card's answer to one call."""
        return self.nvml.ask(call, self.card, *arguments)

    def ask_part(self, call: str, *arguments: Any) -> Any:
        """The same for what belongs to the instance alone, such as its memory."""
        return self.nvml.ask(call, self.part, *arguments)


def found(nvml: Nvml) -> tuple[tuple[Device, ...], str]:
    """All GPUs in the driver's order; where there are none, why, in a sentence.

    A divided card is as many as it has instances that this process may see.
    """
    if nvml.problem:
        return (), nvml.why
    try:
        count = int(given(nvml.ask("nvmlDeviceGetCount")))
    except RefusedError as error:
        return (), f"The NVIDIA driver does not say which GPUs there are: {error}."
    devices = [device for number in range(count) for device in _devices(nvml, number)]
    return tuple(devices), "" if devices else "The NVIDIA driver reports no GPU."


def given(value: Any) -> Any:
    """A number that is not the library's mark for "no value".

    Raises:
        RefusedError: It is.
    """
    if value in _NO_VALUE:
        raise RefusedError
    return value


def lost(device: Device) -> str:
    """The driver's word where it gives no access to the card any more, else ""."""
    try:
        device.nvml.ask("nvmlDeviceGetHandleByIndex", device.number)
    except RefusedError as error:
        return str(error)
    return ""


def _devices(nvml: Nvml, number: int) -> Iterator[Device]:
    try:
        card = nvml.ask("nvmlDeviceGetHandleByIndex", number)
    except RefusedError as error:
        yield Device(nvml, number, refused=str(error))
        return
    parts = tuple(_parts(nvml, card)) or (card,)
    yield from (Device(nvml, number, card, part) for part in parts)


def _parts(nvml: Nvml, card: Any) -> Iterator[Any]:
    """The instances of a divided card that this process may see."""
    try:
        divided = nvml.ask("nvmlDeviceGetMigMode", card)[0]
        places = nvml.ask("nvmlDeviceGetMaxMigDeviceCount", card) if divided else 0
    except RefusedError:
        return
    for place in range(places):
        try:
            yield nvml.ask("nvmlDeviceGetMigDeviceHandleByIndex", card, place)
        except RefusedError:
            continue


def _word(error: Any) -> str:
    """The driver's word; a number where it has none that can be read."""
    try:
        word = str(error)
    except UnicodeDecodeError:
        word = ""
    # What a library says that gives no text for its error.
    return f"Error {error.value}" if word in ("", "None") else word.rstrip(".")
