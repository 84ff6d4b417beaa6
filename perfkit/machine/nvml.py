"""NVIDIA's management library: opening it, asking it, and words for what it refuses.

On WSL, in containers and on consumer cards the driver refuses some of the readings.
Each is asked on its own and either answers or is refused with the driver's word: none
takes another with it, and what is unknown is never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


Read = Callable[[Device], Any]

# The library's version of the memory's record: 2, and its 40 bytes.
_MEMORY_V2 = 0x02000028


def number(call: str, *arguments: Any, times: float = 1, per: float = 1) -> Read:
    """A number, in the unit that ``times`` or ``per`` make of the driver's."""

    def read(device: Device) -> float:
        value: int = given(device.ask(call, *arguments))
        return value if times == per == 1 else value * times / per

    return read


def above_zero(call: str, *arguments: Any, times: float = 1, per: float = 1) -> Read:
    """The same where 0 can only mean that the driver does not know."""
    read = number(call, *arguments, times=times, per=per)
    return lambda device: not_zero(read(device))


def flag(call: str) -> Read:
    """Whether something is on; the first of two answers, the other is for later."""

    def read(device: Device) -> bool:
        answer = device.ask(call)
        now = answer[0] if isinstance(answer, list) else answer
        return bool(given(now))

    return read


def word(call: str, words: Mapping[int, str], other: str) -> Read:
    """A number as its word; ``other`` with the number where it has none."""

    def read(device: Device) -> str:
        answer = device.ask(call)
        value = given(answer[0] if isinstance(answer, list) else answer)
        return words.get(value, other.format(value))

    return read


def memory_total(device: Device) -> int:
    """Bytes of memory that the GPU has."""
    return int(not_zero(given(_memory(device).total)))


def memory_used(device: Device) -> int:
    """Bytes that are taken, by anybody."""
    memory = _memory(device)
    not_zero(given(memory.total))
    return int(given(memory.used))


def busy(device: Device) -> float:
    """Share of the time in which at least one kernel ran."""
    percent = given(device.ask_part("nvmlDeviceGetUtilizationRates").gpu)
    return float(percent / 100)


def throttle_mask(device: Device) -> int:
    """What slows the clocks now, as the driver's bits."""
    return either(device, "nvmlDeviceGetCurrentClocks{}Reasons")


def either(device: Device, call: str) -> int:
    """Ask by the name that drivers since 535 know, then by the older one."""
    try:
        return int(given(device.ask(call.format("Event"))))
    except RefusedError as error:
        if error.code != FUNCTION_NOT_FOUND:
            raise
    return int(given(device.ask(call.format("Throttle"))))


def not_zero(value: Any) -> Any:
    """The value, where it is one.

    Raises:
        RefusedError: It is 0.
    """
    if not value:
        raise RefusedError
    return value


def _memory(device: Device) -> Any:
    # The older record counts what the driver keeps for itself as taken.
    try:
        return device.ask_part("nvmlDeviceGetMemoryInfo", _MEMORY_V2)
    except RefusedError:
        return device.ask_part("nvmlDeviceGetMemoryInfo")


# What two cards have in common, by the library's numbers.
_WAYS = {
    0: "on one board",
    10: "over PCI Express, through one switch",
    20: "over PCI Express, through several switches",
    30: "over PCI Express, through one bridge of a processor",
    40: "over PCI Express, through one processor",
    50: "over PCI Express, through two processors",
}
_READ, _NVLINK = 0, 2
_CAN = 0


def topology(gpus: Sequence[Device]) -> tuple[str, ...]:
    """Say of each pair of cards how data go from one to the other.

    Raises:
        RefusedError: The driver says it of no pair.
    """
    said, refused = list[str](), list[RefusedError]()
    for (a, one), (b, other) in combinations(enumerate(gpus), 2):
        if one.refused or other.refused or one.card is other.card:
            continue
        try:
            said.append(f"GPU {a} and GPU {b}: {_joined(one, other)}.")
        except RefusedError as error:
            refused.append(error)
    if refused and not said:
        raise refused[0]
    return tuple(said)


def _joined(one: Device, other: Device) -> str:
    if _can(one, other, _NVLINK):
        return "joined by NVLink"
    common = given(one.ask("nvmlDeviceGetTopologyCommonAncestor", other.card))
    way = _WAYS.get(common, f"in a way that the driver numbers {common}")
    direct = _can(one, other, _READ)
    if direct is None:
        return way
    return f"{way}, {'directly' if direct else 'by way of main memory'}"


def _can(one: Device, other: Device, what: int) -> bool | None:
    """Whether two cards can reach each other so; None where the driver hides it."""
    try:
        return bool(one.ask("nvmlDeviceGetP2PStatus", other.card, what) == _CAN)
    except RefusedError:
        return None
