"""What is offered for data, and what they are with it."""

from perfkit.training.diagnose.change import Change, Untested
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.pipeline import chain, kind
from perfkit.training.diagnose.pipeline.facts import pipeline_facts
from perfkit.training.diagnose.training import Training


def named(*causes, **known):
    """What is offered for a training of which this is known, by name."""
    found = (one for cause in causes for one in cause.candidates(Facts(**known)))
    return {one.name: one for one in found if isinstance(one, Change)}


def why(cause, **known):
    found = cause.candidates(Facts(**known))
    (one,) = (one for one in found if isinstance(one, Untested))
    return one.reason


def offered(cause, data, **more):
    """What is offered for data of which more is known, none of it applied."""
    made = Training(None, data)
    known = pipeline_facts(made) | {"memory": 10**9} | more
    facts = Facts(data=made.kind, batch=2, steps=5, step_s=0.1, pipeline=known)
    return list(cause.candidates(facts))


def applied(cause, data, **more):
    """What is offered for data, and the data with it."""
    found, made = offered(cause, data, **more), Training(None, data)
    for one in found:
        one.apply(made)
    return found, made.data


def kinds(dataset):
    return [kind(one) for one in chain(dataset)]
