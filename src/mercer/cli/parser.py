"""What can be typed: every command with its options, and the types of their values.

Nothing here imports numerics, so that ``mercer --help`` does not wait for them.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from .failures import UsageError

DASH = "-"
SHELLS = ("bash", "zsh", "tcsh")
DESCRIPTION = "Kernel PCA that scales, with a certificate of its error."
EPILOG = """\
Results go to stdout, messages to stderr. Exit codes: 0 success, 1 the job failed, 2 wrong usage,
130 interrupted. Every command has a --help with an example.

example:
  mercer demo
"""
FILES_NOTE = "\nmercer demo writes the files of the examples.\n"


# Names in the registries of the library, written down so that help does not wait for numerics; a
# test compares them. Not offered: "polynomial", another name of "poly"; "points", which is "exact".
KERNELS = (
    *("linear", "poly", "rbf", "sigmoid", "cosine", "laplacian", "matern", "rational_quadratic"),
    *("chi2", "additive_chi2", "precomputed", "gower"),
)
SOLVERS = ("dense", "krylov", "gram-power", "arpack", "randomized", "lobpcg")
BASES = ("landmarks", "features", "fourier", "columns")


def kernels() -> list[str]:
    """Names of kernels, with those that a program has registered."""
    return with_added(KERNELS, "kernels", {"polynomial"})


def methods() -> list[str]:
    """The method that mercer chooses, the best exact one, solvers, bases and the online method."""
    solvers = with_added(SOLVERS, "solvers", set())
    return ["auto", "exact", *solvers, *with_added(BASES, "bases", {"points"}), "hebbian"]


def with_added(names: Iterable[str], package: str, hidden: set[str]) -> list[str]:
    """These names, and others of the registry if it is imported already."""
    module = sys.modules.get(f"mercer.{package}")
    registry = {} if module is None else vars(module)[package.upper()]
    return list(dict.fromkeys([*names, *(name for name in registry if name not in hidden)]))


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
                f"{name!r} is no method.{near} Choose of {', '.join(valid)}"
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


def table_path(text: str) -> Path | None:
    """The path of a table; None for stdout, where tables go by default."""
    return None if text == DASH else path_with(".npy", ".csv", ".parquet")(text)


def whole(least: int) -> Callable[[str], int]:
    return checked(int, lambda value: value >= least, f"a whole number of at least {least}")


def number(text: str) -> int | float:
    """A number, whole where it is written so."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def sides(text: str) -> tuple[int, ...]:
    """Whole numbers separated by x, as in 28x28."""
    return tuple(whole(1)(side) for side in text.split("x"))


def memory(text: str) -> str:
    from ..compute import parse_bytes

    parse_bytes(text)
    return text


positive = checked(float, lambda value: 0 < value < float("inf"), "a positive number")
share = checked(float, lambda value: 0 <= value <= 1, "a share between 0 and 1")
level = checked(float, lambda value: 0 < value < 1, "a level between 0 and 1, such as 0.05")
gamma = checked(
    lambda text: text if text in ("auto", "median", "mean", "columns") else float(text),
    lambda value: isinstance(value, str) or 0 < value < float("inf"),
    "a positive number, median, mean or columns",
)
components = checked(
    number,
    lambda value: 0 < value < 1 or (value >= 1 and isinstance(value, int)),
    "a number of components, such as 16, or a share of variance between 0 and 1, such as 0.95",
)


def value(
    metavar: str | None, help: str, type: Callable = str, default: Any = None, **more
) -> dict:
    """The arguments of `add_argument` for an option with a value."""
    return {"metavar": metavar, "help": help, "type": type, "default": default, **more}


def flag(help: str) -> dict:
    """The arguments of `add_argument` for an option without a value."""
    return {"action": "store_true", "help": help}


DATA = (
    "table (.csv, .tsv, .csv.gz, .parquet, .npy, .npz, .feather, .xlsx), folder of Parquet files "
    "or of images, or - for stdin"
)
# What tables can be written to.
TABLES = ".npy, .csv or .parquet"
SHORT = {"--components": "-r", "--clusters": "-k", "--output": "-o", "--quiet": "-q"}
MISSING, SCALES = ("error", "drop", "mean"), ("none", "standard", "minmax")
# Options that several commands share.
OPTIONS: dict[str, dict[str, Any]] = {
    "model": value("MODEL", "file of mercer fit"),
    "--columns": value("A,B,...", "columns to use (default: all numbers)", names),
    "--drop": value("A,B,...", "columns to leave out; numbers from 0 if unnamed", names),
    "--id": value("COLUMN", "column that names the rows: copied to the result, not used"),
    "--array": value("NAME", "which array of an .npz file, which sheet of an .xlsx"),
    "--missing": value(None, "drop rows with missing values or fill in means", choices=MISSING),
    "--encoding": value("NAME", "default: that of the model, else utf-8"),
    "--decimal": value("C", "decimal point: . or , (default: detect)", choices=(".", ",")),
    "--thousands": value("C", "thousands separator, such as . in 1.234,5 (default: none)"),
    "--comment": value("C", "ignore lines starting with this (default: # if few do)"),
    "--header": {
        "action": argparse.BooleanOptionalAction,
        "help": "the first line names the columns, or does not (default: detect)",
    },
    "--keep": value("A,B,...", "columns to copy to the result, beside --id", names),
    "--scale": value(None, "mean 0 and deviation 1, or 0 to 1", default="none", choices=SCALES),
    "--kernel": value("NAME", "%(choices)s (default: rbf)", default="rbf"),
    "--gamma": value(
        "G",
        "width: a number; median or mean (of the distances between rows); columns, for 1 / number "
        "of columns (default: median for kernels of a distance, else columns)",
        gamma,
        "auto",
    ),
    "--degree": value("P", "of poly (default: 3)", number, 3),
    "--coef0": value("C", "of poly and sigmoid (default: 1)", number, 1),
    "--landmarks": value("M", "number of landmarks", whole(1)),
    "--selector": value("NAME", "how landmarks are chosen, such as KMeans or Uniform"),
    "--features": value("M", "number of random features", whole(2)),
    "--tol": value("T", "largest residual, such as 1e-6", positive, 0.0),
    "--memory": value(
        "SIZE",
        "work memory, such as 300MB or 2GiB (default: half of what is free)",
        checked(memory, bool, "an amount of memory, such as 300MB or 2GiB"),
    ),
    "--threads": value("N", "threads (default: all cores)", whole(1)),
    "--device": value("NAME", "where to compute, such as cuda"),
    "--seed": value("N", "default: 0", whole(0), 0),
    "--force": flag("replace a file that exists"),
    "--json": flag("print one JSON document"),
    "--quiet": flag("no progress, no warnings"),
    "--debug": flag("show the traceback of an error"),
}
# Groups of them.
KERNEL = "--kernel --gamma --degree --coef0"
RESOURCES, ON_DEVICE = "--memory --threads --seed", "--memory --threads --device --seed"


class Options:
    """Adds options to a parser, or to a titled group of it."""

    def __init__(self, parser: Any):
        self.parser = parser

    def add(self, name: str, *description, **changes) -> "Options":
        """An option: a shared one with changes, or one with a value as `value` describes it."""
        flags = (SHORT[name], name) if name in SHORT else (name,)
        if name == "--kernel":
            changes = {"choices": kernels()} | changes
        arguments = value(*description, **changes) if description else OPTIONS[name] | changes
        self.parser.add_argument(*flags, **arguments)
        return self

    def flag(self, name: str, help: str) -> "Options":
        self.parser.add_argument(name, **flag(help))
        return self

    def group(self, title: str, shared: str = "") -> "Options":
        """A titled group of shared options, whose names are separated by spaces."""
        group = Options(self.parser.add_argument_group(title))
        for name in shared.split():
            group.add(name)
        return group

    def data(self, metavar: str = "DATA", what: str = DATA, **more) -> "Options":
        """A table, which of its columns to use, and how its text is written."""
        self.add("data", metavar, what, **more)
        self.group("columns of the table", "--columns --drop --id --array --missing")
        self.group("text of the table", "--encoding --decimal --thousands --comment --header")
        return self

    def number(self, name: str, least: int, default: int, what: str, metavar="N") -> "Options":
        return self.add(name, metavar, f"{what} (default: {default})", whole(least), default)

    def affinity(self) -> None:
        """A model file, and similarities of rows: a kernel or nearest neighbors; landmarks."""
        self.add("--save", "FILE", "save the model too, .mercer", path_with(".mercer"))
        what = "connect every row to its N nearest, itself among them, instead of a kernel"
        self.add("--neighbors", "N", what, whole(1))
        what = "use M landmark rows (default: all rows up to 20,000, landmarks beyond)"
        self.add("--landmarks", help=what).add("--scale")
        what = "%(choices)s (default: a graph of the 15 nearest rows; rbf if --gamma is given)"
        kernel = self.group("kernel").add("--kernel", default=None, help=what)
        for name in KERNEL.split()[1:]:
            kernel.add(name)
        self.group("resources", RESOURCES)

    def output(self, what: str, kind: Callable = table_path, required: bool = False) -> None:
        """Where the result goes."""
        self.group("output").add("--output", "FILE", what, kind, required=required).add("--force")


@dataclass(frozen=True)
class Command:
    """A command such as ``mercer fit``.

    Attributes
    ----------
    summary : str
    options : function of `Options`
        Declares what can be given.
    run : function of the parsed options
        Returns a `Result`.
    examples : tuple of str
    """

    summary: str
    options: Callable[[Options], None]
    run: Callable[[argparse.Namespace], Any]
    examples: tuple[str, ...]


COMMANDS: dict[str, Command] = {}
DIGITS = "demo-output/digits.csv"
WITH_MODEL = f"demo-output/digits.mercer {DIGITS}"


def command(module: str, summary: str, *examples: str) -> Callable:
    """Declare a command by its options; the function of its name in `module` runs it.

    The module is imported when the command runs.
    """

    def declare(options: Callable[[Options], None]) -> Callable[[Options], None]:
        def run(args: argparse.Namespace) -> Any:
            return vars(import_module(f"mercer.{module}"))[options.__name__](args)

        COMMANDS[options.__name__] = Command(summary, options, run, examples)
        return options

    return declare


@command(
    "cli.fit",
    "Fit kernel PCA to a table and save the model.",
    f"mercer fit {DIGITS} --drop digit -o digits16.mercer",
    f"mercer fit {DIGITS} --drop digit --scale standard --components 0.8 -o wide.mercer",
    f"mercer fit {DIGITS} --drop digit --landmarks 300 --json -o small.mercer",
    f"mercer fit {DIGITS} --target digit -o towards.mercer",
)
def fit(options: Options) -> None:
    options.data().add("--scale").flag("--strict", "fail if the method has not converged")
    what = "save progress here; rerun the command to resume"
    options.add("--checkpoint", "FOLDER", what)
    what = "components, or a share of variance such as 0.95 (default: 16)"
    options.add("--components", "R", what, components, 16)
    method = options.group("method")
    what = "%(choices)s (default: auto, which is exact if the table fits in memory)"
    method.add("--method", "NAME", what, default="auto", choices=methods())
    method.add("--landmarks").add("--selector").add("--features")
    method.add("--passes", "N", "passes of iterative methods at most", whole(1)).add("--tol")
    supervised = options.group("supervised")
    what = "find the components that depend most on this column: labels, or numbers with a point"
    supervised.add("--target", "COLUMN", what)
    what = "share of plain kernel PCA, 0 to 1, for more components than classes (default: 0)"
    supervised.add("--unsupervised", "A", what, share, 0.0)
    options.group("kernel", KERNEL)
    options.group("resources", ON_DEVICE)
    options.output("model file, which ends in .mercer", path_with(".mercer"), required=True)


@command(
    "cli.models",
    "Compute the scores of rows along the components of a model.",
    f"mercer transform {WITH_MODEL} -o digit-scores.csv",
    f"mercer transform {WITH_MODEL} --atlas digits-atlas.parquet",
)
def transform(options: Options) -> None:
    what = "file of mercer fit, or of embed or cluster --save"
    options.add("model", help=what).data().add("--keep")
    what = "table with scores, map positions and nearest rows for Embedding Atlas: .parquet"
    options.add("--atlas", "FILE", what, path_with(".parquet"))
    options.output(f"scores: {TABLES} (default: stdout)")


@command(
    "cli.models",
    "Find rows with given scores: the way back from mercer transform.",
    "mercer inverse demo-output/digits.mercer demo-output/scores.csv -o digit-rows.csv",
)
def inverse(options: Options) -> None:
    options.add("model").data("SCORES", "table of mercer transform, one column per component")
    options.add("--keep").output(f"rows: {TABLES} (default: stdout)")


@command(
    "cli.models",
    "Say what a model file holds, without loading its arrays.",
    "mercer describe demo-output/digits.mercer",
    "mercer describe demo-output/digits.mercer --json",
)
def describe(options: Options) -> None:
    options.add("model", help="file of mercer fit or of model.save")


@command(
    "cli.models",
    "Say which columns drive which component of a model.",
    f"mercer explain {WITH_MODEL}",
    f"mercer explain {WITH_MODEL} --top 3 --json",
)
def explain(options: Options) -> None:
    options.add("model").data()
    options.number("--top", 1, 5, "columns to name").number("--rows", 1, 2000, "rows drawn")
    options.output(f"all numbers: {TABLES}, one row per column")


@command(
    "cli.models",
    "Say how many components of a model stand above noise, and how stable they are.",
    f"mercer significance {WITH_MODEL} --rows 400",
)
def significance(options: Options) -> None:
    options.add("model").data().add("--alpha", "P", "level (default: 0.05)", level, 0.05)
    options.number("--shuffles", 1, 39, "shuffles of columns")
    options.number("--draws", 0, 50, "draws of rows").number("--rows", 2, 1000, "rows used")
    options.add("--seed")


@command(
    "cli.models",
    "Show a model and the rows of a table as one interactive HTML file.",
    f"mercer report {WITH_MODEL} --color digit -o digits-report.html",
)
def report(options: Options) -> None:
    options.add("model", help="file of mercer fit, of --save, or of model.save").data()
    what = "column to color rows by, or a .csv or .parquet file with one, as of mercer cluster"
    options.add("--color", "NAME", what).add("--title", "TEXT", "heading of the page")
    shape = checked(sides, lambda size: len(size) in (2, 3), "HEIGHTxWIDTH, such as 28x28")
    options.add("--image", "HxW", "rows are images of this size (not for image files)", shape)
    options.add("--points", "N", "points at most (default: 200,000, or 20,000 images)", whole(1))
    options.output("page, which ends in .html", path_with(".html"), required=True)


@command(
    "cli.fit",
    "Estimate what each method would cost for a table, or for a table of this shape.",
    f"mercer plan {DIGITS} --components 16",
    "mercer plan --shape 100000x54 --memory 2GB",
)
def plan(options: Options) -> None:
    expected = "ROWSxCOLUMNS, such as 100000x54"
    shape = checked(sides, lambda size: len(size) == 2 and size[0] > 1, expected)
    options.data(nargs="?").add("--shape", "NxD", "rows x columns, instead of a table", shape)
    options.number("--components", 1, 16, "components", "R").add("--kernel")
    options.add("--tol").group("resources", ON_DEVICE)


@command(
    "cli.fit",
    "Compare methods on a table: time, memory, certified error.",
    f"mercer compare {DIGITS} --drop digit --components 8 -o comparison.png",
)
def compare(options: Options) -> None:
    options.data().number("--components", 1, 16, "components", "R")
    compared = ["exact", "landmarks", "features", "gram-power", "hebbian"]
    what = f"of {', '.join(methods())} (default: {','.join(compared)})"
    options.add("--methods", "A,B,...", what, method_names, compared)
    options.group("sizes", "--landmarks --selector --features")
    options.add("--tol").add("--scale").group("kernel", KERNEL)
    options.group("resources", ON_DEVICE)
    options.parser.set_defaults(passes=None)
    suffixes = (".png", ".svg", ".pdf")
    options.output("picture of the comparison: .png, .svg or .pdf", path_with(*suffixes))


@command(
    "cli.fit",
    "Spectral clustering: find the cluster of every row.",
    f"mercer cluster {DIGITS} --drop digit -k 10 -o clusters.csv",
    f"mercer cluster {DIGITS} --drop digit -k 10 --neighbors 10 --labels cluster_qr",
)
def cluster(options: Options) -> None:
    options.data().add("--keep")
    options.add("--clusters", "K", "number of clusters", whole(1), required=True)
    what = "how eigenvectors become clusters (default: kmeans)"
    kinds = ("kmeans", "discretize", "cluster_qr")
    options.add("--labels", None, what, default="kmeans", choices=kinds).affinity()
    options.output(f"labels: {TABLES} (default: stdout)")


@command(
    "cli.fit",
    "Spectral embedding and diffusion maps: find coordinates that keep near rows together.",
    f"mercer embed {DIGITS} --drop digit --components 2 -o embedding.csv",
    f"mercer embed {DIGITS} --drop digit --diffusion --alpha 1 --steps 2 --gamma median",
)
def embed(options: Options) -> None:
    options.data().add("--keep").number("--components", 1, 2, "coordinates", "R")
    options.flag("--diffusion", "diffusion map: distances of a random walk")
    what = "with --diffusion: how much of the density to remove, 0 to 1 (default: 0.5)"
    options.add("--alpha", None, what, float, 0.5)
    options.add("--steps", None, "with --diffusion: steps of the walk (default: 1)", float, 1)
    options.affinity()
    options.output(f"coordinates: {TABLES} (default: stdout)")


@command(
    "cli.fit",
    "Classical multidimensional scaling: find points with the distances given.",
    "mercer mds demo-output/distances.csv --components 2",
    f"mercer mds {DIGITS} --drop digit --metric cosine -o cosine-map.csv",
)
def mds(options: Options) -> None:
    options.data("DISTANCES", "square table of distances, with or without names of the points")
    options.add("--keep").number("--components", 1, 2, "dimensions", "R")
    metrics = ("euclidean", "manhattan", "cosine", "chebyshev", "correlation")
    what = "the table holds rows, not distances: measure these by %(choices)s"
    options.add("--metric", "NAME", what, choices=metrics)
    options.add("--landmarks", help="use only the distances to M rows")
    what = "make the distances Euclidean by an additive constant"
    options.add("--correction", None, what, choices=("lingoes",))
    options.group("resources", RESOURCES)
    options.output(f"coordinates: {TABLES} (default: stdout)")


@command(
    "cli.fit",
    "Denoise an image by kernel PCA of its patches.",
    "mercer denoise demo-output/noisy.png -o denoised.png",
)
def denoise(options: Options) -> None:
    what = "gray or color image; alpha is dropped"
    options.add("image", "IMAGE", what)
    # The setting for strong noise with a linear kernel, see docs/denoising.md.
    patches = options.group("patches").number("--patch", 2, 11, "side", "P")
    patches.number("--stride", 1, 1, "pixels between patches", "S")
    what = "standard deviation of the noise, in gray levels of 0 to 255 (default: estimated)"
    patches.add("--noise", "S", what, positive)
    choices = [name for name in kernels() if name != "precomputed"]
    what = "default: linear, the best and fastest for images"
    patches.add("--kernel", "NAME", what, default="linear", choices=choices)
    patches.add("--components", "R", "components to keep", whole(1))
    options.group("resources", RESOURCES)
    image_path = path_with(".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg")
    options.output("image: .png, .tif, .bmp, .jpg", image_path, required=True)


@command(
    "demo",
    "Show kernel PCA of digits, and write a picture, a report and files to try commands on.",
    "mercer demo",
)
def demo(options: Options) -> None:
    what = "where the files go (default: demo-output)"
    options.add("folder", "FOLDER", what, Path, Path("demo-output"), nargs="?")
    options.flag("--force", "replace files that exist")


def make_parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of a command line; with `words`, only the command they name has its options."""
    parser = Parser(prog="mercer", description=DESCRIPTION, epilog=EPILOG)
    options = Options(parser).flag("--version", "show the version and exit")
    what = "with --version: also libraries, threads, devices and memory, for bug reports"
    options.flag("--verbose", what)
    what = "print a script that completes commands and options in %(choices)s"
    options.add("--print-completion", "SHELL", what, choices=SHELLS)
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, declared in COMMANDS.items():
        examples = "".join(f"  {line}\n" for line in declared.examples)
        epilog = f"example:\n{examples}{FILES_NOTE if name != 'demo' else ''}"
        text = declared.summary
        subparser = commands.add_parser(name, help=text, description=text, epilog=epilog)
        subparser.set_defaults(run=declared.run, command=subparser.prog, parser=subparser)
        if words is None or name in words:
            declared.options(Options(subparser))
            Options(subparser).group("messages", "--json --quiet --debug")
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
        raise UsageError(message, self.prog)

    def _check_value(self, action, value):
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            text = f"invalid choice: {value!r}.{did_you_mean(str(value), choices)}"
            raise argparse.ArgumentError(action, f"{text} Choose from {', '.join(choices)}")
