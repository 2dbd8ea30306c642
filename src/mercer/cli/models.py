"""Commands that use a model file, and what such a file keeps of the table it was fitted to."""

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._tables import short, text_table
from ..compute import format_bytes
from ..files import FillMissing, open_source, read_table
from ..files.base import READ_ROWS, listed
from ..progress import RowBar
from ..saving import ModelFileError, load, read_extra, read_header, save
from . import outputs
from .parser import JobError, UsageError, did_you_mean
from .tables import FITTED, InputTable, Scaling, check_known

# Options of a table's text that a model remembers.
TEXT = ("encoding", "decimal", "thousands", "comment", "header")
# Nearest rows of a row, itself among them, and rows up to which they are found in seconds.
NEIGHBORS, NEIGHBOR_ROWS = 15, 100_000


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator, and how the rows of a table are prepared for it.

    The model file keeps both, so that new tables are prepared in the same way.

    Attributes
    ----------
    model : fitted estimator
        Of scaled rows.
    columns : list of str or None
        Names of the columns that it was fitted to.
    scaling : Scaling
    image_shape : tuple of int or None
        Shape of the images that its rows are.
    fill : array of shape (d,) or None
        Values for missing cells of each column; None if there must be none.
    text : dict
        Options for the text of the table, by the names of `TEXT`.
    options : dict of str to str, or None
        Options that the command of the fit was given; None if it was no command.
    """

    model: Any
    columns: list[str] | None = None
    scaling: Scaling = field(default_factory=Scaling)
    image_shape: tuple[int, ...] | None = None
    fill: np.ndarray | None = None
    text: dict[str, Any] = field(default_factory=dict)
    options: dict[str, str] | None = None

    @classmethod
    def of(cls, table: InputTable, model, scaling: Scaling) -> "TableModel":
        """A model fitted to a table."""
        encoding, source = model._encoding, table.source
        columns = table.columns if encoding is None else list(encoding.names)
        fill = source.means if isinstance(source, FillMissing) else None
        text = {name: vars(table.args)[name] for name in TEXT}
        return cls(model, columns, scaling, table.image_shape, fill, text, table.args.options)

    def save(self, path: Path | None) -> None:
        """Write a model file, if there is a path."""
        if path is not None:
            kept = ("columns", "image_shape", "fill", "text", "options")
            extra = {name: vars(self)[name] for name in kept}
            scaling = self.scaling
            extra |= {"scale": scaling.kind, "shift": scaling.shift, "size": scaling.size}
            save(self.model, path, extra=extra)

    @classmethod
    def load(cls, path: str, method: str, mixed: bool = False) -> "TableModel":
        """Open a model file; a file of `model.save` prepares nothing.

        `method` is the method of the model that the command needs, and `mixed` says whether the
        command can use a model that was fitted to texts.
        """
        model, extra = load(path), read_extra(path)
        if method not in dir(model) or "n_features_in_" not in vars(model):
            raise ModelFileError(
                f"{path} holds a {type(model).__name__}, which this command cannot use: a kernel "
                "PCA is needed. Give a file that mercer fit wrote."
            )
        if model._encoding is not None and not mixed:
            raise ModelFileError(
                f"{path} was fitted to a table with categories, which this command cannot use. Use "
                "it from Python: mercer.load(path)."
            )
        check_extra(extra, model.n_features_in_, path)
        scaling = Scaling(extra.get("scale", "none"), extra.get("shift"), extra.get("size"))
        # Columns are chosen by name here; the estimator would expect arrays with names.
        names = model.__dict__.pop("feature_names_in_", None)
        columns = extra.get("columns") or (None if names is None else [str(name) for name in names])
        rest = extra.get("image_shape"), extra.get("fill"), extra.get("text") or {}
        return cls(model, columns, scaling, *rest, extra.get("options"))

    @property
    def row_names(self) -> str | None:
        """The column that named the rows of the fit."""
        return (self.options or {}).get("--id")

    def open(self, args: Namespace) -> InputTable:
        """DATA with the columns of the training table, read as its text was."""
        for name, value in self.text.items():
            if vars(args)[name] is None:
                vars(args)[name] = value
        texts, columns, wanted = self.texts(), self.columns, self.model.n_features_in_
        if texts is not None:
            columns = [name for name in self.model._encoding.names if name not in texts]
            wanted = len(columns)
        table = InputTable(args, columns, self.fill, texts is not None, self.row_names)
        check_known(table.source, texts or [], table.source.left_out, "of texts, " + FITTED)
        width = table.source.n_columns
        if width != wanted:
            named = "" if columns is None else f" ({listed(columns)})"
            raise JobError(
                f"{args.data} has {width} columns of numbers, and the model was fitted to {wanted}"
                f"{named}. Choose them with --columns or --drop."
            )
        if self.image_shape is not None and table.image_shape not in (None, self.image_shape):
            raise JobError(
                f"The images of {args.data} have shape {table.image_shape}, and the model was "
                f"fitted to {self.image_shape}. Bring them to that size first."
            )
        return table

    def whole_table(self, args: Namespace) -> tuple[InputTable, Any, dict]:
        """DATA, its rows as the model takes them, and all its columns by name as they stand."""
        table, texts = self.open(args), self.texts()
        if texts is not None:
            rows: Any = table.mixed(texts)
            return table, rows, {name: rows[name] for name in rows.columns} | table.others()
        rows, source = table.read(), table.source
        if table.columns is None:
            return table, rows, table.others()
        shown = rows
        if isinstance(source, FillMissing):  # what was missing is shown as that
            shown = np.concatenate(list(source.source.pieces(READ_ROWS)))
        return table, rows, outputs.as_columns(shown, table.columns) | table.others()

    def texts(self) -> list[str] | None:
        """The columns of texts that the model was fitted to; None if it was fitted to numbers."""
        encoding = self.model._encoding
        if encoding is None:
            return None
        pairs = zip(encoding.names, encoding.labels, strict=True)
        return [name for name, known in pairs if known]


def check_extra(extra: dict, width: int, path: str) -> None:
    """Raise ModelFileError unless what a file keeps beside a model fits its columns."""
    names, shape = extra.get("columns"), extra.get("image_shape")
    good = names is None or (len(names) == width and all(isinstance(n, str) for n in names))
    good &= shape is None or prod(shape) == width
    text = extra.get("text") or {}
    good &= isinstance(text, dict) and set(text) <= set(TEXT)
    good = good and all(value is None or isinstance(value, str | bool) for value in text.values())
    options = extra.get("options") or {}
    good = good and isinstance(options, dict)
    good = good and all(isinstance(part, str) for pair in options.items() for part in pair)
    vectors = ["shift", "size"] if extra.get("scale", "none") != "none" else []
    vectors += ["fill"] if extra.get("fill") is not None else []
    for vector in (np.asarray(extra.get(name), dtype=float) for name in vectors):
        good &= vector.shape == (width,) and bool(np.isfinite(vector).all())
    if not good:
        raise ModelFileError(
            f"{path} has columns, a scaling or images that do not fit its model of {width} "
            "columns. Fit it again with mercer fit."
        )


def transform(args: Namespace) -> outputs.Result:
    """Read rows in blocks, and write their scores as they come."""
    prepared = TableModel.load(args.model, "transform", mixed=True)
    if args.atlas is not None:
        return atlas(args, prepared)
    with RowBar(outputs.verbosity(args)) as bar:
        table, texts = prepared.open(args), prepared.texts()
        rows: Iterable = [table.mixed(texts)] if texts is not None else table.blocks()
        shown_rows = bar.over(rows, "scores", table.source.n_rows or table.source.likely_rows)
        model, apply = prepared.model, prepared.scaling.apply
        if "predict" in dir(model):
            labels = (model.predict(apply(block))[:, None] for block in shown_rows)
            return outputs.deliver_blocks(args, labels, ["cluster"], table.kept())
        blocks = (model.transform(apply(block)) for block in shown_rows)
        return outputs.deliver_blocks(args, blocks, component_names(model), table.kept())


def atlas(args: Namespace, prepared: TableModel) -> outputs.Result:
    """Write the table with map positions and nearest rows, as Embedding Atlas reads it."""
    if args.output is not None:
        raise UsageError("Give --output or --atlas: the latter has the scores beside the table.")
    _, rows, columns = prepared.whole_table(args)
    S = np.asarray(prepared.model.transform(prepared.scaling.apply(rows)), dtype=float)
    columns = outputs.beside(columns, outputs.as_columns(S, component_names(prepared.model)))
    places = {"projection_x": S[:, 0], "projection_y": S[:, min(1, S.shape[1] - 1)]}
    if len(S) <= NEIGHBOR_ROWS:
        near = NearestNeighbors(n_neighbors=min(NEIGHBORS, len(S))).fit(S).kneighbors(S)
        pairs = zip(*(part.tolist() for part in near), strict=True)
        places["neighbors"] = np.array([{"ids": i, "distances": far} for far, i in pairs])
    outputs.write_columns(args.drafts["atlas"], outputs.beside(columns, places))
    shown = " ".join(f"--{name.removeprefix('projection_')} {name}" for name in places)
    summary = [("rows", f"{len(S):,}"), ("to view", f"embedding-atlas {args.atlas} {shown}")]
    facts = {"rows": len(S), "names": [*columns, *places], "atlas": args.atlas}
    return outputs.Result(facts, summary)


def inverse(args: Namespace) -> outputs.Result:
    """Read scores in blocks, and write rows as they come."""
    with RowBar(outputs.verbosity(args)) as bar:
        prepared = TableModel.load(args.model, "inverse_transform")
        model, undo = prepared.model, prepared.scaling.undo
        wanted = component_names(model)
        # By name if the table has these names: it may have other columns too.
        opened = open_source(args.data, name=args.array, memory=vars(args).get("memory"))
        by_name = set(wanted) <= set(opened.columns or [])
        table = InputTable(args, wanted if by_name else None, row_names=prepared.row_names)
        width = table.source.n_columns
        if width != len(wanted):
            raise JobError(
                f"{args.data} has {width} columns of numbers, and the model has {len(wanted)} "
                "components. Give a table of mercer transform, or choose its columns with "
                "--columns."
            )
        names = prepared.columns or [f"x{i}" for i in range(1, model.n_features_in_ + 1)]
        total = table.source.n_rows or table.source.likely_rows
        rows = bar.over(table.blocks(), "pre-images", total)
        blocks = (undo(model.inverse_transform(block)) for block in rows)
        return outputs.deliver_blocks(args, blocks, names, table.kept())


def component_names(model) -> list[str]:
    """Names of the scores in a table, with the numbers from 1 that reports and pictures have."""
    return [f"component{i}" for i in range(1, len(model.get_feature_names_out()) + 1)]


def describe(args: Namespace) -> outputs.Result:
    """Read the header of a model file, and check the checksum."""
    header, extra = read_header(args.model), read_extra(args.model)
    summary, width = header.summary, header.summary.get("columns")
    table = None
    if width is not None:
        names, shape = extra.get("columns") or [], extra.get("image_shape")
        named = f" ({', '.join(names[:6])}{', ...' if len(names) > 6 else ''})" if names else ""
        images = f", images of {' x '.join(map(str, shape))}" if shape else ""
        table = f"{width} columns{named}{images}, scaling: {extra.get('scale', 'none')}"
    version = f"format {header.format_version}, mercer {header.library_version}"
    pairs = [
        ("estimator", header.estimator),
        ("file", f"{format_bytes(header.size)}, {version}, checksum right"),
        ("table", table),
        ("kernel", summary.get("kernel") and short(summary["kernel"])),
        ("basis", summary.get("basis")),
        *outputs.statements(summary.get("certificate", [])),
    ]
    pairs = [pair for pair in pairs if pair[1] is not None]
    return outputs.Result(asdict(header) | {"prepared": extra}, pairs)


def explain(args: Namespace) -> outputs.Result:
    """Average the gradients of the scores over rows, or exchange columns that have none."""
    prepared = TableModel.load(args.model, "attribute", mixed=True)
    table, texts = prepared.open(args), prepared.texts()
    rows = prepared.scaling.apply(table.source) if texts is None else table.mixed(texts)
    found = prepared.model.attribute(rows, max_rows=args.rows)
    names = (texts is None and prepared.columns) or found.columns
    components = tuple(component_names(prepared.model))
    attribution = replace(found, components=components, columns=tuple(names))
    if args.draft is not None:
        sizes = {name: attribution.size[:, j] for j, name in enumerate(attribution.components)}
        named = {"column": np.array(attribution.columns, dtype=object), "all": attribution.overall}
        outputs.write_columns(args.draft, named | sizes)
    top = [
        {"component": name, "columns": dict(attribution.top(j, args.top))}
        for j, name in enumerate(attribution.components)
    ]
    facts = attribution.as_dict() | {"top": top}
    text = f"{attribution.sentence()}\n{text_table(*attribution.table(args.top))}"
    return outputs.Result(facts, text)


def significance(args: Namespace) -> outputs.Result:
    """Shuffle columns and draw rows of a sample."""
    prepared = TableModel.load(args.model, "significance")
    rows = prepared.scaling.apply(prepared.open(args).source)
    draws = {"n_permutations": args.shuffles, "n_bootstrap": args.draws, "max_rows": args.rows}
    tested = prepared.model.significance(rows, level=args.level, random_state=args.seed, **draws)
    return outputs.Result(tested.as_dict(), f"{tested.sentence()}\n{text_table(*tested.table())}")


def report(args: Namespace) -> outputs.Result:
    """Show a model and the rows of a table as one interactive page."""
    from ..report import write_report

    prepared = TableModel.load(args.model, "report", mixed=True)
    table, rows, columns = prepared.whole_table(args)
    color = args.color if args.color is None or args.color in columns else from_file(args, columns)
    named = args.id or next(iter(table.files), "")
    names = columns.get(named) if named == args.color else columns.pop(named, None)
    texts = prepared.texts()
    shown: dict[str, Any] = {"color": color, "color_name": args.color, "title": args.title}
    shown["columns"] = table.columns if texts is None else rows.columns
    shown["images"] = args.image or table.image_shape or prepared.image_shape
    shown["row_names"] = None if names is None else list(names)
    shown |= {"max_points": args.points, "verbose": outputs.verbosity(args), "table": columns}
    shown |= {"scaling": prepared.scaling, "settings": prepared.options}
    write_report(prepared.model, rows, args.draft, **shown)
    count = rows.shape[0]
    return outputs.Result({"rows": count}, [("rows", f"{count:,}")])


def from_file(args: Namespace, shown: dict) -> np.ndarray:
    """Values of another file to color rows by; --color becomes the name of their column.

    That is the first column that the table does not have, and that does not name the rows.
    """
    if Path(args.color).suffix not in (".csv", ".parquet"):
        are = f"are {listed(shown)}" if shown else "have no names; give a .csv file with one"
        near = did_you_mean(args.color, shown)
        raise JobError(f"{args.data} has no column {args.color!r}.{near} Its columns {are}.")
    labels = read_table(args.color, memory=vars(args).get("memory"))
    numbers = zip(labels.names or [args.color], labels.X.T, strict=False)
    columns = labels.others | dict(numbers)
    new = [name for name in columns if name not in shown] or list(columns)
    # Another text in every row names the rows.
    texts = {name for name in new if columns[name].dtype.kind in "UO" and len(labels.X) > 1}
    naming = {name for name in texts if len(set(columns[name].tolist())) == len(labels.X)}
    args.color = next((name for name in new if name not in naming), new[0])
    return columns[args.color]
