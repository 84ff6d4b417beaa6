"""How often was a function traced, and which argument was the cause?

TensorFlow runs the Python body of a ``tf.function`` each time it has to trace it and at
no other time. What the body does in Python counts traces, therefore, and costs nothing
while the traced function runs. Keras's own train function has no counter; its
``train_step`` is such a body, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfkit.measure.tick import Note, Pause, Tick

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# So many causes are told; the next ones say the same.
_TOLD = 4
NOTE = "traces"
ANEW = "nothing changed but the function itself, which was made anew"


@dataclass
class Traces:
    """Counts the traces of one function.

    Attributes:
        steps: How often the function was called; whoever calls it counts.
        seen: The arguments of each trace, in words, by the argument's name.
    """

    steps: int = 0
    seen: list[dict[str, str]] = field(default_factory=list)

    def step(self, count: int = 1) -> None:
        """Note that the function was called ``count`` times."""
        self.steps += count

    def trace(self, **arguments: Any) -> None:
        """Note a trace; called from within the traced body."""
        self.seen.append({name: described(one) for name, one in arguments.items()})

    def told(self) -> dict[str, Any]:
        """What a trial keeps: steps, traces and the causes of the first few."""
        pairs = zip(self.seen, self.seen[1:], strict=False)
        causes = [_cause(before, after) for before, after in pairs]
        return {
            "steps": self.steps,
            "traces": len(self.seen),
            "because": list(dict.fromkeys(causes))[:_TOLD],
        }


def described(argument: Any) -> str:
    """An argument as tracing sees it: ``"float32[32, 784]"`` or ``"int 7"``."""
    shape = getattr(argument, "shape", None)
    if shape is None:
        return f"{type(argument).__name__} {argument}"
    sizes = ["?" if size is None else str(size) for size in shape]
    return f"{argument.dtype.name}[{', '.join(sizes)}]"


def telling(
    ticks: Iterable[Tick | Pause | Note], traces: Traces
) -> Iterator[Tick | Pause | Note]:
    """Pass ticks on, and tell of the traces after the first, second, fourth, ..."""
    passed, due = 0, 1
    for tick in ticks:
        yield tick
        passed += isinstance(tick, Tick)
        if passed >= due:
            yield Note(NOTE, traces.told())
            due *= 2


def _cause(before: dict[str, str], after: dict[str, str]) -> str:
    changed = [name for name in after if after[name] != before.get(name)]
    if not changed:
        return ANEW
    return "; ".join(f"{name}: {before[name]}, then {after[name]}" for name in changed)
