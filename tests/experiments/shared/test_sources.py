import numpy as np
import pytest
from PIL import Image

from perfkit.errors import MissingPartError
from perfkit.experiments.shared import images


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("PERFKIT_CACHE", str(tmp_path))


@pytest.fixture
def cifar10(monkeypatch):
    """CIFAR-10 as Keras gives it, ten images of it."""
    import keras

    pixels = np.random.default_rng(0).integers(0, 255, (10, 32, 32, 3), "uint8")
    labels = np.arange(10, dtype="uint8")[:, None] % 3
    monkeypatch.setattr(
        keras.datasets.cifar10, "load_data", lambda: ((pixels, labels), (None, None))
    )
    return pixels


def test_photographs_are_drawn_into_a_folder_for_each_class(run):
    told, folder = run(images.image_folder("photographs", 16))
    files = sorted(folder.rglob("*.jpg"))
    assert len(files) == 16
    assert len({path.parent for path in files}) == 10
    assert Image.open(files[0]).size == (500, 375)
    assert told[-1].value == "Drawing photographs, once (1.84 MB): 16 of 16"
    assert run(images.image_folder("photographs", 16))[0] == []


def test_all_of_cifar10_comes_from_keras_without_loss(run, cifar10):
    _, folder = run(images.image_folder("cifar10", 1000))
    assert len(list(folder.rglob("*.png"))) == len(cifar10)
    for index, pixels in enumerate(cifar10):
        path = folder / f"class-{index % 3}" / f"{index:05d}.png"
        np.testing.assert_array_equal(np.asarray(Image.open(path)), pixels)


def test_no_network_is_said_in_a_sentence(run, monkeypatch, tmp_path):
    import keras

    def fails():
        raise Exception("URL fetch failure on https://somewhere: None -- [Errno -2]")

    monkeypatch.setattr(keras.datasets.cifar10, "load_data", fails)
    with pytest.raises(
        MissingPartError, match=r"\(URL fetch failure\); it needs the net"
    ):
        run(images.image_folder("cifar10", 10))
    assert not list(tmp_path.iterdir())
