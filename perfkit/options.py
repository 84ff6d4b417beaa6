"""What the command line accepts; an experiment's options come from its parameters."""

import argparse
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import perfkit
from perfkit.errors import BadParameterError
from perfkit.findings.reading import DOCUMENT_KINDS
from perfkit.questions import experiments, find_class, unknown
from perfkit.questions.base import Choice, Folder, Parameter, Range, parameters_of

# What ends in a report.
_REPORTING = (
    *("doctor", "run", "lines", "diagnose", "race", "profile"),
    *("show", "passport", "class", "compare"),
)
# Their scripts' own arguments stand behind a double dash.
_OF_SCRIPTS = ("lines", "diagnose", "race")
_COMMANDS = {
    "doctor": "show what this machine is, and what in it slows training",
    "list": "list the questions that you can ask",
    "run": "ask one of these questions of this machine",
    "lines": "show where the time of your script goes, line by line",
    "diagnose": "find which change makes your training faster, and by how much",
    "race": "find out whether one training is faster than another",
    "profile": "trace a few steps of your training, to explain a measurement",
    "show": "show a saved finding, account, diagnosis, profile or passport",
    "passport": "record this machine in one small file, to compare machines",
    "compare": "show where the same training differs on two machines",
    "class": "show all machines in a folder of passports on one page",
    "fleet": "measure on each host of a Dask cluster, and collect the files",
    "export": "make one HTML file of findings, or of a notebook, to send",
    "lab": "open JupyterLab on the first notebook",
    "skill": "print instructions for coding agents, as Markdown",
}
_NO_SOURCE = "keep your lines of code out of the saved file"
_EXIT_CODES = (
    "exit code: 0 done; 1 no result; 2 bad usage; 130 stopped by Ctrl-C (the results "
    "so far are saved and shown)"
)
_RACES_CODES = (
    f"{_EXIT_CODES}. With --worse: 0 if no side is slower than the first by more than "
    "that, 1 if one is, 3 if the race does not show either; 2 also if a side cannot "
    "run, or anything else fails"
)
_PATCHS_CODES = (
    f"{_EXIT_CODES}. With --diff: 3 if the race does not show that the patch helps, so "
    "that stdout has none"
)
_DOCTORS_CODES = (
    "exit code: 0 no check fails (warnings don't count); 1 a check fails; 2 bad usage; "
    "130 stopped by Ctrl-C (the results so far are shown)"
)
_FLEETS_CODES = (
    "exit code: 0 at least one host sent a file; 1 none did; 2 bad usage; 130 stopped "
    "by Ctrl-C (files that arrived stay). Every worker needs the same perfkit in its "
    "environment. Whoever reaches the scheduler can run code on every host: see "
    "docs/fleet.md"
)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise BadParameterError(f"{message}; see `{self.prog} --help`.")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; ``command`` says which, and the rest is its options.

    Raises:
        BadParameterError: It asks for something that there is not.
    """
    parser, commands = _parsers()
    command = next((word for word in arguments if not word.startswith("-")), None)
    if command is not None and command not in commands:
        raise BadParameterError(unknown("command", command, commands))
    if command in _FILLERS:
        fill, commands[command].epilog = _FILLERS[command]
        fill(commands[command], arguments)
    ours = list(arguments)
    if command in _OF_SCRIPTS:
        # What follows belongs to the script.
        ours = list(itertools.takewhile(lambda word: word != "--", arguments))
    args, extra = parser.parse_known_args(ours)
    if command in _OF_SCRIPTS:
        args.arguments = list(arguments[len(ours) + 1 :])
    if args.command is None:
        parser.error(f"give a command: {', '.join(commands)}")
    if getattr(args, "name", None) is not None:
        find_class(args.name)
    if extra:
        message = _not_understood(commands[args.command], extra[0])
        if command in _OF_SCRIPTS:
            message += " Put the arguments of a script after ` -- `."
        raise BadParameterError(message)
    return args


def parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Pick the experiment's parameters that were given."""
    accepted = parameters_of(find_class(args.name))
    return {p.name: getattr(args, p.name) for p in accepted if hasattr(args, p.name)}


def to_words(args: argparse.Namespace) -> list[str]:
    """Write the experiment's parameters that were given as options again."""
    words = []
    for parameter in parameters_of(find_class(args.name)):
        value = getattr(args, parameter.name, None)
        if isinstance(value, bool):
            flag = parameter.option.removeprefix("--")
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            words.append(f"{parameter.option}={value}")
    return words


def _parsers() -> tuple[_Parser, dict[str, argparse.ArgumentParser]]:
    parser = _Parser(
        prog="perfkit",
        description="Why is training slow on this machine? perfkit measures it.",
        epilog=_EXIT_CODES,
        allow_abbrev=False,
    )
    version = f"perfkit {perfkit.__version__}"
    parser.add_argument("--version", action="version", version=version)
    adding = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, text in _COMMANDS.items():
        verb = adding.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name in _REPORTING:
            full = "print the whole report, not only the answer"
            verb.add_argument("--all", action="store_true", help=full)
    return parser, dict(adding.choices)


def _add(
    parser: argparse.ArgumentParser,
    names: str,
    metavar: str | None,
    summary: str,
    **settings: Any,
) -> None:
    """Add an argument, or an option by its names; without a metavar one that is set."""
    form: dict[str, Any] = {"metavar": metavar} if metavar else {"action": "store_true"}
    parser.add_argument(*names.split(), help=summary, **form, **settings)


def _fill_doctor(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    _add(parser, "--json", None, "write the machine and the checks as JSON")
    probe = (
        "also start TensorFlow, test every device and measure how fast each part is; "
        "under 3 minutes, saved as a finding"
    )
    _add(parser, "--probe", None, probe)
    ready = "check whether the notebooks can run here, and name what is missing"
    _add(parser, "--workshop", None, ready)
    _add(parser, "--folder", "FOLDER", "the folder of your data, to check its disk too")


def _fill_run(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    _add_name(parser, arguments)
    budget = (
        "seconds to spend on measuring, at most 7200 (60, or 180 with a GPU); "
        "preparing data takes extra time"
    )
    _add_run_options(parser, budget)


def _add_name(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    questions = experiments()
    _add(parser, "name", "NAME", f"one of: {', '.join(questions)}")
    # Only the experiment that is named has options, so that help stays short.
    for name in [word for word in arguments if word in questions][:1]:
        group = parser.add_argument_group(f"parameters of {name}")
        for parameter in parameters_of(questions[name]):
            _add_option(group, parameter)


def _fill_lines(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    training = (
        "an unchanged script or notebook, with its own arguments after --, or "
        "FILE.py:FUNCTION; it runs in the same isolation as in `perfkit diagnose`"
    )
    _add(parser, "training", "FILE.py", training)
    _add(parser, "--no-source", None, _NO_SOURCE)
    watched = "seconds to watch it (30); up to four times as long if it hardly trains"
    _add(parser, "--budget", "SECONDS", watched, type=_number)
    _add(parser, "--json", "FILE", "also write the account here; - for stdout")
    _add(parser, "--out", "FOLDER", "folder for accounts (perfkit-findings)")


def _fill_diagnose(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    training = (
        "an unchanged script, with its own arguments after --, or FILE.py:FUNCTION, "
        "which returns a compiled Keras model, its data and optionally a dict of "
        "arguments for fit. It writes to copies and reaches no network "
        "(PERFKIT_ONLINE=1 allows it). The report says what this system cannot isolate"
    )
    _add(parser, "training", "FILE.py", training)
    _add_fit(parser)
    patch = (
        "race a patched copy, and if it is faster write the patch for `git apply` to "
        "stdout, all else to stderr. That takes 60 s beyond the budget, or more if the "
        "training starts slowly"
    )
    _add(parser, "--diff", None, patch)
    _add(parser, "--no-race", None, "with --diff: write the patch without that race")
    _add(parser, "--no-source", None, _NO_SOURCE)
    _add_run_options(
        parser, "seconds in all, or auto: as many as it needs, at most 600 (auto)"
    )


def _fill_race(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    trainings = (
        "unchanged scripts, or FILE.py:FUNCTION, where the first is the baseline; or "
        "one of them with an option below; the scripts' own arguments go after --"
    )
    _add(parser, "trainings", "FILE.py", trainings, nargs="+")
    for name, metavar, text in (
        ("--commit", "COMMIT", "the working tree with a git commit"),
        ("--python", "PYTHON", "with the environment of another interpreter"),
        ("--env", "NAME=VALUE", "with this variable; quote several at once"),
        ("--cores", "0-1,3", "with these cores only"),
    ):
        _add(parser, name, metavar, f"compare {text}", action="append", default=[])
    _add_fit(parser)
    entire_run = (
        "run the scripts to their end, whatever they do, and compare the run times"
    )
    _add(parser, "--whole", None, entire_run)
    worse = (
        "for automatic checks: exit with 1 if a side is slower than the first by more "
        "than this share, such as 5%%"
    )
    _add(parser, "--worse", "5%", worse, type=_share)
    _add_run_options(
        parser, "seconds for the race, or auto: as many as it needs, at most 600 (auto)"
    )


def _fill_profile(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    training = (
        "a script that needs no arguments, or FILE.py:FUNCTION, as `perfkit diagnose` "
        "takes them"
    )
    _add(parser, "training", "FILE.py", training)
    _add(parser, "--steps", "N", "steps, 1 to 10 (10)", type=_integer, default=10)
    _add(parser, "--json", "FILE", "also write the profile here; - for stdout")


def _add_fit(parser: argparse.ArgumentParser) -> None:
    text = "which call of fit to take, from 1 (the one with most epochs)"
    _add(parser, "--fit", "N", text, type=_integer, default=0)


def _add_run_options(parser: argparse.ArgumentParser, budget: str) -> None:
    _add(parser, "--budget", "SECONDS", budget, type=_number)
    _add(parser, "--json", "FILE", "also write the finding here; - for stdout")
    _add(parser, "--seed", "N", "seed of the random order", type=_integer)
    _add(parser, "--out", "FOLDER", "folder for findings (perfkit-findings)")


def _fill_show(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    _add(parser, "file", "FILE", "a file that perfkit saved")
    _add(parser, "--chart", "FILE", "also draw the chart here, as SVG")


def _fill_passport(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    _add(parser, "-o --out", "FILE", "the new file, NAME.json", required=True)
    _add(parser, "--budget", "SECONDS", "seconds in all (180)", type=_number)


def _fill_class(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    _add(parser, "folder", "FOLDER", "the folder with the passports")
    _add(parser, "-o --out", "FILE", "the page, NAME.html")


def _fill_compare(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    _add(parser, "a", "A.json", "the first machine: a file of `perfkit passport`")
    _add(parser, "b", "B.json", "the second machine")
    _add(parser, "-o --out", "FILE", "the page, NAME.html")


def _fill_fleet(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    parser.usage = "perfkit fleet ADDRESS (passport | run NAME) [options]"
    _add(parser, "address", "ADDRESS", "a scheduler, such as tcp://scheduler:8786")
    parser.add_argument("what", metavar="passport|run", choices=("passport", "run"))
    if "passport" not in arguments:
        _add_name(parser, arguments)
    budget = "seconds to measure on each host (the command's default)"
    _add(parser, "--budget", "SECONDS", budget, type=_number)
    out = "a new folder for the files (perfkit-fleet- and the date)"
    _add(parser, "--out", "FOLDER", out)


def _fill_export(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    _add(parser, "sources", "FILE", "findings, or one notebook", nargs="+")
    _add(parser, "-o --out", "FILE", "the page (beside the source)")


def _fill_lab(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    _add(parser, "folder", "FOLDER", "the folder to show (.)", nargs="?", default=".")
    _add(parser, "--no-browser", None, "print the address and open no browser")
    _add(parser, "--port", "N", "the first port to try (8888)", type=int)


def _fill_skill(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    text = f"print the JSON Schema of a document instead: {', '.join(DOCUMENT_KINDS)}"
    _add(parser, "--schema", "KIND", text, choices=DOCUMENT_KINDS)


# What adds the options of a command, and what its exit codes say.
_FILLERS = {
    "doctor": (_fill_doctor, _DOCTORS_CODES),
    "run": (_fill_run, _EXIT_CODES),
    "lines": (_fill_lines, _EXIT_CODES),
    "diagnose": (_fill_diagnose, _PATCHS_CODES),
    "race": (_fill_race, _RACES_CODES),
    "profile": (_fill_profile, None),
    "show": (_fill_show, None),
    "passport": (_fill_passport, _EXIT_CODES),
    "class": (_fill_class, None),
    "compare": (_fill_compare, None),
    "fleet": (_fill_fleet, _FLEETS_CODES),
    "export": (_fill_export, None),
    "lab": (_fill_lab, None),
    "skill": (_fill_skill, None),
}


def _add_option(group: argparse._ArgumentGroup, parameter: Parameter) -> None:
    accepts, metavar = "", "N" if parameter.type in _NUMBERS else "TEXT"
    match parameter.accepts:
        case Range(low, high, unit):
            accepts = f"{low:g} to {high:g} {unit}".strip()
        case Choice(options, many):
            accepts = f"{'any of ' if many else ''}{', '.join(options)}"
            metavar = "WORD,WORD" if many else "WORD"
        case Folder():
            metavar = "FOLDER"
    meaning = ": ".join(filter(None, (parameter.help, accepts)))
    default = "" if parameter.default in ("", False) else f"default {parameter.default}"
    text = "; ".join(filter(None, (meaning, default))).replace("%", "%%")
    form: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
    if parameter.type is not bool:
        form = {"type": _NUMBERS.get(parameter.type, str), "metavar": metavar}
    group.add_argument(parameter.option, default=argparse.SUPPRESS, help=text, **form)


def _reading(kind: Callable[[str], float]) -> Callable[[str], float | str]:
    """Read a number; what is none is left for the check that has the better words."""

    def read(text: str) -> float | str:
        try:
            return kind(text)
        except ValueError:
            return text

    return read


def _from_percent(text: str) -> float:
    """Read ``"5%"`` as 0.05; without its sign 0.05 might be meant as either."""
    number, sign, tail = text.partition("%")
    return float(number if sign and not tail else "") / 100


_number, _integer, _share = _reading(float), _reading(int), _reading(_from_percent)
_NUMBERS: dict[type, Callable[[str], float | str]] = {int: _integer, float: _number}


def _not_understood(parser: argparse.ArgumentParser, word: str) -> str:
    if not word.startswith("-"):
        return f"Unexpected argument {word!r}; see `{parser.prog} --help`."
    names = [o for action in parser._actions for o in action.option_strings]
    long = [option for option in names if option.startswith("--")]
    return unknown(f"option of `{parser.prog}`", word.partition("=")[0], long)
