"""Diagnoses from before 0.1: what they lack is filled in. This goes with 0.2."""

from typing import Any

from perfkit.findings.diagnosis import WITHOUT_INPUT as _INPUT
from perfkit.findings.diagnosis import WITHOUT_OBSERVERS as _OBSERVERS

# By the id of a cause: what to do, what to mind, and the group that it lies in.
_EARLY = {
    "input-bound": ("Make the input faster", "", ""),
    "serial-map": ("Run the maps in parallel", "", _INPUT),
    "no-prefetch": ("Prefetch batches while the model works", "", _INPUT),
    "no-cache": ("Cache what every epoch recomputes", "", _INPUT),
    "python-input": ("Take Python out of the input", "", _INPUT),
    "slow-read": ("Read the files faster", "", _INPUT),
    "per-example-map": ("Batch before the map", "", _INPUT),
    "late-shuffle": ("Shuffle before the map", "", _INPUT),
    "epoch-boundary": ("Keep one iterator for all epochs", "", _INPUT),
    "host-to-device": ("Copy the batches to the GPU ahead", "", ""),
    "eager": ("Run the steps as a graph", "Python in a step then runs once.", ""),
    "step-overhead": ("Run several steps per call", "", ""),
    "small-batch": ("Make the batch larger", "A larger batch learns differently.", ""),
    "retracing": ("Stop retracing: trace each function once", "", ""),
    "callback": ("Do less in callbacks, metrics and validation", "", _OBSERVERS),
    "validation": ("Spend less time on validation", "", _OBSERVERS),
    "xla": ("Compile the steps with XLA", "", ""),
    "precision": (
        "Train with mixed precision",
        "Fewer bits may change what is learnt.",
        "",
    ),
    "debugging": ("Turn debugging off", "", ""),
    "threads": ("Let TensorFlow choose the number of threads", "", ""),
    "padding": ("Pad each batch only to its longest example", "", ""),
    "contention": ("Train while no other program uses the cores", "", ""),
    "memory-pressure": ("Use less memory", "", ""),
}


def complete(document: Any) -> None:
    """Fill in the causes of a diagnosis, in place; leave nonsense alone."""
    causes = document.get("causes") if isinstance(document, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if not isinstance(cause, dict) or "do" in cause:
            continue
        name, change = str(cause.get("cause")), cause.get("change")
        do, mind, group = _EARLY.get(name, (f"Do something about {name}", "", ""))
        cause.update(
            do=do,
            mind=cause.get("caution") or mind,
            group=group,
            ceiling=change in (_INPUT, _OBSERVERS),
        )
        if change == _INPUT:
            cause["subject"] = "Without any input it"
