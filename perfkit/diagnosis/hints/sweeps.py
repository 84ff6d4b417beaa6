"""Loops that compare settings, and what they carry from one round to the next."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perfkit.diagnosis.hints.models import is_model, makes_model
from perfkit.diagnosis.hints.names import called, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.hints.code import Code, Hinted

_SETTINGS = {"batch_size", "learning_rate", "steps_per_execution", "jit_compile"}


def hinted(code: Code) -> Iterator[Hinted]:
    """A model that is trained on through a sweep, and models that pile up."""
    for loop in (one for one in code.nodes if isinstance(one, ast.For)):
        calls = [one for one in ast.walk(loop) if isinstance(one, ast.Call)]
        for fit in (one for one in calls if called(one) == "fit"):
            yield from _reused(code, loop, fit, calls)
        yield from _piled_up(code, loop, calls)


def _reused(
    code: Code, loop: ast.For, fit: ast.Call, calls: list[ast.Call]
) -> Iterator[Hinted]:
    model = fit.func.value if isinstance(fit.func, ast.Attribute) else None
    if not isinstance(model, ast.Name) or model.id in _stored(loop):
        return
    # What a round resets by weights starts anew as well.
    reset = {"set_weights", "load_weights"} & {called(one) for one in calls}
    if is_model(code, model) and not reset and _sweeps(loop, model.id, calls):
        says = (
            "The same model is trained on in each round, and only the first starts "
            "anew and is traced; make the model in the loop."
        )
        yield fit, says


def _sweeps(loop: ast.For, model: str, calls: list[ast.Call]) -> bool:
    """Whether the rounds differ in a setting, not in what is learnt from."""
    new = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    for call in calls:
        given = [one.value for one in call.keywords if one.arg in _SETTINGS]
        if called(call) == "batch" and isinstance(call.func, ast.Attribute):
            given += call.args
        if dotted(call.func) == f"{model}.compile":
            given += [*call.args, *(one.value for one in call.keywords)]
        names = {
            n.id for one in given for n in ast.walk(one) if isinstance(n, ast.Name)
        }
        if names & new:
            return True
    return False


def _piled_up(code: Code, loop: ast.For, calls: list[ast.Call]) -> Iterator[Hinted]:
    """Models that are made and trained in a loop, all of which Keras keeps."""
    names = {called(call) for call in calls}
    if "fit" not in names or "clear_session" in names:
        return
    for call in (one for one in calls if code.loop_of(one) is loop):
        kept = isinstance(next(code.names.above(call)), ast.Assign)
        clears = "clear_session" in _inside(code, call)
        if kept and makes_model(code, call) and not clears:
            says = (
                "Keras keeps a record of every model that a loop makes, and takes more "
                "memory each round; call keras.utils.clear_session() before."
            )
            yield call, says


def _inside(code: Code, call: ast.Call) -> set[str]:
    function = code.resolve(call.func)
    if not isinstance(function, ast.FunctionDef):
        return set()
    return {called(one) for one in ast.walk(function) if isinstance(one, ast.Call)}


def _stored(loop: ast.For) -> set[str]:
    names = (one for one in ast.walk(loop) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}
