"""Python between the steps, and steps that are Python."""

from collections.abc import Callable, Iterator

from perfkit.account.causes.base import WORTH, Cause, Evidence, Seen
from perfkit.findings.account import Line

_MOST = 0.35
_READS = ("numpy", "__float__", "__int__", "__bool__", "__array__", "item")
_COPIES = (
    *("concatenate", "append", "vstack", "hstack", "stack", "array", "asarray"),
    *("convert_to_tensor", "constant", "copy", "deepcopy", "convert_to_constant"),
)
_PANDAS = ("iterrows", "itertuples", "__getitem__", "iloc", "apply", "sample", "_ixs")
_FILES = ("load", "open", "imread", "read_csv", "read", "loadtxt", "decompress")


def _calls(
    names: tuple[str, ...], least: float = WORTH
) -> Callable[[Seen], Iterator[Evidence]]:
    def found(seen: Seen) -> Iterator[Evidence]:
        lines = [o for o in seen.account.lines if o.calls and o.calls[0].name in names]
        if lines and seen.share(*lines) >= least:
            lines.sort(key=lambda one: -one.total_s)
            yield Evidence(
                lines=tuple(lines[:4]),
                means=f"{seen.percent(*lines)} of the time goes into "
                f"`{lines[0].calls[0].name}` at {lines[0].where}, between the steps.",
            )

    return found


def _eager(seen: Seen) -> Iterator[Evidence]:
    lines = [o for o in seen.account.lines if o.eager_s > o.total_s / 4]
    whole = sum(
        o.seconds.get("computing", 0) + o.seconds.get("Python", 0) for o in lines
    )
    if lines and seen.account.share(whole) >= _MOST:
        yield Evidence(
            lines=tuple(lines[:6]),
            share=seen.account.share(whole),
            means=f"{seen.percent(*lines)} of the time Python starts operations of "
            "TensorFlow one by one, outside of any graph.",
        )


def _own(seen: Seen) -> Iterator[Evidence]:
    lines = [o for o in seen.account.lines if o.kind == "Python" and _is_own(o)]
    if lines and seen.share(*lines) >= _MOST:
        yield Evidence(
            lines=tuple(lines[:6]),
            means=f"{seen.percent(*lines)} of the time is Python of your own between "
            f"the steps, most of it at {lines[0].where}.",
        )


def _is_own(line: Line) -> bool:
    names = ("fit", "predict", "evaluate", "train_on_batch")
    return not line.called(*names) and not line.parts


CAUSES = (
    Cause(
        id="steps-are-eager",
        applies=_eager,
        do="Put the step under `tf.function`, from {where} on",
        fix="`@tf.function` on the function that makes one step",
        mind="What it prints or counts in Python then happens once.",
        swap="eager",
    ),
    Cause(
        id="tensors-read",
        applies=_calls(_READS),
        do="Read tensors less often than at {where}",
        fix="Keep sums in tensors or `keras.metrics`, and call `.numpy()` once an "
        "epoch",
    ),
    Cause(
        id="arrays-copied",
        applies=_calls(_COPIES),
        do="Do not copy or convert arrays in each step at {where}",
        fix="Fill one array made beforehand; convert to tensors once, before the loop",
    ),
    Cause(
        id="pandas-rows",
        applies=_calls(_PANDAS, 2 * WORTH),
        do="Take rows from arrays, not from a table, at {where}",
        fix="`table.to_numpy()` once, before the loop",
    ),
    Cause(
        id="files-read-again",
        applies=_calls(_FILES, 2 * WORTH),
        do="Read the file at {where} once",
        fix="Before the loop, or `np.load(..., mmap_mode='r')` for parts of it",
    ),
    Cause(
        id="python-between-steps",
        applies=_own,
        do="Do the work at {where} for the whole batch at once, or before training",
        fix="NumPy or TensorFlow on whole arrays in place of the loop",
    ),
)
