"""What a cause is: when it applies, what to do, what to type, what to mind."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from perfkit import units
from perfkit.findings.account import Account, Line, Stage, Tip

# Lines that take less are no cause of anything.
WORTH = 0.08


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Where a cause was seen.

    Attributes:
        lines: The line at fault first, then others that take time because of it.
        means: What was seen, in a sentence.
        share: Of what repeats; None for what these lines take together.
    """

    lines: tuple[Line, ...]
    means: str
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A thing that people do and that slows a training.

    Attributes:
        id: Its name, such as ``"predict-per-row"``.
        applies: Finds it in an account; yields nothing where it is not there.
        do: An imperative without its full stop; ``{where}`` is the first line.
        fix: The lines to type.
        mind: What doing so may cost, in a sentence; "" for nothing.
        group: The change of a diagnosis that leaves all of it out; "" for none.
        swap: The cause of the changes of a diagnosis that are about it; "" for none.
    """

    id: str
    applies: Callable[["Seen"], Iterable[Evidence]]
    do: str
    fix: str = ""
    mind: str = ""
    group: str = ""
    swap: str = ""

    def tips(self, seen: "Seen") -> Iterator[Tip]:
        """Where it applies, with all that a reader needs."""
        for found in self.applies(seen):
            share = found.share
            if share is None:
                share = seen.share(*found.lines)
            if share < WORTH:
                continue
            numbers = tuple(seen.account.lines.index(one) for one in found.lines)
            yield Tip(
                cause=self.id,
                lines=numbers,
                share=min(1.0, share),
                do=self.do.format(where=found.lines[0].where),
                means=found.means,
                fix=self.fix,
                mind=self.mind,
                group=self.group,
            )


@dataclass(frozen=True)
class Seen:
    """An account as causes ask it.

    Attributes:
        account: What was seen.
        frozen: Names of layers whose weights are not trained.
        calls: Times a line called a public method, by line and name.
        backward: Times a line asked for gradients in one trace of a step.
    """

    account: Account
    frozen: frozenset[str] = frozenset()
    calls: tuple[tuple[Line, str, int], ...] = ()
    backward: tuple[tuple[Line, int], ...] = ()

    def share(self, *lines: Line) -> float:
        """Of what repeats, all these lines together."""
        return self.account.share(
            sum(one.total_s for one in {id(o): o for o in lines}.values())
        )

    def percent(self, *lines: Line) -> str:
        """The same in words."""
        return units.percent(self.share(*lines))

    def hot(self, least: float = WORTH) -> Iterator[Line]:
        """Lines that take at least this share, the most expensive first."""
        return (one for one in self.account.lines if self.share(one) >= least)

    def kind_share(self, line: Line, *kinds: str) -> float:
        """Of a line's own seconds those of these kinds."""
        spent = sum(line.seconds.get(kind, 0.0) for kind in kinds)
        return spent / line.total_s if line.total_s else 0.0

    def stages(self, *kinds: str) -> Iterator[Stage]:
        """Stages of the input of these kinds."""
        return (one for one in self.account.stages if one.kind in kinds)

    def line_of(self, stage: Stage) -> Line | None:
        """The line that made a stage; None for a library's."""
        return self.account.lines[stage.line] if stage.line >= 0 else None

    @property
    def input_lines(self) -> list[Line]:
        """Lines whose time the model waits for, as input."""
        return [o for o in self.account.lines if o.seconds.get("input", 0.0) > 0]

    @property
    def input_share(self) -> float:
        """Of what repeats, the wait for input."""
        spent = sum(o.seconds.get("input", 0.0) for o in self.account.lines)
        return self.account.share(spent)


def each(call_seconds: float, count: int) -> str:
    """Seconds of one call in words."""
    return units.seconds(call_seconds / max(1, count))
