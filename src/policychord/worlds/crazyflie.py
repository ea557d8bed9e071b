"""A Crazyflie 2.1 in three dimensions that follows a path in gusts: four commands, 500 physics steps a second.

Rigid body, rotors that lag, drag, gyroscopic torques, and the attitude loop of the drone's firmware. Equations and
numbers are those that crazyflow 0.4 publishes for its first-principles model of the cf21B with 500 mAh (MIT licence);
a recorded flight of it is replayed in the tests. Its fitted models are other drones: do not mix them with this one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from .._types import Action, ArrayLike, Time
from ..loops.environment import AbstractEnv, Box, Spaces, Step, Variable

MASS, GRAVITY = 0.0434, 9.81  # kg, m/s^2
HOVER = MASS * GRAVITY  # N, the thrust of a drone that hangs in the air
INERTIA = (25e-6, 28e-6, 49e-6)  # kg m^2
DRAG = (0.021643637770852733, 0.021643637770852733, 0.02477138502714662)  # N s/m along the body's axes
ARM = 0.035355  # m from a rotor to the axes
ROTOR_INERTIA = 38.93e-9  # kg m^2, with its motor
THRUST_1, THRUST_2 = -3.133427287299859e-7, 4.407354891648379e-10  # N of a rotor: THRUST_1 rpm + THRUST_2 rpm^2
TORQUE_1, TORQUE_2 = 1.65886356219615e-9, 2.4693477924534137e-12  # N m
FASTER = (13.996001897562685, 0.00011093207920685363)  # 1/s, 1/(s rpm): how a rotor follows a faster command
SLOWER = (5.933168530682111, 0.00031951312393561264)
LEAST, LARGEST = 0.02136263065537499, 0.2  # N of one rotor
# rows: which rotor turns the drone about x, y and z
MIXING = np.array([[-1.0, -1.0, 1.0, 1.0], [-1.0, 1.0, 1.0, -1.0], [-1.0, 1.0, -1.0, 1.0]])

# the firmware's attitude loop, in its own unit: a motor's full thrust is 65,535
FULL, IDLE = 65535.0, 7000.0
TILT_GAIN, RATE_GAIN = (70000.0, 70000.0, 60000.0), (20000.0, 20000.0, 12000.0)
SUM_GAIN, CHANGE_GAIN = (0.0, 0.0, 500.0), (200.0, 200.0, 0.0)
LARGEST_SUM, LARGEST_TORQUE = (1.0, 1.0, 1500.0), 32000.0

SUBSTEP, DT = 2e-3, 0.02  # s: a step of physics and attitude loop; how long a decision holds
FLOOR = -0.001  # m
STEEPEST, FASTEST_TURN, LARGEST_THRUST = 0.5, 2.0, 4 * LARGEST  # rad, rad/s, N: what may be commanded
HIGHEST_COMMAND = np.array([STEEPEST, STEEPEST, FASTEST_TURN, LARGEST_THRUST])
LOWEST_COMMAND = HIGHEST_COMMAND * [-1, -1, -1, 0]


class CrazyflieState(NamedTuple):
    """Where the drone is, how it moves, and what its attitude loop and the weather remember."""

    position: Float[Array, "3"]
    attitude: Float[Array, "4"]  # quaternion x, y, z, w: from the body to the world
    velocity: Float[Array, "3"]
    rate: Float[Array, "3"]  # about the body's axes
    rotors: Float[Array, "4"]
    tilt_sum: Float[Array, "3"]  # the attitude loop's integral
    previous_rate: Float[Array, "3"]
    heading: Float[Array, ""]  # asked for: the sum of all turns
    time: Int[Array, ""]  # decisions so far
    gust_times: Int[Array, " gust"]
    gusts: Float[Array, "gust 3"]


class CrazyflieView(NamedTuple):
    """What a controller sees; the drone's own estimate is taken to be right."""

    position: Float[Array, "3"]
    velocity: Float[Array, "3"]
    tilt: Float[Array, "2"]  # roll, pitch
    heading: Float[Array, ""]  # as it is
    thrust: Float[Array, ""]  # of all rotors, as they turn now


class Crazyflie(AbstractEnv):
    """A path in space, `force_sd` newtons of wind on each axis at every decision, and gusts of `gust` newtons.

    An action is (roll, pitch, turn, thrust) in rad, rad, rad/s and N, cut to what may be commanded; the drone's own
    attitude loop makes rotor speeds of it. `path` has a row (position, velocity, acceleration) for each decision. Each
    of `gusts` gusts comes at a random time from a random side and lasts 60 ms. `mass` and `drag` are multiples of the
    true ones, for models that are wrong. A drone that touches the floor has crashed, and the episode is over.

    Reward: -(10 |position error|^2 + |velocity error|^2 + roll^2 + pitch^2), against the path's next row.
    """

    path: Float[Array, "sample 9"]
    force_sd: Float[Array, ""]
    gust: Float[Array, ""]
    mass: Float[Array, ""]
    drag: Float[Array, ""]
    number_of_gusts: int = eqx.field(static=True)
    substeps: int = eqx.field(static=True)

    variables: ClassVar[Mapping[str, Variable]] = MappingProxyType(
        {
            "position": Variable(("axis",), "m"),
            "attitude": Variable(("quaternion",)),
            "velocity": Variable(("axis",), "m/s"),
            "rate": Variable(("axis",), "rad/s"),
            "rotors": Variable(("rotor",), "rpm"),
            "tilt_sum": Variable(("axis",), "s"),
            "previous_rate": Variable(("axis",), "rad/s"),
            "heading": Variable(unit="rad"),
            "time": Variable(unit="decisions"),
            "gust_times": Variable(("gust",), "decisions"),
            "gusts": Variable(("gust", "axis"), "N"),
        }
    )

    def __init__(
        self,
        path: Float[np.ndarray, "sample 9"] | None = None,
        *,
        force_sd: float = 0.03,
        gust: float = 0.6,
        gusts: int = 2,
        mass: float = 1.0,
        drag: float = 1.0,
    ):
        rows = figure_eight() if path is None else np.asarray(path, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != 9 or len(rows) < 2 or not np.all(np.isfinite(rows)):
            raise ValueError(f"path has shape {rows.shape}: pass two or more rows (position, velocity, acceleration).")
        for name, value in {"force_sd": force_sd, "gust": gust, "drag": drag, "gusts": gusts}.items():
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} = {value!r}: pass a number of at least 0.")
        if not (np.isfinite(mass) and mass > 0):
            raise ValueError(f"mass = {mass!r}: pass a positive multiple of the drone's mass.")
        self.path = jnp.asarray(rows)
        self.force_sd, self.gust, self.mass, self.drag = (jnp.asarray(float(v)) for v in (force_sd, gust, mass, drag))
        self.number_of_gusts, self.substeps = int(gusts), round(DT / SUBSTEP)

    def reset(self, key: Key[Array, ""]) -> CrazyflieState:
        """At the path's first row, level, at its speed, with rotors that carry the drone."""
        when, side = jax.random.split(key)
        times = jax.random.randint(when, (self.number_of_gusts,), 0, len(self.path) - 1)
        aim = jax.random.normal(side, (self.number_of_gusts, 3), dtype=float)
        aim = self.gust * aim / jnp.linalg.norm(aim, axis=-1, keepdims=True)
        return _hovering(self.path[0, :3], self.path[0, 3:6])._replace(gust_times=times.astype(int), gusts=aim)

    def step(self, key: Key[Array, ""], state: CrazyflieState, action: Action, k: Time) -> Step:
        wind = self.force_sd * jax.random.normal(key, (3,), dtype=float)
        blowing = (state.time >= state.gust_times) & (state.time < state.gust_times + 3)
        following = self.move(state, action, wind + jnp.sum(jnp.where(blowing[:, None], state.gusts, 0.0), axis=0))
        return Step(following, -self.cost(following), following.position[2] <= FLOOR)

    def move(self, state: CrazyflieState, action: Action, force: ArrayLike = 0.0) -> CrazyflieState:
        """A decision under this force: explicit Euler, ten steps of attitude loop and physics."""
        roll, pitch, turn, thrust = _commanded(action)
        heading = state.heading + DT * turn
        wanted = _rotation_of(roll, pitch, heading)
        force = jnp.broadcast_to(jnp.asarray(force, dtype=float), (3,))

        def substep(_: Any, now: CrazyflieState) -> CrazyflieState:
            rotors, tilt_sum = _attitude_loop(now, wanted, thrust)
            return self._physics(now, rotors, force)._replace(tilt_sum=tilt_sum, previous_rate=now.rate)

        moved = jax.lax.fori_loop(0, self.substeps, substep, state)
        return moved._replace(heading=heading, time=state.time + 1)

    def _physics(self, now: CrazyflieState, command: Float[Array, "4"], force: Float[Array, "3"]) -> CrazyflieState:
        mass, body = self.mass * MASS, _matrix_of(now.attitude)
        (up1, up2), (down1, down2) = FASTER, SLOWER
        gain, square = jnp.where(command > now.rotors, up1, down1), jnp.where(command > now.rotors, up2, down2)
        spin_up = gain * (command - now.rotors) + square * (command**2 - now.rotors**2)
        thrust = THRUST_1 * now.rotors + THRUST_2 * now.rotors**2
        lift = body[:, 2] * jnp.sum(thrust)
        slowing = body @ (self.drag * jnp.asarray(DRAG) * (body.T @ now.velocity))
        acceleration = (lift - slowing + force) / mass - jnp.asarray([0.0, 0.0, GRAVITY])
        drag_torque = MIXING[2] @ (TORQUE_1 * now.rotors + TORQUE_2 * now.rotors**2)
        # what the rotors' own spin does to a drone that turns
        per_rpm = MIXING[2] * ROTOR_INERTIA * 2 * np.pi / 60
        spin, spin_change = per_rpm @ now.rotors, per_rpm @ spin_up
        inertia = jnp.asarray(INERTIA)
        torque = jnp.concatenate([ARM * (MIXING[:2] @ thrust), drag_torque[None]])
        torque = torque + jnp.stack([now.rate[1] * spin, -now.rate[0] * spin, spin_change])
        turning = (torque - jnp.cross(now.rate, inertia * now.rate)) / inertia
        position = now.position + SUBSTEP * now.velocity
        velocity = now.velocity + SUBSTEP * acceleration
        down = position[2] < FLOOR
        return now._replace(
            position=position.at[2].set(jnp.where(down, FLOOR, position[2])),
            attitude=_turned(now.attitude, SUBSTEP * now.rate),
            velocity=jnp.where(down, 0.0, velocity),
            rate=now.rate + SUBSTEP * turning,
            rotors=now.rotors + SUBSTEP * spin_up,
        )

    def row(self, time: Time) -> Float[Array, "9"]:
        """The path's row at this time; the last one ever after."""
        return self.path[jnp.minimum(time, len(self.path) - 1)]

    def cost(self, state: CrazyflieState) -> Float[Array, ""]:
        """What it costs to be there, against the path's row for the state's own time."""
        return self.cost_of(self.observe(state), state.time)

    def cost_of(self, view: CrazyflieView, time: Time) -> Float[Array, ""]:
        """The same from what a controller sees, or expects to see, at this time."""
        row = self.row(time)
        away, slip = view.position - row[:3], view.velocity - row[3:6]
        return 10.0 * (away @ away) + slip @ slip + view.tilt @ view.tilt

    def observe(self, state: CrazyflieState) -> CrazyflieView:
        body, thrust = _matrix_of(state.attitude), jnp.sum(THRUST_1 * state.rotors + THRUST_2 * state.rotors**2)
        heading = jnp.arctan2(body[1, 0], body[0, 0])
        return CrazyflieView(state.position, state.velocity, jnp.stack(_tilt_of(state.attitude)), heading, thrust)

    def signals(self, state: CrazyflieState) -> Float[Array, " m"]:
        here = (state.position, state.attitude, state.velocity, state.rate)
        return jnp.concatenate([*here, self.row(state.time), self.row(state.time + 1)])

    def spaces(self) -> Spaces:
        anywhere = np.full(31, np.inf)
        anywhere[3:7] = 1.0
        return Spaces(Box(-anywhere, anywhere), Box(LOWEST_COMMAND, HIGHEST_COMMAND))


def figure_eight(
    *, steps: int = 300, period: float = 6.0, scale: float = 0.75, rise: float = 0.3
) -> Float[np.ndarray, "sample 9"]:
    """steps + 1 rows (position, velocity, acceleration): s sin wt, s sin wt cos wt, 1 + rise sin wt."""
    w = 2 * np.pi / period
    t = w * DT * np.arange(steps + 1)
    place = [scale * np.sin(t), scale * np.sin(2 * t) / 2, 1 + rise * np.sin(t)]
    speed = [scale * np.cos(t), scale * np.cos(2 * t), rise * np.cos(t)]
    change = [-scale * np.sin(t), -2 * scale * np.sin(2 * t), -rise * np.sin(t)]
    return np.stack([*place, *(w * v for v in speed), *(w**2 * a for a in change)], axis=-1)


def _hovering(position: ArrayLike, velocity: ArrayLike = (0.0, 0.0, 0.0)) -> CrazyflieState:
    """A level drone whose rotors carry it."""
    level, zero = jnp.asarray([0.0, 0.0, 0.0, 1.0]), jnp.zeros(3)
    rotors = jnp.full(4, _rotor_speed(HOVER / 4))
    place, speed = jnp.asarray(position, dtype=float), jnp.asarray(velocity, dtype=float)
    still = (zero, rotors, zero, zero, jnp.zeros(()), jnp.asarray(0))
    return CrazyflieState(place, level, speed, *still, jnp.zeros(0, dtype=int), jnp.zeros((0, 3)))


def _commanded(action: ArrayLike) -> Float[Array, "4"]:
    """What of an action may be commanded."""
    return jnp.clip(jnp.asarray(action, dtype=float), LOWEST_COMMAND, HIGHEST_COMMAND)


def _attitude_loop(
    now: CrazyflieState, wanted: Float[Array, "3 3"], thrust: Float[Array, ""]
) -> tuple[Float[Array, "4"], Float[Array, "3"]]:
    """The firmware's way from an attitude to rotor speeds, and its integral afterwards."""
    between = wanted.T @ _matrix_of(now.attitude)
    twist = between - between.T
    error = jnp.stack([twist[2, 1], twist[0, 2], twist[1, 0]])
    most = jnp.asarray(LARGEST_SUM)
    tilt_sum = jnp.clip(now.tilt_sum - SUBSTEP * error, -most, most)
    change = (now.rate - now.previous_rate) / SUBSTEP
    torque = -jnp.asarray(TILT_GAIN) * error - jnp.asarray(RATE_GAIN) * now.rate
    torque = torque + jnp.asarray(SUM_GAIN) * tilt_sum - jnp.asarray(CHANGE_GAIN) * change
    torque = jnp.where(thrust > 0, jnp.clip(torque, -LARGEST_TORQUE, LARGEST_TORQUE), 0.0)
    motors = thrust / 4 / LARGEST * FULL + (torque * jnp.asarray([0.5, 0.5, 1.0])) @ MIXING
    off = jnp.all(motors == 0)
    force = jnp.clip(jnp.clip(motors, IDLE, FULL) / FULL * LARGEST, LEAST, LARGEST)
    # motors that are off are still asked for the least speed, as in the recorded simulator
    return _rotor_speed(jnp.where(off, LEAST, force)), tilt_sum


def _rotor_speed(thrust: ArrayLike) -> Float[Array, "..."]:
    """Revolutions a minute that give this thrust."""
    return (-THRUST_1 + jnp.sqrt(THRUST_1**2 + 4 * THRUST_2 * jnp.asarray(thrust))) / (2 * THRUST_2)


def _rotation_of(roll: ArrayLike, pitch: ArrayLike, yaw: ArrayLike) -> Float[Array, "3 3"]:
    """Roll, then pitch, then yaw, about the world's axes."""
    (sr, cr), (sp, cp), (sy, cy) = ((jnp.sin(angle), jnp.cos(angle)) for angle in (roll, pitch, yaw))
    return jnp.stack([
        jnp.stack([cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr]),
        jnp.stack([sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr]),
        jnp.stack([-sp, cp * sr, cp * cr]),
    ])  # fmt: skip


def _matrix_of(attitude: Float[Array, "4"]) -> Float[Array, "3 3"]:
    """The rotation from the body to the world."""
    x, y, z, w = attitude / jnp.linalg.norm(attitude)
    return jnp.stack([
        jnp.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)]),
        jnp.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)]),
        jnp.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]),
    ])  # fmt: skip


def _tilt_of(attitude: Float[Array, "4"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Roll and pitch."""
    body = _matrix_of(attitude)
    return jnp.arctan2(body[2, 1], body[2, 2]), jnp.arcsin(jnp.clip(-body[2, 0], -1.0, 1.0))


def _turned(attitude: Float[Array, "4"], angle: Float[Array, "3"]) -> Float[Array, "4"]:
    """The attitude after a rotation by this vector about the body's own axes."""
    square = angle @ angle
    small = square < 1e-8
    length = jnp.sqrt(jnp.where(small, 1.0, square))  # a root of zero has no derivative
    sine = jnp.where(small, 0.5 - square / 48, jnp.sin(length / 2) / length)
    cosine = jnp.where(small, 1 - square / 8, jnp.cos(length / 2))
    v, w = attitude[:3], attitude[3]
    u = sine * angle
    product = jnp.concatenate([w * u + cosine * v + jnp.cross(v, u), (w * cosine - v @ u)[None]])
    return product / jnp.linalg.norm(product)
