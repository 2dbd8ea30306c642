"""Saving and loading: an estimator as a header and tensors, and back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..estimators._output import basis_text
from ..kernels import Kernel
from .archive import (
    FORMAT_VERSION,
    Archive,
    ModelFileError,
    UnavailableDevice,
    open_archive,
    write_archive,
)
from .models import MODELS, dropped_params
from .values import TAG, Reader, Writer

# What a header that was not written here can make the decoding of it raise.
MEANINGLESS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
INCONSISTENT = (*MEANINGLESS, MemoryError, RecursionError)
# Shares of variance that the summary of a header lists.
LISTED = 20


@dataclass(frozen=True)
class ModelHeader:
    """What a model file says about itself.

    Attributes
    ----------
    estimator : str
        Name of the class.
    format_version : int
    library_version : str
        Of the mercer that wrote the file.
    checksum : str
    params : dict
        Parameters as they stand in the file; what is not JSON has the key ``"@"``.
    summary : dict
        ``kernel``, ``basis``, ``components``, ``columns``, ``explained_variance_ratio``,
        ``certificate`` (pairs of texts), ``plan`` and what else the model could say.
    tensors : dict of str to (str, tuple of int)
        Type and shape of each.
    size : int
        Bytes of the file.
    """

    estimator: str
    format_version: int
    library_version: str
    checksum: str
    params: dict[str, Any]
    summary: dict[str, Any]
    tensors: dict[str, tuple[str, tuple[int, ...]]]
    size: int


def save(
    model: Any,
    path: str | PathLike[str],
    *,
    overwrite: bool = True,
    extra: dict[str, Any] | None = None,
) -> None:
    """Write a fitted model to one file, without any code in it.

    The file is written whole or not at all: an error or an interrupt leaves what was there
    before. By convention its name ends in ``.mercer``.

    Parameters
    ----------
    model : estimator
        Fitted: KernelPCA, HebbianKernelPCA, StreamingKernelPCA, NoveltyDetector, KernelPCASearch,
        PatchDenoiser, SupervisedKernelPCA, KernelCCA, SpectralClustering, SpectralEmbedding,
        DiffusionMap or ClassicalMDS.
    path : str or path
    overwrite : bool, default=True
        False raises FileExistsError where there is a file already.
    extra : dict or None, default=None
        Plain values and arrays that belong to the model but not to the estimator, such as how
        columns were scaled before it; `read_extra` gives them back.
    """
    from .. import __version__

    kind = type(model)
    name = kind.__name__
    if name not in MODELS or MODELS[name].cls is not kind:
        raise ModelFileError(
            f"{name} has no model file. Those that have one: {', '.join(MODELS)}. "
            "joblib.dump(model, path) keeps any estimator."
        )
    check_is_fitted(model)
    model._validate_params()
    writer = Writer()
    content = writer.encode(model, name)
    header = {
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "estimator": name,
        "summary": summarize(model),
        "model": content,
        "extra": writer.encode(extra or {}, "extra"),
    }
    write_archive(path, header, writer.tensors, overwrite)


def load(path: str | PathLike[str], *, device: Any = "saved") -> Any:
    """The model that was saved to a file.

    Its results agree with those of the model that was saved to the rounding of a sum. Opening
    a file executes nothing of it; a file that is damaged, foreign or of a later format is refused.

    Parameters
    ----------
    path : str or path
    device : str or None, default="saved"
        Where the model is to compute; "saved" for where it did, None or "cpu" for a machine
        that has no such device.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        A ValueError that says what is wrong with the file.
    OSError
        Where the file cannot be opened.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import mercer
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> model = mercer.KernelPCA(5, kernel="rbf", gamma="median", basis="landmarks").fit(X)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "digits.mercer"
    >>> model.save(path)
    >>> bool((mercer.load(path).transform(X) == model.transform(X)).all())
    True
    """
    with _opened(path) as archive:
        reader = Reader(archive, device)
        model = reader.decode(archive.header["model"])
        check_is_fitted(model)
        summarize(model)  # fails now where showing the model would fail later
        reader.decode(archive.header.get("extra"))
        left = archive.layout.keys() - reader.used
        if left:
            raise ModelFileError(f"there are tensors without a use: {sorted(left)[:3]}")
    return model


def read_header(path: str | PathLike[str], *, verify: bool = True) -> ModelHeader:
    """What a model file says about itself, without reading its tensors into memory.

    Parameters
    ----------
    path : str or path
    verify : bool, default=True
        Read the file once to compare the checksum.
    """
    with _opened(path, verify) as archive:
        header = archive.header
        return ModelHeader(
            header["estimator"],
            header["format_version"],
            str(header["library_version"]),
            header["checksum"],
            dict(header["model"]["params"]["items"]),
            dict(header["summary"]),
            archive.layout,
            archive.size,
        )


def read_extra(path: str | PathLike[str]) -> dict[str, Any]:
    """What was saved with a model as `extra`; an empty dict where nothing was.

    Parameters
    ----------
    path : str or path
    """
    with _opened(path) as archive:
        return dict(Reader(archive).decode(archive.header.get("extra")) or {})


@contextmanager
def _opened(path, verify: bool = True) -> Iterator[Archive]:
    """The contents of a model file; whatever is wrong with them is a ModelFileError."""
    with open_archive(path, verify) as archive:
        header = archive.header
        try:
            name, content = header["estimator"], header["model"]
            if name not in MODELS:
                raise ModelFileError(f"the header names the estimator {name!r:.60}")
            if not isinstance(content, dict) or content.get(TAG) != name:
                raise ModelFileError("the header describes something other than its estimator")
            if not isinstance(header["summary"], dict):
                raise ModelFileError("the header has no summary")
            yield archive
        except UnavailableDevice:
            raise
        except INCONSISTENT as error:
            is_ours = isinstance(error, ModelFileError)
            reason = str(error) if is_ours else f"{type(error).__name__}: {error}"
            raise ModelFileError(
                f"{path} is not a valid model file: {reason:.200}. It was not written by "
                "model.save, or by a version of mercer that had a defect; save the model again."
            ) from error


def summarize(model) -> dict[str, Any]:
    """The facts about a model that a reader of the file wants first, as plain JSON."""
    summary: dict[str, Any] = {}
    inner = next((m for m in map(model.__dict__.get, ("model_", "best_estimator_")) if m), model)
    facts = vars(inner)
    if "n_features_in_" in facts:
        summary["columns"] = int(inner.n_features_in_)
    if isinstance(facts.get("kernel_"), Kernel):
        summary["kernel"] = " ".join(repr(inner.kernel_).split())
    if "expansion_" in facts:
        summary["basis"] = basis_text(inner.expansion_.basis)
        summary["components"] = int(inner.expansion_.n_components)
    for name in ("explained_variance_ratio_", "correlations_"):
        if name in facts:
            summary[name[:-1]] = [float(value) for value in facts[name][:LISTED]]
    if "certificate_" in facts:
        share = inner.certificate_.captured_variance
        if share is not None:
            summary["captured_variance"] = [float(end) for end in share]
        summary["certificate"] = [list(pair) for pair in inner.certificate_.summary()]
    if "plan_" in facts:
        summary["plan"] = repr(inner.plan_)
    if dropped_params(model):
        summary["not_kept"] = dropped_params(model)
    return summary
