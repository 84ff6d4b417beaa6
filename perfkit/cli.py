"""The command line: ``perfkit COMMAND``; ``perfkit.options`` has the commands."""

from __future__ import annotations

import json
import os
import shlex
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import errors, options, units
from perfkit.errors import BadFileError, BadParameterError, PerfkitError, RunError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from perfkit.findings.diagnosis import Diagnosis
    from perfkit.findings.record import Saved, Shown
    from perfkit.findings.store import Recorded
    from perfkit.progress import Display
    from perfkit.questions.runs import Watched
    from perfkit.training.diagnose.edits import Patch
    from perfkit.training.race.race import Proof

DONE, FAILED, BAD_USAGE, LEFT_OPEN, INTERRUPTED = 0, 1, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks; return the exit code."""
    if sys.stdout is None:
        print("perfkit: standard output is closed; send it somewhere.", file=sys.stderr)
        return FAILED
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A character that the terminal cannot show becomes a question mark.
            stream.reconfigure(errors="replace")
    failed = FAILED
    try:
        args = options.parse(sys.argv[1:] if arguments is None else arguments)
        if getattr(args, "worse", None) is not None:
            # There 1 is an answer: a side is slower.
            failed = BAD_USAGE
        if isinstance(json_file := getattr(args, "json", None), str):
            _check_writable(json_file)
        code = _COMMANDS[args.command](args)
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
        reason = ": ".join(filter(None, (str(error), errors.remedy(error, ""))))
        print(f"perfkit: the system refused: {reason}.", file=sys.stderr)
        return failed
    return code


def _give_up_stdout() -> None:
    # Python would complain once more when it flushes standard output at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _doctor(args: Namespace) -> int:
    from perfkit.machines.examination import doctor

    if args.workshop:
        return _workshop()
    examination = doctor(probe=args.probe, folder=args.folder, display=_display())
    if args.json:
        print(examination.to_json())
        for sentence in examination.missed:
            print(f"perfkit: {sentence}", file=sys.stderr)
    else:
        _show_report(examination, args)
    if examination.stopped:
        return INTERRUPTED
    return FAILED if examination.fails or examination.missed else DONE


def _workshop() -> int:
    from perfkit.machines.examination import doctor

    errors.need("anywidget", "A workshop", "lab")
    examination = doctor(prove=True, display=_display())
    if examination.stopped:
        return INTERRUPTED
    _say(examination.missing or "Ready for the notebooks.", "bold")
    _say(examination.machine.summary)
    for check in examination.wrong:
        way = f" Do: {check.remedy}" if check.remedy else ""
        _say(f"{check.status.upper()}: {check.title}. {check.evidence}{way}")
    return FAILED if examination.missing else DONE


def _list(_: Namespace) -> int:
    from perfkit.questions import experiments

    for name, kind in experiments().items():
        _say(name, "bold")
        _say(f"  {kind().question}")
    return DONE


def _run(args: Namespace) -> int:
    from perfkit.questions import experiment
    from perfkit.questions.runs import open_replay, open_session

    question = experiment(args.name, **options.parameters(args))
    session = open_replay(question, folder=args.out) or open_session(
        question, args.budget, seed=args.seed, folder=args.out
    )
    return _watched(session, args)


def _lines(args: Namespace) -> int:
    from perfkit.findings.account import Account
    from perfkit.questions.runs import watch
    from perfkit.training.account.session import open_lines

    opened = open_lines(
        args.training, args.budget, args.out, args.arguments, source=not args.no_source
    )
    account = opened if isinstance(opened, Account) else watch(opened, _display())
    _show_report(account, args)
    _write_json(account, args)
    if unsaved := getattr(opened, "unsaved", ""):
        raise RunError(unsaved)
    if account.stopped:
        return INTERRUPTED
    return DONE if account.lines else FAILED


def _diagnose(args: Namespace) -> int:
    from perfkit.training.diagnose.maker import maker

    if args.diff and args.json == "-":
        raise BadParameterError(
            "--diff and --json - both write to stdout; give --json a file."
        )
    # Before all that measures is imported, so that a refusal comes at once.
    make = maker(args.training, args.arguments, args.fit)
    from perfkit.training.diagnose.diagnose import open_diagnosis

    session = open_diagnosis(
        make, args.budget, args.seed, args.out, source=not args.no_source
    )
    code = _watched(session, args)
    if args.diff and session.finding:
        proved = _write_patch(session.finding, make, args)
        return code or proved
    return code


def _write_patch(diagnosis: Diagnosis, make: Callable[[], Any], args: Namespace) -> int:
    """Print the patch if it is proved; give the code that says whether it is."""
    from perfkit.training.diagnose.edits import patch

    diff, header, says = patch(diagnosis, make, Path.cwd()), "", list[str]()
    if diff.text and not args.no_race:
        proof = _proof(diff, diagnosis, make, args)
        if not proof.helps:
            print(f"perfkit: {proof.says}", file=sys.stderr)
            return LEFT_OPEN
        header = f"# {proof.says}\n"
        says = [f"{proof.says}. This is the race of the whole patch."]
    # In the file's own encoding and with its ends of lines.
    sys.stdout.buffer.write(header.encode() + diff.text)
    for sentence in (*says, *diff.says):
        print(f"perfkit: {sentence}", file=sys.stderr)
    return DONE


def _proof(
    patch: Patch, diagnosis: Diagnosis, make: Callable[[], Any], args: Namespace
) -> Proof:
    """Race the patched copy, unless the diagnosis was no run, or was stopped."""
    from perfkit.questions.runs import watch
    from perfkit.training.race.race import open_proof, proof_of, unproved

    if diagnosis.stopped or diagnosis.replayed:
        cause = "stopped" if diagnosis.stopped else "a recording"
        return unproved(f"the diagnosis was {cause}, so nothing proves the patch")
    try:
        raced = watch(open_proof(patch, make, args.seed, args.out), _display())
    except KeyboardInterrupt:
        raced = None
    except PerfkitError as error:
        return unproved(str(error).rstrip("."))
    if raced is None or raced.stopped:
        raise KeyboardInterrupt(unproved("its race was stopped").says)
    return proof_of(raced)


def _race(args: Namespace) -> int:
    from dataclasses import fields

    from perfkit.training.race.race import RaceSession, asked_for, open_race
    from perfkit.training.race.sides import Asked

    request = asked_for(**{f.name: getattr(args, f.name) for f in fields(Asked)})
    session = open_race(
        request, args.budget, seed=args.seed, folder=args.out, worse=args.worse
    )
    code = _watched(session, args)
    if args.worse is None or code == INTERRUPTED:
        return code
    # A recording says nothing of these versions.
    live = session if isinstance(session, RaceSession) else None
    if live is None or live.is_worse is None:
        return BAD_USAGE if live and live.cannot_run else LEFT_OPEN
    return FAILED if live.is_worse else DONE


def _profile(args: Namespace) -> int:
    from perfkit.training.profile.profile import profile

    if sys.stderr.isatty():
        message = "Running the training until it is warm, after any other run …"
        print(message, file=sys.stderr)
    step_profile = profile(args.training, steps=args.steps)
    _show_report(step_profile, args)
    _write_json(step_profile, args)
    return DONE


def _watched(session: Watched[Recorded], args: Namespace) -> int:
    """Run a session, show and write what it found; return the exit code."""
    from perfkit.questions.runs import watch

    try:
        finding = watch(session, _display())
    except KeyboardInterrupt:
        path = session.finding and session.finding.path
        if not path:
            raise
        message = f"interrupted; the results so far are in {path}."
        raise KeyboardInterrupt(message) from None
    _show_report(finding, args)
    if finding.path and not _is_piped(args):
        typed = shlex.quote(_as_typed(finding.path))
        _say(f"To make a page: perfkit export {typed}", unbroken=True)
    _write_json(finding, args)
    if session.unsaved:
        raise RunError(session.unsaved)
    if finding.stopped:
        return INTERRUPTED
    return DONE if finding.timings or getattr(finding, "account", None) else FAILED


def _show(args: Namespace) -> int:
    from perfkit.documents import load

    document: Any = load(args.file)
    _show_report(document, args)
    if args.chart:
        from perfkit.questions.gallery import chart

        _write(args.chart, chart(document).svg)
    return DONE


def _passport(args: Namespace) -> int:
    from perfkit.findings.store import save
    from perfkit.machines.recording import new_file, new_recorder
    from perfkit.machines.report import preview

    path = new_file(args.out)
    passport = new_recorder(path, args.budget).record(_display())
    _show_report(passport, args)
    file = save(passport, path=path)
    _say()
    _say(preview(file.stat().st_size))
    _say(f"Written: {file}")
    if passport.stopped:
        return INTERRUPTED
    rates = [training.rate for training in passport.trainings]
    rates += [benchmark.rate for benchmark in passport.microbenchmarks]
    return DONE if any(rates) else FAILED


def _class(args: Namespace) -> int:
    from perfkit.machines.classroom import classroom

    room = classroom(args.folder)
    _show_report(room, args)
    if args.out:
        _say_written(room.export(args.out))
    return DONE if room.passports else FAILED


def _compare(args: Namespace) -> int:
    from perfkit.machines.compare import compare

    comparison = compare(args.a, args.b)
    _show_report(comparison, args)
    if args.out:
        _say_written(comparison.export(args.out))
    return DONE if any(row.speed for row in comparison.rows) else FAILED


def _fleet(args: Namespace) -> int:
    from perfkit.machines import fleet
    from perfkit.questions import experiment, runs

    command, budget = [args.what], None
    if args.what == "run":
        # A bad value is refused here, before any host is asked.
        experiment(args.name, **options.parameters(args))
        command += [args.name, *options.to_words(args)]
    if args.budget is not None:
        budget = runs.seconds("budget", args.budget)
        command.append(f"--budget={budget:g}")
    folder = fleet.new_folder(args.out)
    try:
        host_runs = fleet.measure(args.address, command, folder, _say, budget)
    except KeyboardInterrupt:
        if not any(folder.glob("*.json")):
            raise
        text = f"interrupted; the files that arrived are in {folder}."
        raise KeyboardInterrupt(text) from None
    _say(fleet.next_step(host_runs, args.what, folder))
    return DONE if any(run.is_saved for run in host_runs) else FAILED


def _export(args: Namespace) -> int:
    from perfkit.findings.page import export

    _say_written(export(args.sources, args.out))
    return DONE


def _lab(args: Namespace) -> int:
    from perfkit.lab import open_lab

    open_lab(Path(args.folder), browser=not args.no_browser, port=args.port)


def _skill(args: Namespace) -> int:
    if args.schema:
        from perfkit.documents import json_schema

        print(json.dumps(json_schema(args.schema), indent=1))
        return DONE
    print(Path(__file__).with_name("skill.md").read_text(encoding="utf-8"), end="")
    return DONE


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
    "skill": _skill,
}


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        # A file has no edge; a table keeps its lines whole in it.
        console.width = 120
    return console


def _say(text: str = "", style: str = "", *, unbroken: bool = False) -> None:
    """Print lines of text to stdout, as ``sayer`` does."""
    from perfkit.findings.report import sayer

    sayer(_console())(text, style, unbroken=unbroken)


def _say_written(page: Path) -> None:
    _say(f"Written: {page} ({units.size(page.stat().st_size)})")


def _display() -> Display:
    from perfkit.progress import LogDisplay, TerminalDisplay

    console = _console(stderr=True)
    return TerminalDisplay(console) if console.is_terminal else LogDisplay()


def _is_piped(args: Namespace) -> bool:
    """Whether stdout is for JSON or a patch; the report then goes to stderr."""
    return bool(getattr(args, "json", None) == "-" or getattr(args, "diff", False))


def _show_report(document: Shown, args: Namespace) -> None:
    from perfkit.findings.report import write

    report, console = document.report, _console(stderr=_is_piped(args))
    saved = f"Saved as {_as_typed(report.path)}" if report.path else ""
    write(report, console, in_full=args.all, saved=saved)


def _as_typed(path: Path) -> str:
    """The path as one would type it here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _check_writable(where: str) -> None:
    """Refuse before the run what would fail after it."""
    folder = os.path.dirname(os.path.abspath(where))
    if where != "-" and (os.path.isdir(where) or not os.access(folder, os.W_OK)):
        raise BadParameterError(
            f"--json is {where!r}, which cannot be written; give a file in a folder "
            "that exists, or - for stdout."
        )


def _write_json(document: Saved, args: Namespace) -> None:
    """Write a document as JSON where the command line says, if it does."""
    from perfkit.findings.store import to_json

    if args.json == "-":
        print(to_json(document))
    elif args.json:
        _write(args.json, f"{to_json(document)}\n")


def _write(where: str, text: str) -> None:
    try:
        Path(where).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadFileError(f"Cannot write {where} ({error.strerror}).") from error
