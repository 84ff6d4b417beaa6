import pytest

from perfkit.diagnosis.epochs import SHORTENED, UNKNOWN, Epochs
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.trial import epochs_for
from perfkit.measure.steady import steady
from tests.diagnosis.fits import BATCH, Clock, Costs, batches, training, trial

STEP_S, END_S, VALIDATION_S = 0.01, 0.2, 0.02


def measured(
    monkeypatch, epochs, steps, validation=0, data=None, begin=0.0, **arguments
):
    clock = Clock()
    clock.install(monkeypatch)
    costs = Costs(clock, STEP_S, END_S, VALIDATION_S, begin)
    if validation:
        arguments["validation_data"] = batches(validation)

    def making():
        return training(data or batches(steps), callbacks=[costs], **arguments)

    return trial(making, epochs, clock)


def rate(found):
    part = steady(found)
    return part.with_pauses(part.pauses_s).rate


@pytest.mark.parametrize("steps", [2, 12, 200])
def test_the_end_of_an_epoch_has_its_share_however_long_epochs_are(monkeypatch, steps):
    facts = Facts(batch=BATCH, steps=steps, step_s=STEP_S)
    found = measured(monkeypatch, epochs_for(facts), steps)
    whole = steps * BATCH / (steps * STEP_S + END_S)
    assert rate(found) == pytest.approx(whole, rel=0.01)


def test_long_epochs_are_ended_early_and_short_ones_are_whole():
    long = epochs_for(Facts(batch=BATCH, steps=10_000, step_s=STEP_S))
    assert long.trial_steps == 35
    assert not long.whole
    short = epochs_for(Facts(batch=BATCH, steps=5, step_s=STEP_S))
    assert short.trial_steps is None
    assert short.whole


@pytest.mark.parametrize("steps", [2, 12, 200])
def test_a_validation_has_its_share_however_long_epochs_are(monkeypatch, steps):
    facts = Facts(
        batch=BATCH, steps=steps, step_s=STEP_S, validation_steps=10, validated=1
    )
    found = measured(monkeypatch, epochs_for(facts), steps, validation=10)
    epoch_s = steps * STEP_S + END_S + 10 * VALIDATION_S
    assert rate(found) == pytest.approx(steps * BATCH / epoch_s, rel=0.01)
    assert SHORTENED not in found.notes


@pytest.mark.parametrize("begin", [0.0, 0.5])
def test_a_long_validation_is_shortened_and_its_cost_scaled_up(monkeypatch, begin):
    facts = Facts(
        batch=BATCH, steps=40, step_s=STEP_S, validation_steps=100, validated=1
    )
    found = measured(monkeypatch, epochs_for(facts), 40, validation=100, begin=begin)
    assert 0 < found.notes[SHORTENED] < 0.3
    # What comes before its first batch comes once, however many batches there are.
    epoch_s = 40 * STEP_S + END_S + 100 * VALIDATION_S + begin
    assert rate(found) == pytest.approx(40 * BATCH / epoch_s, rel=0.02)
    assert max(found.pauses["validation"]) < 100 * VALIDATION_S / 2


def test_a_validation_that_comes_seldom_costs_each_epoch_less(monkeypatch):
    facts = Facts(
        batch=BATCH, steps=20, step_s=STEP_S, validation_steps=10, validated=5
    )
    found = measured(
        monkeypatch, epochs_for(facts), 20, validation=10, validation_freq=5
    )
    epoch_s = 20 * STEP_S + END_S + 10 * VALIDATION_S / 5
    assert rate(found) == pytest.approx(20 * BATCH / epoch_s, rel=0.01)


def test_of_a_long_validation_of_unknown_length_nothing_is_claimed(monkeypatch):
    facts = Facts(
        batch=BATCH, steps=40, step_s=STEP_S, validation_steps=None, validated=1
    )
    found = measured(monkeypatch, epochs_for(facts), 40, validation=100)
    assert UNKNOWN in found.notes
    assert "validation" not in found.recurring


def test_epochs_of_unknown_length_are_counted_as_they_end(monkeypatch):
    unknown = batches(12).filter(lambda x, y: True)
    found = measured(monkeypatch, Epochs(batch=BATCH), 12, data=unknown)
    epoch_s = 12 * STEP_S + END_S
    assert rate(found) == pytest.approx(12 * BATCH / epoch_s, rel=0.01)


def test_an_execution_that_holds_fewer_steps_counts_no_more_than_it_made(monkeypatch):
    unknown = batches(20).filter(lambda x, y: True)

    def made_at_a_time():
        made = training(unknown, callbacks=[Costs(clock, 16 * STEP_S)])
        made.model.steps_per_execution = 16
        return made

    clock = Clock()
    clock.install(monkeypatch)
    found = trial(made_at_a_time, Epochs(batch=BATCH), clock, most=12)
    counted = [examples for _, examples in found.ticks if examples]
    assert set(counted) <= {16 * BATCH, 4 * BATCH}


def test_a_ragged_last_batch_counts_for_what_it_holds():
    facts = Facts(batch=32, steps=9, step_s=0.1)
    larger = epochs_for(facts, ())
    assert larger.examples == 288


def test_a_validation_that_a_swap_makes_seldom_counts_as_seldom(monkeypatch):
    clock = Clock()
    clock.install(monkeypatch)

    def every(frequency):
        def making():
            made = training(
                batches(6), validation_data=batches(1), callbacks=[Costs(clock)]
            )
            made.arguments["validation_freq"] = frequency
            return made

        known = Epochs(batch=BATCH, steps=6, examples=6 * BATCH, validated=1)
        return trial(making, known, clock, 20).recurring["validation"][0]

    assert every(5) == 5 * every(1)
