"""Two controllers of a drone in gusts: alone, in a fixed mixture, and weighed by the price of one step or of all."""

import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, PINK, figure, save

import policychord as pc
from policychord.models import linearise, riccati
from policychord.worlds import Quadrotor, path
from policychord.worlds.quadrotor.physics import GRAVITY, HOVER, INERTIA, LARGEST_THRUST, LEAST_THRUST, LEVER, MASS

pc.enable_x64()

eight = path("lemniscate", steps=300, scale=0.75, period=6.0)
drone = Quadrotor(eight, force_sd=0.03, thrust_sd=0.01)
rows = jnp.asarray(eight)


def pd(view, aim, spring, damping, turning):
    """Thrusts of a spring and a damper towards `aim`; the drone turns into the force, and turns slowly."""
    x, vx, z, vz, pitch, rate = view.x
    fx = spring[0] * (aim[0] - x) + damping[0] * (aim[1] - vx)
    fz = spring[1] * (aim[2] - z) + damping[1] * (aim[3] - vz) + 2 * HOVER
    lift = jnp.maximum(fx * jnp.sin(pitch) + fz * jnp.cos(pitch), 0.0) / 2
    turn = -turning[0] * jnp.sin(pitch - jnp.arctan2(fx, fz)) - turning[1] * rate
    return lift + jnp.array([-1.0, 1.0]) * jnp.clip(turn, -0.008, 0.008)


def stabilise(view, k):
    """Damps every motion and goes nowhere."""
    return pd(view, jnp.zeros(6), spring=(0.0, 0.0), damping=(0.05, 0.1), turning=(0.35, 0.05))


def track(view, k):
    """Follows the path and overshoots."""
    return pd(view, rows[jnp.minimum(k, 300)], spring=(0.45, 1.0), damping=(0.2, 0.35), turning=(0.07, 0.025))


def next_state(x, thrust, k):
    """The drone's equations, 20 ms later."""
    _, vx, _, vz, pitch, rate = x
    push, turn = thrust.sum() / MASS, LEVER * (thrust[1] - thrust[0]) / INERTIA
    change = jnp.array([vx, push * jnp.sin(pitch), vz, push * jnp.cos(pitch) - GRAVITY, rate, turn])
    return x + 0.02 * change


A, B = linearise(next_state, np.zeros(6), [HOVER, HOVER])
Q, R = np.diag([1.0, 0.1, 1.0, 0.1, 0.1, 0.1]), 0.1 * np.eye(2)
P = riccati(A, B, Q, R).cost_to_go  # Q prices the next state, P all that follow


def effort(view, thrust, k):
    return 0.1 * jnp.sum((thrust - HOVER) ** 2)


def predict(view, thrust, k):
    return A @ view.x + B @ (thrust - HOVER)


def target(k):
    return rows[jnp.minimum(k, 300)]


def composed(price) -> pc.Composer:
    return pc.Composer(
        {"stabilise": pc.Gaussian(stabilise, sd=0.01), "track": pc.Gaussian(track, sd=0.01)},
        pc.Cost(effort, predict=predict, cost_to_go=price, target=target),
        # wide enough that no Gaussian is cut around a command that the motors can follow
        pc.Grid([LEAST_THRUST - 0.04] * 2, [LARGEST_THRUST + 0.04] * 2, 20, saturates=True),
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
traces = {name: pc.rollout(agent, drone, steps=300, episodes=40) for name, agent in agents.items()}
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
