"""What a diagnosis claims, done by hand and measured once more.

The fixed version of a guilty training, or an opportunity as a user would write it, runs
interleaved with the training as given in a short run of its own, without any change.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from dataclasses import dataclass

import cloudpickle

from perfkit.engine.alone import Alone
from perfkit.engine.launcher import launcher
from perfkit.engine.measurement import Variant
from perfkit.engine.monitor import Monitor
from perfkit.engine.plan import Finished, Plan
from perfkit.engine.processes import in_process
from perfkit.engine.rounds import Run
from perfkit.errors import RunError
from perfkit.training.diagnose import look
from perfkit.training.diagnose.rounds import AS_GIVEN

BY_HAND = "by hand"
# Seconds in which a training has to make a few steps.
LOOKING = 60
# A trial that has not begun hangs after a third of the budget; it may take twice as
# long as the one that was looked at, or four times.
PER_FIRST_STEP = 12


def realised(given, changed, budget):
    """Measure a changed training against the one as given: their ``Comparison``.

    Args:
        given: Makes the training as given.
        changed: Makes the changed one.
        budget: Seconds to measure them; more where a first step takes long.

    Raises:
        RunError: One of them does not run.
    """
    alone = Alone()
    try:
        for _ in alone.wait(threading.Event()):
            pass
        facts = [looked(maker) for maker in (given, changed)]
        variants = (
            Variant(AS_GIVEN, functools.partial(look.trial, given, facts[0])),
            Variant(
                BY_HAND, functools.partial(look.trial, changed, facts[1]), "", AS_GIVEN
            ),
        )
        budget = max(budget, *(PER_FIRST_STEP * each.ready_s for each in facts))
        plan = Plan(variants=variants, baseline=AS_GIVEN, budget=budget)
        return compared(Run(plan, launcher(), Monitor()))
    finally:
        alone.let_go()


def compared(run):
    """Run it, and take what it says of the changed training."""
    for event in run.events():
        if isinstance(event, Finished):
            found = event.measurement.compare(BY_HAND, AS_GIVEN)
            if found is not None:
                return found
            ends = {f"{t.variant}: {t.message}" for t in event.measurement.trials}
            raise RunError(f"Too little was measured. {'; '.join(sorted(ends))}")
    raise RunError("The run had no end.")


def looked(maker):
    """Look at a training in a process of its own: its ``Facts``."""
    ended = in_process(functools.partial(look.look, maker), LOOKING)
    return look.facts_in(ended, "give it more seconds")


# Opportunities, as a user would write them.


def changed(given, cause):
    """Make a training with one opportunity taken; None if none is known.

    Args:
        given: Makes it as it is.
        cause: The ``Cause`` that was claimed.
    """
    how = KNOWN.get(cause.cause)
    if how is None:
        return None
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return Changed(given, how(cause))


@dataclass(frozen=True)
class Changed:
    """Makes a training while something that it calls is done another way."""

    given: object
    change: object

    def __call__(self):
        """Change, then make."""
        finish = self.change()
        made = self.given()
        return finish(made) if finish else made


def compiling(**options):
    """Write more arguments into ``model.compile(...)``."""

    def change():
        import keras

        compile_ = keras.Model.compile

        def compile_with_more(model, *given, **named):
            return compile_(model, *given, **named | options)

        keras.Model.compile = compile_with_more

    return change


def steps_at_a_time(cause):
    """Write ``steps_per_execution``, as many as the change names."""
    return compiling(steps_per_execution=number_in(cause.change))


def with_xla(cause):
    """Write ``jit_compile=True``."""
    return compiling(jit_compile=True)


def with_policy(cause):
    """Set the dtype policy that the change names before the model is made."""
    names = re.findall(r"mixed_\w+", f"{cause.change} {cause.fix}")

    def change():
        import keras

        keras.mixed_precision.set_global_policy(names[0])

    return change


def larger_batch(cause):
    """Batch several times as many examples, wherever the training batches them."""
    times = number_in(cause.change)

    def change():
        import tensorflow as tf

        batch = tf.data.Dataset.batch

        def larger(dataset, size, *given, **named):
            return batch(dataset, size * times, *given, **named)

        tf.data.Dataset.batch = larger
        return in_arguments

    def in_arguments(made):
        model, data, *rest = made
        options = dict(rest[0]) if rest else {}
        if isinstance(data, tuple):
            options["batch_size"] = times * options.get("batch_size", 32)
        return model, data, options

    return change


def number_in(text):
    """The number that the name of a change holds."""
    return int(re.findall(r"\d+", text)[-1])


KNOWN = {
    "xla": with_xla,
    "step-overhead": steps_at_a_time,
    "precision": with_policy,
    "small-batch": larger_batch,
}
