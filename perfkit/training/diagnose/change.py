"""One thing that is changed in a training, and what a gain from it would mean."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from perfkit.engine.statistics import Comparison
from perfkit.training.diagnose.training import Training

Kind = Literal["defect", "opportunity"]
# A defect or an opportunity by how much it brings: what a gain below 2x says of a model
# whose steps are mostly work is not what a larger one says.
Judged = Kind | Literal["by gain"]


# The cause of what leaves the work of a line out: never a cause of a diagnosis.
LINE = "line"
OVERHEAD = "step-overhead"


def nothing(*_: object) -> None:
    """Do nothing."""


def of_data(change: Callable[[Any], Any]) -> Callable[[Training], None]:
    """What changes the data of a training, and nothing else."""

    def apply(training: Training) -> None:
        training.data = change(training.data)

    return apply


def with_option(name: str, value: object) -> Callable[[Training], None]:
    """What gives a pipeline an option, such as ``"autotune.enabled"``."""
    outer, _, last = name.rpartition(".")

    def add_option(dataset: Any) -> Any:
        import tensorflow as tf

        options = tf.data.Options()
        setattr(attrgetter(outer)(options) if outer else options, last, value)
        return dataset.with_options(options)

    return of_data(add_option)


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing changed against the training as given.

    Attributes:
        name: Of its variant, in charts and in files, such as ``"without CSVLogger"``.
        cause: What a gain proves, such as ``"callback"``.
        kind: ``"defect"`` where the training does something needless,
            ``"opportunity"`` where the machine could do more.
        changes: The one thing that it changes, in a sentence.
        fix: The line to change, with what stands there now if that is known.
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
        defect_from: Of one that is judged by gain: the gain from which it is a defect.
        inferred_if: A note of a trial that says that a part of the gain was scaled up
            from what was run; "" where all is measured.
        combines: Whether it may be applied together with others; not where it changes
            what is learnt.
        spares: A cause that it spares too, though it is no cure for it; "" for none.
        caution: What it may break in this very training, in a sentence; "" for nothing.
    """

    name: str
    cause: str
    kind: Judged
    changes: str
    fix: str
    apply: Callable[[Training], object] = nothing
    before: Callable[[], object] = nothing
    after: str = ""
    batches: float = 1
    steps: int = 1
    own_pauses: bool = False
    ceiling: bool = False
    defect_from: float = 2.0
    inferred_if: str = ""
    combines: bool = True
    spares: str = ""
    caution: str = ""

    @property
    def in_place(self) -> bool:
        """Whether it can be changed in a training that has been made."""
        return self.before is nothing

    def kind_at(self, ratio: float) -> Kind:
        """What it is where it brings so much."""
        if self.kind != "by gain":
            return self.kind
        return "defect" if ratio >= self.defect_from else "opportunity"

    def waits_for(self, cause: str) -> bool:
        """Whether it waits for changes of a cause, which may be why it brings anything.

        A larger batch is itself a cure for a dear way to each step, unless it is large
        already.
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
    """A cause that was not looked for, and why."""

    cause: str
    reason: str


def without_input(changes: Iterable[Change]) -> Change | None:
    """The change that leaves the input out; None where it is not among these."""
    return next((change for change in changes if change.cause == "input-bound"), None)
