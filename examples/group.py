"""Whose proposals does a group follow?

The members are agents, and primitives of another agent, the group. Each walks on a line and has a
goal of its own. The group's goal changes sides half way; weight goes to the members whose proposals serve it.
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, figure, save

import policychord as pc

pc.enable_x64()

STEPS = 60
MOVES = pc.Grid(-1.0, 1.0, 41)


def member(goal: float) -> pc.Composer:
    """An agent that steps to the left or to the right, whichever brings it nearer to its goal."""
    ways = {
        "left": pc.Gaussian(lambda x, k: jnp.array([-0.4]), 0.25),
        "right": pc.Gaussian(lambda x, k: jnp.array([0.4]), 0.25),
    }
    return pc.Composer(ways, pc.Cost(lambda x, u, k: 3.0 * (x + u[0] - goal) ** 2), MOVES, eps=0.1)


def shared_goal(k):
    """The group wants to be at 3, and from half time on at -3."""
    return jnp.where(k < STEPS // 2, 3.0, -3.0)


MEMBERS = {"goes to 4": member(4.0), "stays at 0": member(0.0), "goes to -4": member(-4.0)}
GROUP = pc.Composer(
    MEMBERS, pc.Cost(lambda x, u, k: 3.0 * (x + u[0] - shared_goal(k)) ** 2), MOVES, eps=0.2, selection="mean"
)


def walk(x, k):
    """One decision of the group; its three members decide within it."""
    decided = GROUP.decide(jax.random.key(0), x, k)
    after = x + decided.action[0]
    return after, (after, decided.weights, decided.certificate.gap)


_, (place, weights, gap) = jax.lax.scan(walk, jnp.asarray(0.0), jnp.arange(STEPS))
place, weights = np.asarray(place), np.asarray(weights)
half = STEPS // 2
for name, first, second in zip(GROUP.names, weights[:half].mean(0), weights[half:].mean(0), strict=True):
    print(f"{name:<12} weight {first:.2f} before half time, {second:.2f} after")
print(f"the group is at {place[half - 1]:.1f} at half time and at {place[-1]:.1f} at the end")
print(f"certificate: energy within {float(np.max(gap)):.0e} at every step")


def draw():
    """Where the group is, and whose proposals it follows."""
    fig = figure(6.4, 2.8)
    left, right = fig.subplots(1, 2)
    left.plot(place, color="black")
    left.step(range(STEPS), np.asarray(jax.vmap(shared_goal)(jnp.arange(STEPS))), color=GREY, linestyle="--")
    left.set(xlabel="step", ylabel="place", title="The group and its goal (dashed)")
    right.stackplot(range(STEPS), weights.T, colors=(BLUE, GREEN, ORANGE), labels=GROUP.names, alpha=0.8)
    right.set(xlabel="step", ylabel="weight", ylim=(0, 1), xlim=(0, STEPS - 1), title="Weights of its members")
    right.legend(loc="center right")
    return fig


if __name__ == "__main__":
    save(draw(), "group")
