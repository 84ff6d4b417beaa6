"""What a reader is to write in a notebook: the answers that are folded below it."""

import re

import pytest

from perfkit.measure.tick import REFUSED, Note
from perfkit.race.race import is_unwritten
from tests.notebooks.test_notebooks import NOTEBOOKS
from tests.notebooks.test_notebooks import cells as of_kind

ANSWER = re.compile(r"<summary>An answer</summary>\n\n```python\n(.*?)```", re.DOTALL)
WRITTEN = {path.stem: path for path in NOTEBOOKS}
EXPERIMENTS = {
    "02_data_pipelines": "pipeline_with(mine, count=16, image_side=64)",
    "06_eager_graph_xla": "execution_with(mine, variants='eager loop')",
}
RACED = ("03_batch_size", "05_mixed_precision")


def cells(name, kind):
    return [cell.source for cell in of_kind(WRITTEN[name], kind)]


def answered(name):
    """The names of a notebook whose reader has written its answer."""
    (answer,) = ANSWER.findall("\n".join(cells(name, "markdown")))
    scope = {"__name__": "__main__"}
    exec(cells(name, "code")[0], scope)
    exec(answer, scope)
    return scope


def refused(asked):
    notes = [note for note in asked.prepare() if isinstance(note, Note)]
    return {k: v for n in notes if n.name == REFUSED for k, v in n.value.items()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_answer_is_timed_among_the_other_ways(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PERFKIT_CACHE", str(tmp_path))
    asked = eval(EXPERIMENTS[name], answered(name))
    assert "yours" in asked.make_variants()
    assert "yours" not in refused(asked)


@pytest.mark.parametrize("name", RACED)
def test_an_answer_is_a_training_that_can_be_raced(name):
    model, data = answered(name)["make_mine"]()
    history = model.fit(data.take(2), verbose=0)
    assert model.output_shape == (None, 10)
    assert history.history["loss"][0] > 0


@pytest.mark.parametrize("name", [*EXPERIMENTS, *RACED])
def test_what_is_still_to_be_written_gives_back_none(name):
    (source,) = [one for one in cells(name, "code") if one.endswith("return None")]
    scope = {}
    exec(source, scope)
    (function,) = (v for k, v in scope.items() if k in ("mine", "make_mine"))
    assert is_unwritten(function)
