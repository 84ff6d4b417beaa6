"""Settings for debugging that were left on: all of it runs as Python then."""

from collections.abc import Callable, Iterator

from perfkit.account.causes.base import Evidence, View, cause
from perfkit.findings.account import THREAD, Line


def _lines_slowed(
    setting: str, is_slowed: Callable[[Line], bool]
) -> Callable[[View], Iterator[Evidence]]:
    def find(view: View) -> Iterator[Evidence]:
        lines = [line for line in view.account.lines if is_slowed(line)]
        if setting in view.settings and lines:
            yield Evidence(
                lines=tuple(lines[:6]),
                share=view.share(*lines),
                means=f"{view.percent(*lines)} of the time goes into lines that it has "
                "Python run, one operation after the other.",
            )

    return find


_DATA_MODE = "tf.data.experimental.enable_debug_mode()"
_FIX = "Delete the line, or run it only while you debug"
_DATA_DEBUGGED = cause(
    "data-debug-mode", do=f"Take `{_DATA_MODE}` out", fix=_FIX, swap="debugging"
)(_lines_slowed(_DATA_MODE, lambda line: THREAD in line.parts[:1]))
_EAGER_MODE = "tf.config.run_functions_eagerly(True)"
_FUNCTIONS_EAGER = cause(
    "functions-run-eagerly", do=f"Take `{_EAGER_MODE}` out", fix=_FIX, swap="eager"
)(_lines_slowed(_EAGER_MODE, lambda line: line.is_eager))
