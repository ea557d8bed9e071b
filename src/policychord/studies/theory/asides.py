"""Measurements beside the claims: a prior as an input, a gate that is iterated, an integrator with its defaults."""

from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from ...core.equilibrium import solve
from ...core.objective import Problem, energy, gate
from ...core.stability import curvatures
from .paths import EXACT
from .problems import SHAPES, random_problems, random_weights
from .settings import TheorySettings

STEPS = 2000  # of the iterated gate
SETTLED = 1e-6


class Asides(NamedTuple):
    """What the controls and passages of this study say, in numbers."""

    prior_moves: dict[str, float]  # by shape: farthest that a prior given as an input leaves the weights from theirs
    stuck: int  # random problems on which w <- S(w) does not settle
    predicted: int  # of which the theory says so: mu > eps
    tried: int
    violations: dict[str, int]  # of the energy bound along a path, by tolerance of the integrator
    paths: int


def look_aside(settings: TheorySettings) -> Asides:
    """All of them, on the random problems."""
    batches = random_problems(settings.seed, settings.problems)
    stuck, predicted = zip(*(_iterated(batch) for batch in batches), strict=True)
    moved = {f"{d} actions, {n} primitives": _prior_as_input(b) for (d, n), b in zip(SHAPES, batches, strict=True)}
    broken = {"default tolerances": {}, "rtol 1e-10": {"rtol": 1e-10, "atol": 1e-13}}
    share = -(-settings.judged // 3)
    few = [(Problem(*(f[:share] for f in b)), random_weights(settings.seed + k, b)) for k, b in enumerate(batches)]
    return Asides(
        moved, int(np.sum(np.concatenate(stuck))), int(np.sum(np.concatenate(predicted))),
        sum(batch.eps.size for batch in batches),
        {name: sum(_violates(batch, start, given) for batch, start in few) for name, given in broken.items()},
        sum(batch.eps.size for batch, _ in few),
    )  # fmt: skip


def _prior_as_input(batch: Problem) -> float:
    """The prior moved into s by the best change there is, Pi^T x = -eps ln prior, and what that does to the weights."""
    n = batch.log_prior.shape[-1]
    uniform = np.full_like(batch.log_prior, -np.log(n))
    wanted = -batch.eps[:, None] * batch.log_prior
    change = (np.linalg.pinv(np.swapaxes(batch.pi, -1, -2)) @ wanted[..., None])[..., 0]
    as_input = batch._replace(action_cost=batch.action_cost + change, log_prior=uniform)
    return float(np.abs(solve(as_input, tol=EXACT).weights - solve(batch, tol=EXACT).weights).max())


def _iterated(batch: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(which problems are not settled after many undamped steps, for which the linearisation says so)."""
    w = np.exp(batch.log_prior)
    for _ in range(STEPS):
        w = np.asarray(gate(batch, w))
    off = np.abs(w - solve(batch, tol=EXACT).weights).max(-1)
    return off > SETTLED, curvatures(batch)[:, 0] > batch.eps


def _violates(batch: Problem, start: np.ndarray, tolerances: dict[str, float]) -> int:
    """On how many problems a path of SciPy's RK45 exceeds the energy bound by more than 1e-10."""
    times = np.linspace(0.0, 20.0, 101)
    count = 0
    best = energy(batch, solve(batch, tol=EXACT).weights)
    for i in range(batch.eps.size):
        one = Problem(*(field[i] for field in batch))
        path = solve_ivp(lambda t, w, one=one: gate(one, w) - w, (0.0, 20.0), start[i], t_eval=times, **tolerances)
        many = Problem(*(field[None] for field in one))
        gap = energy(many, np.maximum(path.y.T, 1e-300)) - best[i]
        count += bool((gap > np.exp(-times) * gap[0] + 1e-10).any())
    return count
