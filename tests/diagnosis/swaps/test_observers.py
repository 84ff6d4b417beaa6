import keras
import pytest

from perfkit.diagnosis.epochs import Epochs
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.swap import Untested
from perfkit.diagnosis.swaps import observers
from tests.diagnosis.fits import BATCH, Clock, Costs, batches, training, trial


def named(**known):
    return {swap.name: swap for swap in observers.observers(Facts(**known))}


def test_each_callback_is_left_out_alone_and_two_of_a_class_are_told_apart():
    found = named(callbacks=("CSVLogger", "Mine", "CSVLogger"))
    alone = ["without CSVLogger", "without Mine", "without CSVLogger (2)"]
    assert list(found) == [observers.GROUP, *alone]
    assert {swap.cause for swap in found.values()} == {"callback"}


def test_several_that_watch_are_first_left_out_together():
    found = named(callbacks=("A",), metrics=("auc",), progress=True)
    first, *others = found.values()
    assert first.name == observers.GROUP
    assert first.ceiling
    assert {swap.after for swap in others} == {observers.GROUP}
    (alone,) = named(callbacks=("A",)).values()
    assert not alone.after


def test_metrics_and_the_progress_bar_are_looked_at_where_they_are_there():
    assert list(named(metrics=("accuracy",), progress=True)) == [
        observers.GROUP,
        "without metrics",
        "without progress bar",
    ]
    assert named() == {}
    assert "accuracy" in named(metrics=("accuracy",))["without metrics"].changes


def test_without_observers_nothing_is_called_and_nothing_validated(monkeypatch):
    assert called(monkeypatch, observers.without_observers) == []


def test_little_watching_is_no_defect():
    swaps = named(callbacks=("Mine",), metrics=("auc",), progress=True).values()
    assert all(swap.kind == "by gain" and swap.defect_from >= 1.1 for swap in swaps)


def test_what_no_trial_runs_is_named_and_not_swapped():
    (found,) = observers.observers(Facts(callbacks=("RemoteMonitor",)))
    assert isinstance(found, Untested)
    assert "RemoteMonitor" in found.why


def called(monkeypatch, swap):
    clock, hooks = Clock(), []
    clock.install(monkeypatch)

    def making():
        mine = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: hooks.append(sorted(logs))
        )
        made = training(
            batches(2), callbacks=[mine, Costs(clock, 0.03)], metrics=["mae"]
        )
        swap(made)
        return made

    trial(making, Epochs(batch=BATCH, steps=2, examples=2 * BATCH), clock, 6)
    return hooks


def test_a_callback_that_is_left_out_is_called_no_more(monkeypatch):
    swap = named(callbacks=("LambdaCallback", "Costs"))["without LambdaCallback"]
    assert called(monkeypatch, swap.apply) == []
    assert called(monkeypatch, lambda training: None)


def test_without_metrics_nothing_but_the_loss_is_logged(monkeypatch):
    hooks = called(monkeypatch, observers.without_metrics)
    assert hooks
    assert all(logged == ["loss"] for logged in hooks)
    assert ["loss", "mae"] in called(monkeypatch, lambda training: None)


@pytest.mark.parametrize("followed", ["val_mae", "loss"])
def test_who_follows_a_metric_goes_on_with_the_loss(followed):
    stopping = keras.callbacks.EarlyStopping(followed, mode="max")
    made = training(batches(2), callbacks=[stopping], metrics=["mae"])
    observers.without_metrics(made)
    assert stopping.monitor == "loss"
