"""Planners that know the same model and none of the primitives: what a composition has to beat."""

import jax.numpy as jnp
import numpy as np

from ._types import ArrayLike
from .actions import AbstractActions, Finite
from .agent import Commitment, Composer, Planner
from .agent.plan import By, Predict, Stage
from .models import Cost
from .primitives import Gaussian, Table


def mppi(
    actions: AbstractActions,
    predict: Predict,
    stage_cost: Stage,
    *,
    steps: int = 30,
    samples: int = 64,
    knots: int = 8,
    noise: ArrayLike = 0.1,
    temperature: ArrayLike = 0.5,
    nominal: ArrayLike | None = None,
    by: By = "samples",
    seed: int = 0,
) -> Planner:
    """Model-predictive path integral control: `agent.Planner` around one constant action, free in all of its steps.

    `nominal` is that action, the middle of the range unless given; a decision takes `samples` times `steps` simulated
    steps. The other settings are those of `Planner`, and their defaults were chosen by the same rule as there.
    """
    middle = (jnp.max(actions.points, axis=0) + jnp.min(actions.points, axis=0)) / 2 if nominal is None else nominal
    still = {"plan": Gaussian(jnp.asarray(middle, dtype=float), 1.0)}
    composer = Composer(still, Cost(lambda x, u, k: 0.0), actions, 1.0, gate="prior", selection="mean")
    return Planner(
        composer, predict, stage_cost, steps=steps, samples=samples, free=steps, knots=min(knots, steps), noise=noise,
        temperature=temperature, by=by, seed=seed,
    )  # fmt: skip


def gradient(
    actions: AbstractActions, predict: Predict, stage_cost: Stage, *, steps: int = 30, samples: int = 64,
    knots: int = 8, noise: ArrayLike = 0.1, nominal: ArrayLike | None = None,
) -> Planner:  # fmt: skip
    """Descent of the cost's gradient in the actions, for models that can be differentiated: `mppi` without its average.

    A decision takes a quarter of `samples` as steps along the gradient, which cost about as much as `samples`
    simulations; the first step is `noise` long, in units of half the range.
    """
    settings = {"steps": steps, "samples": samples, "knots": knots, "noise": noise, "nominal": nominal}
    return mppi(actions, predict, stage_cost, by="gradient", **settings)


def random_shooting(
    actions: Finite,
    predict: Predict,
    stage_cost: Stage,
    *,
    steps: int = 30,
    samples: int = 64,
    hold: int = 1,
    temperature: ArrayLike = 0.15,
    seed: int = 0,
) -> Commitment:
    """Random sequences of labels, each held for `hold` steps; the best one is kept: `agent.Commitment` of constants."""
    if not actions.labels:
        raise ValueError("random_shooting draws sequences of labels, and these actions are numbers: use mppi.")
    constants = {f"action {i}": Table(row) for i, row in enumerate(np.eye(actions.size))}
    composer = Composer(constants, Cost(np.zeros(actions.size)), actions, 1.0, gate="prior")
    return Commitment(
        composer, predict, stage_cost, steps=steps, samples=samples, hold=hold, temperature=temperature, seed=seed
    )
