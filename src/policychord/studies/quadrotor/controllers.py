"""Controllers of the planar drone: the PID cascade with its PD variants, and LQR."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import expm, solve_discrete_are

from ...envs.quadrotor import (
    ARM,
    GRAVITY,
    HOVER,
    INERTIA,
    KF,
    LARGEST_PWM,
    LEAST_PWM,
    MASS,
    PWM_OFFSET,
    PWM_SLOPE,
    SUBSTEP,
    SUBSTEPS,
    QuadrotorView,
)  # fmt: skip
from .settings import CostWeights, Gains

DT = SUBSTEP * SUBSTEPS
MOST_TURN = 3200.0  # PWM
MOST_INTEGRAL = np.array([2.0, 0.15])  # of x and z, in m s


class Cascade(eqx.Module):
    """Position errors make a force, the force a thrust and a pitch to aim for, the pitch's error a turn.

    F = kp e + ki I + kd e' + (0, m g), S = max(0, Fx sin p + Fz cos p), base = (sqrt(S / 4 KF) - offset)/slope,
    aim = atan2(Fx, Fz), turn = clip( -kp 2 sin(p - aim) - kd (p - p_before)/dt ), PWM = base -+ turn/2.
    With `hold` it takes its own position, at rest, for the path: it stabilises and goes nowhere.
    """

    path: Float[Array, "sample 6"]
    position_gains: Float[Array, "3 2"]  # proportional, integral, derivative of x and z
    pitch_gains: Float[Array, "2"]
    hold: Float[Array, ""]

    def __init__(self, path, gains: Gains, hold: bool = False):
        self.path = jnp.asarray(path)
        self.position_gains = jnp.asarray(np.stack([gains.x, gains.z], axis=-1))
        self.pitch_gains = jnp.asarray(gains.pitch, dtype=float)
        self.hold = jnp.asarray(float(hold))

    def start(self) -> Float[Array, "2"]:
        """The integrals of an episode that begins."""
        return jnp.zeros(2)

    def act(self, view: QuadrotorView, k, integral: Float[Array, "2"]):
        """(thrusts, integrals)"""
        error = _aim(self, view, k) - view.x
        position, velocity = jnp.stack([error[0], error[2]]), jnp.stack([error[1], error[3]])
        integral = jnp.clip(integral + DT * position, -MOST_INTEGRAL, MOST_INTEGRAL)
        proportional, integrating, derivative = self.position_gains
        fx, fz = proportional * position + integrating * integral + derivative * velocity
        fz = fz + MASS * GRAVITY
        pitch = view.x[4]
        lift = jnp.maximum(0.0, fx * jnp.sin(pitch) + fz * jnp.cos(pitch))
        base = (jnp.sqrt(lift / (4 * KF)) - PWM_OFFSET) / PWM_SLOPE
        swing = 2.0 * jnp.sin(pitch - jnp.arctan2(fx, fz)), (pitch - view.previous_pitch) / DT
        turn = jnp.clip(-self.pitch_gains @ jnp.stack(swing), -MOST_TURN, MOST_TURN)
        pwm = jnp.clip(base + jnp.array([-0.5, 0.5]) * turn, LEAST_PWM, LARGEST_PWM)
        return 2 * KF * (PWM_SLOPE * pwm + PWM_OFFSET) ** 2, integral

    def __call__(self, view: QuadrotorView, k) -> Float[Array, "2"]:
        """The thrusts of a cascade that needs no memory, as a primitive."""
        return self.act(view, k, self.start())[0]


class Lqr(eqx.Module):
    """u = hover - K (x - path[k]); with `hold`, its own position at rest is the path."""

    path: Float[Array, "sample 6"]
    gain: Float[Array, "2 6"]
    hold: Float[Array, ""]

    def __init__(self, path, weights: CostWeights, hold: bool = False):
        self.path, self.hold = jnp.asarray(path), jnp.asarray(float(hold))
        self.gain = jnp.asarray(regulator(weights)[0])

    def start(self) -> tuple:
        return ()

    def act(self, view: QuadrotorView, k, memory: tuple):
        """(thrusts, nothing to remember)"""
        return HOVER - self.gain @ (view.x - _aim(self, view, k)), memory

    def __call__(self, view: QuadrotorView, k) -> Float[Array, "2"]:
        return self.act(view, k, ())[0]


class Controller(eqx.Module):
    """A cascade or an LQR, whichever is chosen.

    Both are worked out and one is taken: that is little beside 900 actions, and one compiled program serves all.
    """

    cascade: Cascade
    lqr: Lqr
    lqr_is_chosen: Float[Array, ""]

    def __init__(self, cascade: Cascade, lqr: Lqr, lqr_is_chosen: bool):
        self.cascade, self.lqr, self.lqr_is_chosen = cascade, lqr, jnp.asarray(float(lqr_is_chosen))

    def start(self) -> Float[Array, "2"]:
        return self.cascade.start()

    def act(self, view: QuadrotorView, k, integral: Float[Array, "2"]):
        """(thrusts, integrals)"""
        thrust, integral = self.cascade.act(view, k, integral)
        return jnp.where(self.lqr_is_chosen > 0, self.lqr(view, k), thrust), integral

    def __call__(self, view: QuadrotorView, k) -> Float[Array, "2"]:
        return self.act(view, k, self.start())[0]


def _aim(controller: Cascade | Lqr, view: QuadrotorView, k) -> Float[Array, "6"]:
    """The state that a controller wants: the path's row, or to stop where it is."""
    here = view.x * jnp.array([1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    row = controller.path[jnp.minimum(k, len(controller.path) - 1)]
    return jnp.where(controller.hold > 0, here, row)


def hover_model(exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(A, B) of x' = A x + B (u - hover) over one decision: I + A dt, B dt, or the exact solution."""
    rates, inputs = np.zeros((6, 6)), np.zeros((6, 2))
    rates[0, 1] = rates[2, 3] = rates[4, 5] = 1.0
    rates[1, 4] = GRAVITY
    inputs[3] = 1 / MASS
    inputs[5] = np.array([-1.0, 1.0]) * ARM / np.sqrt(2) / INERTIA
    if not exact:
        return np.eye(6) + DT * rates, DT * inputs
    both = np.zeros((8, 8))
    both[:6, :6], both[:6, 6:] = rates, inputs
    over = expm(DT * both)
    return over[:6, :6], over[:6, 6:]


def regulator(weights: CostWeights) -> tuple[np.ndarray, np.ndarray]:
    """(K, P): the infinite-horizon gain and cost-to-go of the Euler model, P = Q + A^T P A - A^T P B K."""
    A, B = hover_model()
    Q, R = np.diag(weights.state), weights.thrust * np.eye(2)
    P = solve_discrete_are(A, B, Q, R)
    return np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), P
