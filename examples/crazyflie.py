"""A drone in space along a figure of eight in gusts: what do four controllers gain by composition, and by a plan?

Actions have four dimensions (roll, pitch, turn, thrust). Weights alone stay within what the controllers ask for; a plan
around them leaves it. The second table is with a model whose mass is a fifth too small: there a plan should learn what
the model misses (`like`).
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import SEEDS, show

import policychord as pc
from policychord.worlds import Crazyflie, CrazyflieView
from policychord.worlds.crazyflie import DRAG, DT, FASTEST_TURN, GRAVITY, LARGEST_THRUST, MASS, STEEPEST

pc.enable_x64()

WORLD, HORIZON = Crazyflie(), 25
HIGH = np.array([STEEPEST, STEEPEST, FASTEST_TURN, LARGEST_THRUST])
ACTIONS = pc.Sampled(HIGH * [-1, -1, -1, 0], HIGH, count=32)


def up(tilt, heading):
    """The drone's own axis in the world."""
    (sin_roll, sin_pitch), (cos_roll, cos_pitch) = jnp.sin(tilt), jnp.cos(tilt)
    sin, cos, forward, left = jnp.sin(heading), jnp.cos(heading), sin_pitch * cos_roll, -sin_roll
    return jnp.stack([cos * forward - sin * left, sin * forward + cos * left, cos_pitch * cos_roll])


def pilot(spring, damping, moving=1.0, ahead=0.0):
    """Leans into a + g, where a = spring (r - x) + damping (moving v_r - v) + ahead a_r."""

    def fly(view, k):
        row = jnp.asarray(WORLD.path)[jnp.minimum(k, len(WORLD.path) - 1)]
        wanted = spring * (row[:3] - view.position) + damping * (moving * row[3:6] - view.velocity) + ahead * row[6:]
        x, y, z = wanted[0], wanted[1], jnp.maximum(wanted[2] + GRAVITY, 1.0)
        sin, cos = jnp.sin(view.heading), jnp.cos(view.heading)
        forward, left = cos * x + sin * y, cos * y - sin * x
        pitch, roll = jnp.arctan(forward / z), -jnp.arctan(left / jnp.hypot(forward, z))
        thrust = MASS * jnp.stack([x, y, z]) @ up(view.tilt, view.heading)
        return jnp.stack([roll, pitch, -2.0 * view.heading, thrust])

    return fly


PILOTS = {"stabilise": pilot(0.0, 2.0, moving=0.0), "track": pilot(4.0, 3.2), "fast": pilot(10.0, 5.0),
          "lean": pilot(0.0, 1.5, ahead=1.0)}  # fmt: skip
PARTS = {name: pc.Gaussian(fly, np.array([0.05, 0.05, 0.1, 0.03])) for name, fly in PILOTS.items()}


def agents(mass):
    """The composer, and its rivals with the same model and as many simulated steps; `mass` is of the model."""

    def predict(view, action, k):
        tilt, thrust = view.tilt + 0.12 * (action[:2] - view.tilt), view.thrust + 0.25 * (action[3] - view.thrust)
        force = thrust * up(tilt, view.heading) - jnp.asarray(DRAG) * view.velocity
        velocity = view.velocity + DT * (force / (mass * MASS) - jnp.array([0.0, 0.0, GRAVITY]))
        position = view.position + DT / 2 * (view.velocity + velocity)
        return CrazyflieView(position, velocity, tilt, view.heading + DT * action[2], thrust)

    world = predict, lambda view, action, k: 100.0 * WORLD.cost_of(view, k)  # nats
    budget = {"steps": HORIZON + 1, "samples": ACTIONS.size}
    later = pc.Rollouts(PARTS, ACTIONS, *world, steps=HORIZON, follow="prior")
    ours = pc.Composer(PARTS, pc.Cost(predict=predict, cost_to_go=later), ACTIONS, eps=0.05, selection="mean")
    around, seen = ours.replace(gate="prior"), WORLD.observe(WORLD.reset(jax.random.key(0)))
    return ours, {
        "posterior": ours.replace(selection="posterior mean"),
        "plan": pc.Planner(around, *world, **budget),
        "plan, learning": pc.Planner(around, *world, **budget, like=seen),
        "MPPI": pc.rivals.mppi(ACTIONS, *world, **budget),
        "gradient": pc.rivals.gradient(ACTIONS, *world, **budget),
        "by hand": pilot(16.0, 9.6, ahead=1.0),
    }


if __name__ == "__main__":
    play = lambda agent: pc.rollout(agent, WORLD, steps=300, episodes=SEEDS or 50).total_reward  # noqa: E731
    for mass in (1.0, 0.8):
        composed, rivals = agents(mass)
        print(f"mass of the model: {mass:g} of the true one")
        show(pc.contest(composed, play, rivals=rivals), f"crazyflie_{mass:g}")
