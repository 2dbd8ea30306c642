"""What a stream takes in: checked batches, the engine for them, the span that the first settles."""

from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.utils.validation import validate_data

from ..bases import FourierBasis, FourierGrid, RandomFeatures
from ..compute import is_sparse, make_engine, match_sparsity, to_numpy
from ..compute.arrays import is_on_device
from ..compute.engine import device_index
from ..fitting.checkpoint import Checkpoint
from ..fitting.sampling import RowSample
from ..fitting.task import MODEL_ROWS
from ..stream.dictionary import GrowingDictionary
from ..stream.moments import FixedSpan, FourierStream, Stream, as_float
from ..stream.state import State
from ._batches import identified, novelty_threshold
from ._door import check_file, check_tensor, in_main_memory, valid_rows
from ._model import KernelModel


class StreamInput(KernelModel):
    """Batches as a stream needs them, and the state before the first row.

    A subclass has the parameters ``basis, budget, novelty, forgetting`` beside those of
    `KernelModel`.
    """

    basis: Any
    budget: int
    novelty: Any
    forgetting: float
    #: What the rows so far have left: a `mercer.stream.state.State`.
    _state: Any
    #: Settings of an engine, and the engine.
    _engine: tuple[Any, Any] | None = None

    def _kept_for(self, X, weights) -> Checkpoint | None:
        """The checkpoint of a fit to rows and their weights."""
        rows = identified(X, type(self).__name__, self.memory, self.n_jobs)
        return self._open_checkpoint(rows, None if weights is None else np.asarray(weights))

    def _kept_engine(self, X=None, afresh=False):
        """The engine of the batches before: making one takes longer than learning a small batch.

        A new model computes where its first batch X is.
        """
        where = self.device
        if self.basis == "dictionary":
            where = "cpu"  # rows join one by one
        elif where is None and afresh and is_on_device(X):
            where = f"cuda:{device_index(X)}"
        elif where is None and not afresh and "expansion_" in vars(self):
            where = self.expansion_.basis.engine.device
        settings = self.memory, self.n_jobs, where
        if self._engine is None or self._engine[0] != settings:
            made = make_engine(memory=self.memory, device=where, threads=self.n_jobs)
            self._engine = settings, made
        return self._engine[1]

    def _check(self, X, reset):
        """Rows checked for the model, sparse or dense as it is."""
        return match_sparsity(super()._check(X, reset), self.X_sample_)

    def _checked(self, X, first, engine):
        """A batch of finite floats: on the device of the engine, or as NumPy's or SciPy's."""
        encoder = self._encoder()
        if encoder is not None and encoder.of(X) is not None:
            raise ValueError(
                f"A stream learns batch by batch, and the categories that kernel={self.kernel!r} "
                "compares are those of all rows. Use KernelPCA(basis='landmarks'), or pass codes "
                "for categories."
            )
        if engine.device is not None and is_on_device(X):
            return check_tensor(self, X, first, least=1)
        X = self._checked_on_host(X, first)
        return X if engine.device is None else engine.place(X)

    def _checked_on_host(self, X, first):
        """A batch as a NumPy array, memmap or CSR matrix of finite floats."""
        grows = " with a growing dictionary" if self.basis == "dictionary" else ""
        X = in_main_memory(X, f"StreamingKernelPCA{grows}")
        if isinstance(X, np.memmap):
            check_file(X)
            return validate_data(self, X, reset=first, skip_check_array=True)
        return valid_rows(
            self,
            X,
            reset=first,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=1 if first else 0,
        )

    def _check_settings(self):
        if self._is_precomputed():
            raise ValueError(
                "A stream needs rows, and a precomputed kernel has none. Give a kernel by name, or "
                "use KernelPCA for a matrix."
            )
        sized = self.basis in ("dictionary", "features")
        if sized and self.budget < self.n_components:
            raise ValueError(
                f"budget={self.budget} cannot give n_components={self.n_components}. Give a "
                "larger budget, or ask for fewer components."
            )
        self._threshold()

    def _begin(self, X, engine, rng) -> State:
        """The state before the first row: the kernel and the span are settled."""
        if not X.shape[0]:
            raise ValueError(
                "Every sample_weight is zero, so there is no row to begin with. Give at least one "
                "row a positive weight."
            )
        kernel = self._make_kernel(X)
        span = self._make_span(kernel, X, engine, rng)
        self._check_preimage(span.basis(engine))  # fails before the work if it would fail after
        # Rows of streams that are merged must be drawn apart, whatever their random_state.
        own = crc32(
            np.ascontiguousarray(X[:1].toarray() if is_sparse(X) else to_numpy(X[:1])).tobytes()
        )
        sample = RowSample(MODEL_ROWS, int(rng.integers(2**32)) ^ own)
        kind = FourierStream if isinstance(span.basis(engine), FourierBasis) else Stream
        return State(kind.start(span, float(self.forgetting)), sample, None)

    def _make_span(self, kernel, X, engine, rng):
        if self.basis == "dictionary":
            return GrowingDictionary(kernel, self._threshold(), self.budget, as_float(X[:0]))
        named = {"features": RandomFeatures(self.budget), "fourier": FourierGrid()}
        recipe = named[self.basis] if isinstance(self.basis, str) else self.basis
        basis = recipe.build(kernel, as_float(X), engine, rng, self.n_components)
        if basis.spans_data:
            raise ValueError(
                f"basis={self.basis!r} keeps every row, and a stream has no end of them. Use "
                "basis='dictionary', Landmarks or RandomFeatures, or KernelPCA for fixed data."
            )
        return FixedSpan(basis, basis.whitener(np.float64))

    def _renewed(self) -> State:
        """The state of the model, under the parameters as they are now."""
        state, span = self._state, self._state.stream.span
        now = self._threshold(), self.budget
        if isinstance(span, GrowingDictionary) and (span.novelty, span.budget) != now:
            span = replace(span, novelty=self._threshold(), budget=self.budget)
        stream = replace(state.stream, span=span, forgetting=float(self.forgetting))
        return replace(state, stream=stream)

    def _threshold(self) -> float:
        found: Any = novelty_threshold(self.novelty, example=0.001)
        return found
