"""Settings for debugging that were left on: all of it runs as Python then."""

from collections.abc import Callable, Iterator

from perfkit.account.causes.base import Evidence, Seen, cause
from perfkit.findings.account import THREAD, Line


def _lines_slowed(
    setting: str, is_slowed: Callable[[Line], bool]
) -> Callable[[Seen], Iterator[Evidence]]:
    def find(seen: Seen) -> Iterator[Evidence]:
        lines = [line for line in seen.account.lines if is_slowed(line)]
        if setting in seen.settings and lines:
            yield Evidence(
                lines=tuple(lines[:6]),
                share=seen.share(*lines),
                means=f"{seen.percent(*lines)} of the time goes into lines that it has "
                "Python run, one operation after the other.",
            )

    return find


_DATA_MODE = "tf.data.experimental.enable_debug_mode()"
_DATA_DEBUGGED = cause(
    "data-debug-mode", do=f"Take `{_DATA_MODE}` out", swap="debugging"
)(_lines_slowed(_DATA_MODE, lambda line: THREAD in line.parts[:1]))
_EAGER_MODE = "tf.config.run_functions_eagerly(True)"
_FUNCTIONS_EAGER = cause(
    "functions-run-eagerly", do=f"Take `{_EAGER_MODE}` out", swap="eager"
)(_lines_slowed(_EAGER_MODE, lambda line: line.is_eager))
