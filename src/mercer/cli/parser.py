"""What can be typed: every command with its options, and the types of their values.

Nothing here imports numerics, so that ``mercer --help`` does not wait for them.
"""

import re
import sys
from argparse import (
    ArgumentError,
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable, Iterable, Iterator, Sequence
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
FILES_NOTE = "\nThe files of examples are those that mercer demo leaves behind.\n"


class RegistryNames:
    """The names in a registry of the library, known without importing it.

    They are read from its source until it is imported, so that help does not wait for numerics.

    Parameters
    ----------
    package : str
        The part of mercer that has the registry in its `__init__`.
    registry : str
        The name of the dictionary.
    without : str
        Names that are no choices.
    """

    def __init__(self, package: str, registry: str, *without: str):
        self.package, self.registry, self.without = package, registry, without

    def __iter__(self) -> Iterator[str]:
        imported = f"mercer.{self.package}" in sys.modules
        names = self.load() if imported else self.written()
        return (name for name in names if name not in self.without)

    def load(self) -> dict:
        """The registry itself."""
        return vars(import_module(f"mercer.{self.package}"))[self.registry]

    def written(self) -> list[str]:
        """The keys in the source of the dictionary, and those that relatives add."""
        home = Path(__file__).parents[1]
        source = (home / self.package / "__init__.py").read_text(encoding="utf-8")
        (literal,) = re.findall(rf"^{self.registry}\b[^{{]*{{(.*?)^}}", source, re.M | re.S)
        found = re.findall(r'^    "(.+?)":', literal, re.M)
        for path in sorted((home / "relatives").glob("*.py")):
            added = rf'^{self.registry}\["(.+?)"\] ='
            found += re.findall(added, path.read_text(encoding="utf-8"), re.M)
        return found


# "polynomial" is scikit-learn's other name of "poly".
KERNELS = RegistryNames("kernels", "KERNELS", "polynomial")
SOLVERS = RegistryNames("solvers", "SOLVERS")
BASES = RegistryNames("bases", "BASES", "points")


def methods() -> list[str]:
    """Names of methods: the library's choice, the best exact one, solvers, bases, an online one."""
    return ["auto", "exact", *SOLVERS, *BASES, "hebbian"]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question with the nearest of the words that are known, with a space before it; or nothing.

    Examples
    --------
    >>> did_you_mean("--componets", ["--components", "--columns"])
    ' Did you mean --components?'
    >>> did_you_mean("xyz", ["--components"])
    ''
    """
    spelled = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), spelled, n=1, cutoff=0.6)
    return f" Did you mean {spelled[near[0]]}?" if near else ""


def names(text: str) -> list[str]:
    """Names between commas."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise ArgumentTypeError(f"{text!r} has an empty name. Give names between commas: a,b,c")
    return found


def method_names(text: str) -> list[str]:
    """Methods between commas."""
    for name in names(text):
        if name not in methods():
            near, known = did_you_mean(name, methods()), ", ".join(methods())
            raise ArgumentTypeError(f"{name!r} is no method.{near} Choose of {known}")
    return names(text)


def checked(kind: Callable, allowed: Callable[[Any], bool], expected: str) -> Callable[[str], Any]:
    """The parser of a value that must be allowed."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
            if allowed(value):
                return value
        except ValueError:
            pass
        raise ArgumentTypeError(f"{text!r} is not {expected}")

    return parse


def path_with(*suffixes: str) -> Callable[[str], Path]:
    """A path that ends in one of these; ``-`` for stdout, with the suffix that names the format."""
    return checked(
        lambda text: Path(f"{DASH}{suffixes[0]}" if text == DASH else text),
        lambda path: path.suffix.lower() in suffixes,
        f"a path that ends in {' or '.join(suffixes)}",
    )


def table_path(text: str) -> Path | None:
    """The path of a table; None for stdout, where tables go anyway."""
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
    """Whole numbers between crosses, as in 28x28."""
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
SHORT = {"--components": "-r", "--clusters": "-k", "--output": "-o", "--quiet": "-q"}
# Options that several commands share.
OPTIONS: dict[str, dict[str, Any]] = {
    "--columns": value("A,B,...", "use these (default: all numbers)", names),
    "--drop": value("A,B,...", "leave these out; numbers from 0 if unnamed", names),
    "--id": value("COLUMN", "names the rows: kept beside the result, and no feature"),
    "--array": value("NAME", "which array of an .npz file, which sheet of an .xlsx"),
    "--missing": value(
        "WHAT",
        "missing values: error (default), drop the row, or the mean of the column",
        choices=("error", "drop", "mean"),
    ),
    "--encoding": value("NAME", "default: that of the model, else utf-8"),
    "--decimal": value("C", "decimal point: . or , (default: look at it)", choices=(".", ",")),
    "--thousands": value("C", "sets three digits apart, such as . in 1.234,5 (default: nothing)"),
    "--comment": value("C", "leave out lines that start so (default: # if few do)"),
    "--header": {
        "action": BooleanOptionalAction,
        "help": "the first line names the columns, or does not (default: look at it)",
    },
    "--keep": value("A,B,...", "columns to carry along, beside --id", names),
    "--scale": value(
        "KIND",
        "standard: mean 0 and deviation 1; minmax: 0 to 1; none (default)",
        default="none",
        choices=("none", "standard", "minmax"),
    ),
    "--kernel": value("NAME", "%(choices)s (default: rbf)", default="rbf", choices=KERNELS),
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


class Options:
    """Adds options to a parser, or to a titled group of it."""

    def __init__(self, parser: Any):
        self.parser = parser

    def add(self, name: str, *given, **more) -> "Options":
        """An option: a shared one, or one with a value as `value` describes it."""
        flags = (SHORT[name], name) if name in SHORT else (name,)
        described = value(*given, **more) if given else OPTIONS[name] | more
        self.parser.add_argument(*flags, **described)
        return self

    def flag(self, name: str, help: str) -> "Options":
        self.parser.add_argument(name, **flag(help))
        return self

    def group(self, title: str, shared: str = "") -> "Options":
        """A titled group, with shared options that are named between spaces."""
        group = Options(self.parser.add_argument_group(title))
        for name in shared.split():
            group.add(name)
        return group

    def data(self, metavar: str = "DATA", what: str = DATA, **more) -> "Options":
        """A table, which of its columns to use, and how its text is written."""
        self.parser.add_argument("data", metavar=metavar, help=what, **more)
        self.group("columns of the table", "--columns --drop --id --array --missing")
        self.group("text of the table", "--encoding --decimal --thousands --comment --header")
        return self

    def model(self, what: str = "file of mercer fit") -> "Options":
        self.parser.add_argument("model", metavar="MODEL", help=what)
        return self

    def number(self, name: str, least: int, default: int, what: str, metavar="N") -> "Options":
        return self.add(name, metavar, f"{what} (default: {default})", whole(least), default)

    def saved(self) -> "Options":
        """Where the fitted estimator goes beside the result."""
        return self.add("--save", "FILE", "model file as well, .mercer", path_with(".mercer"))

    def affinity(self) -> None:
        """How near rows are to each other: a kernel, or the nearest neighbors; and landmarks."""
        near = "tie every row to its N nearest, itself among them, in place of a kernel"
        few = "M chosen rows stand for all; without it all rows up to 20,000, landmarks beyond"
        self.add("--neighbors", "N", near, whole(1)).add("--landmarks", help=few).add("--scale")
        self.kernel().group("resources", "--memory --threads --seed")

    def kernel(self) -> "Options":
        self.group("kernel", "--kernel --gamma --degree --coef0")
        return self

    def on_device(self) -> "Options":
        self.group("resources", "--memory --threads --device --seed")
        return self

    def output(self, what: str, kind: Callable = table_path, required: bool = False) -> None:
        """Where the result goes."""
        self.group("output").add("--output", "FILE", what, kind, required=required).add("--force")


@dataclass(frozen=True)
class Command:
    """A command of the shell.

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
    run: Callable[[Namespace], Any]
    examples: tuple[str, ...]


COMMANDS: dict[str, Command] = {}
DIGITS = "demo-output/digits.csv"
WITH_MODEL = f"demo-output/digits.mercer {DIGITS}"


def command(module: str, summary: str, *examples: str) -> Callable:
    """Declare a command by its options; the function of its name in `module` runs it.

    The module is imported when the command runs.
    """

    def declare(options: Callable[[Options], None]) -> Callable[[Options], None]:
        name = options.__name__

        def run(args: Namespace) -> Any:
            return vars(import_module(f"mercer.{module}"))[name](args)

        COMMANDS[name] = Command(summary, options, run, examples)
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
    options.data().add("--scale").flag("--strict", "fail where the method has not converged")
    kept = "leave there what a long fit has found; the same command goes on after a crash"
    options.add("--checkpoint", "FOLDER", kept)
    what = "components, or a share of variance such as 0.95 (default: 16)"
    options.add("--components", "R", what, components, 16)
    method = options.group("method")
    what = "%(choices)s (default: auto, which is exact where the table fits in memory)"
    method.add("--method", "NAME", what, default="auto", choices=methods())
    method.add("--landmarks").add("--selector").add("--features")
    method.add("--passes", "N", "at most, of methods that iterate", whole(1)).add("--tol")
    supervised = options.group("supervised")
    what = "find the components that depend most on this column: labels, or numbers with a point"
    supervised.add("--target", "COLUMN", what)
    what = "share of plain kernel PCA, 0 to 1, for more components than classes (default: 0)"
    supervised.add("--unsupervised", "A", what, share, 0.0)
    options.kernel().on_device()
    options.output("model file, which ends in .mercer", path_with(".mercer"), required=True)


@command(
    "cli.models",
    "Compute the scores of rows along the components of a model.",
    f"mercer transform {WITH_MODEL} -o digit-scores.csv",
    f"mercer transform {WITH_MODEL} --atlas digits-atlas.parquet",
)
def transform(options: Options) -> None:
    options.model("file of mercer fit, or of embed or cluster --save").data().add("--keep")
    what = "all columns, scores, places and nearest rows for Embedding Atlas: .parquet"
    options.add("--atlas", "FILE", what, path_with(".parquet"))
    options.output("scores: .npy, .csv or .parquet; stdout if not given")


@command(
    "cli.models",
    "Find rows with given scores: the way back from mercer transform.",
    "mercer inverse demo-output/digits.mercer demo-output/scores.csv -o digit-rows.csv",
)
def inverse(options: Options) -> None:
    options.model().data("SCORES", "table of mercer transform, a column a component").add("--keep")
    options.output("rows: .npy, .csv or .parquet; stdout if not given")


@command(
    "cli.models",
    "Say what a model file holds, without loading its arrays.",
    "mercer describe demo-output/digits.mercer",
    "mercer describe demo-output/digits.mercer --json",
)
def describe(options: Options) -> None:
    options.model("file of mercer fit or of model.save")


@command(
    "cli.models",
    "Say which columns drive which component of a model.",
    f"mercer explain {WITH_MODEL}",
    f"mercer explain {WITH_MODEL} --top 3 --json",
)
def explain(options: Options) -> None:
    options.model().data()
    options.number("--top", 1, 5, "columns to name").number("--rows", 1, 2000, "rows drawn")
    options.output("all numbers: .npy, .csv or .parquet, a row for each column")


@command(
    "cli.models",
    "Say how many components of a model stand above noise, and how stable they are.",
    f"mercer significance {WITH_MODEL} --rows 400",
)
def significance(options: Options) -> None:
    options.model().data().add("--alpha", "P", "level (default: 0.05)", level, 0.05)
    options.number("--shuffles", 1, 39, "of columns").number("--draws", 0, 50, "of rows")
    options.number("--rows", 2, 1000, "looked at").add("--seed")


@command(
    "cli.models",
    "Show a model and the rows of a table as one interactive HTML file.",
    f"mercer report {WITH_MODEL} --color digit -o digits-report.html",
)
def report(options: Options) -> None:
    options.model("file of mercer fit, of --save, or of model.save").data()
    what = "column to color rows by, or a .csv or .parquet file with one, as of mercer cluster"
    options.add("--color", "NAME", what).add("--title", "TEXT", "heading of the page")
    shape = checked(sides, lambda found: len(found) in (2, 3), "HEIGHTxWIDTH, such as 28x28")
    what = "rows are images of this size (of a folder of images it is known)"
    options.add("--image", "HxW", what, shape)
    what = "points at most (default: 200,000, or 20,000 images)"
    options.add("--points", "N", what, whole(1))
    options.output("page, which ends in .html", path_with(".html"), required=True)


@command(
    "cli.compare",
    "Say what each method would cost for a table, or for one of a given shape.",
    f"mercer plan {DIGITS} --components 16",
    "mercer plan --shape 100000x54 --memory 2GB",
)
def plan(options: Options) -> None:
    shape = checked(
        sides, lambda found: len(found) == 2 and found[0] > 1, "ROWSxCOLUMNS, such as 100000x54"
    )
    options.data(nargs="?").add("--shape", "NxD", "rows x columns, instead of a table", shape)
    options.number("--components", 1, 16, "components", "R").add("--kernel")
    options.add("--tol", help="as of mercer fit").on_device()


@command(
    "cli.compare",
    "Compare methods on a table: time, memory, certified error.",
    f"mercer compare {DIGITS} --drop digit --components 8 -o comparison.png",
)
def compare(options: Options) -> None:
    options.data().number("--components", 1, 16, "components", "R")
    compared = ["exact", "landmarks", "features", "gram-power", "hebbian"]
    what = f"of {', '.join(methods())} (default: {','.join(compared)})"
    options.add("--methods", "A,B,...", what, method_names, compared)
    options.group("sizes", "--landmarks --selector --features")
    options.add("--tol").add("--scale").kernel().on_device()
    options.parser.set_defaults(passes=None)
    plot_path = path_with(".png", ".svg", ".pdf")
    options.output("picture of the comparison: .png, .svg or .pdf", plot_path)


@command(
    "cli.methods",
    "Spectral clustering: find the cluster of every row.",
    f"mercer cluster {DIGITS} --drop digit -k 10 -o clusters.csv",
    f"mercer cluster {DIGITS} --drop digit -k 10 --neighbors 10 --labels cluster_qr",
)
def cluster(options: Options) -> None:
    options.data().add("--keep")
    options.add("--clusters", "K", "number of clusters", whole(1), required=True)
    what = "from eigenvectors to clusters (default: kmeans)"
    kinds = ("kmeans", "discretize", "cluster_qr")
    options.add("--labels", None, what, default="kmeans", choices=kinds).saved().affinity()
    options.output("labels: .npy, .csv or .parquet; stdout if not given")


@command(
    "cli.methods",
    "Spectral embedding and diffusion maps: find coordinates that keep near rows together.",
    f"mercer embed {DIGITS} --drop digit --components 2 -o embedding.csv",
    f"mercer embed {DIGITS} --drop digit --diffusion --alpha 1 --steps 2 --gamma median",
)
def embed(options: Options) -> None:
    options.data().add("--keep").number("--components", 1, 2, "coordinates", "R")
    options.flag("--diffusion", "diffusion map: distances of a random walk")
    what = "with --diffusion: how much of the density is taken out, 0 to 1 (default: 0.5)"
    options.add("--alpha", None, what, float, 0.5)
    options.add("--steps", None, "with --diffusion: steps of the walk (default: 1)", float, 1)
    options.saved().affinity()
    options.output("coordinates: .npy, .csv or .parquet; stdout if not given")


@command(
    "cli.methods",
    "Classical multidimensional scaling: find points with the distances given.",
    "mercer mds demo-output/distances.csv --components 2",
    f"mercer mds {DIGITS} --drop digit --metric cosine -o cosine-map.csv",
)
def mds(options: Options) -> None:
    options.data("DISTANCES", "square table of distances, with or without names of the points")
    options.add("--keep").number("--components", 1, 2, "dimensions", "R")
    metrics = ("euclidean", "manhattan", "cosine", "chebyshev", "correlation")
    what = "the table holds rows and not distances: measure them by %(choices)s"
    options.add("--metric", "NAME", what, choices=metrics)
    options.add("--landmarks", help="use the distances to M rows only")
    what = "make the distances Euclidean by an additive constant"
    options.add("--correction", None, what, choices=("lingoes",))
    options.group("resources", "--memory --threads --seed")
    options.output("coordinates: .npy, .csv or .parquet; stdout if not given")


@command(
    "cli.methods",
    "Denoise an image by kernel PCA of its patches.",
    "mercer denoise demo-output/noisy.png -o denoised.png",
)
def denoise(options: Options) -> None:
    what = "gray or color image; alpha is dropped"
    options.parser.add_argument("image", metavar="IMAGE", help=what)
    # With a linear kernel the strong setting, see docs/denoising.md.
    patches = options.group("patches").number("--patch", 2, 11, "side", "P")
    patches.add("--stride", "S", "default: 1", whole(1), 1)
    what = "standard deviation of the noise, in gray levels of 0 to 255 (default: estimated)"
    patches.add("--noise", "S", what, positive)
    kernels = RegistryNames("kernels", "KERNELS", "polynomial", "precomputed")
    what = "default: linear, the best and fastest for images"
    patches.add("--kernel", "NAME", what, default="linear", choices=kernels)
    patches.add("--components", "R", "components kept", whole(1))
    options.group("resources", "--memory --threads --seed")
    image_path = path_with(".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg")
    options.output("image: .png, .tif, .bmp, .jpg", image_path, required=True)


@command(
    "demo",
    "Show kernel PCA of digits, and leave a picture, a report and files to try commands on.",
    "mercer demo",
)
def demo(options: Options) -> None:
    what = "where the files go (default: demo-output)"
    options.add("folder", "FOLDER", what, Path, Path("demo-output"), nargs="?")
    options.flag("--force", "replace files that exist")


def make_parser(words: Sequence[str] | None = None) -> ArgumentParser:
    """The parser of a command line; with `words`, only the command they name has its options."""
    parser = Parser(prog="mercer", description=DESCRIPTION, epilog=EPILOG)
    options = Options(parser).flag("--version", "show the version and exit")
    what = "with --version: libraries, threads, devices and memory as well, for bug reports"
    options.flag("--verbose", what)
    what = "print a script that completes commands and options in %(choices)s"
    options.add("--print-completion", "SHELL", what, choices=SHELLS)
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, declared in COMMANDS.items():
        examples = "".join(f"  {line}\n" for line in declared.examples)
        epilog = f"example:\n{examples}{FILES_NOTE if name != 'demo' else ''}"
        summary = declared.summary
        one = commands.add_parser(name, help=summary, description=summary, epilog=epilog)
        one.set_defaults(run=declared.run, command=one.prog, parser=one)
        if words is None or name in words:
            declared.options(Options(one))
            Options(one).group("messages", "--json --quiet --debug")
    return parser


class Parser(ArgumentParser):
    """Options in full, and wrong usage as one line."""

    def __init__(self, **options):
        # Examples keep their lines, and options have room beside their help.
        form: Any = partial(RawDescriptionHelpFormatter, max_help_position=28)
        # An abbreviation that works today would break with the next option.
        super().__init__(formatter_class=form, allow_abbrev=False, **options)

    def parse_args(self, args=None, namespace=None):
        """Parse; arguments that are left over are an error of the command they were given to."""
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            parser = vars(found).get("parser", self)
            options = [name for action in parser._actions for name in action.option_strings]
            near = did_you_mean(rest[0].partition("=")[0], options)
            parser.error(f"unrecognized arguments: {' '.join(rest)}.{near}")
        return found

    def error(self, message: str) -> NoReturn:
        """Say what was wrong; the frame says where to read on."""
        raise UsageError(message, self.prog)

    def _check_value(self, action, value):
        if action.choices is not None and value not in action.choices:
            known = ", ".join(map(str, action.choices))
            near = did_you_mean(str(value), map(str, action.choices))
            raise ArgumentError(action, f"invalid choice: {value!r}.{near} Choose from {known}")
