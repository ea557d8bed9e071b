"""Two controllers of a drone in gusts: does a gate beat a fixed mixture, and does it need to look ahead?"""

import jax.numpy as jnp
import numpy as np
from style import SEEDS, show

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
    return pd(view, jnp.zeros(6), spring=(0.0, 0.0), damping=(0.05, 0.1), turning=(0.35, 0.05))


def track(view, k):
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


def composed(price) -> pc.Composer:
    def effort(view, thrust, k):
        return 0.1 * jnp.sum((thrust - HOVER) ** 2)

    def predict(view, thrust, k):
        return A @ view.x + B @ (thrust - HOVER)

    return pc.Composer(
        {"stabilise": pc.Gaussian(stabilise, sd=0.01), "track": pc.Gaussian(track, sd=0.01)},
        pc.Cost(effort, predict=predict, cost_to_go=price, target=lambda k: rows[jnp.minimum(k, 300)]),
        # wide enough that no Gaussian is cut around a command that the motors can follow
        pc.Grid([LEAST_THRUST - 0.04] * 2, [LARGEST_THRUST + 0.04] * 2, 20, saturates=True),
        eps=0.05,
        selection="mean",
    )


if __name__ == "__main__":
    play = lambda agent: pc.rollout(agent, drone, steps=300, episodes=SEEDS or 40).total_reward  # noqa: E731
    show(pc.contest(composed(P), play, rivals={"composed, one step": composed(Q)}), "two_controllers")
