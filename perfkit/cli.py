"""The command line: ``perfkit COMMAND``; ``perfkit.options`` has the commands."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import options, units
from perfkit.errors import (
    BadFileError,
    BadParameterError,
    PerfkitError,
    RunError,
    remedy,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from perfkit.diagnosis.edits import Patch
    from perfkit.findings.diagnosis import Diagnosis
    from perfkit.findings.profile import Profile
    from perfkit.findings.shown import Shown
    from perfkit.findings.store import Recorded
    from perfkit.progress import Display
    from perfkit.race.race import Proof
    from perfkit.runs import Watched

DONE, FAILED, BAD_USAGE, LEFT_OPEN, INTERRUPTED = 0, 1, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks; return the exit code."""
    if sys.stdout is None:
        print("perfkit: standard output is closed; send it somewhere.", file=sys.stderr)
        return FAILED
    _print_anything()
    failed = FAILED
    try:
        asked = options.parse(sys.argv[1:] if arguments is None else arguments)
        if getattr(asked, "worse", None) is not None:
            # There 1 is an answer: a side is slower.
            failed = BAD_USAGE
        code = _COMMANDS[asked.command](asked)
        sys.stdout.flush()
    except PerfkitError as error:
        notes = getattr(error, "__notes__", ())
        print(f"perfkit: {error}", *notes, sep="\n", file=sys.stderr)
        return BAD_USAGE if isinstance(error, BadParameterError) else failed
    except KeyboardInterrupt as interrupt:
        print(f"perfkit: {str(interrupt) or 'interrupted.'}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _give_up_stdout()
        return failed
    except OSError as error:
        _give_up_stdout()
        said = ": ".join(filter(None, (str(error), remedy(error, ""))))
        print(f"perfkit: the system refused: {said}.", file=sys.stderr)
        return failed
    return code


def _print_anything() -> None:
    """Let a character that the terminal cannot show be a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _give_up_stdout() -> None:
    # Python would complain once more when it flushes standard output at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _doctor(asked: Namespace) -> int:
    from perfkit.doctor.examination import doctor

    if asked.workshop:
        return _workshop()
    found = doctor(probe=asked.probe, folder=asked.folder, display=_display())
    if asked.json:
        print(found.to_json())
        for sentence in found.missed:
            print(f"perfkit: {sentence}", file=sys.stderr)
    else:
        _show_report(found, asked)
    if found.stopped:
        return INTERRUPTED
    return FAILED if found.fails or found.missed else DONE


def _workshop() -> int:
    from perfkit.doctor.examination import doctor
    from perfkit.errors import need
    from perfkit.findings.report import sayer

    need("anywidget", "A workshop", "lab")
    examination, say = doctor(prove=True, display=_display()), sayer(_console())
    if examination.stopped:
        return INTERRUPTED
    missing = examination.missing
    say(
        f"Not ready: {missing}" if missing else "Ready for the notebooks.", style="bold"
    )
    say(examination.machine.summary)
    for check in examination.wrong:
        way = f" Do: {check.remedy}" if check.remedy else ""
        say(f"{check.status.upper()}: {check.title}. {check.evidence}{way}")
    return FAILED if missing else DONE


def _list(_: Namespace) -> int:
    from perfkit.experiments import experiments
    from perfkit.findings.report import sayer

    say = sayer(_console())
    for name, kind in experiments().items():
        say(name, style="bold")
        say(f"  {kind().question}")
    return DONE


def _run(asked: Namespace) -> int:
    from perfkit.experiments import experiment
    from perfkit.runs import open_replay, open_session

    what = experiment(asked.name, **options.parameters(asked))
    _check_writable(asked.json)
    session = open_replay(what, folder=asked.out) or open_session(
        what, asked.budget, seed=asked.seed, folder=asked.out
    )
    return _watched(session, asked)


def _lines(asked: Namespace) -> int:
    from perfkit.account.files import to_json
    from perfkit.accounts import open_lines
    from perfkit.findings.account import Account
    from perfkit.runs import watch

    _check_writable(asked.json)
    opened = open_lines(
        asked.training,
        asked.budget,
        asked.out,
        asked.arguments,
        source=not asked.no_source,
    )
    found = opened if isinstance(opened, Account) else watch(opened, _display())
    _show_report(found, asked, stderr=asked.json == "-")
    if asked.json:
        _write_json(to_json(found), asked.json)
    if unsaved := getattr(opened, "unsaved", ""):
        raise RunError(unsaved)
    if found.stopped:
        return INTERRUPTED
    return DONE if found.lines else FAILED


def _diagnose(asked: Namespace) -> int:
    from perfkit.diagnosis.maker import maker

    _check_writable(asked.json)
    if asked.diff and asked.json == "-":
        raise BadParameterError(
            "--diff and --json - both write to stdout; give --json a file."
        )
    # Before all that measures is imported, so that a refusal comes at once.
    made = maker(asked.training, asked.arguments, asked.fit)
    from perfkit.diagnoses import open_diagnosis

    session = open_diagnosis(
        made, asked.budget, asked.seed, asked.out, source=not asked.no_source
    )
    code = _watched(session, asked)
    if asked.diff and session.finding:
        proved = _write_patch(session.finding, made, asked)
        return code or proved
    return code


def _write_patch(found: Diagnosis, made: Callable[[], Any], asked: Namespace) -> int:
    """Print the patch if it is proved; give the code that says whether it is."""
    from perfkit.diagnosis.edits import patch

    written, header, says = patch(found, made, Path.cwd()), "", list[str]()
    if written.text and not asked.no_race:
        proof = _proof(written, found, made, asked)
        if not proof.helps:
            print(f"perfkit: {proof.says}", file=sys.stderr)
            return LEFT_OPEN
        header = f"# {proof.says}\n"
        says = [f"{proof.says}. This counts: the whole patch was raced."]
    # In the file's own encoding and with its ends of lines.
    sys.stdout.buffer.write(header.encode() + written.text)
    for sentence in (*says, *written.says):
        print(f"perfkit: {sentence}", file=sys.stderr)
    return DONE


def _proof(
    patch: Patch, found: Diagnosis, made: Callable[[], Any], asked: Namespace
) -> Proof:
    """Race the patched copy, unless the diagnosis was no run, or was stopped."""
    from perfkit.race.race import open_proof, proof_of, unproved
    from perfkit.runs import watch

    if found.stopped or found.replayed:
        why = "stopped" if found.stopped else "a recording"
        return unproved(f"the diagnosis was {why}, so nothing proves it")
    try:
        session = open_proof(patch, made, asked.seed, asked.out)
        raced = watch(session, _display())
    except KeyboardInterrupt:
        raced = None
    except PerfkitError as error:
        return unproved(str(error).rstrip("."))
    if raced is None or raced.stopped:
        raise KeyboardInterrupt(unproved("its race was stopped").says)
    return proof_of(raced, patch)


def _race(asked: Namespace) -> int:
    from dataclasses import fields

    from perfkit.race.race import RaceSession, asked_for, open_race
    from perfkit.race.sides import Asked

    _check_writable(asked.json)
    what = asked_for(**{one.name: getattr(asked, one.name) for one in fields(Asked)})
    session = open_race(
        what, asked.budget, seed=asked.seed, folder=asked.out, worse=asked.worse
    )
    code = _watched(session, asked)
    if asked.worse is None or code == INTERRUPTED:
        return code
    # A recording says nothing of these versions.
    live = session if isinstance(session, RaceSession) else None
    if live is None or live.is_worse is None:
        return BAD_USAGE if live and live.cannot_run else LEFT_OPEN
    return FAILED if live.is_worse else DONE


def _profile(asked: Namespace) -> int:
    from perfkit.profiling.profile import profile, save, to_json

    _check_writable(asked.json)
    if sys.stderr.isatty():
        told = "Runs the training until it is warm, once no other run measures …"
        print(told, file=sys.stderr)
    made = profile(asked.training, steps=asked.steps, timeout=asked.timeout)
    if asked.json == "-":
        print(to_json(made))
    else:
        _show_report(made, asked)
        if asked.json:
            save(made, asked.json)
    _draw(made, asked.chart)
    return DONE


def _watched(session: Watched[Recorded], asked: Namespace) -> int:
    """Run a session, show and write what it found; return the exit code."""
    from perfkit.findings.store import to_json
    from perfkit.runs import watch

    try:
        finding = watch(session, _display())
    except KeyboardInterrupt:
        kept = session.finding and session.finding.path
        if not kept:
            raise
        told = f"interrupted; what was measured by then is in {kept}."
        raise KeyboardInterrupt(told) from None
    piped = asked.json == "-" or getattr(asked, "diff", False)
    _show_report(finding, asked, stderr=piped)
    if finding.path and not piped:
        from perfkit.findings.report import sayer

        typed = shlex.quote(_as_typed(finding.path))
        sayer(_console())(f"For a page to send: perfkit export {typed}", whole=True)
    if asked.json:
        _write_json(to_json(finding), asked.json)
    if session.unsaved:
        raise RunError(session.unsaved)
    if finding.stopped:
        return INTERRUPTED
    known = finding.timings or getattr(finding, "account", None)
    return DONE if known else FAILED


_NO_CHART = {
    "account": "An account has no chart of its own: `perfkit export` makes a page of "
    "it, with its lines and their bars.",
    "passport": "A passport has no chart of its own: `perfkit compare A.json B.json -o "
    "PAGE.html` draws two.",
}


def _show(asked: Namespace) -> int:
    from perfkit.documents import load
    from perfkit.findings.account import Account
    from perfkit.machines.record import Passport

    found = load(asked.file)
    _show_report(found, asked)
    if not isinstance(found, Account | Passport):
        _draw(found, asked.chart)
    elif asked.chart:
        raise BadParameterError(_NO_CHART[found.kind])
    return DONE


def _passport(asked: Namespace) -> int:
    from perfkit.findings.report import sayer
    from perfkit.machines.record import save
    from perfkit.machines.recording import new_file, new_recorder
    from perfkit.machines.report import preview

    path = new_file(asked.out)
    recorder = new_recorder(
        path, asked.budget, asked.label, with_names=asked.with_names
    )
    passport, say = recorder.record(_display()), sayer(_console())
    _show_report(passport, asked)
    written = save(passport, path)
    say()
    say(preview(passport, written.stat().st_size))
    say(f"Written: {written}")
    if passport.stopped:
        return INTERRUPTED
    return DONE if passport.has_rates else FAILED


def _class(asked: Namespace) -> int:
    from perfkit.machines.classroom import classroom

    room = classroom(asked.folder, asked.you)
    _show_report(room, asked)
    if asked.out:
        _say_written(room.export(asked.out))
    return DONE if room.passports else FAILED


def _compare(asked: Namespace) -> int:
    from perfkit.machines.compare import compare

    found = compare(asked.a, asked.b)
    _show_report(found, asked)
    if asked.out:
        _say_written(found.export(asked.out))
    return DONE if any(row.speed for row in found.rows) else FAILED


def _fleet(asked: Namespace) -> int:
    from perfkit import fleet, runs
    from perfkit.experiments import experiment
    from perfkit.findings.report import sayer

    command, budget = [asked.what], None
    if asked.what == "run":
        # A bad value is refused here, before any host is asked.
        experiment(asked.name, **options.parameters(asked))
        command += [asked.name, *options.to_words(asked)]
    if asked.budget is not None:
        budget = runs.seconds("budget", asked.budget)
        command.append(f"--budget={budget:g}")
    folder, say = fleet.new_folder(asked.out), sayer(_console())
    try:
        host_runs = fleet.measure(asked.address, command, folder, say, budget)
    except KeyboardInterrupt:
        if not any(folder.glob("*.json")):
            raise
        text = f"interrupted; the files that came home by then are in {folder}."
        raise KeyboardInterrupt(text) from None
    say(fleet.next_step(host_runs, asked.what, folder))
    return DONE if any(run.is_saved for run in host_runs) else FAILED


def _export(asked: Namespace) -> int:
    from perfkit.export import export

    about = {"code": asked.code, "author": asked.author, "note": asked.note}
    _say_written(export(asked.sources, asked.out, **about))
    return DONE


def _lab(asked: Namespace) -> int:
    from perfkit.lab import open_lab

    first = {"notebook": asked.notebook} if "notebook" in asked else {}
    open_lab(Path(asked.folder), browser=not asked.no_browser, port=asked.port, **first)


_COMMANDS = {
    "doctor": _doctor,
    "list": _list,
    "run": _run,
    "lines": _lines,
    "diagnose": _diagnose,
    "race": _race,
    "profile": _profile,
    "show": _show,
    "passport": _passport,
    "class": _class,
    "compare": _compare,
    "fleet": _fleet,
    "export": _export,
    "lab": _lab,
}


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        # A file has no edge; a table keeps its lines whole in it.
        console.width = 120
    return console


def _say_written(page: Path) -> None:
    from perfkit.findings.report import sayer

    sayer(_console())(f"Written: {page} ({units.size(page.stat().st_size)})")


def _display() -> Display:
    from perfkit.progress import Display, TerminalDisplay

    console = _console(stderr=True)
    return TerminalDisplay(console) if console.is_terminal else Display()


def _show_report(found: Shown, asked: Namespace, *, stderr: bool = False) -> None:
    from perfkit.findings.report import write

    report = found.report
    saved = f"Saved as {_as_typed(report.path)}" if report.path else ""
    write(report, _console(stderr=stderr), whole=asked.all, saved=saved)


def _as_typed(path: Path) -> str:
    """The path as one would type it here."""
    try:
        relative = os.path.relpath(path)
    except ValueError:
        # Another drive.
        return str(path)
    return str(path) if relative.startswith("..") else relative


def _check_writable(where: str | None) -> None:
    """Refuse before the run what would fail after it."""
    if where in (None, "-"):
        return
    folder = os.path.dirname(os.path.abspath(where))
    if os.path.isdir(where) or not os.access(folder, os.W_OK):
        raise BadParameterError(
            f"--json is {where!r}, which cannot be written; give a file in a folder "
            "that exists, or - for stdout."
        )


def _draw(found: Recorded | Profile, where: str | None) -> None:
    from perfkit.gallery import chart

    if where:
        with _writing(where):
            chart(found).save(where)


def _write_json(text: str, where: str) -> None:
    if where == "-":
        print(text)
        return
    with _writing(where):
        Path(where).write_text(text + "\n", encoding="utf-8")


@contextmanager
def _writing(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadFileError(f"Cannot write {where} ({error.strerror}).") from error
