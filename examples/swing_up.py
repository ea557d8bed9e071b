"""Swing-up of Gymnasium's Pendulum-v1 from two controllers: does their composition do what neither can?"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.ndimage import map_coordinates

import policychord as pc
from policychord.worlds import Pendulum, PendulumState, upright

pc.enable_x64()

PENDULUM, DISCOUNT, CELLS = Pendulum(), 0.98, 81  # cells of the value function, along each axis
TORQUES = pc.Grid(-2.0, 2.0, 41, saturates=True)  # N m


def pump(state: PendulumState, k):
    energy = state.velocity**2 / 6 + PENDULUM.gravity / 2 * (jnp.cos(state.angle) - 1)
    return jnp.array([-8.0 * energy * jnp.sign(state.velocity)])


def balance(state: PendulumState, k):
    return jnp.array([-(20.0 * upright(state.angle) + 4.0 * state.velocity)])


CONTROLLERS = {"pump": pc.Gaussian(pump, sd=0.3, outside="tail"), "balance": pc.Gaussian(balance, 0.3, outside="tail")}


def predict(state: PendulumState, torque, k):
    return PENDULUM.move(state, torque[0])


def effort(state, torque, k):
    return 0.001 * torque[0] ** 2


def now(state: PendulumState, k):
    return upright(state.angle) ** 2 + 0.1 * state.velocity**2


def far_sighted() -> pc.Cost:
    """Prices a state by value iteration: V(x) = min_u c(x, u) + DISCOUNT V(x'), linear between grid points."""
    angles, velocities = np.linspace(-np.pi, np.pi, CELLS), np.linspace(-8.0, 8.0, CELLS)
    states = PendulumState(*(jnp.asarray(a)[..., None] for a in np.meshgrid(angles, velocities, indexing="ij")))
    torques = jnp.linspace(-2.0, 2.0, 21)[None]
    stage, following = now(states, 0) + effort(states, torques, 0), predict(states, torques, 0)

    def look_up(values, state):
        cells = (upright(state.angle) + np.pi) / (2 * np.pi), (state.velocity + 8.0) / 16.0
        return map_coordinates(values, [(CELLS - 1) * cell for cell in cells], order=1, mode="nearest")

    def sweep(carry):
        better = jnp.min(stage + DISCOUNT * look_up(carry[0], following), axis=-1)
        return better, jnp.max(jnp.abs(better - carry[0]))

    values, _ = jax.lax.while_loop(lambda carry: carry[1] > 0.01, sweep, (jnp.zeros((CELLS, CELLS)), jnp.inf))
    return pc.Cost(effort, predict=predict, cost_to_go=lambda state, k: DISCOUNT * look_up(values, state))


def short_sighted() -> pc.Cost:
    return pc.Cost(effort, predict=predict, state_cost=now)


def compose(model: pc.Cost, eps: float = 0.05, prior=None) -> pc.Composer:
    return pc.Composer(CONTROLLERS, model, TORQUES, eps, prior, selection="mean")


if __name__ == "__main__":
    from style import SEEDS, show

    observe = lambda seen: PendulumState(jnp.arctan2(seen[1], seen[0]), seen[2])  # noqa: E731
    play = lambda one: pc.gym.play(one, "Pendulum-v1", seeds=SEEDS or 100, observe=observe).total_reward  # noqa: E731
    world = predict, lambda x, u, k: now(x, k) + effort(x, u, k)
    later, budget = pc.Rollouts(CONTROLLERS, TORQUES, *world, steps=20), {"steps": 21, "samples": 2 * TORQUES.size}
    agent = compose(pc.Cost(effort, predict=predict, cost_to_go=later))
    rivals = {"one-step cost": compose(short_sighted()), "value iteration": compose(far_sighted())}
    rivals["plan"] = pc.Planner(agent.replace(gate="prior"), *world, **budget)
    rivals["MPPI"] = pc.rivals.mppi(TORQUES, *world, **budget)
    rivals["by hand"] = lambda x, k: jnp.where(jnp.cos(x.angle) > 0.85, balance(x, k), pump(x, k))
    show(pc.contest(agent, play, rivals=rivals), "swing_up")
