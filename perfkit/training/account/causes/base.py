"""What a cause is: when it applies, what to do, what to type, what to mind."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perfkit import units
from perfkit.findings.account import INPUT, Account, Call, Line, Stage, Tip

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
    applies: Callable[["View"], Iterable[Evidence]]
    do: str
    fix: str = ""
    mind: str = ""
    group: str = ""
    swap: str = ""

    def tips(self, view: "View") -> Iterator[Tip]:
        """Yield a tip for each place in an account where the cause applies."""
        for evidence in self.applies(view):
            share = evidence.share
            if share is None:
                share = view.share(*evidence.lines)
            if share < WORTH:
                continue
            yield Tip(
                cause=self.id,
                lines=tuple(map(view.account.lines.index, evidence.lines)),
                share=min(1.0, share),
                do=self.do.format(where=evidence.lines[0].where),
                means=evidence.means,
                fix=self.fix,
                mind=self.mind,
                group=self.group,
            )


def cause(
    id: str, **about: str
) -> Callable[[Callable[["View"], Iterable[Evidence]]], Cause]:
    """Make a record of a cause from the function that finds it in an account."""
    return lambda applies: Cause(id=id, applies=applies, **about)


def distinct(*lines: Line) -> tuple[Line, ...]:
    """Lines without those that stand there twice."""
    return tuple({id(line): line for line in lines}.values())


@dataclass(frozen=True, kw_only=True)
class View:
    """An account, and what causes ask of it.

    Attributes:
        charges: What ``charge`` gives besides its lines: ``"frozen"``, the names of
            layers whose weights are not trained; ``"settings"`` that are on, as they
            are typed, each with the place that set it; and what ``noted`` reads.
    """

    account: Account
    charges: Mapping[str, Any]

    def line_at(self, place: Iterable[Any] | None) -> Line | None:
        """The line of a file and a number; None where the account has none."""
        return self._lines.get(tuple(place or ()))

    def noted(self, name: str) -> Iterator[tuple[Line, Any]]:
        """Yield lines of which something was noted, each with that.

        Args:
            name: ``"iterators"``: how many a line made; ``"new_models"``: how many it
                had made in a loop since the training began; ``"backward"``: times it
                asked for gradients in one trace; ``"padded"``: which share of what it
                gives is padding; ``"callers"``: of a layer's line, the place that calls
                its model in a step of the user's own; ``"definitions"``: the place
                where a function begins that the line had traced again and again.
        """
        for file, number, value in self.charges.get(name, ()):
            if line := self.line_at((file, number)):
                yield line, value

    @functools.cached_property
    def _lines(self) -> dict[tuple[Any, ...], Line]:
        places = map(tuple, self.charges.get("places", ()))
        return dict(zip(places, self.account.lines, strict=False))

    def share(self, *lines: Line) -> float:
        """Return the share of repeating time that these lines take together."""
        return self.account.share(sum(line.total_s for line in distinct(*lines)))

    def percent(self, *lines: Line) -> str:
        """Return the share in words."""
        return units.percent(self.share(*lines))

    def spent(self, *lines: Line, on: str, share: float | None = None) -> Evidence:
        """Return as evidence that the time of these lines goes into something."""
        percent = self.percent(*lines) if share is None else units.percent(share)
        means = f"{percent} of the time goes into {on}."
        return Evidence(lines=lines, means=means, share=share)

    def hot(self, share: float = WORTH) -> Iterator[Line]:
        """Yield lines that take at least this share, the most expensive first."""
        return (line for line in self.account.lines if self.share(line) >= share)

    def calling(self, *names: str, often: int = 0) -> Iterator[tuple[Line, Call]]:
        """Yield hot lines that call one of these at least so often, with that call."""
        for line in self.hot():
            call = line.find_call(*names)
            if call and call.count >= often:
                yield line, call

    def mostly_calling(self, *names: str) -> list[Line]:
        """Lines whose most expensive call is one of these."""
        return [o for o in self.account.lines if o.calls and o.calls[0].name in names]

    def stages(self, *kinds: str) -> Iterator[Stage]:
        """Stages of the input of these kinds."""
        return (stage for stage in self.account.stages if stage.kind in kinds)

    def below(self, stage: Stage) -> Iterator[Stage]:
        """Stages that feed this one."""
        begins = f"{stage.path}::", f"{stage.path}["
        return (s for s in self.account.stages if s.path.startswith(begins))

    def line_of(self, stage: Stage) -> Line | None:
        """The line that made a stage; None for a library's."""
        return self.account.lines[stage.line] if stage.line >= 0 else None

    @property
    def input_lines(self) -> list[Line]:
        """Lines whose time the model waits for, as input."""
        return [line for line in self.account.lines if line.seconds.get(INPUT, 0) > 0]

    @property
    def input_share(self) -> float:
        """Of what repeats, the wait for input."""
        return self.account.share(self.account.kinds[INPUT])
