"""What a training really runs on, asked of the process that it runs in."""

import os
import sys
from pathlib import Path

import pytest

import perfkit
from perfkit.engine.trial import READY
from perfkit.errors import RunError
from perfkit.questions import cpu_or_gpu as trainings
from perfkit.questions.cpu_or_gpu import ALL_CORES, GPU, ONE_CORE, Device


def look_at(device):
    """Train a little in a new process; give its examples, cores and threads."""

    def look(_):
        work = trainings.train(device, trainings.dense(64), 16)
        ready, *items = [next(work) for _ in range(3)]
        assert ready == READY
        tasks = Path("/proc/self/task").glob("*/comm")
        threads = [task.read_text().strip() for task in tasks].count("tf_Compute")
        return [i.examples for i in items], len(os.sched_getaffinity(0)), threads

    return perfkit.fresh(look)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has both to count")
def test_one_core_is_one_core_and_all_cores_have_a_thread_of_tensorflow_each(
    monkeypatch,
):
    examples, *alone = look_at(ONE_CORE)
    assert all(done and done % 16 == 0 for done in examples)
    assert alone == [1, 1]
    # Whatever the environment says.
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")
    _, cores, threads = look_at(ALL_CORES)
    assert cores == threads == len(os.sched_getaffinity(0))


def test_without_a_gpu_no_network_is_timed_as_if_there_were_one():
    def look(tf):
        tf.config.set_visible_devices([], "GPU")
        with pytest.raises(RunError, match="TensorFlow cannot use a GPU here"):
            trainings.A_GPU.take()
        trainings.built(Device("GPU", GPU, lambda: None), trainings.dense(4))

    with pytest.raises(RunError, match=r"The network lies on|InvalidArgumentError"):
        perfkit.fresh(look)
