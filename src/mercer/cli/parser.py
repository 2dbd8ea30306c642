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
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from .failures import UsageError

DASH = "-"
SHELLS = ("bash", "zsh", "tcsh")
DESCRIPTION = "Kernel PCA that scales, with a certificate of error on every result."
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


COMPARED = ["exact", "landmarks", "features", "gram-power", "hebbian"]
METRICS = ("euclidean", "manhattan", "cosine", "chebyshev", "correlation")


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


def path_with(*suffixes: str) -> Callable[[str], Path]:
    """A path that ends in one of these; ``-`` for stdout, with the suffix that names the format."""

    def parse(text: str) -> Path:
        if text == DASH:
            return Path(f"{DASH}{suffixes[0]}")
        path = Path(text)
        if path.suffix.lower() not in suffixes:
            raise ArgumentTypeError(f"{text!r} does not end in {' or '.join(suffixes)}")
        return path

    return parse


def table_path(text: str) -> Path | None:
    """The path of a table; None for stdout, where tables go anyway."""
    return None if text == DASH else path_with(".npy", ".csv", ".parquet")(text)


def names(text: str) -> list[str]:
    """Names between commas."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise ArgumentTypeError(f"{text!r} has an empty name. Give names between commas: a,b,c")
    return found


def method_names(text: str) -> list[str]:
    """Methods between commas."""
    found = names(text)
    for name in found:
        if name not in methods():
            near = did_you_mean(name, methods())
            known = ", ".join(methods())
            raise ArgumentTypeError(f"{name!r} is no method.{near} Choose of {known}")
    return found


def as_float(text: str) -> float:
    """A number; NaN, which is in no range, where the text is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def whole(least: int) -> Callable[[str], int]:
    """A whole number that is not below `least`."""

    def parse(text: str) -> int:
        if not (text.strip().lstrip("+-").isdecimal() and int(text) >= least):
            raise ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return parse


def components(text: str) -> int | float:
    """A number of components, or the share of variance to keep."""
    number = as_float(text)
    if 0 < number < 1:
        return number
    if number >= 1 and number.is_integer():
        return int(number)
    raise ArgumentTypeError(
        f"{text!r} is neither a number of components, such as 16, nor a share of variance between "
        "0 and 1, such as 0.95"
    )


def gamma(text: str) -> float | str:
    """The width of a kernel: a number, or how to find one."""
    if text in ("auto", "median", "mean", "columns"):
        return text
    return positive(text, "a positive number, median, mean or columns")


def number(text: str) -> int | float:
    """A number, whole where it is written so."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def positive(text: str, expected: str = "a positive number", below: float = float("inf")) -> float:
    """A number above zero."""
    if not 0 < as_float(text) < below:
        raise ArgumentTypeError(f"{text!r} is not {expected}")
    return float(text)


def level(text: str) -> float:
    """A probability."""
    return positive(text, "a level between 0 and 1, such as 0.05", below=1)


def share(text: str) -> float:
    """A number from 0 to 1."""
    if not 0 <= as_float(text) <= 1:
        raise ArgumentTypeError(f"{text!r} is not a share between 0 and 1")
    return float(text)


def memory(text: str) -> str:
    """An amount of memory."""
    from ..compute import parse_bytes

    try:
        parse_bytes(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
    return text


def sides(text: str) -> list[int]:
    """Whole numbers between crosses; none where they are not."""
    parts = text.split("x")
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else []


def table_shape(text: str) -> tuple[int, int]:
    """Rows and columns, as in 100000x54."""
    found = sides(text)
    if len(found) != 2 or found[0] < 2 or found[1] < 1:
        raise ArgumentTypeError(f"{text!r} is not ROWSxCOLUMNS, such as 100000x54")
    return found[0], found[1]


def image_shape(text: str) -> tuple[int, ...]:
    """Height and width, as in 28x28, and channels if there are any."""
    found = sides(text)
    if len(found) not in (2, 3) or 0 in found:
        raise ArgumentTypeError(f"{text!r} is not HEIGHTxWIDTH, such as 28x28")
    return tuple(found)


# Options that several commands share, each with the arguments of `add_argument`.
OPTIONS: dict[str, dict[str, Any]] = {
    "--columns": {"type": names, "metavar": "A,B,...", "help": "use these (default: all numbers)"},
    "--drop": {
        "type": names,
        "metavar": "A,B,...",
        "help": "leave these out; numbers from 0 if unnamed",
    },
    "--id": {"metavar": "COLUMN", "help": "names the rows: kept beside the result, and no feature"},
    "--array": {"metavar": "NAME", "help": "which array of an .npz file, which sheet of an .xlsx"},
    "--missing": {
        "choices": ("error", "drop", "mean"),
        "metavar": "WHAT",
        "help": "missing values: error (default), drop the row, or the mean of the column",
    },
    "--encoding": {"default": "utf-8", "metavar": "NAME", "help": "default: utf-8"},
    "--decimal": {
        "choices": (".", ","),
        "default": ".",
        "metavar": "C",
        "help": "decimal point: . or ,",
    },
    "--comment": {"metavar": "C", "help": "leave out lines that start so (default: # if few do)"},
    "--header": {
        "action": BooleanOptionalAction,
        "help": "the first line names the columns, or does not (default: look at it)",
    },
    "--keep": {
        "type": names,
        "metavar": "A,B,...",
        "help": "columns to carry along, beside --id",
    },
    "--scale": {
        "choices": ("none", "standard", "minmax"),
        "default": "none",
        "metavar": "KIND",
        "help": "standard: mean 0 and deviation 1; minmax: 0 to 1; none (default)",
    },
    "--kernel": {
        "choices": KERNELS,
        "default": "rbf",
        "metavar": "NAME",
        "help": "%(choices)s (default: rbf)",
    },
    "--gamma": {
        "type": gamma,
        "default": "auto",
        "metavar": "G",
        "help": "width: a number; median or mean (of the distances between rows); columns, for "
        "1 / number of columns (default: median for kernels of a distance, else columns)",
    },
    "--degree": {"type": number, "default": 3, "metavar": "P", "help": "of poly (default: 3)"},
    "--coef0": {
        "type": number,
        "default": 1,
        "metavar": "C",
        "help": "of poly and sigmoid (default: 1)",
    },
    "--landmarks": {"type": whole(1), "metavar": "M", "help": "number of landmarks"},
    "--selector": {
        "metavar": "NAME",
        "help": "how landmarks are chosen, such as KMeans or Uniform",
    },
    "--features": {"type": whole(2), "metavar": "M", "help": "number of random features"},
    "--tol": {
        "type": positive,
        "default": 0.0,
        "metavar": "T",
        "help": "largest residual, such as 1e-6",
    },
    "--memory": {
        "type": memory,
        "metavar": "SIZE",
        "help": "work memory, such as 300MB or 2GiB (default: half of what is free)",
    },
    "--threads": {"type": whole(1), "metavar": "N", "help": "threads (default: all cores)"},
    "--device": {"metavar": "NAME", "help": "where to compute, such as cuda"},
    "--seed": {"type": whole(0), "default": 0, "metavar": "N", "help": "default: 0"},
    "--force": {"action": "store_true", "help": "replace a file that exists"},
    "--json": {"action": "store_true", "help": "print one JSON document"},
    "--quiet": {"action": "store_true", "help": "no progress, no warnings"},
    "--debug": {"action": "store_true", "help": "show the traceback of an error"},
}
SHORT = {"--components": "-r", "--clusters": "-k", "--output": "-o", "--quiet": "-q"}
DATA = (
    "table (.csv, .tsv, .csv.gz, .parquet, .npy, .npz, .feather, .xlsx), folder of Parquet files "
    "or of images, or - for stdin"
)
COLUMNS = "--columns", "--drop", "--id", "--array", "--missing"
TEXT = "--encoding", "--decimal", "--comment", "--header"
KERNEL = "--kernel", "--gamma", "--degree", "--coef0"
RESOURCES = "--memory", "--threads", "--seed"
ON_DEVICE = "--memory", "--threads", "--device", "--seed"


class Options:
    """Adds options to a parser or to a titled group of it."""

    def __init__(self, parser: ArgumentParser):
        self.parser = parser

    def group(self, title: str, *options: str) -> "Options":
        """A titled group with these of the shared options."""
        inner = Options(self.parser.add_argument_group(title))  # type: ignore[arg-type]
        return inner.add(*options)

    def add(self, *options: str, **changed) -> "Options":
        """Shared options, or one of the command's own, described by `changed`."""
        for option in options:
            flags = (SHORT[option], option) if option in SHORT else (option,)
            self.parser.add_argument(*flags, **OPTIONS.get(option, {}) | changed)
        return self

    def data(self, metavar: str = "DATA", what: str = DATA, **more) -> "Options":
        """A table, which of its columns to use, and how its text is written."""
        self.add("data", metavar=metavar, help=what, **more)
        self.group("columns of the table", *COLUMNS)
        self.group("text of the table", *TEXT)
        return self

    def model(self, what: str = "file of mercer fit") -> "Options":
        return self.add("model", metavar="MODEL", help=what)

    def components(self, kind: Callable, default: int, what: str) -> "Options":
        what = f"{what} (default: {default})"
        return self.add("--components", type=kind, default=default, metavar="R", help=what)

    def affinity(self) -> "Options":
        """How near rows are to each other: a kernel, or the nearest neighbors; and landmarks."""
        self.add(
            "--neighbors",
            type=whole(1),
            metavar="N",
            help="tie every row to its N nearest, itself among them, in place of a kernel",
        )
        what = "M chosen rows stand for all; without it all rows up to 20,000, landmarks beyond"
        self.add("--landmarks", help=what)
        self.group("kernel", *KERNEL)
        return self

    def output(self, kind: Callable, what: str, required: bool = False) -> "Options":
        """Where the result goes."""
        group = self.group("output")
        group.add("--output", type=kind, required=required, metavar="FILE", help=what)
        return group.add("--force")


def fit_options(options: Options) -> None:
    options.data().add("--scale")
    options.add("--strict", action="store_true", help="fail where the method has not converged")
    options.add(
        "--checkpoint",
        metavar="FOLDER",
        help="leave there what a long fit has found; the same command goes on after a crash",
    )
    options.components(components, 16, "components, or a share of variance such as 0.95")
    method = options.group("method")
    method.add(
        "--method",
        choices=methods(),
        default="auto",
        metavar="NAME",
        help="%(choices)s (default: auto, which is exact where the table fits in memory)",
    )
    method.add("--landmarks", "--selector", "--features")
    method.add("--passes", type=whole(1), metavar="N", help="at most, of methods that iterate")
    method.add("--tol")
    supervised = options.group("supervised")
    supervised.add(
        "--target",
        metavar="COLUMN",
        help="find the components that depend most on this column: labels, or numbers with a point",
    )
    supervised.add(
        "--unsupervised",
        type=share,
        default=0.0,
        metavar="A",
        help="share of plain kernel PCA, 0 to 1, for more components than classes (default: 0)",
    )
    options.group("kernel", *KERNEL)
    options.group("resources", *ON_DEVICE)
    options.output(path_with(".mercer"), "model file, which ends in .mercer", required=True)


def transform_options(options: Options) -> None:
    options.model().data().add("--keep")
    options.output(table_path, "scores: .npy, .csv or .parquet; stdout if not given")


def inverse_options(options: Options) -> None:
    options.model().data("SCORES", "table of mercer transform, a column a component").add("--keep")
    options.output(table_path, "rows: .npy, .csv or .parquet; stdout if not given")


def describe_options(options: Options) -> None:
    options.model("file of mercer fit or of model.save")


def explain_options(options: Options) -> None:
    options.model().data()
    options.add("--top", type=whole(1), default=5, metavar="N", help="columns to name (default: 5)")
    options.add(
        "--rows", type=whole(1), default=2000, metavar="N", help="rows drawn (default: 2000)"
    )
    options.output(table_path, "all numbers: .npy, .csv or .parquet, a row for each column")


def significance_options(options: Options) -> None:
    options.model().data()
    options.add("--alpha", type=level, default=0.05, metavar="P", help="level (default: 0.05)")
    for option, least, default, what in (
        ("--shuffles", 1, 39, "of columns"),
        ("--draws", 0, 50, "of rows"),
        ("--rows", 2, 1000, "looked at"),
    ):
        what = f"{what} (default: {default})"
        options.add(option, type=whole(least), default=default, metavar="N", help=what)
    options.add("--seed")


def report_options(options: Options) -> None:
    options.model().data()
    options.add(
        "--color",
        metavar="NAME",
        help="column to color rows by, or a .csv or .parquet file with one, such as labels",
    )
    options.add("--title", metavar="TEXT", help="heading of the page")
    options.add(
        "--image",
        type=image_shape,
        metavar="HxW",
        help="rows are images of this size (of a folder of images it is known)",
    )
    options.add(
        "--points", type=whole(1), default=20_000, metavar="N", help="at most (default: 20000)"
    )
    options.output(path_with(".html"), "page, which ends in .html", required=True)


def plan_options(options: Options) -> None:
    options.data(nargs="?")
    what = "rows x columns, instead of a table"
    options.add("--shape", type=table_shape, metavar="NxD", help=what)
    options.components(whole(1), 16, "components").add("--kernel")
    options.add("--tol", help="as of mercer fit")
    options.group("resources", *ON_DEVICE)


def compare_options(options: Options) -> None:
    options.data().components(whole(1), 16, "components")
    options.add(
        "--methods",
        type=method_names,
        default=COMPARED,
        metavar="A,B,...",
        help=f"of {', '.join(methods())} (default: {','.join(COMPARED)})",
    )
    options.group("sizes", "--landmarks", "--selector", "--features")
    options.add("--tol", "--scale")
    options.parser.set_defaults(passes=None)
    options.group("kernel", *KERNEL)
    options.group("resources", *ON_DEVICE)
    plot_path = path_with(".png", ".svg", ".pdf")
    options.output(plot_path, "picture of the comparison: .png, .svg or .pdf")


def cluster_options(options: Options) -> None:
    options.data().add("--keep")
    options.add("--clusters", type=whole(1), required=True, metavar="K", help="number of clusters")
    options.add(
        "--labels",
        choices=("kmeans", "discretize", "cluster_qr"),
        default="kmeans",
        help="from eigenvectors to clusters (default: %(default)s)",
    )
    options.affinity().add("--scale").group("resources", *RESOURCES)
    options.output(table_path, "labels: .npy, .csv or .parquet; stdout if not given")


def embed_options(options: Options) -> None:
    options.data().add("--keep").components(whole(1), 2, "coordinates")
    options.add(
        "--diffusion", action="store_true", help="diffusion map: distances of a random walk"
    )
    options.add(
        "--alpha",
        type=float,
        default=0.5,
        help="with --diffusion: how much of the density is taken out, 0 to 1 (default: 0.5)",
    )
    options.add(
        "--steps", type=float, default=1, help="with --diffusion: steps of the walk (default: 1)"
    )
    options.affinity().add("--scale").group("resources", *RESOURCES)
    options.output(table_path, "coordinates: .npy, .csv or .parquet; stdout if not given")


def mds_options(options: Options) -> None:
    options.data("DISTANCES", "square table of distances, with or without names of the points")
    options.add("--keep").components(whole(1), 2, "dimensions")
    options.add(
        "--metric",
        choices=METRICS,
        metavar="NAME",
        help=f"the table holds rows and not distances: measure them by {', '.join(METRICS)}",
    )
    options.add("--landmarks", help="use the distances to M rows only")
    options.add(
        "--correction",
        choices=("lingoes", "cailliez"),
        help="make the distances Euclidean by an additive constant",
    )
    options.group("resources", *RESOURCES)
    options.output(table_path, "coordinates: .npy, .csv or .parquet; stdout if not given")


def denoise_options(options: Options) -> None:
    options.add("image", metavar="IMAGE", help="gray or color image; alpha is dropped")
    # With a linear kernel the strong setting, see docs/denoising.md.
    patches = options.group("patches")
    patches.add("--patch", type=whole(2), default=11, metavar="P", help="side (default: 11)")
    patches.add("--stride", type=whole(1), default=1, metavar="S", help="default: 1")
    patches.add(
        "--noise",
        type=positive,
        metavar="S",
        help="standard deviation of the noise, in gray levels of 0 to 255 (default: estimated)",
    )
    patches.add(
        "--kernel",
        choices=RegistryNames("kernels", "KERNELS", "polynomial", "precomputed"),
        default="linear",
        help="default: linear, the best and fastest for images",
    )
    patches.add("--components", type=whole(1), metavar="R", help="components kept")
    options.group("resources", *RESOURCES)
    image_path = path_with(".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg")
    options.output(image_path, "image: .png, .tif, .bmp, .jpg", required=True)


def demo_options(options: Options) -> None:
    options.add(
        "folder",
        nargs="?",
        type=Path,
        default=Path("demo-output"),
        metavar="FOLDER",
        help="where the files go (default: demo-output)",
    )
    options.add("--force", help="replace files that exist")


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
    examples : str
        A line each.
    """

    summary: str
    options: Callable[[Options], None]
    run: Callable[[Namespace], Any]
    examples: str


def later(module: str, function: str) -> Callable[[Namespace], Any]:
    """A function of mercer that is imported when it is called."""
    return lambda args: vars(import_module(f"mercer.{module}"))[function](args)


COMMANDS: dict[str, Command] = {
    "fit": Command(
        "Fit kernel PCA to a table and save the model.",
        fit_options,
        later("cli.fit", "fit"),
        """\
  mercer fit demo-output/digits.csv --drop digit -o digits16.mercer
  mercer fit demo-output/digits.csv --drop digit --scale standard --components 0.8 -o wide.mercer
  mercer fit demo-output/digits.csv --drop digit --landmarks 300 --json -o small.mercer
  mercer fit demo-output/digits.csv --target digit -o towards.mercer
""",
    ),
    "transform": Command(
        "Compute the scores of rows along the components of a model.",
        transform_options,
        later("cli.models", "transform"),
        """\
  mercer transform demo-output/digits.mercer demo-output/digits.csv -o digit-scores.csv
""",
    ),
    "inverse": Command(
        "Find rows with given scores: the way back from mercer transform.",
        inverse_options,
        later("cli.models", "inverse"),
        """\
  mercer inverse demo-output/digits.mercer demo-output/scores.csv -o digit-rows.csv
""",
    ),
    "describe": Command(
        "Say what a model file holds, without loading its arrays.",
        describe_options,
        later("cli.models", "describe"),
        """\
  mercer describe demo-output/digits.mercer
  mercer describe demo-output/digits.mercer --json
""",
    ),
    "explain": Command(
        "Say which columns drive which component of a model.",
        explain_options,
        later("cli.models", "explain"),
        """\
  mercer explain demo-output/digits.mercer demo-output/digits.csv
  mercer explain demo-output/digits.mercer demo-output/digits.csv --top 3 --json
""",
    ),
    "significance": Command(
        "Say how many components of a model stand above noise, and how stable they are.",
        significance_options,
        later("cli.models", "significance"),
        """\
  mercer significance demo-output/digits.mercer demo-output/digits.csv --rows 400
""",
    ),
    "report": Command(
        "Show a model and the rows of a table as one interactive HTML file.",
        report_options,
        later("cli.models", "report"),
        """\
  mercer report demo-output/digits.mercer demo-output/digits.csv --color digit -o digits-report.html
""",
    ),
    "plan": Command(
        "Say what each method would cost for a table, or for one of a given shape.",
        plan_options,
        later("cli.compare", "plan"),
        """\
  mercer plan demo-output/digits.csv --components 16
  mercer plan --shape 100000x54 --memory 2GB
""",
    ),
    "compare": Command(
        "Compare methods on a table: time, memory, certified error.",
        compare_options,
        later("cli.compare", "compare"),
        """\
  mercer compare demo-output/digits.csv --drop digit --components 8 -o comparison.png
""",
    ),
    "cluster": Command(
        "Spectral clustering: find the cluster of every row.",
        cluster_options,
        later("cli.spectral", "cluster"),
        """\
  mercer cluster demo-output/digits.csv --drop digit -k 10 -o clusters.csv
  mercer cluster demo-output/digits.csv --drop digit -k 10 --neighbors 10 --labels cluster_qr
""",
    ),
    "embed": Command(
        "Spectral embedding and diffusion maps: find coordinates that keep near rows together.",
        embed_options,
        later("cli.spectral", "embed"),
        """\
  mercer embed demo-output/digits.csv --drop digit --components 2 -o embedding.csv
  mercer embed demo-output/digits.csv --drop digit --diffusion --alpha 1 --steps 2 --gamma median
""",
    ),
    "mds": Command(
        "Classical multidimensional scaling: find points with the distances given.",
        mds_options,
        later("cli.spectral", "mds"),
        """\
  mercer mds demo-output/distances.csv --components 2
  mercer mds demo-output/digits.csv --drop digit --metric cosine -o cosine-map.csv
""",
    ),
    "denoise": Command(
        "Denoise an image by kernel PCA of its patches.",
        denoise_options,
        later("cli.denoise", "denoise"),
        """\
  mercer denoise demo-output/noisy.png -o denoised.png
""",
    ),
    "demo": Command(
        "Show kernel PCA of digits, and leave a picture, a report and files to try commands on.",
        demo_options,
        later("demo", "run"),
        """\
  mercer demo
""",
    ),
}


def make_parser(words: Sequence[str] | None = None) -> ArgumentParser:
    """The parser of a command line; with `words`, only the command they name has its options."""
    parser = Parser(prog="mercer", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="with --version: libraries, threads, devices and memory as well, for bug reports",
    )
    parser.add_argument(
        "--print-completion",
        choices=SHELLS,
        metavar="SHELL",
        help="print a script that completes commands and options in %(choices)s",
    )
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        one = commands.add_parser(
            name,
            help=command.summary,
            description=command.summary,
            epilog=f"example:\n{command.examples}{FILES_NOTE if name != 'demo' else ''}",
        )
        one.set_defaults(run=command.run, command=one.prog, parser=one)
        if words is None or name in words:
            options = Options(one)
            command.options(options)
            options.group("messages", "--json", "--quiet", "--debug")
    return parser


class Form(RawDescriptionHelpFormatter):
    """Examples keep their lines, and options have room beside their help."""

    def __init__(self, prog, **options):
        super().__init__(prog, max_help_position=28, **options)
        # argparse does not count that commands are indented more than options.
        self._action_max_length = 14


class Parser(ArgumentParser):
    """Options in full, and wrong usage as one line."""

    def __init__(self, **options):
        # An abbreviation that works today would break with the next option.
        super().__init__(formatter_class=Form, allow_abbrev=False, **options)

    def parse_args(self, args=None, namespace=None):
        """As usual; what is left over is an error of the command that it was meant for."""
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
