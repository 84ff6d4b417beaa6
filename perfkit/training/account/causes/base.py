"""What a cause is: when it applies, what to do, what to type, what to mind."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from perfkit import units
from perfkit.findings.account import INPUT, Account, Call, Line, Stage, Tip

# Lines that take less are no cause of anything.
WORTH = 0.08


class Evidence(NamedTuple):
    """What was seen, in a sentence: the line at fault comes before those it slows."""

    lines: Iterable[Line | None]
    means: str
    # Of what repeats; None for what these lines take together.
    share: float | None = None


@dataclass(frozen=True)
class Cause:
    """A thing that people do and that slows a training.

    Attributes:
        applies: Finds it in an account; yields nothing where it is not there.
        tip: With its name, about no lines yet; ``{where}`` is the first of them.
        swap: The cause of the changes of a diagnosis that are about it; "" for none.
    """

    applies: Callable[["View"], Iterable[Evidence]]
    tip: Tip
    swap: str = ""

    def tips(self, view: "View") -> Iterator[Tip]:
        """Yield a tip for each place in an account where the cause applies."""
        for at, means, share in self.applies(view):
            lines = _distinct(at)
            share = view.share(*lines) if share is None else share
            if share >= WORTH:
                yield replace(
                    self.tip,
                    lines=tuple(map(view.account.lines.index, lines)),
                    share=min(1.0, share),
                    do=self.tip.do.format(where=lines[0].where),
                    means=means,
                )


def cause(
    id: str = "", *, swap: str = "", **about: str
) -> Callable[[Callable[["View"], Iterable[Evidence]]], Cause]:
    """Make a cause from the function that finds it; it has its name, with hyphens."""

    def make(applies: Callable[[View], Iterable[Evidence]]) -> Cause:
        name = id or applies.__name__.strip("_").replace("_", "-")
        tip = Tip(cause=name, lines=(), share=0.0, means="", **about)
        return Cause(applies, tip, swap)

    return make


def _distinct(lines: Iterable[Line | None]) -> list[Line]:
    """Lines without None, and without those that stand there twice."""
    return [*{id(line): line for line in lines if line}.values()]


@dataclass(frozen=True)
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

        ``"iterators"`` and ``"new_models"``: how many a line made, in a loop since the
        training began; ``"backward"``: times it asked for gradients in one trace;
        ``"padded"``: which share of what it gives is padding; ``"callers"``: of a
        layer's line, the place that calls its model in a step of the user's own;
        ``"definitions"``: where a function begins that it had traced again and again.
        """
        for file, number, value in self.charges.get(name, ()):
            if line := self.line_at((file, number)):
                yield line, value

    @functools.cached_property
    def _lines(self) -> dict[tuple[Any, ...], Line]:
        places = map(tuple, self.charges.get("places", ()))
        return dict(zip(places, self.account.lines, strict=False))

    def share(self, *lines: Line | None) -> float:
        """Return the share of repeating time that these lines take together."""
        return self.account.share(sum(line.total_s for line in _distinct(lines)))

    def spent(
        self, *lines: Line | None, on: str, share: float | None = None
    ) -> Evidence:
        """Return as evidence that the time of these lines goes into something."""
        percent = units.percent(self.share(*lines) if share is None else share)
        return Evidence(lines, f"{percent} of the time goes into {on}.", share)

    def hot(self, share: float = WORTH) -> Iterator[Line]:
        """Yield lines that take at least this share, the most expensive first."""
        return (line for line in self.account.lines if self.share(line) >= share)

    def calling(self, *names: str, often: int = 0) -> Iterator[tuple[Line, Call]]:
        """Yield hot lines that call one of these at least so often, with that call."""
        for line in self.hot():
            call = line.find_call(*names)
            if call and call.count >= often:
                yield line, call

    def mostly_calling(self, names: str) -> list[Line]:
        """Lines whose most expensive call is one of these, with spaces between them."""
        callers = (line for line in self.account.lines if line.calls)
        return [line for line in callers if line.calls[0].name in names.split()]

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
        return [line for line in self.account.lines if line.spent(INPUT) > 0]

    @property
    def input_share(self) -> float:
        """Of what repeats, the wait for input."""
        return self.account.share(self.account.kinds[INPUT])
