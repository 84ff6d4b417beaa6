"""A change of a training, and the one record of the cause that it proves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from perfkit.engine.statistics import Comparison
from perfkit.findings.text import as_sentence
from perfkit.training.diagnose.epochs import Epochs
from perfkit.training.diagnose.facts import Facts, epochs_for
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

    The record of its cause fills in ``cause``, ``means``, ``group``, ``masks`` and
    ``everywhere``, and what is left out of ``kind``, ``do``, ``mind``, ``edit`` and
    ``line``; ``KnownCause`` says what each of them is.

    Attributes:
        name: Of its variant, in charts and in files, such as ``"without CSVLogger"``.
        changes: The one thing that it changes, in a sentence.
        fix: The line to change, with what stands there now if that is known.
        subject: Of the sentence that says how fast the training then runs.
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


def epochs_with(facts: Facts, changes: Sequence[Change]) -> Epochs:
    """How long the epochs of a trial are with these things changed."""
    batches = [change.batches for change in changes if change.batches != 1]
    steps = [change.steps for change in changes]
    return epochs_for(facts, next(iter(batches), 1), max(steps, default=1))


@dataclass(frozen=True, kw_only=True)
class KnownCause:
    """All that perfkit knows of one thing that slows trainings.

    Attributes:
        id: Its name, such as ``"serial-map"``.
        kind: ``"defect"`` where a training does something needless, ``"opportunity"``
            where the machine could do more.
        do: What to do about it: an imperative without its full stop.
        means: What it means, after "this training ...:".
        mind: What doing so may cost or break besides, in a sentence; "" for nothing.
        group: The change that leaves out the whole group it lies in, ``WITHOUT_INPUT``
            or ``WITHOUT_OBSERVERS``; "" for none.
        offer: Offers the changes that prove it, from what is known of a training.
        edit: Makes its changes in the user's code; None where no one edit does.
        line: The line to show where no edit is certain.
        needs_fit: Whether a loop of the user's own decides that itself.
        of_stages: Whether it lies in stages of ``tf.data``, which TensorFlow has to
            describe.
        masks: Whether it can slow a training many times and hide all other causes.
        everywhere: Whether it slows all parts of a training, and so may be why leaving
            a group out brings something.
    """

    id: str
    kind: Judged
    do: str
    means: str
    mind: str = ""
    group: str = ""
    offer: Callable[[Facts], Candidates]
    edit: Rewrite | None = None
    line: Locate | None = None
    needs_fit: bool = False
    of_stages: bool = False
    masks: bool = False
    everywhere: bool = False

    def complete(self, change: Change) -> Change:
        """Fill in what a change leaves to its cause."""
        names = ("kind", "do", "mind", "edit", "line", "group", "masks", "everywhere")
        values = {name: getattr(change, name) or getattr(self, name) for name in names}
        means = f"{as_sentence(self.means)} "
        return replace(change, cause=self.id, means=means, **values)

    def candidates(self, facts: Facts) -> Candidates:
        """Offer the changes that apply to a training, or say why there are none."""
        missing = facts.pipeline.get("missing")
        if self.of_stages and missing:
            yield Untested(missing, self.id)
        if facts.loop and self.needs_fit:
            yield Untested("it needs fit, because your own loop decides that", self.id)
            return
        for candidate in self.offer(facts):
            if isinstance(candidate, Change):
                yield self.complete(candidate)
            else:
                yield replace(candidate, cause=candidate.cause or self.id)
