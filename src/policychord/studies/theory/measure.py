"""What is measured without following a path: identities, bounds, limits. Each is a step of the work."""

from typing import NamedTuple

import jax
import numpy as np
from scipy.special import logsumexp

from ...core.equilibrium import solve
from ...core.flow import dissipation
from ...core.objective import Problem, certify, complexity, energy, gate, primitive_cost
from ..claim import Finding, reproduced_if
from .judges import minimise_complexity, minimise_energy, on_simplex
from .paths import EXACT
from .problems import random_problems, random_weights
from .settings import TheorySettings


class Certified(NamedTuple):
    """Weights near and far from the optimum: how far off they are, and what bounds that from both sides."""

    suboptimality: np.ndarray  # V - V*
    above: np.ndarray  # eps KL(w, S(w)), the certificate
    below: np.ndarray  # eps KL(w, w*)


def judged_optima(settings: TheorySettings) -> list[np.ndarray]:
    """For each shape, the optima of its first problems by an independent optimiser."""
    share = -(-settings.judged // 3)
    return [
        np.stack([minimise_energy(batch, i) for i in range(min(share, batch.eps.size))])
        for batch in random_problems(settings.seed, settings.problems)
    ]


def prox_is_softmax(settings: TheorySettings) -> Finding:
    """argmin_z sum z ln z - |z|^2/2 + |x - z|^2/2 over the simplex against softmax(x)."""
    rng = np.random.default_rng(settings.seed)
    furthest = 0.0
    for _ in range(settings.judged):
        x = rng.normal(scale=1.5, size=rng.integers(2, 7))
        found = on_simplex(
            lambda z, x=x: float(np.sum(z * np.log(z)) - z @ z / 2 + (x - z) @ (x - z) / 2),
            lambda z, x=x: np.log(z) + 1.0 - z - (x - z),
            np.full(x.size, 1.0 / x.size),
        )
        furthest = max(furthest, float(np.abs(found - np.exp(x - logsumexp(x))).max()))
    return Finding({"largest |prox - softmax|": furthest, "points": settings.judged}, reproduced_if(furthest <= 1e-6))


def energy_dissipates(settings: TheorySettings) -> Finding:
    """The identity against the derivative of V along the velocity, by automatic differentiation."""
    worst, points = 0.0, 0
    for k, batch in enumerate(random_problems(settings.seed, settings.problems)):
        w = random_weights(settings.seed + k, batch)
        with jax.enable_x64(True):
            rate = np.asarray(_energy_rate(batch, w, gate(batch, w) - w))
        worst = max(worst, float((np.abs(rate - dissipation(batch, w)) / (np.abs(rate) + 1e-4)).max()))
        points += len(w)
    return Finding({"largest relative error": worst, "points": points}, reproduced_if(worst <= 1e-6))


@jax.jit
def _energy_rate(batch: Problem, w, velocity):
    return jax.jvp(lambda w: energy(batch, w), (w,), (velocity,))[1]


def certified(settings: TheorySettings) -> Certified:
    """Random weights, and weights near the optimum, with the bounds on their suboptimality."""
    rows = []
    for k, batch in enumerate(random_problems(settings.seed, settings.problems)):
        best = solve(batch, tol=EXACT).weights
        for w in (random_weights(settings.seed + k, batch), 0.999 * best + 0.001 * random_weights(k, batch)):
            off = energy(batch, w) - energy(batch, best)
            rows.append((off, certify(batch, w).gap, batch.eps * (w * np.log(w / best)).sum(-1)))
    return Certified(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def gradient_and_curvature(settings: TheorySettings) -> Finding:
    error, lowest, largest, constant = 0.0, np.inf, 0.0, []
    for k, batch in enumerate(random_problems(settings.seed, settings.problems)):
        w = random_weights(settings.seed + k, batch)
        with jax.enable_x64(True):
            slope, bend = (np.asarray(a) for a in _slope_and_bend(batch, w))
        error = max(error, float(np.abs(slope - primitive_cost(batch, w) - 1.0).max()))
        eigenvalues = np.linalg.eigvalsh(bend)
        bound = batch.pi.shape[-1] * batch.pi.max((1, 2)) / batch.pi.min((1, 2))
        lowest, largest = min(lowest, float(eigenvalues.min())), max(largest, float((eigenvalues[:, -1] / bound).max()))
        constant.append(bound)
    measured = {
        "gradient error": error,
        "smallest eigenvalue": lowest,
        "largest eigenvalue / L_F": largest,
        "L_F, median": float(np.median(np.concatenate(constant))),
    }
    return Finding(measured, reproduced_if(error <= 1e-10 and lowest >= -1e-10 and largest <= 1 + 1e-10))


@jax.jit
def _slope_and_bend(batch: Problem, w):
    return jax.vmap(jax.grad(complexity, argnums=1))(batch, w), jax.vmap(jax.hessian(complexity, argnums=1))(batch, w)


def temperature_limits(settings: TheorySettings) -> Finding:
    """Hot: uniform. Cold: the minimiser of F, compared in F and, where F is curved enough to place it, in weights.

    The weights miss the minimiser by about eps over the curvature of F along the simplex: judged where that
    curvature is at least 1/4, and reported for all.
    """
    hot = cold = placed = anywhere = 0.0
    for batch in random_problems(settings.seed, settings.problems):
        share = Problem(*(field[: -(-settings.judged // 3)] for field in batch))
        uniform = np.full_like(share.log_prior, -np.log(share.log_prior.shape[-1]))
        heated = share._replace(eps=np.full_like(share.eps, 1e4), log_prior=uniform)
        cooled = share._replace(eps=np.full_like(share.eps, 1e-4), log_prior=uniform)
        hot = max(hot, float(np.abs(solve(heated).weights - np.exp(uniform)).max()))
        w, judged = solve(cooled).weights, np.stack([minimise_complexity(share, i) for i in range(share.eps.size)])
        cold = max(cold, float((complexity(share, w) - complexity(share, judged)).max()))
        miss = np.abs(w - judged).max(-1)
        placed = max(placed, float(miss.max(where=curvature_along_simplex(share, judged) >= 0.25, initial=0.0)))
        anywhere = max(anywhere, float(miss.max()))
    measured = {
        "|w - uniform| at eps 1e4": hot,
        "F - min F at eps 1e-4": cold,
        "|w - argmin F| at eps 1e-4, F curved": placed,
        "the same, F nearly flat": anywhere,
    }
    return Finding(measured, reproduced_if(max(hot, cold, placed) <= 1e-3))


def curvature_along_simplex(batch: Problem, weights: np.ndarray) -> np.ndarray:
    """The least eigenvalue of the Hessian of F on directions that keep the sum of the weights."""
    n = weights.shape[-1]
    mixture = np.maximum(batch.pi @ weights[..., None], 1e-300)
    hessian = np.swapaxes(batch.pi, -1, -2) @ (batch.pi / mixture)
    tangent = np.linalg.svd(np.ones((1, n)))[2][1:]
    return np.linalg.eigvalsh(tangent @ hessian @ tangent.T)[..., 0]


def prior_weighted_gate(settings: TheorySettings) -> Finding:
    residual = identical = 0.0
    for batch in random_problems(settings.seed, settings.problems):
        w = solve(batch, tol=1e-26).weights
        residual = max(residual, float(np.abs(w - gate(batch, w)).max()))
        same = batch._replace(pi=np.broadcast_to(batch.pi[..., :1], batch.pi.shape))
        identical = max(identical, float(np.abs(solve(same).weights - np.exp(same.log_prior)).max()))
    measured = {"largest |w - S(w)|": residual, "identical primitives, largest |w - prior|": identical}
    return Finding(measured, reproduced_if(max(residual, identical) <= 1e-10))
