import pickle

import pytest

import perfkit.experiments
from perfkit.errors import BadParameterError
from perfkit.experiments import experiment, experiments, named
from perfkit.experiments.base import Experiment
from perfkit.experiments.parameters import Choice, parameters_of
from perfkit.measure.measurement import Measurement


def test_every_experiment_is_found_under_its_own_name():
    found = experiments()
    assert "data-pipeline" in found
    assert all(kind.name == name for name, kind in found.items())
    assert all(issubclass(kind, Experiment) for kind in found.values())


def test_a_new_file_is_found_without_telling_anybody(napping):
    assert experiments()["napping"] is napping


MINE = """\
from dataclasses import dataclass
from typing import Annotated
from perfkit.experiments.base import Experiment, variant

@dataclass(frozen=True, kw_only=True)
class Mine(Experiment):
    '''Is it mine?'''
    name = 'mine'
    baseline = 'one'

    @variant
    def one(self):
        '''One.'''
        yield 1

"""
NAMELESS = MINE.replace("name = 'mine'", "")


@pytest.mark.parametrize(
    ("code", "line", "why"),
    [
        ("import no_such_part", 1, "ModuleNotFoundError: No module named 'no_such"),
        ("\nclass Mine(", 2, "SyntaxError: "),
        ("def at(n):\n    1 / n\nat(0)", 2, "ZeroDivisionError: division by zero"),
        ("\nraise SystemExit('bye')", 2, "SystemExit: bye"),
        (f"{MINE}    size: int", 5, "TypeError: "),
        (f"{MINE}    size: 'Nope' = 1", 5, "NameError: name 'Nope' is not defined"),
        (f"{MINE}    name = 3", 5, "TypeError: the name is 3, which is no text"),
        (f"{MINE}    name = 'scaling'", 5, "another one has the name 'scaling'"),
        (NAMELESS, 5, "AttributeError: type object 'Mine' has no attribute 'name'"),
        (f"{MINE}    baseline = 'two'", 5, "ValueError: the baseline 'two' is none"),
    ],
)
def test_a_broken_file_is_told_and_the_others_are_listed(
    tmp_path, monkeypatch, caplog, code, line, why
):
    name = f"broken_{tmp_path.name.lower()}"
    (tmp_path / f"{name}.py").write_text(code)
    paths = [*perfkit.experiments.__path__, str(tmp_path)]
    monkeypatch.setattr(perfkit.experiments, "__path__", paths)
    assert list(experiments()) == list(experiments())
    assert "data-pipeline" in experiments()
    (said,) = caplog.messages
    assert said.startswith(f"perfkit/experiments/{name}.py, line {line}: {why}")
    assert said.endswith(". It is left out: fix it or take it away.")
    assert experiment("scaling").question.startswith("What do several devices")
    assert "mine" not in experiments()


def test_experiments_are_listed_by_name(napping):
    assert list(experiments()) == sorted(experiments())


def test_an_experiment_is_made_with_its_parameters(napping):
    assert experiment("napping", nap_ms=7).parameters["nap_ms"] == 7


@pytest.mark.parametrize(
    ("name", "meant"),
    [("napping_", "napping"), ("data_pipeline", "data-pipeline"), ("nap", None)],
)
def test_a_wrong_name_is_refused_with_the_one_that_was_meant(napping, name, meant):
    with pytest.raises(BadParameterError) as caught:
        named(name)
    assert f"{name!r} is no experiment." in str(caught.value)
    assert "There are: " in str(caught.value)
    assert (f"Did you mean {meant!r}?" in str(caught.value)) == (meant is not None)


def test_a_wrong_parameter_is_refused_with_the_one_that_was_meant(napping):
    with pytest.raises(BadParameterError, match="Did you mean 'nap_ms'"):
        experiment("napping", nap=1)


def test_a_value_out_of_range_is_refused_with_the_range(napping):
    with pytest.raises(BadParameterError, match="from 0 to 100 ms"):
        experiment("napping", nap_ms=1000)


def test_a_fraction_is_refused_where_things_are_counted(napping):
    assert experiment("napping", nap_ms=3.5).parameters["nap_ms"] == 3.5
    with pytest.raises(BadParameterError, match=r"batch is 3.5; give a whole number"):
        experiment("napping", batch=3.5)


@pytest.mark.parametrize("name", list(experiments()))
def test_an_experiment_leaves_the_names_of_a_run_to_the_run(name):
    taken = {"what", "name", "budget", "guess", "seed", "folder", "json", "out", "help"}
    taken.add("command")
    names = {parameter.name for parameter in parameters_of(experiments()[name])}
    assert not names & taken


@pytest.mark.parametrize("name", list(experiments()))
def test_an_experiment_says_its_question_and_what_each_parameter_is(name):
    kind = experiments()[name]
    assert kind().question.endswith("?")
    assert all(p.help for p in parameters_of(kind) if p.accepts)


def asked_in_every_way(kind):
    """As it is, and with each word of what takes several of them."""
    yield kind()
    for parameter in parameters_of(kind):
        accepts = parameter.accepts
        if isinstance(accepts, Choice) and accepts.many:
            assert not any("," in word for word in accepts.options)
            yield from (kind(**{parameter.name: word}) for word in accepts.options)


@pytest.mark.parametrize("name", list(experiments()))
def test_variants_travel_to_their_trials_and_stand_against_variants(name):
    for asked in asked_in_every_way(experiments()[name]):
        variants = asked.make_variants()
        for called, variant in variants.items():
            assert pickle.loads(pickle.dumps(variant)).name == variant.name == called
            assert variant.against in ("", *variants)
            assert variant.changes or variant.unavailable


@pytest.mark.parametrize("name", list(experiments()))
def test_nothing_is_claimed_before_anything_is_measured(name):
    variants = tuple(experiment(name).make_variants().values())
    found = experiment(name).verdict(Measurement(variants=variants))
    assert (found.winner, found.interval, found.edits) == ("", "", ())
    assert found.headline
