"""Compiled inner loops of the Hebbian rules: the steps of one block of samples, in small matrices.

The coefficients after s samples of a block are A_s = T_s A_0 + D_s E', with E the indicator
of the block's points. A step with outputs y and gains g is

    A <- A + diag(g) (y e' - lt(y y') A),

and touches T and D only. With acc_i = sum over j <= i of y_j (row j), row i of the second
term is y_i acc_i: O(r (r + b)) a sample where the plain rule takes O(r n).
"""

import numpy as np

from ..compute._numba import compiled


@compiled()
def hebbian_sweep(C, K, rates, decay, t, cap, T, D, Y, eta, floor, squares, lengths):
    """Equations 7 to 11 over a block; T (r, r), D (r, b) and the outputs Y (r, b) in place.

    C (b, r) holds the outputs of A_0, K (b, b) the Gram matrix of the block. With eta > 0 the
    rates are set anew before every step, by equations 12 and 13, from the two forms
    ``squares`` (of K'^2) and ``lengths`` (of I), each (A H A', A H E, E' H E).
    """
    b, r = C.shape
    y = np.empty(r)
    g = np.empty(r)
    for s in range(b):
        for i in range(r):
            y[i] = _dot(T[i], C[s], r) + _dot(D[i], K[s], s)
        if eta > 0:
            _running_rates(rates, eta, floor, squares[0], lengths[0])
        _capped(g, rates, 1.0 / (1.0 + decay * (t + s)), y, cap)
        _shrink(T, y, g, r)
        _shrink(D, y, g, s)
        if eta > 0:
            _advance_form(squares, y, g, s)
            _advance_form(lengths, y, g, s)
        for i in range(r):
            D[i, s] = g[i] * y[i]
            Y[i, s] = y[i]


@compiled()
def smd_sweep(C, K, rates, decay, t, cap, smd, XA, XB, N, S, rho, Y, eta, floor, squares, lengths):
    """Equations 15 to 21 over a block: A = XA [A_0; B_0; E'], B = XB [A_0; B_0; E'], in place.

    C (b, 2r) holds the outputs of A_0 and B_0. Equation 16 needs diag(Gamma K' B'), for which
    the r x r matrices N = A K' A' and S = A K' B' suffice: no A K' is stored.
    smd = (mu, xi, largest step of rho, lowest rho, highest rho); the rest as in `hebbian_sweep`.
    """
    b, r = C.shape[0], N.shape[0]
    mu, xi, clip, low, high = smd
    y = np.empty(r)
    z = np.empty(r)
    g = np.empty(r)
    v = np.empty(r)
    for s in range(b):
        m = 2 * r + s
        for i in range(r):
            y[i] = _dot(XA[i], C[s], 2 * r) + _dot(XA[i, 2 * r :], K[s], s)
            z[i] = _dot(XB[i], C[s], 2 * r) + _dot(XB[i, 2 * r :], K[s], s)
        if eta > 0:
            _running_rates(rates, eta, floor, squares[0], lengths[0])
        for i in range(r):
            slope = z[i]
            for j in range(i + 1):
                slope -= y[j] * S[j, i]
            step = min(max(mu * y[i] * slope, -clip), clip)
            rho[i] = min(max(rho[i] + step, low), high)
            g[i] = rates[i] * np.exp(rho[i])
        _capped(g, g, 1.0 / (1.0 + decay * (t + s)), y, cap)
        _advance_grams(N, S, y, z, g, v, K[s, s], xi)
        _advance(XA, XB, y, z, g, xi, m)
        if eta > 0:
            _advance_form(squares, y, g, s)
            _advance_form(lengths, y, g, s)
        for i in range(r):
            XA[i, m] = g[i] * y[i]
            XB[i, m] = g[i] * (y[i] + xi * z[i])
            Y[i, s] = y[i]


@compiled()
def _running_rates(rates, eta, floor, P, Q):
    """Equations 12 and 13: rates eta |l| / l_i with l_i^2 = P_ii / Q_ii, in place."""
    total = 0.0
    for i in range(rates.shape[0]):
        rates[i] = floor
        if Q[i, i] > 0 and P[i, i] > 0:
            rates[i] = max(floor, np.sqrt(P[i, i] / Q[i, i]))
        total += rates[i] * rates[i]
    for i in range(rates.shape[0]):
        rates[i] = eta * np.sqrt(total) / rates[i]


@compiled()
def _advance_form(form, y, g, s):
    """A H A' and A H E after the step at sample s of the block, in place."""
    N, U, W = form
    r, b = U.shape
    _shrink(N, y, g, r)
    for i in range(r):
        for j in range(r):
            N[i, j] += g[i] * y[i] * U[j, s]
    _shrink(U, y, g, b)
    for i in range(r):
        for j in range(b):
            U[i, j] += g[i] * y[i] * W[s, j]
    Nt = N.T.copy()
    _shrink(Nt, y, g, r)
    for i in range(r):
        for j in range(r):
            N[j, i] = Nt[i, j] + g[i] * y[i] * U[j, s]


@compiled()
def _dot(x, y, m):
    total = 0.0
    for j in range(m):
        total += x[j] * y[j]
    return total


@compiled()
def _capped(g, rates, decay, y, cap):
    """g_i = decayed rate, at most cap over the sum of y_j^2 up to i."""
    power = 0.0
    for i in range(y.shape[0]):
        power += y[i] * y[i]
        g[i] = rates[i] * decay
        if g[i] * power > cap:
            g[i] = cap / power


@compiled()
def _shrink(X, y, g, m):
    """X <- (I - diag(g) lt(y y')) X for the first m columns, in place."""
    acc = np.zeros(m)
    for i in range(y.shape[0]):
        for j in range(m):
            acc[j] += y[i] * X[i, j]
            X[i, j] -= g[i] * y[i] * acc[j]


@compiled()
def _advance(XA, XB, y, z, g, xi, m):
    """The linear part of equations 15 and 21 on the first m columns, in place."""
    ya, za, yb = np.zeros(m), np.zeros(m), np.zeros(m)
    for i in range(y.shape[0]):
        old, cross = xi * y[i], y[i] + xi * z[i]
        for j in range(m):
            ya[j] += y[i] * XA[i, j]
            za[j] += z[i] * XA[i, j]
            yb[j] += y[i] * XB[i, j]
            XB[i, j] = xi * (XB[i, j] - g[i] * y[i] * yb[j])
            XB[i, j] -= g[i] * (cross * ya[j] + old * za[j])
            XA[i, j] -= g[i] * y[i] * ya[j]


@compiled()
def _advance_grams(N, S, y, z, g, v, norm, xi):
    """N <- A+ K' A+' and S <- A+ K' B+' for the A+, B+ of this step, in place."""
    r = y.shape[0]
    _shrink(N, y, g, r)
    _shrink(S, y, g, r)
    for i in range(r):
        v[i] = y[i]
        for j in range(r):
            N[i, j] += g[i] * y[i] * y[j]
            S[i, j] += g[i] * y[i] * z[j]
    _shrink(v.reshape(r, 1), y, g, 1)
    for i in range(r):
        v[i] += g[i] * y[i] * norm
    Nt, St = N.T.copy(), S.T.copy()
    _advance(Nt, St, y, z, g, xi, r)
    for i in range(r):
        for j in range(r):
            N[j, i] = Nt[i, j] + g[i] * y[i] * v[j]
            S[j, i] = St[i, j] + g[i] * (y[i] + xi * z[i]) * v[j]
