"""The flight of the composition benchmarks: four controllers, a model, and baselines.

A Crazyflie follows a figure of eight in gusts. Nothing here was chosen by how well a composition does: gains of the
controllers were set before the first one was flown, and those of the baselines in episodes of their own.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import policychord as pc
from policychord.agent import Decision
from policychord.worlds import Crazyflie, CrazyflieView
from policychord.worlds.crazyflie import DRAG, DT, FASTEST_TURN, GRAVITY, LARGEST_THRUST, MASS, STEEPEST

pc.enable_x64()

WORLD = Crazyflie()
STEPS, HORIZON = 300, 25  # decisions in a flight, and those that a rollout follows a controller
HIGH = np.array([STEEPEST, STEEPEST, FASTEST_TURN, LARGEST_THRUST])
LOW = HIGH * [-1, -1, -1, 0]
# shares of the way to a command that tilt and thrust go in 20 ms: half a second of random commands is predicted to 2 mm
TILTS, LIFTS = 0.12, 0.25
SPREAD = np.array([0.05, 0.05, 0.1, 0.03])  # sd of every controller: rad, rad, rad/s, N


class Pilot(eqx.Module):
    """a = spring (r - x) + damping (moving v_r - v) + ahead a_r, as roll, pitch, turn and thrust.

    The drone leans into a + g, its thrust is what of a + g lies along its axis, and it turns its nose back to x.
    """

    path: object
    spring: object
    damping: object
    moving: object
    ahead: object

    def __init__(self, spring, damping, moving=1.0, ahead=0.0, path=WORLD.path):
        self.path = path
        self.spring, self.damping = (
            jnp.broadcast_to(jnp.asarray(gain, dtype=float), (3,)) for gain in (spring, damping)
        )
        self.moving, self.ahead = jnp.asarray(float(moving)), jnp.asarray(float(ahead))

    def __call__(self, view: CrazyflieView, k):
        row = self.path[jnp.minimum(k, len(self.path) - 1)]
        wanted = self.spring * (row[:3] - view.position) + self.damping * (self.moving * row[3:6] - view.velocity)
        wanted = wanted + self.ahead * row[6:]
        x, y, z = wanted[0], wanted[1], jnp.maximum(wanted[2] + GRAVITY, 1.0)
        sin, cos = sine_cosine(view.heading)
        forward, left = cos * x + sin * y, cos * y - sin * x
        pitch, roll = arctan(forward / z), -arctan(left / jnp.sqrt(forward**2 + z**2))
        thrust = MASS * jnp.maximum(jnp.stack([x, y, z]) @ up(view.tilt, view.heading), 0.0)
        return jnp.clip(jnp.stack([roll, pitch, -2.0 * view.heading, thrust]), LOW, HIGH)


class Blend(eqx.Module):
    """The commands of a fixed mixture of controllers."""

    controllers: tuple
    weights: object

    def __call__(self, view, k):
        return jnp.asarray(self.weights) @ jnp.stack([one(view, k) for one in self.controllers])


class Alone(eqx.Module):
    """A fixed mixture of controllers' commands, or one controller: an agent without a model."""

    controllers: tuple
    weights: object
    names: ClassVar = ("command",)

    def start(self):
        return ()

    def decide(self, key, view, k, memory):
        action = Blend(self.controllers, self.weights)(view, k)
        unknown, outcome = jnp.asarray(jnp.nan), jnp.asarray(int(pc.Outcome.NOT_OPTIMISED), "int8")
        return Decision(action, jnp.ones(1), pc.Certificate(unknown, unknown), outcome, memory)


def up(tilt, heading):
    """The drone's own axis in the world."""
    (roll_sin, pitch_sin), (roll_cos, pitch_cos) = sine_cosine(tilt)
    sin, cos = sine_cosine(heading)
    forward, left = pitch_sin * roll_cos, -roll_sin
    return jnp.stack([cos * forward - sin * left, sin * forward + cos * left, pitch_cos * roll_cos])


# JAX asks the C library for the sine of every double, which took two thirds of a decision's time.


def sine_cosine(x):
    """Both, for angles up to 1 rad, to 1e-9."""
    s = x * x
    sine = x * (1 - s / 6 * (1 - s / 20 * (1 - s / 42 * (1 - s / 72 * (1 - s / 110)))))
    return sine, 1 - s / 2 * (1 - s / 12 * (1 - s / 30 * (1 - s / 56 * (1 - s / 90 * (1 - s / 132)))))


def arctan(t):
    """For angles up to 0.6 rad, to 1e-9; steeper ones are cut off there, beyond what may be commanded."""
    t = jnp.clip(t, -0.7, 0.7)
    t = t / (1 + jnp.sqrt(1 + t * t))  # of half the angle
    s = t * t
    return 2 * t * (1 - s * (1 / 3 - s * (1 / 5 - s * (1 / 7 - s * (1 / 9 - s * (1 / 11 - s * (1 / 13 - s / 15)))))))


# Fixed before the first comparison.
PILOTS = {
    "stabilise": Pilot(0.0, 2.0, moving=0.0),  # comes to rest wherever it is
    "track": Pilot(4.0, 3.2),
    "fast": Pilot(10.0, 5.0),
    "lean": Pilot(0.0, 1.5, ahead=1.0),  # leans as the path's bends ask for, and does not know where it is
}
# What more there is, for the question of how many controllers are good for something.
MORE = {
    "slow": Pilot(1.0, 1.6),
    "loose": Pilot(6.0, 2.0),
    "stiff": Pilot(4.0, 6.0),
    "high": Pilot([2.0, 2.0, 12.0], [2.0, 2.0, 6.0]),  # minds its height
}
# Mellinger's law with the firmware's gains in N/m and N s/m, without its integral
FIRMWARE = np.array([0.4, 0.4, 1.25]) / MASS, np.array([0.2, 0.2, 0.5]) / MASS
BASELINES = {
    "Mellinger p, v": Pilot(*FIRMWARE),
    "Mellinger p, v, a": Pilot(*FIRMWARE, ahead=1.0),
    "PD, feed-forward": Pilot(16.0, 9.6, ahead=1.0),  # the best of 8 x 7 springs and dampings in episodes 0 to 49
}


class Model(eqx.Module):
    """What a controller expects of the drone: tilt and thrust follow the command at a rate, the rest is Newton's.

    `mass` and `drag` are multiples of the true ones. `nats` is what a unit of the task's cost is worth in nats: the
    weights balance it against the entropy that a mixture gains.
    """

    world: Crazyflie
    nats: object = eqx.field(converter=jnp.asarray, default=1.0)
    mass: object = eqx.field(converter=jnp.asarray, default=1.0)
    drag: object = eqx.field(converter=jnp.asarray, default=1.0)

    def predict(self, view: CrazyflieView, action, k):
        """The drone 20 ms later."""
        tilt = view.tilt + TILTS * (action[:2] - view.tilt)
        thrust = view.thrust + LIFTS * (action[3] - view.thrust)
        force = thrust * up(tilt, view.heading) - self.drag * jnp.asarray(DRAG) * view.velocity
        velocity = view.velocity + DT * (force / (self.mass * MASS) - jnp.asarray([0.0, 0.0, GRAVITY]))
        position = view.position + DT / 2 * (view.velocity + velocity)
        return CrazyflieView(position, velocity, tilt, view.heading + DT * action[2], thrust)

    def stage(self, view: CrazyflieView, action, k):
        """What the task charges for where the drone is, in nats."""
        return self.nats * self.world.cost_of(view, k)


def composed(nats, eps, *, follow, steps=HORIZON, count=32, selection="mean", **told):
    """The four controllers, weighed by what an action and then `steps` steps of following will cost.

    `follow`: the weights of a fixed mixture, by name, or "each", of which the cheapest one counts.
    """
    parts = {name: pc.Gaussian(one, SPREAD) for name, one in PILOTS.items()}
    actions, model = pc.Sampled(LOW, HIGH, count=count), Model(WORLD, nats)
    followed = parts
    if follow != "each":
        weights = np.array(list(follow.values()))
        mixture = Blend(tuple(PILOTS[name] for name in follow), weights / weights.sum())
        followed = {"mixture": pc.Gaussian(mixture, SPREAD)}
    later = pc.Rollouts(followed, actions, model.predict, model.stage, steps=steps)
    return pc.Composer(
        parts, pc.Cost(predict=model.predict, cost_to_go=later), actions, eps, selection=selection, **told
    )
