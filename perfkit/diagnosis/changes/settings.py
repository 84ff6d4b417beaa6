"""Settings that slow a training, left off: what is for debugging, threads, repeats."""

import functools
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from perfkit.diagnosis import settings
from perfkit.diagnosis.change import Change, Judged, Untested, nothing, of_data
from perfkit.diagnosis.changes.resident import NAME as CEILING
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.pipeline import AT_ONCE
from perfkit.diagnosis.training import Training

# What leaving settings of one cause off is called and means; what it changes, and what
# else the line to change has to say.
_LEFT: dict[str, tuple[str, Judged, str, str]] = {
    "debugging": (
        "without debugging",
        "defect",
        "What is for debugging stays off: {}.",
        "",
    ),
    "threads": (
        "default threads",
        "defect",
        "TensorFlow takes as many threads as it finds cores, without {}.",
        "",
    ),
    "determinism": (
        "without determinism",
        "opportunity",
        "Operations need not give the same bits in each run: without {}.",
        " Two runs then differ by rounding, and more where that adds up.",
    ),
    "float64": (
        "float32",
        "by gain",
        "Layers compute and keep their weights in float32: without {}.",
        " Keep float64 where the result needs more than 7 digits.",
    ),
    # In fit this is changed together with what the model was compiled with.
    "eager": (
        "graph",
        "defect",
        "What is under @tf.function is traced once and run as a graph: without {}.",
        "",
    ),
}
# The causes, by the names of the changes.
LEFT_OFF = {name: cause for cause, (name, *_) in _LEFT.items()}
# What is about the pipeline alone explains an input that is slow.
_OF_INPUT = ("tf.data.", "options.")
_POOL = "threading.private_threadpool_size"


def left_off(facts: Facts) -> Iterator[Change]:
    """Every setting that is on and slows, those of a cause together."""
    size = facts.pipeline.get("threads")
    for cause, (name, kind, changes, also) in _LEFT.items():
        # An option of the pipeline has the same effect; it is told as it is typed.
        own = [f"options.{_POOL} = {size}"] if size and cause == "threads" else []
        lines = [*facts.settings.get(cause, ()), *own]
        if not lines or (cause == "eager" and not facts.loop):
            continue
        listed = " and ".join(f"`{line}`" for line in lines)
        yield Change(
            name=name,
            cause=cause,
            kind=kind,
            changes=changes.format(listed),
            fix=f"Delete {listed}.{also}",
            # 0 stands for as many as there are cores.
            apply=with_option(_POOL, 0) if own else nothing,
            before=functools.partial(settings.leave_off, cause),
            after=CEILING if all(o.startswith(_OF_INPUT) for o in lines) else "",
        )


def any_order(facts: Facts) -> Iterator[Change | Untested]:
    """Elements that are ready first given first, where several are made at a time."""
    if not any(s["kind"] in AT_ONCE and s["parallel"] for s in facts.stages):
        return
    if facts.pipeline.get("deterministic") is False:
        yield Untested("determinism", "the pipeline gives its elements in any order")
        return
    yield Change(
        name="any order",
        cause="determinism",
        kind="opportunity",
        changes="Parallel stages give what is ready first, and wait for none.",
        fix="options = tf.data.Options(); options.deterministic = False; dataset = "
        "dataset.with_options(options). The order then differs from run to run.",
        apply=with_option("deterministic", False),
        after=CEILING,
    )


def with_option(name: str, value: object) -> Callable[[Training], None]:
    """What gives a pipeline an option, such as ``"autotune.enabled"``."""
    outer, _, last = name.rpartition(".")

    def given(dataset: Any) -> Any:
        import tensorflow as tf

        options = tf.data.Options()
        setattr(attrgetter(outer)(options) if outer else options, last, value)
        return dataset.with_options(options)

    return of_data(given)
