"""Python between the steps, and steps that are Python."""

from collections.abc import Callable, Iterator

from perfkit.findings.account import COMPUTING, PYTHON
from perfkit.training.account.causes.base import WORTH, Evidence, View, cause

_MOST = 0.35
_KERAS = ("fit", "predict", "evaluate", "train_on_batch")
_READS = ("numpy", "__float__", "__int__", "__bool__", "__array__", "item")
_COPIES = (
    *("concatenate", "append", "vstack", "hstack", "stack", "array", "asarray"),
    *("convert_to_tensor", "constant", "copy", "deepcopy", "convert_to_constant"),
)
_PANDAS = ("iterrows", "itertuples", "__getitem__", "iloc", "apply", "sample", "_ixs")
_FILES = ("load", "open", "imread", "read_csv", "read", "loadtxt", "decompress")


@cause(
    "steps-are-eager",
    do="Put the step that begins at {where} into a `tf.function`",
    fix="`@tf.function` on the function that makes one step",
    mind="Python inside it, such as a print or a counter, then runs once.",
    swap="eager",
)
def _steps_are_eager(view: View) -> Iterator[Evidence]:
    lines = [line for line in view.account.lines if line.is_eager]
    # What Keras does around the steps of a short epoch is eager, too.
    eager_s = sum(line.eager_s for line in view.account.lines)
    if eager_s < view.account.kinds[COMPUTING] / 2:
        lines = [line for line in lines if not line.find_call(*_KERAS)]
    share = view.account.share(
        sum(o.seconds.get(COMPUTING, 0) + o.seconds.get(PYTHON, 0) for o in lines)
    )
    if lines and share >= _MOST:
        yield Evidence(
            lines=tuple(lines[:6]),
            share=share,
            means=f"{view.percent(*lines)} of the time Python starts TensorFlow "
            "operations one by one, because no graph holds them.",
        )


def _calls(
    names: tuple[str, ...], share: float = WORTH
) -> Callable[[View], Iterator[Evidence]]:
    def find(view: View) -> Iterator[Evidence]:
        lines = view.mostly_calling(*names)
        if lines and view.share(*lines) >= share:
            lines.sort(key=lambda line: -line.total_s)
            yield Evidence(
                lines=tuple(lines[:4]),
                means=f"{view.percent(*lines)} of the time goes into "
                f"`{lines[0].calls[0].name}` at {lines[0].where}, between the steps.",
            )

    return find


_TENSORS_READ = cause(
    "tensors-read",
    do="Read tensors less often than at {where}",
    fix="Sum in tensors or `keras.metrics`, and call `.numpy()` once an epoch",
)(_calls(_READS))
_ARRAYS_COPIED = cause(
    "arrays-copied",
    do="Stop copying or converting arrays in every step at {where}",
    fix="Allocate one array and fill it; convert to tensors once, before the loop",
)(_calls(_COPIES))
_PANDAS_ROWS = cause(
    "pandas-rows",
    do="Take rows from arrays, not from a DataFrame, at {where}",
    fix="`table.to_numpy()` once, before the loop",
)(_calls(_PANDAS, 2 * WORTH))
_FILES_READ_AGAIN = cause(
    "files-read-again",
    do="Read the file at {where} once",
    fix="Read before the loop, or read parts with `np.load(..., mmap_mode='r')`",
)(_calls(_FILES, 2 * WORTH))


@cause(
    "python-between-steps",
    do="Do the work at {where} for the whole batch at once, or before training",
    fix="NumPy or TensorFlow on whole arrays instead of the loop",
)
def _python_between_steps(view: View) -> Iterator[Evidence]:
    lines = [
        line
        for line in view.account.lines
        if line.kind == PYTHON and not line.find_call(*_KERAS) and not line.parts
    ]
    if lines and view.share(*lines) >= _MOST:
        yield Evidence(
            lines=tuple(lines[:6]),
            means=f"{view.percent(*lines)} of the time your own Python runs between "
            f"the steps, most of it at {lines[0].where}.",
        )
