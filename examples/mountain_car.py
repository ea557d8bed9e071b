"""MountainCarContinuous-v0 from two constant pushes, neither of which leaves the valley.

The mean of two opposite pushes is no push at all, so the table is by the most probable action (`mode`). The lines below
it show the same agent with the mixture's mean and with draws from it.
"""

import jax.numpy as jnp
from contest import OURS, compare, contestants, draw, show
from style import save

import policychord as pc

pc.enable_x64()

POWER, WEIGHT, GOAL = 0.0015, 0.0025, 0.45


def predict(state, push, k):
    """The car one step later: the equations of MountainCarContinuous-v0."""
    place, velocity = state
    velocity = jnp.clip(velocity + POWER * jnp.clip(push[0], -1.0, 1.0) - WEIGHT * jnp.cos(3 * place), -0.07, 0.07)
    place = jnp.clip(place + velocity, -1.2, 0.6)
    return jnp.stack([place, jnp.where((place <= -1.2) & (velocity < 0), 0.0, velocity)])


def price(state, k):
    """The energy that is missing for the top of the hill: the task's own reward says nothing before the goal."""
    place, velocity = state
    energy = velocity**2 / 2 + WEIGHT / 3 * jnp.sin(3 * place)
    return 1000.0 * jnp.maximum(WEIGHT / 3 * jnp.sin(3 * GOAL) + 0.0002 - energy, 0.0)


def stage(state, push, k):
    """Of one step: what the task charges for the push, and the missing energy."""
    return 0.1 * push[0] ** 2 + price(state, k)


def left(state, k):
    """Push to the left, whatever happens."""
    return jnp.array([-1.0])


def right(state, k):
    """Push to the right, whatever happens."""
    return jnp.array([1.0])


def with_motion(state, k):
    """The rule that everybody finds: push to where the car goes."""
    return jnp.where(state[1] < 0, -1.0, 1.0) * jnp.ones(1)


if __name__ == "__main__":
    composer = pc.Composer(
        {"left": pc.Gaussian(left, 0.3), "right": pc.Gaussian(right, 0.3)},
        pc.Cost(lambda x, u, k: 0.1 * u[0] ** 2, predict=predict, state_cost=price),
        pc.Grid(-1.0, 1.0, 21, saturates=True), eps=0.01, selection="mode",
    )  # fmt: skip
    agents = contestants(
        composer, one_step=composer.model, predict=predict, stage=stage, steps=30,
        hand=pc.Gaussian(with_motion, 0.3),
    )  # fmt: skip
    _, returns = compare(agents, "MountainCarContinuous-v0", range(50))
    show("MountainCarContinuous-v0", returns)
    for selection in ("mean", "sample"):
        other = {f"{OURS}, {selection}": agents[OURS].replace(selection=selection)}
        _, more = compare(other, "MountainCarContinuous-v0", range(50))
        print(*(f"{name}: {values.mean():.1f}" for name, values in more.items()))
    save(draw("MountainCarContinuous-v0", returns), "mountain_car")
