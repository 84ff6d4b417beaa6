"""What perfkit says of a GPU, each proved on one.

    python3 start.py test -- -m gpu

The first line of each test is the claim, and `docs/trust.md` lists them all with what
came of them. What was measured is kept in `artifacts/gpu/`; what one card gave lies in
`recorded/`, to be read again where there is no GPU.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import perfkit
from perfkit.engine.processes import in_process
from perfkit.engine.trial import Note
from perfkit.machine.nvml import READINGS, GpuReader

pytestmark = pytest.mark.gpu
KEPT = Path("artifacts/gpu")


def asked(question, budget=90, **parameters):
    finding = perfkit.run(question, budget=budget, folder=KEPT, **parameters)
    assert finding.timings, finding.verdict.headline
    return finding


def timed(finding):
    return {timing.variant for timing in finding.timings}


def make_training():
    import keras
    import tensorflow as tf

    x, y = tf.random.normal((8192, 784)), tf.zeros(8192, tf.int32)
    layers = [keras.layers.Dense(1024, activation="relu") for _ in range(4)]
    layers.append(keras.layers.Dense(10, dtype="float32"))
    model = keras.Sequential([keras.Input((784,)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model, tf.data.Dataset.from_tensor_slices((x, y)).batch(256)


def test_the_doctor():
    """The card and its driver are found, and what it computes is right."""
    found = perfkit.doctor(prove=True)
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / "doctor.json").write_text(found.to_json())
    start = found.machine.start
    assert found.machine.driver
    assert found.machine.gpus
    assert "GPU:0" in start.devices
    on_gpu = [proof for proof in start.proofs if proof.device == "GPU:0"]
    assert {proof.computation for proof in on_gpu} == {"convolution", "matrix product"}
    for proof in on_gpu:
        assert proof.ran_on.endswith("GPU:0"), proof
        assert proof.error <= proof.allowed, proof
    unknown = [said.line for said in start.said if not said.meaning]
    assert not unknown, unknown


def test_its_microbenchmarks():
    """No part of the card, nor its link, is measured as faster than theory allows."""
    finding = asked("machine-ladder", budget=120)
    parts = {
        name: one
        for name, one in finding.notes["microbenchmarks"].items()
        if one["group"] == "GPU"
    }
    assert parts.keys() <= timed(finding)
    for timing in finding.timings:
        limit = parts.get(timing.variant, {}).get("limit")
        assert limit is None or timing.low <= limit, timing


def test_what_is_read_while_a_training_runs():
    """Load, memory, power, clock and heat of the card are in every run's samples."""
    finding = asked("embedding-lookup")
    refused = [
        name
        for name in READINGS
        if not any(v is not None for v in finding.samples.get(f"gpu0_{name}", ()))
    ]
    assert not refused


def test_a_processor_against_the_card():
    """Both devices are timed at each width."""
    finding = asked("cpu-or-gpu", budget=75)
    assert not finding.unavailable
    assert {"CPU", "GPU"} == {name.partition(",")[0] for name in timed(finding)}


def test_the_precisions():
    """float16 is scaled and trains; it is compared with what the hardware promises."""
    assert "mixed_float16" in timed(asked("mixed-precision"))


HOLD = """
import sys
import tensorflow as tf
gpu, *_ = tf.config.list_physical_devices("GPU")
share = tf.config.LogicalDeviceConfiguration(memory_limit=int(sys.argv[1]))
tf.config.set_logical_device_configuration(gpu, [share])
tf.ones(1)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def nearly_full():
    """Another program has all of the card's memory but 2 GB, whatever card it is."""
    (gpu, *_) = perfkit.machine().gpus
    command = [sys.executable, "-c", HOLD, str(gpu.memory // 2**20 - 2048)]
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipe) as other:
        assert other.stdout.readline() == "held\n"
        yield
        other.stdin.close()


@pytest.mark.usefixtures("nearly_full")
def test_a_batch_that_does_not_fit():
    """A batch too large for the card ends its own process, and the search goes on."""
    finding = asked("batch-size", budget=180, model="small-resnet", largest=256)
    assert finding.machine.gpus
    assert any("fit into the GPU's memory" in told for told in finding.verdict.warnings)


def test_who_uses_xla():
    """Left to itself, Keras compiles with XLA where there is a GPU."""
    finding = asked("execution-mode", budget=60)
    assert "compiles with XLA" in [fact.value for fact in finding.verdict.facts]


def test_where_a_map_runs():
    """`map` runs on the processor: its batches lie there."""
    finding = asked("data-pipeline", variants="essential,python")
    rows = {fact.label: fact.value for fact in finding.verdict.facts}
    assert rows["Batches were made on"] == "CPU:0"


def test_another_program_on_the_card():
    """Another program that computes on the card is timed, and told by its counters."""
    assert "gpu product" in timed(asked("contention", budget=60))


def test_several_devices():
    """Several cards make the step that one makes on the whole batch."""
    if len(perfkit.machine().gpus) < 2:
        pytest.skip("needs two GPUs")
    finding = asked("scaling")
    assert any(variant.startswith("2 ") for variant in timed(finding))


def test_a_diagnosis():
    """A training on the card is diagnosed."""
    assert len(perfkit.diagnose(make_training, budget=180, folder=KEPT).table())


def test_a_profile():
    """A trace has the card's operations."""
    assert "device" in set(perfkit.profile(make_training).ops()["device"])


def test_a_passport():
    """A passport holds the card's parts, and the same machine is not called another."""
    KEPT.mkdir(parents=True, exist_ok=True)
    one = perfkit.passport(KEPT / "passport.json", budget=240)
    assert any(part.group == "GPU" for part in one.microbenchmarks)
    # Beside other programs the same machine may be too noisy to say.
    said = "no difference shown", "too noisy to say"
    assert perfkit.compare(one, one).verdict in said


def held_and_killed():
    import os

    import tensorflow as tf

    kept = tf.ones((256, 1024, 1024))
    yield Note("device", kept.device)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_trial():
    """A process that is killed leaves nothing of the card's memory taken."""
    reader = GpuReader()
    before = reader.sample()["gpu0_memory"]
    assert in_process(held_and_killed, 120.0).outcome == "crashed"
    assert reader.sample()["gpu0_memory"] < before + 2**26
    reader.close()


def test_settings_that_hold_once():
    """A card that is hidden is not used; beyond a limit of its memory is an error."""

    def hidden(tf):
        tf.config.set_visible_devices([], "GPU")
        return [one.name for one in tf.config.list_logical_devices()]

    def limited(tf):
        (gpu, *_) = tf.config.list_physical_devices("GPU")
        share = tf.config.LogicalDeviceConfiguration(memory_limit=500)
        tf.config.set_logical_device_configuration(gpu, [share])
        return tf.ones((400, 1024, 1024)).device

    assert not [name for name in perfkit.fresh(hidden) if "GPU" in name]
    with pytest.raises(perfkit.PerfkitError, match="memory"):
        perfkit.fresh(limited)
