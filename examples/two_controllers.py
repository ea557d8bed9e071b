"""Two controllers of a drone in gusts: alone, in a fixed mixture, and weighed by the price of one step or of all."""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, PINK, figure, save

from policychord import Composer, rollout
from policychord.actions import Grid
from policychord.envs import Quadrotor, path
from policychord.envs.quadrotor import HOVER, LARGEST_THRUST, LEAST_THRUST
from policychord.models import Cost
from policychord.primitives import Gaussian
from policychord.studies.quadrotor.agents import controllers, hover_model, regulator
from policychord.studies.quadrotor.settings import QuadrotorSettings

jax.config.update("jax_enable_x64", True)

settings = QuadrotorSettings()
eight = path("lemniscate", steps=300, scale=0.75, period=6.0)
drone = Quadrotor(eight, start=settings.start, force_sd=0.03, thrust_sd=0.01)
flown = controllers(settings, "pd")
A, B = (jnp.asarray(matrix) for matrix in hover_model())
Q, P = np.diag(settings.cost.state), regulator(settings.lqr_baseline)[1]  # price of the next state, and of all to come
rows = jnp.asarray(eight)


def effort(view, thrust, k):
    return 0.1 * jnp.sum((thrust - HOVER) ** 2)


def predict(view, thrust, k):
    return A @ view.x + B @ (thrust - HOVER)


def target(k):
    return rows[jnp.minimum(k, 300)]


def composed(price) -> Composer:
    return Composer(
        {name: Gaussian(flown[name], sd=0.01) for name in ("stabilise", "track")},
        Cost(effort, predict=predict, cost_to_go=price, target=target),
        Grid([LEAST_THRUST - 0.04] * 2, [LARGEST_THRUST + 0.04] * 2, 20),  # wide enough that no bell is cut
        eps=0.05,
        selection="mean",
    )


blind = composed(P).replace(gate="prior")
agents = {
    "stabilise alone": blind.replace(prior=[1 - 1e-9, 1e-9]),  # a prior must not be zero
    "track alone": blind.replace(prior=[1e-9, 1 - 1e-9]),
    "fixed 50/50": blind,
    "composed, one step": composed(Q),
    "composed, cost-to-go": composed(P),
}
traces = {name: rollout(agent, drone, steps=300, episodes=40) for name, agent in agents.items()}
costs = {name: -np.asarray(trace.total_reward) for name, trace in traces.items()}
for name, cost in costs.items():
    wins = np.sum(cost < costs["fixed 50/50"])
    print(f"{name:<22} median cost {np.median(cost):>5.0f}   cheaper than 50/50 in {wins} of 40 episodes")


def draw():
    """Costs of all episodes, and how far from the path the mixtures fly."""
    fig = figure(7.0, 2.7)
    left, right = fig.subplots(1, 2)
    colours = dict(zip(costs, (BLUE, ORANGE, GREY, PINK, GREEN), strict=True))
    rng = np.random.default_rng(0)
    for place, (name, cost) in enumerate(costs.items()):
        left.plot(cost, place + rng.uniform(-0.2, 0.2, 40), ".", color=colours[name], markersize=4, alpha=0.7)
        left.plot(np.median(cost), place, "|", color="black", markersize=18)
    left.set(xscale="log", xlabel="cost of an episode", yticks=range(5), yticklabels=costs)
    left.invert_yaxis()
    left.set_title("40 episodes; bar: median")
    for name in ("track alone", "fixed 50/50", "composed, cost-to-go"):
        off = np.linalg.norm(np.asarray(traces[name].state.position) - eight[:300, [0, 2]], axis=-1)
        right.plot(0.02 * np.arange(300), np.median(off, axis=0), color=colours[name], label=name)
    right.set(xlabel="time (s)", ylabel="distance from the path (m)", ylim=(0, None))
    right.set_title("Median of 40 episodes")
    right.legend()
    return fig


if __name__ == "__main__":
    save(draw(), "two_controllers")
