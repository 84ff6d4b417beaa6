"""Diagnoses from before 0.1: what they lack is filled in. This goes with 0.2."""

from typing import Any

from perfkit.findings.diagnosis import WITHOUT_INPUT as _INPUT
from perfkit.findings.diagnosis import WITHOUT_OBSERVERS as _OBSERVERS

# By the id of a cause: what to do, what to mind, and the group that it lies in.
_EARLY = {
    "input-bound": ("Make the input faster", "", ""),
    "serial-map": ("Let the maps work on several elements at a time", "", _INPUT),
    "no-prefetch": ("Prefetch the batches while the model works", "", _INPUT),
    "no-cache": ("Cache what each epoch makes again", "", _INPUT),
    "python-input": ("Make the input without Python", "", _INPUT),
    "slow-read": ("Read the files faster", "", _INPUT),
    "per-example-map": ("Batch before the map", "", _INPUT),
    "late-shuffle": ("Shuffle before the map", "", _INPUT),
    "epoch-boundary": ("Let the data go on from epoch to epoch", "", _INPUT),
    "host-to-device": ("Copy the batches to the GPU ahead", "", ""),
    "eager": ("Run the steps as a graph", "What a step counts then counts once.", ""),
    "step-overhead": ("Run several steps at a time", "", ""),
    "small-batch": ("Make the batch larger", "It changes what is learnt.", ""),
    "retracing": ("Let each function be traced once", "", ""),
    "callback": ("Let less watch the training", "", _OBSERVERS),
    "validation": ("Spend less time on validation", "", _OBSERVERS),
    "xla": ("Compile the steps with XLA", "", ""),
    "precision": ("Train with mixed precision", "It may change what is learnt.", ""),
    "debugging": ("Switch off what is for debugging", "", ""),
    "threads": ("Let TensorFlow choose how many threads it takes", "", ""),
    "padding": ("Pad each batch to its longest example", "", ""),
    "contention": ("Train while no other program takes the processor", "", ""),
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
