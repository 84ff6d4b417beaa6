import functools

import pytest

from perfkit.experiments import experiments
from perfkit.experiments.shared.code import Name, code_of

# As a teacher would put them on a slide.
MOST_LINES, MOST_COLUMNS = 16, 96


def trained(model: object, batches: object, steps: int = 3, **options: object) -> None:
    """Train."""
    import keras

    # Why, for who reads the package.
    taken: list[int] = []
    yield "ready"
    for features, labels in batches:
        model.fit(features, labels, steps, keras, taken, **options)

        yield len(labels)


def step_of(model: object) -> object:
    """Make a step."""
    known = model

    @staticmethod
    def step(features: object, *, labels: dict[str, int]) -> object:
        """Train."""
        return known(features, labels)

    return step


def named(size: int) -> object:
    """Give something a name."""
    result = [size] * size
    return result


def endless(size: int) -> object:
    """Repeat something."""
    one = size
    yield from repeated(lambda: max(one, size), 1)


def held(call: object) -> object:
    """Repeat something within something."""
    with open(call) as file:
        yield from repeated(file, 1)


def later(call: object) -> object:
    """Give something to be called."""
    return lambda: call(1)


def repeated(call, count):
    return call, count


def test_what_is_no_part_of_the_work_is_left_out():
    assert code_of(trained) == (
        "taken = []\n"
        "for features, labels in batches:\n"
        "    model.fit(features, labels, steps, keras, taken)"
    )


def test_values_stand_in_place_of_names_and_options():
    found = code_of(trained, steps=8, batches=Name("again"), jit=True, of=["a", "b"])
    assert "in again:" in found
    assert 'fit(features, labels, 8, keras, taken, jit=True, of=["a", "b"])' in found


def test_a_partial_function_is_read_with_what_it_was_given():
    part = functools.partial(trained, Name("net"), verbose=0)
    assert "net.fit(features, labels, 3, keras, taken, verbose=0)" in code_of(part)


def test_of_a_function_that_makes_another_that_one_is_shown():
    lines = "@staticmethod\ndef step(features, *, labels):\n    return known(features, "
    assert code_of(step_of) == lines + "labels)"


def test_a_name_that_is_given_back_is_no_line_and_an_expression_is_one():
    assert code_of(named, size=4) == "result = [4] * 4"
    assert code_of(later) == "call(1)"
    assert code_of(named, later) == "result = [size] * size\ncall(1)"


def test_what_is_repeated_without_an_end_is_a_loop():
    assert code_of(endless) == "one = size\nwhile True:\n    max(one, size)"
    within = "with open(call) as file:\n    while True:\n        file()"
    assert code_of(held) == within


def asked(kind):
    """Each experiment as it is set, and with each group of variants it has."""
    yield kind()
    accepts = {p.name: p.accepts for p in parameters(kind)}
    for name in ("variants", "parts", "compare", "feeding"):
        for word in getattr(accepts.get(name), "options", ()):
            yield kind(**{name: word})


def parameters(kind):
    from perfkit.experiments.parameters import parameters_of

    return parameters_of(kind)


@pytest.mark.parametrize("name", experiments())
def test_every_variant_has_its_code_and_that_is_python(name):
    for one in asked(experiments()[name]):
        code = one.code
        for variant in one.make_variants().values():
            # What this machine cannot have may have nothing to show.
            assert code.get(variant.name) or variant.unavailable, variant.name
        for called, lines in code.items():
            compile(lines, called, "exec")
            assert len(lines.splitlines()) <= MOST_LINES, f"{called}:\n{lines}"
            assert max(map(len, lines.splitlines())) <= MOST_COLUMNS, lines
            assert "Any" not in lines
            assert "perfkit" not in lines
