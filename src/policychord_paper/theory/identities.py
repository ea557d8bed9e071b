"""Statements that need no path, against automatic differentiation and generic optimisers."""

from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import logsumexp

from policychord import Problem, complexity, energy, gate, primitive_cost, problem, solve

from .optima import minimise_on_simplex
from .problems import SHAPES, exact, pick, random_problems, random_weights
from .settings import TheorySettings


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
    corner: float  # |S(w) - e_i| at a temperature of 1e-3 of the gap between the two lowest entries of the gradient
    blunt: float  # the same at that gap
    joint: float  # |joint KL - (F + ln Z)| of generative models with a cost


def check_identities(settings: TheorySettings) -> Identities:
    """Statements that need no path, against automatic differentiation and generic optimisers."""
    batches = random_problems(settings.seed, settings.problems)
    points = [random_weights(settings.seed + k, batch) for k, batch in enumerate(batches)]
    gradient, lowest, largest, bounds = zip(*map(_differentiate, batches, points), strict=True)
    hot, cold, least, anywhere = zip(*map(_limits, batches), strict=True)
    residual, identical = np.max([_gates(b) for b in batches], axis=0).tolist()
    corner, blunt = np.max(list(map(_cool, batches, points)), axis=0).tolist()
    return Identities(
        prox=_map_proximally(settings),
        dissipation=max(float(dissipation_errors(*pair).max()) for pair in zip(batches, points, strict=True)),
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
        corner=corner,
        blunt=blunt,
        joint=_sum_over_pairs(settings),
    )


def _map_proximally(settings: TheorySettings) -> float:
    """argmin_z sum z ln z - |z|^2/2 + |x - z|^2/2 over the simplex against softmax(x)."""
    rng = np.random.default_rng(settings.seed)
    furthest = 0.0
    for _ in range(settings.judged):
        x = rng.normal(scale=1.5, size=rng.integers(2, 7))

        def value(z: np.ndarray, x: np.ndarray = x) -> float:
            return float(np.sum(z * np.log(z)) - z @ z / 2 + (x - z) @ (x - z) / 2)

        def slope(z: np.ndarray, x: np.ndarray = x) -> np.ndarray:
            return np.log(z) + 1.0 - z - (x - z)

        weights = minimise_on_simplex(value, slope, np.full(x.size, 1.0 / x.size))
        furthest = max(furthest, float(np.abs(weights - np.exp(x - logsumexp(x))).max()))
    return furthest


def dissipation_errors(batch: Any, w: np.ndarray) -> np.ndarray:
    """The relative error of the identity against the derivative of V along the velocity, by autodiff."""
    along = jax.jit(lambda batch, w, velocity: jax.jvp(lambda w: energy(batch, w), (w,), (velocity,))[1])
    response = np.asarray(gate(batch, w))
    with jax.enable_x64(True):
        rate = np.asarray(along(batch, w, response - w))
    stated = -batch.eps * np.sum((w - response) * np.log(w / response), axis=-1)
    return np.abs(rate - stated) / (np.abs(rate) + 1e-4)


def _differentiate(batch: Problem, w: np.ndarray) -> tuple[float, float, float, np.ndarray]:
    """(error of the gradient of F, least eigenvalue of its Hessian, largest in units of L_F, L_F)."""
    both = jax.vmap(
        lambda posed, w: (jax.grad(complexity, argnums=1)(posed, w), jax.hessian(complexity, argnums=1)(posed, w))
    )
    with jax.enable_x64(True):
        slope, bend = (np.asarray(a) for a in jax.jit(both)(batch, w))
    eigenvalues = np.linalg.eigvalsh(bend)
    bound = np.asarray(batch.pi.shape[-1] * batch.pi.max((1, 2)) / batch.pi.min((1, 2)))
    error = float(np.abs(slope - primitive_cost(batch, w) - 1.0).max())
    return error, float(eigenvalues.min()), float((eigenvalues[:, -1] / bound).max()), bound


def _limits(batch: Problem) -> tuple[float, float, float, float]:
    """Hot: uniform. Cold: the minimiser of F, since 0 <= F(w_eps) - min F <= eps ln n; in weights it is only shown."""
    n, cold_eps = batch.log_prior.shape[-1], 1e-4
    uniform = np.full_like(batch.log_prior, -np.log(n))
    hot, cold = (
        solve(batch._replace(eps=np.full_like(batch.eps, eps), log_prior=uniform)).weights for eps in (1e4, cold_eps)
    )
    judged = np.stack([_minimise_complexity(batch, i) for i in range(batch.eps.size)])
    above = np.asarray(complexity(batch, cold) - complexity(batch, judged))
    return (
        float(np.abs(hot - np.exp(uniform)).max()), float(above.max() / (cold_eps * np.log(n))), float(above.min()),
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


def _cool(batch: Problem, w: np.ndarray) -> tuple[float, float]:
    """How far the gate is from the vertex of steepest descent, at 1e-3 and at 1 of the gap between the two lowest."""
    slope = np.asarray(primitive_cost(batch, w))
    lowest, second = np.sort(slope, axis=-1)[:, :2].T
    vertex = np.eye(slope.shape[-1])[np.argmin(slope, axis=-1)]
    cooled = (gate(batch._replace(eps=share * (second - lowest)), w) for share in (1e-3, 1.0))
    near, far = (float(np.linalg.norm(response - vertex, axis=-1).max()) for response in cooled)
    return near, far


def _gates(batch: Problem) -> tuple[float, float]:
    """How far optima are from fixed points of the prior-weighted softmax, and from the prior of equal primitives."""
    w = exact(batch, 1e-24)
    same = batch._replace(pi=np.broadcast_to(batch.pi[..., :1], batch.pi.shape))
    return float(np.abs(w - gate(batch, w)).max()), float(np.abs(solve(same).weights - np.exp(same.log_prior)).max())


def _sum_over_pairs(settings: TheorySettings) -> float:
    """The divergence of joint distributions, summed over all pairs of state and action, against F + ln Z."""
    rng, worst = np.random.default_rng(settings.seed), 0.0
    for k in range(settings.judged):
        d, n = SHAPES[k % len(SHAPES)]
        model = _generative_model(rng, d, 5)
        p, q, prior, cost = model
        posed = problem(
            pi=rng.dirichlet(np.ones(d), n).T, eps=1.0,
            action_cost=np.sum(p * (np.log(p / q) + cost), axis=-1) - np.log(prior),
        )  # fmt: skip
        for w in rng.dirichlet(np.ones(n), 3):
            joint, log_z = _joint_divergence(posed.pi @ w, model)
            worst = max(worst, abs(joint - float(complexity(posed, w)) - log_z))
    return worst


def _generative_model(rng: np.random.Generator, d: int, states: int) -> tuple[np.ndarray, ...]:
    """p(x|u), q(x|u), q(u) and a cost c(x, u) of finitely many states and actions: rows are actions."""
    p, q = rng.dirichlet(np.ones(states), (2, d))
    return p, q, rng.dirichlet(np.ones(d)), rng.normal(scale=2.0, size=(d, states))


def _joint_divergence(policy: np.ndarray, model: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """KL of p(x|u) policy(u) from q(x|u) q(u) exp(-c(x, u))/Z, summed over all pairs, and ln Z."""
    p, q, prior, cost = model
    twisted = q * prior[:, None] * np.exp(-cost)
    joint = p * policy[:, None]
    return float(np.sum(joint * np.log(joint * twisted.sum() / twisted))), float(np.log(twisted.sum()))
