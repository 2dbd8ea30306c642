"""``mercer cluster``, ``embed``, ``mds`` and ``denoise``: one estimator each, and its outcome."""

from argparse import Namespace
from typing import Any

import numpy as np
from PIL import Image

from .. import ClassicalMDS, DiffusionMap, PatchDenoiser, SpectralClustering, SpectralEmbedding
from ..bases import Landmarks
from ..files import read_image
from ..files.opening import existing
from .fit import budget, width
from .models import TableModel
from .outputs import Result, beside, check_free, deliver, matrix_columns
from .tables import InputTable, Scaling, mixed_table, scaled_table

# Gray levels of an image file, the unit in which people speak of noise.
WHITE = 255


def cluster(args: Namespace) -> Result:
    """The cluster of every row."""
    table, X, scaling = affinity_rows(args)
    labels = {"assign_labels": args.labels}
    model = SpectralClustering(args.clusters, **labels, **affinity(args)).fit(X)
    sizes = np.bincount(model.labels_, minlength=args.clusters)
    rows, values = X.shape[0], model.eigenvalues_
    summary = [
        ("rows", f"{rows:,}"),
        ("cluster sizes", " ".join(str(size) for size in sizes)),
        ("eigenvalues", f"{rounded(values)} (1 is a cluster apart)"),
    ]
    facts = {"rows": rows, "clusters": args.clusters, "sizes": sizes, "eigenvalues": values}
    columns = beside(table.kept(), {"cluster": model.labels_})
    fitted = TableModel.of(table, model, scaling)
    return delivered(args, fitted, columns, facts, summary)


def embed(args: Namespace) -> Result:
    """Coordinates of every row from a graph of affinities."""
    table, X, scaling = affinity_rows(args)
    walk = {"alpha": args.alpha, "t": args.steps} if args.diffusion else {}
    make: Any = DiffusionMap if args.diffusion else SpectralEmbedding
    model = make(args.components, **walk, **affinity(args)).fit(X)
    rows, values = X.shape[0], model.eigenvalues_
    summary = [
        ("rows", f"{rows:,} in {model.embedding_.shape[1]} coordinates"),
        ("eigenvalues", f"{rounded(values)} (1 is a piece apart)"),
    ]
    facts = {"rows": rows, "components": args.components, "eigenvalues": values}
    fitted = TableModel.of(table, model, scaling)
    return delivered(args, fitted, beside(table.kept(), coordinates(model)), facts, summary)


def mds(args: Namespace) -> Result:
    """Points whose distances are those given."""
    table = InputTable(args)
    model = ClassicalMDS(
        args.components,
        dissimilarity=args.metric or "precomputed",
        landmarks=args.landmarks,
        correction=args.correction,
        **budget(args),
    ).fit(table.read())
    rows, components = model.embedding_.shape
    facts = {
        "rows": rows,
        "components": components,
        "eigenvalues": model.eigenvalues_,
        "stress": model.stress_,
        "strain": model.strain_,
        "goodness_of_fit": model.goodness_of_fit_,
        "least_eigenvalue": model.least_eigenvalue_,
        "negative_share": model.negative_share_,
        "correction_constant": model.correction_constant_,
    }
    summary = [
        ("points", f"{rows:,} in {components} dimensions"),
        ("stress-1", f"{model.stress_:.3g} (0 is a perfect fit)"),
        ("goodness of fit", " / ".join(f"{share:.3f}" for share in model.goodness_of_fit_)),
        ("negative eigenvalues", f"{100 * model.negative_share_:.2g} % of the spectrum"),
    ]
    named = table.kept()
    if not named:  # columns of text are names of points among distances
        others = table.others().items()
        named = {name: column for name, column in others if column.dtype.kind in "UO"}
        table.left_out |= dict.fromkeys(named, "kept")
    fitted = TableModel.of(table, model, Scaling())
    return delivered(args, fitted, named | coordinates(model), facts, summary)


def denoise(args: Namespace) -> Result:
    """Learn the patches of the image, and project them."""
    image = read_image(existing(args.image))
    model = PatchDenoiser(
        args.patch,
        args.stride,
        kernel=args.kernel,
        n_components=args.components,
        noise=None if args.noise is None else args.noise / WHITE,
        memory=args.memory,
        n_jobs=args.threads,
        random_state=args.seed,
    ).fit(image)
    clean = model.denoise(image)
    pixels = np.rint(WHITE * np.clip(clean, 0, 1)).astype(np.uint8)
    Image.fromarray(pixels).save(args.draft)
    height, width = image.shape[:2]
    facts = {
        "width": width,
        "height": height,
        "channels": 1 if image.ndim == 2 else image.shape[2],
        "noise": WHITE * model.noise_,
        "noise_given": args.noise is not None,
        "change": WHITE * float(((image - clean) ** 2).mean() ** 0.5),
    }
    said = [
        ("image", f"{width} x {height}, {'gray' if image.ndim == 2 else 'color'}"),
        ("noise", f"{facts['noise']:.1f} of 255, {'given' if args.noise else 'estimated'}"),
        ("change", f"{facts['change']:.1f} of 255, root mean square"),
    ]
    return Result(facts, said)


def delivered(args: Namespace, fitted: TableModel, columns, facts: dict, said: list) -> Result:
    """The columns and what is said of them; the model is saved where that is asked for."""
    known = fitted.model.certificate_
    result = deliver(
        args, columns, facts | {"certificate": known.to_dict()}, said + known.summary()
    )
    if vars(args).get("save") is not None:
        fitted.save(args.save, overwrite=args.force)
    return result


def affinity_rows(args: Namespace) -> tuple[InputTable, Any, Scaling]:
    """DATA, its rows as the estimators take them, texts too for the Gower kernel, and scaling."""
    if args.save is not None:
        check_free(args.save, args.force)
    mixed = mixed_table(args) if args.neighbors is None else None
    return scaled_table(args) if mixed is None else (*mixed, Scaling())


def affinity(args: Namespace) -> dict[str, Any]:
    """The parameters of the spectral estimators that the options of an affinity stand for."""
    found: dict[str, Any] = {
        "affinity": args.kernel,
        "gamma": width(args),
        "degree": args.degree,
        "coef0": args.coef0,
        "basis": "auto" if args.landmarks is None else Landmarks(args.landmarks),
        **budget(args),
    }
    if args.neighbors is not None:
        found |= {"affinity": "nearest_neighbors", "n_neighbors": args.neighbors}
    return found


def coordinates(model) -> dict[str, np.ndarray]:
    """The columns of an embedding by name."""
    count = model.embedding_.shape[1]
    return matrix_columns(model.embedding_, [f"x{i}" for i in range(1, count + 1)])


def rounded(values) -> str:
    return " ".join(f"{value:.4f}" for value in values)
