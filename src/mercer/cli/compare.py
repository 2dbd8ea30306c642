"""``mercer compare``: several methods on the same rows."""

import time
import tracemalloc
import warnings
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from .failures import JobError
from .messages import say
from .methods import METHODS, add_sizes, make_model
from .options import (
    add_budget,
    add_components,
    add_data,
    add_kernel,
    add_output,
    add_scale,
    names,
    plot_path,
    positive,
    whole,
)
from .results import Result
from .suggestions import did_you_mean

SUMMARY = "Compare methods on a table: time, memory, certified error."
EXAMPLES = """\
  mercer compare demo-output/digits.csv --drop digit --components 8 -o comparison.png
"""
DEFAULT = ["exact", "landmarks", "features", "gram-power", "hebbian"]
# Methods whose eigenvalues others can be measured against.
EXACT = {"auto", "exact", "dense", "krylov"}
# Rows that every method sees first.
WARM_ROWS = 200


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    add_data(parser)
    add_components(parser, whole(1), 16, "components")
    parser.add_argument(
        "--methods",
        type=method_names,
        default=DEFAULT,
        metavar="A,B,...",
        help=f"of {', '.join(METHODS)} (default: {','.join(DEFAULT)})",
    )
    add_sizes(parser.add_argument_group("sizes"))
    parser.add_argument(
        "--tol", type=positive, default=0.0, metavar="T", help="largest residual, such as 1e-6"
    )
    parser.set_defaults(passes=None)
    add_scale(parser)
    add_kernel(parser)
    add_budget(parser, device=True)
    add_output(parser, plot_path, "picture of the comparison: .png, .svg or .pdf")


def run(args: Namespace) -> Result:
    """Fit every method in turn, and measure."""
    from .delivery import draft_of
    from .training import scaled_table

    with draft_of(args) as draft:
        _, X = scaled_table(args)
        found = with_differences([measure(args, method, X) for method in args.methods])
        if draft is not None:
            from .pictures import draw_comparison

            draw_comparison(found, draft)
    facts = {"rows": X.shape[0], "columns": X.shape[1], "methods": found}
    written = {} if args.output is None else {"output": str(args.output)}
    return Result(facts | written, table_of(found, args.output))


def measure(args: Namespace, method: str, X) -> dict:
    """Fit one method: seconds, peak of arrays in memory, and what its certificate says."""
    say(args, f"{method} ...")
    warm_up(args, method, X)
    tracemalloc.start()
    try:
        start = time.perf_counter()
        model = make_model(args, method).fit(X)
        seconds = time.perf_counter() - start
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    certificate = model.certificate_
    return {
        "method": method,
        "seconds": seconds,
        "peak_bytes": peak,
        "certificate": certificate.kind,
        "converged": certificate.converged,
        "error": certified_error(certificate),
        "captured_variance": certificate.captured_variance,
        "eigenvalues": model.eigenvalues_,
        "eigenvalue_lower": certificate.eigenvalue_lower,
        "eigenvalue_upper": certificate.eigenvalue_upper,
    }


def warm_up(args: Namespace, method: str, X) -> None:
    """Fit a few rows, so that imports and compilation are in no method's time."""
    few = X[:WARM_ROWS, :WARM_ROWS] if args.kernel == "precomputed" else X[:WARM_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            make_model(args, method).set_params(verbose=0).fit(few)
        except ValueError as error:
            raise JobError(f"{method}: {error} Leave it out with --methods.") from error


def certified_error(certificate) -> float | None:
    """The widest interval of an eigenvalue over the first one; None where none is certified."""
    lower, upper = certificate.eigenvalue_lower, certificate.eigenvalue_upper
    if certificate.kind != "bound":
        return None
    return float((upper - lower).max() / upper[0]) if upper[0] > 0 else 0.0


def with_differences(found: list[dict]) -> list[dict]:
    """Beside what is certified, how far each is from an exact method of the same comparison."""
    exact = next((one for one in found if one["method"] in EXACT and one["converged"]), None)
    return [one | {"difference": difference(one, exact)} for one in found]


def difference(one: dict, exact: dict | None) -> float | None:
    """The largest difference of an eigenvalue, over the first one."""
    if exact is None or one is exact:
        return None
    pairs = zip(one["eigenvalues"], exact["eigenvalues"], strict=False)
    return max(abs(float(a - b)) for a, b in pairs) / float(exact["eigenvalues"][0])


def table_of(found: list[dict], output) -> str:
    """The comparison for people."""
    from .._tables import text_table
    from ..compute import format_bytes

    heads = ["method", "time", "memory", "variance held", "certified error", "from exact", ""]
    rows = []
    for one in found:
        low, high = (100 * share for share in one["captured_variance"])
        rows.append(
            [
                one["method"],
                f"{one['seconds']:.3g} s",
                format_bytes(one["peak_bytes"]),
                f"{low:.2f} to {high:.2f} %",
                "none" if one["error"] is None else f"{one['error']:.1e}",
                "" if one["difference"] is None else f"{one['difference']:.1e}",
                "" if one["converged"] else "not converged",
            ]
        )
    text = text_table(heads, rows)
    return text if output is None else f"{text}\nwritten: {output}"


def method_names(text: str) -> list[str]:
    """Methods between commas."""
    found = names(text)
    for name in found:
        if name not in METHODS:
            near = did_you_mean(name, METHODS)
            raise ArgumentTypeError(f"{name!r} is no method.{near} Choose of {', '.join(METHODS)}")
    return found
