import itertools
import threading

import keras
import pytest

from perfkit.engine.trial import Note
from perfkit.questions.execution_mode import BY_DEFAULT, VARIANTS
from perfkit.questions.shared import loops
from perfkit.questions.shared.loops import Job, loss_function, optimizer_for

JOB = Job("tiny-dense", 8)


def compiled(**options):
    network = JOB.network()
    network.compile(optimizer=optimizer_for(network), loss=loss_function(), **options)
    return network


def fitting(network, steps, *, epochs=1, callbacks=(), **options):
    """What calls ``fit`` with the callback that counts."""
    asked = {"steps_per_epoch": steps, "epochs": epochs, "shuffle": False, "verbose": 0}
    asked |= options
    return lambda counting: network.fit(
        JOB.batches(), callbacks=[*callbacks, counting], **asked
    )


@pytest.mark.parametrize("at_once", [1, 4])
def test_ticks_hold_every_example_that_fit_has_trained_on(at_once):
    network = compiled(steps_per_execution=at_once)
    ticks = list(loops.ticks(fitting(network, 20, epochs=2), examples=8))
    assert sum(tick.examples for tick in ticks) == 2 * 20 * 8
    assert network.optimizer.iterations.numpy() == 40
    # The first call is a tick of its own.
    assert ticks[0].examples == at_once * 8


def test_fit_stands_still_while_a_tick_is_looked_at_and_its_thread_ends_with_it():
    network, heard, waited = compiled(), 0, []
    fit = fitting(network, 10**6)
    ticks = loops.ticks(fit, examples=8, sync=lambda: waited.append(1))
    for number, tick in enumerate(itertools.islice(ticks, 5), start=1):
        heard += tick.examples
        assert int(network.optimizer.iterations) * 8 == heard
        assert len(waited) == number
    assert any(t.name.startswith("perfkit-fit") for t in threading.enumerate())
    ticks.close()
    assert not any(t.name.startswith("perfkit-fit") for t in threading.enumerate())


def test_what_fit_raises_is_raised_here():
    def fail(batch, logs):
        raise ValueError("the batch is broken")

    failing = keras.callbacks.LambdaCallback(on_train_batch_begin=fail)
    ticks = loops.ticks(fitting(compiled(), 10, callbacks=[failing]), examples=8)
    with pytest.raises(ValueError, match="the batch is broken"):
        list(ticks)


@pytest.mark.parametrize(
    ("name", "xla"), [("fit", "auto"), ("fit XLA", True), ("fit without XLA", False)]
)
def test_fit_compiles_as_compile_does_unless_its_name_says_otherwise(name, xla):
    network = JOB.network()
    told = [n for n in VARIANTS[name].run(JOB.first(8), network) if isinstance(n, Note)]
    assert network.jit_compile is compiled(jit_compile=xla).jit_compile
    notes = {note.name: note.value for note in told}
    if name == "fit":
        assert notes[BY_DEFAULT] is network.jit_compile
