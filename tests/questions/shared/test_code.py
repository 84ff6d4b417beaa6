import functools

from perfkit.questions.shared.code import Name, code_of


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


def test_what_is_no_part_of_the_work_is_left_out_and_values_stand_for_names():
    assert code_of(trained) == (
        "taken = []\n"
        "for features, labels in batches:\n"
        "    model.fit(features, labels, steps, keras, taken)"
    )
    found = code_of(trained, steps=8, batches=Name("again"), jit=True, of=["a", "b"])
    assert "in again:" in found
    assert 'fit(features, labels, 8, keras, taken, jit=True, of=["a", "b"])' in found
    part = functools.partial(trained, Name("net"), verbose=0)
    assert "net.fit(features, labels, 3, keras, taken, verbose=0)" in code_of(part)


def test_of_a_function_that_makes_or_repeats_another_that_one_is_shown():
    lines = "@staticmethod\ndef step(features, *, labels):\n    return known(features, "
    assert code_of(step_of) == lines + "labels)"
    assert code_of(named, size=4) == "result = [4] * 4"
    assert code_of(later) == "call(1)"
    assert code_of(named, later) == "result = [size] * size\ncall(1)"
    assert code_of(endless) == "one = size\nwhile True:\n    max(one, size)"
    within = "with open(call) as file:\n    while True:\n        file()"
    assert code_of(held) == within
