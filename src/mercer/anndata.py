"""Cells of AnnData objects, in scanpy's manner: what is computed is written beside the cells.

Rows are cells: of ``X``, of a layer, or of ``obsm[use_rep]``; with genes chosen by `mask_var`.
Scores go to ``obsm``, what drives them to ``varm``, eigenvalues and the certificate to ``uns``. The
fitted model is returned, and `transform` places other cells by it. Objects backed by a file are
read in blocks.
"""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from .compute import is_sparse
from .estimators import DiffusionMap, KernelPCA, SpectralEmbedding
from .exceptions import tell

# Genes of highest variance are taken where they are known, as scanpy's PCA takes them.
HIGHLY_VARIABLE = "highly_variable"
BLOCK_CELLS = 4096


def kernel_pca(
    adata: Any,
    n_components: int = 50,
    *,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = "auto",
    key_added: str = "X_kpca",
    attribute: bool = True,
    **settings: Any,
) -> KernelPCA:
    """Kernel PCA of cells.

    Parameters
    ----------
    adata : anndata.AnnData
        Its ``obsm[key_added]``, ``varm[key_added]`` and ``uns[key_added]`` are written.
    n_components : int, default=50
    layer, use_rep : str or None
        Cells of a layer, or of ``obsm[use_rep]`` such as "X_pca", in place of ``X``.
    mask_var : str, array of bool, "auto" or None, default="auto"
        Genes to use, a column of ``var`` or a mask; "auto" is "highly_variable" where it is there.
    key_added : str, default="X_kpca"
    attribute : bool, default=True
        Whether to write which genes drive which component; see `mercer.KernelPCA.attribute`.
    **settings
        Parameters of `mercer.KernelPCA`.

    Returns
    -------
    mercer.KernelPCA
        The fitted model.
    """
    rows, mask = rows_of(adata, layer, use_rep, mask_var)
    model = KernelPCA(n_components, **settings).fit(rows)
    adata.obsm[key_added] = np.asarray(model.transform(rows))
    if attribute and use_rep is None:
        try:
            shares = np.asarray(model.attribute().size)
        except ValueError as error:
            tell(f"varm[{key_added!r}] is not written: {error}")
        else:
            adata.varm[key_added] = np.zeros((adata.n_vars, shares.shape[1]))
            adata.varm[key_added][mask] = shares
    variance, ratio = model.explained_variance_, model.explained_variance_ratio_
    facts = {"variance": variance, "variance_ratio": ratio}
    note(adata, key_added, model, facts, layer, use_rep, mask)
    return model


def diffusion_map(
    adata: Any,
    n_components: int = 15,
    *,
    neighbors_key: str | None = None,
    use: str = "connectivities",
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = "auto",
    key_added: str = "X_diffusion",
    density_power: float = 1.0,
    **settings: Any,
) -> DiffusionMap:
    """Diffusion map of cells, and their pseudotime where ``uns["iroot"]`` is given.

    Parameters
    ----------
    adata : anndata.AnnData
        Its ``obsm[key_added]`` and ``uns[key_added]`` are written; with a root cell ``obs[
        "dpt_pseudotime"]`` too, from 0 to 1 within the piece of the graph that the root is in and
        inf elsewhere (Haghverdi et al. 2016).
    n_components : int, default=15
    neighbors_key : str or None, default=None
        Where ``uns`` says what the graph in ``obsp`` is called; None for "neighbors". Without a
        graph there, and where rows are asked for, that of the 10 nearest cells is made.
    use : "connectivities" or "distances", default="connectivities"
        The graph: given weights, or the neighbors of given distances.
    layer, use_rep, mask_var, key_added
        As of `kernel_pca`.
    density_power : float, default=1.0
        As of `mercer.DiffusionMap`; scanpy's is 1.
    **settings
        Parameters of `mercer.DiffusionMap`.

    Returns
    -------
    mercer.DiffusionMap
        The fitted model.
    """
    kind = DiffusionMap(n_components, density_power=density_power, **settings)
    return embedded(adata, kind, neighbors_key, use, layer, use_rep, mask_var, key_added)


def spectral_embedding(
    adata: Any,
    n_components: int = 2,
    *,
    neighbors_key: str | None = None,
    use: str = "connectivities",
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = "auto",
    key_added: str = "X_spectral",
    **settings: Any,
) -> SpectralEmbedding:
    """Laplacian eigenmap of cells, with parameters as of `diffusion_map`."""
    kind = SpectralEmbedding(n_components, **settings)
    return embedded(adata, kind, neighbors_key, use, layer, use_rep, mask_var, key_added)


def transform(
    adata: Any, model: Any, reference: Any, *, key: str = "X_kpca", key_added: str | None = None
) -> None:
    """Place other cells by a fitted model: ``obsm[key_added or key]`` is written.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells with all genes that the model was fitted to, in any order.
    model : estimator
        What `kernel_pca`, `diffusion_map` or `spectral_embedding` returned for cells by rows.
    reference : anndata.AnnData
        The cells that it was fitted to.
    key : str, default="X_kpca"
        What they were called there.
    key_added : str or None, default=None
        What they are called here.
    """
    how = slot(reference.uns, "uns", key)["params"]
    if how["rows"] != "cells":
        raise ValueError(
            f"{key!r} was made from a given graph, and the graph does not have the new cells. Fit "
            "again with use_rep or layer, which make a graph from the cells."
        )
    genes, columns = np.asarray(how["genes"], dtype=object), None
    if not how["use_rep"]:
        if not adata.var_names.is_unique:
            raise ValueError("Genes must have different names: adata.var_names_make_unique().")
        columns = adata.var_names.get_indexer(genes)
        missing = genes[columns < 0]
        if missing.size:
            raise ValueError(
                f"{missing.size} of {genes.size} genes of the model are missing, {missing[0]!r} "
                "first. Pass cells with the same genes."
            )
    rows = cells_of(adata, how["layer"] or None, how["use_rep"] or None, columns)
    adata.obsm[key_added or key] = np.asarray(model.transform(rows))


def embedded(adata, model, neighbors_key, use, layer, use_rep, mask_var, key_added) -> Any:
    """A model fitted to the graph of an object, or to its cells, with its results written."""
    name = neighbors_key or "neighbors"
    root = adata.uns.get("iroot") if isinstance(model, DiffusionMap) else None
    if root is not None and not 0 <= int(root) < adata.n_obs:
        raise ValueError(f"uns['iroot'] is {root}, and cells go from 0 to {adata.n_obs - 1:,}.")
    if use not in ("connectivities", "distances"):
        raise ValueError(f"use={use!r} must be 'connectivities' or 'distances'.")
    given = adata.uns.get(name, {}).get(f"{use}_key", use if name == "neighbors" else None)
    mask = None
    if given in adata.obsp and layer is None and use_rep is None:
        graph = sparse.csr_matrix(adata.obsp[given], dtype=float)
        affinity = "precomputed" if use == "connectivities" else "precomputed_nearest_neighbors"
        model.set_params(affinity=affinity).fit(graph)
    elif neighbors_key is not None:
        raise ValueError(f"There is no graph {name!r} in obsp. Run scanpy.pp.neighbors first.")
    else:
        rows, mask = rows_of(adata, layer, use_rep, mask_var)
        model.set_params(affinity="nearest_neighbors").fit(rows)
    adata.obsm[key_added] = np.asarray(model.embedding_)
    note(adata, key_added, model, {"eigenvalues": model.eigenvalues_}, layer, use_rep, mask)
    if root is not None:
        adata.obs["dpt_pseudotime"] = pseudotime(model, int(root))
    return model


def pseudotime(model: DiffusionMap, root: int) -> np.ndarray:
    """Diffusion distance from the root cell over all numbers of steps, from 0 to 1, (n,).

    Of cells in other pieces of the graph inf: no walk leads there. Those of the root's piece have
    all coordinates of its own.
    """
    piece = model.pieces_
    inside, times = np.flatnonzero(piece == piece[root]), np.full(piece.size, np.inf)
    times[inside] = 0.0
    if inside.size < piece.size:
        tell(
            f"{piece.size - inside.size:,} of {piece.size:,} cells are in other pieces of the "
            "graph than the root, and their pseudotime is inf. Give more neighbors to join them."
        )
        if inside.size == 1:
            return times
        part, count = model.affinity_matrix_[inside][:, inside], inside.size - 1
        alone = clone(model).set_params(affinity="precomputed", random_state=0)
        model = alone.set_params(n_components=min(model.n_components, count)).fit(part)
        root = int(np.searchsorted(inside, root))
    values, psi = np.asarray(model.eigenvalues_), np.array(model.embedding_)
    powers = np.abs(values) ** model.t
    np.divide(psi, powers, out=psi, where=powers > 0)
    steps = (psi - psi[root]) * (values / np.maximum(1 - values, np.finfo(float).eps))
    distances = np.sqrt(np.square(steps).sum(axis=1))
    times[inside] = distances / max(float(distances.max()), np.finfo(float).tiny)
    return times


def rows_of(adata, layer, use_rep, mask_var) -> tuple[Any, np.ndarray]:
    """The cells as rows, and the genes that are their columns."""
    everything = np.ones(adata.n_vars, bool)
    if use_rep is not None:
        return cells_of(adata, layer, use_rep, None), everything
    if isinstance(mask_var, str) and mask_var == "auto":
        mask_var = HIGHLY_VARIABLE if HIGHLY_VARIABLE in adata.var else None
    if isinstance(mask_var, str):
        mask_var = slot(adata.var, "var", mask_var).to_numpy()
    mask = everything if mask_var is None else np.asarray(mask_var, dtype=bool)
    if mask.shape != everything.shape or not mask.any():
        raise ValueError(f"mask_var must choose some of {adata.n_vars:,} genes.")
    return cells_of(adata, layer, use_rep, None if mask.all() else mask), mask


def cells_of(adata, layer, use_rep, columns) -> Any:
    """The cells as rows of some columns, or of all for None; those of a file in blocks."""
    if use_rep is not None:
        return plain(slot(adata.obsm, "obsm", use_rep))
    source = adata.X if layer is None else slot(adata.layers, "layers", layer)
    if source is None:
        raise ValueError("The object has no X. Name a layer or use_rep.")
    if not adata.isbacked or layer is not None:
        return plain(source if columns is None else source[:, columns])

    def blocks():
        for start in range(0, adata.n_obs, BLOCK_CELLS):
            rows = plain(source[start : start + BLOCK_CELLS])
            yield rows if columns is None else rows[:, columns]

    return blocks


def slot(there: Any, group: str, key: str) -> Any:
    """What a group of an object has under a key."""
    if key not in there:
        raise ValueError(f"There is no {key!r} in {group}. Choose one of {sorted(there)}.")
    return there[key]


def plain(rows) -> Any:
    """Rows as a NumPy array or CSR matrix, of floats."""
    rows = sparse.csr_matrix(rows) if is_sparse(rows) else np.asarray(rows)
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)


def note(adata, key, model, facts, layer, use_rep, mask) -> None:
    """Eigenvalues, certificate and parameters in ``uns[key]``, as `write_h5ad` stores them."""
    params: dict[str, Any] = {"rows": "graph" if mask is None else "cells"}
    params |= {"layer": layer or "", "use_rep": use_rep or "", "plan": model.plan_.reason}
    genes = adata.var_names[mask] if mask is not None and use_rep is None else []
    params["genes"] = np.asarray(genes, dtype=str)
    certificate = {
        name: np.asarray(value) if isinstance(value, list | tuple) else value
        for name, value in model.certificate_.to_dict().items()
        if value is not None
    }
    arrays = {name: np.asarray(value) for name, value in facts.items()}
    adata.uns[key] = arrays | {"params": params, "certificate": certificate}
