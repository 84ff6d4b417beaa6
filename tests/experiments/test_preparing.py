"""What prepares a run takes no GPU: it would be missed by every trial."""

import pytest

import perfkit
from perfkit.experiments import experiment

# Two hide nothing before they compute on the GPU, and one asks other processes first.
OTHERS = {"contention", "convolution", "scaling"}


@pytest.mark.parametrize("name", sorted({*perfkit.experiments()} - OTHERS))
def test_gpus_are_hidden_before_anything_computes(name):
    class Hidden(Exception):
        pass

    def prepared(tf):
        def hide(*_):
            # Refused once TensorFlow has computed something, with a GPU or without.
            (cpu,) = tf.config.list_physical_devices("CPU")
            parts = [tf.config.LogicalDeviceConfiguration()] * 2
            tf.config.set_logical_device_configuration(cpu, parts)
            raise Hidden

        tf.config.set_visible_devices = hide
        with pytest.raises(Hidden):
            list(experiment(name).prepare())
        return "hidden"

    assert perfkit.fresh(prepared) == "hidden"
