"""The swing-up task that `pendulum.py` and `habit.py` share: two controllers, a model, and what each state will cost.

The pendulum is Gymnasium's Pendulum-v1: upright at angle 0, and a motor too weak to lift it at once.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.ndimage import map_coordinates

import policychord as pc
from policychord.worlds import Pendulum, PendulumState, upright

pc.enable_x64()

PENDULUM = Pendulum()
DISCOUNT = 0.98
CELLS = 81  # of the value function, along each axis
SETTLED = 0.01  # value iteration stops when no state's value moves by more


# Two controllers. Neither does the task alone: one never stays upright, the other cannot get there.


def pump(state: PendulumState, k):
    """Push along with the motion while there is less energy than upright at rest has, against it when there is more."""
    half_weight = PENDULUM.gravity / 2
    energy = state.velocity**2 / 6 + half_weight * jnp.cos(state.angle)
    return jnp.array([8.0 * (half_weight - energy) * jnp.sign(state.velocity)])


def balance(state: PendulumState, k):
    """Stiff and damped around upright."""
    return jnp.array([-(20.0 * upright(state.angle) + 4.0 * state.velocity)])


# Both command more than the motor can give most of the time. With "tail" such a command means full torque; "clip" would
# spread it over the allowed side only, 1.76 N m on average, and every agent would be a little weaker.
CONTROLLERS = {
    "pump": pc.Gaussian(pump, sd=0.3, outside="tail"),
    "balance": pc.Gaussian(balance, sd=0.3, outside="tail"),
}
TORQUES = pc.Grid(-2.0, 2.0, 41, saturates=True)  # N m


# The model: where a torque leads, and what that costs now (`now`) or from there on (`from_here_on`).


def predict(state: PendulumState, torque, k):
    """The pendulum one time step later."""
    return PENDULUM.move(state, torque[0])


def effort(state, torque, k):
    """What the task charges for a torque."""
    return 0.001 * torque[0] ** 2


def now(state: PendulumState, k):
    """What the task charges for a state."""
    return upright(state.angle) ** 2 + 0.1 * state.velocity**2


def cost_to_go():
    """What a state will cost from there on, by value iteration: V(x) = min_u c(x, u) + DISCOUNT V(x').

    On a grid of states, linear between its points. The angles -pi and pi are one state and agree by themselves.
    """
    angles, velocities = np.linspace(-np.pi, np.pi, CELLS), np.linspace(-8.0, 8.0, CELLS)
    states = PendulumState(*(jnp.asarray(a)[..., None] for a in np.meshgrid(angles, velocities, indexing="ij")))
    torques = jnp.linspace(-2.0, 2.0, 21)
    stage = now(states, 0) + effort(states, torques[None], 0)
    following = predict(states, torques[None], 0)

    def look_up(values, state):
        cells = [
            (upright(state.angle) + np.pi) * (CELLS - 1) / (2 * np.pi),
            (state.velocity + 8.0) * (CELLS - 1) / 16.0,
        ]
        return map_coordinates(values, cells, order=1, mode="nearest")

    def sweep(carry):
        values, _ = carry
        better = jnp.min(stage + DISCOUNT * look_up(values, following), axis=-1)
        return better, jnp.max(jnp.abs(better - values))

    begin = jnp.zeros((CELLS, CELLS)), jnp.inf
    values, _ = jax.lax.while_loop(lambda carry: carry[1] > SETTLED, sweep, begin)
    return lambda state, k: DISCOUNT * look_up(values, state)


def far_sighted() -> pc.Cost:
    """Good torques are those that cost little in the long run."""
    return pc.Cost(effort, predict=predict, cost_to_go=cost_to_go())


def short_sighted() -> pc.Cost:
    """Good torques are those that cost little at the next time step."""
    return pc.Cost(effort, predict=predict, state_cost=now)


def compose(model: pc.Cost, eps: float = 0.05, prior=None) -> pc.Composer:
    """Both controllers, weighed by a model; the torque is the mixture's mean."""
    return pc.Composer(CONTROLLERS, model, TORQUES, eps, prior, selection="mean")
