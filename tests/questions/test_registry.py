import pickle
import re

import numpy as np
import pytest

import perfkit.questions
from perfkit.engine.measurement import Measurement, Variant
from perfkit.errors import BadParameterError
from perfkit.questions import experiment, experiments, find_class
from perfkit.questions.base import Choice, parameters_of
from tests.findings.made import failed


def test_each_experiment_has_a_name_of_its_own():
    assert len(list(perfkit.questions._kinds())) == len(experiments())


@pytest.mark.parametrize(
    ("name", "meant"), [("data_pipeline", "data-pipeline"), ("nap", None)]
)
def test_a_wrong_name_is_refused_with_the_one_that_was_meant(name, meant):
    with pytest.raises(BadParameterError, match="Choose from: ") as caught:
        find_class(name)
    assert (f"Did you mean {meant!r}?" in str(caught.value)) == (meant is not None)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [({"nap": 1}, "Did you mean 'nap_ms'"), ({"batch": 3.5}, "give a whole number")],
)
def test_a_wrong_parameter_is_refused_with_what_is_right(napping, wrong, why):
    with pytest.raises(BadParameterError, match=why):
        experiment("napping", **wrong)
    for whole in (np.int64(32), 32.0):
        assert type(experiment("napping", batch=whole).batch) is int


@pytest.mark.parametrize("name", list(experiments()))
def test_an_experiment_says_its_question_and_what_each_parameter_is(name):
    kind = experiments()[name]
    assert kind().question.endswith("?")
    # These names are of the run.
    taken = {"what", "name", "budget", "guess", "seed", "folder", "json", "out", "help"}
    for parameter in parameters_of(kind):
        assert parameter.help or not parameter.accepts
        assert parameter.name not in {*taken, "command"}
        if isinstance(parameter.accepts, Choice):
            known = ", ".join(parameter.accepts.options)
            said = f"{parameter.name} is 'turbo'; choose from {known}."
            with pytest.raises(BadParameterError, match=re.escape(said)):
                experiment(name, **{parameter.name: "turbo"})


def asked_in_every_way(kind):
    """As it is, and with each word of what takes words."""
    yield kind()
    for parameter in parameters_of(kind):
        accepts = parameter.accepts
        if isinstance(accepts, Choice):
            assert not any("," in word for word in accepts.options)
            for word in accepts.options:
                yield kind(**{parameter.name: word})


EVERY = [
    pytest.param(asked, id=f"{name} {list(asked.parameters.values())}")
    for name, kind in experiments().items()
    for asked in asked_in_every_way(kind)
]
# As a teacher would put them on a slide.
MOST_LINES, MOST_COLUMNS = 16, 96
# What nobody chooses shows no lines: loads, parts of a machine, fixed trainings ...
WITHOUT_CODE = {"contention", "machine-ladder", "reference-trainings"}
# ... and what a convolution cannot exceed.
LIMITS = {"arithmetic limit", "memory limit"}


@pytest.mark.parametrize("asked", EVERY)
def test_variants_travel_stand_against_variants_and_have_code_for_a_slide(asked):
    variants = asked.make_variants()
    assert asked.baseline in variants
    for called, variant in variants.items():
        assert pickle.loads(pickle.dumps(variant)).name == variant.name == called
        assert variant.against in ("", *variants)
        assert variant.changes or variant.unavailable
        # What this machine cannot have may have nothing to show.
        needs_none = asked.name in WITHOUT_CODE or called in LIMITS
        assert needs_none or asked.code.get(called) or variant.unavailable
    for called, lines in asked.code.items():
        compile(lines, called, "exec")
        assert len(lines.splitlines()) <= MOST_LINES, f"{called}:\n{lines}"
        assert max(map(len, lines.splitlines())) <= MOST_COLUMNS, lines
        assert "Any" not in lines
        assert "perfkit" not in lines


@pytest.mark.parametrize("name", list(experiments()))
def test_before_anything_is_measured_nothing_is_claimed_and_what_failed_is_told_once(
    name,
):
    asked = experiment(name)
    found = asked.verdict(Measurement(variants=tuple(asked.make_variants().values())))
    assert (found.winner, found.interval, found.edits) == ("", "", ())
    crash = failed("one", "crashed", "raised ValueError: no")
    gone = Variant("two", list, unavailable="needs a toaster")
    said = asked.verdict(Measurement(variants=(gone,), trials=(crash, crash))).because
    if name != "machine-ladder":
        assert said.count('"one" raised ValueError: no.') == 1
        assert said.count('"two" needs a toaster.') == 1


# What prepares a run takes no GPU: it would be missed by every trial. Of these two hide
# nothing before they compute on the GPU, and one asks other processes first.
HIDE_OTHERWISE = {"contention", "convolution", "scaling"}


def test_gpus_are_hidden_before_anything_computes():
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
        for name in {*experiments()} - HIDE_OTHERWISE:
            with pytest.raises(Hidden):
                list(experiment(name).prepare())
        return "hidden"

    # None of them has computed anything before it hides, so one process is enough.
    assert perfkit.fresh(prepared) == "hidden"
