"""A generative model of one's own: reach a goal, and stay dry though gusts may push you into a pond."""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, ORANGE, figure, save

import policychord as pc
from policychord.models import AbstractModel

pc.enable_x64()


class DryGoal(AbstractModel):
    """s(u) = |x + u - goal| - ln( 1 - P(wet) ), P(wet) the chance that a gust carries x + u past the shore."""

    goal: jax.Array
    pond: jax.Array
    radius: float = 1.0
    gust: float = 0.3

    def terms(self, actions, observation, k):
        following = observation + actions.points
        from_shore = jnp.linalg.norm(following - self.pond, axis=-1) - self.radius
        log_dry = jax.scipy.stats.norm.logcdf(from_shore / self.gust)
        return {"goal": jnp.linalg.norm(following - self.goal, axis=-1), "wet": -log_dry}


WAYS = {"straight on": [1.0, 0.0], "bear left": [0.5, 0.8], "bear right": [0.5, -0.8]}
agent = pc.Composer(
    {name: pc.Gaussian(mean, sd=0.2) for name, mean in WAYS.items()},
    DryGoal(goal=jnp.array([4.0, 0.0]), pond=jnp.array([0.0, 0.0])),
    pc.Grid([-1.2, -1.2], [1.2, 1.2], 25),
    eps=0.1,
)
x, y = jnp.linspace(-4.0, 3.0, 141), 0.2
line = jnp.stack([x, jnp.full_like(x, y)], axis=-1)
weights = np.asarray(jax.jit(jax.vmap(lambda state: agent.weigh(state).weights))(line))
for place in (-4.0, -1.5, 3.0):
    at = int(np.argmin(np.abs(x - place)))
    print(f"x = {place:+.1f}: " + ", ".join(f"{n} {w:.2f}" for n, w in zip(agent.names, weights[at], strict=True)))


def draw():
    """The price of being somewhere, and the weights along a line through the pond."""
    fig = figure(6.8, 2.7)
    left, right = fig.subplots(1, 2)
    here = jnp.array([-1.5, y])
    price = sum(agent.terms(here).values())
    image = left.scatter(*(here + agent.actions.points).T, c=price, s=14, marker="s", cmap="viridis_r")
    left.plot(*here, "o", color="black")
    for name, colour in zip(WAYS, (BLUE, ORANGE, GREEN), strict=True):
        left.arrow(*here, *(0.9 * np.array(WAYS[name])), color=colour, width=0.02, head_width=0.1)
    left.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    left.set_title("Price of a step from here")
    fig.colorbar(image, ax=left, label="nats")
    right.axvspan(-1, 1, color="#56B4E9", alpha=0.25, linewidth=0)
    right.text(0, 0.93, "pond", ha="center")
    for name, along, colour in zip(agent.names, weights.T, (BLUE, ORANGE, GREEN), strict=True):
        right.plot(x, along, color=colour, label=name)
    right.set(xlabel=f"x (m), at y = {y}", ylabel="weight", ylim=(0, 1))
    right.set_title("Weights on the way")
    right.legend(loc="upper left")
    return fig


if __name__ == "__main__":
    save(draw(), "own_model")
