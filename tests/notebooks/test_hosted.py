"""The notebook for Colab: its words and calls, and all of it measured."""

import ast
import inspect

import pytest

import perfkit
from tests.notebooks.test_notebooks import COLAB, cells, hosted, outputs, read, run_in
from tests.test_voice import stops


def test_each_call_fits_what_perfkit_takes_and_the_script_knows_nothing_of_it():
    assert outputs(read(COLAB)) == []
    prose = [cell.source for cell in cells(COLAB, "markdown")]
    assert [stop for text in prose for stop in stops(text)] == []
    start, script, *rest = (cell.source for cell in cells(COLAB, "code"))
    wheel = f"perfkit-{perfkit.__version__}-py3-none-any.whl"
    assert start == f"%pip install -q anywidget {wheel}\nimport perfkit"
    magic, _, code = script.partition("\n")
    assert magic == "%%writefile train.py"
    assert "perfkit" not in code
    compile(code, "train.py", "exec")
    nodes = [node for source in rest for node in ast.walk(ast.parse(source))]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    verbs = [ast.unparse(call.func) for call in calls]
    assert verbs == [f"perfkit.{v}" for v in ("lines", "diagnose", "panel", "export")]
    for call in calls:
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        verb = getattr(perfkit, call.func.attr)
        inspect.signature(verb).bind(*call.args, **named)


@pytest.mark.slow
def test_all_of_it_runs_and_leaves_one_page_of_both_answers(tmp_path):
    shown = outputs(run_in(tmp_path, hosted("perfkit", "%%writefile")))
    assert "error" not in {output.output_type for output in shown}
    assert len(list(tmp_path.glob("perfkit-findings/*.json"))) == 2
    assert "decode_jpeg" in (tmp_path / "why-slow.html").read_text(encoding="utf-8")
