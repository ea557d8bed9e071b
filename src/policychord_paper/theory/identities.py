"""Statements that need no path, against automatic differentiation and generic optimisers; and all statements on
problems with five other convex complexities.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp, softmax

from policychord import Problem, complexity, energy, flow, gate, primitive_cost, problem, solve

from .flows import Paths, bounded_distances, bounded_gaps, certify_at, fall, within_horizon
from .problems import (
    SHAPES,
    IndependentOptimum,
    TheorySettings,
    exact,
    minimise_on_simplex,
    minimise_with_entropy,
    pick,
    random_problems,
    random_weights,
)

WEIGHTS = 4  # of every problem with another complexity


class Identities(NamedTuple):
    """Statements that need no path: the largest error of each over random points or problems."""

    prox: float  # |prox - softmax|
    dissipation: float  # relative
    gradient: float
    smallest_eigenvalue: float  # of the Hessian of F
    largest_eigenvalue: float  # in units of L_F
    median_bound: float  # L_F
    hot: float  # |w - uniform|
    cold: float  # F - min F, the largest, in units of eps ln n
    least: float  # F - min F, the least, nat
    anywhere: float  # |w - argmin F|
    residual: float  # |w - S(w)|
    identical: float  # |w - prior| for identical primitives
    joint: float  # |joint KL - (F + ln Z)| of generative models with a cost


def check_identities(settings: TheorySettings) -> Identities:
    """Statements that need no path, against automatic differentiation and generic optimisers."""
    batches = random_problems(settings.seed, settings.problems)
    points = [random_weights(settings.seed + k, batch) for k, batch in enumerate(batches)]
    gradient, lowest, largest, bounds = zip(*map(differentiate, batches, points), strict=True)
    hot, cold, least, anywhere = zip(*map(limits_of, batches), strict=True)
    residual, identical = np.max([_gates(b) for b in batches], axis=0).tolist()
    return Identities(
        prox=map_proximally(settings),
        dissipation=max(float(_dissipation_errors(*pair).max()) for pair in zip(batches, points, strict=True)),
        gradient=max(gradient),
        smallest_eigenvalue=min(lowest),
        largest_eigenvalue=max(largest),
        median_bound=float(np.median(np.concatenate(bounds))),
        hot=max(hot),
        cold=max(cold),
        least=min(least),
        anywhere=max(anywhere),
        residual=residual,
        identical=identical,
        joint=sum_over_pairs(settings),
    )


def map_proximally(settings: TheorySettings, barrier: float = 1.0) -> float:
    """argmin_z barrier (sum z ln z) - |z|^2/2 + |x - z|^2/2 over the simplex against softmax(x)."""
    rng = np.random.default_rng(settings.seed)
    furthest = 0.0
    for _ in range(settings.judged):
        x = rng.normal(scale=1.5, size=rng.integers(2, 7))

        def value(z: np.ndarray, x: np.ndarray = x) -> float:
            return float(barrier * (np.sum(z * np.log(z)) - z @ z / 2) + (x - z) @ (x - z) / 2)

        def slope(z: np.ndarray, x: np.ndarray = x) -> np.ndarray:
            return barrier * (np.log(z) + 1.0 - z) - (x - z)

        weights = minimise_on_simplex(value, slope, np.full(x.size, 1.0 / x.size))
        furthest = max(furthest, float(np.abs(weights - np.exp(x - logsumexp(x))).max()))
    return furthest


def _dissipation_errors(batch: Any, w: np.ndarray) -> np.ndarray:
    """The relative error of the identity against the derivative of V along the velocity, by autodiff."""
    along = jax.jit(lambda batch, w, velocity: jax.jvp(lambda w: energy(batch, w), (w,), (velocity,))[1])
    response = np.asarray(gate(batch, w))
    with jax.enable_x64(True):
        rate = np.asarray(along(batch, w, response - w))
    stated = -fall(batch, w)
    return np.abs(rate - stated) / (np.abs(rate) + 1e-4)


def differentiate(
    batch: Problem, w: np.ndarray, value: Callable[..., Any] = complexity
) -> tuple[float, float, float, np.ndarray]:
    """(error of the gradient of F, least eigenvalue of its Hessian, largest in units of L_F, L_F)."""
    both = jax.vmap(lambda posed, w: (jax.grad(value, argnums=1)(posed, w), jax.hessian(value, argnums=1)(posed, w)))
    with jax.enable_x64(True):
        slope, bend = (np.asarray(a) for a in jax.jit(both)(batch, w))
    eigenvalues = np.linalg.eigvalsh(bend)
    bound = np.asarray(batch.pi.shape[-1] * batch.pi.max((1, 2)) / batch.pi.min((1, 2)))
    error = float(np.abs(slope - primitive_cost(batch, w) - 1.0).max())
    return error, float(eigenvalues.min()), float((eigenvalues[:, -1] / bound).max()), bound


HOT_EPS, COLD_EPS = 1e4, 1e-4


def limits_of(batch: Problem, temperatures: tuple[float, float] = (HOT_EPS, COLD_EPS)) -> tuple[float, ...]:
    """Hot: uniform. Cold: the minimiser of F, since 0 <= F(w_eps) - min F <= eps ln n; in weights it is only shown."""
    n = batch.log_prior.shape[-1]
    uniform = np.full_like(batch.log_prior, -np.log(n))
    hot, cold = (
        solve(batch._replace(eps=np.full_like(batch.eps, eps), log_prior=uniform)).weights for eps in temperatures
    )
    judged = np.stack([_minimise_complexity(batch, i) for i in range(batch.eps.size)])
    above = np.asarray(complexity(batch, cold) - complexity(batch, judged))
    return (
        float(np.abs(hot - np.exp(uniform)).max()), float(above.max() / (COLD_EPS * np.log(n))), float(above.min()),
        float(np.abs(cold - judged).max()),
    )  # fmt: skip


def _minimise_complexity(batch: Problem, index: int) -> np.ndarray:
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


def _gates(batch: Problem) -> tuple[float, float]:
    """How far optima are from fixed points of the prior-weighted softmax, and from the prior of equal primitives."""
    w = exact(batch, 1e-24)
    same = batch._replace(pi=np.broadcast_to(batch.pi[..., :1], batch.pi.shape))
    return float(np.abs(w - gate(batch, w)).max()), float(np.abs(solve(same).weights - np.exp(same.log_prior)).max())


def sum_over_pairs(settings: TheorySettings, by_action: bool = False, value: Callable[..., Any] = complexity) -> float:
    """|KL - (F + ln Z)|, KL of p(x|u) policy(u) from q(x|u) q(u) exp(-c(x, u))/Z, summed over all pairs.

    Generative models of five states with a cost c are drawn at random; rows are actions. `by_action` gives each action
    a constant of its own, as if the model of the next state were normalised alone.
    """
    rng, worst = np.random.default_rng(settings.seed), 0.0
    for k in range(settings.judged):
        d, n = SHAPES[k % len(SHAPES)]
        p, q = rng.dirichlet(np.ones(5), (2, d))
        prior, cost = rng.dirichlet(np.ones(d)), rng.normal(scale=2.0, size=(d, 5))
        posed = problem(
            pi=rng.dirichlet(np.ones(d), n).T, eps=1.0,
            action_cost=np.sum(p * (np.log(p / q) + cost), axis=-1) - np.log(prior),
        )  # fmt: skip
        twisted = q * prior[:, None] * np.exp(-cost)
        if by_action:
            twisted *= (prior / twisted.sum(1))[:, None]
        for w in rng.dirichlet(np.ones(n), 3):
            joint = p * (posed.pi @ w)[:, None]
            divergence = float(np.sum(joint * np.log(joint * twisted.sum() / twisted)))
            worst = max(worst, abs(divergence - float(value(posed, w)) - float(np.log(twisted.sum()))))
    return worst


# ------------------------------------------------------------------------------ other complexities


class OtherComplexity(NamedTuple):
    """The statements T1, T2 and T4 to T7 on problems with another complexity: the worst number of each."""

    problems: int
    sum_off: float  # |sum - 1| along the flow
    smallest: float  # weight along it
    end: float  # |w - optimum| at its end, the optimum by an independent method
    judge: float  # residual of that optimum
    dissipation: float  # relative
    energy: float  # gap - bound
    distance: float  # distance - bound
    above: float  # (V - V*) - eps KL(w, S)
    below: float  # eps KL(w, w*) - (V - V*)


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
        _transport, lambda w, p: -np.exp(-p[0]).T @ (p[1] / (np.exp(-p[0]) @ w)),
        lambda rng, count: (3.0 * rng.random((count, 8, WEIGHTS)), rng.dirichlet(np.ones(8), count)),
    ),
    "log-sum-exp": _Complexity(
        _log_sum_exp, lambda w, p: p[0].T @ softmax(p[0] @ w + p[1]),
        lambda rng, count: (3.0 * rng.normal(size=(count, 9, WEIGHTS)), rng.normal(size=(count, 9))),
    ),
}  # fmt: skip


def _complexity_of(w: Any, choice: Any) -> Any:
    """The complexity that `kind`, a one among zeros, points at: one program serves all of them."""
    kind, parameters = choice
    return kind @ jnp.stack([other.value(w, parameters[name]) for name, other in COMPLEXITIES.items()])


def other_problems(seed: int, count: int) -> Any:
    """So many random problems of each other complexity in one batch: hot and cold, each with a prior."""
    rng = np.random.default_rng(seed)
    total = count * len(COMPLEXITIES)
    parameters = {name: other.draw(rng, total) for name, other in COMPLEXITIES.items()}
    return problem(
        complexity=_complexity_of, n=WEIGHTS,
        parameters=(np.repeat(np.eye(len(COMPLEXITIES)), count, axis=0), parameters),
        eps=10 ** rng.uniform(-1.5, 0.5, total), prior=rng.dirichlet(np.full(WEIGHTS, 2.0), total),
    )  # fmt: skip


def minimise_other(batch: Any, index: int) -> IndependentOptimum:
    """The weights of least energy of one problem with another complexity, from its gradient by hand."""
    kind, parameters = jax.tree.map(lambda leaf: leaf[index], batch.parameters)
    name = list(COMPLEXITIES)[int(np.argmax(kind))]
    other, own = COMPLEXITIES[name], parameters[name]
    return minimise_with_entropy(
        lambda w: float(other.value(w, own, np)), lambda w: other.slope(w, own), float(batch.eps[index]),
        batch.log_prior[index],
    )  # fmt: skip


def check_others(settings: TheorySettings) -> dict[str, OtherComplexity]:
    """Lemmas and theorem on problems with other complexities, by complexity."""
    count = settings.others
    batch = other_problems(settings.seed, count)
    judged = [minimise_other(batch, i) for i in range(batch.eps.size)]
    best = np.stack([judgement.weights for judgement in judged])
    start = random_weights(settings.seed, batch)
    path = flow(batch, t1=3 * settings.horizon, start=start, save=3 * 200 + 1)
    times, weights, heights = map(np.asarray, (path.times, path.weights, path.energy))
    paths = Paths(batch, times, weights, heights, best, np.asarray(energy(batch, best)), slowest=np.empty(0))
    (_, gap, least_fall), (_, distance, faded) = bounded_gaps(settings, paths), bounded_distances(settings, paths)
    early = weights[:, within_horizon(settings, paths)]
    bounds = (certify_at(batch, best, w) for w in (start, 0.999 * best + 0.001 * start))
    off, certified, below = (np.stack(column) for column in zip(*bounds, strict=True))
    each = {
        "sum_off": np.abs(early.sum(-1) - 1.0).max(-1),
        "smallest": early.min((-2, -1)),
        "end": np.abs(weights[:, -1] - best).max(-1),
        "judge": np.array([judgement.residual for judgement in judged]),
        "dissipation": _dissipation_errors(batch, start),
        "energy": (gap - least_fall)[:, 1:].max(-1),
        "distance": (distance - faded).max(-1),
        "above": (off - certified).max(0),
        "below": (below - off).max(0),
    }
    return {
        name: OtherComplexity(count, **{
            key: float((np.min if key == "smallest" else np.max)(values[k * count : (k + 1) * count]))
            for key, values in each.items()
        })
        for k, name in enumerate(COMPLEXITIES)
    }  # fmt: skip
