"""The four tasks of the page "When does composition pay?": world, controllers, a model that may be wrong, a rival rule.

Every number of a controller or a model is an array, so that another value is not another compilation. Controllers were
fixed before any composition of them was played; rules by hand and planners were tuned in episodes 0 to 49.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import flight
from benchmarks.flight import Alone
from policychord.actions import AbstractActions, Grid, Sampled
from policychord.loops.environment import AbstractEnv, Box, Spaces, Step, Variable
from policychord.worlds import Pendulum, PendulumState, upright
from policychord.worlds.crazyflie import DRAG, HOVER, MASS
from policychord.worlds.quadrotor.agents import (
    _Controller,
    _hover_model,
    _pilot,
    quadrotor_world,
    reference_path,
)
from policychord.worlds.quadrotor.physics import DT as PLANE_DT
from policychord.worlds.quadrotor.physics import HOVER as HALF
from policychord.worlds.quadrotor.physics import LARGEST_THRUST, LEAST_THRUST, QuadrotorView
from policychord.worlds.quadrotor.settings import Gains, QuadrotorSettings


class Task(NamedTuple):
    """A world, and who may act in it."""

    env: AbstractEnv
    steps: int
    controllers: dict[str, Any]  # eight; the first `usual` are the task's own
    usual: int
    weaker: Callable[[Any, Any], Any]  # a controller with other gains, by a factor
    spread: Any
    outside: Any  # what a primitive does with a command that is not allowed
    actions: AbstractActions
    model: Any  # predict and stage, with fields nats, mass, drag
    hand: dict[str, Any]  # agents
    rest: Any  # the action before the first one, where commands are late
    horizon: int


def scaled(controller: Any, gain: Any) -> Any:
    """The same controller with its `gains` times this."""
    return eqx.tree_at(lambda one: one.gains, controller, controller.gains * gain)


# A drone in space ----------------------------------------------------------------------------------------------------


class Space(eqx.Module):
    """`flight.Model`, with a drag that is given as what it slows down more than the true one, in 1/s."""

    nats: Any
    mass: Any
    drag: Any

    def _model(self) -> flight.Model:
        return flight.Model(flight.WORLD, self.nats, self.mass, 1.0 + self.drag * MASS / np.mean(DRAG))

    def predict(self, view: Any, action: Any, k: Any) -> Any:
        return self._model().predict(view, action, k)

    def stage(self, view: Any, action: Any, k: Any) -> Any:
        return self._model().stage(view, action, k)


def space() -> Task:
    def weaker(one: flight.Pilot, gain: Any) -> flight.Pilot:
        return eqx.tree_at(lambda p: (p.spring, p.damping), one, (one.spring * gain, one.damping * gain))

    return Task(
        flight.WORLD, flight.STEPS, flight.PILOTS | flight.MORE, len(flight.PILOTS), weaker, flight.SPREAD, "clip",
        Sampled(flight.LOW, flight.HIGH, count=32), Space,
        {name: Alone((one,), jnp.ones(1)) for name, one in flight.BASELINES.items()},
        jnp.array([0.0, 0.0, 0.0, HOVER]), flight.HORIZON,
    )  # fmt: skip


# A drone in the plane ------------------------------------------------------------------------------------------------


class Plane(eqx.Module):
    """The linear model near hover of the quadrotor study; wrong in mass or drag if told so."""

    nats: Any
    mass: Any
    drag: Any
    path: Any
    weights: Any
    thrust_weight: Any

    def predict(self, view: QuadrotorView, thrust: Any, k: Any) -> QuadrotorView:
        A, B = map(jnp.asarray, _hover_model())
        following = A @ view.x + B @ (thrust - HALF)
        lift = PLANE_DT * (jnp.sum(thrust) / (0.027 * self.mass) - 9.8)
        vx, vz = view.x[1] * (1 - PLANE_DT * self.drag), view.x[3] * (1 - PLANE_DT * self.drag)
        following = following.at[1].add(vx - view.x[1]).at[3].set(vz + lift)
        return QuadrotorView(following, view.x[4])

    def stage(self, view: QuadrotorView, thrust: Any, k: Any) -> Any:
        off = view.x - self.path[jnp.minimum(k, len(self.path) - 1)]
        return self.nats * (jnp.sum(self.weights * off**2) + self.thrust_weight * jnp.sum((thrust - HALF) ** 2))


def plane(disturbance: Any) -> Task:
    settings = QuadrotorSettings(disturbance=disturbance)
    turning, along = (70000.0, 20000.0), reference_path(settings)
    more = {
        "climb": Gains(x=(0.0, 0.0, 0.05), z=(1.25, 0.0, 0.5), pitch=turning),
        "slow": Gains(x=(0.1, 0.0, 0.1), z=(0.5, 0.0, 0.3), pitch=turning),
        "loose": Gains(x=(0.45, 0.0, 0.1), z=(1.0, 0.0, 0.2), pitch=(30000.0, 10000.0)),
        "stiff": Gains(x=(0.4, 0.0, 0.2), z=(1.25, 0.0, 0.5), pitch=turning),
        "gentle": Gains(x=(0.2, 0.0, 0.2), z=(0.8, 0.0, 0.4), pitch=(40000.0, 15000.0)),
        "fast": Gains(x=(0.8, 0.0, 0.3), z=(2.0, 0.0, 0.6), pitch=turning),
    }

    def flown(gains: Gains, hold: bool = False) -> _Controller:
        return _Controller(along, gains, settings.lqr_baseline, False, settings.dt, hold=hold)

    def weaker(one: _Controller, gain: Any) -> _Controller:
        return eqx.tree_at(lambda c: c.position_gains, one, one.position_gains * gain)

    own = {"stabilise": flown(settings.pd_stabilise, hold=True), "track": flown(settings.pd_track)}
    numbers = jnp.asarray(along), jnp.asarray(settings.cost.state), jnp.asarray(settings.cost.thrust)
    return Task(
        quadrotor_world(settings, "pd"), settings.steps, own | {name: flown(gains) for name, gains in more.items()}, 2,
        weaker, settings.composition.spread, "clip", Sampled([LEAST_THRUST] * 2, [LARGEST_THRUST] * 2, count=32),
        lambda *told: Plane(*told, *numbers),
        {"PID": _pilot(settings, "pd", "baseline"), "LQR": _pilot(settings, "lqr", "baseline")},
        jnp.full(2, HALF), 30,
    )  # fmt: skip


# A pendulum ----------------------------------------------------------------------------------------------------------

PENDULUM = Pendulum()


class Torque(eqx.Module):
    """Pump along the motion, spring and damper around upright, and a constant push."""

    gains: Any  # pump, spring, damping, push

    def __call__(self, state: PendulumState, k: Any) -> Any:
        pump, spring, damping, push = self.gains
        missing = 5.0 - 5.0 * jnp.cos(state.angle) - state.velocity**2 / 6.0
        torque = pump * missing * jnp.sign(state.velocity) - spring * upright(state.angle) - damping * state.velocity
        return jnp.clip(torque + push, -2.0, 2.0)[None]


class Swing(eqx.Module):
    """Pendulum-v1, wrong in mass or drag if told so."""

    nats: Any
    mass: Any
    drag: Any

    def predict(self, state: PendulumState, torque: Any, k: Any) -> PendulumState:
        slower = PendulumState(state.angle, state.velocity * (1 - 0.05 * self.drag))
        return PENDULUM.move(slower, jnp.clip(torque[0], -2.0, 2.0) / self.mass)

    def stage(self, state: PendulumState, torque: Any, k: Any) -> Any:
        return self.nats * (upright(state.angle) ** 2 + 0.1 * state.velocity**2 + 0.001 * torque[0] ** 2)


class Switch(eqx.Module):
    """The rule that a person would write: one controller near the top, another one elsewhere."""

    near: Any
    far: Any
    cosine: float
    angle: Callable[[Any], Any]

    def __call__(self, state: Any, k: Any) -> Any:
        return jnp.where(jnp.cos(self.angle(state)) > self.cosine, self.near(state, k), self.far(state, k))


def pendulum() -> Task:
    gains = {
        "pump": (8.0, 0, 0, 0), "balance": (0, 20.0, 4.0, 0), "left": (0, 0, 0, -2.0), "right": (0, 0, 0, 2.0),
        "brake": (0, 0, 4.0, 0), "gentle pump": (1.0, 0, 0, 0), "soft": (0, 8.0, 2.0, 0), "rest": (0, 0, 0, 0),
    }  # fmt: skip
    controllers = {name: Torque(jnp.asarray(own, dtype=float)) for name, own in gains.items()}
    switch = Switch(controllers["balance"], controllers["pump"], 0.85, lambda state: state.angle)
    return Task(
        PENDULUM, 200, controllers, 2, scaled, 0.3, "tail", Grid(-2.0, 2.0, 41, saturates=True), Swing,
        {"switch": Alone((switch,), jnp.ones(1))}, jnp.zeros(1), 20,
    )  # fmt: skip


# A cart with a pole that hangs down ---------------------------------------------------------------------------------


class Cart(NamedTuple):
    """Where the cart is and how it moves, and its pole: zero is upright."""

    place: Any
    velocity: Any
    angle: Any
    spin: Any


def driven(state: Cart, force: Any, mass: Any = 1.0, drag: Any = 0.0) -> Cart:
    """The equations of Gymnasium's CartPole-v1 with any force up to 10 N, semi-implicit; `mass` is of cart and pole."""
    sin, cos = jnp.sin(state.angle), jnp.cos(state.angle)
    pull = (jnp.clip(force, -10.0, 10.0) / mass + 0.05 * state.spin**2 * sin) / 1.1
    turn = (9.8 * sin - cos * pull) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
    push = pull - 0.05 * turn * cos / 1.1
    velocity = (1 - 0.02 * drag) * state.velocity + 0.02 * push
    spin = (1 - 0.02 * drag) * state.spin + 0.02 * turn
    return Cart(state.place + 0.02 * velocity, velocity, state.angle + 0.02 * spin, spin)


def charged(state: Cart, force: Any) -> Any:
    """What a step costs: the pole's height, the cart's place, speeds, and force."""
    speeds = 0.01 * (state.velocity**2 + state.spin**2)
    return 1 - jnp.cos(state.angle) + 0.1 * state.place**2 + speeds + 0.001 * force**2


class CartPole(AbstractEnv):
    """Swing the pole up and keep cart and pole where they are to be; pushes of 1 N (sd) at every step."""

    push_sd: float = 1.0
    variables: ClassVar[Mapping[str, Variable]] = MappingProxyType(
        {
            "place": Variable(unit="m"),
            "velocity": Variable(unit="m/s"),
            "angle": Variable(unit="rad"),
            "spin": Variable(unit="rad/s"),
        }
    )

    def reset(self, key: Any) -> Cart:
        place, velocity, angle, spin = jax.random.uniform(key, (4,), minval=-0.3, maxval=0.3, dtype=float)
        return Cart(place, velocity, jnp.pi + angle, spin)

    def step(self, key: Any, state: Cart, action: Any, k: Any) -> Step:
        force = jnp.clip(action[0], -10.0, 10.0)
        wind = self.push_sd * jax.random.normal(key, dtype=float)
        return Step(driven(state, force + wind), -charged(state, force), jnp.asarray(False))

    def observe(self, state: Cart) -> Cart:
        return state

    def signals(self, state: Cart) -> Any:
        return jnp.stack(state)

    def spaces(self) -> Spaces:
        return Spaces(Box(np.full(4, -np.inf), np.full(4, np.inf)), Box(np.array([-10.0]), np.array([10.0])))


class Force(eqx.Module):
    """Pump along the pole's motion, spring and damper around upright, spring and damper of the cart, a push."""

    gains: Any  # pump, pole's spring and damping, cart's spring and damping, push

    def __call__(self, state: Cart, k: Any) -> Any:
        pump, spring, damping, home, brake, push = self.gains
        missing = 0.49 * (1 - jnp.cos(state.angle)) - state.spin**2 / 60.0
        force = -pump * missing * jnp.sign(state.spin * jnp.cos(state.angle))
        force = force + spring * upright(state.angle) + damping * state.spin
        return jnp.clip(force + home * state.place + brake * state.velocity + push, -10.0, 10.0)[None]


class Drive(eqx.Module):
    """The cart's own equations, wrong in mass or drag if told so."""

    nats: Any
    mass: Any
    drag: Any

    def predict(self, state: Cart, force: Any, k: Any) -> Cart:
        return driven(state, force[0], self.mass, self.drag)

    def stage(self, state: Cart, force: Any, k: Any) -> Any:
        return self.nats * charged(state, force[0])


def cart_pole() -> Task:
    gains = {
        "pump": (20.0, 0, 0, 0, 0, 0), "balance": (0, 40.0, 8.0, 0, 0, 0), "centre": (0, 0, 0, -3.0, -4.0, 0),
        "left": (0, 0, 0, 0, 0, -10.0), "right": (0, 0, 0, 0, 0, 10.0), "brake": (0, 0, 0, 0, -4.0, 0),
        "gentle pump": (5.0, 0, 0, 0, 0, 0), "soft": (0, 20.0, 4.0, 0, 0, 0),
    }  # fmt: skip
    controllers = {name: Force(jnp.asarray(own, dtype=float)) for name, own in gains.items()}
    near, far = (Force(jnp.asarray(own)) for own in HAND)
    switch = Switch(near, far, 0.9, lambda state: state.angle)
    return Task(
        CartPole(), 250, controllers, 3, scaled, 1.0, "tail", Grid(-10.0, 10.0, 21, saturates=True), Drive,
        {"switch": Alone((switch,), jnp.ones(1))}, jnp.zeros(1), 50,
    )  # fmt: skip


HAND = (0.0, 60.0, 12.0, 2.0, 4.0, 0.0), (20.0, 0.0, 0.0, -3.0, -1.0, 0.0)  # near the top, and elsewhere

TASKS = {
    "3-D drone": space,
    "planar drone": lambda: plane("stale-point"),
    "planar drone, centre": lambda: plane("centre"),
    "pendulum": pendulum,
    "cart-pole": cart_pole,
}
