"""What several questions share: played GPUs, and photographs that are drawn once."""

import pytest

from perfkit.machine.record import Gpu
from perfkit.questions import cpu_or_gpu, microbenchmarks, scaling
from perfkit.questions.data_pipeline import work
from perfkit.questions.shared import benchmark, cache
from perfkit.questions.shared import images as shared_images
from perfkit.questions.shared.images import look_at

COUNT = 12
SIDE = 64


def ended(generator):
    """Run a generator to its end; give what it told and what it returned."""
    told = []
    while True:
        try:
            told.append(next(generator))
        except StopIteration as end:
            return told, end.value


@pytest.fixture(scope="session")
def _shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(_shared_cache, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(_shared_cache))


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Where questions keep their data, for one test alone."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def gpus(monkeypatch):
    """Lets questions find so many GPUs and cores; at first none and eight."""

    def have(count, cores=8):
        found = (Gpu(name="NVIDIA A10"),) * count, "No NVIDIA driver here."
        for question in (cpu_or_gpu, microbenchmarks, scaling):
            monkeypatch.setattr(question, "gpus_here", lambda: found)
        monkeypatch.setattr(benchmark, "granted", lambda: cores)

    have(0)
    return have


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """A folder with three classes of four photographs each."""
    folder = tmp_path_factory.mktemp("photos")
    for seed in range(COUNT):
        path = folder / f"class-{seed % 3}" / f"{seed:02d}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(shared_images.jpeg(seed, seed % 3))
    return folder


@pytest.fixture
def images(photos):
    return ended(look_at(photos, count=COUNT, side=SIDE))[1]


@pytest.fixture
def task(images):
    return work.Task(images=images, side=SIDE, batch=4)


@pytest.fixture
def forms(images):
    """The images in every form that a way reads."""
    for form in ("jpeg", "raw"):
        ended(shared_images.make_records(images, form))
