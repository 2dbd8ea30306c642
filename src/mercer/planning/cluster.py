"""Plans for rows on a cluster: what can be done there, and what with the model afterwards."""

from dataclasses import replace

from ..compute import format_bytes
from .types import Estimate, Plan

# Blocks of vectors that block Krylov holds at the least, and vectors of a block beyond the
# components.
LEAST_BLOCKS, SPARE_VECTORS = 6, 16
# Share of the budget that rows brought to the client may take.
HERE_SHARE = 4
# How plans call landmarks; methods that need the rows, or tiles made of them, in one place.
LANDMARKS = 'basis="landmarks"'
NONE = "no exact method fits the memory budget"
IN_ONE_PLACE = {"krylov, tiles kept", "HebbianKernelPCA"}


def vector_bytes(n: int, r: int) -> int:
    """Bytes of the vectors of the exact method, which are on the client."""
    return 8 * n * LEAST_BLOCKS * (r + SPARE_VECTORS)


def fits_here(size: int, memory: int) -> bool:
    """Whether all rows of a cluster take little of the client's budget."""
    return size <= memory // HERE_SHARE


def after_words(size: int, memory: int, sparse: bool) -> str:
    """What can be done with an exact model whose rows, of so many bytes, are on a cluster."""
    learned = "learn from all of them" if fits_here(size, memory) else "from a sample, by a ridge"
    learned = "need dense rows" if sparse else learned
    return (
        f"the rows stay there: transform works there, saving writes {format_bytes(size)} of them "
        f"chunk by chunk, pre-images {learned}"
    )


def on_cluster(plan: Plan, row_bytes: float, sparse: bool) -> Plan:
    """The plan for rows of a Dask collection, the best method that serves there marked."""
    work = plan.workload
    estimates = tuple(there(e, plan) for e in plan.estimates if e.method not in IN_ONE_PLACE)
    exact = [e for e in estimates if e.fits and not e.approximate and e.method != "gram-power"]
    if not exact:
        return without_exact(replace(plan, estimates=estimates))
    best = min(exact, key=lambda e: e.seconds)
    reason = f"by Dask; {after_words(int(work.n * row_bytes), work.memory, sparse)}"
    return replace(plan, estimates=estimates, chosen=best, reason=reason)


def there(estimate: Estimate, plan: Plan) -> Estimate:
    """An estimate with the vectors that the client holds."""
    if estimate.method != "krylov, matrix-free":
        return estimate
    size = vector_bytes(plan.workload.n, plan.workload.r)
    return replace(
        estimate,
        bytes=size,
        fits=estimate.fits and size <= plan.workload.memory,
        note="by pairs of chunks on the workers; the memory is that of the client",
    )


def without_exact(plan: Plan) -> Plan:
    """The plan with the fastest approximation that fits, where no exact method does."""
    quick = [e for e in plan.estimates if e.approximate and e.fits]
    if not quick:
        return plan
    # At equal size landmarks are closer than features, and say how close.
    best = min(quick, key=lambda e: (e.method != LANDMARKS, e.seconds))
    return replace(plan, chosen=best, reason=NONE)
