"""Settings that were left on: for debugging, or for another machine."""

import re
from collections.abc import Callable, Iterator

from perfkit.findings.account import COMPUTING, THREAD, Line
from perfkit.training.account.causes.base import Evidence, View, cause


def _lines_slowed(
    setting: str, effect: str, is_slowed: Callable[[Line], bool]
) -> Callable[[View], Iterator[Evidence]]:
    def find(view: View) -> Iterator[Evidence]:
        lines = [line for line in view.account.lines if is_slowed(line)]
        for text, setter in view.settings.items():
            if text.startswith(setting) and lines:
                yield _evidence(
                    view, setter, lines, f"lines that {effect} because of it"
                )

    return find


def _evidence(
    view: View, setter: Line | None, lines: list[Line], spent: str
) -> Evidence:
    """The line that set something first, then those that it slows."""
    return Evidence(
        lines=(*([setter] if setter else []), *lines[:6]),
        share=view.share(*lines),
        means=f"{view.percent(*lines)} of the time goes into {spent}.",
    )


_FIX = "Delete the line, or run it only where needed"
_DATA_MODE = "tf.data.experimental.enable_debug_mode()"
_PYTHON_RUNS = "Python runs one operation at a time"
_DATA_DEBUGGED = cause(
    "data-debug-mode", do=f"Remove `{_DATA_MODE}`", fix=_FIX, swap="debugging"
)(_lines_slowed(_DATA_MODE, _PYTHON_RUNS, lambda line: THREAD in line.parts[:1]))
_EAGER_MODE = "tf.config.run_functions_eagerly(True)"
_FUNCTIONS_EAGER = cause(
    "functions-run-eagerly", do=f"Remove `{_EAGER_MODE}`", fix=_FIX, swap="eager"
)(_lines_slowed(_EAGER_MODE, _PYTHON_RUNS, lambda line: line.is_eager))
_FLOAT16 = cause(
    "float16-on-a-processor",
    do="Train in float32 on a processor: {where}",
    fix="Remove the policy, or use `mixed_bfloat16` if a race shows it is faster",
    swap="precision",
)(
    _lines_slowed(
        "keras.config.set_dtype_policy(",
        "compute in float16, which a processor must convert,",
        lambda line: line.is_part("layer"),
    )
)


_THREADS = re.compile(r"(?:intra_op_parallelism_threads\(|INTRAOP_THREADS\D*)(\d+)")


@cause(
    "few-threads",
    do="Let TensorFlow choose its threads: {where}",
    fix=_FIX,
    swap="threads",
)
def _few_threads(view: View) -> Iterator[Evidence]:
    cores = view.account.machine.cores
    lines = [o for o in view.hot() if o.kind == COMPUTING and not o.is_eager]
    for text, setter in view.settings.items():
        match = _THREADS.search(text)
        if match and int(match[1]) < cores and lines:
            spent = f"operations that may use only {match[1]} of {cores} cores"
            yield _evidence(view, setter, lines, spent)
