"""A planar Crazyflie that follows a path in gusts: two thrusts, six numbers of state, 1000 physics steps a second."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from ..._types import Action, ArrayLike, Time
from ...loops.environment import AbstractEnv, Box, Spaces, Step, Variable
from .settings import DT, Disturbance, PathName

Line = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # x, vx, z, vz over time

HEIGHT = 1.0  # m, where all paths begin


def path(
    name: str = "lemniscate", *, steps: int = 300, dt: float = 0.02, scale: float = 0.75, period: float = 6.0
) -> Float[np.ndarray, "sample 6"]:
    """steps + 1 rows (x, vx, z, vz, pitch, pitch rate), the last two zero; `scale` s in metres, `period` in seconds.

    lemniscate: x = s sin wt, z = 1 + s sin wt cos wt. circle: x = s/2 sin wt, z = 1 + s/2 (1 - cos wt), of diameter s.
    square: sides of length s, once around in a period. hover: stay at (0, 1). All begin there.
    """
    if name not in get_args(PathName):
        raise ValueError(f"path = {name!r}: use one of {', '.join(map(repr, get_args(PathName)))}.")
    for argument, value in (("scale", scale), ("period", period), ("dt", dt)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{argument} = {value!r}: pass a positive number.")
    if not steps >= 1:
        raise ValueError(f"steps = {steps!r}: pass a whole number of at least 1.")
    t = dt * np.arange(steps + 1)
    rows = np.zeros((steps + 1, 6))
    rows[:, :4] = np.stack(_SHAPES[name](t, scale, 2 * np.pi / period), axis=1)
    rows[:, 2] += HEIGHT
    return rows


def _lemniscate(t: np.ndarray, s: float, w: float) -> Line:
    return s * np.sin(w * t), s * w * np.cos(w * t), s * np.sin(w * t) * np.cos(w * t), s * w * np.cos(2 * w * t)


def _circle(t: np.ndarray, s: float, w: float) -> Line:
    r = s / 2
    return r * np.sin(w * t), r * w * np.cos(w * t), r * (1 - np.cos(w * t)), r * w * np.sin(w * t)


def _square(t: np.ndarray, s: float, w: float) -> Line:
    turn = (w * t / (2 * np.pi)) % 1.0
    side, along = np.divmod(4 * turn, 1.0)
    pace = 2 * s * w / np.pi  # four sides in a period
    corner, heading = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]), np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    side = side.astype(int)
    place = s * (corner[side] + along[:, None] * heading[side])
    return place[:, 0], pace * heading[side, 0], place[:, 1], pace * heading[side, 1]


_SHAPES = {"lemniscate": _lemniscate, "circle": _circle, "square": _square, "hover": lambda t, s, w: (0.0 * t,) * 4}


# The Crazyflie, as the recorded simulator has it.
MASS, GRAVITY, INERTIA = 0.027, 9.8, 1.4e-5  # kg, m/s^2, kg m^2
ARM = 0.0397  # m; a model of the drone takes ARM/sqrt(2) for the lever of a thrust
LEVER = 0.028  # m, what the recorded simulator takes for it
HOVER = MASS * GRAVITY / 2  # N, each thrust of a drone that hangs in the air
KF, PWM_SLOPE, PWM_OFFSET = 3.16e-10, 0.2685, 4070.3  # thrust of one side: 2 KF (slope PWM + offset)^2
LEAST_PWM, LARGEST_PWM = 20000.0, 65535.0
LEAST_THRUST, LARGEST_THRUST = (2 * KF * (PWM_SLOPE * pwm + PWM_OFFSET) ** 2 for pwm in (LEAST_PWM, LARGEST_PWM))  # N
SUBSTEP = 1e-3  # s: a step of the physics
FLOOR = -0.0365  # m, height at which the recorded drone comes to rest
FRICTION = 0.5  # of the drone on the floor, read off the recorded crashes


class QuadrotorState(NamedTuple):
    """Where the drone is and how it moves, and what the physics and the sensors remember."""

    position: Float[Array, "2"]  # x, z
    velocity: Float[Array, "2"]
    pitch: Float[Array, ""]  # as it turned, not folded
    rate: Float[Array, ""]
    lag: Float[Array, "3"]  # x, z and pitch one physics step ago
    previous_pitch: Float[Array, ""]  # as seen one decision ago; zero before the first
    time: Int[Array, ""]  # decisions so far
    impulse_time: Int[Array, ""]  # when the impulse comes, if there is one


class QuadrotorView(NamedTuple):
    """What a controller sees. The pitch is folded to [-pi/2, pi/2], as the recorded simulator reports it."""

    x: Float[Array, "6"]  # x, vx, z, vz, pitch, pitch rate
    previous_pitch: Float[Array, ""]


class Quadrotor(AbstractEnv):
    """m a = (u1 + u2)(sin p, cos p) + F - (0, m g), I p'' = l (u2 - u1), along a path; pays a quadratic tracking cost.

    An action are two thrusts; noise of `thrust_sd` is added and the sum is cut to what the motors can do. F is a force
    of `force_sd` newtons on each axis, drawn at every decision, plus `impulse` newtons on both for one decision at
    a random time. `disturbance="centre"` lets it act at the centre of mass. "stale-point" lets it act where the drone
    was when the decision was made, as the recorded simulator does, which adds a torque (z0 - z) Fx - (x0 - x) Fz while
    it moves. `drag` d is an acceleration -d (1 + |v|) v. A decision holds for `dt` seconds, a whole number of physics
    steps of 1 ms; a path that is handed in has a row for each of them. A drone that touches the floor stays there, flat
    or on its back, until its thrust lifts it.

    Reward: -(e^T diag(state_weights) e + thrust_weight |u - hover|^2), e the state after the step minus the path's
    next row, u the thrusts after noise and limits. `signals`: the six numbers of the state as seen, then the path's row
    for now and for the next decision.
    """

    path: Float[Array, "sample 6"]
    start: Float[Array, "6"]
    # numbers as arrays, so that another value is not another compilation
    stale: Float[Array, ""]
    force_sd: Float[Array, ""]
    thrust_sd: Float[Array, ""]
    impulse: Float[Array, ""]
    impulse_window: Int[Array, "2"]  # first decision at which it may come, and the one after the last
    drag: Float[Array, ""]
    floor: Float[Array, ""]
    state_weights: Float[Array, "6"]
    thrust_weight: Float[Array, ""]
    substeps: int = eqx.field(static=True)  # of the physics, in a decision

    variables: ClassVar[Mapping[str, Variable]] = MappingProxyType(
        {
            "position": Variable(("axis",), "m"),
            "velocity": Variable(("axis",), "m/s"),
            "pitch": Variable(unit="rad"),
            "rate": Variable(unit="rad/s"),
            "lag": Variable(("pose",), "m, m, rad"),
            "previous_pitch": Variable(unit="rad"),
            "time": Variable(unit="decisions"),
            "impulse_time": Variable(unit="decisions"),
        }
    )

    def __init__(
        self,
        path: PathName | Float[np.ndarray, "sample 6"] = "lemniscate",
        *,
        start: ArrayLike = (0.0, 0.0, 1.2, 0.0, 0.0, 0.0),
        disturbance: Disturbance = "centre",
        force_sd: float = 0.03,
        thrust_sd: float = 0.01,
        impulse: float = 0.0,
        impulse_window: tuple[int, int] | None = None,
        drag: float = 0.0,
        floor: float = FLOOR,
        state_weights: ArrayLike = (1.0, 0.1, 1.0, 0.1, 0.1, 0.1),
        thrust_weight: float = 0.1,
        dt: float = DT,
    ):
        self.substeps = substeps(dt)
        self.path = _path(path, dt)
        self.start = _numbers("start", start, 6)
        if disturbance not in get_args(Disturbance):
            raise ValueError(f"disturbance = {disturbance!r}: use 'centre' or 'stale-point'.")
        self.stale = jnp.asarray(float(disturbance == "stale-point"))
        sizes = {"force_sd": force_sd, "thrust_sd": thrust_sd, "drag": drag, "thrust_weight": thrust_weight}
        for name, value in sizes.items():
            if not value >= 0:
                raise ValueError(f"{name} = {value!r}: pass a number of at least 0.")
            setattr(self, name, _numbers(name, value, None))
        self.impulse = _numbers("impulse", impulse, None)
        first, end = (0, len(self.path) - 1) if impulse_window is None else impulse_window
        if not 0 <= first < end:
            raise ValueError(f"impulse_window = {impulse_window!r}: pass (first, end) with 0 <= first < end.")
        self.impulse_window = jnp.asarray([int(first), int(end)])
        if np.isnan(floor) or floor == np.inf:
            raise ValueError(f"floor = {floor!r}: a height in metres, or -inf for none.")
        self.floor = jnp.asarray(float(floor))
        self.state_weights = _numbers("state_weights", state_weights, 6)

    def reset(self, key: Key[Array, ""]) -> QuadrotorState:
        x, vx, z, vz, pitch, rate = self.start
        first, end = self.impulse_window
        when = first + jnp.asarray((end - first) * jax.random.uniform(key, dtype=float), dtype=int)
        start = (jnp.stack([x, z]), jnp.stack([vx, vz]), pitch, rate, jnp.stack([x, z, pitch]))
        return QuadrotorState(*start, jnp.zeros(()), jnp.asarray(0), when)

    def step(self, key: Key[Array, ""], state: QuadrotorState, action: Action, k: Time) -> Step:
        noise, force = self.disturb(key, state.time, state.impulse_time)
        applied = _actuated(action, noise)
        following = self.move(state, applied, force)
        error = seen(following) - self.row(following.time)
        cost = self.state_weights @ error**2 + self.thrust_weight * jnp.sum((applied - HOVER) ** 2)
        return Step(following, -cost, jnp.asarray(False))

    def disturb(
        self, key: Key[Array, ""], time: Time, impulse_time: Int[Array, ""]
    ) -> tuple[Float[Array, "2"], Float[Array, "2"]]:
        """The noise on the thrusts and the force of the wind at one decision."""
        # one after the other: XLA takes a second longer to compile four at once
        normal = jax.lax.map(lambda i: jax.random.normal(jax.random.fold_in(key, i), dtype=float), jnp.arange(4))
        impulse = jnp.where(time == impulse_time, self.impulse, 0.0)
        return self.thrust_sd * normal[:2], self.force_sd * normal[2:] + impulse

    def move(self, state: QuadrotorState, thrust: Float[Array, "2"], force: Float[Array, "2"]) -> QuadrotorState:
        """A decision under these thrusts and this force: semi-implicit Euler with the pose of one physics step ago.

        The recorded simulator turns the thrust, and places the force, by the pose before its last step.
        """
        total, turning = thrust[0] + thrust[1], LEVER * (thrust[1] - thrust[0])
        (x0, z0), (fx, fz) = state.position, force

        def substep(_: Any, now: tuple[Any, ...]) -> tuple[Any, ...]:
            x, z, vx, vz, pitch, rate, (lag_x, lag_z, lag_pitch) = now
            slowing = self.drag * (1.0 + jnp.hypot(vx, vz))
            ax = (total * jnp.sin(lag_pitch) + fx) / MASS - slowing * vx
            az = (total * jnp.cos(lag_pitch) + fz) / MASS - GRAVITY - slowing * vz
            torque = turning + self.stale * ((z0 - lag_z) * fx - (x0 - lag_x) * fz)
            new_vx, new_vz, new_rate = vx + SUBSTEP * ax, vz + SUBSTEP * az, rate + SUBSTEP * torque / INERTIA
            new_x, new_z, new_pitch = x + SUBSTEP * new_vx, z + SUBSTEP * new_vz, pitch + SUBSTEP * new_rate
            down = new_z < self.floor
            slid = jnp.sign(new_vx) * jnp.maximum(jnp.abs(new_vx) - FRICTION * SUBSTEP * jnp.maximum(-az, 0.0), 0.0)
            new_vx, new_vz = jnp.where(down, slid, new_vx), jnp.where(down, jnp.maximum(new_vz, 0.0), new_vz)
            new_z, new_rate = jnp.where(down, self.floor, new_z), jnp.where(down, 0.0, new_rate)
            new_pitch = jnp.where(down, jnp.pi * jnp.round(new_pitch / jnp.pi), new_pitch)
            return new_x, new_z, new_vx, new_vz, new_pitch, new_rate, (x, z, pitch)

        begin = (x0, z0, *state.velocity, state.pitch, state.rate, tuple(state.lag))
        x, z, vx, vz, pitch, rate, lag = jax.lax.fori_loop(0, self.substeps, substep, begin)
        moved = (jnp.stack([x, z]), jnp.stack([vx, vz]), pitch, rate, jnp.stack(lag))
        return QuadrotorState(*moved, _folded(state.pitch), state.time + 1, state.impulse_time)

    def row(self, time: Time) -> Float[Array, "6"]:
        """The path's row at this time; the last one ever after."""
        return self.path[jnp.minimum(time, len(self.path) - 1)]

    def observe(self, state: QuadrotorState) -> QuadrotorView:
        return QuadrotorView(seen(state), state.previous_pitch)

    def signals(self, state: QuadrotorState) -> Float[Array, " m"]:
        return jnp.concatenate([seen(state), self.row(state.time), self.row(state.time + 1)])

    def spaces(self) -> Spaces:
        anywhere = np.full(18, np.inf)
        anywhere[4] = np.pi / 2
        return Spaces(Box(-anywhere, anywhere), Box(np.full(2, LEAST_THRUST), np.full(2, LARGEST_THRUST)))


def substeps(dt: float) -> int:
    """How many steps of the physics a decision has."""
    whole = round(dt / SUBSTEP) if np.isfinite(dt) else 0
    if whole < 1 or abs(dt - whole * SUBSTEP) > 1e-9:
        raise ValueError(f"dt = {dt!r}: pass a whole number of milliseconds, in seconds; the physics has such steps.")
    return whole


def seen(state: QuadrotorState) -> Float[Array, "6"]:
    """The state as a controller sees it and as the cost counts it: x, vx, z, vz, pitch, pitch rate."""
    (x, z), (vx, vz) = state.position, state.velocity
    return jnp.stack([x, vx, z, vz, _folded(state.pitch), state.rate])


def _folded(pitch: ArrayLike) -> Float[Array, "..."]:
    """arcsin(sin pitch), without its loss of digits: a drone on its back looks level."""
    turned = (pitch + jnp.pi / 2) % (2 * jnp.pi) - jnp.pi / 2
    return jnp.where(turned > jnp.pi / 2, jnp.pi - turned, turned)


def saturated(thrust: ArrayLike) -> Float[Array, "..."]:
    """What the motors make of a command."""
    return jnp.clip(thrust, LEAST_THRUST, LARGEST_THRUST)


def _actuated(thrust: ArrayLike, noise: ArrayLike) -> Float[Array, "..."]:
    """What noisy motors make of a command: they cut twice, what they are asked for, and that with the noise."""
    return saturated(saturated(thrust) + noise)


def _path(name_or_rows: Any, dt: float) -> Float[Array, "sample 6"]:
    rows = path(name_or_rows, dt=dt) if isinstance(name_or_rows, str) else np.asarray(name_or_rows, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != 6 or len(rows) < 2 or not np.all(np.isfinite(rows)):
        raise ValueError(f"path has shape {rows.shape}: pass a name, or two or more rows (x, vx, z, vz, pitch, rate).")
    return jnp.asarray(rows)


def _numbers(name: str, value: ArrayLike, count: int | None) -> Float[Array, "..."]:
    array = np.asarray(value, dtype=float)
    if array.shape != (() if count is None else (count,)) or not np.all(np.isfinite(array)):
        wanted = "one finite number" if count is None else f"{count} finite numbers"
        raise ValueError(f"{name} = {value!r}: pass {wanted}.")
    return jnp.asarray(array)
