"""What is posed, and generic methods that solve it without this library's solver, flow or circuit.

Problems are random ones, with the paper's complexity and with five others; those that were recorded in the paper's
three studies are handed over.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize, root
from scipy.special import log_softmax, softmax

from policychord import Problem, TimeScales, complexity, gate, problem

# Few shapes, many problems: every shape costs a compilation.
SHAPES = ((2, 3), (12, 3), (40, 6))  # (actions, primitives)
STATED = 10.0  # "faster" in the paper's ordering of the circuit's layers is measured at this ratio

Value = Callable[[np.ndarray], float]
Slope = Callable[[np.ndarray], np.ndarray]


def pick(batch: Problem, index: Any) -> Problem:
    """The same index of every field: one problem, some of them, or another axis."""
    return Problem(*(np.asarray(field)[index] for field in batch))


def per_shape(count: int) -> int:
    """How many problems of each shape make at least `count` of them."""
    return -(-count // len(SHAPES))


def join(batches: Sequence[Problem]) -> Problem:
    """Problems with equally many primitives as one batch; actions of probability zero fill them up to one shape."""
    most = max(batch.pi.shape[1] for batch in batches)
    filled = []
    for batch in batches:
        more = most - batch.pi.shape[1]
        pi = np.pad(batch.pi, ((0, 0), (0, more), (0, 0)))
        filled.append(batch._replace(pi=pi, action_cost=np.pad(batch.action_cost, ((0, 0), (0, more)))))
    return Problem(*(np.concatenate(fields) for fields in zip(*filled, strict=True)))


def random_problems(seed: int, count: int) -> list[Problem]:
    """Batches of random problems, one batch a shape: peaked and flat primitives, hot and cold, half with a prior."""
    rng = np.random.default_rng(seed)
    return [_random_batch(rng, per_shape(count), d, n) for d, n in SHAPES]


def _random_batch(rng: np.random.Generator, batch: int, d: int, n: int) -> Problem:
    spread = 10 ** rng.uniform(-0.5, 1.0, (batch, 1, 1))
    # a floor under the primitives: the paper assumes full support
    pi = rng.gamma(spread, size=(batch, d, n)) + 1e-3
    uniform, prior = np.full((batch, n), 1.0 / n), rng.dirichlet(np.full(n, 2.0), batch)
    return problem(
        pi=pi / pi.sum(axis=1, keepdims=True),
        action_cost=rng.normal(scale=2.0, size=(batch, d)),
        eps=10 ** rng.uniform(-1.5, 0.5, batch),
        prior=np.where(rng.random((batch, 1)) < 0.5, uniform, prior),
    )


def random_weights(seed: int, like: Problem) -> np.ndarray:
    """Random points of the simplex, one for each problem."""
    batch, n = like.log_prior.shape
    return np.random.default_rng(seed).dirichlet(np.ones(n), batch)


def random_circuits(seed: int, count: int) -> Problem:
    """Problems for the stability of the circuit: nearly deterministic to flat primitives, eps from .001 to 10."""
    rng = np.random.default_rng(seed)
    pi = rng.gamma(10 ** rng.uniform(-1, 1, (count, 1, 1)), size=(count, 8, 4)) + 1e-9
    return problem(
        pi=pi / pi.sum(1, keepdims=True),
        action_cost=rng.normal(scale=2.0, size=(count, 8)),
        eps=10 ** rng.uniform(-3, 1, count),
    )


def illustration() -> Problem:
    """Three overlapping primitives on a line of 12 actions (one of SHAPES), none of which fits the cost alone."""
    actions = np.linspace(-1.0, 1.0, 12)
    log_pi = -((actions[:, None] - np.array([-0.65, 0.1, 0.6])) ** 2) / (2 * 0.3**2)
    pi = np.exp(log_pi)
    return problem(pi=pi / pi.sum(0), action_cost=4.0 * (np.abs(actions) - 0.35) ** 2 + 0.8 * actions, eps=0.3)


def everywhere(seed: int, batch: Problem, points: int) -> tuple[Problem, np.ndarray]:
    """Each problem of a batch once for every start: all vertices, then random points, half of them on the border."""
    n = batch.log_prior.shape[-1]
    rng = np.random.default_rng(seed)
    inside = rng.dirichlet(np.ones(n), (batch.eps.size, points))
    inside[:, ::2] *= np.arange(n) != rng.integers(n, size=(batch.eps.size, (points + 1) // 2, 1))
    vertices = np.broadcast_to(np.eye(n), (batch.eps.size, n, n))
    starts = np.concatenate([vertices, inside / inside.sum(-1, keepdims=True)], axis=1)
    return pick(batch, np.repeat(np.arange(batch.eps.size), n + points)), starts.reshape(-1, n)


def generative_model(rng: np.random.Generator, d: int, states: int) -> tuple[np.ndarray, ...]:
    """p(x|u), q(x|u), q(u) and a cost c(x, u) of finitely many states and actions: rows are actions."""
    p, q = rng.dirichlet(np.ones(states), (2, d))
    return p, q, rng.dirichlet(np.ones(d)), rng.normal(scale=2.0, size=(d, states))


def joint_divergence(policy: np.ndarray, model: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """KL of p(x|u) policy(u) from q(x|u) q(u) exp(-c(x, u))/Z, summed over all pairs, and ln Z."""
    p, q, prior, cost = model
    twisted = q * prior[:, None] * np.exp(-cost)
    joint = p * policy[:, None]
    return float(np.sum(joint * np.log(joint * twisted.sum() / twisted))), float(np.log(twisted.sum()))


def simplex_grid(steps: int) -> np.ndarray:
    """Points of the simplex of three, evenly spread."""
    i, j = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij")
    inside = i + j <= steps
    return np.stack([i[inside], j[inside], steps - i[inside] - j[inside]], -1) / steps


def ring_of_starts() -> np.ndarray:
    """Just inside the border, so that no path hides another."""
    grid = simplex_grid(8)
    return grid[np.isclose(grid.min(-1), 0.0)] * 0.94 + 0.02


class _IndependentOptimum(NamedTuple):
    """An optimum of an independent method, and how far it is from being one: |w - softmax(-g/eps + ln prior)|."""

    weights: np.ndarray
    residual: float


def minimise_energy(batch: Problem, index: int) -> _IndependentOptimum:
    """The weights of least energy of one problem of a batch."""
    pi, s, eps, log_prior = map(np.asarray, pick(batch, index))

    def value(w: np.ndarray) -> float:
        return float((pi @ w) @ (np.log(pi @ w) + s))

    return _minimise_with_entropy(value, lambda w: pi.T @ (np.log(pi @ w) + s), float(eps), log_prior)


def _minimise_with_entropy(value: Value, slope: Slope, eps: float, log_prior: np.ndarray) -> _IndependentOptimum:
    """min F(w) + eps KL(w, prior) over the simplex: sequential quadratic programming, then a root of the conditions.

    The energy alone cannot tell points apart that are closer than the root of its rounding, some 1e-8. At the optimum
    slope + eps ln(w/prior) is the same for all, which is solved for in ln w. The residual needs no method at
    all: it vanishes at the optimum and nowhere else.
    """

    def price(log_w: np.ndarray) -> np.ndarray:
        return slope(np.exp(log_w)) + eps * (log_w - log_prior)

    def differences(z: np.ndarray) -> np.ndarray:
        prices = price(log_softmax(np.append(z, 0.0)))
        return prices[:-1] - prices[-1]

    near = minimise_on_simplex(
        lambda w: value(w) + eps * float(w @ (np.log(w) - log_prior)), lambda w: price(np.log(w)), np.exp(log_prior)
    )
    log_w = np.log(near / near.sum())
    weights = softmax(np.append(root(differences, log_w[:-1] - log_w[-1], tol=1e-14).x, 0.0))
    return _IndependentOptimum(weights, float(np.abs(weights - softmax(log_prior - slope(weights) / eps)).max()))


def minimise_complexity(batch: Problem, index: int) -> np.ndarray:
    """The weights of least complexity F, the limit of no temperature, by sequential quadratic programming.

    It stays off the border; what is next to nothing is nothing.
    """
    posed = pick(batch, index)
    n = posed.log_prior.size
    weights = minimise_on_simplex(
        lambda w: float(complexity(posed, w)),
        lambda w: (np.log(np.maximum(posed.pi @ w, 1e-300)) + posed.action_cost + 1.0) @ posed.pi,
        np.full(n, 1.0 / n),
    )
    weights = np.where(weights < 1e-9, 0.0, weights)
    return weights / weights.sum()


def minimise_on_simplex(value: Value, slope: Slope, start: np.ndarray) -> np.ndarray:
    """Minimise a smooth function over the probability simplex."""
    minimum = minimize(
        value,
        start,
        jac=slope,
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * start.size,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones_like(w)},
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    return minimum.x


# ------------------------------------------------------------------------------ other complexities

WEIGHTS = 4  # of every problem with another complexity


class _Complexity(NamedTuple):
    """A convex F with its gradient by hand, and problems that are drawn for it."""

    value: Callable[..., Any]  # (weights, parameters, array module)
    slope: Callable[[np.ndarray, Any], np.ndarray]
    draw: Callable[[np.random.Generator, int], Any]  # parameters of so many problems


def _quadratic(w: Any, parameters: Any, xp: Any = jnp) -> Any:
    """|A w|^2/2 + b.w."""
    a, b = parameters
    return xp.sum((a @ w) ** 2) / 2 + b @ w


def _proportions(w: Any, likelihood: Any, xp: Any = jnp) -> Any:
    """The mean surprise of observations under a mixture."""
    return -xp.mean(xp.log(likelihood @ w))


def _congestion(w: Any, parameters: Any, xp: Any = jnp) -> Any:
    """Beckmann's integral of travel times free + slope load^4 over the links of all routes."""
    routes, free, slope = parameters
    load = routes @ w
    return free @ load + slope @ load**5 / 5


def _transport(w: Any, parameters: Any, xp: Any = jnp) -> Any:
    """Entropic transport from sources w, which are free, to a fixed demand."""
    cost, demand = parameters
    return -demand @ xp.log(xp.exp(-cost) @ w)


def _log_sum_exp(w: Any, parameters: Any, xp: Any = jnp) -> Any:
    """ln sum exp(A w + b)."""
    a, b = parameters
    x = a @ w + b
    return xp.max(x) + xp.log(xp.sum(xp.exp(x - xp.max(x))))


def _transport_slope(w: np.ndarray, parameters: Any) -> np.ndarray:
    kernel, demand = np.exp(-parameters[0]), parameters[1]
    return -kernel.T @ (demand / (kernel @ w))


COMPLEXITIES = {
    "quadratic": _Complexity(
        _quadratic, lambda w, p: p[0].T @ (p[0] @ w) + p[1],
        lambda rng, count: (2.0 * rng.normal(size=(count, 4, WEIGHTS)), rng.normal(size=(count, WEIGHTS))),
    ),
    "mixture proportions": _Complexity(
        _proportions, lambda w, p: -(p.T @ (1.0 / (p @ w))) / len(p),
        lambda rng, count: rng.gamma(0.7, size=(count, 30, WEIGHTS)) + 1e-3,
    ),
    "congestion game": _Complexity(
        _congestion, lambda w, p: p[0].T @ (p[1] + p[2] * (p[0] @ w) ** 4),
        lambda rng, count: (
            (rng.random((count, 7, WEIGHTS)) < 0.5).astype(float), rng.random((count, 7)), 9 * rng.random((count, 7)),
        ),
    ),
    "semi-relaxed transport": _Complexity(
        _transport, _transport_slope,
        lambda rng, count: (3.0 * rng.random((count, 8, WEIGHTS)), rng.dirichlet(np.ones(8), count)),
    ),
    "log-sum-exp": _Complexity(
        _log_sum_exp, lambda w, p: p[0].T @ softmax(p[0] @ w + p[1]),
        lambda rng, count: (3.0 * rng.normal(size=(count, 9, WEIGHTS)), rng.normal(size=(count, 9))),
    ),
}  # fmt: skip


def _one_of(w: Any, choice: Any) -> Any:
    """The complexity that `kind`, a one among zeros, points at: one program serves all of them."""
    kind, parameters = choice
    return kind @ jnp.stack([other.value(w, parameters[name]) for name, other in COMPLEXITIES.items()])


def other_problems(seed: int, count: int) -> Any:
    """So many random problems of each other complexity in one batch: hot and cold, each with a prior."""
    rng = np.random.default_rng(seed)
    total = count * len(COMPLEXITIES)
    parameters = {name: other.draw(rng, total) for name, other in COMPLEXITIES.items()}
    return problem(
        complexity=_one_of, n=WEIGHTS, parameters=(np.repeat(np.eye(len(COMPLEXITIES)), count, axis=0), parameters),
        eps=10 ** rng.uniform(-1.5, 0.5, total), prior=rng.dirichlet(np.full(WEIGHTS, 2.0), total),
    )  # fmt: skip


def minimise_other(batch: Any, index: int) -> _IndependentOptimum:
    """The weights of least energy of one problem with another complexity, from its gradient by hand."""
    kind, parameters = jax.tree.map(lambda leaf: leaf[index], batch.parameters)
    name = list(COMPLEXITIES)[int(np.argmax(kind))]
    other, own = COMPLEXITIES[name], parameters[name]
    return _minimise_with_entropy(
        lambda w: float(other.value(w, own, np)), lambda w: other.slope(w, own), float(batch.eps[index]),
        batch.log_prior[index],
    )  # fmt: skip


# ------------------------------------------------------------------------------ flow and circuit


def integrate_flow(posed: Problem, start: np.ndarray, times: np.ndarray, **options: Any) -> np.ndarray:
    """The flow of one problem by `solve_ivp` with its options: (time, primitive)."""
    path = solve_ivp(lambda t, w: gate(posed, w) - w, (times[0], times[-1]), start, t_eval=times, **options)
    return path.y.T


def integrate_circuit(posed: Problem, scales: TimeScales, times: np.ndarray) -> np.ndarray:
    """Weights of the circuit, all 2d + 3n + 1 neurons as the paper writes them (m as its logarithm)."""
    pi, s, eps, log_prior = (np.asarray(field) for field in posed)
    d, n = pi.shape
    hidden, gradient, middle, tau = (float(t) for t in scales)
    layers = [slice(low, high) for low, high in pairwise(np.cumsum([0, d, d, n, 1, n, n]).tolist())]

    def log_sum(y: np.ndarray) -> Any:  # ln sum exp, without the checks that would take most of the time here
        top = y.max()
        return top + np.log(np.exp(y - top).sum())

    def velocity(t: float, x: np.ndarray) -> np.ndarray:
        a, b, y, log_m, r, w = (x[layer] for layer in layers)
        return np.concatenate([
            (pi @ w - a) / hidden,
            (np.log(np.maximum(a, 1e-300)) - b) / hidden,
            (eps * (log_prior - y) - (b + s) @ pi) / gradient,
            np.expm1(log_sum(y) - log_m) / middle,
            (y - log_m - r) / middle,
            (np.exp(r) - w) / tau,
        ])  # fmt: skip

    w = np.full(n, 1.0 / n)
    a = pi @ w
    y = log_prior - (np.log(a) + s) @ pi / eps
    start = np.concatenate([a, np.log(a), y, [log_sum(y)], y - log_sum(y), w])
    path = solve_ivp(velocity, (times[0], times[-1]), start, "LSODA", t_eval=times, rtol=1e-7, atol=1e-10)
    return path.y[-n:].T


class Unit(NamedTuple):
    """One unit of a circuit in time while the other is held: its distance from where it should go."""

    times: np.ndarray
    distance: np.ndarray


def integrate_fast_unit(posed: Problem, scales: TimeScales, held: np.ndarray, span: float) -> Unit:
    """Layers a, b and y with the weights held, from rest at uniform weights: does y go to -grad F/eps + ln prior?

    a = Pi v and y hears b through Pi^T b alone, so v and Pi^T b stand for both (an exact reduction).
    """
    pi, s, eps, log_prior = (np.asarray(field) for field in posed)
    n, hidden, gradient = log_prior.size, float(scales.hidden), float(scales.gradient)

    def heard(v: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(pi @ v, 1e-300)) @ pi

    def velocity(t: float, x: np.ndarray) -> np.ndarray:
        v, b, y = x.reshape(3, n)
        return np.concatenate([
            (held - v) / hidden, (heard(v) - b) / hidden, (eps * (log_prior - y) - b - s @ pi) / gradient,
        ])  # fmt: skip

    even = np.full(n, 1.0 / n)
    first = np.concatenate([even, heard(even), log_prior - (heard(even) + s @ pi) / eps])
    return _approach(velocity, first, log_prior - (heard(held) + s @ pi) / eps, span)


def integrate_slow_unit(posed: Problem, scales: TimeScales, held: np.ndarray, span: float) -> Unit:
    """Layers m, r and w with y held, from rest at uniform weights: does w go to softmax(y)?

    m is taken in units of exp(max y), since y does not change.
    """
    n, middle, tau = held.size, float(scales.softmax), float(scales.weights)
    y = held - held.max()

    def velocity(t: float, x: np.ndarray) -> np.ndarray:
        m, r, w = x[0], x[1 : n + 1], x[n + 1 :]
        return np.concatenate([
            [(np.exp(y).sum() - m) / middle], (y - np.log(max(m, 1e-300)) - r) / middle, (np.exp(r) - w) / tau,
        ])  # fmt: skip

    first = np.concatenate([[float(n)], np.full(n, -np.log(n)), np.full(n, 1.0 / n)])
    return _approach(velocity, first, softmax(y), span)


def _approach(velocity: Callable[..., np.ndarray], first: np.ndarray, target: np.ndarray, span: float) -> Unit:
    """The distance of the last layer from its target in time."""
    times = np.linspace(0.0, span, 401)
    path = solve_ivp(velocity, (0.0, span), first, "LSODA", t_eval=times, rtol=1e-11, atol=1e-12)
    return Unit(times, np.abs(path.y[-target.size :].T - target).max(-1))


def geometric_ladder(ratio: float | np.ndarray, tau: float = 1.0) -> TimeScales:
    """The ordering as the paper states it: each layer `ratio` times faster than the next, whatever eps."""
    ratio = np.asarray(ratio, dtype=float)
    return TimeScales(tau / ratio**3, tau / ratio**2, tau / ratio, np.full_like(ratio, tau))
