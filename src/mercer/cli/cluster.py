"""``mercer cluster``: the cluster of every row."""

from argparse import ArgumentParser, Namespace

from .options import (
    add_affinity,
    add_budget,
    add_data,
    add_kept,
    add_output,
    add_scale,
    table_path,
    whole,
)
from .results import Result

SUMMARY = "Spectral clustering: find the cluster of every row."
EXAMPLES = """\
  mercer cluster demo-output/digits.csv --drop digit -k 10 -o clusters.csv
  mercer cluster demo-output/digits.csv --drop digit -k 10 --neighbors 10 --labels cluster_qr
"""


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    add_data(parser)
    add_kept(parser)
    parser.add_argument(
        "-k", "--clusters", type=whole(1), required=True, metavar="K", help="number of clusters"
    )
    parser.add_argument(
        "--labels",
        choices=("kmeans", "discretize", "cluster_qr"),
        default="kmeans",
        help="from eigenvectors to clusters (default: %(default)s)",
    )
    add_affinity(parser)
    add_scale(parser)
    add_budget(parser)
    add_output(parser, table_path, "labels: .npy, .csv or .parquet; stdout if not given")


def run(args: Namespace) -> Result:
    """Cluster the rows."""
    import numpy as np

    from .. import SpectralClustering
    from .delivery import beside, deliver, draft_of
    from .methods import affinity_of, budget_of
    from .tables import kept_of
    from .training import affinity_table

    with draft_of(args) as draft:
        table, X = affinity_table(args)
        model = SpectralClustering(
            args.clusters,
            assign_labels=args.labels,
            **affinity_of(args),
            **budget_of(args),
        ).fit(X)
        sizes = np.bincount(model.labels_, minlength=args.clusters)
        facts = {
            "rows": X.shape[0],
            "clusters": args.clusters,
            "sizes": sizes,
            "eigenvalues": model.eigenvalues_,
        }
        columns = beside(kept_of(args, table), {"cluster": model.labels_}, X.shape[0])
        return deliver(args, draft, columns, facts, summary(model, sizes))


def summary(model, sizes) -> list[tuple[str, object]]:
    """The outcome for people."""
    values = " ".join(f"{value:.4f}" for value in model.eigenvalues_)
    return [
        ("rows", f"{sizes.sum():,}"),
        ("cluster sizes", " ".join(str(size) for size in sizes)),
        ("eigenvalues", f"{values} (1 is a cluster apart)"),
    ]
