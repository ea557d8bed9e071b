"""A world of one's own: a cart on a rail, three pushes that look at nothing, and a matrix that prices its states.

None of the primitives has any feedback. All of it comes from the gate, which weighs them anew at every step.
"""

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_discrete_are
from style import BLUE, GREEN, GREY, ORANGE, figure, save

import policychord as pc
from policychord.worlds import AbstractEnv, Box, Spaces, Step, Variable

pc.enable_x64()

DT = 0.1  # s
MOVE, PUSH = np.array([[1.0, DT], [0.0, 1.0]]), np.array([[0.0], [DT]])
STATE_COST, EFFORT = np.diag([1.0, 0.1]), 0.1


class CartState(NamedTuple):
    position: jax.Array
    velocity: jax.Array


class Cart(AbstractEnv):
    """A unit mass without friction, pushed by a force and by gusts."""

    gust: float = 0.3  # N, standard deviation

    # dims and unit of each field of the state; with several agents the dims would be ("agent",)
    variables: ClassVar = {"position": Variable(unit="m"), "velocity": Variable(unit="m/s")}

    def reset(self, key):
        return CartState(*jax.random.uniform(key, (2,), minval=-2.0, maxval=2.0))

    def move(self, state, force):
        return CartState(state.position + DT * state.velocity, state.velocity + DT * force)

    def step(self, key, state, action, k):
        cost = state.position**2 + 0.1 * state.velocity**2 + EFFORT * action[0] ** 2
        force = action[0] + self.gust * jax.random.normal(key)
        return Step(self.move(state, force), -cost, jnp.asarray(False))

    def observe(self, state):  # what the agent sees: here everything
        return state

    def signals(self, state):  # this and `spaces` serve agents that come by way of Gymnasium
        return jnp.stack(state)

    def spaces(self):
        everywhere = np.full(2, np.inf)
        return Spaces(Box(-everywhere, everywhere), Box(-np.ones(1), np.ones(1)))


cart = Cart()
agent = pc.Composer(
    {"left": pc.Gaussian(-1.0, sd=0.2), "rest": pc.Gaussian(0.0, sd=0.2), "right": pc.Gaussian(1.0, sd=0.2)},
    model=pc.Cost(
        lambda x, force, k: EFFORT * force[0] ** 2,
        predict=lambda x, force, k: cart.move(x, force[0]),
        cost_to_go=solve_discrete_are(MOVE, PUSH, STATE_COST, np.array([[EFFORT]])),  # in the order of the fields
    ),
    actions=pc.Grid(-1.0, 1.0, 41, saturates=True),
    eps=0.05,
    selection="mean",
)
agents = {"fixed mixture": agent.replace(gate="prior"), "composed": agent}
traces = {name: pc.rollout(one, cart, steps=150, episodes=200) for name, one in agents.items()}
for name, trace in traces.items():
    print(f"{name:<14} {trace.total_reward.mean():>8.1f} ± {trace.total_reward.std(ddof=1):.1f}")
data = pc.to_dataset(traces["composed"], eps=0.05, gust=cart.gust)


def draw():
    """How far from home the cart is, and who drives it."""
    fig = figure(6.4, 2.6)
    left, right = fig.subplots(1, 2)
    seconds = DT * np.arange(data.sizes["time"])
    for (name, trace), colour in zip(traces.items(), (GREY, GREEN), strict=True):
        off = np.sqrt(np.mean(np.asarray(trace.state.position) ** 2, axis=0))
        left.plot(seconds, off, color=colour, label=name)
    left.set(xlabel="time (s)", ylabel="rms distance from home (m)", yscale="log")
    left.set_title("Distance, 200 episodes")
    left.legend()
    for name, colour in zip(agent.names, (BLUE, GREY, ORANGE), strict=True):
        weights = data.weights.sel(primitive=name).squeeze("agent")
        right.plot(seconds, weights.mean("episode"), color=colour, label=name)
        low, high = weights.quantile([0.25, 0.75], dim="episode").values
        right.fill_between(seconds, low, high, color=colour, alpha=0.2, linewidth=0)
    right.set(xlabel="time (s)", ylabel="weight", ylim=(0, 1))
    right.set_title("Weights, mean and quartiles")
    right.legend(loc="upper right")
    return fig


if __name__ == "__main__":
    save(draw(), "own_environment")
