"""Who flies: the PID cascade with its PD variants, LQR, fixed mixtures of them, composers, and the drone's world."""

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import expm

from ..._types import Time
from ...actions import Grid
from ...agent import Composer, Decision, gate_in_time
from ...agent.gates import bias
from ...core._method import Outcome
from ...core.objective import Certificate
from ...models.cost import Cost
from ...models.cost_to_go import Regulator, riccati
from ...primitives.gaussian import Gaussian
from .physics import (
    ARM,
    DT,
    GRAVITY,
    HOVER,
    INERTIA,
    KF,
    LARGEST_PWM,
    LARGEST_THRUST,
    LEAST_PWM,
    LEAST_THRUST,
    MASS,
    PWM_OFFSET,
    PWM_SLOPE,
    Quadrotor,
    QuadrotorView,
    path,
    saturated,
)
from .settings import CompositionSettings, CostWeights, Experiment, Gains, QuadrotorSettings

Path = Float[np.ndarray, "sample 6"]
Matrices = tuple[np.ndarray, np.ndarray]
Thrusts = Float[Array, "2"]
Integrals = Float[Array, "2"]  # of the position's error

MOST_TURN = 3200.0  # PWM
MOST_INTEGRAL = np.array([2.0, 0.15])  # of x and z, in m s

ALONE = ("baseline", "stabilise", "track")
FIXED = "fixed 50/50"
BASELINE: dict[Experiment, str] = {"pd": "PID", "lqr": "LQR"}
Composed = Literal[
    "equilibrium, sample", "equilibrium, sample, wide", "equilibrium, dither", "equilibrium, mean",
    "equilibrium, mean, wide", "one-step gate", "cost-to-go", "cost-to-go, warm",
]  # fmt: skip
# by name: how it composes; None is a controller alone or the fixed mixture
Roster = dict[str, CompositionSettings | None]


class _Controller(eqx.Module):
    """A PID cascade or an LQR, whichever is chosen.

    Cascade: F = kp e + ki I + kd e' + (0, m g), S = max(0, Fx sin p + Fz cos p), base = (sqrt(S/4 KF) - offset)/slope,
    aim = atan2(Fx, Fz), turn = clip( -kp 2 sin(p - aim) - kd (p - p_before)/dt ), PWM = base -+ turn/2.
    LQR: u = hover - K (x - path[k]).
    With `hold` either takes its own position, at rest, for the path: it stabilises and goes nowhere.
    Both are worked out and one is taken: that is little next to 900 actions, and one compiled program serves all.
    """

    path: Float[Array, "sample 6"]
    position_gains: Float[Array, "3 2"]  # proportional, integral, derivative of x and z
    pitch_gains: Float[Array, "2"]
    gain: Float[Array, "2 6"]
    lqr: Float[Array, ""]  # 1 if it is the LQR
    hold: Float[Array, ""]
    dt: float = eqx.field(static=True)

    def __init__(self, path: Path, gains: Gains, weights: CostWeights, lqr: bool, dt: float, hold: bool = False):
        self.dt = dt
        self.path = jnp.asarray(path)
        self.position_gains = jnp.asarray(np.stack([gains.x, gains.z], axis=-1))
        self.pitch_gains, self.gain = jnp.asarray(gains.pitch, dtype=float), jnp.asarray(_regulator(weights, dt)[0])
        self.lqr, self.hold = jnp.asarray(float(lqr)), jnp.asarray(float(hold))

    def start(self) -> Integrals:
        """The integrals of an episode that begins."""
        return jnp.zeros(2)

    def act(self, view: QuadrotorView, k: Time, integral: Integrals) -> tuple[Thrusts, Integrals]:
        here = view.x * jnp.array([1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        error = jnp.where(self.hold > 0, here, self.path[jnp.minimum(k, len(self.path) - 1)]) - view.x
        position, velocity = jnp.stack([error[0], error[2]]), jnp.stack([error[1], error[3]])
        integral = jnp.clip(integral + self.dt * position, -MOST_INTEGRAL, MOST_INTEGRAL)
        proportional, integrating, derivative = self.position_gains
        fx, fz = proportional * position + integrating * integral + derivative * velocity
        fz = fz + MASS * GRAVITY
        pitch = view.x[4]
        lift = jnp.maximum(0.0, fx * jnp.sin(pitch) + fz * jnp.cos(pitch))
        base = (jnp.sqrt(lift / (4 * KF)) - PWM_OFFSET) / PWM_SLOPE
        swing = 2.0 * jnp.sin(pitch - jnp.arctan2(fx, fz)), (pitch - view.previous_pitch) / self.dt
        turn = jnp.clip(-self.pitch_gains @ jnp.stack(swing), -MOST_TURN, MOST_TURN)
        pwm = jnp.clip(base + jnp.array([-0.5, 0.5]) * turn, LEAST_PWM, LARGEST_PWM)
        cascade = 2 * KF * (PWM_SLOPE * pwm + PWM_OFFSET) ** 2
        return jnp.where(self.lqr > 0, HOVER - self.gain @ (-error), cascade), integral

    def __call__(self, view: QuadrotorView, k: Time) -> Thrusts:
        """The thrusts of a controller that needs no memory, cut to what the motors can do: the mean of a primitive."""
        return saturated(self.act(view, k, self.start())[0])


class _Pilot(eqx.Module):
    """A fixed mixture of two controllers' commands, u = share u1 + (1 - share) u2: an agent whose weights never change.

    With a share of one, a controller flown alone. Only controllers without integrals may be mixed. Its weights solve no
    problem, so its decisions have no certificate: the gap is NaN.
    """

    first: _Controller
    second: _Controller
    share: Float[Array, ""]
    names: ClassVar[tuple[str, ...]] = ("first", "second")  # the same for all, so that one compilation serves all

    def start(self) -> Integrals:
        return self.first.start()

    def decide(self, key: Any, view: QuadrotorView, k: Time, memory: Any) -> Decision:
        thrust, memory = self.first.act(view, k, memory)
        weights = jnp.stack([self.share, 1.0 - self.share])
        thrust = weights @ jnp.stack([saturated(thrust), self.second(view, k)])
        unknown = jnp.asarray(jnp.nan)
        outcome = jnp.asarray(int(Outcome.NOT_OPTIMISED), "int8")
        return Decision(thrust, weights, Certificate(unknown, unknown), outcome, memory)


class _Tracking(eqx.Module):
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

    def __init__(
        self, path: Float[Array, "sample 6"], A: np.ndarray, B: np.ndarray, M: np.ndarray, thrust_weight: float
    ):
        self.path, self.A, self.M = jnp.asarray(path), jnp.asarray(A), jnp.asarray(M)
        self.slope, self.bend = jnp.asarray(2 * B.T @ M), jnp.asarray(thrust_weight * np.eye(2) + B.T @ M @ B)

    def __call__(self, view: QuadrotorView, thrust: Thrusts, k: Time) -> Float[Array, ""]:
        row = self.path[jnp.minimum(k + 1, len(self.path) - 1)]
        free = self.A @ view.x - row
        linear, constant = self.slope @ free, free @ self.M @ free
        (a, b), ((aa, ab), (_, bb)) = thrust - HOVER, self.bend
        return (aa * a + 2 * ab * b + linear[0]) * a + (bb * b + linear[1]) * b + constant


def _hover_model(exact: bool = False, dt: float = DT) -> Matrices:
    """(A, B) of x' = A x + B (u - hover) over one decision: I + A dt, B dt, or the exact solution."""
    rates, inputs = np.zeros((6, 6)), np.zeros((6, 2))
    rates[0, 1] = rates[2, 3] = rates[4, 5] = 1.0
    rates[1, 4] = GRAVITY
    inputs[3] = 1 / MASS
    inputs[5] = np.array([-1.0, 1.0]) * ARM / np.sqrt(2) / INERTIA
    if not exact:
        return np.eye(6) + dt * rates, dt * inputs
    both = np.zeros((8, 8))
    both[:6, :6], both[:6, 6:] = rates, inputs
    over = expm(dt * both)
    return over[:6, :6], over[:6, 6:]


def _regulator(weights: CostWeights, dt: float = DT) -> Regulator:
    """(K, P): the infinite-horizon gain and cost-to-go of the Euler model, P = Q + A^T P A - A^T P B K."""
    return riccati(*_hover_model(dt=dt), np.diag(weights.state), weights.thrust * np.eye(2))


def reference_path(settings: QuadrotorSettings) -> Path:
    """The path to follow, a row for each decision and one more."""
    return path(settings.path, steps=settings.steps, dt=settings.dt, scale=settings.scale, period=settings.period)


def quadrotor_world(settings: QuadrotorSettings, experiment: Experiment) -> Quadrotor:
    """The drone of an experiment; only that with LQR primitives meets an impulse."""
    return Quadrotor(
        reference_path(settings),
        start=settings.start,
        disturbance=settings.disturbance,
        force_sd=settings.force_sd,
        thrust_sd=settings.thrust_sd,
        impulse=settings.impulse if experiment == "lqr" else 0.0,
        drag=settings.drag,
        state_weights=settings.cost.state,
        thrust_weight=settings.cost.thrust,
        dt=settings.dt,
    )


def controllers(settings: QuadrotorSettings, experiment: Experiment) -> dict[str, _Controller]:
    """The two primitives and the baseline."""
    along, lqr, dt = reference_path(settings), experiment == "lqr", settings.dt
    return {
        "stabilise": _Controller(along, settings.pd_stabilise, settings.lqr_stabilise, lqr, dt, hold=True),
        "track": _Controller(along, settings.pd_track, settings.lqr_track, lqr, dt),
        "baseline": _Controller(along, settings.pid_baseline, settings.lqr_baseline, lqr, dt),
    }


def _pilot(settings: QuadrotorSettings, experiment: Experiment, name: str) -> _Pilot:
    """A primitive or the baseline alone, or the fixed mixture of the primitives."""
    flown = controllers(settings, experiment)
    if name == FIXED:
        return _Pilot(flown["stabilise"], flown["track"], jnp.asarray(0.5))
    return _Pilot(flown[name], flown[name], jnp.asarray(1.0))


def composer(settings: QuadrotorSettings, experiment: Experiment, how: CompositionSettings) -> Composer:
    """Two Gaussian primitives around the controllers' commands, and the tracking cost as the generative model.

    s(u) = (x' - r)^T M (x' - r) + r_u |u - hover|^2 with x' from the drone's model near hover and r the path's next
    row. M = Q counts one step; M = P, the cost-to-go of the baseline's LQR, all that follow.
    """
    flown = controllers(settings, experiment)
    # the released scripts, whose gate this is, predict by the exact solution of the linear model
    A, B = _hover_model(exact=how.gate == "one-step", dt=settings.dt)
    M = (
        _regulator(settings.lqr_baseline, settings.dt)[1]
        if how.horizon == "cost-to-go"
        else np.diag(settings.cost.state)
    )
    model = Cost(_Tracking(flown["track"].path, A, B, M, settings.cost.thrust))
    primitives = {name: Gaussian(flown[name], how.spread) for name in ("stabilise", "track")}
    grid = Grid([LEAST_THRUST - how.margin] * 2, [LARGEST_THRUST + how.margin] * 2, how.points, saturates=True)
    gate = gate_in_time(how.gate, how.duration, how.tau)
    return Composer(primitives, model, grid, how.eps, bias(how.prior), gate=gate, selection=how.selection)


def agent_and_world(
    settings: QuadrotorSettings, experiment: Experiment, name: str, how: CompositionSettings | None
) -> tuple[Composer | _Pilot, Quadrotor]:
    """Who flies, and where."""
    if how is None:
        return _pilot(settings, experiment, name), quadrotor_world(settings, experiment)
    # a sampled thrust has the actuators' noise in it already: that is what the primitives' spread stands for
    quiet = settings.model_copy(update={"thrust_sd": 0.0}) if how.selection == "sample" else settings
    return composer(settings, experiment, how), quadrotor_world(quiet, experiment)


def roster(settings: QuadrotorSettings) -> Roster:
    """All that are compared: the controllers alone, compositions of the primitives, and a fixed mixture."""

    def composed(**changes: object) -> CompositionSettings:
        return settings.composition.model_copy(update=changes)

    wide = settings.wide_margin
    return dict.fromkeys(ALONE) | {
        "equilibrium, sample": composed(selection="sample"),
        "equilibrium, sample, wide": composed(selection="sample", margin=wide),
        "equilibrium, dither": composed(selection="dither"),
        "equilibrium, mean": composed(selection="mean"),
        "equilibrium, mean, wide": composed(selection="mean", margin=wide),
        # the scripts apply the primitives' own means, and on the wide grid a primitive's mean is its own
        "one-step gate": composed(selection="mean", margin=wide, gate="one-step"),
        FIXED: None,
        "cost-to-go": composed(selection="mean", margin=wide, horizon="cost-to-go"),
        "cost-to-go, warm": composed(selection="mean", margin=wide, horizon="cost-to-go", eps=settings.warm_eps),
    }
