"""Options that several commands share, and the types of their values."""

from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable
from pathlib import Path

from .registries import KERNEL_NAMES
from .standard_streams import DASH, stdout_path


def add_common(parser: ArgumentParser) -> None:
    """How to speak."""
    group = parser.add_argument_group("messages")
    group.add_argument("--json", action="store_true", help="print one JSON document")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress, no warnings")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_data(
    parser: ArgumentParser,
    metavar: str = "DATA",
    what: str = "table (.csv, .tsv, .csv.gz, .parquet, .npy, .npz, .feather, .xlsx), folder of "
    "Parquet files or of images, or - for stdin",
    nargs: str | None = None,
) -> None:
    """A table, which of its columns to use, and how it is written."""
    parser.add_argument("data", nargs=nargs, metavar=metavar, help=what)
    group = parser.add_argument_group("columns of the table")
    group.add_argument(
        "--columns", type=names, metavar="A,B,...", help="use these (default: all numbers)"
    )
    group.add_argument(
        "--drop", type=names, metavar="A,B,...", help="leave these out; numbers from 0 if unnamed"
    )
    group.add_argument(
        "--id", metavar="COLUMN", help="names the rows: kept beside the result, and no feature"
    )
    group.add_argument(
        "--array", metavar="NAME", help="which array of an .npz file, which sheet of an .xlsx"
    )
    group.add_argument(
        "--missing",
        choices=("error", "drop", "mean"),
        metavar="WHAT",
        help="missing values: error (default), drop the row, or the mean of the column",
    )
    add_text_format(parser)


def add_text_format(parser: ArgumentParser) -> None:
    """How the text of a table is written, where that cannot be seen."""
    group = parser.add_argument_group("text of the table")
    group.add_argument("--encoding", default="utf-8", metavar="NAME", help="default: utf-8")
    group.add_argument(
        "--decimal", choices=(".", ","), default=".", metavar="C", help="decimal point: . or ,"
    )
    group.add_argument(
        "--comment", metavar="C", help="leave out lines that start so (default: # if few do)"
    )
    group.add_argument(
        "--header",
        action=BooleanOptionalAction,
        help="the first line names the columns, or does not (default: look at it)",
    )


def add_kept(parser: ArgumentParser) -> None:
    """Columns that go with the rows into the result."""
    parser.add_argument(
        "--keep", type=names, metavar="A,B,...", help="columns to carry along, beside --id"
    )


def add_components(parser: ArgumentParser, kind: Callable, default: int, what: str) -> None:
    """How many components."""
    parser.add_argument(
        "-r",
        "--components",
        type=kind,
        default=default,
        metavar="R",
        help=f"{what} (default: {default})",
    )


def add_scale(parser: ArgumentParser) -> None:
    """How columns are brought to one size before the kernel sees them."""
    parser.add_argument(
        "--scale",
        choices=("none", "standard", "minmax"),
        default="none",
        metavar="KIND",
        help="standard: mean 0 and deviation 1; minmax: 0 to 1; none (default)",
    )


def add_kernel(parser: ArgumentParser, option: str = "--kernel") -> None:
    """The kernel and its parameters."""
    group = parser.add_argument_group("kernel")
    group.add_argument(
        option,
        dest="kernel",
        choices=KERNEL_NAMES,
        default="rbf",
        metavar="NAME",
        help="%(choices)s (default: rbf)",
    )
    group.add_argument(
        "--gamma",
        type=gamma,
        default="auto",
        metavar="G",
        help="width: a number; median or mean (of the distances between rows); columns, for "
        "1 / number of columns (default: median for kernels of a distance, else columns)",
    )
    group.add_argument("--degree", type=number, default=3, metavar="P", help="of poly (default: 3)")
    group.add_argument(
        "--coef0", type=number, default=1, metavar="C", help="of poly and sigmoid (default: 1)"
    )


def add_affinity(parser: ArgumentParser) -> None:
    """How near rows are to each other: a kernel, or the nearest neighbors; and landmarks."""
    parser.add_argument(
        "--neighbors",
        type=whole(1),
        metavar="N",
        help="tie every row to its N nearest, itself among them, in place of a kernel",
    )
    parser.add_argument(
        "--landmarks",
        type=whole(1),
        metavar="M",
        help="M chosen rows stand for all; without it all rows up to 20,000, landmarks beyond",
    )
    add_kernel(parser)


def add_budget(parser: ArgumentParser, device: bool = False) -> None:
    """What of the machine may be used, and the seed."""
    group = parser.add_argument_group("resources")
    group.add_argument(
        "--memory",
        type=memory,
        metavar="SIZE",
        help="work memory, such as 300MB or 2GiB (default: half of what is free)",
    )
    group.add_argument("--threads", type=whole(1), metavar="N", help="threads (default: all cores)")
    if device:
        group.add_argument("--device", metavar="NAME", help="where to compute, such as cuda")
    group.add_argument("--seed", type=whole(0), default=0, metavar="N", help="default: 0")


def add_output(parser: ArgumentParser, kind: Callable, what: str, required=False) -> None:
    """Where the result goes."""
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", type=kind, required=required, metavar="FILE", help=what)
    group.add_argument("--force", action="store_true", help="replace a file that exists")


def path_with(*suffixes: str) -> Callable[[str], Path]:
    """A path that ends in one of these."""

    def parse(text: str) -> Path:
        if text == DASH:
            return stdout_path(suffixes[0])
        path = Path(text)
        if path.suffix.lower() not in suffixes:
            raise ArgumentTypeError(f"{text!r} does not end in {' or '.join(suffixes)}")
        return path

    return parse


def table_path(text: str) -> Path | None:
    """The path of a table; None for stdout, where tables go anyway."""
    return None if text == DASH else path_with(".npy", ".csv", ".parquet")(text)


image_path = path_with(".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg")
plot_path = path_with(".png", ".svg", ".pdf")


def names(text: str) -> list[str]:
    """Names between commas."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise ArgumentTypeError(f"{text!r} has an empty name. Give names between commas: a,b,c")
    return found


def whole(least: int) -> Callable[[str], int]:
    """A whole number that is not below `least`."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return number

    return parse


def components(text: str) -> int | float:
    """A number of components, or the share of variance to keep."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if 0 < number < 1:
        return number
    if number >= 1 and number == int(number):
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


def positive(text: str, expected: str = "a positive number") -> float:
    """A number above zero."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not {expected}")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"{text!r} is not a share between 0 and 1")
    return number


def level(text: str) -> float:
    """A probability."""
    number = positive(text, "a level between 0 and 1, such as 0.05")
    if number >= 1:
        raise ArgumentTypeError(f"{text!r} is not a level between 0 and 1, such as 0.05")
    return number


def memory(text: str) -> str:
    """An amount of memory."""
    from ..compute import parse_bytes

    try:
        parse_bytes(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
    return text
