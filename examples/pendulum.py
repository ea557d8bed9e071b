"""Swing-up of Gymnasium's Pendulum-v1 from two controllers, neither of which can do it alone."""

import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, PINK, figure, save
from style import SEEDS as ASKED
from swing_up import (
    CONTROLLERS,
    PENDULUM,
    TORQUES,
    balance,
    compose,
    effort,
    far_sighted,
    now,
    predict,
    pump,
    short_sighted,
)

import policychord as pc
from policychord.models import action_cost
from policychord.worlds import PendulumState

SEEDS = range(ASKED or 100)  # the same hundred starts for every agent
HORIZON = 20  # steps that a rollout follows a controller
OURS = "composed, cost-to-go"
SHOWN = min(34, len(SEEDS) - 1)  # a start almost straight down
COLOURS = (BLUE, ORANGE, GREY, GREY, PINK, PINK, GREEN, GREEN, "black", "black")


def observe(signals):
    """The state that controllers and model speak of, from what Gymnasium shows."""
    cos, sin, velocity = signals
    return PendulumState(jnp.arctan2(sin, cos), velocity)


def stage(state, torque, k):
    """What the task charges for one step."""
    return now(state, k) + effort(state, torque, k)


def switch(state, k):
    """The rule that a person would write: balance near the top, pump elsewhere."""
    return jnp.where(jnp.cos(state.angle) > 0.85, balance(state, k), pump(state, k))


def agents() -> dict[str, pc.Composer]:
    """Everybody who takes part."""
    composed = compose(far_sighted())
    to_go = pc.Rollouts(CONTROLLERS, TORQUES, predict, stage, steps=HORIZON)
    following = compose(pc.Cost(effort, predict=predict, cost_to_go=to_go))
    samples = len(CONTROLLERS) * TORQUES.size  # as many simulated steps as the rollouts take
    planner = pc.rivals.mppi(TORQUES, predict, stage, steps=HORIZON + 1, samples=samples)
    # no controllers at all: the torque that the same cost-to-go finds cheapest, as a yardstick
    cheapest = pc.Categorical(lambda state, k: -1000.0 * action_cost(composed.model, TORQUES, state, k))
    return {
        "pump alone": composed.replace(primitives={"pump": CONTROLLERS["pump"]}),
        "balance alone": composed.replace(primitives={"balance": CONTROLLERS["balance"]}),
        "fixed 50/50": composed.replace(gate="prior"),
        "hand switch": composed.replace(primitives={"hand": pc.Gaussian(switch, sd=0.3, outside="tail")}),
        "cheapest, rollouts": following.replace(gate="cheapest"),
        "composed, one-step cost": composed.replace(model=short_sighted()),
        "composed, rollouts": following,
        OURS: composed,
        "MPPI, same budget": planner,
        "any torque, cost-to-go": composed.replace(primitives={"cheapest": cheapest}),
    }


def show(returns: dict[str, np.ndarray]) -> None:
    """A line for each agent, and the paired comparison of ours with it."""
    print(f"Pendulum-v1, {len(SEEDS)} episodes, the same starts for all")
    print(f"{'agent':<24} {'return, mean ± sd':>18} {'cost-to-go gains ± se':>24} {'and wins':>10}")
    for name, values in returns.items():
        line = f"{name:<24} {values.mean():>10.1f} ± {values.std(ddof=1):>5.1f}"
        if name != OURS:
            better = returns[OURS] - values
            error = better.std(ddof=1) / np.sqrt(len(better))
            line += f" {better.mean():>16.1f} ± {error:>5.1f} {np.sum(better > 0):>10}"
        print(line)


def draw(trace, returns: dict[str, np.ndarray]):
    """One swing-up with its weights, and the returns of everybody."""
    fig = figure(7.2, 4.6)
    left, right = fig.subfigures(1, 2, width_ratios=[1.2, 1])
    angle_axis, torque_axis, weight_axis = left.subplots(3, 1, sharex=True)
    cos, sin, _ = trace.state.observation[SHOWN].T
    seconds = PENDULUM.dt * np.arange(len(cos))
    angle_axis.axhline(0.0, color=GREY, linewidth=0.8, linestyle=":")
    angle_axis.text(0.05, 12.0, "upright", color=GREY, fontsize=8)
    angle_axis.plot(seconds, np.degrees(np.unwrap(np.arctan2(sin, cos))), color="black")
    angle_axis.set(ylabel="angle (°)", yticks=[-360, -180, 0], ylim=(-380, 80))
    angle_axis.set_title(f"One swing-up (seed {SHOWN})")
    torque_axis.step(seconds, trace.action[SHOWN, :, 0], color=GREEN, where="post")
    torque_axis.set(ylabel="torque (N m)", yticks=[-2, 0, 2], ylim=(-2.3, 2.3))
    for a, (name, colour) in enumerate(zip(trace.labels.primitives, (BLUE, ORANGE), strict=True)):
        weight_axis.step(seconds, trace.weights[SHOWN, :, a], color=colour, where="post", label=name)
    weight_axis.set(ylabel="weight", xlabel="time (s)", yticks=[0, 0.5, 1], ylim=(-0.05, 1.05), xlim=(0, 5))
    weight_axis.legend(loc="upper right", handlelength=1.2, borderaxespad=0.0)
    left.align_ylabels()
    ax = right.subplots()
    rng = np.random.default_rng(0)
    for place, (values, colour) in enumerate(zip(returns.values(), COLOURS, strict=True)):
        aside = rng.uniform(-0.2, 0.2, len(values))  # so that fewer dots hide another
        ax.plot(values, place + aside, ".", color=colour, markersize=3.5, alpha=0.6, markeredgewidth=0)
        ax.plot(values.mean(), place, "|", color="black", markersize=18, markeredgewidth=1.6)
    ax.set(
        xlabel="return of an episode", yticks=range(len(returns)), yticklabels=[n.replace(", ", ",\n") for n in returns]
    )
    ax.invert_yaxis()
    ax.set_title(f"{len(SEEDS)} episodes each; bar: mean")
    return fig


if __name__ == "__main__":
    traces = {name: pc.gym.play(agent, "Pendulum-v1", seeds=SEEDS, observe=observe) for name, agent in agents().items()}
    returns = {name: np.asarray(trace.total_reward) for name, trace in traces.items()}
    show(returns)
    save(draw(traces[OURS], returns), "pendulum")
