"""What the fixed point climbs, kernel by kernel: a value, its rounding and a step.

For a kernel of the distance the squared distance of phi(z) to the reconstruction sum w_i phi(x_i)
is a constant less 2 f(z), f(z) = sum w_i k(x_i, z), and with the slope c = -dk / d|x - z|^2

    grad f  ~  sum w_i c_i (x_i - z),

so that z + grad f / sum w_i c_i is Mika's fixed-point map. For (gamma x.z + c)^p the norm of
phi(z) moves with z, f(z) = 2 sum w_i k(x_i, z) - k(z, z), and the map is
sum w_i ((gamma x_i.z + c) / (gamma z.z + c))^(p-1) x_i.
"""

from abc import ABC, abstractmethod

from ..compute import array_namespace, inplace
from ..compute.arrays import dtype_in, placement_of, running_sums
from ..kernels import RBF, Laplacian, Matern, Polynomial, RationalQuadratic
from ..kernels.base import append_columns, row_squares
from ..kernels.dot_product import power
from .base import tiny

# Below this share of their absolute sum, or of one, weights nearly cancel, and the map would leap.
CANCELLED = 0.05
# Distances are never taken to be below this share of the data's size in a division.
NEAREST = 1e-6

# Sweeps over the columns at most, relative gain that is worth a move, and the widest column, in
# units of 1 / gamma, whose exponentials running sums can hold.
SWEEPS, GAIN, WIDEST = 8, 1e-9, 200.0


class Form(ABC):
    """The function to climb for one kernel and one set of points (m, d), `points` shifted.

    Everything is where the points are and in their library.
    """

    #: Share of the step to try first.
    damping = 1.0
    #: Arrays of the size of the weights that are alive at once.
    live = 8

    def __init__(self, kernel, X, origin, dtype):
        self.kernel, self.origin = kernel, origin
        xp = array_namespace(X)
        self.points = xp.asarray(X - origin, dtype=dtype_in(xp, dtype))

    def polish(self, Z, W):
        """Rows Z brought from where the climb ended to an optimum; here they are at one."""
        return Z

    @abstractmethod
    def evaluate(self, Z, W):
        """Values (q,), their size before cancellation (q,) and steps (q, d) at rows Z."""


class DistanceForm(Form):
    """Kernels of |x - z|: any class that gives kernel values and slopes."""

    def __init__(self, kernel, X, origin, dtype):
        super().__init__(kernel, X, origin, dtype)
        # -gamma |x - z|^2 is one product of rows with two more columns, as kernels do it.
        norms = row_squares(self.points)
        one = array_namespace(norms).ones_like(norms)
        self.right = append_columns(self.points, one, -kernel.gamma * norms)

    def evaluate(self, Z, W):
        """f = sum w k; the step goes to the mean of the points with weights w c."""
        xp, (K, C) = array_namespace(Z), self.profile(Z)
        C *= W
        if K is None:
            value, size = C.sum(axis=1), abs(C).sum(axis=1)
            total, magnitude = value, size
        else:
            K *= W
            value, size = K.sum(axis=1), abs(K).sum(axis=1)
            total, magnitude = C.sum(axis=1), abs(C).sum(axis=1)
        step = C @ self.points - total[:, None] * Z
        # Few landmarks have large weights of both signs: what counts is then the slope of one.
        whole = xp.clip(magnitude, None, 1.0)
        by = xp.where(total > CANCELLED * whole, total, whole)
        step /= xp.clip(by, tiny(Z), None)[:, None]
        return value, size, step

    def profile(self, Z):
        """Kernel values and slopes, (q, m) each; None for the values where the two are equal."""
        xp, gamma = array_namespace(Z), self.kernel.gamma
        own = -gamma * row_squares(Z)
        T = append_columns(2 * gamma * Z, own, xp.ones_like(own)) @ self.right.T
        return slope_of(self.kernel)(self.kernel, xp.clip(T, None, 0.0, out=T))


class LaplacianForm(DistanceForm):
    """exp(-gamma |x - z|_1): the slope of the Euclidean form with the L1 distance, a heuristic.

    The true gradient needs (q, m, d) numbers; this direction needs a GEMM, and only steps that
    raise the true value are taken. Where it ends is no optimum: `polish` goes on from there.
    """

    def profile(self, Z):
        """k and k / |x - z|_1."""
        xp = array_namespace(Z)
        shape = (Z.shape[0], self.points.shape[0])
        K = xp.empty(shape, dtype=Z.dtype, **placement_of(Z))
        self.kernel.fill(Z, self.points, K)
        distance = -xp.log(xp.clip(K, tiny(K), None)) / self.kernel.gamma
        floor = NEAREST * xp.max(distance, axis=1, keepdims=True)
        return K, K / xp.maximum(distance, floor)

    def polish(self, Z, W, sweeps=SWEEPS):
        """Rows Z moved along one column after the other to the best of the points' values there.

        Along a column f is a sum of a_i exp(-gamma |x_i - t|): convex between the values of the
        points where all a_i are positive, so that its maxima are at these values. All of
        them are compared at once by two running sums. A column that gains nothing stays.
        """
        xp, gamma = array_namespace(Z), self.kernel.gamma
        K, _ = self.profile(Z)
        A = W * K
        for _ in range(sweeps):
            moved = False
            for k in range(Z.shape[1]):
                column = self.points[:, k]
                order = xp.argsort(column)
                t = column[order]
                spread = gamma * (t - t[0])
                if float(spread[-1]) > WIDEST:  # running sums would lose all digits
                    continue
                B = A * xp.exp(gamma * xp.abs(column[None, :] - Z[:, k][:, None]))
                B = B[:, order]
                up, down = xp.exp(spread), xp.exp(-spread)
                left = running_sums(B * up) * down
                right = xp.flip(running_sums(xp.flip(B * down, axis=1)), axis=1) * up
                values = left + right - B
                best = xp.argmax(values, axis=1)
                now = A.sum(axis=1)
                highest = xp.max(values, axis=1)
                better = highest > now + GAIN * xp.abs(now)
                moved = moved or bool(better.any())
                Z[:, k] = xp.where(better, t[best], Z[:, k])
                far = xp.exp(-gamma * xp.abs(column[None, :] - Z[:, k][:, None]))
                A = xp.empty_like(B)
                A[:, order] = B * far[:, order]
            if not moved:
                break
        return Z


class PolynomialForm(Form):
    """(gamma x.z + c)^p, damped: the bare map oscillates from p = 3 on."""

    damping = 0.5

    def evaluate(self, Z, W):
        """f = 2 sum w k - k(z, z)."""
        gamma, constant, p = self.kernel.gamma, self.kernel.coef0, float(self.kernel.degree)
        xp = array_namespace(Z)
        base = Z @ self.points.T
        base *= gamma
        base += constant
        own = gamma * row_squares(Z) + constant
        C = power(xp.asarray(base, copy=True), p - 1)
        C *= W
        base *= C
        value = 2 * base.sum(axis=1) - own**p
        size = 2 * abs(base).sum(axis=1) + abs(own**p)
        by = xp.clip(own ** (p - 1), tiny(Z), None)
        return value, size, C @ self.points / by[:, None] - Z


def make_form(kernel, X, dtype) -> Form | None:
    """The form of a kernel over points X, None where none is known."""
    xp, kind = array_namespace(X), form_kind(kernel)
    if kind is None:
        return None
    if kind is PolynomialForm:
        origin = xp.zeros(X.shape[1], dtype=xp.float64, **placement_of(X))
    else:
        origin = xp.mean(X, axis=0, dtype=xp.float64)
    return kind(kernel, X, origin, dtype)


def form_kind(kernel) -> type[Form] | None:
    """The class of a kernel's form, None where none is known."""
    if isinstance(kernel, Polynomial):
        return PolynomialForm if kernel.definite and kernel.degree >= 1 else None
    if isinstance(kernel, Laplacian):
        return LaplacianForm
    return None if slope_of(kernel) is None else DistanceForm


def slope_of(kernel):
    """The function from -gamma |x - z|^2 to values and slopes, None where none is known."""
    return next((slope for kind, slope in SLOPES.items() if isinstance(kernel, kind)), None)


def has_form(kernel) -> bool:
    """Whether the fixed point is known for a kernel other than the linear one."""
    return form_kind(kernel) is not None


def gaussian_slope(kernel, T):
    """exp(T): value and slope are the same, up to gamma."""
    return None, inplace(array_namespace(T).exp, T)


def matern_slope(kernel, T):
    """With s = sqrt(2 nu) rho: k / s, exp(-s) and (1 + s) exp(-s) up to constants."""
    xp = array_namespace(T)
    s = xp.sqrt(T * (-4 * kernel.nu))
    decay = xp.exp(-s)
    if kernel.nu == 0.5:
        floor = NEAREST * xp.max(s, axis=1, keepdims=True) + tiny(s)
        return decay, decay / xp.maximum(s, floor)
    if kernel.nu == 1.5:
        return (1 + s) * decay, decay
    return (1 + s + s * s / 3) * decay, (1 + s) * decay


def rational_slope(kernel, T):
    """k and k / (1 + gamma d^2 / alpha)."""
    base = 1 - T / kernel.alpha
    K = base**-kernel.alpha
    return K, K / base


SLOPES = {RBF: gaussian_slope, Matern: matern_slope, RationalQuadratic: rational_slope}
