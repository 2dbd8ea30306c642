"""A fit, from a task to its result.

A problem is built from rows, a kernel and a basis: `GramProblem` has all points as the basis,
`ReducedProblem` and `ColumnProblem` the moments of rows in a smaller one, `FourierProblem` those of
a grid of frequencies. All answer the same: `operator`, `total`, `scale`, `slack`, `is_zero`
and `result`, which is what eigenpairs of the operator become.
"""
