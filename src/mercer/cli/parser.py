"""What can be typed: the commands of `commands.toml`, and types of their values, and errors.

Nothing here imports numerics, so that ``mercer --help`` does not wait for them.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

DASH = "-"
TABLE = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
COMMANDS: dict[str, dict[str, Any]] = TABLE["commands"]
# Options that say where a command computes and writes, and change no result.
WHERE = {"--output", "--force", "--save", "--checkpoint", "--memory", "--threads", "--device"}

# Parameters of the library, and the options that stand for them here.
OPTIONS, VALUES = TABLE["parameters"], TABLE["values"]
# Messages of the library write a parameter as name=value, or by a name that is no English word.
NAMED = re.compile(
    rf"(?<!\()\b({'|'.join(OPTIONS)})=('[^']*'|True|False| |)"
    rf"|\b({'|'.join(name for name in OPTIONS if '_' in name)}|tol)\b"
    r"|(?<=aise |eave )(memory|device)\b"
)


class JobError(Exception):
    """The job cannot be done; the message says why and what to do."""


class UsageError(Exception):
    """The options contradict each other; the message says which and what to give instead."""


def in_options(text: str) -> str:
    """A text of the library with options in place of parameters."""
    # Names of methods in a table keep their width.
    text = re.sub(r'basis="(\w+)"(?=  )', rf"\1{'':8}", text)
    text = text.replace("HebbianKernelPCA  ", f"hebbian{'':11}")
    text = re.sub(r"\bn_samples=([\d,]+)", r"the \1 rows", re.sub(r'basis="(\w+)"', r"\1", text))
    few = r"Found array with (\d+) sample\(s\) \(.*?\) while a minimum of (\d+) is required by \w+"
    text = re.sub(few, r"Too few rows: \1, and at least \2 are needed", text)
    text = re.sub(r"[,:] ([XKy]) / np\.abs\(\1\)\.max\(\)", "", text)
    text = re.sub(r"Pass \(([DK]) \+ \1\.T\) / 2 if", "Average the two if", text)
    # Objects such as kernels keep the names of their parameters.
    parts = re.split(r"(\b[A-Z]\w*\([^()]*\))", text)
    parts[::2] = [NAMED.sub(as_option, part) for part in parts[::2]]
    return "".join(parts)


def as_option(match: re.Match) -> str:
    """A parameter of the library, with its value if it has one, as an option."""
    name, value, alone, memory = match.groups()
    if name is None:
        return OPTIONS[alone or memory]
    text = OPTIONS[name] + " " + value.strip(" '")
    return VALUES.get(text, text)


def kernels() -> list[str]:
    """Names of kernels, with those that a program has registered."""
    return with_added("kernels", {"polynomial"})


def methods() -> list[str]:
    """The method that mercer chooses, the best exact one, solvers, bases and the online method."""
    solvers = with_added("solvers", set())
    return ["auto", "exact", *solvers, *with_added("bases", {"points"}), "hebbian"]


def with_added(package: str, hidden: set[str]) -> list[str]:
    """The names written down, and others of the registry if it is imported already."""
    module = sys.modules.get(f"mercer.{package}")
    registry = {} if module is None else vars(module)[package.upper()]
    added = [name for name in registry if name not in hidden]
    return list(dict.fromkeys([*TABLE["registries"][package], *added]))


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """A question with the nearest valid word and a space before it; empty if none is near.

    Examples
    --------
    >>> did_you_mean("--componets", ["--components", "--columns"])
    ' Did you mean --components?'
    >>> did_you_mean("xyz", ["--components"])
    ''
    """
    spelled = {name.lower(): name for name in valid}
    near = get_close_matches(word.lower(), spelled, n=1, cutoff=0.6)
    return f" Did you mean {spelled[near[0]]}?" if near else ""


def names(text: str) -> list[str]:
    """Names separated by commas."""
    parts = [name.strip() for name in text.split(",")]
    if not all(parts):
        raise argparse.ArgumentTypeError(
            f"{text!r} has an empty name. Separate names by commas: a,b,c"
        )
    return parts


def method_names(text: str) -> list[str]:
    """Methods separated by commas."""
    valid = methods()
    for name in names(text):
        if name not in valid:
            near = did_you_mean(name, valid)
            raise argparse.ArgumentTypeError(
                f"{name!r} is not a method.{near} Choose from {', '.join(valid)}"
            )
    return names(text)


def checked(kind: Callable, allowed: Callable[[Any], bool], expected: str) -> Callable[[str], Any]:
    """A parser that converts a text with `kind` and refuses values that are not allowed."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
            if allowed(value):
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")

    return parse


def path_with(*suffixes: str) -> Callable[[str], Path]:
    """A path that ends in one of these; ``-`` is stdout and gets the first suffix."""
    return checked(
        lambda text: Path(f"{DASH}{suffixes[0]}" if text == DASH else text),
        lambda path: path.suffix.lower() in suffixes,
        f"a path that ends in {' or '.join(suffixes)}",
    )


def whole(least: str) -> Callable[[str], int]:
    return checked(int, lambda value: value >= int(least), f"a whole number of at least {least}")


def number(text: str) -> int | float:
    """A number, whole where it is written so."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def sides(text: str) -> tuple[int, ...]:
    """Whole numbers separated by x, as in 28x28."""
    return tuple(whole("1")(side) for side in text.split("x"))


def smoothing(text: str) -> float | tuple[int, ...]:
    """The weight of an average, or k and m of a rule "k/m"."""
    return tuple(int(part) for part in text.split("/")) if "/" in text else float(text)


def memory(text: str) -> str:
    from ..compute import parse_bytes

    parse_bytes(text)
    return text


#: Types of values by their names in the table of commands; those with an argument are functions.
TYPES: dict[str, Callable] = {
    "clusters": checked(
        lambda text: text if text == "auto" else int(text),
        lambda value: value == "auto" or value >= 1,
        "a whole number of at least 1, or auto",
    ),
    "components": checked(
        number,
        lambda value: 0 < value < 1 or (value >= 1 and isinstance(value, int)),
        "a number of components, such as 16, or a share of variance between 0 and 1, such as 0.95",
    ),
    "float": float,
    "folder": Path,
    "gamma": checked(
        lambda text: text if text in ("auto", "median", "mean", "columns") else float(text),
        lambda value: isinstance(value, str) or 0 < value < float("inf"),
        "a positive number, median, mean or columns",
    ),
    "image": checked(sides, lambda size: len(size) in (2, 3), "HEIGHTxWIDTH, such as 28x28"),
    "level": checked(float, lambda value: 0 < value < 1, "a level between 0 and 1, such as 0.05"),
    "memory": checked(memory, bool, "an amount of memory, such as 300MB or 2GiB"),
    "methods": method_names,
    "names": names,
    "number": number,
    "path": path_with,
    "positive": checked(float, lambda value: 0 < value < float("inf"), "a positive number"),
    "shape": checked(
        sides, lambda size: len(size) == 2 and size[0] > 1, "ROWSxCOLUMNS, such as 100000x54"
    ),
    "share": checked(float, lambda value: 0 <= value <= 1, "a share between 0 and 1"),
    "smoothing": checked(
        smoothing,
        lambda x: 0 < x <= 1 if isinstance(x, float) else len(x) == 2 and 1 <= x[0] <= x[1],
        "the weight of an average, such as 0.2, or k/m for k of m rows, such as 2/3",
    ),
    # None for stdout, where tables go by default.
    "table": lambda text: None if text == DASH else path_with(".npy", ".csv", ".parquet")(text),
    "whole": whole,
}
CHOICES: dict[str, Callable[[], list[str]]] = {
    "kernels": kernels,
    "kernels of rows": lambda: [name for name in kernels() if name != "precomputed"],
    "methods": methods,
}


def add_option(group: Any, name: str, declared: dict[str, Any]) -> None:
    """Add an option to a parser or a group as the table of commands declares it."""
    arguments = dict(declared)
    flags = [arguments.pop("short"), name] if "short" in arguments else [name]
    if "type" in arguments:
        kind, *details = arguments["type"].split()
        arguments["type"] = TYPES[kind](*details) if details else TYPES[kind]
    if isinstance(arguments.get("choices"), str):
        arguments["choices"] = CHOICES[arguments["choices"]]()
    if arguments.get("action") == "boolean":
        arguments["action"] = argparse.BooleanOptionalAction
    arguments["help"] = arguments["help"].replace("{methods}", ", ".join(methods()))
    group.add_argument(*flags, **arguments)


def chosen_options(args: argparse.Namespace) -> dict[str, str]:
    """Options of a command that are not defaults and that change its result, as texts."""
    aside = {*TABLE["groups"]["messages"], *WHERE}
    options = {}
    for action in args.parser._actions:
        name = next((flag for flag in action.option_strings if flag.startswith("--")), None)
        value = vars(args).get(action.dest, action.default)
        if name and name not in aside and value not in (action.default, argparse.SUPPRESS):
            options[name] = ",".join(value) if isinstance(value, list) else str(value)
    return options


def run_command(name: str, args: argparse.Namespace) -> Any:
    """The `Result` of a command, whose module is imported now."""
    args.options = chosen_options(args)
    return vars(import_module(f"mercer.{COMMANDS[name]['run']}"))[name](args)


def make_parser() -> argparse.ArgumentParser:
    """The parser of a command line."""
    texts = TABLE["texts"]
    parser = Parser(prog="mercer", description=texts["description"], epilog=texts["epilog"])
    for name, declared in TABLE["program"].items():
        add_option(parser, name, declared)
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        examples = "".join(f"  {line}\n" for line in command["examples"])
        epilog = f"example:\n{examples}{texts['note'] if name != 'demo' else ''}"
        text, run = command["summary"], partial(run_command, name)
        subparser = commands.add_parser(name, help=text, description=text, epilog=epilog)
        subparser.set_defaults(run=run, parser=subparser)
        tables = TABLE["groups"] | command
        for title in ["options", *command["groups"], "messages"]:
            group: Any = subparser if title == "options" else subparser.add_argument_group(title)
            options = tables[title]
            for option in options:
                changes = options[option] if isinstance(options, dict) else {}
                declared = TABLE["shared"].get(option, {}) | changes
                add_option(group, option.split()[0], declared)
    return parser


class Parser(argparse.ArgumentParser):
    """A parser without abbreviations, whose errors are one line."""

    def __init__(self, **options):
        # Examples keep their lines, and options have room beside their help.
        form: Any = partial(argparse.RawDescriptionHelpFormatter, max_help_position=28)
        # An abbreviation that works today would break with the next option.
        super().__init__(formatter_class=form, allow_abbrev=False, **options)

    def parse_args(self, args=None, namespace=None):
        """Parse; arguments that are left over are an error of the command they were given to."""
        parsed, rest = self.parse_known_args(args, namespace)
        if rest:
            parser = vars(parsed).get("parser", self)
            options = [name for action in parser._actions for name in action.option_strings]
            near = did_you_mean(rest[0].partition("=")[0], options)
            parser.error(f"unrecognized arguments: {' '.join(rest)}.{near}")
        return parsed

    def error(self, message: str) -> NoReturn:
        """Raise what was wrong; `report_failure` adds which help to read."""
        raise UsageError(message)

    def _check_value(self, action, value):
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            text = f"invalid choice: {value!r}.{did_you_mean(str(value), choices)}"
            raise argparse.ArgumentError(action, f"{text} Choose from {', '.join(choices)}")
