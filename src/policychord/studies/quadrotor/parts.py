"""Agents of the quadrotor study: controllers flown alone, and composers of two of them."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...actions import Grid
from ...agent import Composer, Decision
from ...core.objective import Certificate
from ...envs.paths import path
from ...envs.quadrotor import HOVER, LARGEST_THRUST, LEAST_THRUST, Quadrotor, saturated
from ...models.cost import Cost
from ...primitives.gaussian import Gaussian
from .controllers import Cascade, Controller, Lqr, hover_model, regulator
from .settings import Composition, Experiment, QuadrotorSettings

FIXED = "fixed 50/50"


class Pilot(eqx.Module):
    """A fixed mixture of two controllers' commands, u = share u1 + (1 - share) u2: an agent whose weights never change.

    With a share of one, a controller flown alone. Only controllers without integrals may be mixed.
    """

    first: Controller
    second: Controller
    share: Float[Array, ""]
    names: ClassVar[tuple[str, ...]] = ("first", "second")  # the same for all, so that one compilation serves all

    def start(self):
        return self.first.start()

    def decide(self, key, view, k, memory) -> Decision:
        thrust, memory = self.first.act(view, k, memory)
        weights = jnp.stack([self.share, 1.0 - self.share])
        thrust = weights @ jnp.stack([saturated(thrust), saturated(self.second(view, k))])
        nothing = jnp.zeros(())
        return Decision(thrust, weights, Certificate(nothing, nothing), jnp.asarray(True), memory)


class Within(eqx.Module):
    """A controller whose commands are cut to what the motors can do."""

    controller: Controller

    def __call__(self, view, k) -> Float[Array, "2"]:
        return saturated(self.controller(view, k))


class Tracking(eqx.Module):
    """c(x'(u), u) = (x' - r)^T M (x' - r) + q |u - hover|^2, x' = A x + B (u - hover), r the path's next row.

    A quadratic in d = u - hover: d^T (q I + B^T M B) d + 2 d^T B^T M f + f^T M f, f = A x - r. Written so, a price
    takes a few multiplications instead of two matrices for each of 900 actions. The last term is the same for all of
    them, but the one-step gate has a floor under exp(-c) and so takes notice of it.
    """

    path: Float[Array, "sample 6"]
    A: Float[Array, "6 6"]
    M: Float[Array, "6 6"]
    slope: Float[Array, "2 6"]  # 2 B^T M
    bend: Float[Array, "2 2"]  # q I + B^T M B

    def __init__(self, path, A, B, M, thrust_weight: float):
        self.path, self.A, self.M = jnp.asarray(path), jnp.asarray(A), jnp.asarray(M)
        self.slope, self.bend = jnp.asarray(2 * B.T @ M), jnp.asarray(thrust_weight * np.eye(2) + B.T @ M @ B)

    def __call__(self, view, thrust, k) -> Float[Array, ""]:
        row = self.path[jnp.minimum(k + 1, len(self.path) - 1)]
        free = self.A @ view.x - row
        linear, constant = self.slope @ free, free @ self.M @ free
        (a, b), ((aa, ab), (_, bb)) = thrust - HOVER, self.bend
        return (aa * a + 2 * ab * b + linear[0]) * a + (bb * b + linear[1]) * b + constant


def world(settings: QuadrotorSettings, experiment: Experiment) -> Quadrotor:
    """The drone of an experiment; only that with LQR primitives meets an impulse."""
    return Quadrotor(
        path(settings.path, steps=settings.steps, scale=settings.scale, period=settings.period),
        start=settings.start,
        disturbance=settings.disturbance,
        force_sd=settings.force_sd,
        thrust_sd=settings.thrust_sd,
        impulse=settings.impulse if experiment == "lqr" else 0.0,
        drag=settings.drag,
        state_weights=settings.cost.state,
        thrust_weight=settings.cost.thrust,
    )


def controllers(settings: QuadrotorSettings, experiment: Experiment) -> dict[str, Controller]:
    """The two primitives and the baseline."""
    along = path(settings.path, steps=settings.steps, scale=settings.scale, period=settings.period)
    cascades = {
        "stabilise": Cascade(along, settings.pd_stabilise, hold=True),
        "track": Cascade(along, settings.pd_track),
        "baseline": Cascade(along, settings.pid_baseline),
    }
    regulators = {
        "stabilise": Lqr(along, settings.lqr_stabilise, hold=True),
        "track": Lqr(along, settings.lqr_track),
        "baseline": Lqr(along, settings.lqr_baseline),
    }
    return {name: Controller(cascades[name], regulators[name], experiment == "lqr") for name in cascades}


def pilot(settings: QuadrotorSettings, experiment: Experiment, name: str) -> Pilot:
    """A primitive or the baseline alone, or the fixed mixture of the primitives."""
    flown = controllers(settings, experiment)
    if name == FIXED:
        return Pilot(flown["stabilise"], flown["track"], jnp.asarray(0.5))
    return Pilot(flown[name], flown[name], jnp.asarray(1.0))


def composer(settings: QuadrotorSettings, experiment: Experiment, how: Composition) -> Composer:
    """Two Gaussian primitives around the controllers' commands, and the tracking cost as the generative model.

    s(u) = (x' - r)^T M (x' - r) + r_u |u - hover|^2 with x' from the drone's model near hover and r the path's next
    row. M = Q counts one step; M = P, the cost-to-go of the baseline's LQR, all that follow.
    """
    flown = controllers(settings, experiment)
    along = flown["track"].lqr.path
    # the released scripts, whose gate this is, predict by the exact solution of the linear model
    A, B = hover_model(exact=how.gate == "one-step")
    M = regulator(settings.lqr_baseline)[1] if how.horizon == "cost-to-go" else np.diag(settings.cost.state)
    model = Cost(Tracking(along, A, B, M, settings.cost.thrust))
    primitives = {name: Gaussian(Within(flown[name]), how.spread) for name in ("stabilise", "track")}
    grid = Grid([LEAST_THRUST - how.margin] * 2, [LARGEST_THRUST + how.margin] * 2, how.points)
    return Composer(primitives, model, grid, how.eps, gate=how.gate, selection=how.selection)
