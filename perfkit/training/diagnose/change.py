"""A change of a training, which proves a cause."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit.engine.statistics import Comparison
from perfkit.training.diagnose.training import Training

if TYPE_CHECKING:
    from perfkit.training.diagnose.code import Code, Splice

Kind = Literal["defect", "opportunity"]
# A defect or an opportunity by how much it brings: what a gain below 2x says of a model
# whose steps are mostly work is not what a larger one says.
Judged = Kind | Literal["by gain"]
# What a change does to the text of the user's code; ``Unsure`` where that is not clear.
Rewrite = Callable[["Code"], "Iterable[Splice]"]
# The line of the user's code that a cause is about; 0 where it is not certain.
Locate = Callable[["Code"], int]

OVERHEAD = "step-overhead"


def nothing(*_: object) -> None:
    """Do nothing."""


def of_data(change: Callable[[Any], Any]) -> Callable[[Training], None]:
    """What changes the data of a training, and nothing else."""

    def apply(training: Training) -> None:
        training.data = change(training.data)

    return apply


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing changed against the training as given.

    What is left out here is filled in from the record of its cause.

    Attributes:
        name: Of its variant, in charts and in files, such as ``"without CSVLogger"``.
        changes: The one thing that it changes, in a sentence.
        fix: The line to change, with what stands there now if that is known.
        cause: The id of what a gain proves, such as ``"callback"``.
        kind: ``"defect"`` where the training does something needless,
            ``"opportunity"`` where the machine could do more.
        means: What a gain means, as a sentence with a space behind it.
        do: What to do about it: an imperative without its full stop.
        mind: What doing so may cost or break besides, in a sentence; "" for nothing.
        subject: Of the sentence that says how fast the training then runs.
        edit: Makes the change in the user's code; None where no one edit does.
        line: The line to show where no edit is certain; None for none.
        group: The group that it lies in, ``WITHOUT_INPUT`` or ``WITHOUT_OBSERVERS``.
        masks: Whether it can slow a training many times and hide all other causes.
        everywhere: Whether that slows all parts of a training, input included.
        apply: Changes a training that has been made, in the trial's process; nothing
            where all is done before.
        before: Sets what has to be set before the training is made.
        after: The name of the change that has to bring something first, so that no time
            goes into this one where it cannot; "" for none.
        batches: Times as many examples in a step; a fraction where they are fewer.
        steps: Steps that are made at a time.
        own_pauses: Whether it is about the ends of epochs, where what is random in
            them may differ from the training as given.
        ceiling: Whether it shows what cannot be had, only what is lost: the training
            without its input, or without all of its callbacks.
        leaves_out: The line whose work it leaves out, such as ``"line 57"``; "" for
            none. What does so is never a cause.
        at_least: Whether what is to be done brings at least what it shows.
        defect_from: Of one that is judged by gain: the gain from which it is a defect.
        inferred_if: A note of a trial that says that a part of the gain was scaled up
            from what was run; "" where all is measured.
        combines: Whether it may be applied together with others; not where it changes
            what is learnt.
        needed: Whether the training may need what it leaves out, so that it is applied
            with no others.
        spares: A cause that it spares too, though it is no cure for it; "" for none.
    """

    name: str
    changes: str
    fix: str
    cause: str = ""
    kind: Judged | None = None
    means: str = ""
    do: str = ""
    mind: str = ""
    subject: str = "The training then"
    edit: Rewrite | None = None
    line: Locate | None = None
    group: str = ""
    masks: bool = False
    everywhere: bool = False
    apply: Callable[[Training], object] = nothing
    before: Callable[[], object] = nothing
    after: str = ""
    batches: float = 1
    steps: int = 1
    own_pauses: bool = False
    ceiling: bool = False
    leaves_out: str = ""
    at_least: bool = False
    defect_from: float = 2.0
    inferred_if: str = ""
    combines: bool = True
    needed: bool = False
    spares: str = ""

    @property
    def in_place(self) -> bool:
        """Whether it can be changed in a training that has been made."""
        return self.before is nothing

    def kind_at(self, ratio: float) -> Kind:
        """What it is where it brings so much."""
        if self.kind == "by gain":
            return "defect" if ratio >= self.defect_from else "opportunity"
        return self.kind or "defect"

    def waits_for(self, cause: str) -> bool:
        """Whether it waits for changes of a cause, which may be why it brings anything.

        A larger batch is itself a cure for an expensive way to each step, unless it is
        large already.
        """
        return cause != OVERHEAD or self.combines or self.spares == cause

    def helps(self, compared: Comparison) -> bool:
        """Whether it is shown to be faster.

        Beyond what luck brings where only the gain speaks for it: the largest of many.
        """
        needless = self.kind == "defect"
        return compared.verdict == "faster" and (needless or compared.stands_out)


@dataclass(frozen=True)
class Untested:
    """Why a cause was not looked for; ``cause`` is filled in from its record."""

    reason: str
    cause: str = ""


Candidates = Iterator[Change | Untested]


def without_input(changes: Iterable[Change]) -> Change | None:
    """The change that leaves the input out; None where it is not among these."""
    return next((change for change in changes if change.cause == "input-bound"), None)
