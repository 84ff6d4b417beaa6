"""The notebooks as a course: its map and pace, its words, its exercises and answers."""

import ast
import inspect
import re
import statistics

import pytest

import perfkit
from benchmarks.pace import exercises_of, pace
from perfkit.engine.trial import REFUSED, Note
from perfkit.errors import BadParameterError
from perfkit.questions.replay import BROUGHT
from perfkit.training.race.race import is_unwritten
from tests.notebooks.test_notebooks import NOTEBOOKS, ROOT, cells, every_notebook, read

FOLDER = ROOT / "notebooks"
MAP, GLOSSARY = FOLDER / "README.md", FOLDER / "glossary.md"
PICTURES = sorted(FOLDER.glob("pictures/*"))
LARGEST_PICTURE_BYTES = 30_000
FOLD = re.compile(
    r"<details><summary>Answers</summary>\n\n(.*?)\n\n</details>", re.DOTALL
)
NUMBERED = re.compile(r"^(\d+)\. ", re.MULTILINE)
LINK = re.compile(r"\]\(((?!https?:)[^)\s]+)\)")
ENTRY = re.compile(r"^### (.+)$", re.MULTILINE)
# As exercises name them: *image side* to 64, `image_side=64`, `perfkit.run(...)`.
SET = re.compile(r"\*([a-z ]+)\* to (?:`([^`]+)`|(\d+))")
GIVEN = re.compile(r"`((?:\w+=[^`]+))`")
CALL = re.compile(r"`(perfkit\.\w+\([^`]*\))`")
ASKING = ("perfkit.run", "perfkit.panel")
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
# Of prose: in a notebook, in a usual cell, and for a line of code over the course.
MOST_WORDS, MEDIAN_WORDS_OF_A_CELL, MOST_WORDS_A_LINE = 900, 38, 20


def nodes(path):
    """All that the code of a notebook is made of."""
    trees = (ast.parse(cell.source) for cell in cells(path, "code"))
    return [node for tree in trees for node in ast.walk(tree)]


def lists(path):
    """Each list of exercises in a notebook, with the cell and the one that follows.

    What is to be predicted before a run is answered by the run.
    """
    heading, every = "", read(path).cells
    for number, cell in enumerate(every):
        if cell.cell_type != "markdown":
            continue
        heading = ([heading, *re.findall(r"^## .*$", cell.source, re.MULTILINE)])[-1]
        asked = exercises_of(cell.source)
        if asked and "Predict" not in heading:
            below = every[number + 1] if number + 1 < len(every) else None
            more = below.source if below and below.cell_type == "markdown" else ""
            yield asked, cell.source + "\n" + more


@every_notebook
def test_every_numbered_exercise_has_a_folded_answer(path):
    for asked, text in lists(path):
        folds = FOLD.findall(text)
        assert len(folds) == 1, f"one block of answers belongs below: {asked[0]}"
        numbers = [int(number) for number in NUMBERED.findall(folds[0])]
        assert numbers == list(range(1, len(asked) + 1))


@every_notebook
def test_code_is_written_as_in_a_file_of_ones_own(path):
    names = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert names & {"tensorflow", "keras", "photos"}
    assert not [name for name in names if name.startswith("perfkit.")]


def open_words(path):
    """How many words each cell of prose has beside its folded answers, if any."""
    texts = (FOLDED.sub("", cell.source) for cell in cells(path, "markdown"))
    return [count for text in texts if (count := len(text.split()))]


@every_notebook
def test_a_notebook_is_short_and_so_are_its_cells_of_prose(path):
    words = open_words(path)
    assert sum(words) <= MOST_WORDS
    assert statistics.median(words) <= MEDIAN_WORDS_OF_A_CELL


def test_the_course_shows_a_line_of_code_for_every_twenty_words():
    lines = [
        line
        for path in NOTEBOOKS
        for cell in cells(path, "code")
        for line in cell.source.splitlines()
        if line.strip()
    ]
    words = sum(sum(open_words(path)) for path in NOTEBOOKS)
    assert words <= MOST_WORDS_A_LINE * len(lines)


def questions(path):
    """The experiments that a notebook asks, by name."""
    calls = (node for node in nodes(path) if isinstance(node, ast.Call))
    asking = (call for call in calls if ast.unparse(call.func) in ASKING)
    named = {getattr(call.args[0], "value", "") for call in asking}
    return sorted(named & set(perfkit.experiments()))


def accepts(name, settings):
    try:
        perfkit.experiment(name, **settings)
    except BadParameterError:
        return False
    return True


def set_in(exercise):
    """What an exercise says to set, by the name of the parameter."""
    pairs = (
        (name.replace(" ", "_"), word or int(number))
        for name, word, number in SET.findall(exercise)
    )
    return {name: value for name, value in pairs if name != "budget"}


def given_in(text):
    """The keywords that stand alone in code, such as ``image_side=64``."""
    given = {}
    for words in GIVEN.findall(text):
        call = ast.parse(f"f({words})", mode="eval").body
        given |= {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    return given


@every_notebook
def test_what_an_exercise_says_to_set_is_accepted(path):
    known = questions(path)
    verbs = (perfkit.run, perfkit.diagnose, perfkit.race, perfkit.profile)
    taken = {name for verb in verbs for name in inspect.signature(verb).parameters}
    for asked, _ in lists(path):
        for exercise in asked:
            # What a verb takes besides is none of the question's.
            given = given_in(exercise)
            own = {name: value for name, value in given.items() if name not in taken}
            for chosen in filter(None, (set_in(exercise), own)):
                assert any(accepts(name, chosen) for name in known), chosen


@every_notebook
def test_code_in_answers_can_be_called_as_it_stands(path):
    made = {"perfkit"} | {
        node.name if isinstance(node, ast.FunctionDef) else node.id
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.Name)
    }
    for _, text in lists(path):
        for code in CALL.findall("".join(FOLD.findall(text))):
            call = ast.parse(code, mode="eval").body
            used = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
            assert used <= made, code
            verb = getattr(perfkit, call.func.attr)
            named = {one.arg: one.value for one in call.keywords}
            inspect.signature(verb).bind(*call.args, **named)
            if ast.unparse(call.func) in ASKING and isinstance(call.args[0].value, str):
                values = {name: ast.literal_eval(node) for name, node in named.items()}
                values.pop("budget", None)
                assert accepts(call.args[0].value, values), code


@every_notebook
def test_each_guess_goes_into_what_it_is_about(path):
    open_ = ""
    for cell in cells(path, "code"):
        parts = list(ast.walk(ast.parse(cell.source)))
        names = [n for n in parts if isinstance(n, ast.Name) and n.id == "guess"]
        if any(isinstance(name.ctx, ast.Store) for name in names):
            assert not open_, open_
            open_ = cell.source
        given = (n for n in parts if isinstance(n, ast.keyword) and n.arg == "guess")
        if any(ast.unparse(one.value) == "guess" for one in given):
            open_ = ""
    assert not open_, open_


def anchors(path):
    """What a link may point at in a page, as readers of Markdown name headings."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {head.replace(" ", "-") for head in heads}


def links(path):
    if path.suffix == ".md":
        return LINK.findall(path.read_text(encoding="utf-8"))
    return [link for c in cells(path, "markdown") for link in LINK.findall(c.source)]


@pytest.mark.parametrize(
    "path",
    [*NOTEBOOKS, *FOLDER.glob("*.md"), *ROOT.glob("docs/*.md")],
    ids=lambda path: path.stem,
)
def test_every_link_leads_somewhere(path):
    for link in links(path):
        file, _, anchor = link.partition("#")
        # A copy of a notebook lies in another folder, with what lies beside it.
        beside = file.removeprefix("pictures/")
        assert path.suffix == ".md" or "/" not in beside, link
        there = path.parent / file if file else path
        assert there.is_file(), link
        assert not anchor or anchor in anchors(there), link


def test_each_picture_is_small_and_stands_in_one_notebook():
    shown = [link for path in NOTEBOOKS for link in links(path) if "pictures" in link]
    assert sorted(shown) == [f"pictures/{path.name}" for path in PICTURES]
    assert all(path.stat().st_size <= LARGEST_PICTURE_BYTES for path in PICTURES)


def test_the_glossary_is_short_and_each_word_is_linked_where_it_is_used():
    words = ENTRY.findall(GLOSSARY.read_text(encoding="utf-8"))
    assert len(words) <= 25
    assert words == sorted(words)
    every = {link for path in NOTEBOOKS for link in links(path)}
    assert {f"glossary.md#{word.replace(' ', '-')}" for word in words} <= every


ROW = re.compile(r"^\| \[(\w+)\]\(\1\.ipynb\) \|.*\| (\d+)[^|]*\|$", re.MULTILINE)


def test_the_map_has_every_notebook_with_its_minutes():
    minutes = dict(ROW.findall(MAP.read_text(encoding="utf-8")))
    assert sorted(minutes) == [path.stem for path in NOTEBOOKS]
    for path in NOTEBOOKS:
        taken = pace(path).minutes
        assert 9.5 <= taken <= 20.5, "10 to 20: see benchmarks/pace.py"
        why = "run `python benchmarks/pace.py --map`"
        assert abs(float(minutes[path.stem]) - taken) <= 2, why


QUESTION = re.compile(
    r"^(\d+)\. (.+?)<details><summary>Answer</summary>(.+?)</details>",
    re.MULTILINE | re.DOTALL,
)


def test_the_quiz_has_ten_questions_and_each_answer_names_its_notebook():
    asked = QUESTION.findall((ROOT / "docs" / "quiz.md").read_text(encoding="utf-8"))
    assert [number for number, _, _ in asked] == [str(n) for n in range(1, 11)]
    known = {path.stem for path in NOTEBOOKS}
    for _, _, answer in asked:
        assert set(re.findall(r"`(\d\d_\w+)`", answer)) & known


EXPECTED = re.compile(r"^\| `.+ \| (.+) <!-- (\S+) --> \|$", re.MULTILINE)


def test_what_a_teacher_is_told_to_expect_is_what_the_recordings_say():
    text = (ROOT / "docs" / "workshop.md").read_text(encoding="utf-8")
    rows = EXPECTED.findall(text)
    assert len(rows) > 5
    for said, name in rows:
        recorded = perfkit.load(BROUGHT / f"{name}.json")
        assert said == recorded.verdict.much, name
        assert not recorded.machine.gpus
        assert recorded.machine.cores_granted == 2


ANSWER = re.compile(r"<summary>An answer</summary>\n\n```python\n(.*?)```", re.DOTALL)
EXPERIMENTS = {
    "02_data_pipelines": ("data-pipeline", {"count": 16, "image_side": 64}),
    "06_eager_graph_xla": ("execution-mode", {"variants": "eager loop"}),
}
RACED = ("03_batch_size", "05_mixed_precision")


def written(name, kind):
    """The sources of a notebook's cells of a kind."""
    return [cell.source for cell in cells(FOLDER / f"{name}.ipynb", kind)]


def is_definition(node):
    """Whether a statement gives a name to what no run has found."""
    is_sizes = isinstance(getattr(node, "value", None), ast.Dict)
    return is_sizes or isinstance(node, ast.Import | ast.FunctionDef)


def answered(name):
    """The names of a notebook whose reader has written its answer."""
    (answer,) = ANSWER.findall("\n".join(written(name, "markdown")))
    scope = {"__name__": "__main__"}
    for source in written(name, "code"):
        if all(map(is_definition, ast.parse(source).body)):
            exec(source, scope)
    exec(answer, scope)
    return scope


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_answer_is_timed_among_the_other_ways(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PERFKIT_CACHE", str(tmp_path))
    question, settings = EXPERIMENTS[name]
    asked = perfkit.experiment(question, mine=answered(name)["mine"], **settings)
    assert "yours" in asked.make_variants()
    told = {note.name: note.value for note in asked.prepare() if type(note) is Note}
    assert "yours" not in told[REFUSED]


@pytest.mark.parametrize("name", RACED)
def test_an_answer_is_a_training_that_can_be_raced(name):
    model, data = answered(name)["make_mine"]()
    history = model.fit(data.take(2), verbose=0)
    assert model.output_shape == (None, 10)
    assert history.history["loss"][0] > 0


@pytest.mark.parametrize("name", [*EXPERIMENTS, *RACED])
def test_what_is_still_to_be_written_gives_back_none(name):
    (source,) = [one for one in written(name, "code") if "return None" in one]
    scope = {}
    exec(source, scope)
    (function,) = (v for k, v in scope.items() if k in ("mine", "make_mine"))
    assert is_unwritten(function)
