"""A cause that perfkit knows: the one record of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from perfkit.findings.text import as_sentence
from perfkit.training.diagnose.change import (
    Candidates,
    Change,
    Judged,
    Locate,
    Rewrite,
    Untested,
)
from perfkit.training.diagnose.facts import Facts


def no_changes(_: Facts) -> Candidates:
    """Offer nothing: other programs, for one, cannot be left out."""
    return iter(())


@dataclass(frozen=True, kw_only=True)
class KnownCause:
    """All that perfkit knows of one thing that slows trainings.

    Attributes:
        id: Its name, such as ``"serial-map"``.
        kind: As that of its changes.
        do: What to do about it: an imperative without its full stop.
        means: What it means, after "this training ...:".
        mind: What doing so may cost besides, in a sentence; "" for nothing.
        group: The change that leaves out the whole group it lies in; "" for none.
        offer: Offers the changes that prove it, from what is known of a training.
        edit: Makes its changes in the user's code, where one edit of one place does.
        line: The line to show where no edit is certain.
        needs_fit: Whether a loop of the user's own decides that itself.
        of_stages: Whether it lies in stages of ``tf.data``, which TensorFlow has to
            describe.
        masks: Whether it can slow a training many times and hide all other causes.
        everywhere: Whether it slows all parts of a training, and so may be why leaving
            a group out brings something.
        at_ends: Whether it lies at the ends of epochs, not in the input itself.
    """

    id: str
    kind: Judged
    do: str
    means: str
    mind: str = ""
    group: str = ""
    offer: Callable[[Facts], Candidates] = no_changes
    edit: Rewrite | None = None
    line: Locate | None = None
    needs_fit: bool = False
    of_stages: bool = False
    masks: bool = False
    everywhere: bool = False
    at_ends: bool = False

    def complete(self, change: Change) -> Change:
        """Fill in what a change leaves to its cause."""
        return replace(
            change,
            cause=self.id,
            kind=change.kind or self.kind,
            means=f"{as_sentence(self.means)} ",
            do=change.do or self.do,
            mind=change.mind or self.mind,
            edit=change.edit or self.edit,
            line=change.line or self.line,
            group=self.group,
            masks=self.masks,
            everywhere=self.everywhere,
        )

    def candidates(self, facts: Facts) -> Candidates:
        """Offer the changes that apply to a training, or say why there are none."""
        missing = facts.pipeline.get("missing")
        if self.of_stages and missing:
            yield Untested(missing, self.id)
        alone, offered = facts.loop and self.needs_fit, False
        for candidate in self.offer(facts):
            if isinstance(candidate, Change):
                # A change that is made before the loop runs needs no ``fit``.
                if not (alone and candidate.in_place):
                    offered = True
                    yield self.complete(candidate)
            elif not alone:
                yield replace(candidate, cause=candidate.cause or self.id)
        if alone and not offered:
            reason = "it needs fit, because your own loop decides that"
            yield Untested(reason, self.id)
