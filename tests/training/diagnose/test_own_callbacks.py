import tempfile
from pathlib import Path

import keras
import pytest

from perfkit.training.diagnose.epochs import Epochs
from perfkit.training.diagnose.facts import steers
from perfkit.training.diagnose.training import left_out, prepare_callbacks
from tests.training.diagnose.fits import BATCH, Costs, batches, training, trial

EPOCHS = Epochs(batch=BATCH, steps=2, examples=2 * BATCH)


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_keras_writes_lies_in_a_folder_of_the_trial(tmp_path, monkeypatch, clock):
    temporary, mine = tmp_path / "temporary", tmp_path / "mine"
    temporary.mkdir()
    mine.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    given = [
        keras.callbacks.ModelCheckpoint(mine / "at-{epoch}-{loss:.2f}.keras"),
        keras.callbacks.CSVLogger(mine / "log.csv"),
        keras.callbacks.BackupAndRestore(str(mine / "backup")),
        Costs(clock, 0.02),
    ]
    trial(lambda: training(batches(2), callbacks=given), EPOCHS, clock, 12)
    assert files(mine) == []
    written = {path.name for path in files(temporary)}
    assert {"at-n-n.keras", "log.csv", "latest.weights.h5"} <= written


class Stubborn(Costs):
    """Wants to stop, and keeps what it was told."""

    def __init__(self, clock):
        super().__init__(clock, 0.02)
        self.called, self.epochs = set(), set()

    def on_train_begin(self, logs=None):
        self.called.add("train")

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.add(epoch)

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch)
        self.called.add("batch")
        self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        self.called.add("epoch")
        self.epochs.add(epoch)
        self.model.stop_training = True


LISTS = {
    "list": list,
    "CallbackList": keras.callbacks.CallbackList,
    "single": lambda given: given[0],
}


@pytest.mark.parametrize("listed_as", LISTS.values(), ids=LISTS)
def test_no_callback_ends_a_trial_and_each_of_its_hooks_is_called(clock, listed_as):
    given = listed_as([stubborn := Stubborn(clock)])
    made = training(batches(2), callbacks=given, epochs=3)
    found = trial(lambda: made, EPOCHS, clock, 30)
    assert sum(examples > 0 for _, examples in found.ticks) > 10
    assert stubborn.called == {"train", "batch", "epoch"}
    assert stubborn.epochs == {0, 1, 2}


class Saved(keras.callbacks.ModelCheckpoint):
    pass


def test_what_is_not_keras_own_may_steer_the_training():
    its = keras.callbacks
    steer = (
        *(Saved("a.keras"), Stubborn(None), its.EarlyStopping()),
        *(its.LambdaCallback(), its.SwapEMAWeights()),
    )
    assert [one for one in steer if not steers(one)] == []
    watch = its.ModelCheckpoint("a.keras"), its.CSVLogger("a"), its.TensorBoard("a")
    assert [one for one in watch if steers(one)] == []


def test_what_reaches_beyond_a_trial_is_left_out():
    monitor = keras.callbacks.RemoteMonitor()
    assert left_out(monitor)
    assert prepare_callbacks([monitor, None], 1) == []
    assert not left_out(keras.callbacks.CSVLogger(Path("x.csv")))
