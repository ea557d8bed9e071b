"""A temperature that is a number, a schedule in time, or a function of the situation, for the swing-up."""

import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, ORANGE, figure, save
from swing_up import CONTROLLERS, PENDULUM, TORQUES, effort, predict

import policychord as pc
from policychord.worlds import upright

pc.enable_x64()


def price(x, k):
    """What the task charges, and the energy that is missing for standing upright."""
    missing = 5.0 - 5.0 * jnp.cos(x.angle) - x.velocity**2 / 6.0
    return upright(x.angle) ** 2 + 0.1 * x.velocity**2 + missing**2


def cooling(state, k):
    return 0.05 + 20.0 * jnp.exp(-k / 20.0)


def by_situation(state, k):
    return jnp.where(jnp.cos(state.angle) > 0.9, 0.02, 1.0)


model = pc.Cost(effort, predict=predict, state_cost=price)
agent = pc.Composer(CONTROLLERS, model, TORQUES, eps=0.05, selection="mean")
regimes = {f"eps = {eps:g}": eps for eps in (0.05, 1.0, 10.0, 100.0)} | {
    "cooling": cooling,
    "by situation": by_situation,
}
traces = {name: pc.rollout(agent.replace(eps=eps), PENDULUM, steps=200, episodes=200) for name, eps in regimes.items()}
for name, trace in traces.items():
    print(f"{name:<13} return {trace.total_reward.mean():6.0f}   all optimal: {bool(trace.converged.all())}")


def draw():
    """The temperatures, and how decided they make the agent."""
    fig = figure(6.4, 2.6)
    left, right = fig.subplots(1, 2)
    seconds = PENDULUM.dt * np.arange(200)
    warmth = {
        "eps = 0.05": np.full(200, 0.05),
        "cooling": cooling(None, np.arange(200)),
        "by situation": np.exp(np.log(by_situation(traces["by situation"].state, 0)).mean(axis=0)),
    }
    for (name, eps), colour in zip(warmth.items(), (BLUE, ORANGE, GREEN), strict=True):
        left.semilogy(seconds, eps, color=colour, label=name)
        right.plot(seconds, np.asarray(traces[name].weights).max(axis=-1).mean(axis=0), color=colour, label=name)
    left.set(xlabel="time (s)", ylabel="temperature eps")
    left.set_title("Temperature")
    left.legend(loc="upper right")
    right.set(xlabel="time (s)", ylabel="weight of whoever leads", xlim=(0, 5), ylim=(0.45, 1.0))
    right.set_title("How decided the agent is")
    return fig


if __name__ == "__main__":
    save(draw(), "temperatures")
